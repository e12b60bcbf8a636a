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

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.exit_codes import FAILED, INTERRUPTED, OK
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.error_report import report_error
from bioshards.corpus.ui.progress_line import ProgressLine
from bioshards.evaluate.report.task_lookup import find_metric, find_suite_settings

try:
    import torch

    from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
    from bioshards.evaluate.benchmarks.definition import SPLITS
    from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe
    from bioshards.evaluate.config.suites import SUITES
    from bioshards.evaluate.contamination.check import check_contamination
    from bioshards.evaluate.contamination.matches import DEFAULT_MIN_SHARED_NGRAMS
    from bioshards.evaluate.runs.evaluate_job import EvaluateJob, RunSummary, run_evaluation
    from bioshards.evaluate.runs.hyperparameter_search import (
        SearchConfig,
        SearchMethod,
        load_grid,
        search_hyperparameters,
    )
    from bioshards.train.config import dataclass_options

    from .benchmarks import verification
    from .modeling import pretrained
    from .report import report_file
    from .tasks import task_registry
except ImportError as error:
    print(f"evaluate: a library is missing ({error}): pip install 'bioshards[evaluate]'", file=sys.stderr)
    sys.exit(2)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    args = _build_parser().parse_args(list(sys.argv[1:] if argv is None else argv))
    progress = ProgressLine()
    previous_handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result: tuple[str, int] = args.work(args, progress)
        _print_line(progress, result[0])
        return result[1]
    except KeyboardInterrupt:
        message, code = "stopped. The same command goes on with what is left", INTERRUPTED
    except Exception as error:
        memory_hint = "give a lower --batch or --length"
        message, code = report_error(error, memory_hint)
    finally:
        signal.signal(signal.SIGTERM, previous_handler)
    progress.clear()
    with contextlib.suppress(OSError):  # nobody reads it
        print(f"evaluate: {message}", file=sys.stderr)
    return code


def _run_command(args: Any, progress: ProgressLine) -> tuple[str, int]:
    summary = run_evaluation(
        _job_from_args(args, progress, tuple(range(args.first_seed, args.first_seed + args.seeds)))
    )
    is_empty = not summary.written and not summary.skipped
    return _format_run_summary(summary, args), FAILED if summary.failed or is_empty else OK


def _search_command(args: Any, progress: ProgressLine) -> tuple[str, int]:
    config = SearchConfig(load_grid(args.grid), args.method, args.trials, args.first_seed)
    lines, failures = search_hyperparameters(_job_from_args(args, progress, (args.first_seed,)), config)
    return "\n".join([*lines, *failures]), FAILED if failures else OK


def _verify_command(args: Any, progress: ProgressLine) -> tuple[str, int]:
    checks = verification.verify_benchmarks(args.folder)
    return verification.format_table(checks), FAILED if verification.has_failures(checks) else OK


def _report_command(args: Any, _progress: ProgressLine) -> tuple[str, int]:
    return report_file.write_report(
        LocalStorage(), args.results, args.out, find_metric, find_suite_settings
    ), OK


def _contamination_command(args: Any, progress: ProgressLine) -> tuple[str, int]:
    summary = check_contamination(
        *(args.data, args.corpus, args.out),
        known_benchmarks=BENCHMARKS.values(),
        workers=args.workers,
        splits=args.parts,
        min_shared_ngrams=args.least,
        progress=progress,
    )
    return summary, OK


def _job_from_args(args: Any, progress: ProgressLine, seeds: Sequence[int]) -> EvaluateJob:
    overrides = dataclass_options.from_toml(args.config, FineTuneRecipe) if args.config else {}
    overrides |= dataclass_options.from_args(args, FineTuneRecipe)
    checkpoint = pretrained.inspect_checkpoint(args.model, args.name)
    return EvaluateJob(
        *(checkpoint, args.data, args.out or f"scores/{checkpoint.name}"),
        task_registry.plan_tasks(args.tasks, overrides),
        seeds,
        _select_device(args.device or ("cuda" if torch.cuda.is_available() else "cpu")),
        progress,
        lambda line: _print_line(progress, line),
        args.sample,
        args.legacy,
    )


def _select_device(name: str) -> torch.device:
    """What to compute on; on a GPU, products are rounded to TF32.

    Raises:
        ValueError: it is not there.
    """
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidValueError(
            f"--device {name} cannot be used here ({reason}): give cpu, or a GPU that is"
        ) from error
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    return device


def _print_line(progress: ProgressLine, line: str) -> None:
    progress.clear()
    with contextlib.suppress(OSError):  # nobody reads it: what was done is done
        print(line, flush=True)


def _format_run_summary(summary: RunSummary, args: Any) -> str:
    """What became of a run."""
    lines = [f"{name} is not there: {reason}" for name, reason in summary.missing.items()]
    lines += [f"{name} failed: {reason}" for name, reason in summary.failed.items()]
    lines.append(
        f"{summary.written} results made, {summary.skipped} were there, {len(summary.missing)} tasks absent, "
        f"{len(summary.failed)} failed"
    )
    return "\n".join(lines)


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bioshards.evaluate", description="Score a model on the papers' tasks."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run_parser = commands.add_parser("run", help="fine-tune and score a model on tasks")
    run_parser.set_defaults(work=_run_command)
    run_parser.add_argument(
        "--seeds", type=_positive_int, default=5, metavar="N", help="how many (%(default)s)"
    )
    _add_model_options(run_parser)
    search_parser = commands.add_parser("search", help="the best settings for tasks, on their dev sets only")
    search_parser.set_defaults(work=_search_command)
    search_parser.add_argument(
        "--grid",
        default="pubmedbert",
        metavar="NAME|FILE.toml",
        help="pubmedbert, bio-electra, or lines NAME = [...]",
    )
    search_parser.add_argument(
        "--method", choices=get_args(SearchMethod), default="grid", help="how to go through it (%(default)s)"
    )
    search_parser.add_argument(
        "--trials", type=_positive_int, default=25, metavar="N", help="at most (%(default)s)"
    )
    _add_model_options(search_parser)
    verify_parser = commands.add_parser("verify", help="are the benchmarks what their authors count?")
    verify_parser.set_defaults(work=_verify_command)
    verify_parser.add_argument("folder", metavar="DIR", help="the benchmarks, a folder each")
    report_parser = commands.add_parser("report", help="tables of results beside the published numbers")
    report_parser.set_defaults(work=_report_command)
    report_parser.add_argument(
        "results", nargs="+", metavar="RESULTS", help="folders of runs, or single results"
    )
    report_parser.add_argument(
        "--out", default="report.html", metavar="FILE", help=".html, .md or .json (%(default)s)"
    )
    contamination_parser = commands.add_parser(
        "contamination", help="which benchmark texts are in a pretraining corpus"
    )
    contamination_parser.set_defaults(work=_contamination_command)
    contamination_parser.add_argument(
        "--data", required=True, metavar="DIR", help="the benchmarks, a folder each"
    )
    contamination_parser.add_argument(
        "--corpus",
        required=True,
        nargs="+",
        action="extend",
        metavar="DIR",
        help="finished outputs of pubmed_to_shards and pmc_to_shards",
    )
    contamination_parser.add_argument(
        "--out", required=True, metavar="FOLDER", help="where the report and the list of ids go"
    )
    contamination_parser.add_argument(
        "--parts",
        nargs="+",
        choices=SPLITS,
        default=["test"],
        help="whose documents are listed for --exclude-ids (test)",
    )
    contamination_parser.add_argument(
        "--least",
        type=_positive_int,
        default=DEFAULT_MIN_SHARED_NGRAMS,
        metavar="N",
        help="13-grams that a listed document shares (%(default)s)",
    )
    contamination_parser.add_argument(
        "--workers",
        type=_positive_int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes (%(default)s)",
    )
    return parser


def _add_model_options(parser: argparse.ArgumentParser) -> None:
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
        type=_positive_int,
        default=0,
        metavar="N",
        help="use so many examples of each part only, for a first try: no such score can be compared",
    )
    parser.add_argument(
        "--legacy",
        nargs="+",
        choices=get_args(task_registry.LegacyMode),
        default=[],
        help="read and count tags as papers did, to compare with their numbers",
    )
    parser.add_argument("--device", help="cpu, cuda, cuda:1; else a GPU where there is one")
    parser.add_argument(
        "--config", metavar="FILE.toml", help="lines of NAME = VALUE: the names below, with _ for -"
    )
    recipe_group = parser.add_argument_group("the recipe, instead of each task's own (suites.py)")
    dataclass_options.add_arguments(recipe_group, FineTuneRecipe, show_defaults=False)


def _positive_int(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
