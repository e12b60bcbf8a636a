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
from typing import BinaryIO

import msgspec
import pytest
import tqdm.std

from bioshards.corpus import progress_notes
from bioshards.corpus.progress_notes import WorkerNote
from bioshards.corpus.ui import progress as progress_module
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
    assert re.search(r"\rstaging:  25%\|.+\| 1.00M/4.00MB \[00:10<00:30, 100kB/s, 0/2 files\]", drawn)
    assert "\rwaiting: the server\\x1b[31m says no\n" in re.sub(r"\r +", "", drawn)
    last_line = drawn.rpartition("\r")[2]
    assert re.fullmatch(
        r"staging: 100%\|.+\| 4.00M/4.00MB \[00:40<00:00, 100kB/s, 2/2 files\] *\n", last_line
    )
    assert all(len(line) <= 79 for line in re.split("[\r\n]", drawn))


def test_a_log_has_a_line_every_ten_seconds_and_one_at_the_end(clock: Clock) -> None:
    log = io.StringIO()
    with Progress(log).with_prefix("gad, ").bar("training", 100, " steps", initial=40) as bar:
        for _ in range(45):
            clock.now += 1
            bar.advance(note="loss 0.5")
    assert log.getvalue().splitlines() == [
        f"gad, training: {percent:3}% {percent}/100 steps [{elapsed}<{left},  1.00/s, loss 0.5]"
        for percent, elapsed, left in (
            (50, "00:10", "00:50"),
            (60, "00:20", "00:40"),
            (70, "00:30", "00:30"),
            (80, "00:40", "00:20"),
            (85, "00:45", "00:15"),
        )
    ]


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


def test_a_log_has_the_whole_note(clock: Clock) -> None:
    with Progress(log := io.StringIO()).bar("staging", 400, "B") as bar:
        clock.now += 10
        bar.move_to(400, note := ", ".join(["12,345,678 records"] * 9))
    assert log.getvalue().endswith(f", {note}]\n")


@pytest.mark.parametrize("total", [400, None])
def test_a_bar_stays_within_the_width_of_a_terminal(total: int | None, clock: Clock) -> None:
    with Progress(terminal := Terminal()).bar("staging", total, "B") as bar:
        clock.now += 10
        bar.move_to(400, ", ".join(["12,345,678 records"] * 9))
    assert "12,345,678 records" in terminal.getvalue()
    assert all(len(line) <= 79 for line in re.split("[\r\n]", terminal.getvalue()))


def test_bar_that_is_interrupted_while_it_is_made_ends_in_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tqdm.std.tqdm, "_get_free_pos", interrupt)
    unraisable: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    with contextlib.suppress(KeyboardInterrupt):  # pytest.raises would keep the half of a bar
        Progress(sys.stderr).bar("staging", 3)
    gc.collect()
    assert not unraisable


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


@pytest.fixture
def notes_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A private folder, whose notes are written at once."""
    monkeypatch.setattr(progress_notes, "_INTERVAL_SECONDS", 0)
    folder = tmp_path / "notes"
    folder.mkdir(0o700)
    return folder


def test_notes_of_workers(notes_folder: Path) -> None:
    assert progress_notes.read_notes() is None
    with progress_notes.note_step("stage"):  # as on a cluster
        progress_notes.begin_item(9)
        progress_notes.add_units(1)
    with progress_notes.write_notes(str(notes_folder)):
        assert progress_notes.read_notes() == []
        with progress_notes.note_step("stage"):
            progress_notes.add_units(7)  # of the checksum
            progress_notes.begin_item(10)
            progress_notes.add_units(5)
            assert progress_notes.read_notes() == [WorkerNote({"stage": 0, "units": 5})]
            progress_notes.add_units(50)  # its end was read twice
            assert progress_notes.read_notes() == [WorkerNote({"stage": 0, "units": 10})]
            (notes_folder / "1").write_text('{"counts": ')  # half written
            assert len(progress_notes.read_notes() or ()) == 1
        progress_notes.count("received", 1000)
        progress_notes.report_wait("the server says no")
        with progress_notes.note_step("stage"):
            progress_notes.begin_item(4)  # was done before: nothing is read
        counts = {"stage": 2, "units": 14, "received": 1000}
        assert progress_notes.read_notes() == [WorkerNote(counts, "the server says no")]
    assert progress_notes.read_notes() is None


def test_a_note_is_whole_while_the_next_one_is_written(
    notes_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    encode = msgspec.json.encode

    def encode_and_look(note: WorkerNote) -> bytes:
        seen.append(progress_notes.read_notes())
        (notes_folder / "1.new").write_bytes(encode(note))  # another process is writing too
        return encode(note)

    with progress_notes.write_notes(str(notes_folder)):
        progress_notes.count("stage")
        monkeypatch.setattr(msgspec.json, "encode", encode_and_look)
        progress_notes.count("received")
        seen.append(progress_notes.read_notes())
    assert seen == [
        [WorkerNote({"stage": 1, "units": 0})],
        [WorkerNote({"stage": 1, "received": 1, "units": 0})],
    ]


def test_an_item_that_is_begun_again_counts_once(notes_folder: Path) -> None:
    with progress_notes.write_notes(str(notes_folder)):
        with progress_notes.note_step("stage"):
            for _ in range(2):  # a store failed for a moment
                progress_notes.begin_item(10)
                progress_notes.add_units(8)
        assert progress_notes.read_notes() == [WorkerNote({"stage": 1, "units": 10})]


def test_reads_of_a_file_are_units(notes_folder: Path) -> None:
    file: BinaryIO = io.BytesIO(b"first\nsecond\n" + bytes(3_000_000))
    assert progress_notes.count_reads(file) is file
    with progress_notes.write_notes(str(notes_folder)), progress_notes.note_step("stage"):
        progress_notes.begin_item(3_000_013)
        counted = progress_notes.count_reads(file)
        assert counted.readline() == b"first\n"
        assert counted.seek(0) == 0
        assert counted.read(1_000_000)[:6] == b"first\n"
        [note] = progress_notes.read_notes() or []
        assert 1_000_000 <= note.counts["units"] < 1_100_000
        assert len(counted.read()) == 2_000_013
        assert counted.tell() == 3_000_013


def test_nothing_is_noted_where_another_user_can_write(notes_folder: Path) -> None:
    """A planted pipe would keep the run waiting for its other end."""
    notes_folder.chmod(0o777)
    os.mkfifo(notes_folder / f"{os.getpid()}")
    os.mkfifo(notes_folder / "1")
    with progress_notes.write_notes(str(notes_folder)):
        with progress_notes.note_step("stage"):
            progress_notes.count("received")
        assert progress_notes.read_notes() is None
