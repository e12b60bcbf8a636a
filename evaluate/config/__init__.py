"""Fine-tuning recipes and the suites of the papers."""
