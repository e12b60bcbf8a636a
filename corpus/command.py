"""How a command ends: exit codes, and what to say of what went wrong."""

from __future__ import annotations

import errno
import os
import traceback
from typing import Final

OK: Final = 0
FAILED: Final = 1
USAGE_ERROR: Final = 2
INTERRUPTED: Final = 130

Kinds = tuple[type[Exception], ...]


def failure(error: Exception, refused: Kinds, failed: Kinds, memory: str) -> tuple[str, int]:
    """The message and the exit code of an error; with BIOSHARDS_TRACEBACK set, it shows where it came from.

    Args:
        refused: errors that say what is wrong with what was asked for.
        failed: errors that say what went wrong on the way.
        memory: what to do where memory ran out.
    """
    if os.environ.get("BIOSHARDS_TRACEBACK"):
        traceback.print_exception(error)
    if isinstance(error, refused):
        return str(error), USAGE_ERROR
    if isinstance(error, failed):
        return str(error), FAILED
    if isinstance(error, OSError):
        if error.errno == errno.ENOSPC:
            return "the disk is full. Make room and run the same command again", FAILED
        place = f"{error.filename}: " if error.filename else ""
        return f"{place}{error.strerror or error}", FAILED
    if isinstance(error, MemoryError) or "out of memory" in str(error):
        return f"memory ran out: {memory}", FAILED
    what = f"{type(error).__name__}: {error}".rstrip(".")
    return f"{what}. BIOSHARDS_TRACEBACK=1 shows where it failed", FAILED
