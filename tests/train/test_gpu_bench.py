"""``tests/bench/gpu.py`` from end to end on a CPU, with tiny models, and its check of kernels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from bioshards.train.models import attention
from tests.support.train.synthetic_batches import run_dense
from tests.support.train.trainer_runs import use_torch_threads


@pytest.mark.thorough
def test_gpu_bench_runs_from_end_to_end(
    pretraining_sets: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.bench import gpu

    data = [word for name in ("electra", "bert") for word in ("--data", str(pretraining_sets[name]))]
    with use_torch_threads(1):
        gpu.main([*data, "--dry"])
    report = json.loads(capsys.readouterr().out)
    assert {(row["preset"], row["kernel"]) for row in report["speed"]} >= {
        ("electra-small", "automatic"),
        ("pubmedbert", "padded"),
    }
    assert all(row["tokens_per_second"] > 0 for row in report["speed"])
    assert all("float16" in item for item in report["left_out"])


def run_wrong_gradient(query: Tensor, *args: Any) -> Tensor:
    return run_dense(query.detach() * 2 - query, *args)


def run_without_dropout(*args: Any) -> Tensor:
    return run_dense(args[0], args[1], args[2], args[3], args[4], 0.0)


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        (run_wrong_gradient, "its results differ by"),
        (run_without_dropout, "it drops 0% at a dropout of 10 %"),
        (attention._run_flash, "Could not run 'aten::_flash_attention_forward'"),
    ],
)
def test_wrong_kernels_are_found(run: Any, reason: str) -> None:
    from tests.bench import gpu

    dtype = torch.bfloat16 if run is attention._run_flash else torch.float32
    gpu.check_kernel(run_dense, torch.device("cpu"), torch.float32, 16)
    with pytest.raises((RuntimeError, NotImplementedError), match=reason):
        gpu.check_kernel(run, torch.device("cpu"), dtype, 16)
