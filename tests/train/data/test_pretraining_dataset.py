"""Mapped shards: what is opened and what of it is refused, with what was wrong, where, and what to do."""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bioshards.corpus.shards import arrow_io as document_shards
from bioshards.corpus.shards.pretraining_schema import make_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.train.data.gather import gather_rows
from bioshards.train.data.pretraining_dataset import PretrainingDataset, TrainingDataError, is_empty
from tests.support.corpus.synthetic_documents import make_document
from tests.support.corpus.synthetic_documents import write_document_dir as put_documents
from tests.support.outputs import load_manifest
from tests.support.train.synthetic_rows import (
    SPECIAL_TOKEN_IDS,
    SyntheticRow,
    random_rows,
    split_into_batches,
    write_pretraining_set,
)
from tests.support.vocab import synthetic_corpora as sets

AGAIN = "Delete it and rerun the command that built the set, which rebuilds it"
ROWS = random_rows(50, 16, 100, labelled=False)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """Two shards of record batches of different sizes, and one to validate on."""
    return write_pretraining_set(
        tmp_path / "set",
        {"one": split_into_batches(ROWS[:31], [5, 9, 1]), "two": split_into_batches(ROWS[31:], [7])},
        {"held": [ROWS[:4]]},
    )


def read(shards: PretrainingDataset) -> list[SyntheticRow]:
    """All rows in their order."""
    found = gather_rows(shards, np.zeros(shards.rows, np.int64), np.arange(shards.rows))
    parts = np.split(found.ids, found.offsets[1:-1])
    return [
        SyntheticRow(ids.tolist(), split, label)
        for ids, split, label in zip(
            parts, found.segment_b_starts.tolist(), found.labels.tolist(), strict=True
        )
    ]


def refused(folder: Path, split: str = "train") -> str:
    """What is said of a set that cannot be opened."""
    with pytest.raises(TrainingDataError) as caught:
        PretrainingDataset(str(folder), split)
    return str(caught.value)


def change(folder: Path, what: Callable[[dict[str, Any]], Any]) -> None:
    """Change the manifest."""
    said = load_manifest(folder)
    what(said)
    (folder / "manifest.json").write_text(json.dumps(said))


def listed(folder: Path, number: int = 0) -> Path:
    """A shard of the manifest."""
    return folder / str(load_manifest(folder)["outputs"][number]["file"])


def relisted(folder: Path, number: int = 0) -> None:
    """Let the manifest list a shard's size as it is now."""
    size = listed(folder, number).stat().st_size
    change(folder, lambda said: said["outputs"][number].update(bytes=size))


# What is opened


def test_what_a_set_says(made: Path) -> None:
    shards = PretrainingDataset(str(made))
    assert (shards.rows, shards.tokens) == (50, sum(len(row.ids) for row in ROWS))
    assert (shards.max_seq_length, shards.objective, shards.labelled) == (16, "electra", False)
    assert (shards.vocabulary_size, shards.vocabulary_sha256) == (100, "5" * 64)
    assert shards.special_ids == SPECIAL_TOKEN_IDS
    assert shards.block_sizes.tolist() == [5, 9, 1, 5, 9, 1, 1, 7, 7, 5]
    assert shards.block_ends.tolist() == np.cumsum(shards.block_sizes).tolist()
    sizes = [size for block in range(10) for size in shards.get_row_lengths(block).tolist()]
    assert sizes == [len(row.ids) for row in ROWS]
    assert not is_empty(str(made), "validation")
    assert PretrainingDataset(str(made), "validation").rows == 4


@pytest.mark.parametrize("objective", ["electra", "bert", "albert", "plain"])
@pytest.mark.parametrize("vocabulary", [100, 1 << 16, (1 << 16) + 1, 200_000])
def test_rows_are_read_as_they_were_written(objective: str, vocabulary: int, tmp_path: Path) -> None:
    labelled = objective in ("bert", "albert")
    rows = random_rows(60, 30, vocabulary, labelled)
    blocks = split_into_batches(rows, [7, 1, 12])
    shards = PretrainingDataset(
        str(
            write_pretraining_set(
                tmp_path, {"a": blocks[:4], "b": blocks[4:]}, None, objective, 30, vocabulary
            )
        )
    )
    assert shards.labelled == labelled
    assert read(shards) == rows


def test_the_rows_of_a_pipeline_are_those_that_arrow_reads(tmp_path: Path) -> None:
    abstracts = sets.write_abstracts(tmp_path / "abstracts", one=range(1, 40), two=range(40, 80))
    given = (
        "--input",
        abstracts,
        "--vocab",
        sets.build_vocabulary(tmp_path / "v", abstracts),
        "--output",
        tmp_path / "o",
    )
    assert (
        sets.run_shards_to_pretraining(
            *given, "--objective", "bert", "--max-seq-length", 40, "--validation-fraction", 0.2
        )
        == 0
    )
    for split in ("train", "validation"):
        written = [
            SyntheticRow(list(row.ids), row.split, -100 if row.label is None else row.label)
            for row in sets.load_rows(tmp_path / "o", split)
        ]
        shards = PretrainingDataset(str(tmp_path / "o"), split)
        assert read(shards) == written
        assert shards.tokens == sum(len(row.ids) for row in written)
        shards.verify(lambda line: None)


def test_a_set_without_rows_to_validate_on_says_so(tmp_path: Path) -> None:
    folder = str(write_pretraining_set(tmp_path, {"a": [ROWS]}))
    assert is_empty(folder, "validation")
    with pytest.raises(
        TrainingDataError, match=r"has no rows in the split validation; see --validation-fraction"
    ):
        PretrainingDataset(folder, "validation")


def test_record_batches_and_shards_without_rows_are_passed_over(tmp_path: Path) -> None:
    shards = PretrainingDataset(
        str(write_pretraining_set(tmp_path, {"a": [[]], "b": [ROWS[:3], [], ROWS[3:]], "c": [[]]}))
    )
    assert shards.block_sizes.tolist() == [3, 47]
    assert read(shards) == ROWS


def test_a_fingerprint_is_of_names_and_checksums(made: Path, tmp_path: Path) -> None:
    prints = [
        PretrainingDataset(str(made)).fingerprint,
        PretrainingDataset(str(made), "validation").fingerprint,
    ]
    shutil.copytree(made, tmp_path / "copy")
    assert PretrainingDataset(str(tmp_path / "copy")).fingerprint == prints[0]
    prints.append(PretrainingDataset(str(write_pretraining_set(tmp_path / "x", {"x": [ROWS]}))).fingerprint)
    prints.append(PretrainingDataset(str(write_pretraining_set(tmp_path / "y", {"y": [ROWS]}))).fingerprint)
    prints.append(
        PretrainingDataset(str(write_pretraining_set(tmp_path / "z", {"x": [ROWS[::-1]]}))).fingerprint
    )
    assert len(set(prints)) == 5
    assert all(len(one) == 64 for one in prints)


def test_nothing_is_copied_and_no_file_is_kept_open(made: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    many = [PretrainingDataset(str(made)) for _ in range(20)]
    assert len(os.listdir("/proc/self/fd")) == before
    with open(listed(made), "r+b") as file:  # a token, where it lies in the file, is what is gathered
        shards = many[0]
        place = int(shards.block_index.ids[0]) * 2 + 2
        file.seek(place)
        file.write((99).to_bytes(2, "little"))
    assert all(read(one)[0].ids[1] == 99 for one in many)


def test_verifying_says_how_far_it_is(made: Path) -> None:
    said: list[str] = []
    PretrainingDataset(str(made)).verify(said.append)
    assert said == ["verified 1 of 2 shards", "verified 2 of 2 shards"]


# What is not a pretraining set


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    said = refused(tmp_path / "none")
    assert said.startswith(f"{tmp_path / 'none'} does not exist. Give the --output of beam run")


def test_a_folder_without_a_manifest(tmp_path: Path) -> None:
    said = refused(tmp_path)
    assert said.startswith(f"{tmp_path} has no manifest.json: it is not a finished pretraining set.")
    assert "rerun that command to resume it" in said


def test_the_folder_of_a_split_is_told_from_the_sets(made: Path) -> None:
    assert refused(made / "train").endswith(f"but its parent folder has one: give {made}.")


def test_a_file_in_place_of_a_folder(made: Path) -> None:
    assert "does not exist" in refused(made / "manifest.json")


def test_a_folder_of_another_machine() -> None:
    with pytest.raises(TrainingDataError, match=r"gs://a/b is remote.*Copy it first"):
        PretrainingDataset("gs://a/b")


def test_documents_are_not_trained_on(tmp_path: Path) -> None:
    folder = put_documents(tmp_path, {"a": [make_document("pubmed:1", ["One."])]})
    said = refused(folder)
    assert "is an output of pubmed_to_shards, not of shards_to_pretraining" in said
    assert f"--input {folder}" in said


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "{}", '{"pipeline": "shards_to_pretraining"}', "\xff\xfe"]
)
def test_a_damaged_manifest(text: str, made: Path) -> None:
    (made / "manifest.json").write_bytes(text.encode("latin-1"))
    assert refused(made).startswith(str(made))


@pytest.mark.parametrize("outputs", [None, 3, [3], [{}], [{"file": "train/x"}], [{"file": 3}]])
def test_a_manifest_that_lists_no_shards(outputs: object, made: Path) -> None:
    change(made, lambda said: said.update(outputs=outputs))
    assert "manifest.json is not as shards_to_pretraining writes it (outputs" in refused(made)


def test_a_manifest_that_cannot_be_read(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("builtins.open", failing)
    assert refused(made).startswith(f"{made / 'manifest.json'} cannot be read: [Errno 5] Input/output error")


# Shards that are not as listed


def test_a_shard_that_is_not_there(made: Path) -> None:
    path = listed(made, 1)
    path.unlink()
    assert refused(made) == (
        f"{path} is missing, but the manifest lists it. Rerun the command that built the set."
    )


@pytest.mark.parametrize("missing", [1, 8, 1000])
def test_a_shard_that_is_cut_short(missing: int, made: Path) -> None:
    path = listed(made)
    size = path.stat().st_size
    os.truncate(path, size - missing)
    assert refused(made) == f"{path} has {size - missing:,} bytes, but the manifest lists {size:,}. {AGAIN}."


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_a_shard_that_is_cut_short_and_listed_so(share: float, made: Path) -> None:
    path = listed(made)
    os.truncate(path, int(path.stat().st_size * share))
    relisted(made)
    said = refused(made)
    assert said.startswith(str(path))
    assert said.endswith(f"{AGAIN}.")


def test_a_shard_with_other_rows_than_listed(made: Path) -> None:
    change(made, lambda said: said["outputs"][0].update(rows=32))
    assert refused(made) == f"{listed(made)} has 31 rows, but the manifest lists 32. {AGAIN}."


def test_a_shard_whose_schema_counts_otherwise(tmp_path: Path) -> None:
    said = refused(write_pretraining_set(tmp_path, {"a": [ROWS]}, metadata_overrides={"rows": 49}))
    assert "claims 49 rows, but the manifest lists 50" in said


@pytest.mark.parametrize(
    ("key", "field", "other"),
    [
        ("objective", "objective", "plain"),
        ("length", "max_seq_length", 17),
        ("vocabulary_size", "vocabulary_size", 101),
        ("vocabulary_sha256", "vocabulary_sha256", "6" * 64),
        ("special", "special_ids", {"[CLS]": 2, "[MASK]": 5}),
        ("split", "split", "validation"),
    ],
)
def test_shards_of_two_sets(key: str, field: str, other: object, made: Path, tmp_path: Path) -> None:
    strange = write_pretraining_set(
        tmp_path / "other", {"two": split_into_batches(ROWS[31:], [7])}, metadata_overrides={key: other}
    )
    path = listed(made, 1)
    shutil.copy(listed(strange), path)
    relisted(made, 1)
    said = refused(made)
    assert said.startswith(f"{path} and {listed(made)} are of different sets: {field} is {other} and")
    assert said.endswith("Rebuild the set.")


def test_shards_of_another_split(tmp_path: Path) -> None:
    said = refused(write_pretraining_set(tmp_path, {"a": [ROWS]}, metadata_overrides={"split": "validation"}))
    assert "has rows of the split validation, but is in the folder train" in said


OF = make_schema(100, False, {"objective": "electra"})


@pytest.mark.parametrize(
    "other",
    [
        pa.schema([]),
        pa.schema([pa.field("id", pa.string())]),
        OF,
        OF.remove_metadata(),
        OF.with_metadata({"bioshards": "3"}),
        OF.with_metadata({"bioshards": "{"}),
        OF.with_metadata({"bioshards": '{"objective": []}'}),
    ],
)
def test_a_shard_of_other_columns_or_facts(other: pa.Schema, made: Path) -> None:
    path = listed(made)
    with pa.ipc.new_stream(str(path), other):
        pass
    relisted(made)
    said = refused(made)
    assert said.startswith(f"{path} is damaged or not a shard of a pretraining set: ")
    assert said.endswith(f"{AGAIN}.")


@pytest.mark.parametrize(
    "wrong",
    [
        {"vocabulary_size": None},
        {"vocabulary_size": 1 << 40},
        {"length": "x"},
        {"special": 3},
        {"special": {"[PAD]": None}},
        {"rows": []},
    ],
)
def test_facts_that_are_none(wrong: dict[str, object], made: Path) -> None:
    path = listed(made)
    table = pa.ipc.open_stream(path.read_bytes()).read_all()
    said = json.loads(table.schema.metadata[b"bioshards"])
    of = table.schema.with_metadata({"bioshards": json.dumps({**said, **wrong})})
    with pa.ipc.new_stream(str(path), of) as out:
        out.write_table(table.replace_schema_metadata(of.metadata))
    relisted(made)
    assert str(path) in refused(made)


def test_a_compressed_shard(made: Path) -> None:
    path = listed(made)
    table = pa.ipc.open_stream(path.read_bytes()).read_all()
    with pa.ipc.new_stream(str(path), table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as out:
        out.write_table(table)
    relisted(made)
    assert "set: it is compressed and cannot be mapped" in refused(made)


def test_rows_without_a_value(made: Path) -> None:
    path = listed(made)
    of = make_schema(100, False, {})
    with pa.ipc.open_stream(path.read_bytes()) as stream:
        facts = stream.schema
        batch = next(iter(stream))
    assert facts.equals(of)
    arrays = [pa.array([None, [2, 3]], of.field(0).type), pa.array([0, 0], pa.uint16()), batch[2][:2]]
    with pa.ipc.new_stream(str(path), facts) as out:
        out.write_batch(pa.RecordBatch.from_arrays(arrays, schema=facts))
    relisted(made)
    assert "it has null values" in refused(made)


def test_a_shard_that_may_not_be_read(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr("pyarrow.memory_map", failing)
    assert refused(made).startswith(f"{listed(made)} cannot be read: Permission denied.")


# Bytes that have changed


def test_changed_bytes_are_found_by_verifying(made: Path) -> None:
    path = listed(made, 1)
    with open(path, "r+b") as file:
        file.seek(-100, os.SEEK_END)
        byte = file.read(1)
        file.seek(-100, os.SEEK_END)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(TrainingDataError) as caught:
        PretrainingDataset(str(made)).verify(lambda line: None)
    said = f"{path} has changed: its SHA-256 differs from the manifest. {AGAIN}."
    assert str(caught.value) == said


def test_a_shard_that_goes_away_while_it_is_verified(made: Path) -> None:
    shards = PretrainingDataset(str(made))
    listed(made).unlink()
    with pytest.raises(TrainingDataError, match="cannot be read: No such file or directory"):
        shards.verify(lambda line: None)


def test_no_changed_byte_ends_the_process(tmp_path: Path) -> None:
    """Whatever bytes are others: the rows are read, or the shard is named; and a token is a piece's."""
    rows = random_rows(20, 16, 100, labelled=True)
    folder = write_pretraining_set(tmp_path, {"a": split_into_batches(rows, [6])}, objective="bert")
    path = listed(folder)
    whole = path.read_bytes()
    chance = random.Random(0)
    outcomes: set[object] = set()
    for _ in range(1_500):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 1, 1, 5])):
            damaged[chance.randrange(len(damaged))] = chance.choice(
                [0, 1, 127, 128, 255, chance.randrange(256)]
            )
        path.write_bytes(damaged)
        try:
            found = read(PretrainingDataset(str(folder)))
        except TrainingDataError as error:
            outcomes.add(str(error).startswith(str(path)))
        else:
            assert all(0 < len(row.ids) <= 16 and max(row.ids) < 100 for row in found)
            assert all(row.split < len(row.ids) and row.label in (0, 1, -100) for row in found)
            outcomes.add("read")
    assert outcomes == {True, "read"}


def written(path: Path, place: int, value: int, wide: int) -> None:
    """Change a number where it lies."""
    with open(path, "r+b") as file:
        file.seek(place * wide)
        file.write(value.to_bytes(wide, "little", signed=wide == 4))


@pytest.mark.parametrize(
    ("column", "wide", "row", "value", "why"),
    [
        ("ids", 2, 8, 100, "its token 100 exceeds the vocabulary of 100"),
        ("ids", 2, 8, 65535, "its token 65535 exceeds the vocabulary of 100"),
        ("offsets", 4, 7, -1, "its length is not 1 to 16 tokens"),
        ("offsets", 4, 7, 1 << 30, "its length is not 1 to 16 tokens"),
        ("offsets", 4, 7, 0, "its length is not 1 to 16 tokens"),
        ("segment_b_starts", 2, 8, 16, "segment B starts after its end"),
        ("labels", 1, 8, 2, "its label is not 0, 1 or -100"),
    ],
)
def test_a_row_of_nonsense_is_named(
    column: str, wide: int, row: int, value: int, why: str, tmp_path: Path
) -> None:
    rows = random_rows(20, 16, 100, labelled=True)
    folder = write_pretraining_set(
        tmp_path, {"a": [rows[:3]], "b": split_into_batches(rows[3:], [7])}, objective="bert"
    )
    shards = PretrainingDataset(str(folder))
    within = 1  # of the third record batch, which begins with the row 7 of its shard; where that ends, too
    place = int(getattr(shards.block_index, column)[2])
    place += sum(shards.get_row_lengths(2)[:within].tolist()) if column == "ids" else within
    written(listed(folder, 1), place, value, wide)
    with pytest.raises(TrainingDataError) as caught:
        read(shards)
    assert str(caught.value) == f"{listed(folder, 1)} is damaged at row {row}: {why}. {AGAIN}."


def test_document_shards_under_a_sets_manifest(made: Path) -> None:
    path = listed(made)
    folder = path.parent
    batches = [document_shards.record_batch_from_documents([make_document("pubmed:1", ["One."])])]
    (shard,) = document_shards.write_shards(
        LocalStorage(), str(folder), "one", batches, batches[0].schema, 1 << 20
    )
    assert folder / shard.file == path
    relisted(made)
    assert "is damaged or not a shard of a pretraining set: its schema lacks" in refused(made)
