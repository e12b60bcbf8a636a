"""Inspect a finished directory: ``bioshards corpus export | stats | verify``.

What a command needs is imported by its function, so that ``--help`` does not wait for pyarrow.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from bioshards.corpus.errors import FAILED, INTERRUPTED, OK, InvalidValueError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.command_line import report_error
from bioshards.corpus.ui.options import Argument, Option, parse_command
from bioshards.corpus.ui.terminal import discard, escape_output, get_raw_stream, write_data


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """The options of ``export``."""

    folder: Annotated[str, Argument(metavar="DIR")]
    format: Annotated[
        Literal["text", "jsonl"],
        "one sentence a line with a blank line between documents (default), or all columns",
    ] = "text"
    output: Annotated[
        str | None,
        Option("folder for compressed files (default: to standard output)", metavar="DIR"),
    ] = None
    exclude_overlap_with: Annotated[
        str | None,
        Option("exclude abstracts of which this directory of PMC articles has the full text", metavar="DIR"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsOptions:
    """The options of ``stats``."""

    folder: Annotated[str, Argument(metavar="DIR")]
    json: Annotated[
        str | None, Option("write all statistics as JSON; - for standard output", metavar="FILE")
    ] = None
    html: Annotated[str | None, Option("write an HTML report with charts", metavar="FILE")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyOptions:
    """The options of ``verify``."""

    folder: Annotated[str, Argument(metavar="DIR")]


Options = ExportOptions | StatsOptions | VerifyOptions

COMMANDS: Final[dict[str, tuple[type[Options], str]]] = {
    "export": (ExportOptions, "write documents as text or JSON lines"),
    "stats": (StatsOptions, "print statistics of documents or of a pretraining set"),
    "verify": (VerifyOptions, "compare every file of a finished directory with its manifest"),
}


@escape_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    options = parse_command("bioshards corpus", COMMANDS, words)
    try:
        return _run_command(options)
    except BrokenPipeError:
        discard(get_raw_stream(sys.stdout))
        return OK
    except KeyboardInterrupt:
        print("\nstopped: run the same command again", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        message, exit_code = report_error(error)
        print(message, file=sys.stderr)
        return exit_code


def _run_command(options: Options) -> int:
    match options:
        case ExportOptions():
            return export(options)
        case StatsOptions():
            return write_stats(options)
        case VerifyOptions():
            return verify(options.folder)


def export(options: ExportOptions) -> int:
    """Write the documents of a directory in another format (shards/export.py).

    Raises:
        FileNotFoundError: a directory is not finished.
        InvalidValueError: the folder exists.
        OverlapInputError: the directory of articles does not list its overlap with this one.
    """
    from bioshards.corpus.lifecycle import full_text_overlap
    from bioshards.corpus.manifest import check_listed
    from bioshards.corpus.shards import document_shards
    from bioshards.corpus.shards.export import export_files, format_documents

    storage, folder, is_text = LocalStorage(), options.folder, options.format == "text"
    batches = document_shards.read_directory(storage, folder, ["sentences"] if is_text else None)
    if options.exclude_overlap_with is not None:
        check_listed(storage, options.exclude_overlap_with, (full_text_overlap.FILE_NAME,))
        overlap = full_text_overlap.read(storage, options.exclude_overlap_with, folder)
        batches = full_text_overlap.exclude_ids(
            document_shards.read_directory(storage, folder), overlap["id"]
        )
    if options.output is not None:
        if os.path.exists(options.output):
            raise InvalidValueError(f"--output {options.output} exists: remove it, or name a new folder")
        for path in export_files(storage, batches, options.output, options.format):
            print(path)
        return OK
    separator = ""
    for batch in batches:
        text = format_documents(batch, options.format)
        write_data(separator + (text.removesuffix("\n") if is_text else text))
        separator = "\n" if is_text else ""
    return OK


def write_stats(options: StatsOptions) -> int:
    """Write the statistics of a directory as JSON, as HTML, or as text to standard output.

    Raises:
        FileNotFoundError: the directory is not finished.
        StatsError: the directory cannot be summarised or is damaged, or a file cannot be written.
    """
    from bioshards.corpus.stats import directory_stats, report

    result = directory_stats.compute_stats(LocalStorage(), options.folder)
    if options.json is not None:
        _write_text(options.json, directory_stats.to_json(result))
    if options.html is not None:
        name = os.path.basename(os.path.abspath(options.folder))
        _write_text(options.html, report.render_stats_page(result, name))
    if options.json is options.html is None:
        _write_text("-", report.render_text(result))
    return OK


def _write_text(path: str, text: str) -> None:
    from bioshards.corpus.stats.directory_stats import StatsError

    if path == "-":
        write_data(text)
        return
    try:
        with LocalStorage().write(path) as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise StatsError(f"{path} cannot be written: {error.strerror}") from error


def verify(folder: str) -> int:
    """Compare a directory with its manifest; print the result and return the exit code."""
    from bioshards.corpus.manifest import Shard
    from bioshards.corpus.shards.input_dirs import check_directory
    from bioshards.corpus.ui.progress import Progress

    with Progress(sys.stderr).bar(f"verifying {folder}", is_transient=True):
        entries, problems = check_directory(LocalStorage(), folder)
    num_rows = sum(entry.rows for entry in entries if isinstance(entry, Shard))
    num_bytes = sum(entry.bytes for entry in entries)
    counts = f"{len(entries):,} files, {num_rows:,} rows, {num_bytes:,} bytes"
    if not problems:
        print(f"{folder} is as its manifest lists it: {counts}")
        return OK
    print("\n".join(problems), file=sys.stderr)
    print(
        f"{folder} differs from its manifest in {len(problems):,} files (of {counts}): "
        "make it again, or copy it again",
        file=sys.stderr,
    )
    return FAILED


if __name__ == "__main__":
    sys.exit(main())
