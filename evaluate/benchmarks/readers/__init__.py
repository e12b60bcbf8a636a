"""Benchmarks as their authors distribute them, a file format a module; all give records (record_types.py)."""
