"""From a command line to an exit code, with errors that say what, where, why and what to do."""

from __future__ import annotations

import errno
import functools
import os
import re
import sys
import traceback
from collections.abc import Callable, Sequence

from bioshards.corpus.download.listing import EmptySelection, NoListing
from bioshards.corpus.download.named import BadName
from bioshards.corpus.download.web import WebError
from bioshards.corpus.sources import NoInput
from bioshards.corpus.splitters import MissingExtra
from bioshards.corpus.workspace import WrongOutput
from bioshards.vocab.inputs import WrongInput

from .exits import FAILED, INTERRUPTED, USAGE_ERROR
from .options import Parser, UsageError
from .remote import JobFailed, LostSight, Unasked


def main(name: str, arguments: Sequence[str]) -> int:
    """Run ``beam run NAME``, or ``beam copy``, with these arguments; returns the exit code."""
    parser, run = _pipeline(name)
    try:
        options, rest = parser.parse_known_args(list(arguments))
        return run(parser, options, rest, arguments)
    except SystemExit as left:  # --help
        return int(left.code or 0)
    except UsageError as error:
        return _say(f"{error}. See {parser.prog} --help", USAGE_ERROR)
    except (NoInput, BadName, EmptySelection, WrongInput, WrongOutput, MissingExtra) as error:
        return _say(str(error), USAGE_ERROR)
    except NoListing as error:
        return _say(f"{error}. Nothing was begun", FAILED)
    except WebError as error:
        place = "MIRROR/pmc" if name == "pmc_to_shards" else "MIRROR/pubmed"
        return _say(
            f"{error}. Nothing was begun: see whether the network is there and run again. What a mirror "
            f"holds can be processed without a network: --input {place}",
            FAILED,
        )
    except KeyboardInterrupt as interrupt:
        print(file=sys.stderr)
        stopped = "stopped. Nothing is lost: run the same command again to continue"
        code = _say(str(interrupt) or stopped, INTERRUPTED)
        sys.stdout.flush()
        os._exit(code)  # Beam's threads do not end by themselves
    except Exception as error:
        if os.environ.get("BIOSHARDS_TRACEBACK"):
            traceback.print_exc()
        return _say(_explained(error), FAILED)


def _pipeline(name: str) -> tuple[Parser, Callable[..., int]]:
    """A pipeline's options, and what runs it.  Each imports only what it needs."""
    if name == "copy":
        from . import copying

        return copying.parser(), copying.run
    if name == "fetch":
        from . import fetch, fetch_job

        return fetch.parser(), fetch_job.run
    if name == "shards_to_words":
        from . import shards_to_words

        return shards_to_words.parser(), shards_to_words.run
    if name == "shards_to_pretraining":
        from . import shards_to_pretraining

        return shards_to_pretraining.parser(), shards_to_pretraining.run
    from . import shards_job

    if name == "pmc_to_shards":
        from . import pmc_to_shards

        return pmc_to_shards.parser(), functools.partial(shards_job.run, pmc_to_shards)
    from . import pubmed_to_shards

    return pubmed_to_shards.parser(), functools.partial(shards_job.run, pubmed_to_shards)


def _say(message: str, code: int) -> int:
    print(f"beam: {message}", file=sys.stderr)
    return code


_RAISED = re.compile(
    r"^(?:[\w.]+: )*?([A-Za-z_.]*(?:Error|Exception|Refused|Invalid|Unreachable|Failure)): (.*)$",
    re.MULTILINE,
)


def _cause(error: Exception) -> tuple[str, str]:
    """The kind and the message of what was raised first; the error may hold a worker's whole traceback."""
    raised = _RAISED.findall("".join(traceback.format_exception_only(error)))
    kind, what = raised[-1] if raised else (type(error).__name__, str(error))
    while nested := _RAISED.match(what):
        kind, what = nested.groups()
    return kind, re.sub(r" \[while running '.*", "", what).strip()


def _explained(error: Exception) -> str:
    """What went wrong, in a line or two."""
    kind, what = _cause(error)
    if isinstance(error, JobFailed):
        return _explained_job(error, kind, what)
    if isinstance(error, LostSight | Unasked):
        return str(error)
    if getattr(error, "errno", None) == errno.ENOSPC or os.strerror(errno.ENOSPC) in what:
        return "the disk is full. Free some space and run the same command again: it continues"
    if kind.endswith("StoreFailure"):
        return (
            f"{what}. What was done is kept; when the store answers, run the same command again to continue"
        )
    if kind.endswith("Unreachable"):
        return f"{what}. What was done is kept; run the same command again to continue"
    if "Channel closed" in what:
        return (
            "a worker process ended before its time, perhaps killed because memory ran out. Nothing is lost: "
            "run the same command again to continue, with fewer --workers if memory is short"
        )
    if kind.endswith("FutureTimeoutError"):
        return "the runner's job service does not answer. Look at --job_endpoint, and whether it is running"
    return (
        f"the run failed: {kind}: {what.rstrip('.')}. What was done is kept; run the same command again "
        "to continue. BIOSHARDS_TRACEBACK=1, or .bioshards/error.log of a local output, shows where it failed"
    )


def _explained_job(error: JobFailed, kind: str, what: str) -> str:
    """What became of a job on Dataflow, which says of a lost worker only that it is lost."""
    if error.cancelled:
        why = "was cancelled"
    elif "lost contact" in what or "attempted 4 times" in what:
        why = (
            "failed: its workers ended before their time, perhaps because memory ran out: give a "
            "--machine_type with more for each vCPU"
        )
    else:
        why = f"failed: {what if kind == 'JobFailed' else f'{kind}: {what}'}".rstrip(".")
    return (
        f"job {error.job} {why}. What was done is kept; run the same command again to continue. {error.page} "
        "shows where it failed"
    )
