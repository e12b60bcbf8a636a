"""Fine-tuning recipes and the papers' suites."""
