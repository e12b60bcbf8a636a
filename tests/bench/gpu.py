"""The trainer on a GPU: ``python -m tests.bench.gpu --data SET``.

In one run of at most ten minutes:

1. Speed: tokens/s of five presets by attention kernel, precision and ``--compile``, beside a plain
   loop and Hugging Face's Trainer on the same rows.  Tokens are counted without padding.
2. Losses of 2,000 steps beside those of the CPU, or of as many as the CPU takes in its time.
3. A resumed run beside one that was not stopped, bit by bit.

Each section has its share of the time; what does not fit is listed.  It needs what the extra ``train`` needs,
and no network.  Where nothing can be installed, ``PYTHONPATH=src:.`` makes the packages
importable.  Hugging Face's Trainer needs accelerate.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from unittest import mock

import torch
from torch import Tensor
from transformers import PreTrainedModel

from bioshards.corpus.errors import OK, InvalidValueError
from bioshards.train.__main__ import main as train
from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.checkpoint import get_library_versions
from bioshards.train.data.loader import StepLoader
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import PretrainingDataset, manifest_of
from bioshards.train.distributed import autocast
from bioshards.train.models import attention
from bioshards.train.models.objectives import Objective
from bioshards.train.models.weights import build_objective
from bioshards.train.optim import Adam, FlatGradients, Lamb, learning_rate
from bioshards.train.presets import PRESETS
from bioshards.train.recipe import FAMILIES, TrainRecipe
from tests.bench.harness import gpu_peers

SPEED_PRESETS: Final = ("electra-small", "bio-electra", "electra-base", "pubmedbert", "bioalbert")
GOALS: Final = {"electra-small": 2.5e6, "pubmedbert": 0.7e6}
"""Tokens a second on one H200."""
TOLERANCES: Final = {"float32": 0.005, "bfloat16": 0.02, "float16": 0.02}
"""Relative difference to the CPU's losses in float32, of means over 100 steps, without dropout."""
SHARES: Final = {"speed": 0.7, "losses": 0.2, "resume": 0.1}
"""Shares of the sections in the time."""
LOSS_STEPS: Final = 2000
LOSS_WINDOW: Final = 100
CASE_SECONDS: Final = 30
"""Time that the last speed may take beyond its section."""
MICRO_BATCH_TOKENS: Final = 1 << 16
NUM_BATCHES: Final = 8
"""Batches that a speed is measured on, in turns."""
TINY_CHANGES: Final[Mapping[str, Any]] = {
    "hidden_size": 32,
    "num_layers": 1,
    "num_heads": 2,
    "intermediate_size": 64,
    "embedding_size": 32,
}


KERNELS: Final = ("automatic", "efficient", "padded")
"""Attention as the trainer chooses it, and what it is forced to."""


@dataclass(frozen=True)
class SpeedCase:
    """What a speed is measured of; ``kernel`` is a key of ``KERNELS`` or names a peer."""

    preset: str
    kernel: str
    precision: str
    is_compiled: bool

    def __str__(self) -> str:
        return f"{self.preset}, {self.kernel}, {self.precision}{', compiled' if self.is_compiled else ''}"


PLAIN_LOOP: Final = "plain loop"
HF_TRAINER: Final = "Hugging Face's Trainer"
DRY_KERNELS: Final = {
    "automatic": ("electra-small", "pubmedbert"),
    "padded": ("electra-small",),
    PLAIN_LOOP: ("electra-small", "pubmedbert"),
    HF_TRAINER: ("electra-small",),
}
"""Presets of a dry run by kernel."""


@dataclass
class GpuBench:
    """Inputs, the time of the section, and results so far."""

    data: list[str]
    vocab: str | None
    work: Path
    device: torch.device
    is_dry: bool
    section_end: float = 0.0
    results: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in SHARES})
    left_out: list[str] = field(default_factory=list)

    @property
    def seconds_left(self) -> float:
        """Seconds left of the section."""
        return self.section_end - time.monotonic()

    def find_set(self, family: str) -> str:
        """Return the first set that a family can be trained on.

        Raises:
            InvalidValueError: there is none.
        """
        for folder in self.data:
            if PretrainingDataset(folder).objective in FAMILIES[family].data_objectives:  # type: ignore[index]
                return folder
        raise InvalidValueError(f"no set for {family} is given")

    def make_loader(self, recipe: TrainRecipe) -> tuple[PretrainingDataset, StepLoader]:
        """Open the set of a recipe, and make the loader of its batches as single micro-batches."""
        dataset = PretrainingDataset(folder := self.find_set(recipe.family))
        vocabulary = self.vocab or manifest_of(folder).run.vocabulary
        pieces = PieceTable.load(vocabulary, dataset.vocabulary_size, dataset.vocabulary_sha256)
        return dataset, StepLoader(dataset, pieces, recipe, recipe.batch_size)

    def train(self, folder: Path, recipe: Mapping[str, object]) -> int:
        """Run the command of the trainer in this process."""
        sizes = TINY_CHANGES if self.is_dry else {}
        settings = {**sizes, **recipe, "device": self.device}
        words = [
            word for name, value in settings.items() for word in (f"--{name.replace('_', '-')}", str(value))
        ]
        vocab = ["--vocab", self.vocab] if self.vocab else []
        options = ["--preset", "tiny", "--family", "electra", "--no-verify"]
        with contextlib.redirect_stdout(sys.stderr):
            return train([self.find_set("electra"), "--output", str(folder), *vocab, *options, *words])


def format_error(error: Exception) -> str:
    """Return the first line of an error, or its type."""
    return str(error).split("\n")[0] or type(error).__name__


@contextlib.contextmanager
def limit_time(seconds: float) -> Iterator[None]:
    """Raise a ``TimeoutError`` in the main thread if a block takes longer."""

    def on_alarm(_number: int, _frame: object) -> None:
        raise TimeoutError("no time")

    previous = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, max(0.01, seconds))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


# Speed


def list_speed_cases() -> list[SpeedCase]:
    """Return the cases, the most important first: the last ones may not fit into the time."""
    ranked = [
        *((kernel, "bfloat16", False) for kernel in ("automatic", PLAIN_LOOP, HF_TRAINER)),
        *((kernel, "bfloat16", True) for kernel in ("automatic", PLAIN_LOOP)),
        *((kernel, "bfloat16", False) for kernel in ("efficient", "padded")),
        *(("automatic", precision, False) for precision in ("float16", "float32")),
    ]
    return [SpeedCase(preset, *settings) for settings in ranked for preset in SPEED_PRESETS]


def measure_speeds(bench: GpuBench) -> None:
    """Measure all cases that fit into the time."""
    for case in list_speed_cases():
        if bench.is_dry and (case.is_compiled or case.preset not in DRY_KERNELS.get(case.kernel, ())):
            continue
        if bench.seconds_left < 0:
            bench.left_out.append(f"speed: {case} (no time)")
            continue
        try:
            with limit_time(bench.seconds_left + CASE_SECONDS):
                bench.results["speed"].append({**asdict(case), **measure_speed(bench, case)})
        except Exception as error:  # the other cases are worth their time
            bench.left_out.append(f"speed: {case} ({format_error(error)})")
        gc.collect()
        if bench.device.type == "cuda":
            torch.compiler.reset()
            torch.cuda.empty_cache()


def measure_speed(bench: GpuBench, case: SpeedCase) -> dict[str, Any]:
    """Measure tokens a second and peak memory of a case, after a check of its attention kernel."""
    device, seconds = bench.device, 0.05 if bench.is_dry else 2.0
    is_peer = case.kernel not in KERNELS
    recipe = make_speed_recipe(bench, case)
    dataset, loader = bench.make_loader(recipe)
    batches = [loader.load_step(step) for step in range(NUM_BATCHES)]
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    torch.manual_seed(0)
    with device:
        objective = build_objective(recipe, dataset)
    if is_peer:
        pad_id = dataset.special_ids["[PAD]"]
        padded = [gpu_peers.pad_batch(batch, pad_id, dataset.max_seq_length) for [(batch, _)] in batches]
        model = gpu_peers.PeerModel(objective)
        if case.kernel == HF_TRAINER:
            num_steps, duration = gpu_peers.time_hf_trainer(model, padded, seconds, device)
        else:
            num_steps, duration = gpu_peers.time_plain_loop(model, padded, case.is_compiled, seconds, device)
    else:
        forced = None if case.kernel == "automatic" else case.kernel
        with mock.patch.object(attention, "forced_kernel", forced):
            check_kernels(objective, recipe, device)
            torch.set_float32_matmul_precision("high")  # as a run on a GPU does
            step = make_step(
                objective.to(device), recipe, lambda number: batches[number % len(batches)][0], device
            )
            num_steps, duration = gpu_peers.time_steps(step, seconds, device)
    # The steps after the warm-up take the batches in turns.
    counts = BatchCounts(
        *(sum(column) for column in zip(*(counts for [(_, counts)] in batches), strict=True))
    )
    passes = num_steps / len(batches)
    return {
        "tokens_per_second": counts.tokens * passes / duration,
        "steps": num_steps,
        "tokens_per_step": counts.tokens / len(batches),
        "device_memory_bytes": torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
    }


def make_speed_recipe(bench: GpuBench, case: SpeedCase) -> TrainRecipe:
    """Return the preset with one micro-batch a step; how many they are does not change the speed."""
    preset = PRESETS[case.preset]
    length = PretrainingDataset(bench.find_set(preset.family)).max_seq_length
    return replace(
        preset,
        **(TINY_CHANGES if bench.is_dry else {}),
        start_from="random",
        precision=case.precision,  # type: ignore[arg-type]
        compile=case.is_compiled and case.kernel in KERNELS,
        batch_size=4 if bench.is_dry else max(1, MICRO_BATCH_TOKENS // length),
    )


def make_step(
    objective: Objective,
    recipe: TrainRecipe,
    load: Callable[[int], tuple[Batch, BatchCounts]],
    device: torch.device,
) -> Callable[[int], Tensor]:
    """Return a function that trains a step, as a run of one process does, and returns its loss."""
    named_parameters = list(objective.named_parameters())
    gradients = FlatGradients(named_parameters)
    optimizer = (Lamb if recipe.optimizer == "lamb" else Adam)(
        named_parameters, bias_correction=recipe.bias_correction
    )
    forward: Any = torch.compile(objective, dynamic=False) if recipe.compile else objective

    def step(number: int) -> Tensor:
        batch, counts = load(number)
        gradients.zero()
        torch.manual_seed(number)
        with autocast(recipe.precision, device):
            sums = forward(batch.to(device))
        loss = objective.compute_loss(sums, counts._asdict())
        loss.backward()  # type: ignore[no-untyped-call]
        if math.isfinite(float(gradients.clip(recipe.grad_clip))):
            steps, peak_rate = recipe.steps, recipe.learning_rate
            optimizer.step(learning_rate(recipe.schedule, number, steps, recipe.warmup_steps, peak_rate))
        return loss.detach()

    return step


KERNEL_TOLERANCE: Final = 0.1
"""Largest difference of a kernel from padded attention on normal numbers.  bfloat16 rounds 4 by up to 0.02;
a wrong layout changes results by 1 and more."""
ONE_TOKEN_ROWS: Final = 200
"""Rows that show what dropout drops: their only probability is 1, and without it the output is 0."""


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


# Losses


def compare_losses(bench: GpuBench) -> None:
    """Compare means of losses over windows with the CPU's, which decides how many steps there are."""
    window = 2 if bench.is_dry else LOSS_WINDOW
    recipe = replace(
        PRESETS["tiny"],
        **(TINY_CHANGES if bench.is_dry else {}),
        family="electra",
        steps=LOSS_STEPS,
        dropout=0.0,
        attention_dropout=0.0,
        precision="float32",
    )
    cpu_end = time.monotonic() + 0.6 * bench.seconds_left
    expected = run_losses(
        bench, recipe, torch.device("cpu"), 4 if bench.is_dry else LOSS_STEPS, window, cpu_end
    )
    num_steps = len(expected) * window
    if num_steps < LOSS_STEPS and not bench.is_dry:
        bench.left_out.append(f"losses: steps {num_steps + 1:,} to {LOSS_STEPS:,} (no time on the CPU)")
    for precision, tolerance in TOLERANCES.items():
        if bench.seconds_left < 0:
            bench.left_out.append(f"losses: {precision} (no time)")
            continue
        try:
            other = replace(recipe, precision=precision)  # type: ignore[arg-type]
            losses = run_losses(bench, other, bench.device, num_steps, window, bench.section_end)
        except Exception as error:
            bench.left_out.append(f"losses: {precision} ({format_error(error)})")
            continue
        differences = [abs(one / cpu - 1) for one, cpu in zip(losses, expected, strict=False)]
        bench.results["losses"].append(
            {
                "precision": precision,
                "steps": len(losses) * window,
                "largest_difference": max(differences, default=None),
                "tolerance": tolerance,
                "is_equal": bool(differences) and max(differences) <= tolerance,
                "last_loss": losses[-1] if losses else None,
                "last_loss_of_cpu": expected[len(losses) - 1] if losses else None,
            }
        )


def run_losses(
    bench: GpuBench, recipe: TrainRecipe, device: torch.device, num_steps: int, window: int, end: float
) -> list[float]:
    """Train until a time, and return the mean loss of each complete window."""
    dataset, loader = bench.make_loader(recipe)
    torch.manual_seed(recipe.seed)
    objective = build_objective(recipe, dataset).to(device)
    step = make_step(objective, recipe, lambda number: loader.load_step(number)[0], device)
    matmul_precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")  # no TF32: float32 is that of the CPU
    losses: list[float] = []
    for first in range(0, num_steps - window + 1, window):
        losses.append(float(torch.stack([step(first + number) for number in range(window)]).mean()))
        if time.monotonic() > end:
            break
    torch.set_float32_matmul_precision(matmul_precision)
    return losses


# Resuming


def compare_resumed(bench: GpuBench) -> None:
    """Compare a resumed run with one that was not stopped, and two equal runs with each other."""
    steps = 4 if bench.is_dry else 60
    recipe = {"steps": steps, "batch_size": 8 if bench.is_dry else 64, "log_every": 1}
    states = {}
    for name in ("whole", "whole again", "resumed"):
        folder = bench.work / name.replace(" ", "-")
        if name == "resumed":
            code = bench.train(folder, {**recipe, "stop_after": steps // 2})
            assert code == OK, f"the trainer failed before it stopped: exit code {code}"
        code = bench.train(folder, recipe)
        assert code == OK, f"the trainer failed: exit code {code}"
        states[name] = torch.load(folder / f"step-{steps:07d}" / "state.pt", map_location="cpu")["model"]
    for name in ("whole again", "resumed"):
        largest = max(
            float((states["whole"][key] - value).abs().max()) for key, value in states[name].items()
        )
        bench.results["resume"].append(
            {"run": name, "steps": steps, "largest_weight_difference": largest, "same_bits": largest == 0}
        )


SECTIONS: Final = {
    "speed": measure_speeds,
    "losses": compare_losses,
    "resume": compare_resumed,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all sections, and write and print what they measured as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gpu", description=__doc__)
    parser.add_argument("--data", action="append", required=True, help="a pretraining set; repeatable")
    parser.add_argument("--vocab", help="the folder of their vocabulary, if that is not where it was")
    parser.add_argument("--output", type=Path, default=Path("build/bench-gpu"), help="(%(default)s)")
    parser.add_argument("--minutes", type=float, default=9.5, help="of the whole run (%(default)s)")
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu", help="(%(default)s)"
    )
    parser.add_argument("--dry", action="store_true", help="tiny models and few steps, to try the script")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    output: Path = options.output.resolve()
    shutil.rmtree(output, ignore_errors=True)
    output.mkdir(parents=True)
    device = torch.device(options.device)
    bench = GpuBench(options.data, options.vocab, output, device, options.dry)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {os.cpu_count()} cores"
    versions = {**get_library_versions(), "cuda": torch.version.cuda}
    share_used = 0.0
    for section, run in SECTIONS.items():
        share_used += SHARES[section]
        bench.section_end = started + 60 * options.minutes * share_used
        try:
            run(bench)
        except Exception as error:  # the other sections are worth their time
            bench.left_out.append(f"{section}: the rest ({type(error).__name__}: {error})")
        facts = {"device": name, "versions": versions, "is_dry": bench.is_dry, "goals": GOALS}
        report = {**facts, **bench.results, "left_out": bench.left_out}
        (output / "report.json").write_text(json.dumps(report, indent=1))
    print((output / "report.json").read_text())


if __name__ == "__main__":
    main()
