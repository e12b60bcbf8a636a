"""``tests/bench/gpu.py`` from end to end on a CPU, with tiny models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.paths import BENCHMARK_SAMPLE
from tests.support.train.trainer_runs import use_torch_threads


@pytest.mark.thorough
def test_gpu_bench_runs_from_end_to_end(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    from tests.bench import gpu

    data = [word for name in ("electra", "bert") for word in ("--data", str(pretraining_sets[name]))]
    with use_torch_threads(1):
        gpu.main(
            [*data, *("--benchmarks", str(BENCHMARK_SAMPLE), "--output", str(tmp_path / "report"), "--dry")]
        )
    report = json.loads((tmp_path / "report.json").read_text())
    assert {row["kernel"] for row in report["speed"]} >= {"automatic", "padded", gpu.PLAIN_LOOP}
    assert all(row["tokens_per_second"] > 0 and row["mfu"] > 0 for row in report["speed"])
    assert next(row["is_equal"] for row in report["losses"] if row["precision"] == "float32")
    assert [row["same_bits"] for row in report["resume"]] == [True, True]
    assert [row["task"] for row in report["benchmarks"]] == ["biosses", "gad"]
    assert not [item for item in report["left_out"] if "accelerate" not in item and "float16" not in item]
    assert "| electra-small | automatic | bfloat16 |" in (tmp_path / "report.md").read_text()
