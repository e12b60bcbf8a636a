"""``python -m bioshards.vocab``: build a vocabulary, adopt a published one, or rewrite the report of one."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import sys
from collections.abc import Sequence
from typing import Final

from bioshards.corpus.exit_codes import INTERRUPTED, OK, USAGE_ERROR
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.error_report import report_error
from bioshards.corpus.ui.options import OptionParser
from bioshards.corpus.ui.progress import Progress

from .options import AdoptOptions, BuildOptions, ReportOptions, RewriteOptions

_COMMANDS: Final[dict[str, tuple[type[ReportOptions], str]]] = {
    "build": (BuildOptions, "build a vocabulary from documents or counted words"),
    "adopt": (AdoptOptions, "make a vocabulary of a published one, with its ids"),
    "report": (RewriteOptions, "rewrite the report of a vocabulary"),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    parser = OptionParser(
        prog="python -m bioshards.vocab",
        description="Build a vocabulary from a corpus, adopt a published one, or report on one.",
    )
    options = dataclasses.replace(parser.parse_command(_COMMANDS, argv), command=tuple(argv))
    progress = Progress(sys.stderr)
    try:
        return _print_result(_run_command(options, progress))
    except KeyboardInterrupt:
        message = "stopped. No partial output is left: run the same command again"
        return _print_result(message, INTERRUPTED)
    except ImportError as error:
        return _print_result(f"a library is missing ({error}): pip install 'bioshards[vocab]'", USAGE_ERROR)
    except Exception as error:
        memory_hint = "give a higher --min-count, or a machine with more"
        return _print_result(*report_error(error, memory_hint))


def _run_command(options: ReportOptions, progress: Progress) -> str:
    from . import adopt, commands  # here, so that --help does not wait for pyarrow

    match options:
        case BuildOptions():
            return commands.run_build(LocalStorage(), options, progress)
        case AdoptOptions():
            return adopt.run_adopt(LocalStorage(), options, progress)
        case _:
            assert isinstance(options, RewriteOptions)
            return commands.run_report(LocalStorage(), options, progress)


def _print_result(message: str, exit_code: int = OK) -> int:
    with contextlib.suppress(OSError):  # the reader of the pipe is gone
        if exit_code == OK:
            print(message, flush=True)
        else:
            print(f"vocab: {message}", file=sys.stderr)
    return exit_code


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
