"""JNLPBA (Kim et al., 2004): the shared task's files, and a rebuilt train that has dev's abstracts too.

The task had no development part: Crichton et al. made it of the last abstracts of the training file.
So does BLURB, which cuts that file after its line 465,497 (data_generation, preprocessor.py).  Document
numbers are MEDLINE's old UIs, not PMIDs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bioshards.evaluate.datasets import PARTS, Files, Parts
from bioshards.evaluate.records import Sentence

from . import iob
from .lines import lines, only

CUT: Final = 465_497
"""How many lines of Genia4ERtask2.iob2 are train's; the others are dev's."""
_LONG: Final = 40
"""From how many characters on, blanks apart, a sentence tells an abstract; headings stand in many."""


def original(files: Files, type: str | None = None) -> Parts:
    """The shared task's files: ``training``, of which train and dev are made, and ``test``."""
    training = only(files, "training")
    rows = lines(training)
    return {
        "train": list(iob.parse(training, rows[:CUT], type)),
        "dev": list(iob.parse(training, rows[CUT:], type)),
        "test": list(iob.sentences(only(files, "test"), type)),
    }


def rebuilt(files: Files, type: str | None = None) -> Parts:
    """The files ``train``, of which the abstracts of dev are left out, ``dev`` and ``test``."""
    parts = {part: iob.sentences(only(files, part), type) for part in files}
    if "train" in parts and "dev" in parts:
        parts["train"] = without(parts["train"], parts["dev"])
    return {part: [*parts[part]] for part in PARTS if part in parts}


def without(sentences: Iterable[Sentence], held_out: Iterable[Sentence]) -> list[Sentence]:
    """The sentences of all documents but those that share a long sentence with what is held out."""
    sentences = list(sentences)
    known = {text for sentence in held_out if len(text := "".join(sentence.words)) >= _LONG}
    shared = {sentence.document for sentence in sentences if "".join(sentence.words) in known}
    return [sentence for sentence in sentences if sentence.document not in shared]
