"""Show the progress of a run, by the notes of its worker processes (corpus/progress_notes.py)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bioshards.corpus import progress_notes
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.progress import Progress

_WAIT_INTERVAL_SECONDS: Final = 10


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
    """Shows the last step that a worker has begun, and why workers wait."""

    def __init__(self, bars: Sequence[StepBar], storage: Storage, progress: Progress) -> None:
        self._bars, self._storage, self._progress = bars, storage, progress
        self._step: StepBar | None = None
        self._waits, self._next_wait = set[str](), 0.0
        self._bar = progress.bar("starting the workers", is_transient=True)

    def update(self) -> None:
        """Show what is done since the last call."""
        notes = progress_notes.read_notes()
        counts = self._count_reports() if notes is None else Counter[str]()
        for note in notes or ():
            counts.update(note.counts)
        self._show_wait({note.wait for note in notes or () if note.wait} - self._waits)
        begun = [bar for bar in self._bars if bar.name in counts]
        if begun and begun[-1] is not self._step:
            if self._step:  # it is done
                self._show_step(self._step, counts, self._step.total)
            self._bar.close()
            self._step = begun[-1]
            total, unit = (None, "") if notes is None else (self._step.total, self._step.unit)
            self._bar = self._progress.bar(self._step.title, total, unit)
        if self._step:
            self._show_step(self._step, counts)

    def _show_wait(self, waits: set[str]) -> None:
        """Show one of new reasons to wait, every few seconds at most: all workers may wait for one server."""
        self._waits |= waits
        if waits and time.monotonic() >= self._next_wait:
            self._next_wait = time.monotonic() + _WAIT_INTERVAL_SECONDS
            self._progress.write(f"waiting: {min(waits)}")

    def _count_reports(self) -> Counter[str]:
        """Return the items done by step, of the steps whose items leave reports; the first one has begun."""
        counts = Counter({self._bars[0].name: 0})
        for bar in self._bars:
            if bar.reports:
                names = self._storage.list_names(bar.reports)
                counts[bar.name] = sum(name.endswith(".json") for name in names)
        return counts

    def _show_step(self, step: StepBar, counts: Counter[str], num_units: int | None = None) -> None:
        texts = [text.format(counts[name]) for name, text in step.texts.items() if name in counts]
        self._bar.move_to(num_units or counts[step.counted or step.name], ", ".join(texts))

    def close(self) -> None:
        """End the bar, so that what follows begins on its own line."""
        self._bar.close()
