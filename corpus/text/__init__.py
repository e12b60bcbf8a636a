"""Clean text of documents: cleaning rules, publishers' notices, one-sentence-a-line export."""
