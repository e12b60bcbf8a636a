"""All benchmarks by name: which files, how many of what they hold, and where they are to be had."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bioshards.evaluate.benchmarks.definition import Benchmark

from .ner import NER_BENCHMARKS
from .texts import TEXT_BENCHMARKS

BENCHMARKS: Final[Mapping[str, Benchmark]] = MappingProxyType(
    {benchmark.name: benchmark for benchmark in (*NER_BENCHMARKS, *TEXT_BENCHMARKS)}
)
