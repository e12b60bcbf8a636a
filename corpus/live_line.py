"""Say how far something is: one live line on a terminal, a line now and then in a log."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import Final

_PAUSE_SECONDS: Final = 2
"""A log has a line this often at most."""


class LiveLine:
    """What is called with a line each time that there is something new to say."""

    def __init__(self) -> None:
        self._live = sys.stderr.isatty()
        self._when = 0.0

    def __call__(self, line: str) -> None:
        if self._live:
            _write(f"\r\033[K{line}")
        elif time.monotonic() - self._when > _PAUSE_SECONDS:
            self._when = time.monotonic()
            _write(f"{line}\n")

    def end(self) -> None:
        """Leave the live line."""
        if self._live:
            _write("\r\033[K")


def _write(text: str) -> None:
    with contextlib.suppress(OSError):  # nobody reads it any more, which is no reason to end what is done
        print(text, end="", file=sys.stderr, flush=True)
