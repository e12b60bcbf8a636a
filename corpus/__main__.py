"""Inspect a finished directory: ``python -m bioshards.corpus export | show | stats | verify``."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from bioshards.corpus.errors import INTERRUPTED
from bioshards.corpus.ui.error_report import report_error
from bioshards.corpus.ui.options import Argument, Option, OptionParser


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportOptions:
    """The options of ``export``."""

    folder: Annotated[str, Argument(metavar="DIR")]
    format: Annotated[
        Literal["text", "jsonl", "parquet"],
        "one sentence a line with a blank line between documents (default), or all columns",
    ] = "text"
    output: Annotated[
        str | None,
        Option("folder for compressed files (default: text and jsonl to standard output)", metavar="DIR"),
    ] = None
    exclude_overlap_with: Annotated[
        str | None,
        Option("exclude abstracts of which this directory of PMC articles has the full text", metavar="DIR"),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """The options of ``show``."""

    folder: Annotated[str, Argument(metavar="DIR")]
    id: Annotated[str, "document id such as pubmed:12345678, or a PMID, PMCID or DOI"]


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


COMMANDS: Final[dict[str, tuple[type[ExportOptions | ShowOptions | StatsOptions | VerifyOptions], str]]] = {
    "export": (ExportOptions, "write documents as text, JSON lines or Parquet"),
    "show": (ShowOptions, "print one document"),
    "stats": (StatsOptions, "print statistics of documents or of a pretraining set"),
    "verify": (VerifyOptions, "compare every file of a finished directory with its manifest"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = OptionParser(prog="python -m bioshards.corpus", description="Inspect a finished directory.")
    options = parser.parse_command(COMMANDS, list(sys.argv[1:] if arguments is None else arguments))
    try:
        from bioshards.corpus import commands  # here, so that --help does not wait for pyarrow

        if isinstance(options, StatsOptions):
            commands.write_stats(options.folder, options.json, options.html)
            return 0
        if isinstance(options, ExportOptions):
            commands.export(
                options.folder, sys.stdout, options.exclude_overlap_with, options.format, options.output
            )
            sys.stdout.flush()
            return 0
        if isinstance(options, VerifyOptions):
            return commands.print_check(options.folder)
        document = commands.find_document(options.folder, options.id)
        if document is None:
            print(f"{options.folder} has no document {options.id}", file=sys.stderr)
            return 1
        print("\n".join(commands.format_document(document)), flush=True)
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("\nstopped: run the same command again", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        message, exit_code = report_error(error)
        print(message, file=sys.stderr)
        return exit_code


if __name__ == "__main__":
    sys.exit(main())
