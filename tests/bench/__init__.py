"""Benchmarks: run by hand with ``python -m tests.bench.bench_pubmed``, never collected by pytest."""
