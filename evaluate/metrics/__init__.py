"""Metrics as functions of sums over per-example statistics."""
