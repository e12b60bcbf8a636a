"""Training WordPiece and Unigram vocabularies from word counts."""
