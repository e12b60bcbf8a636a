"""``python -m bioshards.evaluate``: scores of a model on the papers' tasks, and what they can be trusted
for.

run MODEL --data DIR            fine-tune and score, one JSON for each task and seed; the same command
goes on verify DIR                      are the benchmarks what their authors count? search MODEL --data
DIR         the best settings for tasks, on their dev sets only report RESULTS...               tables
beside the published numbers, as text, Markdown, HTML or JSON contamination --data DIR --corpus SHARDS
which benchmark texts are in a pretraining corpus
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, get_args

from bioshards.corpus.command import report_error
from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.exit_codes import FAILED, INTERRUPTED, OK
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.live_line import LiveLine

try:
    import torch

    from bioshards.evaluate.contamination.check import contamination
    from bioshards.evaluate.contamination.judging import LEAST
    from bioshards.train import options

    from . import encoder, tasks, verify
    from .datasets import PARTS
    from .recipes import SUITES, Recipe
    from .report import writing
    from .run import Job, Outcome, run
    from .search import Method, Search, grid, search
    from .sets import SETS
except ImportError as error:
    print(f"evaluate: a library is missing ({error}): pip install 'bioshards[evaluate]'", file=sys.stderr)
    sys.exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    given = _parser().parse_args(list(sys.argv[1:] if arguments is None else arguments))
    say = LiveLine()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        done: tuple[str, int] = given.work(given, say)
        _note(say, done[0])
        return done[1]
    except KeyboardInterrupt:
        message, code = "stopped. The same command goes on with what is left", INTERRUPTED
    except Exception as error:
        memory = "give a lower --batch or --length"
        message, code = report_error(error, memory)
    finally:
        signal.signal(signal.SIGTERM, before)
    say.end()
    with contextlib.suppress(OSError):  # nobody reads it
        print(f"evaluate: {message}", file=sys.stderr)
    return code


def _run(given: Any, say: LiveLine) -> tuple[str, int]:
    outcome = run(_job(given, say, tuple(range(given.first_seed, given.first_seed + given.seeds))))
    nothing = not outcome.made and not outcome.there
    return _told(outcome, given), FAILED if outcome.failed or nothing else OK


def _search(given: Any, say: LiveLine) -> tuple[str, int]:
    how = Search(grid(given.grid), given.method, given.trials, given.first_seed)
    told, failed = search(_job(given, say, (given.first_seed,)), how)
    return "\n".join([*told, *failed]), FAILED if failed else OK


def _verify(given: Any, say: LiveLine) -> tuple[str, int]:
    rows = verify.verify(given.folder)
    return verify.table(rows), FAILED if verify.failed(rows) else OK


def _report(given: Any, _say: LiveLine) -> tuple[str, int]:
    return writing.write(LocalFiles(), given.results, given.out, tasks.metric_of, tasks.defaults_of), OK


def _contamination(given: Any, say: LiveLine) -> tuple[str, int]:
    told = contamination(
        *(given.data, given.corpus, given.out),
        sets=SETS.values(),
        workers=given.workers,
        parts=given.parts,
        least=given.least,
        say=say,
    )
    return told, OK


def _job(given: Any, say: LiveLine, seeds: Sequence[int]) -> Job:
    changes = options.from_toml(given.config, Recipe) if given.config else {}
    changes |= options.given(given, Recipe)
    checkpoint = encoder.look(given.model, given.name)
    return Job(
        *(checkpoint, given.data, given.out or f"scores/{checkpoint.name}"),
        tasks.plan(given.tasks, changes),
        seeds,
        _device(given.device or ("cuda" if torch.cuda.is_available() else "cpu")),
        say,
        lambda line: _note(say, line),
        given.sample,
        given.legacy,
    )


def _device(name: str) -> torch.device:
    """What to compute on; on a GPU, products are rounded to TF32.

    Raises:
        ValueError: it is not there.
    """
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:
        why = str(error).splitlines()[0]
        raise InvalidValueError(
            f"--device {name} cannot be used here ({why}): give cpu, or a GPU that is"
        ) from error
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    return device


def _note(say: LiveLine, line: str) -> None:
    say.end()
    with contextlib.suppress(OSError):  # nobody reads it: what was done is done
        print(line, flush=True)


def _told(outcome: Outcome, given: Any) -> str:
    """What became of a run."""
    lines = [f"{name} is not there: {why}" for name, why in outcome.absent.items()]
    lines += [f"{name} failed: {why}" for name, why in outcome.failed.items()]
    lines.append(
        f"{outcome.made} results made, {outcome.there} were there, {len(outcome.absent)} tasks absent, "
        f"{len(outcome.failed)} failed"
    )
    return "\n".join(lines)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bioshards.evaluate", description="Score a model on the papers' tasks."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    running = commands.add_parser("run", help="fine-tune and score a model on tasks")
    running.set_defaults(work=_run)
    running.add_argument("--seeds", type=_count, default=5, metavar="N", help="how many (%(default)s)")
    _add_model(running)
    searching = commands.add_parser("search", help="the best settings for tasks, on their dev sets only")
    searching.set_defaults(work=_search)
    searching.add_argument(
        "--grid",
        default="pubmedbert",
        metavar="NAME|FILE.toml",
        help="pubmedbert, bio-electra, or lines NAME = [...]",
    )
    searching.add_argument(
        "--method", choices=get_args(Method), default="grid", help="how to go through it (%(default)s)"
    )
    searching.add_argument("--trials", type=_count, default=25, metavar="N", help="at most (%(default)s)")
    _add_model(searching)
    verifying = commands.add_parser("verify", help="are the benchmarks what their authors count?")
    verifying.set_defaults(work=_verify)
    verifying.add_argument("folder", metavar="DIR", help="the benchmarks, a folder each")
    tables = commands.add_parser("report", help="tables of results beside the published numbers")
    tables.set_defaults(work=_report)
    tables.add_argument("results", nargs="+", metavar="RESULTS", help="folders of runs, or single results")
    tables.add_argument(
        "--out", default="report.html", metavar="FILE", help=".html, .md or .json (%(default)s)"
    )
    looking = commands.add_parser("contamination", help="which benchmark texts are in a pretraining corpus")
    looking.set_defaults(work=_contamination)
    looking.add_argument("--data", required=True, metavar="DIR", help="the benchmarks, a folder each")
    looking.add_argument(
        "--corpus",
        required=True,
        nargs="+",
        action="extend",
        metavar="DIR",
        help="finished outputs of pubmed_to_shards and pmc_to_shards",
    )
    looking.add_argument(
        "--out", required=True, metavar="FOLDER", help="where the report and the list of ids go"
    )
    looking.add_argument(
        "--parts",
        nargs="+",
        choices=PARTS,
        default=["test"],
        help="whose documents are listed for --exclude-ids (test)",
    )
    looking.add_argument(
        "--least",
        type=_count,
        default=LEAST,
        metavar="N",
        help="13-grams that a listed document shares (%(default)s)",
    )
    looking.add_argument(
        "--workers", type=_count, default=os.cpu_count() or 1, metavar="N", help="processes (%(default)s)"
    )
    return parser


def _add_model(parser: argparse.ArgumentParser) -> None:
    """The options of commands that fine-tune a model."""
    parser.add_argument(
        "model", metavar="MODEL", help="a folder that save_pretrained wrote, with its tokenizer"
    )
    parser.add_argument("--data", required=True, metavar="DIR", help="the benchmarks, a folder each")
    parser.add_argument(
        "--tasks",
        nargs="+",
        default=["blurb"],
        metavar="NAME",
        help=f"suites ({', '.join(SUITES)}), tasks, or one of a suite (bio-electra/gad); else blurb",
    )
    parser.add_argument("--out", metavar="FOLDER", help="where results go; else scores/ and the model's name")
    parser.add_argument("--name", help="what reports call the model; else its folder")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N", help="(%(default)s)")
    parser.add_argument(
        "--sample",
        type=_count,
        default=0,
        metavar="N",
        help="use so many examples of each part only, for a first try: no such score can be compared",
    )
    parser.add_argument(
        "--legacy",
        nargs="+",
        choices=get_args(tasks.Legacy),
        default=[],
        help="read and count tags as papers did, to compare with their numbers",
    )
    parser.add_argument("--device", help="cpu, cuda, cuda:1; else a GPU where there is one")
    parser.add_argument(
        "--config", metavar="FILE.toml", help="lines of NAME = VALUE: the names below, with _ for -"
    )
    recipe = parser.add_argument_group("the recipe, instead of each task's own (recipes.py)")
    options.add(recipe, Recipe, defaults=False)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
