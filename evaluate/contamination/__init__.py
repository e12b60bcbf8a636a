"""Benchmarks in pretraining text: whether they are there, and which documents to leave out."""
