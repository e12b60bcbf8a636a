"""JobSpec: to be described."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from bioshards.corpus.storage.local_storage import LocalStorage


@dataclass(frozen=True, slots=True)
class JobSpec:
    """What a runner elsewhere has to know of a run.

    Attributes:
        items: how many there are of what a worker does at a time, in the widest step.
        extras: those of the package whose libraries the workers need.
        tools: further libraries, with the versions that are the run's configuration.
    """

    pipeline: str
    output: str
    num_items: int
    extras: tuple[str, ...] = ()
    library_versions: Mapping[str, str] = field(default_factory=dict)


class RunContext(NamedTuple):
    """Where a run goes on.

    Attributes:
        runner_given: does the command line name a runner?
        on_dataflow: is it Dataflow's?
        beams: Beam's PipelineOptions; None where none are needed before the run, as Beam is slow to import.
        files: the storage of its inputs and outputs, which are at ``paths``.
        notices: what is to be said of a dry run that cannot look at all of them.
    """

    has_runner: bool
    is_on_dataflow: bool
    beam_options: Any
    storage: LocalStorage
    paths: tuple[str, ...]
    notices: tuple[str, ...] = ()
