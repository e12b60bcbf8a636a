"""Sentence similarity and document classification benchmarks, and the list of all text benchmarks."""

from __future__ import annotations

from typing import Final

from bioshards.evaluate.benchmarks.catalogue import attributions as sources
from bioshards.evaluate.benchmarks.catalogue.questions import QUESTION_BENCHMARKS
from bioshards.evaluate.benchmarks.catalogue.record_counts import (
    count_abstracts,
    count_examples,
    counts_by_split,
)
from bioshards.evaluate.benchmarks.catalogue.relations import RELATION_BENCHMARKS
from bioshards.evaluate.benchmarks.definition import (
    SPLITS,
    Benchmark,
    FileLayout,
    MissingSplitPolicy,
    TaskSpec,
)
from bioshards.evaluate.benchmarks.readers import biosses, hoc

BIOSSES: Final = Benchmark(
    name="biosses",
    title="BIOSSES",
    layouts=(
        FileLayout(
            patterns={"table": "biosses/biosses.tsv"},
            files_by_split=dict.fromkeys(SPLITS, ("table",)),
            read=biosses.read_tsv,
        ),
        FileLayout(
            patterns={
                "pairs": "biosses/**/Annotation-Pairs.docx",
                "scores": "biosses/**/Annotator-Scores.docx",
            },
            files_by_split=dict.fromkeys(SPLITS, ("pairs", "scores")),
            read=biosses.read_docx,
        ),
    ),
    published_counts={"pairs": counts_by_split(64, 16, 20)},
    count_records=count_examples("pairs"),
    counts_source=sources.BLURB_SOURCE,
    licence="GPL-3.0",
    download_from="https://tabilab.cmpe.boun.edu.tr/BIOSSES/ (two .docx, in biosses/); BigBIO: "
    "biosses/biosses.tsv",
    task=TaskSpec("regression", "pearson"),
)

_HOC_LISTS: Final = "**/indexing/HoC/*_pmid.tsv"
HOC: Final = Benchmark(
    name="hoc",
    title="HoC",
    layouts=(
        FileLayout(
            patterns={
                "text": "hallmarks-of-cancer/text/*.txt",
                "labels": "hallmarks-of-cancer/labels/*.txt",
                "lists": _HOC_LISTS,
            },
            files_by_split=dict.fromkeys(SPLITS, ("text", "labels")),
            read=hoc.read_hoc,
            missing_split_policies={
                "lists": MissingSplitPolicy(
                    f"BLURB's lists of abstracts ({_HOC_LISTS}) are missing: those whose PMIDs' SHA-256 come "
                    f"first are dev ({hoc.SPLIT_SIZES['dev']}) and test ({hoc.SPLIT_SIZES['test']}), so "
                    "scores are not "
                    "comparable with published ones",
                    SPLITS,
                )
            },
        ),
    ),
    published_counts={
        "abstracts": counts_by_split(1295, 186, 371),
        "with a hallmark": {"train+dev+test": 1580},
    },
    count_records=count_abstracts,
    counts_source=f"{sources.BLURB_SOURCE}; with a hallmark: Peng et al. 2019 (BLUE, arXiv 1906.05474)",
    licence="GPL-3.0",
    download_from="https://github.com/sb895/Hallmarks-of-Cancer, to be put into hallmarks-of-cancer/",
    has_pmids=True,
    task=TaskSpec("multi_label", "multilabel_f1", labels=hoc.HALLMARKS),
)

TEXT_BENCHMARKS: Final[tuple[Benchmark, ...]] = (*RELATION_BENCHMARKS, BIOSSES, HOC, *QUESTION_BENCHMARKS)
