"""Counting the words of documents: inputs, counts of shards, merging."""
