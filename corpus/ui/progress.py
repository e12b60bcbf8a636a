"""Progress on standard error by tqdm: bars on a terminal, a line every few seconds in a log.

What cannot be written is dropped: nobody who looks at a run can end it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, TextIO, TypeVar

from bioshards.corpus.errors import escape_controls

Item = TypeVar("Item")

_REDRAW_SECONDS: Final = 0.1
_LOG_INTERVAL_SECONDS: Final = 10
_TICK_SECONDS: Final = 1.0
"""How often the elapsed time of a bar without a total is drawn anew."""
_MAX_BARS: Final = 20
"""Bars that are drawn at most; tqdm draws none in a terminal that has no size."""
_COLUMNS: Final = 79
"""Width of a line in a log, and in a terminal that has no size."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Shows how far a command is.

    Attributes:
        out: standard error; None: nothing is shown.
        prefix: begins the title of each bar.
    """

    out: TextIO | None
    prefix: str = ""

    def with_prefix(self, prefix: str) -> Progress:
        """Return the progress whose titles begin with ``prefix`` too."""
        return replace(self, prefix=self.prefix + prefix)

    def bar(
        self,
        title: str,
        total: int | None = None,
        unit: str = "",
        *,
        initial: int = 0,
        is_transient: bool = False,
    ) -> ProgressBar:
        """Begin a bar, which the end of a ``with`` block closes.

        Args:
            title: what is done.
            total: number of units; None: unknown, only the elapsed time is shown.
            unit: with its blank (`` files``), or ``B`` for bytes.
            initial: units that an earlier run has done; the rate is without them.
            is_transient: remove the bar at its end.
        """
        return ProgressBar(self.out, f"{self.prefix}{title}", total, unit, initial, is_transient)

    def write(self, line: str, out: TextIO | None = None) -> None:
        """Print a line above the bars, on ``out`` or where the bars are."""
        from tqdm import tqdm

        bars, stream = _Stream(self.out), _Stream(out or self.out)
        with tqdm.external_write_mode(file=bars) if bars.is_terminal else contextlib.nullcontext():
            stream.write(escape_controls(line) + "\n")


class ProgressBar:
    """A bar of a number of units; its arguments are those of :meth:`Progress.bar`."""

    def __init__(
        self, out: TextIO | None, title: str, total: int | None, unit: str, initial: int, is_transient: bool
    ) -> None:
        from tqdm import tqdm  # 0.1 s that --help need not wait for

        tqdm.monitor_interval = 0  # its thread looks after bars that choose their own interval
        self._stream = stream = _Stream(out)
        self._total, self.count = total, initial
        self._lock = threading.RLock()
        if total is None:
            bar_format = "{desc}" + (": {n_fmt}{unit}" if unit else "") + " [{elapsed}{postfix}]"
        else:
            bar_format = (
                f"{{desc}}: {{percentage:3.0f}}%{'|{bar}|' if stream.is_terminal else ''} "
                "{n_fmt}/{total_fmt}{unit} [{elapsed}<{remaining}, {rate_noinv_fmt}{postfix}]"
            )
        self._bar = tqdm(
            desc=escape_controls(title),
            total=total,
            unit=unit,
            unit_scale=unit == "B",
            initial=initial,
            file=stream,
            disable=out is None,
            leave=not is_transient,
            ncols=stream.count_columns(),
            nrows=_MAX_BARS,
            mininterval=_REDRAW_SECONDS if stream.is_terminal else _LOG_INTERVAL_SECONDS,
            miniters=0,
            delay=0 if stream.is_terminal else 1e-9,  # a log has no line of the beginning
            smoothing=0,  # the rate is the mean of the run
            bar_format=bar_format,
        )
        self._closed = threading.Event()
        if total is None:
            threading.Thread(target=self._tick, name="progress", daemon=True).start()

    def advance(self, count: int = 1, note: str | None = None) -> None:
        """Add units done; ``note`` follows the rate, None keeps the last one."""
        with self._lock:
            self.move_to(self.count + count, note)

    def move_to(self, count: int, note: str | None = None) -> None:
        """Set the units done; the bar never moves back, nor past its total."""
        with self._lock:
            self.count = max(self.count, count if self._total is None else min(count, self._total))
            if note is not None:
                self._bar.set_postfix_str(escape_controls(note), refresh=False)
            self._bar.ncols = self._stream.count_columns()
            self._bar.update(self.count - self._bar.n)

    def each(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items; each is done when the next one is asked for."""
        for item in items:
            yield item
            self.advance(1)

    def close(self) -> None:
        """End the bar."""
        self._closed.set()
        self._bar.close()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _tick(self) -> None:
        while not self._closed.wait(_TICK_SECONDS):
            self._bar.update(0)


@dataclass(slots=True)
class _Stream:
    """A stream that tqdm writes to, whose failures are ignored; a log gets whole lines, each once."""

    out: TextIO | None
    last_line: str = field(default="", compare=False)

    @property
    def is_terminal(self) -> bool:
        """Return True if bars can be redrawn."""
        with contextlib.suppress(ValueError):  # it is closed
            return self.out is not None and self.out.isatty()
        return False

    @property
    def encoding(self) -> str | None:
        """Return the encoding, by which tqdm chooses the characters of a bar."""
        return self.out.encoding if self.out else None

    def write(self, text: str) -> None:
        """Write what tqdm draws; in a log, without the way back to the line of the first bar."""
        if not self.is_terminal:
            line = text.replace("\x1b[A", "").strip("\r\n ")
            text = f"{line}\n" if line not in ("", self.last_line) else ""
            self.last_line = line or self.last_line
        # Closed, full, or another encoding; RuntimeError: a signal's handler writes while this is written.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            if text and self.out is not None:
                self.out.write(text)
                self.out.flush()

    def flush(self) -> None:
        """Do nothing: every write is flushed."""

    def count_columns(self) -> int:
        """Return the width of a line."""
        if self.out is not None and self.is_terminal:
            with contextlib.suppress(OSError, ValueError):
                return os.get_terminal_size(self.out.fileno()).columns - 1 or _COLUMNS
        return _COLUMNS
