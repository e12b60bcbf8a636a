"""The sets of relations: four ChemProts, which are not the same and never to be mixed, two DDIs, and GAD."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from bioshards.evaluate.datasets import PARTS, DataSet, Files, Layout, Parts, Without
from bioshards.evaluate.readers import chemprot, ddi, scibert, tables
from bioshards.evaluate.readers.lines import only
from bioshards.evaluate.readers.parts import by_part
from bioshards.evaluate.readers.tables import Table
from bioshards.evaluate.records import Record

from . import text_sources as sources
from .counting import by_parts, examples


def _same(labels: Sequence[str]) -> dict[str, str]:
    return {label: label for label in labels}


def _first_of_id(name: str) -> str:
    return name.partition(".")[0]


def _text_of_pair(name: str) -> str:
    """From DDI-DrugBank.d0.s1.p0, of a pair, to DDI-DrugBank.d0."""
    return name.rsplit(".", 2)[0]


def _three(folder: str, ending: str, read: Callable[[str], Sequence[Record]]) -> Layout:
    """A layout of a file for each part."""
    files: dict[str, str] = {part: f"{folder}/{part}.{ending}" for part in PARTS}
    return Layout(files, {part: (part,) for part in PARTS}, by_part(read))


CHEMPROT: Final = DataSet(
    name="chemprot",
    title="ChemProt (BLURB)",
    layouts=(
        Layout(
            files={
                f"{part} {kind}": f"**/chemprot_{name}_{kind}{ending}.tsv"
                for part, name, ending in (
                    ("train", "training", ""),
                    ("dev", "development", ""),
                    ("test", "test", "_gs"),
                )
                for kind in ("abstracts", "entities", "relations")
            },
            parts={part: (f"{part} abstracts", f"{part} entities", f"{part} relations") for part in PARTS},
            read=chemprot.read,
            note="sentences are cut by bioshards' own splitter, BLURB's by NLTK's punkt: there are "
            "not exactly as many pairs as published",
        ),
    ),
    counts={"pairs": by_parts(18035, 11268, 15745)},
    count=examples("pairs"),
    source=sources.BLURB,
    licence=sources.BIOCREATIVE,
    where="https://biocreative.bioinformatics.udel.edu/news/corpora/chemprot-corpus-biocreative-vi/ "
    "(ChemProt_Corpus.zip, unpacked anywhere below)",
    pmids=True,
)

CHEMPROT_BLUE: Final = DataSet(
    name="chemprot-blue",
    title="ChemProt (BLUE, ELECTRAMed)",
    layouts=(
        _three(
            "electramed/RE/chemprot",
            "csv",
            partial(
                tables.texts,
                table=Table(
                    text="sentence",
                    labels=_same((chemprot.NEGATIVE, *chemprot.GROUPS)),
                    id="index",
                    document=_first_of_id,
                ),
            ),
        ),
    ),
    counts={"pairs": by_parts(19460, 11820, 16943), "positive pairs": by_parts(4154, 2416, 3458)},
    count=examples("pairs", "positive pairs", (chemprot.NEGATIVE,)),
    source=sources.BLUE,
    licence="ELECTRAMed's files: MIT; the corpus: BioCreative VI, research",
    where=sources.FROM_ELECTRAMED,
    pmids=True,
)

CHEMPROT_LIM_KANG: Final = DataSet(
    name="chemprot-lim-kang",
    title="ChemProt (Lim and Kang, Bio-ELECTRA)",
    layouts=(
        _three(
            "bio_electra/chemprot",
            "tsv",
            partial(tables.texts, table=Table(text="sentence", labels=_same(("False", *chemprot.GROUPS)))),
        ),
    ),
    counts={
        "pairs": by_parts(16521, 10361, 14396),
        "CPR:3": by_parts(test=664),
        "CPR:4": by_parts(test=1658),
        "CPR:5": by_parts(test=183),
        "CPR:6": by_parts(test=292),
        "CPR:9": by_parts(test=644),
        "False": by_parts(test=10955),
    },
    count=examples("pairs"),
    source=f"{sources.BIO_ELECTRA}, table 1; by label: {sources.BIO_ELECTRA_FILES}",
    licence=sources.REGENTS,
    where=sources.FROM_BIO_ELECTRA,
)

CHEMPROT_SCIBERT: Final = DataSet(
    name="chemprot-scibert",
    title="ChemProt (SciBERT: 13 relations, no negatives)",
    layouts=(
        _three(
            "scibert/text_classification/chemprot",
            "txt",
            partial(scibert.texts, labels=scibert.CHEMPROT),
        ),
    ),
    counts={"pairs": by_parts(4169, 2427, 3469)},
    count=examples("pairs"),
    source="the files of Beltagy et al. 2019 (SciBERT), github.com/allenai/scibert at 06793f7",
    licence="SciBERT's files: Apache-2.0; the corpus: BioCreative VI, research",
    where="https://github.com/allenai/scibert, data/, to be put into scibert/",
)

_DDI_LISTS: Final = "**/indexing/DDI/*_files.tsv"
_DDI_WITHOUT: Final = {
    "lists": Without(
        f"BLURB's lists of files ({_DDI_LISTS}) are absent: of the 714 training files, the "
        f"{ddi.DEV_FILES} whose names' SHA-256 come first are dev",
        ("train", "dev"),
    )
}
_DDI_NOTE: Final = (
    "a pair that is marked as interacting but has no type (DDI-DrugBank.d236.s29.p0) is DDI-false"
)
DDI: Final = DataSet(
    name="ddi",
    title="DDI (BLURB)",
    layouts=(
        Layout(
            files={"archive": "ddi2013/DDICorpus-2013.zip", "lists": _DDI_LISTS},
            parts={"train": ("archive",), "dev": ("archive",), "test": ("archive",)},
            read=ddi.from_archive,
            without=_DDI_WITHOUT,
            note=_DDI_NOTE,
        ),
        Layout(
            files={
                "train": "ddi2013/DDICorpus/Train/*/*.xml",
                "test": "ddi2013/DDICorpus/Test/Test for DDI Extraction task/*/*.xml",
                "lists": _DDI_LISTS,
            },
            parts={"train": ("train",), "dev": ("train",), "test": ("test",)},
            read=ddi.from_folders,
            without=_DDI_WITHOUT,
            note=_DDI_NOTE,
        ),
    ),
    counts={
        "pairs": by_parts(25296, 2496, 5716),
        "DDI-advise": {"train+dev": 826, "test": 221},
        "DDI-effect": {"train+dev": 1687, "test": 360},
        "DDI-mechanism": {"train+dev": 1319, "test": 302},
        "DDI-int": {"train+dev": 188, "test": 96},
    },
    count=examples("pairs"),
    source=f"{sources.BLURB}; by label: Quan et al. 2016 (doi 10.1155/2016/1850404), table 4",
    licence="CC BY-NC 4.0",
    where="https://github.com/isegura/DDICorpus (DDICorpus-2013.zip, as it is or unpacked, in ddi2013/)",
)

DDI_BLUE: Final = DataSet(
    name="ddi-blue",
    title="DDI (BLUE, ELECTRAMed)",
    layouts=(
        _three(
            "electramed/RE/ddi-2013",
            "csv",
            partial(
                tables.texts,
                table=Table(text="sentence", labels=_same(ddi.LABELS), id="index", document=_text_of_pair),
            ),
        ),
    ),
    counts={
        "pairs": by_parts(18779, 7244, 5761),
        "positive pairs": by_parts(2937, 1004, 979),
        "DDI-advise": by_parts(test=221),
        "DDI-effect": by_parts(test=360),
        "DDI-mechanism": by_parts(test=302),
        "DDI-int": by_parts(test=96),
        "DDI-false": by_parts(test=4782),
    },
    count=examples("pairs", "positive pairs", (ddi.NEGATIVE,)),
    source=sources.BLUE,
    licence="ELECTRAMed's files: MIT; the corpus: CC BY-NC 4.0",
    where=sources.FROM_ELECTRAMED,
)

_GAD: Final = Table(text="sentence", labels=_same(("0", "1")))
_GAD_NO_HEADER: Final = Table(text="sentence", labels=_same(("0", "1")), header=False)
_GAD_TRAIN, _GAD_LINES = 4261, 4796
"""Of the lines of train.tsv, those for training come first, then those for dev (BLURB's
``preprocess_GAD_corpus``); of a file of another length it is the same share."""


def _gad(files: Files) -> Parts:
    """BioBERT's fold 1: ``train`` without a header, ``test`` with one.  Its dev.tsv is test.tsv."""
    train = tables.texts(only(files, "train"), _GAD_NO_HEADER) if "train" in files else []
    test = tables.texts(only(files, "test"), _GAD) if "test" in files else []
    cut = len(train) * _GAD_TRAIN // _GAD_LINES
    return {"train": [*train[:cut]], "dev": [*train[cut:]], "test": [*test]}


GAD: Final = DataSet(
    name="gad",
    title="GAD",
    layouts=tuple(
        Layout(
            files={"train": f"{folder}/train.tsv", "test": f"{folder}/test.tsv"},
            parts={"train": ("train",), "dev": ("train",), "test": ("test",)},
            read=_gad,
        )
        for folder in ("bio_electra/gad", "GAD/1")
    ),
    counts={
        "sentences": by_parts(4261, 535, 534),
        "positives": by_parts(test=281),
    },
    count=examples("sentences", "positives", ("0",)),
    source=f"{sources.BLURB}; positives: {sources.BIO_ELECTRA}",
    licence=sources.REGENTS,
    where=f"{sources.FROM_BIO_ELECTRA}; or BioBERT's RE data (https://github.com/dmis-lab/biobert), GAD/1",
)

RELATIONS: Final = (CHEMPROT, CHEMPROT_BLUE, CHEMPROT_LIM_KANG, CHEMPROT_SCIBERT, DDI, DDI_BLUE, GAD)
