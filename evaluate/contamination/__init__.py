"""Find benchmark texts in a pretraining corpus, and the documents to exclude."""

from typing import Final

DEFAULT_MIN_SHARED_NGRAMS: Final = 13
"""Shared 13-grams that make a document excluded: as many as 25 consecutive words have."""
