"""The drivers of pipelines that write document shards."""

from __future__ import annotations

import dataclasses
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import msgspec

from bioshards.corpus.download.sources import parse_source_spec
from bioshards.corpus.errors import TransientStorageError, UsageError, UserError, escape_line
from bioshards.corpus.lifecycle import full_text_overlap, id_lists, part_lists
from bioshards.corpus.lifecycle.id_lists import IdList, ListedIds
from bioshards.corpus.lifecycle.input_digests import forget_digests
from bioshards.corpus.lifecycle.previous_inputs import describe_missing_inputs
from bioshards.corpus.lifecycle.publish import is_up_to_date
from bioshards.corpus.manifest import DocumentsManifest, DocumentsRun, ManifestError
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import FORMAT, OutputDir
from bioshards.corpus.pubmed import mesh
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.sentences import splitters
from bioshards.corpus.shards.arrow_io import read_documents_manifest
from bioshards.corpus.stats import report
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.text_config import TextConfig
from bioshards.corpus.text_files.records import discover_sources
from bioshards.corpus.ui.progress import Progress
from bioshards.pipelines import pmc_to_shards, pubmed_to_shards, text_to_shards
from bioshards.pipelines.context import JobSpec, PathOption, RunContext
from bioshards.pipelines.drivers.driver import Driver
from bioshards.pipelines.execution.executor import ProgressMonitor
from bioshards.pipelines.execution.session import make_absolute, translate_output_errors
from bioshards.pipelines.inputs import article_files, pubmed_files
from bioshards.pipelines.inputs.run_inputs import RunInputs
from bioshards.pipelines.job_types import ShardsJob
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.options.pipeline_options import ShardsOptions

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.pipelines.dry_run.cost import DryRunPlan


ParsedT = TypeVar("ParsedT")


class ShardsDriver(Driver[ShardsOptions, ShardsJob]):
    """Runs a pipeline that writes document shards."""

    def __init__(
        self,
        parser: Parser[ShardsOptions],
        options: ShardsOptions,
        beam_args: Sequence[str],
        argv: Sequence[str],
    ) -> None:
        super().__init__(parser, options, beam_args, argv)
        self.document_config = options.make_config()

    @abstractmethod
    def find_inputs(self, storage: Storage, output: str, is_local_run: bool) -> RunInputs:
        """Return the files that ``--input`` names: local, mirrored, and to be downloaded.

        Raises:
            UserError: an input does not exist, or selects nothing.
            DownloadError: a server does not answer.
        """

    def list_paths(self) -> list[PathOption]:
        """Return output, mirror, the abstracts to compare with, the inputs, the lists of ids and of MeSH."""
        options = self.options
        written = {"--output": options.output, "--mirror": options.mirror}
        read = {"--find-overlap-with": options.find_overlap_with}
        paths = [PathOption(option, path, is_written=True) for option, path in written.items() if path]
        paths += [PathOption(option, path) for option, path in read.items() if path]
        paths += [PathOption("--input", path) for path in options.input if not parse_source_spec(path)]
        lists = {
            "--include-ids": options.include_ids,
            "--exclude-ids": options.exclude_ids,
            "--mesh-tree": options.mesh_tree,
        }
        return paths + [
            PathOption(option, path, is_used_by_workers=False) for option, path in lists.items() if path
        ]

    def complete_config(self, storage: Storage) -> TextConfig:
        """Return the configuration with what its files say.

        Raises:
            UsageError: a file cannot be read, or lacks what an option names.
        """
        return self.document_config

    def make_job(self, context: RunContext) -> ShardsJob:
        """Find the inputs and return the job."""
        options, storage = self.options, context.storage
        output_dir = OutputDir(make_absolute(options.output))
        self.document_config = self.complete_config(storage)
        included_ids = _read_ids(storage, "--include-ids", options.include_ids)
        if included_ids is not None and not len(included_ids):
            raise UsageError(f"--include-ids {options.include_ids} lists no id: no document would be kept")
        inclusion_list = None if included_ids is None else id_lists.summarise(included_ids)
        excluded_ids = _read_ids(storage, "--exclude-ids", options.exclude_ids)
        config = self._make_config(inclusion_list)
        overlap_with = options.find_overlap_with
        abstracts_digest = _read_abstracts_digest(storage, overlap_with) if overlap_with else None
        with translate_output_errors(output_dir.path):
            output_layout.check_config(storage, output_dir, config)
        run_inputs = self.find_inputs(storage, output_dir.path, context.is_local_run)
        notices = [*self.document_config.describe_unknown_values(), *run_inputs.notices]
        run_inputs = dataclasses.replace(run_inputs, notices=notices)
        return ShardsJob(
            storage=storage,
            output_dir=output_dir,
            sources=part_lists.without_parts(run_inputs.available),
            run_inputs=run_inputs,
            document_config=self.document_config,
            keep_dropped=options.keep_dropped,
            dedup=options.dedup,
            overlap_with=make_absolute(overlap_with) if overlap_with else None,
            abstracts_digest=abstracts_digest,
            included_ids=included_ids,
            inclusion_list=inclusion_list,
            excluded_ids=excluded_ids,
            exclusion_list=None if excluded_ids is None else id_lists.summarise(excluded_ids),
            max_shard_bytes=options.max_shard_mb * 1_000_000,
            max_rejected=options.max_rejected,
            max_bad_files=options.max_bad_files,
            config=config,
            verify_inputs=options.verify_inputs,
            run_info=DocumentsRun(
                command=self.command,
                listed_at=run_inputs.listed_at,
                notices=tuple(run_inputs.notices),
            ),
        )

    def _make_config(self, inclusion_list: IdList | None) -> dict[str, Any]:
        """Return the configuration; runs into one output directory must have the same."""
        options = self.options
        return {
            "pipeline": self.pipeline,
            "format": FORMAT,
            "preset": options.preset,
            "document_config": self.document_config.to_dict(),
            "library_versions": splitters.find_library_versions(
                self.document_config.splitter, self.document_config.treebank
            ),
            "include_ids": inclusion_list.sha256 if inclusion_list else None,
            "keep_dropped": options.keep_dropped,
            "dedup": options.dedup,
            "max_shard_mb": options.max_shard_mb,
        }

    def make_job_spec(self, job: ShardsJob) -> JobSpec:
        """Return the specification of a job with one item for each source."""
        return JobSpec(
            self.pipeline,
            job.output_dir.path,
            job.run_inputs.num_items,
            library_versions=job.config["library_versions"],
        )

    def complete_job(self, job: ShardsJob, context: RunContext) -> ShardsJob:
        """Return the job with notices on the inputs of an earlier run that are gone, and print these."""
        run_inputs = job.run_inputs
        notices = describe_missing_inputs(
            job.storage, job.output_dir, run_inputs.available, run_inputs.names_to_fetch
        )
        if not self.options.dry_run:
            self.print_notices(notices)
        notices = [*run_inputs.notices, *notices]
        return dataclasses.replace(
            job,
            run_inputs=dataclasses.replace(run_inputs, notices=notices),
            run_info=msgspec.structs.replace(job.run_info, notices=tuple(notices)),
        )

    def plan(self, job: ShardsJob) -> DryRunPlan:
        """Return the plan that a dry run prints."""
        from bioshards.pipelines.dry_run import source_plans

        return source_plans.plan_shards(job)

    def list_notices(self, job: ShardsJob) -> Sequence[str]:
        """Return the notices on the inputs."""
        return job.run_inputs.notices

    def is_up_to_date(self, job: ShardsJob) -> bool:
        """Return True if nothing is to be fetched or verified and the output is complete and unchanged."""
        if job.run_inputs.to_fetch or job.article_plan or self.options.verify_inputs:
            return False
        return is_up_to_date(
            job.storage,
            job.output_dir,
            job.sources,
            job.abstracts_digest,
            job.exclusion_list.sha256 if job.exclusion_list else None,
        )

    def describe_inputs(self, job: ShardsJob) -> str:
        """Return the clause on unchanged inputs."""
        return f"its {len(job.sources)} input files are unchanged"

    def reset_output(self, job: ShardsJob) -> None:
        """Reset the output and write the lists that workers read.

        With a mirror of PMC's articles the graph removes the manifest, after the check of removals.
        """
        if job.article_plan:
            output_layout.remove_leftovers(job.storage, job.output_dir)
        else:
            super().reset_output(job)
        if self.options.verify_inputs:
            forget_digests(job.storage, job.output_dir, job.sources)
        part_lists.save_part_lists(job.storage, job.output_dir, job.run_inputs.available)
        if job.included_ids is not None:
            id_lists.write(job.storage, job.output_dir.inclusion_list_path, job.included_ids)
        if job.excluded_ids is not None:
            id_lists.write(job.storage, job.output_dir.exclusion_list_path, job.excluded_ids)

    def count_workers(self, job: ShardsJob) -> int:
        """Return the number of local processes; comparisons of documents have more items than sources."""
        compares = job.dedup == "near" or job.overlap_with
        return self.options.workers if compares else super().count_workers(job)

    def make_progress(self, job: ShardsJob, progress: Progress) -> ProgressMonitor:
        """Return the monitor of staged and downloaded files."""
        from bioshards.pipelines.execution.progress_monitor import ShardsProgress

        return ShardsProgress(job.storage, job.output_dir, job.run_inputs, progress)

    def describe_result(self, job: ShardsJob, result: Mapping[str, Any]) -> list[str]:
        """Print every bad file with its reason."""
        for path, detail in result["bad_files"]:
            print(escape_line(f"bad file: {path}: {detail}"), file=sys.stderr)
        return []

    def summarize(self, job: ShardsJob, result: Mapping[str, Any]) -> list[str]:
        """Print the manifest's warnings and return lines on documents, drops and rejected records."""
        manifest = read_documents_manifest(job.storage, job.output_dir.path)
        for warning in manifest.warnings:
            print(escape_line(f"warning: {warning}"), file=sys.stderr)
        lines = [
            f"{result['documents']:,} documents, {result['sentences']:,} sentences in "
            f"{len(manifest.outputs)} shards",
            *(f"  {count:>12,}  {reason}" for reason, count in manifest.funnel.items()),
            *_format_id_lists(manifest),
            *_format_overlap(manifest),
            f"shards:   {job.output_dir.path}",
            f"report:   {job.output_dir.path}/{report.FILE}",
        ]
        if result["rejected"] or manifest.bad_files:
            lines.append(f"rejected: {job.output_dir.path}/rejected")
        return lines


class PubMedDriver(ShardsDriver):
    """Runs ``pubmed_to_shards``."""

    pipeline = pubmed_to_shards.NAME

    def complete_config(self, storage: Storage) -> TextConfig:
        """Return the configuration with the branches of MeSH that it names."""
        config, path = self.document_config, self.options.mesh_tree
        assert isinstance(config, PubMedConfig)
        if path is None:
            if branch := next(filter(mesh.is_branch, (*config.mesh, *config.drop_mesh)), None):
                raise UsageError(
                    f"{branch} needs the tree of MeSH: --mesh-tree FILE, with NLM's file mtrees2026.bin "
                    f"({mesh.DOWNLOAD_PAGE})"
                )
            return config
        tree = _parse_file(storage, "--mesh-tree", path, mesh.parse_tree)
        try:
            return config.with_mesh_tree(tree)
        except mesh.MeshTreeError as error:
            raise UsageError(f"--mesh-tree {path}: {error}") from error

    def find_inputs(self, storage: Storage, output: str, is_local_run: bool) -> RunInputs:
        """Return the files of PubMed."""
        return pubmed_files.find_inputs(storage, self.options, output, is_local_run)

    def build(self, root: beam.Pipeline, job: ShardsJob) -> None:
        """Build the graph."""
        pubmed_to_shards.build(root, job)


class PmcDriver(ShardsDriver):
    """Runs ``pmc_to_shards``."""

    pipeline = pmc_to_shards.NAME

    def find_inputs(self, storage: Storage, output: str, is_local_run: bool) -> RunInputs:
        """Return the article files, and PMC's articles to download."""
        return article_files.find_inputs(storage, self.options, output, is_local_run)

    def build(self, root: beam.Pipeline, job: ShardsJob) -> None:
        """Build the graph."""
        pmc_to_shards.build(root, job)


class TextDriver(ShardsDriver):
    """Runs ``text_to_shards``."""

    pipeline = text_to_shards.NAME

    def find_inputs(self, storage: Storage, output: str, is_local_run: bool) -> RunInputs:
        """Return the text files."""
        notices: list[str] = []
        return RunInputs(discover_sources(storage, self.options.input, notices.append), notices=notices)

    def build(self, root: beam.Pipeline, job: ShardsJob) -> None:
        """Build the graph."""
        text_to_shards.build(root, job)


def _read_abstracts_digest(storage: Storage, overlap_with: str) -> str:
    """Return the digest that identifies the abstracts to look for in the articles."""
    try:
        return full_text_overlap.digest_abstracts(storage, overlap_with.rstrip("/"))
    except (FileNotFoundError, ManifestError, full_text_overlap.OverlapInputError) as error:
        raise UsageError(f"--find-overlap-with: {str(error).rstrip('.')}") from error


def _read_ids(storage: Storage, option: str, path: str | None) -> ListedIds | None:
    """Read the list of ids that an option names, None without one."""
    return None if path is None else _parse_file(storage, option, path, id_lists.parse)


def _parse_file(
    storage: Storage, option: str, path: str, parse: Callable[[BinaryIO, str], ParsedT]
) -> ParsedT:
    """Parse the file that an option names.

    Raises:
        UsageError: it does not exist, cannot be read, or ``parse`` raises a UserError.
    """
    if not storage.exists(path):
        raise UsageError(f"{option} {path}: there is no such file")
    try:
        with storage.open(path) as file:
            return parse(file, path)
    except UserError as error:
        raise UsageError(f"{option}: {error}") from error
    except TransientStorageError:
        raise
    except OSError as error:
        raise UsageError(f"{option} {path} cannot be read: {error.strerror or error}") from error


def _format_overlap(manifest: DocumentsManifest) -> list[str]:
    """Return a line for each list of abstracts whose full text is in the output."""
    return [
        f"  {overlap_file.rows:>12,}  abstracts of {overlap_file.abstracts_path} are here in full: "
        f"{overlap_file.file}"
        for overlap_file in manifest.overlap
    ]


def _format_id_lists(manifest: DocumentsManifest) -> list[str]:
    """Return a line on each list of ids."""
    return [
        f"  {id_list.matched:>12,}  of {id_list.num_ids:,} ids to {verb} a document"
        for id_list, verb in (
            (manifest.inclusion_list, "include kept"),
            (manifest.exclusion_list, "exclude dropped"),
        )
        if id_list
    ]
