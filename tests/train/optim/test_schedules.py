"""Schedules, compared with tables computed by hand, and invariants."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.train.optim import learning_rate
from bioshards.train.recipe import SCHEDULES, Schedule, TrainRecipe, describe_warmup, scale_warmup

STEPS, WARMUP, PEAK = 1000, 100, 4.0


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ("electra", {0: 0, 50: 1.9, 99: 3.56796, 100: 3.6, 500: 2, 999: 0.004, 1000: 0, 2000: 0}),
        ("bert", {0: 0, 50: 2, 99: 3.96, 100: 3.6, 500: 2, 999: 0.004, 1000: 0, 2000: 0}),
        ("constant", {0: 0, 50: 2, 99: 3.96, 100: 4, 550: 4, 999: 4, 2000: 4}),
        ("triangular", {0: 0, 50: 2, 99: 3.96, 100: 4, 550: 2, 999: 4 / 900, 1000: 0, 2000: 0}),
    ],
)
def test_learning_rate_equals_the_table(schedule: Schedule, rates: dict[int, float]) -> None:
    for step, rate in rates.items():
        assert learning_rate(schedule, step, STEPS, WARMUP, PEAK) == pytest.approx(rate, abs=1e-12), step


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_without_warm_up_the_first_step_has_the_peak(schedule: Schedule) -> None:
    assert learning_rate(schedule, 0, STEPS, 0, PEAK) == PEAK
    assert learning_rate(schedule, 500, STEPS, 0, PEAK) == PEAK / (1 if schedule == "constant" else 2)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warm_up_may_last_for_all_steps(schedule: Schedule) -> None:
    assert learning_rate(schedule, 9, 10, 10, PEAK) == pytest.approx(
        PEAK * 0.9 * (0.1 if schedule == "electra" else 1)
    )
    assert learning_rate(schedule, 10, 10, 10, PEAK) == (PEAK if schedule == "constant" else 0)


trainings = st.integers(1, 10_000).flatmap(lambda steps: st.tuples(st.just(steps), st.integers(0, steps)))


@given(trainings, st.integers(0, 20_000), st.sampled_from(SCHEDULES), st.floats(1e-9, 1))
def test_the_learning_rate_is_between_0_and_the_peak(
    training: tuple[int, int], step: int, schedule: Schedule, peak: float
) -> None:
    steps, warmup = training
    rate = learning_rate(schedule, step, steps, warmup, peak)
    assert 0 <= rate <= peak
    has_ended = step >= steps and schedule != "constant"
    assert (rate == 0) == (has_ended or (step == 0 and warmup > 0))


@pytest.mark.parametrize(("step", "steps", "warmup"), [(0, 0, 0), (-1, 10, 0), (0, 10, 11), (0, 10, -1)])
def test_invalid_steps_are_refused(step: int, steps: int, warmup: int) -> None:
    with pytest.raises(ValueError, match=f"step {step} of {steps}"):
        learning_rate("bert", step, steps, warmup, 1.0)


def test_error_of_an_unknown_schedule_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'cosine'; choose from electra, bert, triangular, constant"):
        learning_rate("cosine", 0, 10, 1, 1.0)  # type: ignore[arg-type]


def test_mask_rate_rises_in_five_equal_stages() -> None:
    recipe = TrainRecipe(steps=100, mask_rate=0.05, final_mask_rate=0.25)
    rates = [recipe.mask_rate_at(step) for step in range(120)]
    assert rates[:20] == [0.05] * 20
    assert [rates[step] for step in (20, 39, 40, 60, 79, 80, 99, 119)] == pytest.approx(
        [0.10, 0.10, 0.15, 0.20, 0.20, 0.25, 0.25, 0.25]
    )
    assert len(set(rates)) == 5


@given(st.integers(1, 10_000), st.integers(0, 20_000), st.floats(0.01, 0.5), st.floats(0.01, 0.5))
def test_the_mask_rate_stays_between_its_ends(steps: int, step: int, first: float, last: float) -> None:
    rate = TrainRecipe(steps=steps, mask_rate=first, final_mask_rate=last).mask_rate_at(step)
    assert min(first, last) * (1 - 1e-9) <= rate <= max(first, last) * (1 + 1e-9)
    assert TrainRecipe(steps=steps, mask_rate=first).mask_rate_at(step) == first


@pytest.mark.parametrize(
    ("requested", "steps", "warmup"), [(10_000, 20, 2), (20, 20, 2), (19, 20, 19), (0, 20, 0), (5, 1, 0)]
)
def test_warm_up_of_a_short_run_is_a_tenth(requested: int, steps: int, warmup: int) -> None:
    recipe = TrainRecipe(steps=steps, warmup=float(requested))
    assert scale_warmup(requested, steps) == recipe.warmup_steps == warmup
    line = describe_warmup(requested, steps)
    assert (f"{requested:,} steps" in line and f"it is {warmup:,} steps" in line) == (warmup != requested)
