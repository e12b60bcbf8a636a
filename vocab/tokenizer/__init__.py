"""Tokenizer files: pieces, alphabet, pre-tokenization, WordPiece, Hugging Face's format."""
