"""Readers of single benchmarks, from the authors' files to records."""
