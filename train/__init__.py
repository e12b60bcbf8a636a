"""Trainer: pretraining sets to Hugging Face checkpoints, with the papers' objectives."""
