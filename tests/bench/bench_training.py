"""Speed of the trainer: ``python -m tests.bench.bench_training``.

A small ELECTRA model on a CPU.  Measured are tokens a second without padding, and the share of time in which
the model waits for batches, both from the logs of the runs without their first lines.  The set is the given
one, or Bio-ELECTRA's of the real text of BIOSHARDS_DATA.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
from pathlib import Path

from tests.bench.harness import timing
from tests.bench.harness.bench_runner import TRIES, BenchRunner
from tests.bench.harness.text_corpora import build_pretraining_set
from tests.bench.harness.timing import Figure

LOG_EVERY = 5


def run_trainer(
    bench: BenchRunner, data: str, vocabulary: str, options: argparse.Namespace
) -> tuple[float, float]:
    """Run the trainer; return tokens a second and the share of waiting."""
    out = bench.work / "run"
    shutil.rmtree(out, ignore_errors=True)
    trainer_options = (
        "--steps",
        str(options.steps),
        "--log-every",
        str(LOG_EVERY),
        "--no-verify",
        "--max-validation-rows",
        "1",
    )
    argv = (
        "-m",
        "bioshards.train",
        data,
        "--vocab",
        vocabulary,
        "--output",
        str(out),
        *trainer_options,
    )
    bench.time_python("training", *argv, tries=options.tries)
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    steady_lines = [line for line in lines if line["split"] == "train"][1:]
    return tuple(
        statistics.fmean(line[what] for line in steady_lines)
        for what in ("tokens_per_second", "data_wait_fraction")
    )  # type: ignore[return-value]


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_training", description=__doc__)
    parser.add_argument("--data", help="a pretraining set; default: made of BIOSHARDS_DATA")
    parser.add_argument("--vocab", help="the folder of its vocabulary, if that is not where it was")
    parser.add_argument(
        "--work", type=Path, default=Path("build/bench-training"), help="default: %(default)s"
    )
    parser.add_argument("--steps", type=int, default=30, help="of a run (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--tries", type=int, default=TRIES, help="of a run on a busy machine (%(default)s)")
    options = parser.parse_args()
    data, vocabulary = build_pretraining_set(options.data, options.vocab, Path("build/bench-text").resolve())
    timing.adopt_orphans()
    bench = BenchRunner(options.work.resolve())
    found = [run_trainer(bench, data, vocabulary, options) for _ in range(options.rounds)]
    waiting = [100 * share for _, share in found]
    figures = [
        Figure("speed", [speed for speed, _ in found], "tokens/s"),
        Figure("waiting for batches, share of time", waiting, "%", "<=", 1.0),
    ]
    print(
        f"{os.cpu_count()} cores; a model of 2 layers of 128, 16 rows a "
        f"step.\n\n{timing.format_table(figures)}"
    )


if __name__ == "__main__":
    main()
