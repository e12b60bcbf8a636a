"""The trainer and the evaluation on a GPU: ``python -m tests.bench.gpu --data SET --benchmarks DIR``.

In one run of at most ten minutes:

1. Speed: tokens/s and MFU of five presets by attention kernel, precision and ``--compile``, beside a plain
   loop and Hugging Face's Trainer on the same rows.  Tokens are counted without padding.
2. Losses of 2,000 steps beside those of the CPU, or of as many as the CPU takes in its time.
3. A resumed run beside one that was not stopped, bit by bit.
4. Fine-tuning on ten benchmarks of BLURB with a model that is trained here, seed after seed.

Each section has its share of the time; what does not fit is listed.  It needs what the extra ``train`` needs,
and no network.  Where nothing can be installed, ``PYTHONPATH=src:.`` makes the packages
importable.  Hugging Face's Trainer needs accelerate.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final
from unittest import mock

import torch

from bioshards.corpus.errors import INTERRUPTED, OK, InvalidValueError
from bioshards.evaluate.__main__ import main as evaluate
from bioshards.train.__main__ import main as train
from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.config.model_families import FAMILIES
from bioshards.train.config.model_presets import PRESETS
from bioshards.train.config.recipe import TrainRecipe
from bioshards.train.data.loader import BatchPartition, StepLoader
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import PretrainingDataset, manifest_of
from bioshards.train.loop.distributed import ProcessGroup
from bioshards.train.loop.run_dir import get_library_versions
from bioshards.train.loop.trainer import MetricSums, Trainer
from bioshards.train.models import attention, factory, flops
from bioshards.train.models.objective import Objective
from tests.bench.harness import gpu_peers
from tests.support.paths import REPOSITORY

SPEED_PRESETS: Final = ("electra-small", "bio-electra", "electra-base", "pubmedbert", "bioalbert-base")
GOALS: Final = {"electra-small": 2.5e6, "pubmedbert": 0.7e6}
"""Tokens a second on one H200."""
MFU_GOAL: Final = 0.45
SMALL_BENCHMARKS: Final = (
    *("biosses", "gad", "pubmedqa", "hoc", "ncbi-disease", "bc5-disease", "bc5-chem", "ddi", "chemprot"),
    "bc2gm",
)
"""Ten of BLURB's, by the time that fine-tuning takes."""
TOLERANCES: Final = {"float32": 0.005, "bfloat16": 0.02, "float16": 0.02}
"""Relative difference to the CPU's losses in float32, of means over 100 steps, without dropout."""
SHARES: Final = {"speed": 0.5, "losses": 0.15, "resume": 0.05, "benchmarks": 0.3}
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


@dataclass(frozen=True)
class Kernel:
    """A way to force an attention kernel.

    Attributes:
        changes: recipe fields that it needs.
        force: makes the context manager that forces it.
    """

    changes: Mapping[str, Any] = field(default_factory=dict)
    force: Callable[[], contextlib.AbstractContextManager[Any]] = contextlib.nullcontext


KERNELS: Final = {
    "automatic": Kernel(),
    "no attention dropout": Kernel({"attention_dropout": 0.0}),
    "efficient": Kernel(force=lambda: mock.patch.object(attention, "forced_kernel", "efficient")),
    "padded": Kernel(force=lambda: mock.patch.object(attention, "forced_kernel", "padded")),
}


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
    benchmarks: str | None
    work: Path
    device: torch.device
    is_dry: bool
    minutes: float
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
        partition = BatchPartition(recipe.batch_size, recipe.batch_size)
        return dataset, StepLoader(dataset, pieces, recipe, partition)

    def train(self, folder: Path, recipe: Mapping[str, object], preset: str = "tiny") -> int:
        """Run the command of the trainer in this process."""
        sizes = TINY_CHANGES if self.is_dry else {}
        words = [word for item in {**sizes, **recipe}.items() for word in _format_option(*item)]
        family = PRESETS[preset].family if preset != "tiny" else "electra"
        vocab = ["--vocab", self.vocab] if self.vocab else []
        options = ["--preset", preset, "--family", family, "--device", str(self.device), "--no-verify"]
        with contextlib.redirect_stdout(sys.stderr):
            return train([self.find_set(family), "--output", str(folder), *vocab, *options, *words])


def _format_option(name: str, value: object) -> list[str]:
    option = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [option] if value else []
    return [option, str(value)]


def format_error(error: Exception) -> str:
    """Return the first line of an error, or its type."""
    return str(error).split("\n")[0] or type(error).__name__


@contextlib.contextmanager
def call_after(seconds: float, action: Callable[[], object]) -> Iterator[None]:
    """Call a function in the main thread if a block takes longer."""

    def on_alarm(_number: int, _frame: object) -> None:
        action()

    previous = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, max(0.01, seconds))
    try:
        with contextlib.suppress(KeyboardInterrupt):  # the action may come after the command
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def raise_timeout() -> None:
    """End a block of this process."""
    raise TimeoutError("no time")


def interrupt() -> None:
    """Stop the command that runs in this process, as Ctrl-C does."""
    os.kill(os.getpid(), signal.SIGINT)


# Speed


def list_speed_cases() -> list[SpeedCase]:
    """Return the cases, the most important first: the last ones may not fit into the time."""
    precisions = ("bfloat16", "float16", "float32")
    ranked = [
        *((kernel, "bfloat16", False) for kernel in ("automatic", PLAIN_LOOP, HF_TRAINER)),
        ("automatic", "bfloat16", True),
        *((kernel, "bfloat16", False) for kernel in KERNELS),
        *(("automatic", precision, False) for precision in precisions),
        (PLAIN_LOOP, "bfloat16", True),
        *((kernel, precision, False) for precision in precisions for kernel in KERNELS),
        *((kernel, precision, True) for precision in precisions for kernel in KERNELS),
    ]
    return [SpeedCase(preset, *settings) for settings in dict.fromkeys(ranked) for preset in SPEED_PRESETS]


def measure_speeds(bench: GpuBench) -> None:
    """Measure all cases that fit into the time."""
    for case in list_speed_cases():
        if bench.is_dry and (case.is_compiled or case.preset not in DRY_KERNELS.get(case.kernel, ())):
            continue
        if bench.seconds_left < 0:
            bench.left_out.append(f"speed: {case} (no time)")
            continue
        try:
            with call_after(bench.seconds_left + CASE_SECONDS, raise_timeout):
                bench.results["speed"].append({**asdict(case), **measure_speed(bench, case)})
        except Exception as error:  # the other cases are worth their time
            bench.left_out.append(f"speed: {case} ({format_error(error)})")
        gc.collect()
        if bench.device.type == "cuda":
            torch.compiler.reset()
            torch.cuda.empty_cache()


def measure_speed(bench: GpuBench, case: SpeedCase) -> dict[str, Any]:
    """Measure tokens a second, MFU and peak memory of a case."""
    device, seconds = bench.device, 0.05 if bench.is_dry else 2.0
    is_peer = case.kernel not in KERNELS
    kernel = Kernel() if is_peer else KERNELS[case.kernel]
    recipe = make_speed_recipe(bench, case, kernel)
    dataset, loader = bench.make_loader(recipe)
    batches = [loader.load_step(step) for step in range(NUM_BATCHES)]
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    torch.manual_seed(0)
    with device:
        objective = factory.build_objective(recipe.model_config, dataset)
    if is_peer:
        pad_id = dataset.special_ids["[PAD]"]
        padded = [gpu_peers.pad_batch(batch, pad_id, dataset.max_seq_length) for [(batch, _)] in batches]
        model = gpu_peers.PeerModel(objective)
        if case.kernel == HF_TRAINER:
            num_steps, duration = gpu_peers.time_hf_trainer(model, padded, seconds, device)
        else:
            num_steps, duration = gpu_peers.time_plain_loop(model, padded, case.is_compiled, seconds, device)
    else:
        with kernel.force():
            step = make_step(make_trainer(objective, recipe, device), batches)
            num_steps, duration = gpu_peers.time_steps(step, seconds, device)
    # The steps after the warm-up take the batches in turns.
    counts = BatchCounts(
        *(sum(column) for column in zip(*(counts for [(_, counts)] in batches), strict=True))
    )
    passes = num_steps / len(batches)
    peak = find_peak(device, torch.float32 if case.precision == "float32" else torch.bfloat16)
    return {
        "tokens_per_second": counts.tokens * passes / duration,
        "mfu": objective.count_training_flops(counts) * passes / duration / peak,
        "steps": num_steps,
        "tokens_per_step": counts.tokens / len(batches),
        "device_memory_bytes": torch.cuda.max_memory_allocated(device) if device.type == "cuda" else None,
    }


def make_trainer(objective: Objective, recipe: TrainRecipe, device: torch.device) -> Trainer:
    """Make the trainer of a single process whose batches are one micro-batch."""
    return Trainer(objective, recipe, ProcessGroup(0, 1, device))


@functools.cache
def find_peak(device: torch.device, dtype: torch.dtype) -> float:
    """Return the peak FLOP/s of a device."""
    return flops.get_peak(device, dtype)


def make_speed_recipe(bench: GpuBench, case: SpeedCase, kernel: Kernel) -> TrainRecipe:
    """Return the preset with one micro-batch a step; how many they are does not change the speed."""
    preset = PRESETS[case.preset]
    length = PretrainingDataset(bench.find_set(preset.family)).max_seq_length
    return replace(
        preset,
        **(TINY_CHANGES if bench.is_dry else {}),
        **kernel.changes,
        start_from="random",
        precision=case.precision,  # type: ignore[arg-type]
        compile=case.is_compiled and case.kernel in KERNELS,
        batch_size=4 if bench.is_dry else max(1, MICRO_BATCH_TOKENS // length),
    )


def make_step(trainer: Trainer, batches: Sequence[list[tuple[Batch, BatchCounts]]]) -> Callable[[int], None]:
    """Return a function that trains a step on the batches in turns."""
    metric_sums = MetricSums()

    def step(number: int) -> None:
        micro_batches = batches[number % len(batches)]
        [(_, counts)] = micro_batches
        trainer.update(number, micro_batches, counts._asdict(), metric_sums)

    return step


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
    trainer = make_trainer(factory.build_objective(recipe.model_config, dataset).to(device), recipe, device)
    matmul_precision = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")  # no TF32: float32 is that of the CPU
    losses, metric_sums = [], MetricSums()
    for number in range(num_steps):
        micro_batches = loader.load_step(number)
        trainer.update(number, micro_batches, micro_batches[0][1]._asdict(), metric_sums)
        if (number + 1) % window == 0:
            losses.append(
                metric_sums.compute_metrics(trainer.training_objective, ProcessGroup(0, 1, device))["loss"]
            )
            metric_sums = MetricSums()
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
        with stop_after(steps // 2) if name == "resumed" else contextlib.nullcontext():
            code = bench.train(folder, recipe)
        if name == "resumed":
            assert code == INTERRUPTED, f"the trainer was not stopped: exit code {code}"
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


@contextlib.contextmanager
def stop_after(step: int) -> Iterator[None]:
    """Press Ctrl-C after a step."""
    update = Trainer.update

    def patched(trainer: Trainer, number: int, *rest: Any) -> Any:
        result = update(trainer, number, *rest)
        if number + 1 == step:
            interrupt()
        return result

    with mock.patch.object(Trainer, "update", patched):
        yield


# Benchmarks


def score_benchmarks(bench: GpuBench) -> None:
    """Train a model for a third of the time, then fine-tune it: all tasks with a seed, then with the next."""
    if bench.benchmarks is None:
        bench.left_out.append("benchmarks: all (no --benchmarks)")
        return
    checkpoint = train_model(bench)
    scores = bench.work / "scores"
    for seed in range(1 if bench.is_dry else 5):
        for task in SMALL_BENCHMARKS[:2] if bench.is_dry else SMALL_BENCHMARKS:
            seconds = bench.seconds_left
            argv = ["run", str(checkpoint), "--benchmarks", bench.benchmarks, "--output", str(scores)]
            argv += [
                "--tasks",
                f"blurb/{task}",
                "--device",
                str(bench.device),
                "--model-name",
                "trained here",
            ]
            argv += ["--first-seed", str(seed), "--seeds", "1"]
            if bench.is_dry:
                argv += ["--epochs", "1", "--max-seq-length", "32"]
            code = INTERRUPTED
            if seconds > 0:
                with contextlib.redirect_stdout(sys.stderr), call_after(seconds, interrupt):
                    code = evaluate(argv)
            path = scores / "blurb" / task / f"seed-{seed}.json"
            if not path.exists():
                reason = "no time" if code == INTERRUPTED else f"exit code {code}"
                bench.left_out.append(f"benchmarks: {task}, seed {seed} ({reason})")
                continue
            result = json.loads(path.read_text())
            bench.results["benchmarks"].append(
                {
                    "task": task,
                    "seed": seed,
                    "score": result["scores"]["test"][result["main_score"]],
                    "majority": result["scores"]["majority"][result["main_score"]],
                    "metric": result["main_score"],
                    "seconds": result["seconds"],
                    "parameters": result["model"]["parameters"],
                }
            )


def train_model(bench: GpuBench) -> Path:
    """Train electra-small in large batches for a third of the time, and return its checkpoint."""
    speeds = [
        row["tokens_per_second"]
        for row in bench.results["speed"]
        if (row["preset"], row["kernel"], row["is_compiled"]) == ("electra-small", "automatic", False)
    ]
    dataset = PretrainingDataset(bench.find_set("electra"))
    rows = 8 if bench.is_dry else max(1, MICRO_BATCH_TOKENS // dataset.max_seq_length)
    tokens_per_step = rows * dataset.tokens / dataset.rows
    seconds = bench.seconds_left / 3
    # Four fifths of the measured speed: the loader and the log take part of the time.
    steps = 3 if bench.is_dry or not speeds else max(3, int(0.8 * speeds[0] * seconds / tokens_per_step))
    recipe = {
        "steps": steps,
        "batch_size": rows,
        "warmup": 0.1,
        "precision": "bfloat16",
        "learning_rate": 1e-3,
    }
    folder = bench.work / "model"
    with call_after(1.5 * seconds + 10, interrupt):
        code = bench.train(folder, recipe, "electra-small")
    if code != OK:
        bench.left_out.append(f"benchmarks: the last steps of the model (exit code {code})")
    [*_, checkpoint] = sorted(folder.glob("step-*"))
    return checkpoint / "hf"


# Report


def format_report(bench: GpuBench, facts: Mapping[str, Any]) -> str:
    """Return the results as Markdown."""
    lines = [
        f"{facts['device']}, commit {facts['commit']}, {facts['minutes']:.1f} min; {facts['versions']}",
        "",
    ]
    best_speeds = {
        preset: max(
            (row["tokens_per_second"] for row in bench.results["speed"] if row["preset"] == preset), default=0
        )
        for preset in GOALS
    }
    goals = [f"{preset} {best_speeds[preset]:,.0f} of {goal:,.0f} tokens/s" for preset, goal in GOALS.items()]
    best_mfu = max((row["mfu"] for row in bench.results["speed"]), default=0)
    lines += [f"Goals for an H200: {', '.join(goals)}; best MFU {best_mfu:.2f} of {MFU_GOAL}", ""]
    for name, rows in bench.results.items():
        lines += [f"## {name}", "", *_format_table(rows), ""]
    lines += ["## left out", "", *(f"* {item}" for item in bench.left_out or ["nothing"]), ""]
    return "\n".join(lines)


def _format_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    if not rows:
        return ["nothing"]
    names = list(rows[0])
    cells = [[_format_cell(row[name]) for name in names] for row in rows]
    return [
        f"| {' | '.join(line)} |"
        for line in ([n.replace("_", " ") for n in names], ["---"] * len(names), *cells)
    ]


def _format_cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else "–" if value is None else str(value)


def find_commit() -> str:
    """Return the commit of the working tree; "unknown" without git."""
    command = ["git", "describe", "--always", "--dirty"]
    try:
        completed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    except OSError:
        return "unknown"
    return completed.stdout.strip() or "unknown"


SECTIONS: Final = {
    "speed": measure_speeds,
    "losses": compare_losses,
    "resume": compare_resumed,
    "benchmarks": score_benchmarks,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run all sections, and write FILE.md and FILE.json."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.gpu", description=__doc__)
    parser.add_argument("--data", action="append", required=True, help="a pretraining set; repeatable")
    parser.add_argument("--vocab", help="the folder of their vocabulary, if that is not where it was")
    parser.add_argument("--benchmarks", help="directory of the benchmarks")
    parser.add_argument("--output", type=Path, default=Path("build/bench-gpu/report"), help="(%(default)s)")
    parser.add_argument("--minutes", type=float, default=9.5, help="of the whole run (%(default)s)")
    parser.add_argument(
        "--device", default="cuda" if torch.cuda.is_available() else "cpu", help="(%(default)s)"
    )
    parser.add_argument("--dry", action="store_true", help="tiny models and few steps, to try the script")
    options = parser.parse_args(arguments)
    started = time.monotonic()
    output = options.output.resolve()
    work = output.with_name(f"{output.name}-work")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    device = torch.device(options.device)
    bench = GpuBench(
        options.data, options.vocab, options.benchmarks, work, device, options.dry, options.minutes
    )
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {os.cpu_count()} cores"
    facts: dict[str, Any] = {
        "device": name,
        "commit": find_commit(),
        "versions": {**get_library_versions(), "cuda": torch.version.cuda},
    }
    share_used = 0.0
    for section, run in SECTIONS.items():
        share_used += SHARES[section]
        bench.section_end = started + 60 * options.minutes * share_used
        try:
            run(bench)
        except Exception as error:  # the other sections are worth their time
            bench.left_out.append(f"{section}: the rest ({type(error).__name__}: {error})")
        facts["minutes"] = (time.monotonic() - started) / 60
        report = {**facts, "is_dry": bench.is_dry, **bench.results, "left_out": bench.left_out}
        output.with_suffix(".json").write_text(json.dumps(report, indent=1))
        output.with_suffix(".md").write_text(format_report(bench, facts))
    print(output.with_suffix(".md").read_text())


if __name__ == "__main__":
    main()
