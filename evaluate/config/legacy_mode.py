"""Names of the published deviations in reading and counting tags (metrics/tag_f1.py)."""

from __future__ import annotations

from typing import Literal

LegacyMode = Literal["electra-truncation", "lower-case", "merged-types", "biobert-tags"]
