"""Attention kernels and speed of the trainer on a GPU: ``python -m tests.bench.gpu --data SET``.

Each case is a preset with an attention kernel, a precision, and compiled or not.  The kernel is compared with
padded attention first; then tokens a second and peak memory are measured and printed as JSON.  Tokens are
counted without padding.  A case that does not run, or has no time left, is listed under ``left_out``.

It needs what the extra ``train`` needs, and no network.  Where nothing can be installed, ``PYTHONPATH=src:.``
makes the packages importable.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final
from unittest import mock

import torch
from torch import Tensor
from transformers import PreTrainedModel

from bioshards.corpus.errors import InvalidValueError
from bioshards.train.batch import Batch
from bioshards.train.checkpoint import get_library_versions
from bioshards.train.data.loader import StepLoader
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import PretrainingDataset, manifest_of
from bioshards.train.distributed import autocast
from bioshards.train.models import attention
from bioshards.train.models.objectives import Objective
from bioshards.train.models.weights import build_objective
from bioshards.train.optim import Adam, FlatGradients, Lamb
from bioshards.train.presets import PRESETS
from bioshards.train.recipe import FAMILIES, TrainRecipe

SPEED_PRESETS: Final = ("electra-small", "bio-electra", "electra-base", "pubmedbert", "bioalbert")
SETTINGS: Final = (
    ("automatic", "bfloat16", False),
    ("automatic", "bfloat16", True),
    ("efficient", "bfloat16", False),
    ("padded", "bfloat16", False),
    ("automatic", "float16", False),
    ("automatic", "float32", False),
)
"""Attention kernel (chosen by the trainer or forced), precision, compilation; the first matter most."""
GOALS: Final = {"electra-small": 2.5e6, "pubmedbert": 0.7e6}
"""Tokens a second on one H200."""
MICRO_BATCH_TOKENS: Final = 1 << 16
NUM_BATCHES: Final = 8
"""Batches that a speed is measured on, in turns."""
WARMUP_STEPS: Final = 3
TINY_CHANGES: Final[dict[str, Any]] = {
    "hidden_size": 32,
    "num_layers": 1,
    "num_heads": 2,
    "intermediate_size": 64,
    "embedding_size": 32,
}
KERNEL_TOLERANCE: Final = 0.1
"""Largest difference of a kernel from padded attention on normal numbers.  bfloat16 rounds 4 by up to 0.02;
a wrong layout changes results by 1 and more."""
ONE_TOKEN_ROWS: Final = 200
"""Rows that show what dropout drops: their only probability is 1, and without it the output is 0."""


@dataclass(frozen=True)
class SpeedCase:
    """What a speed is measured of."""

    preset: str
    kernel: str
    precision: str
    is_compiled: bool


def measure_speed(case: SpeedCase, data: Sequence[str], device: torch.device, is_dry: bool) -> dict[str, Any]:
    """Measure tokens a second and peak memory of a case, after a check of its attention kernel.

    Raises:
        InvalidValueError: no set is for the family of the preset.
    """
    preset = PRESETS[case.preset]
    sets = [PretrainingDataset(folder) for folder in data]
    family = FAMILIES[preset.family]  # type: ignore[index]  # a preset's is never "auto"
    fitting = [each for each in sets if each.objective in family.data_objectives]
    if not fitting:
        raise InvalidValueError(f"no set for {preset.family} is given: add one with --data")
    dataset, folder = fitting[0], data[sets.index(fitting[0])]
    recipe = replace(
        preset,
        **(TINY_CHANGES if is_dry else {}),
        start_from="random",
        precision=case.precision,  # type: ignore[arg-type]
        compile=case.is_compiled,
        batch_size=4 if is_dry else max(1, MICRO_BATCH_TOKENS // dataset.max_seq_length),
    )
    vocabulary = manifest_of(folder).run.vocabulary
    pieces = PieceTable.load(vocabulary, dataset.vocabulary_size, dataset.vocabulary_sha256)
    loader = StepLoader(dataset, pieces, recipe, recipe.batch_size)
    batches = [loader.load_step(step) for step in range(NUM_BATCHES)]
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    torch.manual_seed(0)
    with device:
        objective = build_objective(recipe, dataset).to(device)
    forced = None if case.kernel == "automatic" else case.kernel
    with mock.patch.object(attention, "forced_kernel", forced):
        check_kernels(objective, recipe, device)
        torch.set_float32_matmul_precision("high")  # as a run on a GPU does
        step = make_step(objective, recipe, device)
        for number in range(WARMUP_STEPS):
            step(*batches[number][0])
        seconds, tokens = time_steps(step, batches, 0.05 if is_dry else 2.0, device)
    return {
        "tokens_per_second": tokens / seconds,
        "device_memory_bytes": torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
    }


def make_step(objective: Objective, recipe: TrainRecipe, device: torch.device) -> Callable[..., None]:
    """Return a function that trains a step of one micro-batch, as a run of one process does."""
    named_parameters = list(objective.named_parameters())
    gradients = FlatGradients(named_parameters)
    optimizer = (Lamb if recipe.optimizer == "lamb" else Adam)(
        named_parameters, bias_correction=recipe.bias_correction
    )
    forward: Any = torch.compile(objective, dynamic=False) if recipe.compile else objective

    def step(batch: Batch, counts: Any) -> None:
        gradients.zero()
        with autocast(recipe.precision, device):
            sums = forward(batch.to(device))
        objective.compute_loss(sums, counts._asdict()).backward()  # type: ignore[no-untyped-call]
        if torch.isfinite(gradients.clip(recipe.grad_clip)):
            optimizer.step(recipe.learning_rate)

    return step


def time_steps(
    step: Callable[..., None], batches: Sequence[Any], at_least: float, device: torch.device
) -> tuple[float, int]:
    """Run the steps of all batches in turns for some seconds; return the seconds and the tokens."""
    started, tokens = time.perf_counter(), 0
    while not tokens or time.perf_counter() - started < at_least:
        for [(batch, counts)] in batches:
            step(batch, counts)
            tokens += counts.tokens
        if device.type == "cuda":
            torch.cuda.synchronize(device)  # else the clock would show how fast steps are queued
    return time.perf_counter() - started, tokens


def check_kernels(objective: Objective, recipe: TrainRecipe, device: torch.device) -> None:
    """Compare the chosen kernel of each head size with padded attention, and count what its dropout drops.

    Raises:
        RuntimeError: they differ, or the kernel does not run.
    """
    dtype = getattr(torch, recipe.precision)
    for head_size in sorted(
        {
            part.config.hidden_size // part.config.num_attention_heads
            for part in objective.modules()
            if isinstance(part, PreTrainedModel)
        }
    ):
        kernel = attention.choose_kernel(device, dtype, head_size)
        if kernel != "padded":
            check_kernel(getattr(attention, f"_run_{kernel}"), device, dtype, head_size)


def check_kernel(
    run: Callable[..., Tensor], device: torch.device, dtype: torch.dtype, head_size: int
) -> None:
    """Compare outputs and gradients of a kernel with padded attention, and count what its dropout drops."""
    lengths = [70, 1, 64, *[1] * ONE_TOKEN_ROWS]
    offsets = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32).to(device)
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(4, sum(lengths), 2, head_size, generator=generator).to(device, dtype)
    row_starts = offsets[:-1].long()
    ids = torch.zeros(sum(lengths), dtype=torch.int64, device=device)
    batch = Batch(ids, ids, ids, ids, ids, ids, ids, row_starts, row_starts, offsets, max(lengths))
    segments = attention.build_segments(batch)
    results = []
    with torch.enable_grad():
        for is_reference in (False, True):
            q, k, v = (tensor.clone().requires_grad_() for tensor in inputs[:3])
            output = (
                attention._run_padded(q, k, v, segments, 0.0, None)
                if is_reference
                else run(q, k, v, offsets, max(lengths), 0.0)
            )
            gradients = torch.autograd.grad(output, (q, k, v), inputs[3])
            results.append(torch.stack((output.detach(), *gradients)).float())
    difference = float((results[0] - results[1]).abs().max())
    if not difference <= KERNEL_TOLERANCE:
        raise RuntimeError(f"its results differ by {difference:.2g} from those of padded attention")
    torch.manual_seed(0)
    output = run(*inputs[:3], offsets, max(lengths), 0.1)
    dropped = float((output[-ONE_TOKEN_ROWS:] == 0).all(-1).float().mean())
    if not 0.03 <= dropped <= 0.2:
        raise RuntimeError(f"it drops {dropped:.0%} at a dropout of 10 %")


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all cases, and print them as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gpu", description=__doc__)
    parser.add_argument("--data", action="append", required=True, help="a pretraining set; repeatable")
    parser.add_argument("--minutes", type=float, default=9.0, help="no case starts later (%(default)s)")
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu", help="(%(default)s)"
    )
    parser.add_argument("--dry", action="store_true", help="two tiny models, not compiled")
    options = parser.parse_args(arguments)
    device, end = torch.device(options.device), time.monotonic() + 60 * options.minutes
    speeds, left_out = [], []
    for settings, preset in itertools.product(SETTINGS, SPEED_PRESETS):
        case = SpeedCase(preset, *settings)
        if options.dry and (case.is_compiled or preset not in GOALS):
            continue
        try:
            if time.monotonic() > end:
                raise TimeoutError("no time")
            speeds.append({**asdict(case), **measure_speed(case, options.data, device, options.dry)})
        except Exception as error:  # the other cases are worth their time
            left_out.append(f"{case}: {error}")
        gc.collect()
        if device.type == "cuda":
            torch.compiler.reset()
            torch.cuda.empty_cache()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    facts = {"device": name, "versions": {**get_library_versions(), "cuda": torch.version.cuda}}
    print(json.dumps({**facts, "goals": GOALS, "speed": speeds, "left_out": left_out}, indent=1))


if __name__ == "__main__":
    main()
