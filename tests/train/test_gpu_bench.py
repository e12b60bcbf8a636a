"""``tests/bench/gpu.py`` from end to end on a CPU, with tiny models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from bioshards.train.models import attention
from bioshards.train.models.weights import build_objective
from bioshards.train.presets import PRESETS
from tests.bench.harness import gpu_peers
from tests.support.train.synthetic_batches import run_dense
from tests.support.train.trainer_runs import use_torch_threads


@pytest.mark.thorough
def test_gpu_bench_runs_from_end_to_end(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    from tests.bench import gpu

    data = [word for name in ("electra", "bert") for word in ("--data", str(pretraining_sets[name]))]
    with use_torch_threads(1):
        gpu.main([*data, "--output", str(tmp_path / "gpu"), "--dry"])
    report = json.loads((tmp_path / "gpu" / "report.json").read_text())
    assert {row["kernel"] for row in report["speed"]} >= {"automatic", "padded", gpu.PLAIN_LOOP}
    assert all(row["tokens_per_second"] > 0 for row in report["speed"])
    assert next(row["is_equal"] for row in report["losses"] if row["precision"] == "float32")
    assert [row["same_bits"] for row in report["resume"]] == [True, True]
    assert not [item for item in report["left_out"] if "accelerate" not in item and "float16" not in item]


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_peers_have_the_loss_of_the_trainer(
    family: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """They train the same models on the same rows and masks."""
    from tests.bench import gpu

    cpu = torch.device("cpu")
    bench = gpu.GpuBench([str(pretraining_sets["electra"])], None, tmp_path, cpu, True)
    recipe = replace(PRESETS["tiny"], family=family, dropout=0.0, attention_dropout=0.0)  # type: ignore[arg-type]
    dataset, loader = bench.make_loader(recipe)
    [(batch, counts)] = loader.load_step(0)
    objective = build_objective(recipe, dataset).eval()
    inputs = gpu_peers.pad_batch(batch, dataset.special_ids["[PAD]"], dataset.max_seq_length)
    with torch.no_grad():
        expected = float(objective.compute_loss(objective(batch), counts._asdict()))
        loss = float(gpu_peers.PeerModel(objective).eval()(**inputs)["loss"])
    assert loss == pytest.approx(expected, rel=1e-3)  # ELECTRA's generator samples other tokens


def run_wrong_gradient(query: Tensor, *args: Any) -> Tensor:
    return run_dense(query.detach() * 2 - query, *args)


def run_without_dropout(*args: Any) -> Tensor:
    return run_dense(args[0], args[1], args[2], args[3], args[4], 0.0)


def test_wrong_kernels_are_found() -> None:
    from tests.bench import gpu

    cpu = torch.device("cpu")
    gpu.check_kernel(run_dense, cpu, torch.float32, 16)
    for run, reason in (
        (run_wrong_gradient, "its results differ by"),
        (run_without_dropout, "it drops 0% at a dropout of 10 %"),
        (attention._run_flash, "Could not run 'aten::_flash_attention_forward'"),
    ):
        with pytest.raises((RuntimeError, NotImplementedError), match=reason):
            gpu.check_kernel(run, cpu, torch.bfloat16 if run is attention._run_flash else torch.float32, 16)
