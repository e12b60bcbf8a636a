"""End a command with one line when it is stopped while modules are imported, which takes seconds.

An exception in the middle of an import would be a traceback, and of some libraries another error.
``bioshards/__init__.py`` is the first module of every command. Other programs that import bioshards, and
workers, keep their handlers.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from types import FrameType

_MESSAGE = b"\nstopped: run the same command again to continue\n"
_IMPORT_MODULE = "<frozen importlib._bootstrap>"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def is_command(words: Sequence[str]) -> bool:
    """Return True if a process with these words (``sys.orig_argv``) is a command of bioshards."""
    if words[1:2] == ["-m"]:
        return words[2:] != [] and words[2].partition(".")[0] == "bioshards"
    return len(words) > 1 and os.path.basename(words[1]) in ("beam", "bioshards")


def install() -> None:
    """Let Ctrl-C and SIGTERM end this process."""
    for number in _SIGNALS:
        signal.signal(number, _exit)


def hand_over() -> None:
    """Let Ctrl-C and SIGTERM raise KeyboardInterrupt from now on, but end the process during an import.

    A command calls it where it catches KeyboardInterrupt.
    """
    for number in _SIGNALS:
        if signal.getsignal(number) is _exit:
            signal.signal(number, interrupt)


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, or end the process during an import: a signal handler."""
    caller = frame
    while caller is not None:
        if caller.f_code.co_filename == _IMPORT_MODULE:
            _exit(number, frame)
        caller = caller.f_back
    signal.default_int_handler(number, frame)


def _exit(_number: int, _frame: FrameType | None) -> None:
    os.write(2, _MESSAGE)
    os._exit(130)
