"""Where and what a run is, as the runners need to know it: JobSpec, RunContext, PathOption."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

    from bioshards.corpus.storage.storage_protocol import Storage


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a runner has to know of a run.

    Attributes:
        pipeline: name of the pipeline, for example ``pubmed_to_shards``.
        output: path of the output directory.
        num_items: number of items of the widest step; a worker processes one at a time.
        extras: extras of the package whose libraries the workers need.
        library_versions: further libraries, with the versions that are part of the run's configuration.
    """

    pipeline: str
    output: str
    num_items: int
    extras: tuple[str, ...] = ()
    library_versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PathOption:
    """A path that the command line names.

    Attributes:
        option: the option, for messages.
        is_written: True if the run writes it; a dry run may then plan without access to it.
        is_used_by_workers: True if workers open it, and not only the driver.
    """

    option: str
    path: str
    is_written: bool = False
    is_used_by_workers: bool = True


class RunContext(NamedTuple):
    """Where a run is executed, and its storage.

    Attributes:
        has_runner: True if the command line names a runner.
        is_on_dataflow: True if that runner is Dataflow's.
        beam_options: Beam's options; None if none are needed before the run, so that Beam is imported late.
        storage: storage of the inputs and outputs.
        paths: the inputs and outputs.
        notices: limits of a dry run that has no access to some of the paths.
    """

    has_runner: bool
    is_on_dataflow: bool
    beam_options: PipelineOptions | None
    storage: Storage
    paths: tuple[str, ...]
    notices: tuple[str, ...] = ()

    @property
    def is_local_run(self) -> bool:
        """Return True if the job runs in processes of this machine."""
        return not self.has_runner

    def get_all_beam_options(self) -> dict[str, Any]:
        """Return the values of Beam's options by name; a run with a runner has them."""
        assert self.beam_options is not None
        values: dict[str, Any] = self.beam_options.get_all_options()
        return values
