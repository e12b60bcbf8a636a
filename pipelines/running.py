"""From a command line to an exit code, with errors that say what, where, why and what to do."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence

from bioshards.corpus.command import report_error
from bioshards.corpus.download.web import DownloadError
from bioshards.corpus.exit_codes import INTERRUPTED

from .options import Parser, UsageError


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


def load_command(name: str) -> tuple[Parser, Callable[..., int]]:
    """A pipeline's options, and what runs it.  Each imports only what it needs."""
    if name == "copy":
        from . import copying

        return copying.make_parser(), copying.run
    if name == "fetch":
        from . import fetch, fetch_job

        return fetch.make_parser(), fetch_job.run
    if name == "shards_to_words":
        from . import shards_to_words

        return shards_to_words.make_parser(), shards_to_words.run
    if name == "shards_to_pretraining":
        from . import shards_to_pretraining

        return shards_to_pretraining.make_parser(), shards_to_pretraining.run
    from . import shards_job

    if name == "pmc_to_shards":
        from . import pmc_to_shards

        return pmc_to_shards.make_parser(), functools.partial(shards_job.run, pmc_to_shards)
    from . import pubmed_to_shards

    return pubmed_to_shards.make_parser(), functools.partial(shards_job.run, pubmed_to_shards)


def _print_error(message: str, code: int) -> int:
    print(f"beam: {message}", file=sys.stderr)
    return code
