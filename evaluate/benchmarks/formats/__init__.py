"""File formats of benchmarks, independent of any benchmark."""
