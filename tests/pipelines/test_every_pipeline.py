"""What holds for the output of every pipeline: same bytes, reruns, damage, a full disk, what is refused."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bioshards.pipelines import cli
from tests.support.fork_server import run_beam
from tests.support.full_disk import check_resumption
from tests.support.outputs import published_digests
from tests.support.paths import PMC_SAMPLE, PUBMED_SAMPLE, TEXT_SAMPLE
from tests.support.vocab.tiny_tokenizers import save_character_vocabulary

Capture = pytest.CaptureFixture[str]
Run = Callable[..., int]
FindOutput = Callable[[str], Path]

OTHER_SETTINGS = {
    "pubmed_to_shards": (("--min-abstract-words", 50), "min_abstract_words was 0, now 50"),
    "pmc_to_shards": (("--include-parts", "body"), "parts was ['abstract',"),
    "text_to_shards": (("--lower-case",), "lower_case was False, now True"),
    "shards_to_words": (("--min-count", 3), "min_count was 1, now 3"),
    "shards_to_pretraining": (("--max-seq-length", 32), "length was 64, now 32"),
}
"""An option of each pipeline that its output does not have, and what is said of it."""
ALLOWED_WRITES = {
    "pubmed_to_shards": (0, 1, 2, 3, 4, 5),
    "pmc_to_shards": (0, 1, 2, 3, 5),
    "text_to_shards": (0, 1, 2, 3, 5),
    "shards_to_words": (0, 2, 70, 130, 132),
    "shards_to_pretraining": (0, 1, 2, 3, 5, 6),
}
"""Writes after which the disk is full, in runs that follow each other."""

pytestmark = [pytest.mark.thorough, pytest.mark.parametrize("pipeline", OTHER_SETTINGS)]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_vocabulary(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture(scope="module")
def inputs(reference: Path, full_text: Path) -> dict[str, list[Path]]:
    """The inputs of each pipeline."""
    return {
        "pubmed_to_shards": sorted(PUBMED_SAMPLE.iterdir()),
        "pmc_to_shards": sorted(PMC_SAMPLE.iterdir()),
        "text_to_shards": sorted(TEXT_SAMPLE.iterdir()),
        "shards_to_words": [reference, full_text],
        "shards_to_pretraining": [reference, full_text],
    }


@pytest.fixture(scope="module")
def options(vocabulary: Path) -> dict[str, tuple[object, ...]]:
    """The other options of each pipeline."""
    return {
        "pubmed_to_shards": ("--keep-dropped",),
        "pmc_to_shards": ("--keep-dropped",),
        "text_to_shards": (),
        "shards_to_words": ("--validation-fraction", 0.2),
        "shards_to_pretraining": (
            *("--validation-fraction", 0.2, "--max-seq-length", 64, "--objective", "bert"),
            *("--vocab", vocabulary),
        ),
    }


@pytest.fixture(scope="module")
def find_output(
    inputs: dict[str, list[Path]],
    options: dict[str, tuple[object, ...]],
    tmp_path_factory: pytest.TempPathFactory,
) -> FindOutput:
    """Return the finished output of a pipeline, which is made once."""
    folder = tmp_path_factory.mktemp("finished")

    def find(pipeline: str) -> Path:
        if not (folder / pipeline).exists():
            given = [word for path in inputs[pipeline] for word in ("--input", path)]
            command = ("run", pipeline, "--workers", 1, *given, *options[pipeline])
            completed = run_beam(*command, "--output", folder / pipeline)
            assert completed.returncode == 0, completed.stderr
        return folder / pipeline

    return find


@pytest.fixture
def run(pipeline: str, inputs: dict[str, list[Path]], options: dict[str, tuple[object, ...]]) -> Run:
    """Run the pipeline on its inputs in this process."""

    def call(*others: object) -> int:
        given = [word for path in inputs[pipeline] for word in ("--input", path)]
        command = ["run", pipeline, "--workers", 1, *given, *options[pipeline], *others]
        return cli.main([str(word) for word in command])

    return call


@pytest.fixture
def output(pipeline: str, find_output: FindOutput, tmp_path: Path) -> Path:
    """A copy of the finished output of the pipeline."""
    return shutil.copytree(find_output(pipeline), tmp_path / "out")


def list_times(output: Path) -> dict[Path, int]:
    """Return the modification times of published files."""
    return {
        path: path.stat().st_mtime_ns
        for path in output.rglob("*")
        if path.is_file() and ".bioshards" not in path.parts
    }


def test_workers_and_the_order_spelling_and_place_of_inputs_change_no_byte(
    pipeline: str,
    inputs: dict[str, list[Path]],
    options: dict[str, tuple[object, ...]],
    find_output: FindOutput,
    tmp_path: Path,
) -> None:
    moved = []
    for path in inputs[pipeline]:
        copy = tmp_path / "moved" / path.relative_to(path.parent.parent)
        copy.parent.mkdir(parents=True, exist_ok=True)
        moved.append(shutil.copytree(path, copy) if path.is_dir() else shutil.copy(path, copy))
    given = [word for path in reversed(moved) for word in ("--input", os.path.relpath(path))]
    command = ("run", pipeline, "--workers", 2, *given, *options[pipeline])
    completed = run_beam(*command, "--output", f"{tmp_path}/out/")
    assert completed.returncode == 0, completed.stderr
    assert published_digests(tmp_path / "out") == published_digests(find_output(pipeline))


def test_finished_output_stays_as_it_is(pipeline: str, run: Run, output: Path, capsys: Capture) -> None:
    """With its work folder and without, and when other settings are asked for."""
    times, (other, message) = list_times(output), OTHER_SETTINGS[pipeline]
    with (output / ".bioshards" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run("--output", output) == 2
    assert "another run is writing" in capsys.readouterr().err
    for has_work_folder in (True, False):
        if not has_work_folder:
            shutil.rmtree(output / ".bioshards")
        assert run("--output", output, *other) == 2
        stderr = capsys.readouterr().err
        assert message in stderr
        assert "Choose another --output" in stderr
        assert run("--output", output) == 0
        assert "nothing to do" in capsys.readouterr().out
        assert list_times(output) == times


def test_missing_and_truncated_files_are_written_again(
    pipeline: str, run: Run, find_output: FindOutput, output: Path
) -> None:
    for has_work_folder in (True, False):
        first, *_, last = (path for path in sorted(output.rglob("*.*")) if is_data(path))
        first.unlink()
        last.write_bytes(last.read_bytes()[:-100])
        if not has_work_folder:
            shutil.rmtree(output / ".bioshards")
        assert run("--output", output) == 0
        assert published_digests(output) == published_digests(find_output(pipeline))


def is_data(path: Path) -> bool:
    return path.suffix in (".parquet", ".arrow", ".tsv") and ".bioshards" not in path.parts


def test_run_resumes_after_a_full_disk(pipeline: str, run: Run, tmp_path: Path, capsys: Capture) -> None:
    check_resumption(lambda output: run("--output", output), tmp_path, ALLOWED_WRITES[pipeline], capsys)


def test_output_that_is_no_place_for_a_run_is_refused(
    pipeline: str, run: Run, find_output: FindOutput, tmp_path: Path, capsys: Capture
) -> None:
    foreign = ("data/thesis.tex", "train/data-2020.csv", "validation/x", "rejected/letters")
    for number, name in enumerate(foreign):  # some are in folders from which a run removes unlisted files
        path = tmp_path / f"mine-{number}" / name
        path.parent.mkdir(parents=True)
        path.write_text("dear to its author")
    (tmp_path / "file").write_text("")
    other = next(name for name in OTHER_SETTINGS if name != pipeline)
    shutil.copytree(find_output(other), tmp_path / "other")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for folder, message in (
        *(
            (f"mine-{number}", f"was not written by this version of bioshards (it has {name.split('/')[0]}")
            for number, name in enumerate(foreign)
        ),
        ("file/out", f"--output {tmp_path}/file/out cannot be written"),
        ("other", f"was written by {other}, and this is {pipeline}. Choose another --output"),
    ):
        assert run("--output", tmp_path / folder) == 2
        assert message in capsys.readouterr().err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
