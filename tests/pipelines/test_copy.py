"""``beam copy``: finished directories on other stores, whole or not there."""

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
from bioshards.pipelines.drivers import copy
from tests.support.outputs import published_digests
from tests.support.paths import PUBMED_SAMPLE

Capture = pytest.CaptureFixture[str]
FILES = LocalStorage()


@pytest.fixture
def source(reference: Path, tmp_path: Path) -> Path:
    """The sample's documents, with dropped ones beside them."""
    return Path(shutil.copytree(reference, tmp_path / "source"))


def run_copy(source: Path, target: Path) -> int:
    return cli.main(["copy", str(source), str(target)])


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and ".bioshards" not in path.parts
    }


def test_a_copy_is_the_same_files(source: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run_copy(source, tmp_path / "copy") == 0
    assert bytes_of(tmp_path / "copy") == bytes_of(source)
    count = len(bytes_of(source))
    assert f"{count} files, {count} of them copied now" in capsys.readouterr().out


def test_what_is_right_is_not_copied_again(source: Path, tmp_path: Path) -> None:
    copy.copy_directory(FILES, str(source), str(tmp_path / "copy"))
    shards = sorted((tmp_path / "copy").glob("data-*"))
    when = [shard.stat().st_mtime_ns for shard in shards]
    shards[0].write_bytes(b"x" * shards[0].stat().st_size)
    (tmp_path / "copy" / "manifest.json").unlink()  # as a stopped one leaves it
    copy.copy_directory(FILES, str(source), str(tmp_path / "copy"))
    assert bytes_of(tmp_path / "copy") == bytes_of(source)
    assert [shard.stat().st_mtime_ns == then for shard, then in zip(shards, when, strict=True)] == [
        False,
        *[True] * (len(shards) - 1),
    ]


def test_an_earlier_copy_is_brought_up_to_date(source: Path, tmp_path: Path, run: Callable[..., int]) -> None:
    assert run("--output", tmp_path / "more", "--keep-dropped") == 0
    copy.copy_directory(FILES, str(tmp_path / "more"), str(tmp_path / "copy"))
    fewer = tmp_path / "one"
    fewer.mkdir()
    shutil.copy(next(PUBMED_SAMPLE.glob("*0001.xml")), fewer)
    assert run("--input", fewer, "--output", tmp_path / "less", "--keep-dropped") == 0
    copy.copy_directory(FILES, str(tmp_path / "less"), str(tmp_path / "copy"))
    assert bytes_of(tmp_path / "copy") == bytes_of(tmp_path / "less")
    assert published_digests(tmp_path / "copy") != published_digests(tmp_path / "more")


@pytest.mark.parametrize("damage", ["changed", "cut", "gone"])
def test_a_damaged_original_is_named_and_its_copy_unfinished(
    damage: str, source: Path, tmp_path: Path, capsys: Capture
) -> None:
    shard = sorted(source.glob("data-*"))[1]
    data = shard.read_bytes()
    if damage == "gone":
        shard.unlink()
    else:
        shard.write_bytes(bytes(len(data)) if damage == "changed" else data[:-8])
    assert run_copy(source, tmp_path / "copy") == 2
    said = capsys.readouterr().err
    assert shard.name in said
    assert "manifest.json lists" in said
    assert not (tmp_path / "copy" / "manifest.json").exists()
    assert not list((tmp_path / "copy").rglob(".tmp-*"))


def test_nothing_is_copied_over_what_is_something_else(
    source: Path, full_text: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("Dear")
    assert run_copy(source, tmp_path / "letters") == 2
    assert "is not empty and was not written by" in capsys.readouterr().err
    shutil.copytree(full_text, tmp_path / "articles")
    before = bytes_of(tmp_path / "articles")
    assert run_copy(source, tmp_path / "articles") == 2
    assert "was written by pmc_to_shards, and this is pubmed_to_shards" in capsys.readouterr().err
    assert bytes_of(tmp_path / "articles") == before


def test_what_lies_beside_a_copy_stays(source: Path, tmp_path: Path) -> None:
    """In folders of a disk or bucket that a copy is put into, and files that somebody has put beside one."""
    theirs = tmp_path / "disk" / "thesis" / "data-1.txt"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("years of work")
    (source / "other" / "deep").mkdir(parents=True)
    (source / "other" / "deep" / "large").write_text("of somebody else")
    assert run_copy(source, tmp_path / "disk") == 0
    (tmp_path / "disk" / "README").write_text("what this is")
    assert run_copy(source, tmp_path / "disk") == 0
    assert theirs.read_text() == "years of work"
    assert (tmp_path / "disk" / "README").read_text() == "what this is"
    assert not (tmp_path / "disk" / "other").exists()


def test_the_output_of_a_run_is_not_replaced(
    source: Path, tmp_path: Path, run: Callable[..., int], capsys: Capture
) -> None:
    """Its configuration is the same, and its input another."""
    shutil.copy(next(PUBMED_SAMPLE.glob("*0001.xml")), tmp_path / "few.xml")
    options = ("--input", tmp_path / "few.xml", "--keep-dropped")
    assert run("--output", tmp_path / "run", *options) == 0
    before = bytes_of(tmp_path / "run")
    assert run_copy(source, tmp_path / "run") == 2
    assert "is the output of a run, which a copy would replace" in capsys.readouterr().err
    assert bytes_of(tmp_path / "run") == before


def test_an_original_that_changes_meanwhile_gives_no_finished_copy(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    real = copy._copy_data_files

    def slow(*given: Any) -> int:
        copied = real(*given)
        (source / "manifest.json").write_text(json.dumps({"config": {}, "outputs": []}))
        return copied

    monkeypatch.setattr(copy, "_copy_data_files", slow)
    assert run_copy(source, tmp_path / "copy") == 2
    assert "or was written anew meanwhile" in capsys.readouterr().err
    assert not (tmp_path / "copy" / "manifest.json").exists()


def test_what_is_not_finished_is_not_copied(source: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run_copy(tmp_path / "nowhere", tmp_path / "copy") == 2
    assert "nowhere is no finished directory: it has no manifest.json" in capsys.readouterr().err
    (source / "manifest.json").write_text(json.dumps({"files": []}))
    assert run_copy(source, tmp_path / "copy") == 2
    assert "is not of bioshards" in capsys.readouterr().err
    (source / "manifest.json").write_text("{")
    assert run_copy(source, tmp_path / "copy") == 2
    assert "manifest.json cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()


def test_a_model_is_not_said_to_lack_files(source: Path, tmp_path: Path, capsys: Capture) -> None:
    listed = json.loads((source / "manifest.json").read_text())
    (source / "step-0000200/hf").mkdir(parents=True)
    (source / "step-0000200/hf/config.json").write_text("{}")
    listed["outputs"].append({"file": "step-0000200/hf/config.json", "rows": 0, "bytes": 2, "sha256": "0"})
    (source / "manifest.json").write_text(json.dumps(listed))
    assert run_copy(source, tmp_path / "copy") == 2
    assert "folders of its own (step-0000200/hf/config.json), as a model has" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()


def test_no_folder_is_copied_into_itself(source: Path, tmp_path: Path, capsys: Capture) -> None:
    before = bytes_of(source)
    os.symlink(source, tmp_path / "link")
    for target in (source, source / "copy", tmp_path, tmp_path / "link"):
        assert run_copy(source, target) == 2
        assert "inside" in capsys.readouterr().err or target == tmp_path
        assert bytes_of(source) == before


def test_a_write_that_fails_leaves_a_copy_that_is_gone_on_with(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, written = LocalStorage.write, []

    def failing(self: LocalStorage, path: str) -> object:
        if path.endswith(".arrow"):
            written.append(path)
            if len(written) == 3:
                raise OSError(28, "No space left on device")
        return write(self, path)

    monkeypatch.setattr(LocalStorage, "write", failing)
    assert run_copy(source, tmp_path / "copy") == 1
    assert not (tmp_path / "copy" / "manifest.json").exists()
    assert run_copy(source, tmp_path / "copy") == 0
    assert bytes_of(tmp_path / "copy") == bytes_of(source)


@pytest.mark.parametrize("word", ["--dry-run", "--job_name=x", "--runner=DirectRunner"])
def test_what_a_copy_does_not_do_is_refused(source: Path, tmp_path: Path, capsys: Capture, word: str) -> None:
    assert cli.main(["copy", str(source), str(tmp_path / "copy"), word]) == 2
    assert f"{word} is no option of beam copy" in capsys.readouterr().err
    assert not (tmp_path / "copy").exists()


def test_a_target_that_cannot_be_written(source: Path, tmp_path: Path, capsys: Capture) -> None:
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
    listed = json.loads((source / "manifest.json").read_text())
    listed["outputs"][0]["file"] = "../elsewhere.arrow"
    (source / "manifest.json").write_text(json.dumps(listed))
    with pytest.raises(InputError, match=r"has no \.\./elsewhere"):
        copy.copy_directory(FILES, str(source), str(tmp_path / "copy"))
