"""Documents counted by year, by the values of columns and by length.  The tallies of shards add up."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from .histogram import add_counts

UNKNOWN: Final = "unknown"
"""Value of documents without one, as in manifests."""
TALLIED_COLUMNS: Final = ("language", "licence", "article_type", "journal")
LENGTHS: Final = {"sentences_per_document": "num_sentences", "words_per_document": "words"}
"""The column of rows that each distribution of lengths counts."""
TallyJson: TypeAlias = Mapping[str, Mapping[str, Mapping[str, int]]]


@dataclass(slots=True)
class DocumentTally:
    """Numbers of documents.

    Attributes:
        documents: by source and year.
        words: number of words by source and year.
        values: documents by column and value.
        lengths: documents by distribution (:data:`LENGTHS`) and length.
    """

    documents: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    words: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    values: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    lengths: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def add_rows(self, rows: pa.Table) -> None:
        """Count documents.

        Args:
            rows: a row for each, with ``source``, ``year``, :data:`TALLIED_COLUMNS`, and the numbers of its
                words and sentences: ``words``, ``num_sentences``.
        """
        by_year = rows.group_by(["source", "year"], use_threads=False)
        for group in by_year.aggregate([("words", "count"), ("words", "sum")]).to_pylist():
            year = str(group["year"] or UNKNOWN)
            self.documents[group["source"]][year] += group["words_count"]
            self.words[group["source"]][year] += group["words_sum"]
        for column in TALLIED_COLUMNS:
            for item in pc.value_counts(rows[column]).to_pylist():
                self.values[column][str(item["values"] or UNKNOWN)] += item["counts"]
        for name, column in LENGTHS.items():
            add_counts(self.lengths[name], rows[column])

    def add_json(self, tally: TallyJson) -> None:
        """Add a tally from its JSON value (:meth:`to_json`)."""
        for counters, added in (
            (self.documents, tally["documents"]),
            (self.words, tally["words"]),
            (self.values, tally["values"]),
        ):
            for name, counts in added.items():
                counters[name].update(counts)
        for name, counts in tally["lengths"].items():
            self.lengths[name].update({int(length): count for length, count in counts.items()})

    def to_json(self) -> TallyJson:
        """Return the tally as a JSON value."""
        lengths = {
            name: {str(length): count for length, count in sorted(counts.items())}
            for name, counts in self.lengths.items()
        }
        counters = {"documents": self.documents, "words": self.words, "values": self.values}
        return {
            **{
                key: {name: dict(sorted(counts.items())) for name, counts in sorted(counts_by_name.items())}
                for key, counts_by_name in counters.items()
            },
            "lengths": lengths,
        }

    def count_years(self) -> Counter[str]:
        """Return the number of documents by year, of all sources."""
        return sum(self.documents.values(), Counter())
