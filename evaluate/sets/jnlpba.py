"""JNLPBA in the two forms in which papers score it, and the ways in which its training part is had.

Its training part is the one that some copies of the collections leave out, for its size; GENIA's
standoff files give nearly the same.
"""

from __future__ import annotations

from functools import partial
from typing import Final

from bioshards.evaluate.datasets import DataSet, Known, Layout
from bioshards.evaluate.readers import iob, jnlpba

from . import tagged

_CRICHTON: Final = tagged.files("**/JNLPBA/{}.tsv", dev="devel")
_ELECTRAMED: Final = tagged.files("**/NER/JNLPBA/{}.txt")
_REBUILT: Final = "**/JNLPBA/train_rebuilt_from_standoff.tsv"
_TRAIN_WITHOUT_DEV: Final = {**tagged.EACH, "train": ("train", "dev")}

_NOTE: Final = (
    "train is rebuilt from GENIA's standoff files, not the shared task's: of its 1997 abstracts the 200 "
    "of dev are left out, and ten of the others are also in test (99 of its 3,856 sentences)"
)
_WHY: Final = (
    "the rebuilt train has 1797 of 1800 abstracts, and not all of their sentences; of dev's abstracts, "
    "which the file has too, it lacks 49 of 4551 mentions, nearly all of them in sentences that it lacks"
)
_MENTIONS: Final = 46316
"""In the rebuilt train."""
_LICENCE: Final = "GENIA Project License for Annotated Corpora"


def _merged() -> tuple[Layout, ...]:
    """Crichton's files, the shared task's, and Crichton's with a rebuilt train."""
    read = partial(iob.sentences, type="Entity")
    original = {"training": "**/Genia4ERtask2.iob2", "test": "**/Genia4EReval2.iob2"}
    return (
        Layout(_CRICHTON, tagged.EACH, tagged.reading(read)),
        Layout(
            original,
            {"train": ("training",), "dev": ("training",), "test": ("test",)},
            partial(jnlpba.original, type="Entity"),
        ),
        Layout(
            {**_CRICHTON, "train": _REBUILT},
            _TRAIN_WITHOUT_DEV,
            partial(jnlpba.rebuilt, type="Entity"),
            note=_NOTE,
            known=(Known("mentions", "train", _MENTIONS, _WHY),),
        ),
    )


def _typed() -> tuple[Layout, ...]:
    """ELECTRAMed's files, and these with a rebuilt train."""
    return (
        Layout(_ELECTRAMED, tagged.EACH, tagged.reading(iob.sentences)),
        Layout(
            {**_ELECTRAMED, "train": _REBUILT},
            _TRAIN_WITHOUT_DEV,
            jnlpba.rebuilt,
            note=_NOTE,
            known=(
                Known("sentences", "train", 16616, _WHY),
                Known("mentions", "train+dev+test", _MENTIONS + 4551 + 8662, _WHY),
            ),
        ),
    )


JNLPBA: Final = (
    DataSet(
        name="jnlpba",
        title="JNLPBA, its types merged",
        layouts=_merged(),
        counts={"mentions": tagged.three(46750, 4551, 8662)},
        count=tagged.sizes,
        source=tagged.BLURB,
        licence=_LICENCE,
        where="http://www.nactem.ac.uk/GENIA/current/Shared-tasks/JNLPBA/, "
        "Train/Genia4ERtraining.tar.gz and "
        f"Evaluation/Genia4ERtest.tar.gz unpacked, or {tagged.CRICHTON.format('JNLPBA')}",
    ),
    DataSet(
        name="jnlpba-typed",
        title="JNLPBA, five types",
        layouts=_typed(),
        counts={"sentences": tagged.three(16845, 1743, 3869), "mentions": {"train+dev+test": 59963}},
        count=tagged.sizes,
        source=tagged.ELECTRAMED,
        licence=_LICENCE,
        where=tagged.ELECTRAMED_FILES.format("JNLPBA"),
    ),
)
