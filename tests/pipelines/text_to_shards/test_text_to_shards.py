"""Tests of ``beam run text_to_shards``: the shards, same bytes, updates, and what reads them afterwards."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bioshards.corpus import __main__ as corpus_command
from bioshards.pipelines import cli
from tests.support.fork_server import run_beam
from tests.support.outputs import load_documents, load_manifest, published_digests
from tests.support.paths import TEXT_SAMPLE

Capture = pytest.CaptureFixture[str]
Run = Callable[..., int]


@pytest.fixture
def run_text() -> Run:
    """``beam run text_to_shards`` in this process, one worker."""
    return lambda *arguments: cli.main(["run", "text_to_shards", "--workers", "1", *map(str, arguments)])


def test_the_sample_can_be_inspected(
    run_text: Run, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = str(tmp_path / "out")
    assert run_text("--output", output) == 0
    documents = load_documents(tmp_path / "out")
    assert len(documents) == 8
    assert documents["text:note-17"]["sentences"][0] == "Pt. seen on the ward at 08:15."
    assert "National Library" not in load_manifest(tmp_path / "out")["notice"]
    capsys.readouterr()
    for arguments, expected in (
        (["stats"], "made by text_to_shards"),
        (["export"], "Dr. Vestergaard was informed.\n\nSlow breathing"),
    ):
        monkeypatch.setattr(sys, "argv", ["corpus", arguments[0], output, *arguments[1:]])
        assert corpus_command.main() == 0
        assert expected in capsys.readouterr().out


@pytest.mark.thorough
def test_an_update_equals_a_run_from_nothing_with_two_workers(
    run_text: Run, tmp_path: Path, capsys: Capture
) -> None:
    inputs, excluded = tmp_path / "in", tmp_path / "ids.txt"
    shutil.copytree(TEXT_SAMPLE, inputs)
    excluded.write_text("text:note-18  # asked for\n")
    texts = ("--input", inputs, "--preset", "bioalbert")
    options = (*texts, "--dedup", "exact", "--exclude-ids", excluded)
    assert run_text(*options, "--output", tmp_path / "grown") == 0
    lines = [
        json.dumps({"id": "note-17", "text": "A later version of the note."}),
        json.dumps({"id": "copy", "text": (inputs / "guidelines.txt").read_text().split("\n\n")[1]}),
        "not JSON",
    ]
    (inputs / "update.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    assert run_text(*options, "--output", tmp_path / "grown") == 0
    assert "1 documents are superseded: a later file, by name" in capsys.readouterr().err
    completed = run_beam("run", "text_to_shards", "--workers", 2, *options, "--output", tmp_path / "whole")
    assert completed.returncode == 0, completed.stderr
    assert published_digests(tmp_path / "grown") == published_digests(tmp_path / "whole")
    manifest = load_manifest(tmp_path / "grown")
    assert manifest["funnel"] == {
        "records": 11,
        "rejected: malformed-json": 1,
        "dropped: superseded": 1,
        "dropped: duplicate": 1,
        "dropped: excluded": 1,
        "kept": 7,
    }
    assert [item["file"] for item in manifest["inputs"]][-1] == "update.jsonl.gz"


def test_bad_lines_are_kept_aside_and_counted(run_text: Run, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"id": "1", "text": "One."}\n{"id": "1", "text": "Two."}\n')
    assert run_text("--input", path, "--output", tmp_path / "out") == 0
    stderr = capsys.readouterr().err
    assert "1 of 2 records were rejected (duplicate-id: 1)" in stderr
    assert "(a.jsonl, record 1: line 2: the file has text:1 before)" in stderr
    [rejected] = (tmp_path / "out/rejected").glob("*.jsonl")
    entry = json.loads(rejected.read_text())
    assert entry["detail"] == "line 2: the file has text:1 before"
    assert json.loads(entry["raw"])["text"] == "Two."


def test_dry_run_and_help(run_text: Run, tmp_path: Path, capsys: Capture) -> None:
    assert run_text("--output", tmp_path / "out", "--dry-run") == 0
    assert "processed: 0 files before, 3 files to do" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
    assert run_text("--help") == 0
    help_text = capsys.readouterr().out
    assert "--id-field" in help_text
    assert not re.search("--contact|--drop-retracted|--mirror|--languages", help_text)
