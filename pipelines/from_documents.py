"""The course of a run that reads finished directories of documents, from its folders to its exit code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeVar

from bioshards.corpus import workspace
from bioshards.corpus.errors import MissingExtraError
from bioshards.corpus.exit_codes import NOT_PUBLISHED, OK
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import Manifest, read_manifest
from bioshards.corpus.workspace import Workspace

from .dataflow import Task
from .executing import Watcher, execute, prepare
from .options import Parser, UsageError
from .starting import absolute, begun, for_workers_elsewhere, output_at_fault, where

if TYPE_CHECKING:
    import apache_beam as beam

    from .plan import Plan


class Job(Protocol):
    """What is known of every such run once its inputs have been looked at."""

    @property
    def files(self) -> LocalFiles: ...

    @property
    def work(self) -> Workspace: ...

    @property
    def inputs(self) -> Sequence[Any]: ...

    @property
    def items(self) -> int:
        """How many there are of what a worker does at a time."""
        ...

    @property
    def config(self) -> dict[str, Any]: ...


J = TypeVar("J", bound=Job)
M = TypeVar("M", bound=Manifest)


def add_folders(parser: Parser) -> Any:
    """The options of where is read and written; returns their group."""
    shared = parser.add_argument_group("input and output")
    shared.add_argument(
        "--input",
        action="append",
        metavar="DIR",
        help="a finished --output of pubmed_to_shards or pmc_to_shards, also on gs:// or s3://; may be "
        "given several times",
    )
    shared.add_argument("--output", metavar="DIR", help="folder to write; one for each configuration")
    shared.add_argument(
        "--dry-run",
        action="store_true",
        help="only say what would be read and made, and for how long; nothing is written",
    )
    return shared


def of_extra(pipeline: str, module: str) -> Any:
    """A module of this folder that needs libraries of the extra ``vocab``, which is loaded for a run only.

    Raises:
        MissingExtraError: one of them cannot be imported.
    """
    try:
        return importlib.import_module(f".{module}", __package__)
    except ImportError as error:
        raise MissingExtraError(
            f"{pipeline} needs a library that cannot be imported ({error}): pip install 'bioshards[vocab]'"
        ) from error


def run(
    parser: Parser,
    options: Any,
    rest: Sequence[str],
    job_of: Callable[[LocalFiles, list[str]], J],
    *,
    finished: Callable[[J], bool],
    build: Callable[[beam.Pipeline, J], None],
    watcher: Callable[[J, TextIO], Watcher],
    lines: Callable[[J, M], Iterable[str]],
    planned: Callable[[J], Plan],
    kind: type[M],
    beside: Sequence[str] = (),
) -> int:
    """Do what the command line asks for; returns the exit code.

    Args:
        job_of: makes the job of the inputs' paths, and looks at the inputs.
        finished: is there nothing to do?
        lines: what to say at the end, of the manifest.
        planned: what a dry run says.
        kind: the type of the manifest.
        beside: what else is read before the run, on whichever store.

    Raises:
        UsageError, InputError, OutputMismatchError: nothing has been begun.
    """
    given = [absolute(folder) for folder in options.input or []]
    output = {"--output": options.output} if options.output else {}
    notices = for_workers_elsewhere(rest, output, options.dry_run)
    for folder in given:
        notices += for_workers_elsewhere(rest, {"--input": folder}, options.dry_run)
    paths = [*given, *beside, options.output or ""]
    place = where(parser, rest, options.workers, paths, paths[-1:] if options.dry_run else [])
    files = place.files
    if not given:
        raise UsageError("--input DIR is missing: a finished --output of pubmed_to_shards or pmc_to_shards")
    if not options.output:
        raise UsageError("--output DIR is missing: the folder to write")
    job = job_of(files, given)
    with output_at_fault(job.work.output):
        workspace.check(files, job.work, job.config)
    config = job.config
    task = Task(config["pipeline"], job.work.output, job.items, ("vocab",), config["library_versions"])
    if options.dry_run:
        from . import estimates

        print(
            estimates.said(planned(job), notices, place, task, options.workers, lambda root: build(root, job))
        )
        return OK
    prepare(place, task)
    with begun(files, job.work, config):
        if finished(job):
            inputs = f"{len(job.inputs)} inputs are" if len(job.inputs) > 1 else "input is"
            print(f"{job.work.output} is finished and its {inputs} unchanged: nothing to do.")
            return OK
        workspace.clear(files, job.work)
        later = execute(
            lambda root: build(root, job),
            place,
            options.workers,
            task,
            lambda terminal: watcher(job, terminal),
        )
        return _report(job, lines, later, kind)


def _report(job: J, lines: Callable[[J, M], Iterable[str]], later: str, kind: type[M]) -> int:
    if later:
        print(later)
        return OK
    files, work = job.files, job.work
    problem = files.read_json(work.outcome)["problem"]
    if problem:
        print(f"beam: {problem}", file=sys.stderr)
        return NOT_PUBLISHED
    manifest = read_manifest(files, work.output)
    assert isinstance(manifest, kind)
    print("\n".join([*lines(job, manifest), f"{'report:':13} {work.manifest}"]))
    return OK
