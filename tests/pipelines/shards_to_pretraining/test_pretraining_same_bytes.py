"""Pretraining sets, the same bytes every time: any workers, order and runner, killed, continued, grown."""

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
from bioshards.vocab.pretraining import build, shard_groups, shard_writer
from bioshards.vocab.pretraining.build_result import BuildResult
from tests.support.cloud import portable_runner
from tests.support.fork_server import interrupt_when, kill_ten_times, run_beam, start_beam
from tests.support.outputs import load_manifest, published_digests
from tests.support.vocab import synthetic_corpora as sets
from tests.support.vocab.synthetic_corpora import run_shards_to_pretraining

Capture = pytest.CaptureFixture[str]

SMALL_PORTIONS = {"bioshards.vocab.pretraining.shard_groups:MIN_GROUP_BYTES": 1}
"""A portion for each shard, as large shards have it."""
SHUFFLES = ("shard", "global")


@pytest.fixture
def small_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A portion for each shard in runs of this process, too."""
    monkeypatch.setattr(shard_groups, "MIN_GROUP_BYTES", 1)


class Given:
    """Directories of abstracts and articles, a vocabulary, and what is made of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shards = {f"n{at}": range(100 * at, 100 * at + 60) for at in range(1, 6)}
        self.abstracts = sets.write_abstracts(folder / "abstracts", **shards)
        self.articles = sets.write_articles(folder / "articles", PMC1=range(100, 110), PMC2=range(200, 210))
        self.vocabulary = sets.build_vocabulary(folder / "vocabulary", self.abstracts, self.articles)

    def options(self, shuffle: str, *inputs: object) -> list[object]:
        folders = inputs or (self.abstracts, self.articles)
        words = [word for folder in folders for word in ("--input", folder)]
        words += ["--vocab", self.vocabulary, "--objective", "bert", "--max-seq-length", 40]
        return [*words, "--validation-fraction", 0.2, "--shuffle", shuffle]

    def whole(self, shuffle: str) -> dict[str, str]:
        """What one worker makes of it in a process of its own, started once."""
        if (self.folder / shuffle).exists():
            return published_digests(self.folder / shuffle)
        done = command(*self.options(shuffle), "--workers", 1, "--output", self.folder / shuffle)
        assert done.returncode == 0, done.stderr
        assert len(list((self.folder / shuffle / ".bioshards" / "build_reports").iterdir())) == 7
        return published_digests(self.folder / shuffle)


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    return Given(tmp_path_factory.mktemp("given"))


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return run_beam("run", "shards_to_pretraining", *arguments, overrides=SMALL_PORTIONS)


# However it runs


def test_the_number_of_workers_changes_no_byte(given: Given, tmp_path: Path) -> None:
    done = command(*given.options("global"), "--workers", 3, "--output", tmp_path)
    assert done.returncode == 0, done.stderr
    assert published_digests(tmp_path) == given.whole("global")


@pytest.mark.usefixtures("small_portions")
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_the_order_the_spelling_and_the_place_of_inputs_change_no_byte(
    shuffle: str, given: Given, tmp_path: Path
) -> None:
    turned = given.options(shuffle, os.path.relpath(given.articles), f"{given.abstracts}/")
    assert run_shards_to_pretraining(*turned, "--output", tmp_path / "turned") == 0
    assert published_digests(tmp_path / "turned") == given.whole(shuffle)
    shutil.copytree(given.articles, tmp_path / "moved" / "b")
    shutil.copytree(given.abstracts, tmp_path / "moved" / "a")
    shutil.copytree(given.vocabulary, tmp_path / "moved" / "v")
    moved = given.options(shuffle, tmp_path / "moved" / "a", tmp_path / "moved" / "b")
    moved += ["--vocab", tmp_path / "moved" / "v", "--output", tmp_path / "out"]
    assert run_shards_to_pretraining(*moved) == 0
    assert published_digests(tmp_path / "out") == given.whole(shuffle)


@pytest.mark.timeout(300)
def test_a_job_service_with_a_worker_of_its_own_gives_the_same_bytes(given: Given, tmp_path: Path) -> None:
    with portable_runner.run_portable_services(tmp_path) as options:
        done = command(*given.options("global"), "--output", tmp_path / "out", *options)
    assert done.returncode == 0, done.stderr
    assert published_digests(tmp_path / "out") == given.whole("global")


# Stopped


@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_killed_ten_times_and_continued_it_ends_with_the_same_bytes(
    shuffle: str, given: Given, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    words = ("run", "shards_to_pretraining", *given.options(shuffle), "--workers", 1)
    kill_ten_times(output, *words, overrides=SMALL_PORTIONS)
    done = command(*given.options(shuffle), "--workers", 1, "--output", output)
    assert done.returncode == 0, done.stderr
    assert published_digests(output) == given.whole(shuffle)
    assert list(output.rglob(".tmp-*")) == []


def test_ctrl_c_stops_two_workers_and_the_next_run_continues(given: Given, tmp_path: Path) -> None:
    output, said = tmp_path / "out", tmp_path / "said"
    arguments = (*given.options("shard"), "--workers", 2, "--output", output)
    process = start_beam(
        "run", "shards_to_pretraining", *arguments, stderr_path=said, overrides=SMALL_PORTIONS
    )
    interrupt_when(process, lambda: bool(list((output / ".bioshards" / "build_reports").glob("[!.]*"))))
    errors = said.read_text()
    assert process.exitcode == 130
    assert "run the same command again to continue" in errors
    assert "Traceback" not in errors
    assert not (output / "manifest.json").exists()
    done = command(*arguments)
    assert done.returncode == 0, done.stderr
    assert published_digests(output) == given.whole("shard")
    assert list(output.rglob(".tmp-*")) == []


@pytest.mark.usefixtures("small_portions")
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_stopped_at_any_write_it_goes_on_where_it_was(
    shuffle: str, given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """One write in eight fails, so that the run is stopped in each of its steps."""
    whole, chance, failed = LocalStorage.write, random.Random(7), set()

    @contextlib.contextmanager
    def failing(self: LocalStorage, path: str) -> Iterator[Any]:
        if chance.random() < 0.125:
            failed.add(Path(path).parent.name)
            raise RuntimeError(f"no more of {path}")
        with whole(self, path) as file:
            yield file

    arguments = (*given.options(shuffle), "--output", tmp_path / "out")
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "write", failing)
        while run_shards_to_pretraining(*arguments) != 0:
            assert "RuntimeError: no more of " in capsys.readouterr().err
            assert not (tmp_path / "out" / "manifest.json").exists()
    assert failed >= ({"train", "build_reports"} if shuffle == "shard" else {"shuffle_spill", "train"})
    assert published_digests(tmp_path / "out") == given.whole(shuffle)


# Grown and shrunk


@pytest.mark.usefixtures("small_portions")
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_an_update_ends_with_the_bytes_of_a_run_from_nothing(
    shuffle: str, given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard more, one less, one changed, a directory less; rows that are not dealt out are made once."""
    now: list[str] = []
    made = build._Builder.build

    def noting(self: Any) -> BuildResult:
        now.extend(shard.file for shard in self._shard_group.shards)
        return made(self)

    monkeypatch.setattr(build._Builder, "build", noting)
    grown = tmp_path / "abstracts"
    steps = {
        "begun": {"a": range(100, 150), "b": range(200, 250)},
        "more": {"a": range(100, 150), "b": range(200, 250), "c": range(300, 350)},
        "less": {"a": range(100, 150), "c": range(300, 350)},
        "changed": {"a": range(100, 151), "c": range(300, 350)},
        "no articles": {"a": range(100, 151), "c": range(300, 350)},
        "held out none": {"c": range(301, 303)},
    }
    news = {"begun": ["a", "b", "PMC1", "PMC2"], "more": ["c"], "changed": ["a"], "held out none": ["c"]}
    for name, shards_of in steps.items():
        shutil.rmtree(grown, ignore_errors=True)
        sets.write_abstracts(grown, **shards_of)
        inputs = (grown,) if name in ("no articles", "held out none") else (grown, given.articles)
        arguments = given.options(shuffle, *inputs)
        now.clear()
        assert run_shards_to_pretraining(*arguments, "--output", tmp_path / "grown") == 0
        new = [f"data-{part}-00000.arrow" for part in news.get(name, [])]
        assert shuffle == "global" or sorted(now) == sorted(new)
        assert run_shards_to_pretraining(*arguments, "--output", tmp_path / name) == 0
        assert published_digests(tmp_path / "grown") == published_digests(tmp_path / name)
    assert load_manifest(tmp_path / "grown")["counts"]["validation"]["documents"] == 0
    left = {path.stem for path in (tmp_path / "grown" / ".bioshards" / "build_reports").iterdir()}
    assert left == {
        path.stem for path in (tmp_path / "held out none" / ".bioshards" / "build_reports").iterdir()
    }


@pytest.mark.usefixtures("small_portions")
def test_a_killed_update_that_is_taken_back_is_not_believed(
    given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket's shard has the same name whatever is in it: the killed update has written it already."""
    more = sets.write_abstracts(tmp_path / "more", x=range(700, 720))
    before = given.options("global")
    assert run_shards_to_pretraining(*before, "--output", tmp_path / "out") == 0
    write = LocalStorage.write

    @contextlib.contextmanager
    def killed(self: LocalStorage, path: str) -> Iterator[Any]:
        if "/merged_buckets/" in path:
            raise RuntimeError("killed")
        with write(self, path) as file:
            yield file

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "write", killed)
        assert run_shards_to_pretraining(*before, "--input", more, "--output", tmp_path / "out") == 1
    for name in ("manifest.json", "dataset_dict.json", "train/state.json", "validation/state.json"):
        assert not (tmp_path / "out" / name).exists()  # nothing opens what is half old and half new
    assert run_shards_to_pretraining(*before, "--output", tmp_path / "out") == 0
    assert published_digests(tmp_path / "out") == given.whole("global")


@pytest.mark.usefixtures("small_portions")
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_a_lost_or_cut_shard_is_made_again(shuffle: str, given: Given, tmp_path: Path) -> None:
    arguments = (*given.options(shuffle), "--output", tmp_path / "out")
    assert run_shards_to_pretraining(*arguments) == 0
    for with_work_folder in (True, False):
        shards = sorted((tmp_path / "out").rglob("data-*.arrow"))
        shards[0].unlink()
        shards[-1].write_bytes(shards[-1].read_bytes()[:-100])
        if not with_work_folder:
            shutil.rmtree(tmp_path / "out" / ".bioshards")
        assert run_shards_to_pretraining(*arguments) == 0
        assert published_digests(tmp_path / "out") == given.whole(shuffle)


@pytest.mark.usefixtures("small_portions")
@pytest.mark.parametrize("shuffle", SHUFFLES)
def test_a_finished_set_lives_without_its_work_folder(
    shuffle: str, given: Given, tmp_path: Path, capsys: Capture
) -> None:
    arguments = (*given.options(shuffle), "--output", tmp_path)
    assert run_shards_to_pretraining(*arguments) == 0
    written = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    capsys.readouterr()
    assert run_shards_to_pretraining(*arguments) == 0
    assert "is finished and its 2 inputs are unchanged: nothing to do" in capsys.readouterr().out
    shutil.rmtree(tmp_path / ".bioshards")
    assert run_shards_to_pretraining(*arguments, "--seed", 3) == 2
    assert run_shards_to_pretraining(*arguments) == 0
    assert "nothing to do" in capsys.readouterr().out
    for path in tmp_path.rglob("*"):
        if path.is_file() and ".bioshards" not in path.parts:
            assert path.stat().st_mtime_ns == written[path]
    assert published_digests(tmp_path) == given.whole(shuffle)


@pytest.mark.usefixtures("small_portions")
def test_a_run_beside_another_into_the_same_folder_is_refused(
    given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """The second one comes while the first one writes its first shard."""
    arguments = (*given.options("shard"), "--output", tmp_path / "out")
    write, codes = shard_writer.ShardWriter.write, list[int]()

    def beside(*words: Any) -> Any:
        if not codes:
            codes.append(run_shards_to_pretraining(*arguments))
        return write(*words)

    monkeypatch.setattr(shard_writer.ShardWriter, "write", beside)
    assert run_shards_to_pretraining(*arguments) == 0
    assert codes == [2]
    assert "another run is writing" in capsys.readouterr().err
    assert published_digests(tmp_path / "out") == given.whole("shard")
