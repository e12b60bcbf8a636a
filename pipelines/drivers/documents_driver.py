"""The driver of pipelines that read document shards."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar, cast

from bioshards.corpus.manifest import Manifest, read_manifest
from bioshards.corpus.output import output_layout
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.context import JobSpec, PathOption, RunContext
from bioshards.pipelines.drivers.driver import Driver
from bioshards.pipelines.execution.session import make_absolute, translate_output_errors
from bioshards.pipelines.job_types import DocumentsJob
from bioshards.pipelines.options.pipeline_options import DocumentsOptions

OptionsT = TypeVar("OptionsT", bound=DocumentsOptions)
JobT = TypeVar("JobT", bound=DocumentsJob)
ManifestT = TypeVar("ManifestT", bound=Manifest)


class DocumentsDriver(Driver[OptionsT, JobT], Generic[OptionsT, JobT, ManifestT]):
    """Runs a pipeline whose inputs are finished directories of document shards."""

    manifest_type: ClassVar[type[Manifest]]

    def list_paths(self) -> list[PathOption]:
        """Return the output and the inputs."""
        inputs = [PathOption("--input", make_absolute(folder)) for folder in self.options.input]
        output = self.options.output
        return [*([PathOption("--output", output, is_written=True)] if output else []), *inputs]

    def make_job(self, context: RunContext) -> JobT:
        """Load the inputs and return the job."""
        job = self.load_inputs(context.storage, [make_absolute(folder) for folder in self.options.input])
        with translate_output_errors(job.output_dir.path):
            output_layout.check_config(job.storage, job.output_dir, job.config)
        return job

    @abstractmethod
    def load_inputs(self, storage: Storage, input_folders: list[str]) -> JobT:
        """Return the job of these inputs.

        Raises:
            UsageError: options contradict each other.
            InputError: an input cannot be used.
        """

    @abstractmethod
    def format_counts(self, job: JobT, manifest: ManifestT) -> list[str]:
        """Return lines on what the manifest counts."""

    def make_job_spec(self, job: JobT) -> JobSpec:
        """Return the specification of a job whose workers need the extra ``vocab``."""
        return JobSpec(
            self.pipeline, job.output_dir.path, job.num_items, ("vocab",), job.config["library_versions"]
        )

    def describe_inputs(self, job: JobT) -> str:
        """Return the clause on unchanged inputs."""
        return (
            f"its {len(job.inputs)} inputs are unchanged" if len(job.inputs) > 1 else "its input is unchanged"
        )

    def summarize(self, job: JobT, result: Mapping[str, Any]) -> list[str]:
        """Return the counts of the manifest and its path."""
        manifest = read_manifest(job.storage, job.output_dir.path)
        assert isinstance(manifest, self.manifest_type)
        counts = self.format_counts(job, cast(ManifestT, manifest))
        return [*counts, f"{'report:':13} {job.output_dir.manifest_path}"]
