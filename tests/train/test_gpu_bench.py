"""``tests/bench/gpu.py`` from end to end on a CPU, with tiny models."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from bioshards.train.config.model_presets import PRESETS
from bioshards.train.models import factory
from tests.bench.harness import gpu_peers
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


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_peers_have_the_loss_of_the_trainer(
    family: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """They train the same models on the same rows and masks."""
    from tests.bench import gpu

    cpu = torch.device("cpu")
    bench = gpu.GpuBench([str(pretraining_sets["electra"])], None, None, tmp_path, cpu, True, 1.0)
    recipe = replace(PRESETS["tiny"], family=family, dropout=0.0, attention_dropout=0.0)  # type: ignore[arg-type]
    dataset, loader = bench.make_loader(recipe)
    [(batch, counts)] = loader.load_step(0)
    objective = factory.build_objective(recipe.model_config, dataset).eval()
    inputs = gpu_peers.pad_batch(batch, dataset.special_ids["[PAD]"], dataset.max_seq_length)
    with torch.no_grad():
        expected = float(objective.compute_loss(objective(batch), counts._asdict()))
        loss = float(gpu_peers.PeerModel(objective).eval()(**inputs)["loss"])
    assert loss == pytest.approx(expected, rel=1e-3)  # ELECTRA's generator samples other tokens
