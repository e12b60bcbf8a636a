"""``python -m bioshards.evaluate``: fine-tune, score and compare models on the papers' benchmarks."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import NamedTuple, get_args

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.exit_codes import FAILED, INTERRUPTED, OK
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.argument_parser import ExactArgumentParser
from bioshards.corpus.ui.error_report import report_error
from bioshards.corpus.ui.progress_line import ProgressLine

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
    from bioshards.evaluate.tasks.input_texts import write_input_texts
    from bioshards.evaluate.tasks.task_registry import LegacyMode, plan_tasks
    from bioshards.train.config import dataclass_options

    from .benchmarks import verification
    from .modeling import pretrained
    from .report import report_file
    from .report.task_lookup import find_metric, find_suite_settings
except ImportError as error:
    print(f"evaluate: a library is missing ({error}): pip install 'bioshards[evaluate]'", file=sys.stderr)
    sys.exit(2)


class CommandResult(NamedTuple):
    """Last message and exit code of a command."""

    message: str
    exit_code: int


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Args:
        argv: command line without the program; default: ``sys.argv``.
    """
    args = _build_parser().parse_args(list(sys.argv[1:] if argv is None else argv))
    command: Callable[[argparse.Namespace, ProgressLine], CommandResult] = args.command
    progress = ProgressLine()
    previous_handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        result = command(args, progress)
        _print_line(progress, result.message)
        return result.exit_code
    except KeyboardInterrupt:
        message, code = "interrupted. Rerun the command to resume", INTERRUPTED
    except Exception as error:
        message, code = report_error(error, "give a lower --batch-size or --max-seq-length")
    finally:
        signal.signal(signal.SIGTERM, previous_handler)
    progress.clear()
    with contextlib.suppress(OSError):  # standard error is closed
        print(f"evaluate: {message}", file=sys.stderr)
    return code


def _run_command(args: argparse.Namespace, progress: ProgressLine) -> CommandResult:
    summary = run_evaluation(_job_from_args(args, progress, args.seeds))
    is_empty = not summary.written and not summary.skipped
    return CommandResult(_format_run_summary(summary), FAILED if summary.failed or is_empty else OK)


def _search_command(args: argparse.Namespace, progress: ProgressLine) -> CommandResult:
    config = SearchConfig(load_grid(args.grid), args.method, args.max_trials, args.first_seed)
    lines, failures = search_hyperparameters(_job_from_args(args, progress), config)
    return CommandResult("\n".join([*lines, *failures]), FAILED if failures else OK)


def _verify_command(args: argparse.Namespace, _progress: ProgressLine) -> CommandResult:
    checks = verification.verify_benchmarks(args.benchmarks)
    return CommandResult(
        verification.format_table(checks), FAILED if verification.has_failures(checks) else OK
    )


def _texts_command(args: argparse.Namespace, progress: ProgressLine) -> CommandResult:
    message = write_input_texts(args.benchmarks, args.output, BENCHMARKS.values(), progress)
    return CommandResult(message, OK)


def _report_command(args: argparse.Namespace, _progress: ProgressLine) -> CommandResult:
    message = report_file.write_report(
        LocalStorage(), args.results, args.output, find_metric, find_suite_settings
    )
    return CommandResult(message, OK)


def _contamination_command(args: argparse.Namespace, progress: ProgressLine) -> CommandResult:
    message = check_contamination(
        args.benchmarks,
        args.corpus,
        args.output,
        known_benchmarks=BENCHMARKS.values(),
        workers=args.workers,
        splits=args.splits,
        min_shared_ngrams=args.min_shared_ngrams,
        progress=progress,
    )
    return CommandResult(message, OK)


def _job_from_args(
    args: argparse.Namespace, progress: ProgressLine, num_seeds: int | None = None
) -> EvaluateJob:
    """Build the job of ``run`` and ``search`` from their options."""
    overrides = dataclass_options.from_toml(args.config, FineTuneRecipe) if args.config else {}
    overrides |= dataclass_options.from_args(args, FineTuneRecipe)
    checkpoint = pretrained.inspect_checkpoint(args.model, args.model_name)
    return EvaluateJob(
        checkpoint=checkpoint,
        benchmarks_dir=args.benchmarks,
        output=args.output or f"scores/{checkpoint.name}",
        tasks=plan_tasks(args.tasks, overrides),
        first_seed=args.first_seed,
        num_seeds=num_seeds,
        device=_select_device(args.device or ("cuda" if torch.cuda.is_available() else "cpu")),
        progress=progress,
        log=lambda line: _print_line(progress, line),
        max_examples=args.max_examples,
        legacy_modes=args.legacy,
    )


def _select_device(name: str) -> torch.device:
    """Return the torch device of a name, and switch on TF32 for a GPU.

    Raises:
        InvalidValueError: the device is not available.
    """
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (AssertionError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise InvalidValueError(
            f"--device {name} cannot be used here ({reason}): give cpu, or a GPU of this machine"
        ) from error
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")
    return device


def _print_line(progress: ProgressLine, line: str) -> None:
    progress.clear()
    with contextlib.suppress(OSError):  # standard output is closed: results are on disk
        print(line, flush=True)


def _format_run_summary(summary: RunSummary) -> str:
    lines = [f"{name} is missing: {reason}" for name, reason in summary.missing.items()]
    lines += [f"{name} failed: {reason}" for name, reason in summary.failed.items()]
    lines.append(
        f"{summary.written} results written, {summary.skipped} skipped (finished before), "
        f"{len(summary.missing)} tasks without benchmark, {len(summary.failed)} failed"
    )
    return "\n".join(lines)


def _build_parser() -> argparse.ArgumentParser:
    parser = ExactArgumentParser(
        prog="python -m bioshards.evaluate",
        description="Fine-tune, score and compare models on the papers' benchmarks.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run_parser = commands.add_parser(
        "run", help="fine-tune and score a model: one JSON for each task and seed"
    )
    run_parser.set_defaults(command=_run_command)
    run_parser.add_argument(
        "--seeds",
        type=_positive_int,
        metavar="N",
        help="number of seeds (default: as many as each paper averages over, 5 or 10)",
    )
    _add_model_options(run_parser)
    _add_search_options(commands.add_parser("search", help="search hyperparameters by the score on dev"))
    verify_parser = commands.add_parser(
        "verify", help="compare benchmark files with the counts of their papers"
    )
    verify_parser.set_defaults(command=_verify_command)
    verify_parser.add_argument("benchmarks", metavar="DIR", help="directory of the benchmarks")
    texts_parser = commands.add_parser("texts", help="write the benchmarks' texts, for a vocabulary's report")
    texts_parser.set_defaults(command=_texts_command)
    texts_parser.add_argument("benchmarks", metavar="DIR", help="directory of the benchmarks")
    texts_parser.add_argument(
        "--output", required=True, metavar="DIR", help="directory to write: NAME.jsonl of each benchmark"
    )
    report_parser = commands.add_parser("report", help="compare results with published scores")
    report_parser.set_defaults(command=_report_command)
    report_parser.add_argument(
        "results", nargs="+", metavar="RESULTS", help="output directories of run, or single result files"
    )
    report_parser.add_argument(
        "--output", default="report.html", metavar="FILE", help=".html, .md or .json (default: %(default)s)"
    )
    _add_contamination_options(
        commands.add_parser("contamination", help="find benchmark texts in a pretraining corpus")
    )
    return parser


def _add_search_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_search_command)
    parser.add_argument(
        "--grid",
        default="pubmedbert",
        metavar="NAME|FILE.toml",
        help="pubmedbert, bio-electra, or a file of lines NAME = [...] (default: %(default)s)",
    )
    parser.add_argument(
        "--method",
        choices=get_args(SearchMethod),
        default="grid",
        help="order of the trials (default: %(default)s)",
    )
    parser.add_argument(
        "--max-trials", type=_positive_int, default=25, metavar="N", help="default: %(default)s"
    )
    _add_model_options(parser)


def _add_contamination_options(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=_contamination_command)
    _add_benchmarks_option(parser)
    parser.add_argument(
        "--corpus",
        required=True,
        nargs="+",
        action="extend",
        metavar="DIR",
        help="output directories of pubmed_to_shards and pmc_to_shards; repeatable",
    )
    parser.add_argument(
        "--output", required=True, metavar="DIR", help="directory for the report and the list of ids"
    )
    parser.add_argument(
        "--splits",
        nargs="+",
        choices=SPLITS,
        default=["test"],
        help="splits whose documents are listed for --exclude-ids (default: test)",
    )
    parser.add_argument(
        "--min-shared-ngrams",
        type=_positive_int,
        default=DEFAULT_MIN_SHARED_NGRAMS,
        metavar="N",
        help="13-grams that a document must share to be excluded (default: %(default)s)",
    )
    parser.add_argument(
        "--workers",
        type=_positive_int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="processes (default: %(default)s)",
    )


def _add_benchmarks_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--benchmarks", required=True, metavar="DIR", help="directory of the benchmarks")


def _add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that ``run`` and ``search`` share."""
    parser.add_argument(
        "model", metavar="MODEL", help="directory that save_pretrained wrote, with its tokenizer"
    )
    _add_benchmarks_option(parser)
    parser.add_argument(
        "--tasks",
        nargs="+",
        default=["blurb"],
        metavar="NAME",
        help=f"suites ({', '.join(SUITES)}), tasks, or SUITE/TASK such as bio-electra/gad (default: blurb)",
    )
    parser.add_argument(
        "--output", metavar="DIR", help="directory of the results (default: scores/MODEL_NAME)"
    )
    parser.add_argument("--model-name", help="name of the model in reports (default: its directory's name)")
    parser.add_argument("--first-seed", type=int, default=0, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--max-examples",
        type=_positive_int,
        default=0,
        metavar="N",
        help="examples of each split, for a quick try; scores are marked as not comparable (default: all)",
    )
    parser.add_argument(
        "--legacy",
        nargs="+",
        choices=get_args(LegacyMode),
        default=[],
        help="read and count tags as published code did, to compare with its numbers",
    )
    parser.add_argument("--device", help="cpu, cuda, cuda:1 (default: a GPU if there is one)")
    parser.add_argument(
        "--config", metavar="FILE.toml", help="recipe options as lines NAME = VALUE, with _ for -"
    )
    recipe_group = parser.add_argument_group("recipe (default: each task's own, config/suites.py)")
    dataclass_options.add_arguments(recipe_group, FineTuneRecipe, show_defaults=False)


def _positive_int(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return number


if __name__ == "__main__":
    sys.exit(main())
