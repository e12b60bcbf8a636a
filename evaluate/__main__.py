"""``bioshards evaluate``: fine-tune, score and compare models on the papers' benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from bioshards.corpus.cpus import count_cpus
from bioshards.corpus.errors import FAILED, OK
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.command_line import CommandResult, run_command
from bioshards.corpus.ui.options import Argument, Option, Overrides, int_at_least, parse_command, worker_count
from bioshards.corpus.ui.progress import Progress
from bioshards.corpus.ui.terminal import escape_output
from bioshards.evaluate.benchmarks.records import Split
from bioshards.evaluate.contamination import DEFAULT_MIN_SHARED_NGRAMS
from bioshards.evaluate.recipes import SUITES, FineTuneRecipe, LegacyMode, SearchMethod

if TYPE_CHECKING:
    from bioshards.evaluate.runs.run import EvaluateJob, RunSummary

# What takes long to import is imported by the command that needs it, so that --help does not wait for it.


_BENCHMARKS: Final = Option("directory of the benchmarks", metavar="DIR")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """The options that ``run`` and ``search`` share."""

    model: Annotated[
        str, Argument("directory that save_pretrained wrote, with its tokenizer", metavar="MODEL")
    ]
    benchmarks: Annotated[str, _BENCHMARKS]
    tasks: Annotated[
        tuple[str, ...],
        Option(
            f"suites ({', '.join(SUITES)}), tasks, or SUITE/TASK, such as bio-electra/gad, of a task in "
            "several suites (default: blurb)",
            metavar="NAME",
            many="words",
        ),
    ] = ("blurb",)
    output: Annotated[
        str | None, Option("directory of the results (default: scores/MODEL_NAME)", metavar="DIR")
    ] = None
    model_name: Annotated[str | None, "name of the model in reports (default: its directory's name)"] = None
    first_seed: Annotated[int, "default: %(default)s"] = 0
    max_examples: Annotated[
        int,
        Option(
            "examples of each split, for a quick try; scores are marked as not comparable (default: all)",
            parse=int_at_least(1),
        ),
    ] = 0
    legacy: Annotated[
        tuple[LegacyMode, ...],
        Option("read and count tags as published code did, to compare with its numbers", many="words"),
    ] = ()
    device: Annotated[str | None, "cpu, cuda, cuda:1 (default: a GPU if there is one)"] = None
    config: Annotated[
        str | None, Option("recipe options as lines NAME = VALUE, with _ for -", metavar="FILE.toml")
    ] = None
    recipe: Annotated[
        Overrides[FineTuneRecipe], Option(group="recipe (default: each task's own, recipes.py)")
    ]

    def make_job(self, progress: Progress, num_seeds: int | None = None) -> EvaluateJob:
        """Load the checkpoint, and return the job of these options."""
        import torch

        from bioshards.evaluate.encoder import inspect_checkpoint
        from bioshards.evaluate.runs.run import EvaluateJob
        from bioshards.evaluate.tasks.task_registry import plan_tasks
        from bioshards.train.distributed import find_device

        device = find_device(self.device)
        if device.type == "cuda":  # float32 products in TF32: the range of float32, and 10 bits of mantissa
            torch.set_float32_matmul_precision("high")
        overrides = self.recipe.with_config(self.config, FineTuneRecipe)
        checkpoint = inspect_checkpoint(self.model, self.model_name)
        return EvaluateJob(
            checkpoint=checkpoint,
            benchmarks_dir=self.benchmarks,
            output=self.output or f"scores/{checkpoint.name}",
            tasks=plan_tasks(self.tasks, overrides.values, self.legacy),
            first_seed=self.first_seed,
            num_seeds=num_seeds,
            device=device,
            progress=progress,
            log=lambda line: progress.write(line, sys.stdout),
            max_examples=self.max_examples,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(ModelOptions):
    """The options of ``run``."""

    seeds: Annotated[
        int | None,
        Option(
            "number of seeds (default: as many as each paper averages over, 5 or 10)", parse=int_at_least(1)
        ),
    ] = None

    def run(self, progress: Progress) -> CommandResult:
        """Fine-tune and score a model."""
        from bioshards.evaluate.runs.run import run_evaluation

        summary = run_evaluation(self.make_job(progress, self.seeds))
        is_empty = not summary.written and not summary.skipped
        return CommandResult(_format_run_summary(summary), FAILED if summary.failed or is_empty else OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions(ModelOptions):
    """The options of ``search``."""

    grid: Annotated[
        str,
        Option(
            "pubmedbert, bio-electra, or a file of lines NAME = [...] (default: %(default)s)",
            metavar="NAME|FILE.toml",
        ),
    ] = "pubmedbert"
    method: Annotated[
        SearchMethod, "every combination in random order, or optuna's TPE sampler (default: %(default)s)"
    ] = "grid"
    max_trials: Annotated[int, Option("default: %(default)s", parse=int_at_least(1))] = 25

    def run(self, progress: Progress) -> CommandResult:
        """Search hyperparameters by the score on dev."""
        from bioshards.evaluate.runs.hyperparameter_search import load_grid, search_hyperparameters

        grid = load_grid(self.grid)
        lines, failures = search_hyperparameters(self.make_job(progress), grid, self.method, self.max_trials)
        return CommandResult("\n".join([*lines, *failures]), FAILED if failures else OK)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """The options of ``verify``."""

    benchmarks: Annotated[str, Argument("directory of the benchmarks", metavar="DIR")]

    def run(self, _progress: Progress) -> CommandResult:
        """Compare benchmark files with the counts of their papers."""
        from bioshards.evaluate.benchmarks import verification
        from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS

        checks = verification.verify_benchmarks(self.benchmarks, BENCHMARKS.values())
        exit_code = FAILED if verification.has_failures(checks) else OK
        return CommandResult(verification.format_table(checks), exit_code)


@dataclass(frozen=True, slots=True, kw_only=True)
class TextsOptions:
    """The options of ``texts``."""

    benchmarks: Annotated[str, Argument("directory of the benchmarks", metavar="DIR")]
    output: Annotated[str, Option("directory to write: NAME.jsonl of each benchmark", metavar="DIR")]

    def run(self, progress: Progress) -> CommandResult:
        """Write the benchmarks' texts."""
        from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
        from bioshards.evaluate.tasks.input_texts import write_input_texts

        message = write_input_texts(self.benchmarks, self.output, BENCHMARKS.values(), progress)
        return CommandResult(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The options of ``report``."""

    results: Annotated[
        tuple[str, ...],
        Argument("output directories of run, or single result files", metavar="RESULTS"),
    ]
    output: Annotated[str, Option("directory for README.md, report.html and report.json", metavar="DIR")]

    def run(self, _progress: Progress) -> CommandResult:
        """Compare results with published scores."""
        from bioshards.evaluate.report import report_pages

        return CommandResult(report_pages.write_report(LocalStorage(), self.results, self.output))


@dataclass(frozen=True, slots=True, kw_only=True)
class ContaminationOptions:
    """The options of ``contamination``."""

    benchmarks: Annotated[str, _BENCHMARKS]
    corpus: Annotated[
        tuple[str, ...],
        Option(
            "output directories of pubmed_to_shards, pmc_to_shards and text_to_shards; repeatable",
            metavar="DIR",
            many="words",
        ),
    ]
    output: Annotated[str, Option("directory for the report and the list of ids", metavar="DIR")]
    splits: Annotated[
        tuple[Split, ...],
        Option("splits whose documents are listed for --exclude-ids (default: test)", many="words"),
    ] = ("test",)
    min_shared_ngrams: Annotated[
        int,
        Option(
            "13-grams that a document must share to be excluded (default: %(default)s)",
            parse=int_at_least(1),
        ),
    ] = DEFAULT_MIN_SHARED_NGRAMS
    workers: Annotated[int, Option("processes (default: %(default)s)", parse=worker_count)] = count_cpus()

    def run(self, progress: Progress) -> CommandResult:
        """Find benchmark texts in a pretraining corpus."""
        from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
        from bioshards.evaluate.contamination.check import check_contamination

        message = check_contamination(
            self.benchmarks,
            self.corpus,
            self.output,
            known_benchmarks=BENCHMARKS.values(),
            workers=self.workers,
            splits=self.splits,
            min_shared_ngrams=self.min_shared_ngrams,
            progress=progress,
        )
        return CommandResult(message)


Command = RunOptions | SearchOptions | VerifyOptions | TextsOptions | ReportOptions | ContaminationOptions
COMMANDS: Final[dict[str, tuple[type[Command], str]]] = {
    "run": (RunOptions, "fine-tune and score a model: one JSON for each task and seed"),
    "search": (SearchOptions, "search hyperparameters by the score on dev"),
    "verify": (VerifyOptions, "compare benchmark files with the counts of their papers"),
    "texts": (TextsOptions, "write the benchmarks' texts, for a vocabulary's report"),
    "report": (ReportOptions, "compare results with published scores"),
    "contamination": (ContaminationOptions, "find benchmark texts in a pretraining corpus"),
}


@escape_output()
def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Args:
        argv: command line without the program; default: ``sys.argv``.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    options = parse_command("bioshards evaluate", COMMANDS, words)
    return run_command(
        "evaluate",
        lambda: options.run(Progress(sys.stderr)),
        interrupted="interrupted. Rerun the command to resume",
        out_of_memory="give a lower --batch-size or --max-seq-length",
    )


def _format_run_summary(summary: RunSummary) -> str:
    lines = [f"{name} is missing: {reason}" for name, reason in summary.missing.items()]
    lines += [f"{name} failed: {reason}" for name, reason in summary.failed.items()]
    lines.append(
        f"{summary.written} results written, {summary.skipped} skipped (finished before), "
        f"{len(summary.missing)} tasks without benchmark, {len(summary.failed)} failed"
    )
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
