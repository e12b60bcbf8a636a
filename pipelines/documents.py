"""What the pipelines that read document shards share: the beginning and the end of their runs."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Sequence

from bioshards.corpus.shards import input_dirs
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.pipelines.context import PathOption
from bioshards.pipelines.options import DocumentsOptions
from bioshards.pipelines.run import CommandLine, Session, make_absolute, open_session, print_notices
from bioshards.pipelines.steps import Job


def open_documents_session(
    line: CommandLine, options: DocumentsOptions, other_paths: Iterable[PathOption] = ()
) -> Session:
    """Open the storage of the output, the inputs and other paths that the options name."""
    output = [PathOption("--output", options.output, is_written=True)] if options.output else []
    inputs = [PathOption("--input", make_absolute(folder)) for folder in options.input]
    return open_session(line, options, [*output, *inputs, *other_paths])


def load_inputs(session: Session, options: DocumentsOptions) -> list[DocumentsInput]:
    """Load the directories of documents to read.

    Raises:
        UserError: one cannot be used, or is the output.
    """
    folders = [make_absolute(folder) for folder in options.input]
    input_dirs.check_disjoint(folders, make_absolute(options.output))
    inputs = input_dirs.load_document_inputs(session.storage, folders)
    print_notices(input_dirs.describe_shared_sources(inputs))
    return inputs


def find_versions(libraries: Sequence[str]) -> dict[str, str]:
    """Return the installed versions of libraries that results depend on."""
    return {library: importlib.metadata.version(library) for library in libraries}


def format_finished(job: Job, inputs: Sequence[object]) -> str:
    """Return the message on a finished output whose inputs have not changed."""
    unchanged = f"its {len(inputs)} inputs are unchanged" if len(inputs) > 1 else "its input is unchanged"
    return f"{job.output.path} is finished and {unchanged}: nothing to do."
