"""Tests that ``shards_to_pretraining`` gives the same bytes with any workers, order, runner and updates."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.pretraining import build, row_plan
from bioshards.vocab.pretraining.build import BuildResult
from tests.support.cloud import portable_runner
from tests.support.fork_server import interrupt_when, kill_ten_times, run_beam, start_beam
from tests.support.outputs import load_manifest, published_digests
from tests.support.vocab import synthetic_corpora
from tests.support.vocab.synthetic_corpora import run_shards_to_pretraining

Capture = pytest.CaptureFixture[str]

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


# Workers, order of inputs, runners


def test_the_number_of_workers_changes_no_byte(pretraining_inputs: PretrainingInputs, tmp_path: Path) -> None:
    completed = run_in_subprocess(*pretraining_inputs.make_arguments(), "--workers", 3, "--output", tmp_path)
    assert completed.returncode == 0, completed.stderr
    assert published_digests(tmp_path) == pretraining_inputs.build_expected_digests()


@pytest.mark.usefixtures("use_small_shard_groups")
def test_order_spelling_and_location_of_inputs_change_no_byte(
    pretraining_inputs: PretrainingInputs, tmp_path: Path
) -> None:
    reversed_arguments = pretraining_inputs.make_arguments(
        os.path.relpath(pretraining_inputs.articles), f"{pretraining_inputs.abstracts}/"
    )
    assert run_shards_to_pretraining(*reversed_arguments, "--output", tmp_path / "turned") == 0
    assert published_digests(tmp_path / "turned") == pretraining_inputs.build_expected_digests()
    shutil.copytree(pretraining_inputs.articles, tmp_path / "moved" / "b")
    shutil.copytree(pretraining_inputs.abstracts, tmp_path / "moved" / "a")
    shutil.copytree(pretraining_inputs.vocabulary, tmp_path / "moved" / "v")
    moved_arguments = pretraining_inputs.make_arguments(tmp_path / "moved" / "a", tmp_path / "moved" / "b")
    moved_arguments += ["--vocab", tmp_path / "moved" / "v", "--output", tmp_path / "out"]
    assert run_shards_to_pretraining(*moved_arguments) == 0
    assert published_digests(tmp_path / "out") == pretraining_inputs.build_expected_digests()


@pytest.mark.timeout(300)
def test_portable_runner_gives_the_same_bytes(pretraining_inputs: PretrainingInputs, tmp_path: Path) -> None:
    with portable_runner.run_portable_services(tmp_path) as runner_options:
        completed = run_in_subprocess(
            *pretraining_inputs.make_arguments(), "--output", tmp_path / "out", *runner_options
        )
    assert completed.returncode == 0, completed.stderr
    assert published_digests(tmp_path / "out") == pretraining_inputs.build_expected_digests()


# Interrupted runs


def test_run_killed_ten_times_gives_the_same_bytes(
    pretraining_inputs: PretrainingInputs, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    arguments = ("run", "shards_to_pretraining", *pretraining_inputs.make_arguments(), "--workers", 1)
    kill_ten_times(output, *arguments, overrides=SMALL_GROUPS)
    completed = run_in_subprocess(*pretraining_inputs.make_arguments(), "--workers", 1, "--output", output)
    assert completed.returncode == 0, completed.stderr
    assert published_digests(output) == pretraining_inputs.build_expected_digests()
    assert list(output.rglob(".tmp-*")) == []


def test_ctrl_c_stops_two_workers_and_the_next_run_continues(
    pretraining_inputs: PretrainingInputs, tmp_path: Path
) -> None:
    output, stderr_path = tmp_path / "out", tmp_path / "said"
    arguments = (*pretraining_inputs.make_arguments(), "--workers", 2, "--output", output)
    process = start_beam(
        "run", "shards_to_pretraining", *arguments, stderr_path=stderr_path, overrides=SMALL_GROUPS
    )
    interrupt_when(process, lambda: bool(list((output / ".bioshards" / "build_reports").glob("[!.]*"))))
    stderr = stderr_path.read_text()
    assert process.exitcode == 130
    assert "run the same command again to continue" in stderr
    assert "Traceback" not in stderr
    assert not (output / "manifest.json").exists()
    completed = run_in_subprocess(*arguments)
    assert completed.returncode == 0, completed.stderr
    assert published_digests(output) == pretraining_inputs.build_expected_digests()
    assert list(output.rglob(".tmp-*")) == []


@pytest.mark.usefixtures("use_small_shard_groups")
def test_run_stopped_at_any_write_resumes(
    pretraining_inputs: PretrainingInputs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    """One write in eight fails, so that each step is interrupted."""
    original_write, rng, failed_folders = LocalStorage.write, random.Random(7), set()

    @contextlib.contextmanager
    def write_or_fail(self: LocalStorage, path: str) -> Iterator[Any]:
        is_published = Path(path).name == "result.json"  # written for the command, after the manifest
        if not is_published and rng.random() < 0.125:
            failed_folders.add(Path(path).parent.name)
            raise RuntimeError(f"no more of {path}")
        with original_write(self, path) as file:
            yield file

    arguments = (*pretraining_inputs.make_arguments(), "--output", tmp_path / "out")
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "write", write_or_fail)
        while run_shards_to_pretraining(*arguments) != 0:
            assert "RuntimeError: no more of " in capsys.readouterr().err
            assert not (tmp_path / "out" / "manifest.json").exists()
    assert failed_folders >= {"train", "build_reports"}
    assert published_digests(tmp_path / "out") == pretraining_inputs.build_expected_digests()


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


@pytest.mark.usefixtures("use_small_shard_groups")
def test_missing_or_truncated_shard_is_rebuilt(pretraining_inputs: PretrainingInputs, tmp_path: Path) -> None:
    arguments = (*pretraining_inputs.make_arguments(), "--output", tmp_path / "out")
    assert run_shards_to_pretraining(*arguments) == 0
    for with_work_folder in (True, False):
        shards = sorted((tmp_path / "out").rglob("data-*.arrow"))
        shards[0].unlink()
        shards[-1].write_bytes(shards[-1].read_bytes()[:-100])
        if not with_work_folder:
            shutil.rmtree(tmp_path / "out" / ".bioshards")
        assert run_shards_to_pretraining(*arguments) == 0
        assert published_digests(tmp_path / "out") == pretraining_inputs.build_expected_digests()


@pytest.mark.usefixtures("use_small_shard_groups")
def test_finished_set_is_complete_without_its_work_directory(
    pretraining_inputs: PretrainingInputs, tmp_path: Path, capsys: Capture
) -> None:
    arguments = (*pretraining_inputs.make_arguments(), "--output", tmp_path)
    assert run_shards_to_pretraining(*arguments) == 0
    modified = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert run_shards_to_pretraining(*arguments) == 0
    assert "is finished and its 2 inputs are unchanged: nothing to do" in capsys.readouterr().out
    shutil.rmtree(tmp_path / ".bioshards")
    assert run_shards_to_pretraining(*arguments, "--seed", 3) == 2
    assert run_shards_to_pretraining(*arguments) == 0
    assert "nothing to do" in capsys.readouterr().out
    for path in tmp_path.rglob("*"):
        if path.is_file() and ".bioshards" not in path.parts:
            assert path.stat().st_mtime_ns == modified[path]
    assert published_digests(tmp_path) == pretraining_inputs.build_expected_digests()


@pytest.mark.usefixtures("use_small_shard_groups")
def test_second_run_into_a_locked_output_is_refused(
    pretraining_inputs: PretrainingInputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The second run starts while the first one writes its first shard."""
    arguments = (*pretraining_inputs.make_arguments(), "--output", tmp_path / "out")
    plan_rows, codes = row_plan.plan_rows, list[int]()

    def run_again_and_plan(*plan_arguments: Any) -> Any:
        if not codes:
            codes.append(run_shards_to_pretraining(*arguments))
        return plan_rows(*plan_arguments)

    monkeypatch.setattr(build, "plan_rows", run_again_and_plan)
    assert run_shards_to_pretraining(*arguments) == 0
    assert codes == [2]
    assert "another run is writing" in capsys.readouterr().err
    assert published_digests(tmp_path / "out") == pretraining_inputs.build_expected_digests()
