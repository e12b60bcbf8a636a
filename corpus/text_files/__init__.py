"""Text files of one's own, JSON Lines, Parquet and plain text: records, documents and drop rules."""
