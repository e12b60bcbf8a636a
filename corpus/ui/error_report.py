"""Turn an exception into the message and the exit code of a command."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import NamedTuple

from bioshards.corpus.errors import DISK_FULL, BioshardsError, WorkerError, escape_controls
from bioshards.corpus.exit_codes import FAILED

_NO_SPACE = os.strerror(errno.ENOSPC)


class ErrorReport(NamedTuple):
    """Last message and exit code of a failed command."""

    message: str
    exit_code: int


def report_error(error: Exception, out_of_memory: str = "give a machine with more") -> ErrorReport:
    """Return the message and exit code for an exception that ends a command.

    The message is fit for a terminal: control characters are escaped.  With ``BIOSHARDS_TRACEBACK`` set, the
    traceback is printed to standard error.

    Args:
        error: the exception.
        out_of_memory: advice for out-of-memory errors.
    """
    if os.environ.get("BIOSHARDS_TRACEBACK"):
        print(escape_controls("".join(traceback.format_exception(error))), end="", file=sys.stderr)
    report = _make_report(error, out_of_memory)
    return report._replace(message=escape_controls(report.message))


def _make_report(error: Exception, out_of_memory: str) -> ErrorReport:
    if isinstance(error, WorkerError):
        if _NO_SPACE in error.detail.message:
            return ErrorReport(DISK_FULL, FAILED)
        return ErrorReport(_with_hint(error.detail.description, error.detail.hint), FAILED)
    if isinstance(error, BioshardsError):
        return ErrorReport(_with_hint(str(error), error.hint), error.exit_code)
    if _NO_SPACE in str(error):  # also as text, from a library
        return ErrorReport(DISK_FULL, FAILED)
    if isinstance(error, OSError):
        location = f"{error.filename}: " if error.filename else ""
        return ErrorReport(f"{location}{error.strerror or error}", FAILED)
    if isinstance(error, MemoryError) or "out of memory" in str(error):
        return ErrorReport(f"memory ran out: {out_of_memory}", FAILED)
    hint = "BIOSHARDS_TRACEBACK=1 shows where it failed"
    return ErrorReport(_with_hint(f"{type(error).__name__}: {error}", hint), FAILED)


def _with_hint(message: str, hint: str) -> str:
    return f"{message.rstrip('.')}. {hint}" if hint else message
