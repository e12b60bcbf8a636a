"""Progress display: one line that is rewritten on a terminal, occasional lines in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Final

_LOG_INTERVAL_SECONDS: Final = 2
"""Shortest time between two lines in a log."""


class ProgressLine:
    """Progress callback: call it with the current line."""

    def __init__(self) -> None:
        self._is_terminal = sys.stderr.isatty()
        self._last_logged = 0.0

    def __call__(self, line: str) -> None:
        """Show the line."""
        if self._is_terminal:
            _write_stderr(f"\r\033[K{line}")
        elif time.monotonic() - self._last_logged > _LOG_INTERVAL_SECONDS:
            self._last_logged = time.monotonic()
            _write_stderr(f"{line}\n")

    def clear(self) -> None:
        """Clear the line on a terminal."""
        if self._is_terminal:
            _write_stderr("\r\033[K")


def _write_stderr(text: str) -> None:
    with contextlib.suppress(OSError):  # a closed stderr must not end the run
        print(text, end="", file=sys.stderr, flush=True)
