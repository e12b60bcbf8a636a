"""The papers' measures, each as sums over the examples of a test set (metric.py), so that any can be resampled."""
