"""From a command line to an exit code, with errors that say what, where, why and what to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from bioshards.corpus.download.http_client import DownloadError
from bioshards.corpus.exit_codes import INTERRUPTED
from bioshards.corpus.ui.error_report import report_error
from bioshards.pipelines.options.parser import UsageError

from .registry import load_command


def run_command(name: str, argv: Sequence[str]) -> int:
    """Run ``beam run NAME``, or ``beam copy``, with these arguments; returns the exit code."""
    parser, run = load_command(name)
    try:
        args, beam_args = parser.parse_known_args(list(argv))
        return run(parser, args, beam_args, argv)
    except SystemExit as parse_exit:  # --help
        return int(parse_exit.code or 0)
    except KeyboardInterrupt as interrupt:
        print(file=sys.stderr)
        stopped = "stopped. Nothing is lost: run the same command again to continue"
        code = _print_error(str(interrupt) or stopped, INTERRUPTED)
        sys.stdout.flush()
        os._exit(code)  # Beam's threads do not end by themselves
    except Exception as error:
        if isinstance(error, UsageError):
            error.hint = f"See {parser.prog} --help"
        elif isinstance(error, DownloadError):
            mirror = "MIRROR/pmc" if name == "pmc_to_shards" else "MIRROR/pubmed"
            error.hint = (
                "Nothing was begun: see whether the network is there and run again. What a mirror holds can "
                f"be processed without a network: --input {mirror}"
            )
        return _print_error(*report_error(error))


def _print_error(message: str, code: int) -> int:
    print(f"beam: {message}", file=sys.stderr)
    return code
