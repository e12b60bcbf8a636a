"""Fine-tuning runs and their results."""
