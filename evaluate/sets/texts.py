"""All sets but the tagging ones (tagging.py): relations, similarity, documents and questions."""

from __future__ import annotations

from typing import Final

from bioshards.evaluate.datasets import PARTS, DataSet, Layout, Without
from bioshards.evaluate.readers import biosses, hoc

from . import text_sources as sources
from .counting import abstracts, by_parts, examples
from .questions import QUESTIONS
from .relations import RELATIONS

BIOSSES: Final = DataSet(
    name="biosses",
    title="BIOSSES",
    layouts=(
        Layout(
            files={"table": "biosses/biosses.tsv"},
            parts=dict.fromkeys(PARTS, ("table",)),
            read=biosses.from_table,
        ),
        Layout(
            files={"pairs": "biosses/**/Annotation-Pairs.docx", "scores": "biosses/**/Annotator-Scores.docx"},
            parts=dict.fromkeys(PARTS, ("pairs", "scores")),
            read=biosses.from_documents,
        ),
    ),
    counts={"pairs": by_parts(64, 16, 20)},
    count=examples("pairs"),
    source=sources.BLURB,
    licence="GPL-3.0",
    where="https://tabilab.cmpe.boun.edu.tr/BIOSSES/ (two .docx, in biosses/); BigBIO: biosses/biosses.tsv",
)

_LISTS: Final = "**/indexing/HoC/*_pmid.tsv"
HOC: Final = DataSet(
    name="hoc",
    title="HoC",
    layouts=(
        Layout(
            files={
                "text": "hallmarks-of-cancer/text/*.txt",
                "labels": "hallmarks-of-cancer/labels/*.txt",
                "lists": _LISTS,
            },
            parts=dict.fromkeys(PARTS, ("text", "labels")),
            read=hoc.read,
            without={
                "lists": Without(
                    f"BLURB's lists of abstracts ({_LISTS}) are absent: those whose PMIDs' SHA-256 come "
                    f"first are dev ({hoc.SIZES['dev']}) and test ({hoc.SIZES['test']}), so scores are not "
                    "comparable with published ones",
                    PARTS,
                )
            },
        ),
    ),
    counts={
        "abstracts": by_parts(1295, 186, 371),
        "with a hallmark": {"train+dev+test": 1580},
    },
    count=abstracts,
    source=f"{sources.BLURB}; with a hallmark: Peng et al. 2019 (BLUE, arXiv 1906.05474)",
    licence="GPL-3.0",
    where="https://github.com/sb895/Hallmarks-of-Cancer, to be put into hallmarks-of-cancer/",
    pmids=True,
)

TEXTS: Final[tuple[DataSet, ...]] = (*RELATIONS, BIOSSES, HOC, *QUESTIONS)
