"""Benchmarks: run by hand with ``python -m tests.bench.bench_corpus``, never collected by pytest."""
