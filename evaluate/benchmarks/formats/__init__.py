"""File formats of benchmarks, each read without knowing the benchmark."""
