"""Tagging benchmarks: named entities, PICO, and BC5CDR's documents.

Expected counts are the published ones; each has a source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from bioshards.evaluate.benchmarks.catalogue import ner_common
from bioshards.evaluate.benchmarks.catalogue.ner_jnlpba import JNLPBA_BENCHMARKS
from bioshards.evaluate.benchmarks.catalogue.record_counts import counts_by_split
from bioshards.evaluate.benchmarks.definition import (
    Benchmark,
    FileLayout,
    KnownDiscrepancy,
    MissingSplitPolicy,
    TaskSpec,
)
from bioshards.evaluate.benchmarks.formats import iob, standoff
from bioshards.evaluate.benchmarks.readers import pico, species
from bioshards.evaluate.benchmarks.readers.split_reader import read_each_split
from bioshards.evaluate.benchmarks.record_types import LabelledText, Record, TaggedSentence

_BIO_ELECTRA_TABLE_SOURCE: Final = "Bio-ELECTRA (Ozyurt 2020, table 1)"
_ST_ANTHONY_DISCREPANCY: Final = KnownDiscrepancy(
    "mentions",
    "dev",
    4246,
    'in dev the collection ends a sentence after "St.", and so counts each of two "St. Anthony\'s fire" '
    "twice; the corpus's own file has 4244 (bc5cdr-pubtator)",
    is_same_data=True,
)


def _make_crichton_benchmark(
    name: str,
    title: str,
    mentions: Mapping[str, int],
    source: str = ner_common.BLURB_TABLE_SOURCE,
    known_discrepancies: tuple[KnownDiscrepancy, ...] = (),
    licence: str = "CC BY 4.0 (the collection's)",
    folder: str | None = None,
) -> Benchmark:
    """Return a benchmark of the collection of Crichton et al. (2017); each has one entity type."""
    folder = folder or f"{title}-IOB"
    patterns = ner_common.split_patterns(f"**/{folder}/{{}}.tsv", dev_name="devel")
    return Benchmark(
        name=name,
        title=title,
        layouts=(
            FileLayout(
                patterns,
                ner_common.ONE_FILE_PER_SPLIT,
                read_each_split(iob.read_sentences),
                known_discrepancies=known_discrepancies,
            ),
        ),
        published_counts={"mentions": mentions},
        count_records=ner_common.count_tagged_sentences,
        counts_source=source,
        licence=licence,
        download_from=ner_common.CRICHTON_DOWNLOAD.format(folder),
        task=ner_common.ENTITY_TASK,
    )


def _read_single_type(path: str) -> list[TaggedSentence]:
    """Read ELECTRAMed's BC5CDR, where mentions of one word are ``I-`` and longer ones begin with ``B-``."""
    return iob.convert_to_iob2(iob.read_sentences(path))


def _make_pico_layouts() -> tuple[FileLayout, ...]:
    """Return the layouts of EBM-NLP's own files and of SciBERT's."""
    span_pattern = "**/ebm_nlp_2_00/annotations/aggregated/starting_spans/{}/{}/*.ann"
    patterns = {"tokens": "**/ebm_nlp_2_00/documents/*.tokens", "dev": "**/pico/ebmnlp/dev.txt"}
    for element in pico.ELEMENTS:
        patterns[f"train {element}"] = span_pattern.format(element, "train")
        patterns[f"gold {element}"] = span_pattern.format(element, "test/gold")
    crowd_files = ("tokens", *(f"train {element}" for element in pico.ELEMENTS))
    gold_files = ("tokens", *(f"gold {element}" for element in pico.ELEMENTS))
    missing_dev_policy = MissingSplitPolicy(
        "SciBERT's pico/ebmnlp/dev.txt, which defines the dev split, is missing: every fifth abstract is dev",
        ("train", "dev"),
    )
    reason = (
        "SciBERT's labels are made otherwise: where two spans overlap the larger loses the words "
        "(BLURB, section 2.3.2); why dev has more nonetheless is not known"
    )
    return (
        FileLayout(
            patterns,
            {"train": crowd_files, "dev": crowd_files, "test": gold_files},
            pico.read_original,
            {"dev": missing_dev_policy},
        ),
        FileLayout(
            ner_common.split_patterns("**/pico/ebmnlp/{}.txt"),
            ner_common.ONE_FILE_PER_SPLIT,
            read_each_split(iob.read_sentences),
            note="the labels are SciBERT's, and scores not comparable with BLURB's",
            known_discrepancies=(
                KnownDiscrepancy("labelled words", "dev", 87913, reason),
                KnownDiscrepancy("labelled words", "test", 11908, reason),
            ),
        ),
    )


def _make_species_layouts() -> tuple[FileLayout, ...]:
    """Return the layouts of BioBERT's files and of the corpus's own."""
    corpus_patterns = {"mentions": "**/S800.tsv", "pmids": "**/pubmedid.tsv", "texts": "**/abstracts/*.txt"}
    missing_lists_policy = MissingSplitPolicy(
        "the lists of spyysalo/s800, s800/split/*.txt, are missing: the split is our own",
        tuple(ner_common.ONE_FILE_PER_SPLIT),
    )
    return (
        FileLayout(
            ner_common.split_patterns("**/s800/{}.tsv", dev_name="devel"),
            ner_common.ONE_FILE_PER_SPLIT,
            read_each_split(partial(iob.read_sentences, entity_type="Species")),
        ),
        FileLayout(
            {**corpus_patterns, **ner_common.split_patterns("**/s800/split/{}.txt", dev_name="devel")},
            dict.fromkeys(ner_common.ONE_FILE_PER_SPLIT, tuple(corpus_patterns)),
            species.read_species,
            dict.fromkeys(ner_common.ONE_FILE_PER_SPLIT, missing_lists_policy),
            note="sentences and words are bioshards' own, for the corpus has none",
        ),
    )


def _count_documents(records: Sequence[Record]) -> dict[str, int]:
    """Count documents, chemicals and diseases of BC5CDR."""
    texts = [record for record in records if isinstance(record, LabelledText)]
    labels = [record.label for record in texts if isinstance(record.label, frozenset)]
    type_counts = Counter(mention.split()[1] for label in labels for mention in label)
    return {"documents": len(texts), "chemicals": type_counts["CHEMICAL"], "diseases": type_counts["DISEASE"]}


NER_BENCHMARKS: Final[tuple[Benchmark, ...]] = (
    _make_crichton_benchmark("bc5-chem", "BC5CDR-chem", counts_by_split(5203, 5347, 5385)),
    _make_crichton_benchmark(
        "bc5-disease",
        "BC5CDR-disease",
        counts_by_split(4182, 4244, 4424),
        known_discrepancies=(_ST_ANTHONY_DISCREPANCY,),
    ),
    _make_crichton_benchmark("ncbi-disease", "NCBI-disease", counts_by_split(5134, 787, 960)),
    _make_crichton_benchmark("bc2gm", "BC2GM", counts_by_split(15197, 3061, 6325)),
    _make_crichton_benchmark(
        "linnaeus",
        "LINNAEUS",
        counts_by_split(2119, 711, 1433),
        _BIO_ELECTRA_TABLE_SOURCE,
        folder="linnaeus-IOB",
    ),
    _make_crichton_benchmark(
        "bc4chemd",
        "BC4CHEMD",
        counts_by_split(29478, 29486, 25346),
        _BIO_ELECTRA_TABLE_SOURCE,
        licence="not clear, says the collection; the corpus is BioCreative's",
    ),
    *JNLPBA_BENCHMARKS,
    Benchmark(
        name="bc5cdr-merged",
        title="BC5CDR, chemicals and diseases as one type",
        layouts=(
            FileLayout(
                ner_common.split_patterns("**/NER/bc5cdr/{}.txt"),
                ner_common.ONE_FILE_PER_SPLIT,
                read_each_split(_read_single_type),
            ),
        ),
        published_counts={"sentences": counts_by_split(3951, 3957, 4145)},
        count_records=ner_common.count_tagged_sentences,
        counts_source=ner_common.ELECTRAMED_TABLE_SOURCE,
        licence="MIT (the repository's)",
        download_from=ner_common.ELECTRAMED_NER_DOWNLOAD.format("bc5cdr"),
        task=ner_common.ENTITY_TASK,
    ),
    Benchmark(
        name="ebm-pico",
        title="EBM PICO",
        layouts=_make_pico_layouts(),
        published_counts={
            "labelled words": counts_by_split(339167, 85321, 16364),
            "documents": {"train+dev+test": 4993},
        },
        count_records=ner_common.count_tagged_sentences,
        counts_source=f"{ner_common.BLURB_TABLE_SOURCE}; documents: EBM-NLP's README",
        licence="not stated (EBM-NLP); Apache 2.0 (SciBERT's repository)",
        download_from="https://github.com/bepnye/EBM-NLP, ebm_nlp_2_00.tar.gz unpacked; for the split, and "
        "for "
        "labels of its own, https://github.com/allenai/scibert, data/pico/ebmnlp",
        has_pmids=True,
        task=TaskSpec("word_labels", "word_f1", labels=tuple(pico.ELEMENTS.values())),
    ),
    Benchmark(
        name="s800",
        title="Species-800",
        layouts=_make_species_layouts(),
        published_counts={
            "mentions": {"train+dev+test": 3708},
            "documents": counts_by_split(560, 80, 160),
        },
        count_records=ner_common.count_tagged_sentences,
        counts_source="BioALBERT (Naseem et al. 2020, table IV); documents: spyysalo/s800, split/",
        licence="not stated with BioBERT's files; the corpus is of https://species.jensenlab.org",
        download_from="NERdata of https://github.com/dmis-lab/biobert, s800, or "
        "https://species.jensenlab.org, "
        "S800-1.0.tar.gz unpacked, with https://github.com/spyysalo/s800",
        has_pmids=True,
        task=ner_common.ENTITY_TASK,
    ),
    Benchmark(
        name="bc5cdr-pubtator",
        title="BC5CDR, the task's documents",
        layouts=(
            FileLayout(
                {
                    "train": "**/CDR_TrainingSet.PubTator.txt",
                    "dev": "**/CDR_DevelopmentSet.PubTator.txt",
                    "test": "**/CDR_TestSet.PubTator.txt",
                },
                ner_common.ONE_FILE_PER_SPLIT,
                standoff.read_documents,
            ),
        ),
        published_counts={
            "documents": counts_by_split(500, 500, 500),
            "chemicals": counts_by_split(5203, 5347, 5385),
            "diseases": counts_by_split(4182, 4244, 4424),
        },
        count_records=_count_documents,
        counts_source=f"{ner_common.BLURB_TABLE_SOURCE}, and its section 2.3.1",
        licence="BioCreative's: see the readme of CDR_Data.zip",
        download_from="https://biocreative.bioinformatics.udel.edu/tasks/biocreative-v/track-3-cdr/ "
        "(CDR_Data.zip)",
        has_pmids=True,
    ),
)
