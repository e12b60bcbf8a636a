"""Command-line options: those every pipeline shares, and what to say of a misspelt one.

The options are parsed by argparse, not as Beam ``PipelineOptions``: Beam's are global to a process
and drop a misspelt one with a warning.  What is left over goes to Beam, and only if Beam knows it.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import logging
import os
from collections.abc import Sequence
from typing import Final, NoReturn

from bioshards.corpus.errors import UserError

from .values import at_least, contact, share

BEAM_OPTIONS_HELP: Final = """\
Runner: without --runner the job runs on this machine, in --workers processes. Any Beam runner can be
named instead, and all its own options follow as they are, for example
  --runner=DataflowRunner --project=P --region=R --temp_location=gs://BUCKET/tmp
  --runner=PortableRunner --job_endpoint=HOST:PORT --environment_type=EXTERNAL --environment_config=...
Options of Beam's file systems (--s3_endpoint_url ...) work with and without a runner."""


class UsageError(UserError):
    """The command line is wrong; the message says how to mend it."""


class Parser(argparse.ArgumentParser):
    """An argparse parser that leaves the exit to its caller and takes no abbreviations."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=BEAM_OPTIONS_HELP,
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def add_download(parser: Parser, mirror: str) -> None:
    """The options of pipelines that fetch; ``mirror`` says where the mirror is if it is not said."""
    download = parser.add_argument_group("files that are fetched")
    download.add_argument(
        "--mirror",
        metavar="DIR",
        help="folder of verified copies, also on gs:// or s3://; what is in it is not fetched again "
        f"(default: {mirror})",
    )
    download.add_argument(
        "--contact",
        type=contact,
        metavar="ADDRESS",
        help="tell the servers whom to write to if there is trouble",
    )
    download.add_argument(
        "--dry-run",
        action="store_true",
        help="only say what would be fetched and processed, and for how long; nothing is written",
    )


def add_workers(parser: Parser) -> argparse._ArgumentGroup:
    """How a run goes on this machine."""
    run = parser.add_argument_group("how it runs")
    run.add_argument(
        "--workers",
        type=at_least(1),
        metavar="N",
        default=os.cpu_count() or 1,
        help="local processes (default: one for each core, here %(default)s); a --runner has its own option",
    )
    return run


def add_local(parser: Parser, what: str) -> None:
    """How a run goes on this machine, and how much of ``what`` may be bad."""
    add_workers(parser).add_argument(
        "--max-rejected",
        type=share,
        metavar="SHARE",
        default=0.001,
        help=f"share of {what} that may be rejected before the run fails at its end (default: %(default)s)",
    )


def add_shared(parser: Parser, presets: Sequence[str], inputs: str) -> None:
    """The options that every pipeline has, with the same meaning everywhere; ``inputs``: what it reads."""
    shared = parser.add_argument_group("input and output")
    shared.add_argument(
        "--input",
        action="append",
        metavar="PATH",
        help=inputs,
    )
    shared.add_argument("--output", metavar="DIR", help="folder to write; one for each configuration")
    shared.add_argument(
        "--preset", choices=presets, help="the rules of a paper's corpus; options given beside it win over it"
    )
    shared.add_argument(
        "--keep-dropped",
        action="store_true",
        help="also write the dropped documents, with reasons, to DIR/dropped",
    )
    shared.add_argument(
        "--max-shard-mb",
        type=at_least(1),
        metavar="MB",
        default=256,
        help="largest shard in megabytes (default: %(default)s)",
    )


def beam_options(rest: Sequence[str], parser: Parser, **ours: object) -> object:
    """Beam's PipelineOptions of the options that are not the pipeline's own.

    Raises:
        UsageError: an option that neither the pipeline nor Beam knows, with the nearest one.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    logging.getLogger("apache_beam.options").setLevel(logging.ERROR)  # the errors below say it better
    strays = [word for word in rest if not word.startswith("-")]
    if strays and rest[0] == strays[0]:
        paths = "; paths are given with --input and --output"
        raise UsageError(
            f"{strays[0]} is no option{paths if '--output' in parser._option_string_actions else ''}"
        )
    usage = io.StringIO()  # which argparse prints, a hundred lines before the reason
    try:
        with contextlib.redirect_stderr(usage):
            options = PipelineOptions(list(rest), **ours)
            known = options.get_all_options()
            unknown = set(options.get_all_options(retain_unknown_options=True)) - set(known)
    except SystemExit as refused:
        reason = usage.getvalue().strip().rpartition("error: ")[2]
        hint = " (did you mean --dry-run?)" if "--dry_run" in reason else ""
        raise UsageError(f"Beam does not take these options: {reason}{hint}") from refused
    for name in sorted(unknown):
        own = [option for action in parser._actions for option in action.option_strings]
        theirs = [f"--{option}" for option in known]
        given = next(
            (word.split("=")[0] for word in rest if word.lstrip("-").split("=")[0].replace("-", "_") == name),
            f"--{name}",
        )
        near = difflib.get_close_matches(given, [*own, *theirs], 1, 0.5)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise UsageError(f"unknown option {given}{hint}")
    return options
