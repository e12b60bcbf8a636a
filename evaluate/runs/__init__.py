"""Fine-tuning runs, their results, and hyperparameter search."""
