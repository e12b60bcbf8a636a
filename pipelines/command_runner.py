"""Run a command: from the command line to an exit code and a message."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from bioshards.corpus.errors import INTERRUPTED, UsageError
from bioshards.corpus.ui.command_line import interrupt_on_sigterm
from bioshards.corpus.ui.error_report import report_error
from bioshards.pipelines.registry import PIPELINES


def run_command(name: str, argv: Sequence[str]) -> int:
    """Run ``beam run NAME`` with these arguments and return the exit code; print the error that ends it."""
    command = PIPELINES[name]
    parser = command.load_parser()

    def run() -> int:
        args = argv
        if any(word.partition("=")[0] == "--like" for word in args):
            from bioshards.pipelines.reproduction import (
                expand_arguments,  # here, so that --help does not wait for pyarrow
            )

            args = expand_arguments(name, args)
        options, beam_args = parser.parse_known_options(args)
        options.check()
        return command.load_driver()(parser, options, beam_args, args).run()

    try:
        with interrupt_on_sigterm():
            return run()
    except SystemExit as parse_exit:  # --help
        return int(parse_exit.code or 0)
    except KeyboardInterrupt as interrupt:
        print(file=sys.stderr)
        stopped = "stopped. Completed work is kept: run the same command again to continue"
        code = _print_error(str(interrupt) or stopped, INTERRUPTED)
        sys.stdout.flush()
        os._exit(code)  # Beam's threads do not end by themselves
    except Exception as error:
        if isinstance(error, UsageError):
            error.hint = f"See {parser.prog} --help"
            return _print_error(*report_error(error))

        from bioshards.corpus.download.http_client import DownloadError, UnreachableError  # takes a while

        if isinstance(error, DownloadError) and not error.hint:
            mirror = "MIRROR/pmc" if parser.prog.endswith("pmc_to_shards") else "MIRROR/pubmed"
            suspect = "network" if isinstance(error, UnreachableError) else "address"
            error.hint = (
                f"Nothing was written: check the {suspect} and run again. A mirror can be processed offline: "
                f"--input {mirror}"
            )
        return _print_error(*report_error(error))


def _print_error(message: str, code: int) -> int:
    print(f"beam: {message}", file=sys.stderr)
    return code
