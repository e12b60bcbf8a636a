"""Optimizers, learning rate schedules and flat gradients."""
