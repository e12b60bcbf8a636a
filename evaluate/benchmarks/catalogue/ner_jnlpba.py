"""JNLPBA with merged and with five entity types, in every distribution of its training split.

Some copies of the collections omit the training file. A rebuilt one, from GENIA's standoff files, is nearly
the same.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from bioshards.evaluate.benchmarks.catalogue import ner_common
from bioshards.evaluate.benchmarks.catalogue.record_counts import counts_by_split
from bioshards.evaluate.benchmarks.definition import Benchmark, FileLayout, KnownDiscrepancy
from bioshards.evaluate.benchmarks.formats import iob
from bioshards.evaluate.benchmarks.readers import jnlpba
from bioshards.evaluate.benchmarks.readers.split_reader import read_each_split

_CRICHTON_PATTERNS: Final = ner_common.split_patterns("**/JNLPBA/{}.tsv", dev_name="devel")
_ELECTRAMED_PATTERNS: Final = ner_common.split_patterns("**/NER/JNLPBA/{}.txt")
_REBUILT_PATTERN: Final = "**/JNLPBA/train_rebuilt_from_standoff.tsv"
_TRAIN_WITHOUT_DEV: Final = {**ner_common.ONE_FILE_PER_SPLIT, "train": ("train", "dev")}

_REBUILT_NOTE: Final = (
    "train is rebuilt from GENIA's standoff files, not the shared task's: of its 1997 abstracts the 200 "
    "of dev are left out, and ten of the others are also in test (99 of its 3,856 sentences)"
)
_REBUILT_REASON: Final = (
    "the rebuilt train has 1797 of 1800 abstracts, and not all of their sentences; of dev's abstracts, "
    "which the file has too, it lacks 49 of 4551 mentions, nearly all of them in sentences that it lacks"
)
_REBUILT_MENTIONS: Final = 46316
"""Mentions in the rebuilt train."""
_LICENCE: Final = "GENIA Project License for Annotated Corpora"


def _make_merged_layouts() -> tuple[FileLayout, ...]:
    """Return the layouts of Crichton's files, the shared task's, and Crichton's with a rebuilt train."""
    read = partial(iob.read_sentences, entity_type="Entity")
    original_patterns = {"training": "**/Genia4ERtask2.iob2", "test": "**/Genia4EReval2.iob2"}
    return (
        FileLayout(_CRICHTON_PATTERNS, ner_common.ONE_FILE_PER_SPLIT, read_each_split(read)),
        FileLayout(
            original_patterns,
            {"train": ("training",), "dev": ("training",), "test": ("test",)},
            partial(jnlpba.read_original, entity_type="Entity"),
        ),
        FileLayout(
            {**_CRICHTON_PATTERNS, "train": _REBUILT_PATTERN},
            _TRAIN_WITHOUT_DEV,
            partial(jnlpba.read_rebuilt, entity_type="Entity"),
            note=_REBUILT_NOTE,
            known_discrepancies=(KnownDiscrepancy("mentions", "train", _REBUILT_MENTIONS, _REBUILT_REASON),),
        ),
    )


def _make_typed_layouts() -> tuple[FileLayout, ...]:
    """Return the layouts of ELECTRAMed's files, and these with a rebuilt train."""
    return (
        FileLayout(
            _ELECTRAMED_PATTERNS,
            ner_common.ONE_FILE_PER_SPLIT,
            read_each_split(iob.read_sentences),
        ),
        FileLayout(
            {**_ELECTRAMED_PATTERNS, "train": _REBUILT_PATTERN},
            _TRAIN_WITHOUT_DEV,
            jnlpba.read_rebuilt,
            note=_REBUILT_NOTE,
            known_discrepancies=(
                KnownDiscrepancy("sentences", "train", 16616, _REBUILT_REASON),
                KnownDiscrepancy(
                    "mentions", "train+dev+test", _REBUILT_MENTIONS + 4551 + 8662, _REBUILT_REASON
                ),
            ),
        ),
    )


JNLPBA_BENCHMARKS: Final = (
    Benchmark(
        name="jnlpba",
        title="JNLPBA, its types merged",
        layouts=_make_merged_layouts(),
        published_counts={"mentions": counts_by_split(46750, 4551, 8662)},
        count_records=ner_common.count_tagged_sentences,
        counts_source=ner_common.BLURB_TABLE_SOURCE,
        licence=_LICENCE,
        download_from="http://www.nactem.ac.uk/GENIA/current/Shared-tasks/JNLPBA/, "
        "Train/Genia4ERtraining.tar.gz and "
        f"Evaluation/Genia4ERtest.tar.gz unpacked, or {ner_common.CRICHTON_DOWNLOAD.format('JNLPBA')}",
        task=ner_common.ENTITY_TASK,
    ),
    Benchmark(
        name="jnlpba-typed",
        title="JNLPBA, five types",
        layouts=_make_typed_layouts(),
        published_counts={
            "sentences": counts_by_split(16845, 1743, 3869),
            "mentions": {"train+dev+test": 59963},
        },
        count_records=ner_common.count_tagged_sentences,
        counts_source=ner_common.ELECTRAMED_TABLE_SOURCE,
        licence=_LICENCE,
        download_from=ner_common.ELECTRAMED_NER_DOWNLOAD.format("JNLPBA"),
        task=ner_common.ENTITY_TASK,
    ),
)
