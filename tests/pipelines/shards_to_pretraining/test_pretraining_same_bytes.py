"""Tests that ``shards_to_pretraining`` gives the same bytes with any workers, order, runner and updates."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bioshards.vocab.pretraining import build
from bioshards.vocab.pretraining.build import BuildResult
from tests.support.fork_server import kill_repeatedly, run_beam
from tests.support.outputs import load_manifest, published_digests
from tests.support.vocab import synthetic_corpora
from tests.support.vocab.synthetic_corpora import run_shards_to_pretraining

pytestmark = pytest.mark.thorough  # this file takes minutes

SMALL_GROUPS = {"bioshards.vocab.pretraining.build:MIN_GROUP_BYTES": 1}
"""One shard group for each shard, as with large shards."""


@pytest.fixture
def use_small_shard_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build one shard group for each shard in runs of this process."""
    monkeypatch.setattr(build, "MIN_GROUP_BYTES", 1)


class PretrainingInputs:
    """Directories of abstracts and articles, a vocabulary, and the expected outputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shards = {f"n{number}": range(100 * number, 100 * number + 60) for number in range(1, 6)}
        self.abstracts = synthetic_corpora.write_abstracts(folder / "abstracts", **shards)
        self.articles = synthetic_corpora.write_articles(
            folder / "articles", PMC1=range(100, 110), PMC2=range(200, 210)
        )
        self.vocabulary = synthetic_corpora.build_vocabulary(
            folder / "vocabulary", self.abstracts, self.articles
        )

    def make_arguments(self, *inputs: object) -> list[object]:
        folders = inputs or (self.abstracts, self.articles)
        arguments = [word for folder in folders for word in ("--input", folder)]
        arguments += ["--vocab", self.vocabulary, "--objective", "bert", "--max-seq-length", 40]
        return [*arguments, "--validation-fraction", 0.2]

    def build_expected_digests(self) -> dict[str, str]:
        """Return the digests of a run with one worker in a subprocess, which is made once."""
        output = self.folder / "expected"
        if not output.exists():
            completed = run_in_subprocess(*self.make_arguments(), "--workers", 1, "--output", output)
            assert completed.returncode == 0, completed.stderr
            assert len(list((output / ".bioshards" / "build_reports").iterdir())) == 7
        return published_digests(output)


@pytest.fixture(scope="module")
def pretraining_inputs(tmp_path_factory: pytest.TempPathFactory) -> PretrainingInputs:
    return PretrainingInputs(tmp_path_factory.mktemp("given"))


def run_in_subprocess(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_beam("run", "shards_to_pretraining", *arguments, overrides=SMALL_GROUPS)


# Interrupted runs


@pytest.mark.timeout(600)
def test_killed_run_gives_the_same_bytes(pretraining_inputs: PretrainingInputs, tmp_path: Path) -> None:
    output = tmp_path / "out"
    arguments = ("run", "shards_to_pretraining", *pretraining_inputs.make_arguments(), "--workers", 1)
    kill_repeatedly(output, *arguments, overrides=SMALL_GROUPS)
    completed = run_in_subprocess(*pretraining_inputs.make_arguments(), "--workers", 1, "--output", output)
    assert completed.returncode == 0, completed.stderr
    assert published_digests(output) == pretraining_inputs.build_expected_digests()
    assert list(output.rglob(".tmp-*")) == []


# Updates


@pytest.mark.usefixtures("use_small_shard_groups")
def test_update_gives_the_bytes_of_a_run_from_scratch(
    pretraining_inputs: PretrainingInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Add, remove and change shards and remove a directory; by default only changed shards are built."""
    built_files: list[str] = []
    original_build = build._Builder.build

    def record_and_build(self: Any) -> BuildResult:
        built_files.extend(entry.file for entry in self._group.shards)
        return original_build(self)

    monkeypatch.setattr(build._Builder, "build", record_and_build)
    grown = tmp_path / "abstracts"
    steps = {
        "begun": {"a": range(100, 150), "b": range(200, 250)},
        "more": {"a": range(100, 150), "b": range(200, 250), "c": range(300, 350)},
        "less": {"a": range(100, 150), "c": range(300, 350)},
        "changed": {"a": range(100, 151), "c": range(300, 350)},
        "no articles": {"a": range(100, 151), "c": range(300, 350)},
        "held out none": {"c": range(301, 303)},
    }
    shards_to_build = {
        "begun": ["a", "b", "PMC1", "PMC2"],
        "more": ["c"],
        "changed": ["a"],
        "held out none": ["c"],
    }
    for name, shards in steps.items():
        shutil.rmtree(grown, ignore_errors=True)
        synthetic_corpora.write_abstracts(grown, **shards)
        folders = (
            (grown,) if name in ("no articles", "held out none") else (grown, pretraining_inputs.articles)
        )
        arguments = pretraining_inputs.make_arguments(*folders)
        built_files.clear()
        assert run_shards_to_pretraining(*arguments, "--output", tmp_path / "grown") == 0
        files_to_build = [f"data/data-{shard}-00000.parquet" for shard in shards_to_build.get(name, [])]
        assert sorted(built_files) == sorted(files_to_build)
        assert run_shards_to_pretraining(*arguments, "--output", tmp_path / name) == 0
        assert published_digests(tmp_path / "grown") == published_digests(tmp_path / name)
    assert load_manifest(tmp_path / "grown")["counts"]["validation"]["documents"] == 0
    report_names = {path.stem for path in (tmp_path / "grown" / ".bioshards" / "build_reports").iterdir()}
    assert report_names == {
        path.stem for path in (tmp_path / "held out none" / ".bioshards" / "build_reports").iterdir()
    }
