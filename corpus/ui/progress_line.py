"""Say how far something is: one live line on a terminal, a line now and then in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Final

_LOG_INTERVAL_SECONDS: Final = 2
"""A log has a line this often at most."""


class ProgressLine:
    """What is called with a line each time that there is something new to say."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._last_logged = 0.0

    def __call__(self, line: str) -> None:
        if self._is_terminal:
            _write_stderr(f"\r\033[K{line}")
        elif time.monotonic() - self._last_logged > _LOG_INTERVAL_SECONDS:
            self._last_logged = time.monotonic()
            _write_stderr(f"{line}\n")

    def clear(self) -> None:
        """Leave the live line."""
        if self._is_terminal:
            _write_stderr("\r\033[K")


def _write_stderr(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads it any more, which is no reason to end what is done
        print(text, end="", file=sys.stderr, flush=True)
