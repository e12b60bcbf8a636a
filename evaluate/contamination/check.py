"""Check a pretraining corpus for benchmark examples (``evaluate contamination``).

An example matches *by PMID* if the corpus has a document with its document's PMID, and *by 13-grams* if one
of its 13-grams occurs anywhere in the corpus (ngrams.py). PMIDs need benchmarks that state them. 13-grams
also find texts under other ids, such as an abstract within its PMC article.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence

import numpy as np

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress
from bioshards.evaluate.benchmarks.catalogue import Benchmark
from bioshards.evaluate.benchmarks.records import Split
from bioshards.evaluate.contamination import DEFAULT_MIN_SHARED_NGRAMS, contamination_report
from bioshards.evaluate.contamination.corpus_scan import (
    MatchQuery,
    ShardHits,
    open_corpus,
    scan_shards,
)
from bioshards.evaluate.contamination.matches import match_examples, read_benchmarks
from bioshards.evaluate.contamination.ngrams import NgramIndex


def check_contamination(
    benchmarks_dir: str,
    corpus_dirs: Sequence[str],
    output: str,
    *,
    known_benchmarks: Collection[Benchmark],
    workers: int,
    splits: Collection[Split],
    min_shared_ngrams: int = DEFAULT_MIN_SHARED_NGRAMS,
    progress: Progress,
) -> str:
    """Scan document shards for benchmark examples, write the report, and return a summary.

    Args:
        output: directory for report.json, report.html, examples.tsv, documents.tsv and exclude-ids.txt.
        splits: splits whose documents are listed for exclusion; examples of all splits are counted.
        min_shared_ngrams: shared 13-grams that make a document excluded (matches.py).
        progress: shows the documents scanned.

    Raises:
        InputNotFoundError: the benchmarks directory does not exist.
        BenchmarkNotFoundError: it has no benchmark.
        BenchmarkFileError: a benchmark file is damaged.
        CorpusError: a corpus is unfinished, damaged, or of another kind.
        InvalidValueError: ``min_shared_ngrams`` is below 1.
        OSError: the output cannot be written.
    """
    if min_shared_ngrams < 1:
        raise InvalidValueError(
            f"{min_shared_ngrams} shared 13-grams are no bound for leaving documents out: give 1 or more"
        )
    corpora = [open_corpus(folder) for folder in corpus_dirs]
    os.makedirs(output, exist_ok=True)
    benchmark_examples = read_benchmarks(benchmarks_dir, known_benchmarks, progress)
    with progress.bar(f"hashing the 13-grams of {len(benchmark_examples.texts):,} texts"):
        index = NgramIndex(benchmark_examples.texts)
    is_requested = np.zeros(len(index), bool)
    for example in benchmark_examples.examples:
        if example.split in splits:
            for text in example.text_ids:
                is_requested[index.ngram_ids(text)] = True
    pmids = frozenset(pmid for example in benchmark_examples.examples for pmid in example.pmids)
    query = MatchQuery(index, is_requested, pmids)
    hits = _scan_with_progress(corpora, query, workers, progress)
    result = match_examples(benchmark_examples, corpora, index, hits, splits, min_shared_ngrams)
    contamination_report.write_report(LocalStorage(), output, result)
    return contamination_report.format_summary(result, output)


def _scan_with_progress(
    corpora: Sequence[DocumentsInput], query: MatchQuery, workers: int, progress: Progress
) -> Iterator[ShardHits]:
    num_shards, text_bytes = sum(len(corpus.shards) for corpus in corpora), 0
    with progress.bar("scanning", sum(corpus.summary.documents for corpus in corpora), " documents") as bar:
        for num_scanned, (shard, hits) in enumerate(scan_shards(corpora, query, workers), 1):
            yield hits
            text_bytes += hits.text_bytes
            bar.advance(
                shard.rows, f"{num_scanned:,}/{num_shards:,} shards, {text_bytes / 1e6:,.0f} MB of text"
            )
