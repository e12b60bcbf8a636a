"""Folders that tests read from: the repository, its samples and the golden files."""

from __future__ import annotations

from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
TESTS: Final = REPOSITORY / "tests"
GOLDEN: Final = TESTS / "golden"
PUBMED_SAMPLE: Final = REPOSITORY / "corpus" / "sample" / "pubmed"
TEXT_SAMPLE: Final = REPOSITORY / "corpus" / "sample" / "text"
PMC_SAMPLE: Final = REPOSITORY / "corpus" / "sample" / "pmc"
TOPIC_SAMPLE: Final = REPOSITORY / "corpus" / "sample" / "topics" / "pubmed26n0004.xml.gz"
BENCHMARK_SAMPLE: Final = REPOSITORY / "evaluate" / "sample"
