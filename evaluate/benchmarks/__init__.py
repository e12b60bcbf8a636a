"""Benchmark sets: definitions, file formats, readers, published counts."""
