"""All benchmarks by name: which files, how many of what they hold, and where they are to be had."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bioshards.evaluate.datasets import DataSet

from .tagging import TAGGING
from .texts import TEXTS

SETS: Final[Mapping[str, DataSet]] = MappingProxyType({one.name: one for one in (*TAGGING, *TEXTS)})
