"""Encoders, tokenizers, heads and padded batches."""
