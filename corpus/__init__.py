"""Corpus building as pure functions: bytes to documents to shards. Imports neither Beam nor torch."""
