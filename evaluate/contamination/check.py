"""Which benchmark examples are in the pretraining text, and which documents to leave out of it.

An example is in the corpus *by PMID* where a document there has its document's PMID, and *by 13-grams*
where one of its 13-grams is anywhere in the corpus (ngrams.py).  The first needs sets that tell their PMIDs;
the second finds the text under another id too: an abstract in its article of PMC, or quoted in another one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence

import numpy as np

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.files import LocalFiles
from bioshards.evaluate.datasets import DataSet, Part

from . import examples, report
from .corpus import Corpus, Wanted, look, opened
from .examples import Benchmarks
from .judging import LEAST, Contamination, Hits, judge
from .ngrams import Index


def contamination(
    data: str,
    corpus: Sequence[str],
    out: str,
    *,
    sets: Iterable[DataSet],
    workers: int,
    parts: Collection[Part],
    least: int = LEAST,
    say: Callable[[str], None],
) -> str:
    """Look for the sets of a folder in finished folders of documents, and write what was found.

    Args:
        out: the folder for report.json, report.html, examples.tsv, documents.tsv and exclude-ids.txt.
        parts: whose examples' documents are listed, and to be left out; all parts' examples are counted.
        least: shared 13-grams from which on a document is to be left out (judging.py).
        say: is told how far it is.

    Returns:
        What to tell.

    Raises:
        FileNotFoundError, BenchmarkNotFoundError, BenchmarkFileError: there are no benchmarks in ``data``,
            or damaged ones.
        CorpusError: a corpus is not finished, or none, or damaged.
        ValueError: ``least`` is below 1.
        OSError: ``out`` cannot be written.
    """
    if least < 1:
        raise InvalidValueError(
            f"{least} shared 13-grams are no bound for leaving documents out: give 1 or more"
        )
    corpora = [opened(folder) for folder in corpus]
    os.makedirs(out, exist_ok=True)
    benchmarks = examples.read(data, sets, say)
    found = find(benchmarks, corpora, parts, least, workers, say)
    report.write(LocalFiles(), out, found)
    return report.summary(found, out)


def find(
    benchmarks: Benchmarks,
    corpora: list[Corpus],
    parts: Collection[Part],
    least: int,
    workers: int,
    say: Callable[[str], None],
) -> Contamination:
    """Look for the examples in the corpora; the arguments are those of :func:`contamination`."""
    say(f"taking the 13-grams of {len(benchmarks.texts):,} texts")
    index = Index(benchmarks.texts)
    asked = np.zeros(len(index), bool)
    for example in benchmarks.examples:
        if example.part in parts:
            for text in example.texts:
                asked[index.of(text)] = True
    pmids = frozenset(pmid for example in benchmarks.examples for pmid in example.pmids)
    hits = Hits(len(index))
    shards = sum(len(corpus.shards) for corpus in corpora)
    looked = look(corpora, Wanted(index, asked, pmids), workers)
    for number, shard in enumerate(looked, 1):
        hits.add(shard)
        say(f"looked at {number:,} of {shards:,} shards, {hits.bytes / 1e6:,.0f} MB of text")
    return judge(benchmarks, corpora, index, hits, parts, least)
