"""``python -m bioshards.train``: pretrain a model, or plot training curves.

DATA --output RUN   train on a finished pretraining set; rerun the command to resume
plot RUN...         plot the curves of runs as PNG and HTML
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from threading import Event

from bioshards.corpus.exit_codes import INTERRUPTED, OK
from bioshards.corpus.ui.argument_parser import ExactArgumentParser
from bioshards.corpus.ui.error_report import report_error
from bioshards.corpus.ui.progress_line import ProgressLine

try:
    from bioshards.train.config.model_presets import PRESETS
    from bioshards.train.config.recipe import TrainRecipe
    from bioshards.train.loop.train_job import TrainJob
    from bioshards.train.loop.training_run import train

    from .config import dataclass_options
    from .loop import checkpoint
    from .plot import plot
except ImportError as error:
    print(f"train: a library is missing ({error}): pip install 'bioshards[train]'", file=sys.stderr)
    sys.exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    progress, args = ProgressLine(), None
    try:
        if argv[:1] == ["plot"]:
            plot_args = _build_plot_parser().parse_args(argv[1:])
            return _report(
                progress,
                "\n".join(plot(plot_args.runs, plot_args.output or f"{plot_args.runs[0]}/curves")),
            )
        args = _build_parser().parse_args(argv)
        with _stop_on_signals(progress) as stop:
            return _report(progress, train(_job_from_args(args, argv), progress, stop))
    except KeyboardInterrupt:
        return _report(
            progress, f"stopped. {_format_resume_hint(args.output)}" if args else "stopped", INTERRUPTED
        )
    except Exception as error:
        return _report(progress, *report_error(error, "lower --micro-batch-size"))


def _format_resume_hint(run: str) -> str:
    last_checkpoint = checkpoint.find_latest(run)
    return (
        f"Rerun the command to resume from {last_checkpoint}"
        if last_checkpoint
        else "No checkpoint was saved: rerun the command to start again"
    )


def _report(progress: ProgressLine, message: str, code: int = OK) -> int:
    progress.clear()
    rank = os.environ.get("RANK", "0")
    prefix = "train" if rank == "0" else f"train, process {rank}"
    with contextlib.suppress(OSError):  # a closed pipe does not change the result
        if code == INTERRUPTED and rank != "0":
            pass  # printed by the main process
        elif code != OK:
            print(f"{prefix}: {message}", file=sys.stderr)
        elif message:
            print(message, flush=True)
    return code


@contextlib.contextmanager
def _stop_on_signals(progress: ProgressLine) -> Iterator[Event]:
    """Return an event that Ctrl-C and SIGTERM set; a second signal raises KeyboardInterrupt."""
    stop = Event()

    def on_signal(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        progress("stopping after this step with a checkpoint; press Ctrl-C again to stop now")

    previous_handlers = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _build_plot_parser() -> argparse.ArgumentParser:
    parser = ExactArgumentParser(
        prog="python -m bioshards.train plot",
        description="Plot training curves of runs as PNG and HTML.",
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of training runs")
    parser.add_argument(
        "--output", metavar="FILE", help="output path without extension (default: curves in the first run)"
    )
    return parser


def _build_parser() -> argparse.ArgumentParser:
    parser = ExactArgumentParser(
        prog="python -m bioshards.train",
        description="Pretrain a model. Rerun the command to resume a stopped run. "
        "'python -m bioshards.train plot RUN...' plots training curves.",
    )
    parser.add_argument("data", metavar="DATA", help="finished output of shards_to_pretraining")
    parser.add_argument("--output", required=True, metavar="RUN", help="folder of the run")
    parser.add_argument(
        "--vocab", metavar="FOLDER", help="vocabulary of the pretraining set, if it was moved"
    )
    parser.add_argument(
        "--preset", choices=PRESETS, default="tiny", help="recipe; --config and options override it"
    )
    parser.add_argument(
        "--config", metavar="FILE.toml", help="TOML file of recipe fields: lines of NAME = VALUE"
    )
    parser.add_argument(
        "--init-checkpoint", metavar="FOLDER", help="Hugging Face checkpoint with the initial weights"
    )
    parser.add_argument(
        "--continue-from",
        metavar="RUN",
        help="run to continue on this data, with its weights, optimizer state and step",
    )
    _add_run_options(parser.add_argument_group("run options"))
    dataclass_options.add_arguments(
        parser.add_argument_group("recipe (defaults: those of tiny)"), TrainRecipe
    )
    return parser


def _add_run_options(group: argparse._ActionsContainer) -> None:
    group.add_argument("--device", help="cpu, cuda or cuda:1 (default: a GPU if available)")
    for name, default, help_text in (
        ("micro-batch-size", None, "maximum rows in a forward pass (default: by memory)"),
        ("log-every", None, "steps between lines in log.jsonl (default: by --steps)"),
        ("save-every", None, "steps between checkpoints (default: by --steps)"),
        ("validate-every", None, "steps between validations (default: by --steps)"),
        ("max-validation-rows", 1024, "maximum rows to validate on (default: %(default)s)"),
        ("keep-checkpoints", 3, "checkpoints to keep (default: %(default)s)"),
    ):
        group.add_argument(f"--{name}", type=int, default=default, metavar="N", help=help_text)
    group.add_argument(
        "--no-verify", action="store_true", help="do not verify the SHA-256 of the shards before a new run"
    )


def _job_from_args(args: argparse.Namespace, argv: Sequence[str]) -> TrainJob:
    changes = dataclass_options.from_toml(args.config, TrainRecipe) if args.config else {}
    changes |= dataclass_options.from_args(args, TrainRecipe)
    return TrainJob(
        data=args.data,
        output=args.output,
        recipe=dataclasses.replace(PRESETS[args.preset], **changes),
        preset=args.preset,
        vocabulary=args.vocab,
        init_checkpoint=args.init_checkpoint,
        continue_from=args.continue_from,
        device=args.device,
        micro_batch_size=args.micro_batch_size,
        log_every=args.log_every,
        save_every=args.save_every,
        validate_every=args.validate_every,
        keep_checkpoints=args.keep_checkpoints,
        max_validation_rows=args.max_validation_rows,
        verify_checksums=not args.no_verify,
        command=["python", "-m", "bioshards.train", *argv],
    )


if __name__ == "__main__":
    sys.exit(main())
