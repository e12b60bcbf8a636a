"""Statistics of documents: counted by year, by the values of columns and by length, and exact distributions.

The tallies of shards add up. Lengths are counted one by one: every statistic of a distribution is exact, and
memory depends on the number of distinct lengths.
"""

from __future__ import annotations

import bisect
import itertools
import json
import math
import random
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import to_builtins

from bioshards.corpus.manifest import DocumentsManifest, Shard
from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

UNKNOWN: Final = "unknown"
"""Value of documents without one, as in manifests."""
TALLIED_COLUMNS: Final = ("language", "licence", "article_type", "journal")
LENGTHS: Final = {"sentences_per_document": "num_sentences", "words_per_document": "words"}
"""The column of rows that each distribution of lengths counts."""
TOP_VALUES: Final = 20
"""Values of a column that are named, the most frequent ones."""
_DRAWN_DOCUMENTS: Final = 10
_DRAWN_SENTENCES: Final = 8
_SEED: Final = 0
_EXTREME_SENTENCES: Final = 10
_EXTREME_CHARACTERS: Final = 400
"""Characters that are stored of a sentence among the longest: one may have a million."""
_MAX_SAMPLES: Final = 12
_MAX_SAMPLED_FILES: Final = 24
_MAX_SAMPLES_PER_FILE: Final = 4
_SHOWN_CHARACTERS: Final = 160
_SAMPLE_LINE_BYTES: Final = 1 << 16
"""A record may have megabytes: those of longer lines are no samples."""
MAX_BINS: Final = 40
"""Bins of a histogram without the open last one: bars of 7 pixels on a phone."""


class ExtremeSentence(NamedTuple):
    """A sentence among the shortest or longest: its length, its first characters, and its document."""

    characters: int
    text: str
    id: str


@dataclass(slots=True)
class DocumentTally:
    """Numbers of documents.

    Attributes:
        documents: by source and year.
        words: number of words by source and year.
        values: documents by column and value.
        lengths: documents by distribution (:data:`LENGTHS`) and length.
        shortest: the ten shortest distinct sentences, by length and text.
        longest: the ten longest, the longest first.
    """

    documents: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    words: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    values: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    lengths: defaultdict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    shortest: list[ExtremeSentence] = field(default_factory=list)
    longest: list[ExtremeSentence] = field(default_factory=list)

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
            for value, count in count_values(rows[column]).items():
                self.values[column][value or UNKNOWN] += count
        for name, column in LENGTHS.items():
            self.lengths[name].update(count_values(rows[column]))

    def add_sentences(self, ids: pa.Array, sentences: pa.Array) -> None:
        """Keep the shortest and longest sentences of documents beside those kept before.

        Args:
            ids: an id for each document.
            sentences: a list for each document.
        """
        texts, document = sentences.flatten(), pc.list_parent_indices(sentences)
        lengths = pc.utf8_length(texts)
        if not len(lengths):
            return
        if min(len(self.shortest), len(self.longest)) == _EXTREME_SENTENCES:
            most, least = self.shortest[-1].characters, self.longest[-1].characters
        else:  # ten lengths have ten distinct sentences at least
            distinct_lengths = sorted(pc.unique(lengths).to_pylist())
            most, least = distinct_lengths[:_EXTREME_SENTENCES][-1], distinct_lengths[-_EXTREME_SENTENCES:][0]

        def select(mask: pa.Array) -> Iterator[ExtremeSentence]:
            index = pc.indices_nonzero(mask)
            shown = pc.utf8_slice_codeunits(texts.take(index), 0, _EXTREME_CHARACTERS)
            columns = (lengths.take(index), shown, ids.take(document.take(index)))
            return map(ExtremeSentence, *(column.to_pylist() for column in columns))

        self._add_shortest(select(pc.less_equal(lengths, most)))
        self._add_longest(select(pc.greater_equal(lengths, least)))

    def _add_shortest(self, added: Iterable[ExtremeSentence]) -> None:
        self.shortest = _keep_first(sorted([*self.shortest, *added]))

    def _add_longest(self, added: Iterable[ExtremeSentence]) -> None:
        ordered = sorted([*self.longest, *added], key=lambda one: (-one.characters, one.text, one.id))
        self.longest = _keep_first(ordered)

    def add_json(self, text: str) -> None:
        """Add a tally (:meth:`to_json`)."""
        tally: dict[str, Any] = json.loads(text)
        self._add_shortest(itertools.starmap(ExtremeSentence, tally["shortest"]))
        self._add_longest(itertools.starmap(ExtremeSentence, tally["longest"]))
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


def _keep_first(ordered: Iterable[ExtremeSentence]) -> list[ExtremeSentence]:
    """Return the first ten of different text."""
    by_text: dict[str, ExtremeSentence] = {}
    for sentence in ordered:
        by_text.setdefault(sentence.text, sentence)
    return list(by_text.values())[:_EXTREME_SENTENCES]


def count_values(values: pa.Array) -> dict[Any, int]:
    """Return the number of occurrences of each value."""
    counts = pc.value_counts(values)
    return dict(zip(counts.field("values").to_pylist(), counts.field("counts").to_pylist(), strict=True))


def summarise_distribution(counts: Counter[int]) -> dict[str, Any]:
    """Summarise a distribution of values >= 0 as JSON data.

    Percentiles are nearest-rank; the median is the 50th.

    Returns:
        ``count`` and ``sum``, and the others, which are None for an empty distribution.
    """
    sorted_counts = sorted(counts.items())
    total, total_sum = counts.total(), sum(number * occurrences for number, occurrences in sorted_counts)
    if not total:
        no_summary = dict.fromkeys(("mean", "min", "p5", "median", "p95", "max", "histogram"))
        return {"count": 0, "sum": 0, **no_summary}
    return {
        "count": total,
        "sum": total_sum,
        "mean": total_sum / total,
        "min": sorted_counts[0][0],
        "p5": _compute_percentile(sorted_counts, total, 5),
        "median": _compute_percentile(sorted_counts, total, 50),
        "p95": _compute_percentile(sorted_counts, total, 95),
        "max": sorted_counts[-1][0],
        "histogram": _build_histogram(sorted_counts, total),
    }


def _compute_percentile(sorted_counts: list[tuple[int, int]], total: int, percent: int) -> int:
    cumulative = 0
    for number, occurrences in sorted_counts:
        cumulative += occurrences
        if 100 * cumulative >= percent * total:
            return number
    raise ValueError(f"{percent} is no percentage, or the counts are more than {total}")


def _build_histogram(sorted_counts: list[tuple[int, int]], total: int) -> dict[str, Any]:
    """Build bins of equal width up to the 99th percentile, and one bin for all larger values.

    The width is the smallest of 1, 2, 5, 10, 20, 50 ... that needs at most :data:`MAX_BINS` bins. Bins start
    at 1, or at 0 if that occurs. ``from`` and ``to`` are inclusive.
    """
    least, greatest = min(1, sorted_counts[0][0]), sorted_counts[-1][0]
    span = _compute_percentile(sorted_counts, total, 99) - least + 1
    width = int(round_up_to_nice_number(-(-span // MAX_BINS)))
    num_bins = -(-span // width)
    bin_counts = [0] * (num_bins + 1)
    for value, occurrences in sorted_counts:
        bin_counts[min((value - least) // width, num_bins)] += occurrences
    starts = [least + width * index for index in range(num_bins + 1)]
    ends = [min(start + width - 1, greatest) for start in starts[:num_bins]] + [greatest]
    bins = [
        {"from": start, "to": end, "count": occurrences}
        for start, end, occurrences in zip(starts, ends, bin_counts, strict=True)
        if start <= end  # the open bin may be empty
    ]
    return {"width": width, "bins": bins}


def round_up_to_nice_number(number: float) -> float:
    """Return the smallest of 1, 2, 5 times a power of ten that is >= ``number``; 1 for 0."""
    power = 10.0 ** math.floor(math.log10(number)) if number else 1
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= number * (1 - 1e-9))


def summarise_documents(
    manifest: DocumentsManifest,
    tally: DocumentTally,
    characters: int,
    rejected: Sequence[dict[str, Any]],
    drawn: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Return the statistics of documents that are counted as JSON data.

    Args:
        characters: number of characters of all sentences.
        rejected: samples of rejected records.
        drawn: documents drawn at random (:func:`draw_documents`).
    """
    distributions = {
        name: summarise_distribution(tally.lengths[name])
        for name in (*LENGTHS, *(name for name in tally.lengths if name not in LENGTHS))
    }
    config = to_builtins(manifest.config)
    return {
        "pipeline": manifest.pipeline,
        "kind": "documents",
        "shards": len(manifest.outputs),
        "bytes": sum(shard.bytes for shard in manifest.outputs),
        "documents": sum(years.total() for years in tally.documents.values()),
        "sentences": distributions["sentences_per_document"]["sum"],
        "words": sum(years.total() for years in tally.words.values()),
        "characters": characters,
        "funnel": dict(manifest.funnel),
        "distributions": distributions,
        "years": {
            source: {
                year: {"documents": documents, "words": tally.words[source][year]}
                for year, documents in sorted(years.items())
            }
            for source, years in sorted(tally.documents.items())
        },
        "values": {column: _summarise_values(tally.values[column]) for column in TALLIED_COLUMNS},
        "cleaning": to_builtins(manifest.cleaning),
        "dropped_parts": to_builtins(manifest.dropped_parts),
        "rejected": list(rejected),
        "drawn": list(drawn),
        "extreme_sentences": {
            name: [sentence._asdict() for sentence in sentences]
            for name, sentences in (("shortest", tally.shortest), ("longest", tally.longest))
        },
        "bad_files": [{"file": bad.file, "detail": bad.detail} for bad in manifest.bad_files],
        "warnings": list(manifest.warnings),
        "notice": manifest.notice,
        "config": {**config.pop("document_config"), **config},
        "steps": to_builtins(manifest.run.steps),
        "run": {
            "command": shlex.join(manifest.run.command),
            "version": manifest.run.bioshards,
            "started": manifest.run.started_at,
            "finished": manifest.run.finished_at,
        },
    }


def _summarise_values(documents: Counter[str]) -> dict[str, Any]:
    """Return the number of distinct values, and the most frequent ones with their documents."""
    ordered = sorted(documents.items(), key=lambda item: (-item[1], item[0]))
    return {"distinct": len(documents), "top": dict(ordered[:TOP_VALUES])}


def draw_documents(storage: Storage, folder: str, shards: Sequence[Shard]) -> list[dict[str, Any]]:
    """Return documents drawn at random: id, origin, number of sentences, and the first of these.

    They depend on the documents alone, so that the same run gives the same page.
    """
    starts = [0, *itertools.accumulate(shard.rows for shard in shards)]
    drawn = sorted(random.Random(_SEED).sample(range(starts[-1]), min(_DRAWN_DOCUMENTS, starts[-1])))
    rows_by_shard: dict[int, list[int]] = {}
    for index in drawn:
        shard = bisect.bisect_right(starts, index) - 1
        rows_by_shard.setdefault(shard, []).append(index - starts[shard])

    def read_rows(shard: int) -> list[dict[str, Any]]:
        path, columns = f"{folder}/{shards[shard].file}", ["id", "sentences", "origin"]
        return list(document_shards.read_rows(storage, path, rows_by_shard[shard], columns))

    return [
        {
            **document,
            "num_sentences": len(document["sentences"]),
            "sentences": document["sentences"][:_DRAWN_SENTENCES],
        }
        for documents in prefetch_map(storage, read_rows, rows_by_shard)
        for document in documents
    ]


def read_samples(storage: Storage, folder: str) -> list[dict[str, Any]]:
    """Read the first rejected records of some files of ``rejected/``, by reason, and how each begins."""

    def read_file(name: str) -> list[dict[str, Any]]:
        with storage.open(f"{folder}/rejected/{name}") as file:
            lines = [file.readline(_SAMPLE_LINE_BYTES) for _ in range(_MAX_SAMPLES_PER_FILE)]
        whole_lines = itertools.takewhile(lambda line: line.endswith(b"\n"), lines)
        return [_shorten_rejected(json.loads(line)) for line in whole_lines]

    names = [name for name in sorted(storage.list_names(f"{folder}/rejected")) if name != "files.jsonl"]
    by_reason: dict[str, list[dict[str, Any]]] = {}
    for records in prefetch_map(storage, read_file, names[:_MAX_SAMPLED_FILES]):
        for record in records:
            by_reason.setdefault(record["reason"], []).append(record)
    per_reason = max(1, _MAX_SAMPLES // max(1, len(by_reason)))
    return [record for _, records in sorted(by_reason.items()) for record in records[:per_reason]]


def _shorten_rejected(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what is shown of a rejected record; it has no text if it is not in UTF-8."""
    text = " ".join(entry.get("raw", "")[: 4 * _SHOWN_CHARACTERS].split())[:_SHOWN_CHARACTERS]
    return {
        "reason": entry["reason"],
        "file": entry["file"].rpartition("/")[2],
        "position": entry["position"],
        "detail": entry["detail"],
        "text": text,
    }
