"""What is known of a portion of documents once its examples are made, and which of them could not be used."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import Shard, decode


@dataclass
class Made:
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
    dealt: dict[str, list[str]] = field(default_factory=dict)
    splits: dict[str, Counter[str]] = field(default_factory=dict)
    years: dict[str, Counter[str]] = field(default_factory=dict)
    documents: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, report: dict[str, Any]) -> Made:
        """Of the plain data that it is in a portion's report."""
        made = cls(**report)
        made.outputs = [decode(Shard, listed) for listed in report["outputs"]]
        made.splits = {split: Counter(counts) for split, counts in made.splits.items()}
        made.dropped, made.rejected = Counter(made.dropped), Counter(made.rejected)
        made.years = {source: Counter(years) for source, years in made.years.items()}
        return made


class Rejected:
    """Documents that cannot be used, as JSON lines; the documents themselves stay where they are."""

    def __init__(self, files: LocalFiles, path: str, stack: ExitStack) -> None:
        self._files, self._path, self._stack = files, path, stack
        self._out: BinaryIO | None = None

    def add(self, file: str, document: str, reason: str, detail: str) -> None:
        """Say of a document of this file why it cannot be used."""
        if self._out is None:
            self._out = self._stack.enter_context(self._files.write(self._path))
        entry = {"file": file, "id": document, "reason": reason, "detail": detail}
        self._out.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
