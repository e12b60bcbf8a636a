"""The BLURB score: a mean over six types of task of the mean over each type's sets.

SOURCE: Gu et al. 2020 (arXiv 2007.15779), section 2.4 and table 6: "the macro average of average test results
for each of the six tasks".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

TYPES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "NER": ("bc5-chem", "bc5-disease", "ncbi-disease", "bc2gm", "jnlpba"),
        "PICO": ("ebm-pico",),
        "Relation extraction": ("chemprot", "ddi", "gad"),
        "Sentence similarity": ("biosses",),
        "Document classification": ("hoc",),
        "Question answering": ("pubmedqa", "bioasq-yesno"),
    }
)
"""Tasks by type, both in the paper's order."""
TASKS: Final = tuple(task for tasks in TYPES.values() for task in tasks)


@dataclass(frozen=True, slots=True)
class Blurb:
    """What scores give of BLURB.

    Attributes:
        types: the mean of each type that has all its sets, None of the others.
        score: the BLURB score; None while a set is missing.
        missing: the sets without a score.
        partial: the same macro average over what is there, of types that have any; None where nothing is.
            It is no BLURB score, and compares only with the same average over the same sets.
    """

    types: Mapping[str, float | None]
    score: float | None
    missing: tuple[str, ...]
    partial: float | None


def blurb(scores: Mapping[str, float]) -> Blurb:
    """BLURB of scores by task; tasks that are not BLURB's are left out of it."""
    there = {name: [scores[task] for task in tasks if task in scores] for name, tasks in TYPES.items()}
    whole = {name: _mean(there[name]) if len(there[name]) == len(TYPES[name]) else None for name in TYPES}
    missing = tuple(task for task in TASKS if task not in scores)
    partial = _mean([mean for of in there.values() if (mean := _mean(of)) is not None])
    return Blurb(whole, None if missing else partial, missing, partial)


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
