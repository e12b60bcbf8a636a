"""The papers' measures, each as sums over the examples of a test set: see metric.py."""
