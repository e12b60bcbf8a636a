"""BLURB score: the mean over six task types of the mean over their benchmarks.

SOURCE: Gu et al. 2020 (arXiv:2007.15779), section 2.4 and table 6: "the macro average of average test results
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
"""Tasks by type, in the paper's order."""
BLURB_TASKS: Final = tuple(task for tasks in TASKS_BY_TYPE.values() for task in tasks)


@dataclass(frozen=True, slots=True)
class BlurbScore:
    """BLURB score of a model, and its parts.

    Attributes:
        type_means: mean of each type; None if a task of the type is missing.
        score: BLURB score; None if a task is missing.
        missing_tasks: tasks without a score.
        partial_mean: macro average over the existing tasks; None without any. It is comparable only over the
            same tasks.
    """

    type_means: Mapping[str, float | None]
    score: float | None
    missing_tasks: tuple[str, ...]
    partial_mean: float | None


def compute_blurb(scores: Mapping[str, float]) -> BlurbScore:
    """Compute the BLURB score from scores by task; other tasks are ignored."""
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
