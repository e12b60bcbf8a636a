"""The training run: job, loop, checkpoints, log and processes."""
