"""Arrow shards of documents and of pretraining rows."""
