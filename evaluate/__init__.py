"""Fine-tune encoders on the papers' benchmarks, score them, and check the benchmarks for contamination."""
