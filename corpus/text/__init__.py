"""Text processing of documents: cleaning rules, notices, line format."""
