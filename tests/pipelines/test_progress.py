"""Tests of the progress of runs."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bioshards.corpus import progress_notes
from bioshards.corpus.lifecycle.job import ShardsJob
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.pubmed.discovery import source_from_file
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import FileInfo
from bioshards.corpus.ui.progress import Progress, RunProgress, StepBar
from bioshards.pipelines.inputs.run_inputs import RunInputs
from bioshards.pipelines.shards import list_bars
from tests.support.outputs import load_manifest

FILES = LocalStorage()


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(progress_notes, "_INTERVAL_SECONDS", 0)
    folder = tmp_path / "notes"
    folder.mkdir(0o700)
    with progress_notes.write_notes(str(folder)):
        yield folder


def watch(out: io.StringIO, reports: str = "", finalized: str = "") -> RunProgress:
    texts = {"stage": "{:,}/2 files", "fetched": "{:,} fetched"}
    bars = [
        StepBar("stage", "staging", "B", 400, "units", texts, reports),
        StepBar("finalize", "finishing the shards", " files", 2, reports=finalized),
        StepBar("publish", "publishing"),
    ]
    return RunProgress(bars, FILES, Progress(out))


def test_progress_within_a_file_and_after_the_last(notes: Path) -> None:
    progress = watch(out := io.StringIO())
    progress.update()
    seen = []

    def look() -> None:
        progress.update()
        seen.append((progress._bar.count, progress._bar._bar.postfix))

    with progress_notes.note_step("stage"):
        progress_notes.begin_item(300)
        progress_notes.add_units(250)
        look()
        progress_notes.count("fetched")
        progress_notes.add_units(250)  # more than its size: its end was read twice
        look()
    look()
    with progress_notes.note_step("stage"):
        progress_notes.begin_item(100)  # an earlier run has staged it
    assert seen == [(250, "0/2 files"), (300, "0/2 files, 1 fetched"), (300, "1/2 files, 1 fetched")]
    with progress_notes.note_step("finalize"):
        progress.update()
    with progress_notes.note_step("publish"):
        progress.update()
    progress.close()
    staged, finished, published = out.getvalue().splitlines()
    assert staged.startswith("staging: 100% 400/400B [")
    assert staged.endswith(", 2/2 files, 1 fetched]")
    assert finished.startswith("finishing the shards: 100% 2/2 files [")
    assert published == "publishing [00:00]"


def test_notes_of_all_workers_are_added(notes: Path) -> None:
    progress = watch(io.StringIO())
    for name in ("1", "2"):
        (notes / name).write_text('{"counts": {"stage": 1, "units": 150}, "wait": "the server says no"}')
    progress.update()
    assert progress._bar.count == 300
    progress.close()


def test_a_note_that_cannot_be_read_ends_nothing(notes: Path) -> None:
    progress = watch(out := io.StringIO())
    whole = '{"counts": {"stage": 2, "units": 300, "finalize": 1}}'
    for text in ('{"counts": {"stage": 1, "units": 300}}', "", whole, whole[:-9], '{"counts": {"stage": 2}}'):
        (notes / "1").write_text(text)
        progress.update()
    (notes / "1").unlink()
    progress.update()
    assert progress._bar.count == 1
    progress.close()
    staged, finished = out.getvalue().splitlines()
    assert staged.startswith("staging: 100% 400/400B [")
    assert finished.startswith("finishing the shards:  50% 1/2 files [")


def test_waits_are_shown_once_and_not_too_often(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    progress = watch(out := io.StringIO())
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    progress_notes.report_wait("the server\x1b[31m says no")
    progress.update()
    progress.update()
    progress_notes.report_wait("another server too")
    progress.update()
    now += 11
    progress_notes.report_wait("it does again")
    progress.update()
    progress.close()
    assert out.getvalue().splitlines() == ["waiting: the server\\x1b[31m says no", "waiting: it does again"]


def test_reports_are_counted_on_a_cluster(tmp_path: Path) -> None:
    """Workers elsewhere note nothing."""
    reports, finalized = str(tmp_path / "staged"), str(tmp_path / "finalized")
    progress = watch(out := io.StringIO(), reports, finalized)
    progress.update()
    FILES.write_json(f"{reports}/a-00000000.json", {})
    progress.update()
    assert out.getvalue() == ""  # the first step goes on
    FILES.write_json(f"{finalized}/a-00000000.json", {})
    progress.update()
    progress.close()
    assert out.getvalue().splitlines() == ["staging [00:00, 1/2 files]", "finishing the shards [00:00]"]


@pytest.mark.thorough
@pytest.mark.parametrize("corpus", ["reference", "full_text"])
def test_every_step_of_a_run_has_a_bar(corpus: str, request: pytest.FixtureRequest) -> None:
    """A step that is renamed would show nothing."""
    steps = load_manifest(request.getfixturevalue(corpus))["run"]["steps"].keys()
    source = source_from_file(FileInfo("/in/pubmed26n0001.xml", 7, ""))
    job = cast(ShardsJob, SimpleNamespace(output=OutputDir("/out")))
    bars = list_bars(job, RunInputs([source]))
    assert steps - {"fetch", "ranges", "removals", "check"} <= {bar.name for bar in bars}
    assert (bars[0].unit, bars[0].total) == ("B", 7)
    unknown = list_bars(job, RunInputs([source, replace(source, size=0)]))
    assert (unknown[0].unit, unknown[0].total) == (" files", 2)
