"""Tests of ``beam copy``: complete, updated, resumed and refused copies of finished directories."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.shards.input_dirs import InputError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli
from bioshards.pipelines.drivers import copy_driver
from tests.support.outputs import published_digests
from tests.support.paths import PUBMED_SAMPLE

Capture = pytest.CaptureFixture[str]
FILES = LocalStorage()


@pytest.fixture
def source(reference: Path, tmp_path: Path) -> Path:
    """The output of the sample, with dropped documents."""
    return Path(shutil.copytree(reference, tmp_path / "source"))


def run_copy(source: Path, target: Path) -> int:
    return cli.main(["copy", str(source), str(target)])


def read_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".bioshards" not in path.parts
    }


def test_copy_has_the_same_files(source: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run_copy(source, tmp_path / "copy") == 0
    assert read_files(tmp_path / "copy") == read_files(source)
    count = len(read_files(source))
    assert f"{count} files, {count} of them copied now" in capsys.readouterr().out


def test_intact_files_are_not_copied_again(source: Path, tmp_path: Path) -> None:
    copy_driver.copy_directory(FILES, str(source), str(tmp_path / "copy"))
    shards = sorted((tmp_path / "copy").glob("data-*"))
    times = [shard.stat().st_mtime_ns for shard in shards]
    shards[0].write_bytes(b"x" * shards[0].stat().st_size)
    (tmp_path / "copy" / "manifest.json").unlink()  # as an interrupted copy leaves it
    copy_driver.copy_directory(FILES, str(source), str(tmp_path / "copy"))
    assert read_files(tmp_path / "copy") == read_files(source)
    assert [shard.stat().st_mtime_ns == time for shard, time in zip(shards, times, strict=True)] == [
        False,
        *[True] * (len(shards) - 1),
    ]


def test_earlier_copy_is_updated(source: Path, tmp_path: Path, run: Callable[..., int]) -> None:
    assert run("--output", tmp_path / "more", "--keep-dropped") == 0
    copy_driver.copy_directory(FILES, str(tmp_path / "more"), str(tmp_path / "copy"))
    one_file_folder = tmp_path / "one"
    one_file_folder.mkdir()
    shutil.copy(next(PUBMED_SAMPLE.glob("*0001.xml")), one_file_folder)
    assert run("--input", one_file_folder, "--output", tmp_path / "less", "--keep-dropped") == 0
    copy_driver.copy_directory(FILES, str(tmp_path / "less"), str(tmp_path / "copy"))
    assert read_files(tmp_path / "copy") == read_files(tmp_path / "less")
    assert published_digests(tmp_path / "copy") != published_digests(tmp_path / "more")


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_damaged_original_is_reported_and_the_copy_stays_unfinished(
    damage: str, source: Path, tmp_path: Path, capsys: Capture
) -> None:
    shard = sorted(source.glob("data-*"))[1]
    data = shard.read_bytes()
    if damage == "gone":
        shard.unlink()
    else:
        shard.write_bytes(bytes(len(data)) if damage == "changed" else data[:-8])
    assert run_copy(source, tmp_path / "copy") == 2
    stderr = capsys.readouterr().err
    assert shard.name in stderr
    assert "manifest.json lists" in stderr
    assert not (tmp_path / "copy" / "manifest.json").exists()
    assert not list((tmp_path / "copy").rglob(".tmp-*"))


def test_target_with_other_content_is_refused(
    source: Path, full_text: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear")
    assert run_copy(source, tmp_path / "letters") == 2
    assert "is not empty and was not written by" in capsys.readouterr().err
    shutil.copytree(full_text, tmp_path / "articles")
    before = read_files(tmp_path / "articles")
    assert run_copy(source, tmp_path / "articles") == 2
    assert "was written by pmc_to_shards, and this is pubmed_to_shards" in capsys.readouterr().err
    assert read_files(tmp_path / "articles") == before


def test_other_files_beside_a_copy_are_kept(source: Path, tmp_path: Path) -> None:
    """Files in other folders of the target, and files added beside the copy."""
    foreign_file = tmp_path / "disk" / "thesis" / "data-1.txt"
    foreign_file.parent.mkdir(parents=True)
    foreign_file.write_text("years of work")
    (source / "other" / "deep").mkdir(parents=True)
    (source / "other" / "deep" / "large").write_text("of somebody else")
    assert run_copy(source, tmp_path / "disk") == 0
    (tmp_path / "disk" / "README").write_text("what this is")
    assert run_copy(source, tmp_path / "disk") == 0
    assert foreign_file.read_text() == "years of work"
    assert (tmp_path / "disk" / "README").read_text() == "what this is"
    assert not (tmp_path / "disk" / "other").exists()


def test_the_output_of_a_run_is_not_replaced(
    source: Path, tmp_path: Path, run: Callable[..., int], capsys: Capture
) -> None:
    """The run has the same configuration and other inputs."""
    shutil.copy(next(PUBMED_SAMPLE.glob("*0001.xml")), tmp_path / "few.xml")
    options = ("--input", tmp_path / "few.xml", "--keep-dropped")
    assert run("--output", tmp_path / "run", *options) == 0
    before = read_files(tmp_path / "run")
    assert run_copy(source, tmp_path / "run") == 2
    assert "is the output of a run, which a copy would replace" in capsys.readouterr().err
    assert read_files(tmp_path / "run") == before


def test_original_that_changes_during_copying_gives_no_finished_copy(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    copy_data_files = copy_driver._copy_data_files

    def copy_and_change(*arguments: Any) -> int:
        copied = copy_data_files(*arguments)
        (source / "manifest.json").write_text(json.dumps({"config": {}, "outputs": []}))
        return copied

    monkeypatch.setattr(copy_driver, "_copy_data_files", copy_and_change)
    assert run_copy(source, tmp_path / "copy") == 2
    assert "or was written anew meanwhile" in capsys.readouterr().err
    assert not (tmp_path / "copy" / "manifest.json").exists()


def test_unfinished_source_is_refused(source: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run_copy(tmp_path / "nowhere", tmp_path / "copy") == 2
    assert "nowhere is no finished directory: it has no manifest.json" in capsys.readouterr().err
    (source / "manifest.json").write_text(json.dumps({"files": []}))
    assert run_copy(source, tmp_path / "copy") == 2
    assert "is not of bioshards" in capsys.readouterr().err
    (source / "manifest.json").write_text("{")
    assert run_copy(source, tmp_path / "copy") == 2
    assert "manifest.json cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()


def test_directory_with_nested_outputs_is_refused(source: Path, tmp_path: Path, capsys: Capture) -> None:
    manifest = json.loads((source / "manifest.json").read_text())
    (source / "step-0000200/hf").mkdir(parents=True)
    (source / "step-0000200/hf/config.json").write_text("{}")
    manifest["outputs"].append({"file": "step-0000200/hf/config.json", "rows": 0, "bytes": 2, "sha256": "0"})
    (source / "manifest.json").write_text(json.dumps(manifest))
    assert run_copy(source, tmp_path / "copy") == 2
    assert "folders of its own (step-0000200/hf/config.json), as a model has" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()


def test_no_folder_is_copied_into_itself(source: Path, tmp_path: Path, capsys: Capture) -> None:
    before = read_files(source)
    os.symlink(source, tmp_path / "link")
    for target in (source, source / "copy", tmp_path, tmp_path / "link"):
        assert run_copy(source, target) == 2
        assert "inside" in capsys.readouterr().err or target == tmp_path
        assert read_files(source) == before


def test_copy_resumes_after_a_failed_write(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original_write, paths = LocalStorage.write, []

    def write_or_fail(self: LocalStorage, path: str) -> object:
        if path.endswith(".arrow"):
            paths.append(path)
            if len(paths) == 3:
                raise OSError(28, "No space left on device")
        return original_write(self, path)

    monkeypatch.setattr(LocalStorage, "write", write_or_fail)
    assert run_copy(source, tmp_path / "copy") == 1
    assert not (tmp_path / "copy" / "manifest.json").exists()
    assert run_copy(source, tmp_path / "copy") == 0
    assert read_files(tmp_path / "copy") == read_files(source)


@pytest.mark.parametrize("option", ["--dry-run", "--job_name=x", "--runner=DirectRunner"])
def test_options_of_other_commands_are_refused(
    source: Path, tmp_path: Path, capsys: Capture, option: str
) -> None:
    assert cli.main(["copy", str(source), str(tmp_path / "copy"), option]) == 2
    assert f"{option} is no option of beam copy" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()


def test_unwritable_target_is_refused(source: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("")
    assert run_copy(source, tmp_path / "file") == 2
    assert "TARGET " in capsys.readouterr().err


def test_the_command_line(tmp_path: Path, capsys: Capture) -> None:
    assert cli.main(["copy", str(tmp_path)]) == 2
    assert "TARGET. See beam copy --help" in capsys.readouterr().err
    assert cli.main(["copy", str(tmp_path), str(tmp_path / "x"), "--s3_endpoint"]) == 2
    assert "unknown option --s3_endpoint (did you mean --s3_endpoint_url?)" in capsys.readouterr().err
    assert cli.main(["copy", str(tmp_path), str(tmp_path / "x"), "one more"]) == 2
    assert "one more is no option. See" in capsys.readouterr().err
    assert cli.main(["copy", "--help"]) == 0
    assert "usage: beam copy" in capsys.readouterr().out


def test_a_path_that_is_listed_outside_the_folder_is_refused(source: Path, tmp_path: Path) -> None:
    manifest = json.loads((source / "manifest.json").read_text())
    manifest["outputs"][0]["file"] = "../elsewhere.arrow"
    (source / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"has no \.\./elsewhere"):
        copy_driver.copy_directory(FILES, str(source), str(tmp_path / "copy"))
