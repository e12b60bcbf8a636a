"""Progress on standard error by tqdm: bars on a terminal, a line every few seconds in a log.

What cannot be written is dropped: nobody who looks at a run can end it.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Final, TextIO, TypeVar

from bioshards.corpus.errors import escape_controls

Item = TypeVar("Item")

_REDRAW_SECONDS: Final = 0.1
_LOG_INTERVAL_SECONDS: Final = 10
_MAX_BARS: Final = 20
"""Bars that are drawn at most; tqdm draws none in a terminal that has no size."""
_DEFAULT_COLUMNS: Final = 79
_CURSOR_UP: Final = "\x1b[A"
"""What tqdm writes to get from the second bar to the first."""
_TICK_SECONDS: Final = 1.0
"""How often the elapsed time of a bar without a total is drawn anew."""


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
        bars, stream = _Stream(self.out), _Stream(out or self.out)
        with (
            _load_bar_type().external_write_mode(file=bars) if bars.is_terminal else contextlib.nullcontext()
        ):
            stream.write(escape_controls(line) + "\n")


class ProgressBar:
    """A bar of a number of units; its arguments are those of :meth:`Progress.bar`."""

    def __init__(
        self, out: TextIO | None, title: str, total: int | None, unit: str, initial: int, is_transient: bool
    ) -> None:
        self._stream = stream = _Stream(out)
        self._total, self._initial = total, initial
        self.count = initial
        self._lock = threading.RLock()
        self._start_time = time.monotonic()
        self._has_unit, self._drawn_bar = bool(unit), "|{bar}|" if stream.is_terminal else ""
        self._bar = _load_bar_type()(
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
            bar_format=self._make_format(),
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
            self._bar.bar_format = self._make_format()
            self._bar.ncols = self._stream.count_columns()
            self._bar.update(self.count - self._bar.n)

    def each(self, items: Iterable[Item], count: Callable[[Item], int] = lambda _: 1) -> Iterator[Item]:
        """Yield the items; each is done, with ``count`` units, when the next one is asked for."""
        for item in items:
            yield item
            self.advance(count(item))

    def close(self) -> None:
        """End the bar."""
        self._closed.set()
        self._bar.close()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _make_format(self) -> str:
        from tqdm import tqdm

        if self._total is None:
            count = ": {n_fmt}{unit}" if self._has_unit else ""
            return f"{{desc}}{count} [{{elapsed}}{{postfix}}]"
        left, num_done = "", self.count - self._initial
        if num_done and self.count < self._total:
            seconds = (self._total - self.count) * (time.monotonic() - self._start_time) / num_done
            left = f", {tqdm.format_interval(max(1, seconds))} left"
        return (
            f"{{desc}}: {{percentage:3.0f}}%{self._drawn_bar} {{n_fmt}}/{{total_fmt}}{{unit}} "
            f"[{{elapsed}}{left}, {{rate_noinv_fmt}}{{postfix}}]"
        )

    def _tick(self) -> None:
        while not self._closed.wait(_TICK_SECONDS):
            self._bar.update(0)


@functools.cache
def _load_bar_type() -> Any:
    """Return tqdm, of which a bar that Ctrl-C leaves half made ends in silence."""
    from tqdm import tqdm  # 0.1 s that --help need not wait for

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # its thread looks after bars that choose their own interval

        def __del__(self) -> None:
            """Do nothing: bars are closed, and half of one cannot be."""

    return Bar


class _Stream:
    """A stream as tqdm wants it, whose failures are ignored; a log gets whole lines."""

    def __init__(self, out: TextIO | None) -> None:
        self._out = out
        self._last_line = ""
        self.is_terminal = False
        with contextlib.suppress(ValueError):  # it is closed
            self.is_terminal = out is not None and out.isatty()

    def write(self, text: str) -> None:
        if not self.is_terminal:
            line = text.replace(_CURSOR_UP, "").strip("\r\n ")
            text = f"{line}\n" if line not in ("", self._last_line) else ""
            self._last_line = line or self._last_line
        # Closed, full, or another encoding; RuntimeError: a signal's handler writes while this is written.
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            if text and self._out is not None:
                self._out.write(text)
                self._out.flush()

    def count_columns(self) -> int | None:
        """Return the width of the terminal; None in a log, whose lines have any length."""
        if not self.is_terminal or self._out is None:
            return None
        with contextlib.suppress(OSError, ValueError):
            if columns := os.get_terminal_size(self._out.fileno()).columns:
                return columns - 1
        return _DEFAULT_COLUMNS

    def flush(self) -> None:
        """Do nothing: every write is flushed."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Stream) and other._out is self._out

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._out, name)
