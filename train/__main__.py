"""``python -m bioshards.train``: pretrain a model, or draw how it went.

DATA --output RUN      train on a finished pretraining set; the same command again goes on
plot RUN...         the curves of one run or several, as a picture and a page
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
from typing import Any

from bioshards.corpus.exit_codes import INTERRUPTED, OK
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
    """Run the command; returns its exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    progress, args = ProgressLine(), None
    try:
        if argv[:1] == ["plot"]:
            plot_args = _build_plot_parser().parse_args(argv[1:])
            return _report(
                progress,
                "\n".join(plot(plot_args.runs, plot_args.outputput or f"{plot_args.runs[0]}/curves")),
            )
        args = _build_parser().parse_args(argv)
        with _stop_on_signals(progress) as stop:
            return _report(progress, train(_job_from_args(args, argv), progress, stop))
    except KeyboardInterrupt:
        return _report(
            progress, f"stopped. {_format_resume_hint(args.output)}" if args else "stopped", INTERRUPTED
        )
    except Exception as error:
        return _report(progress, *report_error(error, "give a lower --micro-batch-size"))


def _format_resume_hint(run: str) -> str:
    last_checkpoint = checkpoint.find_latest(run)
    return (
        f"The same command goes on from {last_checkpoint}"
        if last_checkpoint
        else "Nothing was learned yet: the same command begins anew"
    )


def _report(progress: ProgressLine, message: str, code: int = OK) -> int:
    progress.clear()
    rank = os.environ.get("RANK", "0")
    prefix = "train" if rank == "0" else f"train, process {rank}"
    with contextlib.suppress(OSError):  # nobody reads it: what was done is done
        if code == INTERRUPTED and rank != "0":
            pass  # the first says it
        elif code != OK:
            print(f"{prefix}: {message}", file=sys.stderr)
        elif message:
            print(message, flush=True)
    return code


@contextlib.contextmanager
def _stop_on_signals(progress: ProgressLine) -> Iterator[Event]:
    """What Ctrl-C and SIGTERM set; a second one ends the process at once."""
    stop = Event()

    def on_signal(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        progress("stopping after this step, with a checkpoint; once more to stop at once")

    previous_handlers = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def _build_plot_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bioshards.train plot", description="Draw the curves of runs, as PNG and HTML."
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs")
    parser.add_argument(
        "--output", metavar="FILE", help="what to write, without an ending; else curves in the first run"
    )
    return parser


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bioshards.train",
        description="Pretrain a model. A run that was stopped goes on by the same command. "
        "'python -m bioshards.train plot RUN...' draws how it went.",
    )
    parser.add_argument("data", metavar="DATA", help="a finished output of shards_to_pretraining")
    parser.add_argument("--output", required=True, metavar="RUN", help="the folder to write")
    parser.add_argument("--vocab", metavar="FOLDER", help="its vocabulary, if that is no longer where it was")
    parser.add_argument("--preset", choices=PRESETS, default="tiny", help="a recipe; what follows changes it")
    parser.add_argument(
        "--config", metavar="FILE.toml", help="lines of NAME = VALUE: the names below, with _ for -"
    )
    parser.add_argument(
        "--init-checkpoint", metavar="FOLDER", help="begin from a Hugging Face checkpoint's weights"
    )
    parser.add_argument(
        "--continue-from",
        metavar="RUN",
        help="go on from another run, on these data: weights, Adam, step",
    )
    _add_run_options(parser.add_argument_group("how it is run"))
    dataclass_options.add_arguments(
        parser.add_argument_group("the recipe (defaults: those of tiny)"), TrainRecipe
    )
    return parser


def _add_run_options(group: Any) -> None:
    group.add_argument("--device", help="cpu, cuda, cuda:1; else a GPU where there is one")
    for name, option_type, default, help_text in (
        ("micro-batch-size", int, None, "rows in a forward pass, at most; else as many as fit"),
        ("log-every", int, None, "steps between lines in log.jsonl; else by --steps"),
        ("save-every", int, None, "steps between checkpoints; else by --steps"),
        ("validate-every", int, None, "steps between validations; else by --steps"),
        ("max-validation-rows", int, 1024, "rows to validate on, at most (%(default)s)"),
        ("keep-checkpoints", int, 3, "checkpoints that stay (%(default)s)"),
    ):
        group.add_argument(f"--{name}", type=option_type, default=default, metavar="N", help=help_text)
    group.add_argument(
        "--no-verify", action="store_true", help="do not compare the shards' SHA-256 at the beginning"
    )


def _job_from_args(args: Any, argv: Sequence[str]) -> TrainJob:
    changes = dataclass_options.from_toml(args.config, TrainRecipe) if args.config else {}
    changes |= dataclass_options.from_args(args, TrainRecipe)
    return TrainJob(
        *(args.data, args.output, dataclasses.replace(PRESETS[args.preset], **changes), args.preset),
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
