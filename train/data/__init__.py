"""From pretraining shards to batches: sampler, loader, masking, collation."""
