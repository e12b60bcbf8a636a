"""PMC's article bucket: inventory, metadata, licence filter and download by ranges."""
