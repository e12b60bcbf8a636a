"""Speed of the contamination check: ``python -m tests.bench.bench_contamination DIR ...``.

The n-gram index is compared with a Python set of tuples of words, on the same benchmarks and text; both must
find the same 13-grams.  The CPU time of the search alone is measured, in turns, in one process.
"""

from __future__ import annotations

import argparse
import re
import time
from typing import Final

import numpy as np

from bioshards.corpus.shards import document_shards
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress
from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.contamination import corpus_scan as contamination_corpus
from bioshards.evaluate.contamination.corpus_scan import MatchQuery
from bioshards.evaluate.contamination.matches import read_benchmarks
from bioshards.evaluate.contamination.ngrams import NGRAM_SIZE, NgramIndex
from tests.bench.harness.text_corpora import build_document_dirs, get_data_dir
from tests.bench.harness.timing import MB, Figure, print_table, ratios_by_round

MIN_MB_PER_SECOND: Final = 20  # MB/s a core
_WORD: Final = re.compile("[a-z0-9]+")
NGramSet = set[tuple[str, ...]]


def find_ngrams(text: str) -> NGramSet:
    """List the 13-grams of a text."""
    words = _WORD.findall(text.lower())
    return set(zip(*(words[at:] for at in range(NGRAM_SIZE)), strict=False))


def count_with_index(corpora: list[DocumentsInput], wanted: MatchQuery) -> int:
    """Count the n-grams in corpora that are in the index."""
    is_found = np.zeros(len(wanted.index), bool)
    for _, found in contamination_corpus.scan_shards(corpora, wanted, 1):
        is_found[found.ngrams] = True
    return int(is_found.sum())


def count_with_sets(corpora: list[DocumentsInput], known: NGramSet) -> int:
    """Count the same n-grams with a Python set."""
    found_ngrams: NGramSet = set()
    for corpus in corpora:
        for batch in document_shards.read_directory(LocalStorage(), corpus.folder, ["sentences"]):
            for sentences in batch["sentences"].to_pylist():
                found_ngrams |= find_ngrams(" ".join(sentences)) & known
    return len(found_ngrams)


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_contamination", description=__doc__)
    parser.add_argument("shards", nargs="*", help="finished directories; default: made of BIOSHARDS_DATA")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default: %(default)s)")
    options = parser.parse_args()
    corpora = [contamination_corpus.open_corpus(folder) for folder in build_document_dirs(options.shards)]
    texts = read_benchmarks(f"{get_data_dir()}/benchmarks", BENCHMARKS.values(), Progress(None)).texts
    index = NgramIndex(texts)
    wanted = MatchQuery(index, np.ones(len(index), bool), frozenset())
    known = set[tuple[str, ...]]().union(*map(find_ngrams, texts))
    size = sum(found.text_bytes for _, found in contamination_corpus.scan_shards(corpora, wanted, 1))
    seconds: dict[str, list[float]] = {"ours": [], "plain": []}
    for _ in range(options.repeats):
        found = {}
        for name in seconds:
            started = time.process_time()
            found[name] = (
                count_with_index(corpora, wanted) if name == "ours" else count_with_sets(corpora, known)
            )
            seconds[name].append(time.process_time() - started)
        if found["ours"] != found["plain"]:
            raise SystemExit(f"not the same 13-grams are found: {found}")
    rates = [size / MB / each for each in seconds["ours"]]
    ratios = ratios_by_round(seconds["plain"], seconds["ours"])
    figures = [
        Figure("looking for the benchmarks, one core, CPU", rates, "MB/s", at_least=(MIN_MB_PER_SECOND,)),
        Figure("**a set of tuples of words / ours**", ratios, "×"),
    ]
    title = f"{size / MB:.0f} MB of text, {len(index):,} {NGRAM_SIZE}-grams of {len(texts):,} texts;"
    print_table(title, figures)


if __name__ == "__main__":
    main()
