"""Learning rates and masking rates as pure functions of the step: a resumed run needs no state of them.

Steps count from 0, as the papers' code does: the first update is that of step 0, at a learning rate of 0, and
the last is that of ``steps - 1``.
"""

from __future__ import annotations

from typing import Final, Literal, get_args

from bioshards.corpus.errors import InvalidValueError

Schedule = Literal["electra", "bert", "triangular"]
SCHEDULES: Final[tuple[Schedule, ...]] = get_args(Schedule)


def learning_rate(schedule: Schedule, step: int, steps: int, warmup: int, peak_rate: float) -> float:
    """The learning rate of a step.

    Args:
        schedule: ``electra`` multiplies warm-up and decay, both counted from step 0, so that it never
            reaches its peak (google-research/electra, model/optimization.py). ``bert`` warms up to the peak
            and then
            follows the decay counted from step 0: it falls by ``warmup / steps`` of the peak at once
            (google-research/bert, optimization.py; google-research/albert has the same). ``triangular``
            rises to the peak and falls from it to 0 (PubMedBERT, arXiv:2007.15779, section 3.1).
        step: from 0 on; from ``steps`` on the learning rate is 0.
        steps: of the whole training.
        warmup: steps of linear warm-up; 0 for none, and then step 0 has the peak.
        peak_rate: what the papers call the learning rate.
    """
    if steps < 1 or not 0 <= warmup <= steps or step < 0:
        raise InvalidValueError(f"step {step} of {steps} with {warmup} of warm-up: not 0 <= warmup <= steps")
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
            raise InvalidValueError(f"no schedule is called {schedule!r}; there are {', '.join(SCHEDULES)}")
