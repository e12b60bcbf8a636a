"""A run that was stopped, however, ends as one that was not: to the bit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.training_runs import same_state, state, told, train


@pytest.mark.parametrize("objective", ["electra", "bert", "albert"])
def test_half_a_run_and_the_other_half_are_a_whole_one(
    objective: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data = pretraining_sets[objective]
    assert train(data, tmp_path / "whole") == 0
    assert train(data, tmp_path / "halves") == 0
    first, last = (f"step-{number:07d}" for number in (6, 12))
    for name in ("manifest.json", f"{last}/state.pt"):
        (tmp_path / "halves" / name).unlink()
    import shutil

    shutil.rmtree(tmp_path / "halves" / last)
    assert train(data, tmp_path / "halves") == 0
    assert same_state(state(tmp_path / "whole" / last), state(tmp_path / "halves" / last))
    assert told(tmp_path / "whole") == told(tmp_path / "halves")
    assert not same_state(state(tmp_path / "whole" / first), state(tmp_path / "whole" / last))
