"""Benchmarks: files, readers, published counts and verification."""
