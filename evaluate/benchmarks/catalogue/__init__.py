"""All benchmarks by name. A new benchmark is an entry in one of these modules."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from bioshards.evaluate.benchmarks.catalogue.ner import NER_BENCHMARKS
from bioshards.evaluate.benchmarks.catalogue.texts import TEXT_BENCHMARKS
from bioshards.evaluate.benchmarks.definition import Benchmark

BENCHMARKS: Final[Mapping[str, Benchmark]] = MappingProxyType(
    {benchmark.name: benchmark for benchmark in (*NER_BENCHMARKS, *TEXT_BENCHMARKS)}
)
