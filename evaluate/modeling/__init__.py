"""Pretrained encoders, tokenization, batches, heads and the CRF."""
