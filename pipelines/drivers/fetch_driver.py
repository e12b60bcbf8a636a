"""The driver of ``beam run fetch``."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.sources import SOURCES, SourceSpec
from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.manifest import InventoryIdentity, MirrorConfig, MirrorRun, utc_now
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir, lock_output
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.progress import Progress
from bioshards.pipelines import fetch
from bioshards.pipelines.context import JobSpec, PathOption, RunContext
from bioshards.pipelines.drivers.driver import Driver
from bioshards.pipelines.execution.executor import ProgressMonitor
from bioshards.pipelines.execution.session import translate_output_errors
from bioshards.pipelines.fetch import FetchOptions
from bioshards.pipelines.inputs import article_files
from bioshards.pipelines.inputs.downloads import (
    REMOTE_SLOTS,
    list_source,
    resolve_mirror_folder,
)
from bioshards.pipelines.job_types import FetchJob

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.pipelines.dry_run.cost import DryRunPlan


class FetchDriver(Driver[FetchOptions, FetchJob]):
    """Fills a mirror."""

    pipeline = fetch.NAME

    @functools.cached_property
    def specs_by_source(self) -> dict[str, list[SourceSpec]]:
        """The sources that the inputs name, with their selections."""
        return self.options.parse_specs()

    def list_paths(self) -> list[PathOption]:
        """Return the mirror; check the inputs first."""
        assert self.specs_by_source
        return [PathOption("--mirror", self._folder, is_written=True)]

    @property
    def _folder(self) -> str:
        return resolve_mirror_folder(self.options.mirror or "mirror", "")

    def make_job(self, context: RunContext) -> FetchJob:
        """List the sources that have a listing and return the job without PMC's articles."""
        mirror = Mirror(context.storage, self._folder)
        article_filter = self.options.article_filter
        listed_at = utc_now()
        listings = {
            source: list_source(mirror, source, specs, self.options, context.is_local_run)
            for source, specs in sorted(self.specs_by_source.items())
            if SOURCES[source].folders
        }
        return FetchJob(
            mirror=mirror,
            listings=listings,
            article_plan=None,
            max_rejected=self.options.max_rejected,
            config=MirrorConfig(
                inputs=self.options.input,
                servers={
                    source: listing.download_plan.server.base_url for source, listing in listings.items()
                },
                licences=tuple(sorted(article_filter.licences)),
                sets=tuple(sorted(article_filter.sets)),
                drop_retracted=article_filter.drop_retracted,
                versions=article_filter.versions,
                inventory=None,
            ),
            run_info=MirrorRun(
                command=self.command,
                listed_at=listed_at,
                notices=tuple(notice for listing in listings.values() for notice in listing.notices),
            ),
        )

    def complete_job(self, job: FetchJob, context: RunContext) -> FetchJob:
        """Return the job with PMC's articles; unless it is a dry run, update PMC's inventory for it."""
        if "pmc" not in self.specs_by_source:
            return job
        article_plan = article_files.plan_articles(
            job.mirror,
            self.specs_by_source["pmc"],
            self.options.article_filter,
            self.options,
            context.is_local_run,
        )
        inventory = article_plan.inventory
        config = msgspec.structs.replace(
            job.config,
            servers={**job.config.servers, "pmc": article_plan.download_plan.server.base_url},
            inventory=InventoryIdentity(inventory.date, inventory.md5) if inventory else None,
        )
        self.print_notices(article_plan.notices)
        run_info = msgspec.structs.replace(
            job.run_info, notices=(*job.run_info.notices, *article_plan.notices)
        )
        return dataclasses.replace(job, article_plan=article_plan, config=config, run_info=run_info)

    def make_job_spec(self, job: FetchJob) -> JobSpec:
        """Return the specification of a job with a few download slots for each source."""
        return JobSpec(self.pipeline, job.mirror.folder, REMOTE_SLOTS * len(self.specs_by_source))

    def build(self, root: beam.Pipeline, job: FetchJob) -> None:
        """Build the graph."""
        fetch.build(root, job)

    def plan(self, job: FetchJob) -> DryRunPlan:
        """Return the plan that a dry run prints."""
        from bioshards.pipelines.dry_run import source_plans

        return source_plans.plan_mirror(job)

    def list_notices(self, job: FetchJob) -> Sequence[str]:
        """Return the notices of the listings."""
        return job.run_info.notices

    @contextlib.contextmanager
    def claim_output(self, job: FetchJob) -> Iterator[None]:
        """Lock the mirror; its configuration may change from run to run."""
        _check_is_mirror(job.storage, job.output_dir)
        with translate_output_errors(job.mirror.folder, "--mirror"):
            output_layout.mark_started(job.storage, job.output_dir, {"pipeline": self.pipeline})
        with lock_output(job.storage, job.output_dir, self.options.force):
            yield

    def is_up_to_date(self, job: FetchJob) -> bool:
        """Return False: the manifest is written anew."""
        return False

    def describe_inputs(self, job: FetchJob) -> str:
        """Return the clause on unchanged inputs."""
        return "its sources are unchanged"

    def reset_output(self, job: FetchJob) -> None:
        """Remove the result of the previous run; the graph removes the manifest, after its checks."""
        job.storage.remove(job.output_dir.result_path)

    def count_workers(self, job: FetchJob) -> int:
        """Return 1 if there is nothing to download."""
        return self.options.workers if job.has_work else 1

    def make_progress(self, job: FetchJob, progress: Progress) -> ProgressMonitor:
        """Return the monitor of downloaded files."""
        from bioshards.pipelines.execution.progress_monitor import FetchProgress

        return FetchProgress(job, progress)

    def describe_result(self, job: FetchJob, result: Mapping[str, Any]) -> list[str]:
        """Return lines on downloaded files and articles."""
        lines = []
        if result["files"] or result["problem"]:
            lines.append(
                f"{result['files']:,} files in the mirror, {result['fetched']:,} of them fetched now "
                f"({result['bytes'] / 1e6:,.1f} MB)"
            )
        if articles := result["articles"]:
            lines.append(
                f"{articles['selected']:,} articles selected: {result['articles_cached']:,} were there, "
                f"{result['articles_fetched']:,} are fetched ({result['articles_bytes'] / 1e6:,.1f} MB), "
                f"{articles['failed']:,} could not be; {result['articles_removed']:,} are taken out"
            )
            lines += [
                f"  {count:>12,}  not selected: {reason}"
                for reason, count in articles["not_selected"].items()
            ]
        return lines

    def summarize(self, job: FetchJob, result: Mapping[str, Any]) -> list[str]:
        """Return the paths of the mirror and of its manifest."""
        return [f"mirror:   {job.mirror.folder}", f"report:   {job.output_dir.manifest_path}"]


def _check_is_mirror(storage: Storage, output_dir: OutputDir) -> None:
    """Check that the folder is no other pipeline's output, whose manifest would be removed.

    Raises:
        OutputMismatchError: it is, or nobody can say.
    """
    for path in (output_dir.config_path, output_dir.manifest_path):
        pipeline = "fetch"
        if storage.exists(path):
            try:
                pipeline = storage.read_json(path).get("pipeline", "fetch")
            except (ValueError, AttributeError) as error:
                raise OutputMismatchError(
                    f"{path} is damaged ({error}), so that it does not say whether --mirror "
                    f"{output_dir.path} is a mirror. If it is, delete the file and repeat the command"
                ) from error
        if pipeline != "fetch":
            raise OutputMismatchError(
                f"--mirror {output_dir.path} is an output of {pipeline}. Choose another folder"
            )
