"""The ``beam`` command: list pipelines, run one; from the command line to an exit code.

``beam list`` and ``--help`` answer at once, because a pipeline's module is imported when it is asked for, and
neither Beam nor the libraries of an extra before it runs.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, Protocol, cast

from bioshards.corpus.errors import (
    INTERRUPTED,
    OK,
    LostServiceError,
    MissingExtraError,
    UsageError,
    describe_install,
    escape_line,
)
from bioshards.corpus.ui.command_line import interrupt_on_sigterm, report_error
from bioshards.corpus.ui.options import choose_command, open_standard_files, report_usage_error
from bioshards.corpus.ui.terminal import escape_output

if TYPE_CHECKING:
    from bioshards.pipelines.options import Parser
    from bioshards.pipelines.run import CommandLine

PIPELINES: Final = {
    "fetch": "PubMed, PMC and Europe PMC into a mirror of verified files",
    "pubmed_to_shards": "PubMed citation XML to sentence-split document shards",
    "pmc_to_shards": "full-text articles (JATS XML) to sentence-split document shards",
    "text_to_shards": (
        "text files of your own (JSON Lines, Parquet, plain text) to sentence-split document shards"
    ),
    "shards_to_words": "document shards to exact counts of their words, for a vocabulary",
    "shards_to_pretraining": "document shards and a vocabulary to pretraining examples",
}
"""What each pipeline does, in a line.  The module of its name has its options and its run."""
_EXTRAS: Final = {"shards_to_words": "vocab", "shards_to_pretraining": "vocab"}
"""Extra of the package whose libraries a pipeline needs."""

USAGE = """\
usage: beam list
       beam run PIPELINE --output DIR [options]
       beam run PIPELINE --help

pipelines:
""" + "".join(f"  {name:21} {description}\n" for name, description in PIPELINES.items())


@escape_output()
def main(argv: Sequence[str] | None = None, program: str = "beam") -> int:
    """Run the command; returns its exit code.

    Args:
        argv: command line without the program; default: ``sys.argv``.
        program: what was typed before it, for messages.
    """
    open_standard_files()
    args = list(sys.argv[1:] if argv is None else argv)
    if args in (["list"], ["--list"]):
        print("\n".join(f"{name:21} {description}" for name, description in PIPELINES.items()))
        return OK
    try:
        if choose_command(program, ("run", "list"), args, USAGE) == "list":
            report_usage_error(program, f"unexpected word {args[1]!r} after list")
        name = choose_command(f"{program} run", tuple(PIPELINES), args[1:], USAGE, "pipeline")
    except SystemExit as usage_exit:
        return int(usage_exit.code or OK)
    return run_command(name, args[2:], f"{program} run {name}")


class PipelineModule(Protocol):
    """The module of a pipeline."""

    def make_parser(self) -> Parser[Any]:
        """Return the parser of the options."""
        ...

    def run(self, options: Any, line: CommandLine) -> int:
        """Run the pipeline and return the exit code."""
        ...


def load_pipeline(name: str) -> PipelineModule:
    """Import the module of a pipeline."""
    return cast(PipelineModule, importlib.import_module(f".{name}", __package__))


@escape_output()
def run_command(name: str, argv: Sequence[str], typed: str) -> int:
    """Run a pipeline with these arguments and return the exit code; print the error that ends it.

    Args:
        name: the pipeline.
        argv: what follows its name.
        typed: what was typed before, ``beam run NAME``, for messages.
    """
    program = typed.split()[0]
    try:
        with interrupt_on_sigterm():
            return _run_pipeline(name, argv, typed)
    except SystemExit as parse_exit:  # --help
        return int(parse_exit.code or 0)
    except KeyboardInterrupt as interrupt:
        print(file=sys.stderr)
        stopped = "stopped. Completed work is kept: run the same command again to continue"
        _end_at_once(_print_error(program, str(interrupt) or stopped, INTERRUPTED))
    except LostServiceError as error:
        _end_at_once(_print_error(program, *report_error(error)))
    except Exception as error:
        if isinstance(error, UsageError):
            error.hint = f"See {typed} --help"
        else:
            _add_download_hint(error, name)
        message, code = report_error(error)
        is_usage_error = isinstance(error, UsageError)
        return _print_error(program, escape_line(message) if is_usage_error else message, code)


def _run_pipeline(name: str, argv: Sequence[str], typed: str) -> int:
    pipeline = load_pipeline(name)
    if any(word.partition("=")[0] == "--like" for word in argv):
        from bioshards.pipelines.reproduction import expand_arguments  # here, as --help needs no pyarrow

        argv = expand_arguments(name, argv)
    parser = pipeline.make_parser()
    parser.prog = typed
    options, beam_args = parser.parse_known_options(argv)
    options.check()
    if not any(word.startswith("--runner") for word in beam_args):
        # Errors reach people as our own lines. Before Beam is imported, which warns of what it does not need.
        logging.getLogger().setLevel(logging.CRITICAL)
    from bioshards.pipelines.run import make_command_line

    try:
        return pipeline.run(options, make_command_line(name, parser, beam_args, argv))
    except ModuleNotFoundError as error:
        if name not in _EXTRAS:
            raise
        raise MissingExtraError(
            f"{name} needs a library that cannot be imported ({error}): {describe_install(_EXTRAS[name])}"
        ) from error


def _add_download_hint(error: Exception, name: str) -> None:
    """Say what can be done about a server that does not answer."""
    from bioshards.corpus.download.http_client import DownloadError, UnreachableError  # takes a while

    if isinstance(error, DownloadError) and not error.hint:
        mirror = "MIRROR/pmc" if name == "pmc_to_shards" else "MIRROR/pubmed"
        suspect = "network" if isinstance(error, UnreachableError) else "address"
        error.hint = (
            f"Nothing was written: check the {suspect} and run again. A mirror can be processed offline: "
            f"--input {mirror}"
        )


def _print_error(program: str, message: str, code: int) -> int:
    print(f"{program}: {message}", file=sys.stderr)
    return code


def _end_at_once(code: int) -> NoReturn:
    """End the process without a wait for Beam's threads: they do not end by themselves, or abort it."""
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
