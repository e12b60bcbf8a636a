"""What is known of a portion of documents once its examples are made, and which of them could not be used."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from bioshards.corpus.manifest import Shard, decode
from bioshards.corpus.storage.local_storage import LocalStorage


@dataclass
class BuildResult:
    """What is known of a portion once its examples are made.

    Attributes:
        outputs: its shards, as the manifest lists them; ``dealt``: the files in which its rows wait for those
            of other portions, by split.
        splits: for each split, counts by what is counted (``publishing`` says what that is).
        years: tokens by source and year.
        bad: its shards that cannot be used, and why.
    """

    name: str
    outputs: list[Shard] = field(default_factory=list)
    spill_files: dict[str, list[str]] = field(default_factory=dict)
    split_counts: dict[str, Counter[str]] = field(default_factory=dict)
    tokens_by_year: dict[str, Counter[str]] = field(default_factory=dict)
    documents: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    @classmethod
    def from_dict(cls, report: dict[str, Any]) -> BuildResult:
        """Of the plain data that it is in a portion's report."""
        result = cls(**report)
        result.outputs = [decode(Shard, listed) for listed in report["outputs"]]
        result.split_counts = {split: Counter(counts) for split, counts in result.split_counts.items()}
        result.dropped, result.rejected = Counter(result.dropped), Counter(result.rejected)
        result.tokens_by_year = {source: Counter(years) for source, years in result.tokens_by_year.items()}
        return result


class RejectsWriter:
    """Documents that cannot be used, as JSON lines; the documents themselves stay where they are."""

    def __init__(self, storage: LocalStorage, path: str, stack: ExitStack) -> None:
        self._storage, self._path, self._stack = storage, path, stack
        self._file: BinaryIO | None = None

    def add(self, file: str, document: str, reason: str, detail: str) -> None:
        """Say of a document of this file why it cannot be used."""
        if self._file is None:
            self._file = self._stack.enter_context(self._storage.write(self._path))
        entry = {"file": file, "id": document, "reason": reason, "detail": detail}
        self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
