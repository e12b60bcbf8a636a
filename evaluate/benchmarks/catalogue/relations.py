"""Relation benchmarks: four versions of ChemProt with different pairs, two of DDI, and GAD."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from bioshards.evaluate.benchmarks.catalogue import attributions as sources
from bioshards.evaluate.benchmarks.catalogue.record_counts import count_examples, counts_by_split
from bioshards.evaluate.benchmarks.definition import (
    SPLITS,
    Benchmark,
    FileLayout,
    MissingSplitPolicy,
    PathsByName,
    RecordsBySplit,
    TaskSpec,
)
from bioshards.evaluate.benchmarks.formats import tsv
from bioshards.evaluate.benchmarks.formats.text_files import get_only_path
from bioshards.evaluate.benchmarks.formats.tsv import TableColumns
from bioshards.evaluate.benchmarks.readers import chemprot, ddi, scibert
from bioshards.evaluate.benchmarks.readers.split_reader import read_each_split
from bioshards.evaluate.benchmarks.record_types import Record


def _relation_task(labels: tuple[str, ...], negative_label: str | None = None) -> TaskSpec:
    return TaskSpec(
        "single_label", "micro_f1", labels=labels, negative_label=negative_label, has_entity_pairs=True
    )


def _map_to_itself(labels: Sequence[str]) -> dict[str, str]:
    return {label: label for label in labels}


def _document_from_id(example_id: str) -> str:
    return example_id.partition(".")[0]


def _document_from_pair_id(pair_id: str) -> str:
    """Return the document of a pair: DDI-DrugBank.d0 for DDI-DrugBank.d0.s1.p0."""
    return pair_id.rsplit(".", 2)[0]


def _make_split_layout(folder: str, ending: str, read: Callable[[str], Sequence[Record]]) -> FileLayout:
    """Return a layout with one file per split."""
    patterns: dict[str, str] = {split: f"{folder}/{split}.{ending}" for split in SPLITS}
    return FileLayout(patterns, {split: (split,) for split in SPLITS}, read_each_split(read))


CHEMPROT: Final = Benchmark(
    name="chemprot",
    title="ChemProt (BLURB)",
    layouts=(
        FileLayout(
            patterns={
                f"{part} {kind}": f"**/chemprot_{name}_{kind}{ending}.tsv"
                for part, name, ending in (
                    ("train", "training", ""),
                    ("dev", "development", ""),
                    ("test", "test", "_gs"),
                )
                for kind in ("abstracts", "entities", "relations")
            },
            files_by_split={
                part: (f"{part} abstracts", f"{part} entities", f"{part} relations") for part in SPLITS
            },
            read=chemprot.read_chemprot,
            note="sentences are cut by bioshards' own splitter, BLURB's by NLTK's punkt: there are "
            "not exactly as many pairs as published",
        ),
    ),
    published_counts={"pairs": counts_by_split(18035, 11268, 15745)},
    count_records=count_examples("pairs"),
    counts_source=sources.BLURB_SOURCE,
    licence=sources.BIOCREATIVE_LICENCE,
    download_from="https://biocreative.bioinformatics.udel.edu/news/corpora/chemprot-corpus-biocreative-vi/ "
    "(ChemProt_Corpus.zip, unpacked anywhere below)",
    has_pmids=True,
    task=_relation_task((chemprot.NEGATIVE, *chemprot.GROUPS), chemprot.NEGATIVE),
)

CHEMPROT_BLUE: Final = Benchmark(
    name="chemprot-blue",
    title="ChemProt (BLUE, ELECTRAMed)",
    layouts=(
        _make_split_layout(
            "electramed/RE/chemprot",
            "csv",
            partial(
                tsv.read_texts,
                table_columns=TableColumns(
                    text="sentence",
                    label_names=_map_to_itself((chemprot.NEGATIVE, *chemprot.GROUPS)),
                    id="index",
                    document_id_of=_document_from_id,
                ),
            ),
        ),
    ),
    published_counts={
        "pairs": counts_by_split(19460, 11820, 16943),
        "positive pairs": counts_by_split(4154, 2416, 3458),
    },
    count_records=count_examples("pairs", "positive pairs", (chemprot.NEGATIVE,)),
    counts_source=sources.BLUE_SOURCE,
    licence="ELECTRAMed's files: MIT; the corpus: BioCreative VI, research",
    download_from=sources.ELECTRAMED_DOWNLOAD,
    has_pmids=True,
    task=_relation_task((chemprot.NEGATIVE, *chemprot.GROUPS), chemprot.NEGATIVE),
)

CHEMPROT_LIM_KANG: Final = Benchmark(
    name="chemprot-lim-kang",
    title="ChemProt (Lim and Kang, Bio-ELECTRA)",
    layouts=(
        _make_split_layout(
            "bio_electra/chemprot",
            "tsv",
            partial(
                tsv.read_texts,
                table_columns=TableColumns(
                    text="sentence", label_names=_map_to_itself(("False", *chemprot.GROUPS))
                ),
            ),
        ),
    ),
    published_counts={
        "pairs": counts_by_split(16521, 10361, 14396),
        "CPR:3": counts_by_split(test=664),
        "CPR:4": counts_by_split(test=1658),
        "CPR:5": counts_by_split(test=183),
        "CPR:6": counts_by_split(test=292),
        "CPR:9": counts_by_split(test=644),
        "False": counts_by_split(test=10955),
    },
    count_records=count_examples("pairs"),
    counts_source=f"{sources.BIO_ELECTRA_SOURCE}, table 1; by label: {sources.BIO_ELECTRA_FILES_SOURCE}",
    licence=sources.REGENTS_LICENCE,
    download_from=sources.BIO_ELECTRA_DOWNLOAD,
    task=_relation_task(("False", *chemprot.GROUPS), "False"),
)

CHEMPROT_SCIBERT: Final = Benchmark(
    name="chemprot-scibert",
    title="ChemProt (SciBERT: 13 relations, no negatives)",
    layouts=(
        _make_split_layout(
            "scibert/text_classification/chemprot",
            "txt",
            partial(scibert.read_texts, labels=scibert.CHEMPROT_LABELS),
        ),
    ),
    published_counts={"pairs": counts_by_split(4169, 2427, 3469)},
    count_records=count_examples("pairs"),
    counts_source="the files of Beltagy et al. 2019 (SciBERT), github.com/allenai/scibert at 06793f7",
    licence="SciBERT's files: Apache-2.0; the corpus: BioCreative VI, research",
    download_from="https://github.com/allenai/scibert, data/, to be put into scibert/",
    task=_relation_task(scibert.CHEMPROT_LABELS),
)

_DDI_LISTS: Final = "**/indexing/DDI/*_files.tsv"
_DDI_MISSING_LISTS: Final = {
    "lists": MissingSplitPolicy(
        f"BLURB's lists of files ({_DDI_LISTS}) are missing: of the 714 training files, the "
        f"{ddi.DEV_FILES} whose names' SHA-256 come first are dev",
        ("train", "dev"),
    )
}
_DDI_NOTE: Final = (
    "a pair that is marked as interacting but has no type (DDI-DrugBank.d236.s29.p0) is DDI-false"
)
DDI: Final = Benchmark(
    name="ddi",
    title="DDI (BLURB)",
    layouts=(
        FileLayout(
            patterns={"archive": "ddi2013/DDICorpus-2013.zip", "lists": _DDI_LISTS},
            files_by_split={"train": ("archive",), "dev": ("archive",), "test": ("archive",)},
            read=ddi.read_archive,
            missing_split_policies=_DDI_MISSING_LISTS,
            note=_DDI_NOTE,
        ),
        FileLayout(
            patterns={
                "train": "ddi2013/DDICorpus/Train/*/*.xml",
                "test": "ddi2013/DDICorpus/Test/Test for DDI Extraction task/*/*.xml",
                "lists": _DDI_LISTS,
            },
            files_by_split={"train": ("train",), "dev": ("train",), "test": ("test",)},
            read=ddi.read_folders,
            missing_split_policies=_DDI_MISSING_LISTS,
            note=_DDI_NOTE,
        ),
    ),
    published_counts={
        "pairs": counts_by_split(25296, 2496, 5716),
        "DDI-advise": {"train+dev": 826, "test": 221},
        "DDI-effect": {"train+dev": 1687, "test": 360},
        "DDI-mechanism": {"train+dev": 1319, "test": 302},
        "DDI-int": {"train+dev": 188, "test": 96},
    },
    count_records=count_examples("pairs"),
    counts_source=f"{sources.BLURB_SOURCE}; by label: Quan et al. 2016 (doi 10.1155/2016/1850404), table 4",
    licence="CC BY-NC 4.0",
    download_from="https://github.com/isegura/DDICorpus (DDICorpus-2013.zip, as it is or unpacked, in "
    "ddi2013/)",
    task=_relation_task(ddi.LABELS, ddi.NEGATIVE),
)

DDI_BLUE: Final = Benchmark(
    name="ddi-blue",
    title="DDI (BLUE, ELECTRAMed)",
    layouts=(
        _make_split_layout(
            "electramed/RE/ddi-2013",
            "csv",
            partial(
                tsv.read_texts,
                table_columns=TableColumns(
                    text="sentence",
                    label_names=_map_to_itself(ddi.LABELS),
                    id="index",
                    document_id_of=_document_from_pair_id,
                ),
            ),
        ),
    ),
    published_counts={
        "pairs": counts_by_split(18779, 7244, 5761),
        "positive pairs": counts_by_split(2937, 1004, 979),
        "DDI-advise": counts_by_split(test=221),
        "DDI-effect": counts_by_split(test=360),
        "DDI-mechanism": counts_by_split(test=302),
        "DDI-int": counts_by_split(test=96),
        "DDI-false": counts_by_split(test=4782),
    },
    count_records=count_examples("pairs", "positive pairs", (ddi.NEGATIVE,)),
    counts_source=sources.BLUE_SOURCE,
    licence="ELECTRAMed's files: MIT; the corpus: CC BY-NC 4.0",
    download_from=sources.ELECTRAMED_DOWNLOAD,
    task=_relation_task(ddi.LABELS, ddi.NEGATIVE),
)

_GAD_COLUMNS: Final = TableColumns(text="sentence", label_names=_map_to_itself(("0", "1")))
_GAD_COLUMNS_NO_HEADER: Final = TableColumns(
    text="sentence", label_names=_map_to_itself(("0", "1")), has_header=False
)
_GAD_TRAIN_LINES, _GAD_ALL_LINES = 4261, 4796
"""Lines of train.tsv for train; the rest is dev (BLURB's ``preprocess_GAD_corpus``).

Files of another length are split in the same ratio.
"""


def _read_gad(files: PathsByName) -> RecordsBySplit:
    """Read BioBERT's fold 1: train without a header, test with one.

    Its dev.tsv equals test.tsv and is not read.
    """
    train = tsv.read_texts(get_only_path(files, "train"), _GAD_COLUMNS_NO_HEADER) if "train" in files else []
    test = tsv.read_texts(get_only_path(files, "test"), _GAD_COLUMNS) if "test" in files else []
    num_train = len(train) * _GAD_TRAIN_LINES // _GAD_ALL_LINES
    return {"train": [*train[:num_train]], "dev": [*train[num_train:]], "test": [*test]}


GAD: Final = Benchmark(
    name="gad",
    title="GAD",
    layouts=tuple(
        FileLayout(
            patterns={"train": f"{folder}/train.tsv", "test": f"{folder}/test.tsv"},
            files_by_split={"train": ("train",), "dev": ("train",), "test": ("test",)},
            read=_read_gad,
        )
        for folder in ("bio_electra/gad", "GAD/1")
    ),
    published_counts={
        "sentences": counts_by_split(4261, 535, 534),
        "positives": counts_by_split(test=281),
    },
    count_records=count_examples("sentences", "positives", ("0",)),
    counts_source=f"{sources.BLURB_SOURCE}; positives: {sources.BIO_ELECTRA_SOURCE}",
    licence=sources.REGENTS_LICENCE,
    download_from=f"{sources.BIO_ELECTRA_DOWNLOAD}; or BioBERT's RE data "
    "(https://github.com/dmis-lab/biobert), GAD/1",
    task=TaskSpec("single_label", "positive_f1", labels=("0", "1"), has_entity_pairs=True),
)

RELATION_BENCHMARKS: Final = (
    CHEMPROT,
    CHEMPROT_BLUE,
    CHEMPROT_LIM_KANG,
    CHEMPROT_SCIBERT,
    DDI,
    DDI_BLUE,
    GAD,
)
