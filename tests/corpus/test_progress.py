"""Tests of progress bars, on terminals and in logs, and of the notes of worker processes."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import re
import sys
import time
from pathlib import Path

import pytest
import tqdm.std
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.ui import progress as progress_module
from bioshards.corpus.ui import progress_notes
from bioshards.corpus.ui.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(tqdm.std.tqdm, "_time", clock.time, raising=False)
    monkeypatch.setattr(tqdm.std, "time", clock.time)
    monkeypatch.setattr(time, "monotonic", clock.time)
    return clock


def test_bar_on_a_terminal(clock: Clock) -> None:
    terminal = Terminal()
    progress = Progress(terminal)
    with progress.bar("staging", 4_000_000, "B") as bar:
        clock.now += 10
        bar.move_to(1_000_000, "0/2 files")
        progress.write("waiting: the server\x1b[31m says no")
        clock.now += 30
        bar.move_to(5_000_000, "2/2 files")
    drawn = terminal.getvalue()
    assert re.search(r"\rstaging:  25%\|.+\| 1.00M/4.00MB \[00:10, 00:30 left, 100kB/s, 0/2 files\]", drawn)
    assert "\rwaiting: the server\\x1b[31m says no\n" in re.sub(r"\r +", "", drawn)
    last_line = drawn.rpartition("\r")[2]
    assert re.fullmatch(r"staging: 100%\|.+\| 4.00M/4.00MB \[00:40, 100kB/s, 2/2 files\] *\n", last_line)
    assert all(len(line) <= 79 for line in re.split("[\r\n]", drawn))


def test_a_log_has_a_line_every_ten_seconds_and_one_at_the_end(clock: Clock) -> None:
    log = io.StringIO()
    with Progress(log).with_prefix("gad, ").bar("training", 100, " steps", initial=40) as bar:
        for _ in range(45):
            clock.now += 1
            bar.advance(note="loss 0.5")
    assert log.getvalue().splitlines() == [
        f"gad, training: {percent:3}% {percent}/100 steps [{elapsed}, {left} left,  1.00 steps/s, loss 0.5]"
        for percent, elapsed, left in (
            (50, "00:10", "00:50"),
            (60, "00:20", "00:40"),
            (70, "00:30", "00:30"),
            (80, "00:40", "00:20"),
            (85, "00:45", "00:15"),
        )
    ]


@given(st.integers(1, 10**12), st.floats(0, 2), st.floats(0, 10**7))
def test_time_left_is_never_none_before_the_end(total: int, fraction: float, seconds: float) -> None:
    out = io.StringIO()
    with Progress(out).bar("counting", total, " documents") as bar:
        bar._start_time -= seconds
        bar.move_to(int(total * fraction))
    is_left = re.search(r"(\S+) left", out.getvalue())
    assert is_left is None or set(is_left[1]) & set("123456789"), out.getvalue()
    assert bool(is_left) == (0 < bar.count < total)


def test_bars_within_bars_in_a_log(clock: Clock) -> None:
    progress = Progress(log := io.StringIO())
    with progress.bar("evaluating", 2, " runs") as outer:
        for seed in outer.each(range(2)):
            with progress.bar("fine-tuning", 6, " steps", is_transient=True) as inner:
                for _ in inner.each(range(6)):
                    clock.now += 3
            progress.write(f"seed {seed}: F1 80.1")
    assert [line.partition(" [")[0] for line in log.getvalue().splitlines()] == [
        "fine-tuning:  67% 4/6 steps",
        "seed 0: F1 80.1",
        "evaluating:  50% 1/2 runs",
        "fine-tuning:  67% 4/6 steps",
        "seed 1: F1 80.1",
        "evaluating: 100% 2/2 runs",
    ]
    assert "\x1b" not in log.getvalue()


def test_a_bar_never_moves_back() -> None:
    with Progress(log := io.StringIO()).bar("finishing", 9, " files") as bar:
        bar.move_to(5)
        bar.move_to(3)
    assert " 5/9 files " in log.getvalue()


def test_a_bar_without_a_total_ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_module, "_TICK_SECONDS", 0.01)
    terminal = Terminal()
    with Progress(terminal).bar("measuring") as bar:
        while terminal.getvalue().count("measuring") < 2:
            assert not bar._closed.wait(0.01)
    assert "\rmeasuring [00:00]" in terminal.getvalue()


class BrokenPipe(Terminal):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def test_a_closed_stderr_ends_nothing() -> None:
    closed = io.StringIO()
    closed.close()
    for out in (None, closed, BrokenPipe(), io.TextIOWrapper(io.BytesIO(), "ascii")):
        progress = Progress(out)
        with progress.bar("stage \u03b1", 2) as bar:
            progress.write("waiting: \u03b1")
            assert list(bar.each("ab")) == ["a", "b"]


def test_a_line_for_standard_output_leaves_the_bar_alone(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    progress = Progress(terminal)
    with progress.bar("evaluating", 2, " runs"):
        progress.write("gad: f1 80.1", sys.stdout)
    assert capsys.readouterr().out == "gad: f1 80.1\n"
    assert "gad" not in terminal.getvalue()


def test_notes_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_notes, "_INTERVAL_SECONDS", 0)
    assert progress_notes.read_notes() is None
    with progress_notes.note_step("stage"):  # as on a cluster
        progress_notes.begin_item("a")
        progress_notes.add_bytes(1)
    with progress_notes.make_folder():
        assert progress_notes.read_notes() == []
        with progress_notes.note_step("stage"):
            progress_notes.add_bytes(7)  # of the checksum
            progress_notes.begin_item("a")
            progress_notes.add_bytes(5)
            progress_notes.add_units(3)
            assert progress_notes.read_notes() == [progress_notes.WorkerNote("stage", 0, "a", 5, 3)]
            folder = Path(os.environ[progress_notes._FOLDER_VARIABLE])
            (folder / "1").write_text('{"step": ')  # half written
            assert len(progress_notes.read_notes() or ()) == 1
        assert progress_notes.read_notes() == [progress_notes.WorkerNote("stage", 1)]
    assert not folder.exists()
    assert progress_notes.read_notes() is None


def test_bar_that_is_interrupted_while_it_is_made_ends_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tqdm.std.tqdm, "_get_free_pos", interrupt)
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    with contextlib.suppress(KeyboardInterrupt):  # pytest.raises would keep the half of a bar
        Progress(sys.stderr).bar("staging", 3)
    gc.collect()
    assert not unraisable
