"""Tests of the progress of runs."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.pubmed.discovery import source_from_file
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import FileInfo
from bioshards.corpus.ui import progress_notes
from bioshards.corpus.ui.progress import Progress
from bioshards.pipelines.execution.progress_monitor import ShardsProgress
from bioshards.pipelines.inputs.run_inputs import RunInputs

FILES = LocalStorage()


@pytest.fixture
def output_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OutputDir]:
    monkeypatch.setattr(progress_notes, "_INTERVAL_SECONDS", 0)
    with progress_notes.make_folder():
        yield OutputDir(str(tmp_path))


def write_report(output_dir: OutputDir, output_name: str) -> None:
    report = {"seconds": 2.0, "result": {"records": 5}}
    FILES.write_json(output_dir.staged_path(output_name, "json"), report)


def watch(output_dir: OutputDir, out: io.StringIO, **sizes: int) -> ShardsProgress:
    sources = [source_from_file(FileInfo(f"/in/{name}.xml", size, "")) for name, size in sizes.items()]
    return ShardsProgress(FILES, output_dir, RunInputs(sources), Progress(out))


def test_replaced_file_counts_once(output_dir: OutputDir) -> None:
    for output_name in ("a-00000000", "gone-00000000"):
        write_report(output_dir, output_name)
    progress = watch(output_dir, out := io.StringIO(), a=100, b=300)
    counts = []
    with progress_notes.note_step("stage"):
        for output_name in ("a-11111111", "b-11111111"):
            write_report(output_dir, output_name)
            progress.update()
            counts.append(progress._bar.count)
    progress.close()
    assert counts == [100, 400]
    [line] = out.getvalue().splitlines()
    assert line.startswith("staging: 100% 400/400B [")
    assert line.endswith(", 2/2 files, 10 records]")


def test_progress_within_a_file_and_after_the_last(output_dir: OutputDir) -> None:
    progress = watch(output_dir, out := io.StringIO(), a=100, b=300)
    progress.update()
    assert progress._bar._bar.postfix == "starting the workers"
    seen = []

    def look() -> None:
        progress.update()
        seen.append((progress._bar.count, progress._bar._bar.postfix))

    with progress_notes.note_step("stage"):
        progress_notes.begin_item("b-11111111")
        progress_notes.add_bytes(250)
        progress_notes.add_units(4)
        look()
        progress_notes.add_bytes(250)  # more than its size: its end was read twice
        look()
        write_report(output_dir, "b-11111111")
        look()
    assert seen == [
        (250, "0/2 files, 4 records"),
        (300, "0/2 files, 4 records"),
        (300, "1/2 files, 5 records"),
    ]
    with progress_notes.note_step("finalize"):
        progress.update()
    with progress_notes.note_step("publish"):
        progress.update()
    progress.close()
    staged, finished, published = out.getvalue().splitlines()
    assert staged.startswith("staging:  75% 300/400B ")
    assert finished.startswith("finishing the shards: 100% 1/1 files ")
    assert published == "publishing [00:00]"


def test_files_of_unknown_size_are_counted(output_dir: OutputDir) -> None:
    progress = watch(output_dir, out := io.StringIO(), a=100, b=0)
    write_report(output_dir, "a-11111111")
    with progress_notes.note_step("stage"):
        progress.update()
    progress.close()
    assert out.getvalue().startswith("staging:  50% 1/2 files [")


def test_a_run_elsewhere_that_notes_nothing_says_what_follows(tmp_path: Path) -> None:
    progress = watch(output_dir := OutputDir(str(tmp_path)), out := io.StringIO(), a=100)
    write_report(output_dir, "a-11111111")
    progress.update()
    progress.close()
    assert [line.partition(" [")[0] for line in out.getvalue().splitlines()] == [
        "staging: 100% 100/100B",
        "resolving versions",
    ]
