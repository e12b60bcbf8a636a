"""The manifest: read as it was written, or refused with what to do; documented as its types are."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.manifest import (
    FieldError,
    ForeignManifestError,
    InputDocuments,
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
    decode,
    encode,
    is_complete,
    read_manifest,
    sweep,
    utc_now,
    write_manifest,
)
from bioshards.corpus.manifest.reference import json_schema, markdown
from bioshards.corpus.storage.local_storage import LocalStorage
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
from tests.support.paths import REPOSITORY

DOCS = REPOSITORY / "docs"
SHARD = Shard("data-a-00000.arrow", 3, 100, "ab")
OVERLAP = OverlapFile("overlap.arrow", 1, 2, "cd", "abstracts", "ef", "01")
EVERY: dict[str, Manifest] = {
    "documents": of_documents([SHARD], "pmc_to_shards", [OVERLAP]),
    "words": of_words([SHARD], [InputDocuments("pubmed_to_shards", "ab", 1, 3)]),
    "vocabulary": of_vocabulary(
        [OutputFile("vocab.txt", 5, "ab")],
        {"algorithm": "bpe", "dummies": ["@GENE$"], "coverage": 0.5},
        [InputWords("shards_to_words", "cd"), InputDocuments("pubmed_to_shards", "ab", 1, 3)],
    ),
    "pretraining": of_pretraining([dataclasses.replace(SHARD, file="train/data-a-00000.arrow")]),
    "mirror": of_mirror(),
    "training": TrainingManifest(
        config={"steps": 1, "start_from": None},
        inputs=(TrainingInput("ab", "cd", None),),
        outputs=(OutputFile("step-0000001/hf/config.json", 5, "ab"),),
        final_metrics={"losses": {"mlm": 1.5}},
        run=TrainingRun(
            command=("test",), world_size=1, device="cpu", micro_batch_size=1, library_versions={}, seconds=1
        ),
    ),
}


@pytest.mark.parametrize("kind", EVERY)
def test_a_manifest_is_read_as_it_was_written(kind: str, tmp_path: Path) -> None:
    write_manifest(FILES, str(tmp_path / "manifest.json"), EVERY[kind])
    assert read_manifest(FILES, str(tmp_path)) == EVERY[kind]
    found = json.loads((tmp_path / "manifest.json").read_text())
    assert list(found)[:2] == ["schema_version", "pipeline"]
    assert problems(found) == []


def changed(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Where something is in a JSON value, and the value with it taken out, renamed or of another type."""
    of = value
    for step in path:
        of = of[step]
    items = list(of.items()) if isinstance(of, dict) else list(enumerate(of)) if isinstance(of, list) else []
    for key, item in items:
        for other in (None, True, 7, 1.5, "text", [], {}, [1], {"a": "b"}):
            yield (*path, key), edited(value, (*path, key), other)
        if isinstance(of, dict):
            yield (*path, key), edited(value, (*path, key))
            yield (*path, key), edited(value, (*path, f"{key}_"), item)
        yield from changed(value, (*path, key))


def edited(value: Any, path: tuple[Any, ...], *new: Any) -> Any:
    whole = of = copy.deepcopy(value)
    for step in path[:-1]:
        of = of[step]
    if new:
        of[path[-1]] = new[0]
    else:
        del of[path[-1]]
    return whole


@pytest.mark.parametrize("kind", EVERY)
def test_what_is_read_is_what_the_schema_accepts(kind: str) -> None:
    accepted = refused = 0
    for path, value in changed(encode(EVERY[kind])):
        good = is_read(value)
        assert good == (not problems(value)), (path, value)
        accepted += good
        refused += not good
    assert accepted
    assert refused > 100


def read(folder: Path, value: object) -> ManifestError:
    FILES.write_json(str(folder / "manifest.json"), value)
    with pytest.raises(ManifestError) as caught:
        read_manifest(FILES, str(folder))
    return caught.value


def test_an_error_names_the_file_the_field_and_what_to_do(tmp_path: Path) -> None:
    whole = encode(EVERY["documents"])
    path = str(tmp_path / "manifest.json")
    for field, value, said in (
        ("outputs[0].bytes", edited(whole, ("outputs", 0, "bytes"), "x"), "expected an integer, found 'x'"),
        ("outputs[0].rows", edited(whole, ("outputs", 0, "rows")), "the field is missing"),
        ("run.started_at", edited(whole, ("run", "started_at"), None), "expected a string, found null"),
        ("config.stuff", edited(whole, ("config", "stuff"), 1), "the field is unknown"),
        ("config.dedup", edited(whole, ("config", "dedup"), "all"), "expected 'none' or 'exact'"),
        ("counts.words", edited(whole, ("counts", "words"), True), "expected an integer, found true"),
        ("funnel.kept", edited(whole, ("funnel", "kept"), []), "expected an integer, found []"),
    ):
        error = read(tmp_path, value)
        assert (error.path, error.field) == (path, field)
        message = str(error)
        assert f"{path} is not as pmc_to_shards writes it ({field}: {said}" in message
        assert message.endswith("Make the directory anew")


def test_a_manifest_that_is_not_there_not_json_or_not_of_bioshards(tmp_path: Path) -> None:
    with pytest.raises(ManifestNotFoundError, match=r"no manifest\.json.*rerun the command to complete it"):
        read_manifest(FILES, str(tmp_path))
    with pytest.raises(FileNotFoundError, match="beam copy"):
        read_manifest(FILES, "gs://bucket/out")
    (tmp_path / "manifest.json").write_bytes(b'{"pipe')
    with pytest.raises(ManifestError, match=r"manifest\.json cannot be read: .*Make the directory anew"):
        read_manifest(FILES, str(tmp_path))
    for value, made in (
        ([], None),
        ({"name": "app"}, None),
        ({"pipeline": 3}, None),
        ({"pipeline": "x"}, "x"),
    ):
        error = read(tmp_path, value)
        assert isinstance(error, ForeignManifestError)
        assert error.pipeline == made


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"schema_version": 2}, "its manifest has schema_version 2"),
        ({"schema_version": None, "config": {"format": 3}}, "format 3, its manifest has no schema_version"),
    ],
)
def test_a_manifest_of_another_version_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    whole = {**encode(EVERY["documents"]), **changes}
    error = read(tmp_path, {name: value for name, value in whole.items() if value is not None})
    assert f"was made by another version of bioshards ({said}, this is schema_version 1)" in str(error)


def test_a_store_that_fails_is_no_damaged_manifest(tmp_path: Path) -> None:
    class Failing(LocalStorage):
        def read_json(self, path: str) -> Any:
            raise TransientStorageError("503")

    write_manifest(FILES, str(tmp_path / "manifest.json"), EVERY["words"])
    with pytest.raises(TransientStorageError):
        read_manifest(Failing(), str(tmp_path))


def test_a_wrong_value_is_not_written(tmp_path: Path) -> None:
    wrong = dataclasses.replace(of_mirror(), notice=3)  # type: ignore[arg-type]
    with pytest.raises(FieldError, match="notice: expected a string, found 3"):
        write_manifest(FILES, str(tmp_path / "manifest.json"), wrong)
    assert not list(tmp_path.iterdir())


def test_complete_is_what_has_all_listed_files_with_their_sizes(tmp_path: Path) -> None:
    folder = str(tmp_path)
    manifest = of_documents([SHARD], "pmc_to_shards", [OVERLAP])
    (tmp_path / SHARD.file).write_bytes(bytes(100))
    assert not is_complete(FILES, folder, manifest)
    (tmp_path / OVERLAP.file).write_bytes(bytes(2))
    assert is_complete(FILES, folder, manifest)
    assert not is_complete(FILES, folder, manifest, present=["state.json"])
    (tmp_path / OVERLAP.file).write_bytes(bytes(3))
    assert not is_complete(FILES, folder, manifest)
    assert is_complete(FILES, folder, manifest, any_size=[OVERLAP.file])


def test_sweep_removes_only_our_files_that_are_not_kept(tmp_path: Path) -> None:
    for name in ("data-a", "data-b", "notes"):
        (tmp_path / name).touch()
    sweep(FILES, [str(tmp_path)], [f"{tmp_path}/data-a"], lambda name: name.startswith("data-"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data-a", "notes"]


def test_the_time_is_in_utc() -> None:
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", utc_now())


def test_a_string_of_another_library_is_a_string() -> None:
    class Version(str):
        __slots__ = ()

    assert decode(OutputFile, {"file": Version("a"), "bytes": 1, "sha256": ""}).file == "a"


def test_the_documentation_is_that_of_the_types() -> None:
    again = "run: python -m bioshards.corpus.manifest docs"
    assert (DOCS / "manifest.md").read_text(encoding="utf-8") == markdown(), again
    assert (DOCS / "manifest.schema.json").read_text(encoding="utf-8") == json_schema(), again


def test_the_schema_is_one_and_every_field_is_documented() -> None:
    schema = json.loads(json_schema())
    Draft202012Validator.check_schema(schema)
    for of in schema["$defs"].values():
        assert of["description"]
        for field in of["properties"].values():
            assert field["description"].endswith(".")
