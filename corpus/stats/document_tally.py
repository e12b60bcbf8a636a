"""Documents counted by year, by the values of columns and by length.  The tallies of shards add up."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.stats.histogram import add_counts

UNKNOWN: Final = "unknown"
"""Value of documents without one, as in manifests."""
TALLIED_COLUMNS: Final = ("language", "licence", "article_type", "journal")
LENGTHS: Final = {"sentences_per_document": "num_sentences", "words_per_document": "words"}
"""The column of rows that each distribution of lengths counts."""


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
            counts = pc.value_counts(rows[column])
            values, documents = counts.field("values").to_pylist(), counts.field("counts").to_pylist()
            for value, count in zip(values, documents, strict=True):
                self.values[column][value or UNKNOWN] += count
        for name, column in LENGTHS.items():
            add_counts(self.lengths[name], rows[column])

    def add_json(self, text: str) -> None:
        """Add a tally (:meth:`to_json`)."""
        tally: dict[str, dict[str, dict[str, int]]] = json.loads(text)
        for counters, added in (
            (self.documents, tally["documents"]),
            (self.words, tally["words"]),
            (self.values, tally["values"]),
        ):
            for name, counts in added.items():
                counters[name].update(counts)
        for name, counts in tally["lengths"].items():
            self.lengths[name].update({int(length): count for length, count in counts.items()})

    def to_json(self) -> str:
        """Return the tally as text, which reports carry as it is: it has thousands of numbers."""
        counters = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(counters, sort_keys=True, separators=(",", ":"))

    def count_years(self) -> Counter[str]:
        """Return the number of documents by year, of all sources."""
        return sum(self.documents.values(), Counter())
