"""``python -m bioshards.train``: pretrain a model, or draw how it went.

DATA --out RUN      train on a finished pretraining set; the same command again goes on
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

from bioshards.corpus.command import report_error
from bioshards.corpus.exit_codes import INTERRUPTED, OK
from bioshards.corpus.live_line import LiveLine

try:
    from . import checkpoint, options
    from .job import Job
    from .plot import plot
    from .presets import PRESETS
    from .recipes import Recipe
    from .training import train
except ImportError as error:
    print(f"train: a library is missing ({error}): pip install 'bioshards[train]'", file=sys.stderr)
    sys.exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    say, given = LiveLine(), None
    try:
        if words[:1] == ["plot"]:
            drawn = _plot_parser().parse_args(words[1:])
            return _end(say, "\n".join(plot(drawn.runs, drawn.out or f"{drawn.runs[0]}/curves")))
        given = _parser().parse_args(words)
        with _stopping(say) as stop:
            return _end(say, train(_job(given, words), say, stop))
    except KeyboardInterrupt:
        return _end(say, f"stopped. {_goes_on(given.out)}" if given else "stopped", INTERRUPTED)
    except Exception as error:
        return _end(say, *report_error(error, "give a lower --micro-batch"))


def _goes_on(run: str) -> str:
    last = checkpoint.last(run)
    return (
        f"The same command goes on from {last}"
        if last
        else "Nothing was learned yet: the same command begins anew"
    )


def _end(say: LiveLine, message: str, code: int = OK) -> int:
    say.end()
    rank = os.environ.get("RANK", "0")
    who = "train" if rank == "0" else f"train, process {rank}"
    with contextlib.suppress(OSError):  # nobody reads it: what was done is done
        if code == INTERRUPTED and rank != "0":
            pass  # the first says it
        elif code != OK:
            print(f"{who}: {message}", file=sys.stderr)
        elif message:
            print(message, flush=True)
    return code


@contextlib.contextmanager
def _stopping(say: LiveLine) -> Iterator[Event]:
    """What Ctrl-C and SIGTERM set; a second one ends the process at once."""
    stop = Event()

    def told(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        say("stopping after this step, with a checkpoint; once more to stop at once")

    before = {number: signal.signal(number, told) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _plot_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bioshards.train plot", description="Draw the curves of runs, as PNG and HTML."
    )
    parser.add_argument("runs", nargs="+", metavar="RUN", help="folders of runs")
    parser.add_argument(
        "--out", metavar="FILE", help="what to write, without an ending; else curves in the first run"
    )
    return parser


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bioshards.train",
        description="Pretrain a model. A run that was stopped goes on by the same command. "
        "'python -m bioshards.train plot RUN...' draws how it went.",
    )
    parser.add_argument("data", metavar="DATA", help="a finished output of shards_to_pretraining")
    parser.add_argument("--out", required=True, metavar="RUN", help="the folder to write")
    parser.add_argument("--vocab", metavar="FOLDER", help="its vocabulary, if that is no longer where it was")
    parser.add_argument("--preset", choices=PRESETS, default="tiny", help="a recipe; what follows changes it")
    parser.add_argument(
        "--config", metavar="FILE.toml", help="lines of NAME = VALUE: the names below, with _ for -"
    )
    parser.add_argument("--init", metavar="FOLDER", help="begin from a Hugging Face checkpoint's weights")
    parser.add_argument(
        "--continue",
        dest="continued",
        metavar="RUN",
        help="go on from another run, on these data: weights, Adam, step",
    )
    _add_running(parser.add_argument_group("how it is run"))
    options.add(parser.add_argument_group("the recipe (defaults: those of tiny)"), Recipe)
    return parser


def _add_running(group: Any) -> None:
    group.add_argument("--device", help="cpu, cuda, cuda:1; else a GPU where there is one")
    for name, kind, default, help in (
        ("micro-batch", int, None, "rows in a forward pass, at most; else as many as fit"),
        ("log-every", int, None, "steps between lines in log.jsonl; else by --steps"),
        ("save-every", int, None, "steps between checkpoints; else by --steps"),
        ("validate-every", int, None, "steps between validations; else by --steps"),
        ("validation-rows", int, 1024, "rows to validate on, at most (%(default)s)"),
        ("keep", int, 3, "checkpoints that stay (%(default)s)"),
    ):
        group.add_argument(f"--{name}", type=kind, default=default, metavar="N", help=help)
    group.add_argument(
        "--no-verify", action="store_true", help="do not compare the shards' SHA-256 at the beginning"
    )


def _job(given: Any, words: Sequence[str]) -> Job:
    changes = options.from_toml(given.config, Recipe) if given.config else {}
    changes |= options.given(given, Recipe)
    return Job(
        *(given.data, given.out, dataclasses.replace(PRESETS[given.preset], **changes), given.preset),
        vocabulary=given.vocab,
        init=given.init,
        continued=given.continued,
        device=given.device,
        micro=given.micro_batch,
        log_every=given.log_every,
        save_every=given.save_every,
        validate_every=given.validate_every,
        keep=given.keep,
        validation_rows=given.validation_rows,
        verify=not given.no_verify,
        command=["python", "-m", "bioshards.train", *words],
    )


if __name__ == "__main__":
    sys.exit(main())
