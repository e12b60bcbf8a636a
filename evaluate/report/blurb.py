"""The BLURB score: a mean over six types of task of the mean over each type's sets.

SOURCE: Gu et al. 2020 (arXiv 2007.15779), section 2.4 and table 6: "the macro average of average test results
for each of the six tasks".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

TASKS_BY_TYPE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
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
BLURB_TASKS: Final = tuple(task for tasks in TASKS_BY_TYPE.values() for task in tasks)


@dataclass(frozen=True, slots=True)
class BlurbScore:
    """What scores give of BLURB.

    Attributes:
        types: the mean of each type that has all its sets, None of the others.
        score: the BLURB score; None while a set is missing.
        missing: the sets without a score.
        partial: the same macro average over what is there, of types that have any; None where nothing is.
            It is no BLURB score, and compares only with the same average over the same sets.
    """

    type_means: Mapping[str, float | None]
    score: float | None
    missing_tasks: tuple[str, ...]
    partial_mean: float | None


def compute_blurb(scores: Mapping[str, float]) -> BlurbScore:
    """BLURB of scores by task; tasks that are not BLURB's are left out of it."""
    scores_by_type = {
        name: [scores[task] for task in tasks if task in scores] for name, tasks in TASKS_BY_TYPE.items()
    }
    type_means = {
        name: _mean_or_none(scores_by_type[name])
        if len(scores_by_type[name]) == len(TASKS_BY_TYPE[name])
        else None
        for name in TASKS_BY_TYPE
    }
    missing_tasks = tuple(task for task in BLURB_TASKS if task not in scores)
    partial_mean = _mean_or_none(
        [mean for type_scores in scores_by_type.values() if (mean := _mean_or_none(type_scores)) is not None]
    )
    return BlurbScore(type_means, None if missing_tasks else partial_mean, missing_tasks, partial_mean)


def _mean_or_none(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
