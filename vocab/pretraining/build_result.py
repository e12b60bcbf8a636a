"""Result of building one shard group."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bioshards.corpus.manifest import Shard


@dataclass
class BuildResult:
    """Result of building one shard group.

    Attributes:
        name: name of the group.
        outputs: shards, as listed in the manifest.
        spill_files: names of the spill files of a global shuffle, by split.
        split_counts: counts by split, with the fields of ``SplitCounts``.
        tokens_by_year: number of tokens by source and year of publication.
        documents: number of documents that were read.
        dropped: number of dropped documents by reason.
        rejected: number of rejected documents by reason.
        failures: shards that cannot be read, with the reasons.
        is_cached: True if the rows were built by an earlier run.
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
    is_cached: bool = field(default=False, compare=False)

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        return {
            "skipped": int(self.is_cached),
            "failed": int(bool(self.failures)),
            "documents": self.documents,
            **{f"dropped_{reason}": count for reason, count in self.dropped.items()},
            **{f"rejected_{reason}": count for reason, count in self.rejected.items()},
            **{
                f"{split}_{name}": counts[name]
                for split, counts in self.split_counts.items()
                for name in ("documents", "rows", "tokens", "lost_tokens")
            },
        }

    @classmethod
    def from_dict(cls, report: dict[str, Any]) -> BuildResult:
        """Return the result from the JSON of a build report."""
        result = cls(**report)
        result.outputs = [msgspec.convert(listed, Shard) for listed in report["outputs"]]
        result.split_counts = {split: Counter(counts) for split, counts in result.split_counts.items()}
        result.dropped, result.rejected = Counter(result.dropped), Counter(result.rejected)
        result.tokens_by_year = {source: Counter(years) for source, years in result.tokens_by_year.items()}
        return result
