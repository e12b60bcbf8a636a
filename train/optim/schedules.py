"""Learning rate schedules: pure functions of the step.

Steps count from 0, as in the papers' code: the first update is step 0, with a learning rate of 0 if there is
warm-up, and the last one is ``steps - 1``.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from bioshards.corpus.errors import InvalidValueError

Schedule = Literal["electra", "bert", "triangular"]
SCHEDULES: Final[tuple[Schedule, ...]] = get_args(Schedule)


def learning_rate(schedule: Schedule, step: int, steps: int, warmup: int, peak_rate: float) -> float:
    """Return the learning rate of a step.

    Args:
        schedule: ``electra``: product of warm-up and decay, both from step 0, so that the peak is never
            reached (google-research/electra, model/optimization.py).  ``bert``: warm-up to the peak, then the
            decay counted from step 0, a drop by ``warmup / steps`` of the peak (google-research/bert and
            albert, optimization.py).  ``triangular``: linear to the peak, then linear to 0 (PubMedBERT,
            arXiv:2007.15779, section 3.1).
        step: from 0; the learning rate is 0 from ``steps`` on.
        steps: total number of steps.
        warmup: steps of linear warm-up; 0: step 0 has the peak rate.
        peak_rate: the learning rate of the papers.

    Raises:
        InvalidValueError: the arguments are out of range, or the schedule is unknown.
    """
    if steps < 1 or not 0 <= warmup <= steps or step < 0:
        raise InvalidValueError(
            f"step {step} of {steps} with {warmup} warm-up steps: expected 0 <= warmup <= steps"
        )
    warmup_factor = step / warmup if step < warmup else 1.0
    remaining = max(0.0, 1 - step / steps)
    match schedule:
        case "electra":
            return peak_rate * warmup_factor * remaining
        case "bert":
            return peak_rate * (warmup_factor if step < warmup else remaining)
        case "triangular":
            return peak_rate * (
                warmup_factor if step < warmup else max(0, steps - step) / max(1, steps - warmup)
            )
        case _:
            raise InvalidValueError(f"unknown schedule {schedule!r}; choose from {', '.join(SCHEDULES)}")
