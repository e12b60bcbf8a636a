"""Exceptions of bioshards, one root with three branches, and the exit codes of its commands.

===============  =========  ==================================================================
branch           exit code  meaning
===============  =========  ==================================================================
:class:`UserError`   2      invalid command line, input or output directory
:class:`RunError`    1      the run failed: network, storage, a worker, a numerical failure
:class:`DataError`   1      a file or a record is damaged; pipelines reject it and continue
===============  =========  ==================================================================

The message of a :class:`UserError` or :class:`RunError` is complete: it says what, where, why and what
to do. ``corpus/ui/command_line.py`` turns any exception into a message and an exit code, for every command.
"""

from __future__ import annotations

import difflib
import errno
import json
import os
import re
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final, NamedTuple

OK: Final = 0
FAILED: Final = 1
"""The run failed. Completed work is kept; rerunning the command resumes it."""
USAGE_ERROR: Final = 2
"""The command line, an input or the output directory is invalid. Nothing was started."""
NOT_PUBLISHED: Final = 3
"""The run completed, but no manifest was written: a download failed, the reject threshold was
exceeded, or no document passed the filters."""
INTERRUPTED: Final = 130
"""Ctrl-C or a termination signal. Rerunning the command resumes the run."""

DISK_FULL: Final = "the disk is full. Free some space and run the same command again: it continues"
KEPT: Final = "Completed work is kept"
RESUME: Final = f"{KEPT}; run the same command again to continue"
MAX_QUOTED_CHARACTERS: Final = 200


_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters that a terminal obeys, or that turn the direction of a line; not the tab and the line feed."""


def find_nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Return the known name that is most similar to this one, in any case; '' if none is.

    Args:
        cutoff: lowest ratio of difflib that counts as similar.
    """
    name_by_folded = {known_name.casefold(): known_name for known_name in known}
    matches = difflib.get_close_matches(name.casefold(), name_by_folded, 1, cutoff)
    return name_by_folded[matches[0]] if matches else ""


def suggest_nearest(name: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Return `` (did you mean NAME?)`` with the nearest known name, for a message; '' if there is none."""
    nearest = find_nearest(name, known, cutoff)
    return f" (did you mean {nearest}?)" if nearest else ""


def escape_controls(text: str) -> str:
    r"""Return text for a terminal or a log, its control characters written as ``\x1b``.

    Messages quote strangers: servers, file names, archives.  A terminal would obey what they wrote.
    """
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def escape_line(text: str) -> str:
    r"""Return text for one line, line feeds and other control characters written as ``\n``, ``\x1b``."""
    return escape_controls(text).replace("\n", "\\n")


MAX_SHOWN: Final = 5
"""Items that a message lists; the others are counted."""


def shorten_list(items: Sequence[str], num_items: int | None = None, separator: str = ", ") -> str:
    """Return the first items for a message, and how many more there are: ``a, b, c, d, e (and 2 more)``.

    Args:
        items: the items, or the first of them.
        num_items: number of all items, if not ``len(items)``.
        separator: what stands between them.
    """
    more = (len(items) if num_items is None else num_items) - len(items[:MAX_SHOWN])
    return separator.join(items[:MAX_SHOWN]) + (f" (and {more:,} more)" if more else "")


def quote(text: str) -> str:
    """Return a stranger's words for a message: one line, short, without control characters."""
    return escape_controls(" ".join(text.split()))[:MAX_QUOTED_CHARACTERS]


def describe_install(extra: str) -> str:
    """Return how to install the libraries of an extra, or of the core if it is ''; no index has bioshards."""
    suffix = f"[{extra}]" if extra else ""
    return f"pip install '.{suffix}' in a clone of bioshards, or 'WHEEL{suffix}' with its wheel file"


class BioshardsError(Exception):
    """Base class of all exceptions that bioshards raises on purpose.

    Attributes:
        exit_code: exit code of a command that ends with this error.
        hint: what to do, printed behind the message; '' where the message says it.
    """

    exit_code: ClassVar[int] = FAILED
    hint: str = ""


class UserError(BioshardsError):
    """The command line, an input or the output directory is invalid. Nothing was started."""

    exit_code = USAGE_ERROR


class RunError(BioshardsError):
    """A run failed. Completed work is kept; rerunning the command resumes it."""


class LostServiceError(RunError):
    """The service that ran a job is gone, while threads of Beam wait for it."""


class DataError(BioshardsError):
    """A file or a record cannot be used.

    Attributes:
        reason: short fixed word, used as a key of counts.
        detail: sentence for people.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


class BadFileError(DataError):
    """A file cannot be trusted as a whole: nothing of it is used."""


class BadRecordError(DataError):
    """A record cannot be read; the other records of its file can."""


class InvalidValueError(UserError, ValueError):
    """An option or a configuration field has a value that makes no sense."""


class UsageError(UserError):
    """The command line is wrong; the message says how to correct it."""


class InputNotFoundError(UserError, FileNotFoundError):
    """An input, or the files that it should contain, does not exist."""


class InputUnreadableError(UserError):
    """A part of an input cannot be listed, so that files would be missing in silence."""


class OutputMismatchError(UserError):
    """The output directory holds something else than this run would write."""


class MissingExtraError(UserError):
    """A library that an option needs is not installed. The message says how to install it."""


class TransientStorageError(RunError, OSError):
    """A call to an object store failed, and may succeed when it is retried.

    The stored data is not at fault: a reader must not report this as bad input.
    """

    hint = "Completed work is kept; when the store answers, run the same command again to continue"


class DiskFullError(RunError, OSError):
    """A disk of this machine has no room; the message names the folder and the free bytes."""

    hint = "Free some space there and run the same command again: it continues"

    def __init__(self, message: str, number: int = errno.ENOSPC) -> None:
        super().__init__(message)
        self.errno, self.strerror = number, os.strerror(number)

    def __str__(self) -> str:
        return str(self.args[0])


class CredentialsError(TransientStorageError, PermissionError):
    """A store has no credentials, or rejects them. Nothing is known of the object itself.

    It is transient: the metadata server of a cloud machine may be slow, and tokens expire during a run.
    """


_WORKER_MARK: Final = "BIOSHARDS-ERROR "
"""Begins the JSON object that carries a worker's error through a runner's text."""


class ErrorDetail(NamedTuple):
    """An error of a worker process as plain data.

    Attributes:
        kind: name of the exception's class.
        message: its text.
        hint: what to do, if the exception says it.
        is_ours: True if it derives from :class:`BioshardsError`, so that the message is complete.
    """

    kind: str
    message: str
    hint: str
    is_ours: bool

    @property
    def description(self) -> str:
        """The message, with the kind of error in front where the message alone is not enough."""
        return self.message if self.is_ours else f"the run failed: {self.kind}: {self.message}"


class WorkerError(RunError):
    """An error that ended a step, carried from a worker to the driver as one marked line of JSON.

    Runners return a worker's exception as the text of its traceback. The marked line in that text is
    read back by :meth:`find`.

    Attributes:
        detail: the error.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.detail = _decode(text) or ErrorDetail("WorkerError", text, "", True)

    @classmethod
    def wrap(cls, error: Exception) -> WorkerError:
        """Make the error to raise in a worker for any other one."""
        if isinstance(error, WorkerError):
            return error
        is_ours = isinstance(error, BioshardsError)
        hint = error.hint if isinstance(error, BioshardsError) else ""
        detail = ErrorDetail(type(error).__name__, str(error), hint or RESUME, is_ours)
        return cls(_WORKER_MARK + json.dumps(detail._asdict()))

    @classmethod
    def find(cls, text: str) -> WorkerError | None:
        """Return the error that a runner's text carries, or None if it carries none."""
        return cls(text) if _decode(text) else None


def _decode(text: str) -> ErrorDetail | None:
    _, mark, rest = text.partition(_WORKER_MARK)
    if not mark:
        return None
    try:
        fields, _ = json.JSONDecoder().raw_decode(rest)
        return ErrorDetail(**fields)
    except (TypeError, ValueError):  # cut short by the runner
        return None
