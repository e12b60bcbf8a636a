"""The driver of ``beam run shards_to_words``."""

from __future__ import annotations

import importlib.metadata
from typing import TYPE_CHECKING

from bioshards.corpus.errors import UsageError
from bioshards.corpus.manifest import ValidationWords, WordsManifest, WordsRun, WordTotals
from bioshards.corpus.output.output_layout import FORMAT, OutputDir
from bioshards.corpus.shards import input_dirs
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.progress import Progress
from bioshards.pipelines import shards_to_words
from bioshards.pipelines.drivers.documents_driver import DocumentsDriver
from bioshards.pipelines.dry_run import document_plans
from bioshards.pipelines.dry_run.cost import DryRunPlan
from bioshards.pipelines.execution.executor import ProgressMonitor
from bioshards.pipelines.execution.progress_monitor import WordsProgress
from bioshards.pipelines.execution.session import make_absolute
from bioshards.pipelines.job_types import WordsJob
from bioshards.pipelines.shards_to_words import WordsOptions
from bioshards.vocab.counting import count_steps as steps
from bioshards.vocab.counting.word_counts import CountConfig

if TYPE_CHECKING:
    import apache_beam as beam


class WordsDriver(DocumentsDriver[WordsOptions, WordsJob, WordsManifest]):
    """Counts the words of document shards."""

    pipeline = shards_to_words.NAME
    manifest_type = WordsManifest

    def load_inputs(self, storage: Storage, input_folders: list[str]) -> WordsJob:
        """Return the job of these inputs."""
        options = self.options
        output = make_absolute(options.output)
        input_dirs.check_disjoint(input_folders, output)
        try:
            count_config = CountConfig(options.pretokenizer, options.validation_fraction, options.seed)
        except ValueError as error:
            raise UsageError(f"--validation-fraction: {error}") from error
        document_inputs = input_dirs.load_document_inputs(storage, input_folders)
        return WordsJob(
            storage=storage,
            output_dir=OutputDir(output),
            inputs=document_inputs,
            count_config=count_config,
            min_count=options.min_count,
            config={
                "pipeline": self.pipeline,
                "format": FORMAT,
                **count_config.to_dict(),
                "min_count": options.min_count,
                "library_versions": {
                    library: importlib.metadata.version(library)
                    for library in (["tokenizers"] if count_config.pretokenizer == "bert" else [])
                },
            },
            run_info=WordsRun(
                command=self.command,
                inputs=tuple(document_input.folder for document_input in document_inputs),
            ),
        )

    def build(self, root: beam.Pipeline, job: WordsJob) -> None:
        """Build the graph."""
        shards_to_words.build(root, job)

    def plan(self, job: WordsJob) -> DryRunPlan:
        """Return the plan that a dry run prints."""
        return document_plans.plan_words(job)

    def is_up_to_date(self, job: WordsJob) -> bool:
        """Return True if the output is complete and of the same inputs."""
        return steps.is_up_to_date(job.storage, job.output_dir, job.inputs)

    def make_progress(self, job: WordsJob, progress: Progress) -> ProgressMonitor:
        """Return the monitor of counted shards."""
        return WordsProgress(job, progress)

    def format_counts(self, job: WordsJob, manifest: WordsManifest) -> list[str]:
        """Return lines on words and documents, and the output files."""
        counts = manifest.counts
        lines = [_format_counts(counts)]
        if counts.pruned.distinct_words:
            lines.append(
                f"  {counts.pruned.distinct_words:,} words pruned: fewer than {job.min_count} occurrences, "
                f"{counts.pruned.tokens:,} tokens"
            )
        if job.count_config.validation_fraction:
            lines.append(f"  validation: {_format_counts(counts.validation)}")
        folder = job.output_dir.path
        return lines + [f"{output.file + ':':13} {folder}/{output.file}" for output in manifest.outputs]


def _format_counts(counts: WordTotals | ValidationWords) -> str:
    return f"{counts.documents:,} documents, {counts.tokens:,} tokens of {counts.distinct_words:,} words"
