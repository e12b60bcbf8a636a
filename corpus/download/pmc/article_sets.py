"""What can be chosen of PMC's articles, apart from licences; options name it."""

from __future__ import annotations

from typing import Final, Literal

SETS: Final = ("open-access", "manuscripts", "ocr")
"""Data sets of PMC: the Open Access Subset, authors' manuscripts, and articles from scanned pages."""

DEFAULT_SETS: Final = frozenset({"open-access", "manuscripts"})

Versions = Literal["newest", "all"]
"""Versions of an article to select."""
