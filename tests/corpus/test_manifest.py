"""The manifest: round trip, validation, error messages, completeness and documentation."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from jsonschema import Draft202012Validator

from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.manifest import (
    ForeignManifestError,
    InputAbstracts,
    InputWords,
    Manifest,
    ManifestError,
    ManifestNotFoundError,
    OutputFile,
    OverlapFile,
    Shard,
    TrainingInput,
    TrainingManifest,
    TrainingRun,
    is_complete,
    read_any_version,
    read_manifest,
    sweep,
    utc_now,
    write_manifest,
)
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.manifest_reference import make_schema
from tests.support.corpus.manifests import (
    FILES,
    is_read,
    of_documents,
    of_mirror,
    of_pretraining,
    of_vocabulary,
    of_words,
    problems,
)
from tests.support.outputs import load_manifest, sign
from tests.support.paths import REPOSITORY

DOCS = REPOSITORY / "docs"
SHARD = Shard("data/data-a-00000.parquet", 3, 100, "ab")
OVERLAP = OverlapFile("overlap.arrow", 1, 2, "cd", "abstracts", "ef")
MANIFESTS: dict[str, Manifest] = {
    "documents": of_documents([SHARD], "pmc_to_shards", [OVERLAP]),
    "words": of_words([SHARD], [InputAbstracts("ab", 1, 3)]),
    "vocabulary": of_vocabulary(
        [OutputFile("vocab.txt", 5, "ab")],
        {"algorithm": "bpe", "dummies": ["@GENE$"], "coverage": 0.5},
        [InputWords("cd"), InputAbstracts("ab", 1, 3)],
    ),
    "pretraining": of_pretraining([msgspec.structs.replace(SHARD, file="train/data-a-00000.arrow")]),
    "mirror": of_mirror(),
    "training": TrainingManifest(
        config={"steps": 1, "start_from": None},
        inputs=(TrainingInput("ab", "cd", None),),
        outputs=(OutputFile("step-0000001/hf/config.json", 5, "ab"),),
        final_metrics={"losses": {"mlm": 1.5}},
        run=TrainingRun(
            command=("test",),
            world_size=1,
            device="cpu",
            attention_kernel="padded",
            micro_batch_size=1,
            library_versions={},
            seconds=1,
        ),
    ),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_manifest_round_trip(kind: str, tmp_path: Path) -> None:
    write_manifest(FILES, str(tmp_path / "manifest.json"), MANIFESTS[kind])
    written = load_manifest(tmp_path)
    run = msgspec.structs.replace(MANIFESTS[kind].run, manifest_sha256=written["run"]["manifest_sha256"])
    assert read_manifest(FILES, str(tmp_path)) == msgspec.structs.replace(MANIFESTS[kind], run=run)
    assert list(written)[:2] == ["schema_version", "pipeline"]
    assert problems(written) == []


def as_json(manifest: Manifest) -> dict[str, Any]:
    """Return the value that is written, its tuples as lists."""
    return cast(dict[str, Any], json.loads(json.dumps(msgspec.to_builtins(manifest))))


def iterate_changes(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the path of each item, and the value with that item removed, renamed or of another type."""
    container = value
    for step in path:
        container = container[step]
    items = (
        list(container.items())
        if isinstance(container, dict)
        else list(enumerate(container))
        if isinstance(container, list)
        else []
    )
    for key, item in items:
        for replacement in (None, True, 7, 1.5, "text", [], {}, [1], {"a": "b"}):
            yield (*path, key), edit_value(value, (*path, key), replacement)
        if isinstance(container, dict):
            yield (*path, key), edit_value(value, (*path, key))
            yield (*path, key), edit_value(value, (*path, f"{key}_"), item)
        yield from iterate_changes(value, (*path, key))


def edit_value(value: Any, path: tuple[Any, ...], *replacement: Any) -> Any:
    """Return a copy in which the item at the path is replaced, or deleted without a replacement."""
    edited = container = copy.deepcopy(value)
    for step in path[:-1]:
        container = container[step]
    if replacement:
        container[path[-1]] = replacement[0]
    else:
        del container[path[-1]]
    return edited


@pytest.mark.thorough
@pytest.mark.parametrize("kind", MANIFESTS)
def test_reader_and_json_schema_accept_the_same_values(kind: str) -> None:
    num_accepted = num_refused = 0
    for path, value in iterate_changes(as_json(MANIFESTS[kind])):
        is_valid = is_read(value)
        assert is_valid == (not problems(value)), (path, value)
        num_accepted += is_valid
        num_refused += not is_valid
    assert num_accepted
    assert num_refused > 100


def read_error(folder: Path, value: object) -> ManifestError:
    """Return the error of reading this value as a manifest."""
    FILES.write_json(str(folder / "manifest.json"), sign(value) if isinstance(value, dict) else value)
    with pytest.raises(ManifestError) as caught:
        read_manifest(FILES, str(folder))
    return caught.value


def test_error_has_path_field_reason_and_advice(tmp_path: Path) -> None:
    manifest = as_json(MANIFESTS["documents"])
    path = str(tmp_path / "manifest.json")
    for place, replacement, reason in (
        (("outputs", 0, "bytes"), ["x"], "Expected `int`, got `str` - at `$.outputs[0].bytes`"),
        (("outputs", 0, "rows"), [], "Object missing required field `rows` - at `$.outputs[0]`"),
        (("run", "started_at"), [None], "Expected `str`, got `null` - at `$.run.started_at`"),
        (("run", "started_at"), [], "Object missing required field `started_at` - at `$.run`"),
        (("config", "stuff"), [1], "Object contains unknown field `stuff` - at `$.config`"),
        (("config", "dedup"), ["all"], "Invalid enum value 'all' - at `$.config.dedup`"),
        (("counts", "words"), [True], "Expected `int`, got `bool` - at `$.counts.words`"),
        (("funnel", "kept"), [[]], "Expected `int`, got `array` - at `$.funnel[...]`"),
    ):
        message = str(read_error(tmp_path, edit_value(manifest, place, *replacement)))
        assert (
            f"{path} is not as pmc_to_shards writes it: {reason}. docs/manifest.schema.json lists" in message
        )
        assert message.endswith("Make the directory anew")


def test_missing_damaged_or_foreign_manifest_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ManifestNotFoundError, match=r"no manifest\.json.*rerun the command to complete it"):
        read_manifest(FILES, str(tmp_path))
    with pytest.raises(FileNotFoundError, match="copy it first"):
        read_manifest(FILES, "gs://bucket/out")
    for damaged in (b'{"pipe', b"\xff", b"", b"[" * 200_000):
        (tmp_path / "manifest.json").write_bytes(damaged)
        with pytest.raises(ManifestError, match=r"manifest\.json cannot be read: .*Make the directory anew"):
            read_manifest(FILES, str(tmp_path))
        with pytest.raises(ManifestError, match="cannot be read"):
            read_any_version(FILES, str(tmp_path))
    for value, pipeline in (
        ([], None),
        ({"name": "app"}, None),
        ({"pipeline": 3}, None),
        ({"pipeline": "x"}, "x"),
    ):
        error = read_error(tmp_path, value)
        assert isinstance(error, ForeignManifestError)
        assert error.pipeline == pipeline


@pytest.mark.parametrize("kind", MANIFESTS)
def test_manifest_that_was_edited_is_refused(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    write_manifest(FILES, str(path), MANIFESTS[kind])
    path.write_text(json.dumps(load_manifest(tmp_path)))  # the layout does not matter
    read_manifest(FILES, str(tmp_path))
    path.write_text(path.read_text().replace('["test"]', '["another"]'))
    message = f"{path} is damaged or was edited: its SHA-256 is not the one that it names. Copy it"
    for read in (read_manifest, read_any_version):
        with pytest.raises(ManifestError) as caught:
            read(FILES, str(tmp_path))
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schema_version": 2}, "its manifest has schema_version 2"),
        ({"schema_version": None, "config": {"format": 3}}, "format 3, its manifest has no schema_version"),
    ],
)
def test_manifest_of_another_version_is_refused(changes: dict[str, Any], reason: str, tmp_path: Path) -> None:
    manifest = {**as_json(MANIFESTS["documents"]), **changes}
    error = read_error(tmp_path, {name: value for name, value in manifest.items() if value is not None})
    assert f"was made by another version of bioshards ({reason}, this is schema_version 4)" in str(error)


def test_transient_storage_error_is_raised_unchanged(tmp_path: Path) -> None:
    class FailingStorage(LocalStorage):
        def read_json(self, path: str) -> Any:
            raise TransientStorageError("503")

    write_manifest(FILES, str(tmp_path / "manifest.json"), MANIFESTS["words"])
    with pytest.raises(TransientStorageError):
        read_manifest(FailingStorage(), str(tmp_path))


_READ_IN_THREADS = """
import sys, threading
from bioshards.corpus.manifest import read_manifest
from bioshards.corpus.storage.local_storage import LocalStorage

sys.setswitchinterval(1e-6)
barrier = threading.Barrier(12)

def read():
    barrier.wait()
    read_manifest(LocalStorage(), sys.argv[1])

threads = [threading.Thread(target=read) for _ in range(12)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""


@pytest.mark.thorough
@pytest.mark.parametrize("attempt", range(6))
def test_first_manifests_of_a_process_may_be_read_by_several_threads(attempt: int, tmp_path: Path) -> None:
    """Without turns, one process in three crashed."""
    write_manifest(FILES, str(tmp_path / "manifest.json"), MANIFESTS["documents"])
    ended = subprocess.run([sys.executable, "-c", _READ_IN_THREADS, str(tmp_path)], capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_invalid_value_is_not_written(tmp_path: Path) -> None:
    wrong = msgspec.structs.replace(of_mirror(), notice=3)
    with pytest.raises(msgspec.ValidationError, match=r"Expected `str`, got `int` - at `\$\.notice`"):
        write_manifest(FILES, str(tmp_path / "manifest.json"), wrong)
    assert not list(tmp_path.iterdir())


def test_complete_directory_has_all_files_with_their_sizes(tmp_path: Path) -> None:
    folder = str(tmp_path)
    manifest = of_documents([SHARD], "pmc_to_shards", [OVERLAP])
    (tmp_path / "data").mkdir()
    (tmp_path / SHARD.file).write_bytes(bytes(100))
    assert not is_complete(FILES, folder, manifest)
    (tmp_path / OVERLAP.file).write_bytes(bytes(2))
    assert is_complete(FILES, folder, manifest)
    assert not is_complete(FILES, folder, manifest, present=["state.json"])
    (tmp_path / OVERLAP.file).write_bytes(bytes(3))
    assert not is_complete(FILES, folder, manifest)
    assert is_complete(FILES, folder, manifest, any_size=[OVERLAP.file])


def test_sweep_removes_matching_files_that_are_not_kept(tmp_path: Path) -> None:
    for name in ("data-a", "data-b", "notes"):
        (tmp_path / name).touch()
    sweep(FILES, [str(tmp_path)], [f"{tmp_path}/data-a"], lambda name: name.startswith("data-"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data-a", "notes"]


def test_time_is_in_utc() -> None:
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", utc_now())


def test_documentation_matches_the_types() -> None:
    command = "run: python -m tests.support.corpus.manifest_reference"
    schema = make_schema()
    assert json.loads((DOCS / "manifest.schema.json").read_text(encoding="utf-8")) == schema, command


def test_schema_is_valid_and_every_field_is_documented() -> None:
    schema = make_schema()
    Draft202012Validator.check_schema(schema)
    for definition in schema["$defs"].values():
        assert definition["description"]
        for field in definition["properties"].values():
            assert field["description"].endswith(".")
