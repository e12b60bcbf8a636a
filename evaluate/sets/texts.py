"""The sets of relations, texts and questions."""

from __future__ import annotations

from typing import Final

from ..datasets import DataSet

TEXTS: Final[tuple[DataSet, ...]] = ()
