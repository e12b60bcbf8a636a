"""Match examples and documents by PMIDs and shared 13-grams, and decide which documents to exclude.

Unrelated texts share set phrases ("participated in the design of the study and helped to draft the
manuscript"), so the fraction of an example's 13-grams counts too. A document is excluded if it has an
example's PMID, holds most of an example, or shares many 13-grams with all examples together, as another
version of a long text does.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.ui.progress import Progress
from bioshards.evaluate.benchmarks.catalogue import Benchmark, load_records, locate_benchmark
from bioshards.evaluate.benchmarks.records import SPLITS, BenchmarkNotFoundError, Split, record_texts
from bioshards.evaluate.contamination.corpus_scan import CorpusDocument, ShardHits
from bioshards.evaluate.contamination.ngrams import NgramIndex

MOSTLY_COVERED_SHARE: Final = 0.8
"""Fraction of its 13-grams from which an example counts as mostly covered.

Of benchmark sentences and 4,391 real documents, equal texts share all, others at most 0.6.
"""
_ENTITY_PLACEHOLDER: Final = re.compile(r"@[A-Za-z]+(?:-[A-Za-z]+)*\$|BC6(?:ENT[CG]|OTHER)")
"""Entity placeholders, which articles do not contain; texts are split there.

@GENE$, @CHEM-GENE$ (BLUE, BioBERT); BC6ENTC, BC6ENTG, BC6OTHER (Bio-ELECTRA's ChemProt).
"""
_PMID: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class BenchmarkExample:
    """An example of a benchmark.

    Attributes:
        document_id: document in the benchmark's files; "" if unknown.
        pmids: PMIDs of the document, if the benchmark has PMIDs.
        text_ids: indices of its texts in ``BenchmarkExamples.texts``, with repetitions.
    """

    benchmark: str
    split: Split
    id: str
    document_id: str
    pmids: tuple[int, ...]
    text_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkExamples:
    """Examples of all benchmarks found, by benchmark, split and position.

    Attributes:
        texts: distinct texts of the examples.
        notes: notes on the files, by benchmark.
        missing: names of benchmarks without files.
    """

    examples: list[BenchmarkExample]
    texts: list[str]
    notes: dict[str, tuple[str, ...]]
    missing: list[str]


def read_benchmarks(
    benchmarks_dir: str, known_benchmarks: Collection[Benchmark], progress: Progress
) -> BenchmarkExamples:
    """Read all benchmarks in a directory.

    Raises:
        InputNotFoundError: the directory does not exist.
        BenchmarkNotFoundError: it has none of the benchmarks.
        BenchmarkFileError: a file is damaged.
    """
    result = BenchmarkExamples([], [], {}, [])
    id_by_text: dict[str, int] = {}
    with progress.bar("reading benchmarks", len(known_benchmarks), " benchmarks") as bar:
        for benchmark in bar.each(known_benchmarks):
            files = locate_benchmark(benchmarks_dir, benchmark)
            if files is None:
                result.missing.append(benchmark.name)
                continue
            if files.notes:
                result.notes[benchmark.name] = files.notes
            for split, records in load_records(files).items():
                for record in records:
                    pieces = (
                        text for full in record_texts(record) for text in _ENTITY_PLACEHOLDER.split(full)
                    )
                    text_ids = [
                        id_by_text.setdefault(text, len(id_by_text)) for text in pieces if text.strip()
                    ]
                    words = record.document_id.split() if benchmark.has_pmids else ()
                    pmids = tuple(int(word) for word in words if _PMID.fullmatch(word))
                    result.examples.append(
                        BenchmarkExample(
                            benchmark.name, split, record.id, record.document_id, pmids, tuple(text_ids)
                        )
                    )
    if not result.examples:
        names = ", ".join(result.missing)
        raise BenchmarkNotFoundError(
            f"{benchmarks_dir} has none of the benchmarks {names}: give --benchmarks their directory"
        )
    result.texts.extend(id_by_text)
    return result


@dataclass(frozen=True, slots=True)
class ExampleMatch:
    """Matches of one example.

    Attributes:
        matched_pmids: its PMIDs that the corpus has.
        num_ngrams: number of its 13-grams, with repetitions; 0 if it is too short.
        num_covered: number of them in the corpus.
        closest_document: id of the document that shares most of them; "" if none does or the split is not
            requested.
        num_shared: distinct 13-grams shared with that document.
    """

    example: BenchmarkExample
    matched_pmids: tuple[int, ...]
    num_ngrams: int
    num_covered: int
    closest_document: str
    num_shared: int

    @property
    def coverage(self) -> float:
        """Fraction of its 13-grams in the corpus; 0 without any."""
        return self.num_covered / max(1, self.num_ngrams)


@dataclass(frozen=True, slots=True)
class DocumentMatch:
    """A document that matches examples of the requested splits.

    Attributes:
        has_pmid: True if it has an example's PMID.
        num_shared: distinct 13-grams shared with the examples.
        has_most_of_example: True if it holds most of one example.
        benchmarks: benchmarks of the examples.
        should_exclude: True if it is to be excluded from the corpus.
    """

    document: CorpusDocument
    has_pmid: bool
    num_shared: int
    has_most_of_example: bool
    benchmarks: tuple[str, ...]
    should_exclude: bool


@dataclass(frozen=True, slots=True)
class ContaminationResult:
    """Result of a contamination check.

    Attributes:
        splits: requested splits.
        min_shared_ngrams: requested minimum of shared 13-grams.
        text_bytes: size of the scanned text.
        example_matches: matches in the order of the examples.
        document_matches: matches by document id.
    """

    benchmark_examples: BenchmarkExamples
    corpora: list[DocumentsInput]
    splits: tuple[Split, ...]
    min_shared_ngrams: int
    text_bytes: int
    example_matches: list[ExampleMatch]
    document_matches: list[DocumentMatch]

    @property
    def excluded(self) -> list[DocumentMatch]:
        """Documents to exclude."""
        return [match for match in self.document_matches if match.should_exclude]


def match_examples(
    benchmark_examples: BenchmarkExamples,
    corpora: list[DocumentsInput],
    index: NgramIndex,
    shard_hits: Iterable[ShardHits],
    splits: Collection[Split],
    min_shared_ngrams: int,
) -> ContaminationResult:
    """Match each example, and each document that holds examples of the requested splits."""
    text_bytes, is_in_corpus, found = 0, np.zeros(len(index), bool), list[CorpusDocument]()
    pairs = [np.zeros((2, 0), np.int64)]  # of document and n-gram
    for hits in shard_hits:
        text_bytes += hits.text_bytes
        is_in_corpus[hits.ngrams] = True
        pairs.append(np.stack([hits.hit_documents + len(found), hits.hit_ngrams]))
        found += hits.documents
    ids = np.array([document.id for document in found], object)
    _, first, row_of_found = np.unique(ids, return_index=True, return_inverse=True)
    documents = [found[at] for at in first.tolist()]  # by id; one with the id of another is the same
    found_places, ngram_ids = np.concatenate(pairs, axis=1)
    pairs_by_ngram = np.unique(ngram_ids * len(documents) + row_of_found[found_places])
    ngram_ids, rows = np.divmod(pairs_by_ngram, max(1, len(documents)))
    pair_starts = np.searchsorted(ngram_ids, np.arange(len(index) + 1))
    corpus_pmids = {document.pmid for document in documents}
    covered_before = np.concatenate([[0], is_in_corpus[index.ids].cumsum()])
    ngram_counts, covered_counts = np.diff(index.offsets), np.diff(covered_before[index.offsets])
    benchmarks_by_pmid: defaultdict[int | None, set[str]] = defaultdict(set)
    benchmarks_by_row: defaultdict[int, set[str]] = defaultdict(set)  # of those that share a 13-gram
    has_most = np.zeros(len(documents), bool)
    example_matches = []
    for example in benchmark_examples.examples:
        text_ids = list(example.text_ids)
        num_covered, closest_document, num_shared = int(covered_counts[text_ids].sum()), "", 0
        if example.split in splits:
            for pmid in example.pmids:
                benchmarks_by_pmid[pmid].add(example.benchmark)
            if num_covered:
                ngrams = np.unique(np.concatenate([index.ngram_ids(text) for text in text_ids]))
                sharers = [rows[pair_starts[ngram] : pair_starts[ngram + 1]] for ngram in ngrams.tolist()]
                sharing, counts = np.unique(np.concatenate(sharers), return_counts=True)
                for row in sharing.tolist():
                    benchmarks_by_row[row].add(example.benchmark)
                has_most[sharing[counts >= MOSTLY_COVERED_SHARE * len(ngrams)]] = True
                closest_document = documents[sharing[counts.argmax()]].id
                num_shared = int(counts.max())
        matched_pmids = tuple(pmid for pmid in example.pmids if pmid in corpus_pmids)
        num_ngrams = int(ngram_counts[text_ids].sum())
        example_matches.append(
            ExampleMatch(example, matched_pmids, num_ngrams, num_covered, closest_document, num_shared)
        )
    document_matches = []
    for row, num_shared in enumerate(np.bincount(rows, minlength=len(documents)).tolist()):
        document, has_most_of_one = documents[row], bool(has_most[row])
        has_pmid = document.pmid in benchmarks_by_pmid
        names = sorted(benchmarks_by_row[row] | benchmarks_by_pmid.get(document.pmid, set()))
        should_exclude = has_pmid or has_most_of_one or num_shared >= min_shared_ngrams
        if names:
            document_matches.append(
                DocumentMatch(document, has_pmid, num_shared, has_most_of_one, tuple(names), should_exclude)
            )
    return ContaminationResult(
        benchmark_examples,
        corpora,
        tuple(split for split in SPLITS if split in splits),
        min_shared_ngrams,
        text_bytes,
        example_matches,
        document_matches,
    )
