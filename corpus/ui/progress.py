"""Progress on standard error by tqdm: bars on a terminal, a line every few seconds in a log.

The progress of a run is what its worker processes note (progress_notes.py).

What cannot be written is dropped: nobody who looks at a run can end it.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TextIO, TypeVar

from bioshards.corpus import progress_notes
from bioshards.corpus.errors import escape_controls
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.terminal import get_raw_stream

Item = TypeVar("Item")

_REDRAW_SECONDS: Final = 0.1
_LOG_INTERVAL_SECONDS: Final = 10
_TICK_SECONDS: Final = 1.0
"""How often the elapsed time of a bar without a total is drawn anew."""
_MAX_BARS: Final = 20
"""Bars that are drawn at most; tqdm draws none in a terminal that has no size."""
_WAIT_INTERVAL_SECONDS: Final = 10
STALLED_SECONDS: Final = 60
"""How long nothing may be done of a job on a cluster before this is said."""
_COLUMNS: Final = 79
"""Width of a line in a terminal that has no size."""


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
        self._stream = stream = _Stream(out)
        self._total, self.count = total, initial
        self._lock = threading.RLock()
        if total is None:
            bar_format = "{desc}" + (f": {{n_fmt}}{unit}" if unit else "") + " [{elapsed}{postfix}]"
        else:
            bar_format = (
                f"{{desc}}: {{percentage:3.0f}}%{'|{bar}|' if stream.is_terminal else ''} "
                f"{{n_fmt}}/{{total_fmt}}{unit} [{{elapsed}}<{{remaining}}, {{rate_noinv_fmt}}{{postfix}}]"
            )
        self._bar = _load_bar_type()(
            desc=escape_controls(title),
            total=total,
            unit=unit if unit == "B" else "",  # tqdm gives it twice: a line of a log would have no room
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


@functools.cache
def _load_bar_type() -> Any:
    """Return tqdm, of which a bar that Ctrl-C leaves half made ends in silence."""
    from tqdm import tqdm  # 0.1 s that --help need not wait for

    class Bar(tqdm):  # type: ignore[misc]
        monitor_interval = 0  # its thread looks after bars that choose their own interval

        def __del__(self) -> None:
            """Do nothing: bars are closed, and half of one cannot be."""

    return Bar


@dataclass(frozen=True, slots=True)
class StepBar:
    """What the bar of a step shows.

    Attributes:
        name: name of the step in the notes of workers.
        title: what it does.
        unit: unit of what is counted, with its blank (`` files``), or ``B`` for bytes.
        total: number of units; None: not known.
        counted: name of the count of units in the notes; '' if they are the items of the step.
        texts: what else is shown, with ``{:,}`` for the number, by the name of its count.
        reports: folder in which every item leaves its report: they are counted where workers note nothing.
    """

    name: str
    title: str
    unit: str = ""
    total: int | None = None
    counted: str = ""
    texts: Mapping[str, str] = field(default_factory=dict)
    reports: str = ""


class RunProgress:
    """Shows the steps that workers have begun, one after the other, and why workers wait."""

    def __init__(self, bars: Sequence[StepBar], storage: Storage, progress: Progress) -> None:
        self._bars, self._storage, self._progress = bars, storage, progress
        self._step: StepBar | None = None
        self._waits, self._next_wait = set[str](), 0.0
        self._has_results, self._stall_at = False, time.monotonic() + STALLED_SECONDS
        self._bar = progress.bar("starting the workers", is_transient=True)

    def update(self) -> None:
        """Show what is done since the last call."""
        notes = progress_notes.read_notes()
        counts = self._count_reports() if notes is None else Counter[str]()
        for note in notes or ():
            counts.update(note.counts)
        self._has_results = self._has_results or any(counts.values())
        self._show_wait({note.wait for note in notes or () if note.wait} - self._waits)
        following = self._bars[self._bars.index(self._step) + 1 if self._step else 0 :]
        for step in [bar for bar in following if bar.name in counts]:
            if self._step:  # it is done
                self._show_step(self._step, counts, self._step.total)
            self._bar.close()
            self._step = step
            total, unit = (None, "") if notes is None else (step.total, step.unit)
            self._bar = self._progress.bar(step.title, total, unit)
        if self._step:
            self._show_step(self._step, counts)

    def report_stall(self, job: str) -> None:
        """Say once of a job on a cluster that nothing of it is done for :data:`STALLED_SECONDS`."""
        if not self._has_results and time.monotonic() >= self._stall_at:
            self._stall_at = math.inf
            self._progress.write(
                f"waiting: nothing of {job} is done after {STALLED_SECONDS} s. It may wait for free slots, "
                "or its workers do not start: look at the messages of the runner and of the worker pool"
            )

    def _show_wait(self, waits: set[str]) -> None:
        """Show one of new reasons to wait, every few seconds at most: all workers may wait for one server."""
        self._waits |= waits
        if waits and time.monotonic() >= self._next_wait:
            self._next_wait = time.monotonic() + _WAIT_INTERVAL_SECONDS
            self._progress.write(f"waiting: {min(waits)}")

    def _count_reports(self) -> Counter[str]:
        """Return the items done by step, of the steps whose items leave reports.

        The first step has begun, any other once it has a report.
        """
        counts = Counter({self._bars[0].name: 0})
        for bar in self._bars:
            if bar.reports:
                names = self._storage.list_names(bar.reports)
                if num_items := sum(name.endswith(".json") for name in names):
                    counts[bar.name] = num_items
        return counts

    def _show_step(self, step: StepBar, counts: Counter[str], num_units: int | None = None) -> None:
        texts = [text.format(counts[name]) for name, text in step.texts.items() if name in counts]
        self._bar.move_to(num_units or counts[step.counted or step.name], ", ".join(texts))

    def close(self) -> None:
        """End the bar, so that what follows begins on its own line."""
        self._bar.close()


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
                stream = get_raw_stream(self.out)
                stream.write(text)
                stream.flush()

    def flush(self) -> None:
        """Do nothing: every write is flushed."""

    def count_columns(self) -> int | None:
        """Return the width of a line, which has no bound in a log."""
        if self.out is None or not self.is_terminal:
            return None
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(self.out.fileno()).columns - 1 or _COLUMNS
        return _COLUMNS
