"""From a checkpoint to scores on the papers' tasks: readers, fine-tuning, metrics and reports."""
