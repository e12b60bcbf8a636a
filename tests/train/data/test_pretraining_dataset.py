"""The memory-mapped pretraining dataset: its rows, and errors of invalid sets and shards."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bioshards.corpus.manifest import write_manifest
from bioshards.corpus.shards import document_schema
from bioshards.corpus.shards.pretraining_schema import make_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress
from bioshards.train.data.pretraining_dataset import (
    PretrainingDataset,
    TrainingDataError,
    open_validation_set,
)
from tests.support.corpus.manifests import of_vocabulary
from tests.support.corpus.synthetic_documents import make_document
from tests.support.corpus.synthetic_documents import write_document_dir as put_documents
from tests.support.outputs import load_manifest, save_manifest
from tests.support.train.synthetic_rows import (
    SPECIAL_TOKEN_IDS,
    SyntheticRow,
    find_column,
    random_rows,
    split_into_batches,
    write_pretraining_set,
)
from tests.support.vocab import synthetic_corpora as sets

REBUILD_HINT = "Delete it and rerun the command that built the set, which rebuilds it"
ROWS = random_rows(50, 16, 100, labelled=False)


@pytest.fixture
def pretraining_set(tmp_path: Path) -> Path:
    """A set of two training shards with record batches of different sizes, and one validation shard."""
    return write_pretraining_set(
        tmp_path / "set",
        {"one": split_into_batches(ROWS[:31], [5, 9, 1]), "two": split_into_batches(ROWS[31:], [7])},
        {"held": [ROWS[:4]]},
    )


def read_rows(dataset: PretrainingDataset) -> list[SyntheticRow]:
    """Read all rows in order."""
    gathered = dataset.gather_rows(np.arange(dataset.rows))
    parts = np.split(gathered.ids, gathered.offsets[1:-1])
    return [
        SyntheticRow(ids.tolist(), split, label)
        for ids, split, label in zip(
            parts, gathered.segment_b_starts.tolist(), gathered.labels.tolist(), strict=True
        )
    ]


def read_open_error(folder: Path, split: str = "train") -> str:
    """Return the error message of opening a set."""
    with pytest.raises(TrainingDataError) as caught:
        PretrainingDataset(str(folder), split)
    return str(caught.value)


def edit_manifest(folder: Path, edit: Callable[[dict[str, Any]], Any]) -> None:
    """Change the manifest."""
    manifest = load_manifest(folder)
    edit(manifest)
    save_manifest(folder, manifest)


def get_shard_path(folder: Path, number: int = 0) -> Path:
    """Return the path of a shard listed in the manifest."""
    return folder / str(load_manifest(folder)["outputs"][number]["file"])


def update_listed_size(folder: Path, number: int = 0) -> None:
    """Update the size of a shard in the manifest."""
    size = get_shard_path(folder, number).stat().st_size
    edit_manifest(folder, lambda manifest: manifest["outputs"][number].update(bytes=size))


# Valid sets


def test_dataset_properties(pretraining_set: Path) -> None:
    dataset = PretrainingDataset(str(pretraining_set))
    assert (dataset.rows, dataset.tokens) == (50, sum(len(row.ids) for row in ROWS))
    assert (dataset.max_seq_length, dataset.objective, dataset.labelled) == (16, "electra", False)
    assert (dataset.vocabulary_size, dataset.vocabulary_sha256) == (100, "5" * 64)
    assert dataset.special_ids == SPECIAL_TOKEN_IDS
    assert dataset.block_sizes.tolist() == [5, 9, 1, 5, 9, 1, 1, 7, 7, 5]
    assert dataset.block_ends.tolist() == np.cumsum(dataset.block_sizes).tolist()
    sizes = [size for block in dataset.blocks for size in np.diff(np.asarray(block.offsets)).tolist()]
    assert sizes == [len(row.ids) for row in ROWS]
    assert open_validation_set(str(pretraining_set)) is not None
    assert PretrainingDataset(str(pretraining_set), "validation").rows == 4


@pytest.mark.parametrize("vocabulary", [100, 200_000])
def test_most_frequent_token_is_counted_without_special_tokens(vocabulary: int, tmp_path: Path) -> None:
    rows = random_rows(60, 30, vocabulary, labelled=False)
    cls, sep, frequent = SPECIAL_TOKEN_IDS["[CLS]"], SPECIAL_TOKEN_IDS["[SEP]"], vocabulary - 1
    rows += [SyntheticRow([cls, *(frequent for _ in range(9)), sep, sep, sep], 0, -100)] * 10
    blocks = split_into_batches(rows, [7, 1, 12])
    folder = write_pretraining_set(tmp_path / "set", {"one": blocks}, vocabulary=vocabulary)
    assert PretrainingDataset(str(folder)).most_frequent_id == frequent


@pytest.mark.parametrize("objective", ["electra", "bert", "albert", "plain"])
@pytest.mark.parametrize("vocabulary", [100, 1 << 16, (1 << 16) + 1, 200_000])
def test_rows_survive_a_round_trip(objective: str, vocabulary: int, tmp_path: Path) -> None:
    labelled = objective in ("bert", "albert")
    rows = random_rows(60, 30, vocabulary, labelled)
    blocks = split_into_batches(rows, [7, 1, 12])
    shards: dict[str, list[list[SyntheticRow]]] = {"a": blocks[:4], "b": [[], *blocks[4:]], "c": [[]]}
    folder = write_pretraining_set(tmp_path, shards, None, objective, 30, vocabulary)
    dataset = PretrainingDataset(str(folder))
    assert dataset.labelled == labelled
    assert dataset.block_sizes.tolist() == list(map(len, blocks)), "without those that are empty"
    assert read_rows(dataset) == rows


def test_rows_of_a_pipeline_equal_those_read_by_arrow(tmp_path: Path) -> None:
    abstracts = sets.write_abstracts(tmp_path / "abstracts", one=range(1, 40), two=range(40, 80))
    vocabulary = sets.build_vocabulary(tmp_path / "v", abstracts)
    files = ("--input", abstracts, "--vocab", vocabulary, "--output", tmp_path / "o")
    options = ("--objective", "bert", "--max-seq-length", 40, "--validation-fraction", 0.2)
    assert sets.run_shards_to_pretraining(*files, *options) == 0
    for split in ("train", "validation"):
        expected = [
            SyntheticRow(list(row.ids), row.split, -100 if row.label is None else row.label)
            for row in sets.load_rows(tmp_path / "o", split)
        ]
        dataset = PretrainingDataset(str(tmp_path / "o"), split)
        assert read_rows(dataset) == expected
        assert dataset.tokens == sum(len(row.ids) for row in expected)
        dataset.verify(Progress(None))


def test_fingerprint_depends_on_names_and_checksums(pretraining_set: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(pretraining_set, tmp_path / "copy")
    changed = [
        write_pretraining_set(tmp_path / str(number), shards)
        for number, shards in enumerate(({"x": [ROWS]}, {"y": [ROWS]}, {"x": [ROWS[::-1]]}))
    ]
    first, same, *others = (
        PretrainingDataset(str(folder)).fingerprint for folder in (pretraining_set, copy, *changed)
    )
    assert first == same
    others.append(PretrainingDataset(str(pretraining_set), "validation").fingerprint)
    assert len({first, *others}) == 5


def test_shards_are_mapped_without_open_files(pretraining_set: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    opened = [PretrainingDataset(str(pretraining_set)) for _ in range(20)]
    assert len(os.listdir("/proc/self/fd")) == before
    path = get_shard_path(pretraining_set)
    overwrite_number(path, find_column(path, 0, "ids") // 2 + 1, 99, 2)
    assert all(read_rows(dataset)[0].ids[1] == 99 for dataset in opened), "rows are in the file"


def test_verify_shows_progress(pretraining_set: Path) -> None:
    PretrainingDataset(str(pretraining_set)).verify(Progress(out := io.StringIO()))
    assert re.fullmatch(r"verifying the shards: 100% .+/s, 2/2 shards\]\n", out.getvalue())


# Directories of another kind


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("none", ["{path} does not exist. Give the --output of beam run"]),
        (
            "empty",
            [
                "{path} has no manifest.json: it is not a finished pretraining set.",
                "rerun that command to resume it",
            ],
        ),
        ("set/train", ["but its parent folder has one: give {folder}/set."]),
        ("set/manifest.json", ["does not exist"]),
    ],
)
def test_directory_that_is_no_pretraining_set_is_refused(
    name: str, parts: list[str], pretraining_set: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    message = read_open_error(tmp_path / name)
    for part in parts:
        assert part.format(path=tmp_path / name, folder=tmp_path) in message


def test_remote_directory_is_refused() -> None:
    with pytest.raises(TrainingDataError, match=r"gs://a/b is remote.*Copy it first"):
        PretrainingDataset("gs://a/b")


def test_set_without_validation_rows(tmp_path: Path) -> None:
    folder = write_pretraining_set(tmp_path, {"a": [ROWS]})
    assert open_validation_set(str(folder)) is None
    message = read_open_error(folder, "validation")
    assert "has no rows in the split validation; see --validation-fraction" in message


def test_documents_are_refused(tmp_path: Path) -> None:
    folder = put_documents(tmp_path, {"a": [make_document("pubmed:1", ["One."])]})
    message = read_open_error(folder)
    assert "is an output of pubmed_to_shards, not of shards_to_pretraining" in message
    assert f"Build a pretraining set from it: beam run shards_to_pretraining --input {folder}" in message


def test_a_vocabulary_is_refused(tmp_path: Path) -> None:
    write_manifest(LocalStorage(), f"{tmp_path}/manifest.json", of_vocabulary([], {}, []))
    message = read_open_error(tmp_path)
    assert message.endswith(
        f"{tmp_path} is an output of vocab, not of shards_to_pretraining. Build a pretraining set with it: "
        f"beam run shards_to_pretraining --input DOCUMENTS --vocab {tmp_path} ..."
    )


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "{}", '{"pipeline": "shards_to_pretraining"}', "\xff\xfe"]
)
def test_damaged_manifest_is_refused(text: str, pretraining_set: Path) -> None:
    (pretraining_set / "manifest.json").write_bytes(text.encode("latin-1"))
    assert read_open_error(pretraining_set).startswith(str(pretraining_set))


@pytest.mark.parametrize("outputs", [None, 3, [3], [{}], [{"file": "train/x"}], [{"file": 3}]])
def test_manifest_with_invalid_outputs_is_refused(outputs: object, pretraining_set: Path) -> None:
    edit_manifest(pretraining_set, lambda manifest: manifest.update(outputs=outputs))
    message = read_open_error(pretraining_set)
    assert "manifest.json is not as shards_to_pretraining writes it: " in message
    assert "- at `$.outputs" in message


def test_unreadable_manifest_is_refused(pretraining_set: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_io_error(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("builtins.open", raise_io_error)
    assert read_open_error(pretraining_set).startswith(
        f"{pretraining_set / 'manifest.json'} cannot be read: [Errno 5] Input/output error"
    )


# Shards that differ from the manifest


def test_missing_shard_is_refused(pretraining_set: Path) -> None:
    path = get_shard_path(pretraining_set, 1)
    path.unlink()
    assert read_open_error(pretraining_set) == (
        f"{path} is missing, but the manifest lists it. Rerun the command that built the set."
    )


@pytest.mark.parametrize("missing", [1, 8, 1000])
def test_truncated_shard_is_refused(missing: int, pretraining_set: Path) -> None:
    path = get_shard_path(pretraining_set)
    size = path.stat().st_size
    os.truncate(path, size - missing)
    assert (
        read_open_error(pretraining_set)
        == f"{path} has {size - missing:,} bytes, but the manifest lists {size:,}. {REBUILD_HINT}."
    )


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99])
def test_truncated_shard_with_its_new_size_listed_is_refused(share: float, pretraining_set: Path) -> None:
    path = get_shard_path(pretraining_set)
    os.truncate(path, int(path.stat().st_size * share))
    update_listed_size(pretraining_set)
    message = read_open_error(pretraining_set)
    assert message.startswith(str(path))
    assert message.endswith(f"{REBUILD_HINT}.")


def test_shard_with_another_row_count_is_refused(pretraining_set: Path, tmp_path: Path) -> None:
    edit_manifest(pretraining_set, lambda manifest: manifest["outputs"][0].update(rows=32))
    assert (
        read_open_error(pretraining_set)
        == f"{get_shard_path(pretraining_set)} has 31 rows, but the manifest lists 32. {REBUILD_HINT}."
    )


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({"rows": 49}, "claims 49 rows, but the manifest lists 50"),
        ({"split": "validation"}, "has rows of the split validation, but is in the folder train"),
    ],
)
def test_shards_with_other_metadata_are_refused(
    metadata: dict[str, object], message: str, tmp_path: Path
) -> None:
    folder = write_pretraining_set(tmp_path, {"a": [ROWS]}, metadata_overrides=metadata)
    assert message in read_open_error(folder)


@pytest.mark.parametrize(
    ("key", "field", "value"),
    [
        ("objective", "objective", "plain"),
        ("length", "max_seq_length", 17),
        ("vocabulary_size", "vocabulary_size", 101),
        ("vocabulary_sha256", "vocabulary_sha256", "6" * 64),
        ("special", "special_ids", {"[CLS]": 2, "[MASK]": 5}),
        ("split", "split", "validation"),
    ],
)
def test_shards_of_different_sets_are_refused(
    key: str, field: str, value: object, pretraining_set: Path, tmp_path: Path
) -> None:
    other_set = write_pretraining_set(
        tmp_path / "other", {"two": split_into_batches(ROWS[31:], [7])}, metadata_overrides={key: value}
    )
    path = get_shard_path(pretraining_set, 1)
    shutil.copy(get_shard_path(other_set), path)
    update_listed_size(pretraining_set, 1)
    message = read_open_error(pretraining_set)
    assert message.startswith(
        f"{path} and {get_shard_path(pretraining_set)} are of different sets: {field} is {value} and"
    )
    assert message.endswith("Rebuild the set.")


SCHEMA = make_schema(100, False, {"objective": "electra"})


def rewrite_shard(folder: Path, table: pa.Table, compression: str | None = None) -> str:
    """Write a table in place of the first shard, and return the error message of opening the set."""
    path = get_shard_path(folder)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(str(path), table.schema, options=options) as out:
        out.write_table(table)
    update_listed_size(folder)
    message = read_open_error(folder)
    assert message.startswith(f"{path} is damaged or not a shard of a pretraining set: ")
    assert message.endswith(f"{REBUILD_HINT}.")
    return message


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([]),
        pa.schema([pa.field("id", pa.string())]),
        document_schema.DOCUMENT_SCHEMA,
        SCHEMA,
        SCHEMA.remove_metadata(),
        *(SCHEMA.with_metadata({"bioshards": text}) for text in ("3", "{", '{"objective": []}')),
    ],
)
def test_shard_with_other_columns_or_metadata_is_refused(schema: pa.Schema, pretraining_set: Path) -> None:
    rewrite_shard(pretraining_set, schema.empty_table())


@pytest.mark.parametrize(
    "changes",
    [
        {"vocabulary_size": None},
        {"vocabulary_size": 1 << 40},
        {"length": "x"},
        {"special": 3},
        {"special": {"[PAD]": None}},
        {"rows": []},
    ],
)
def test_invalid_metadata_is_refused(changes: dict[str, object], pretraining_set: Path) -> None:
    table = pa.ipc.open_stream(get_shard_path(pretraining_set).read_bytes()).read_all()
    metadata = json.loads(table.schema.metadata[b"bioshards"])
    rewrite_shard(
        pretraining_set, table.replace_schema_metadata({"bioshards": json.dumps({**metadata, **changes})})
    )


def test_compressed_shard_and_null_values_are_refused(pretraining_set: Path) -> None:
    table = pa.ipc.open_stream(get_shard_path(pretraining_set).read_bytes()).read_all()
    ids = pa.array([None, [2, 3]], table.schema.field(0).type)
    nulls = pa.Table.from_arrays([ids, pa.array([0, 0], pa.uint16())], schema=table.schema)
    assert "it has null values" in rewrite_shard(pretraining_set, nulls)
    assert "it is compressed and cannot be mapped" in rewrite_shard(pretraining_set, table, "lz4")


def test_shard_without_read_permission_is_refused(
    pretraining_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_permission_error(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr("pyarrow.memory_map", raise_permission_error)
    assert read_open_error(pretraining_set).startswith(
        f"{get_shard_path(pretraining_set)} cannot be read: Permission denied."
    )


# Changed bytes


def test_verify_reports_a_shard_removed_meanwhile(pretraining_set: Path) -> None:
    dataset = PretrainingDataset(str(pretraining_set))
    get_shard_path(pretraining_set).unlink()
    with pytest.raises(TrainingDataError, match="cannot be read: No such file or directory"):
        dataset.verify(Progress(None))


def test_changed_bytes_give_valid_rows_or_a_named_shard(tmp_path: Path) -> None:
    """With random changed bytes, either all rows are valid or the error names the shard."""
    rows = random_rows(20, 16, 100, labelled=True)
    folder = write_pretraining_set(tmp_path, {"a": split_into_batches(rows, [6])}, objective="bert")
    path = get_shard_path(folder)
    original = path.read_bytes()
    rng = random.Random(0)
    outcomes: set[object] = set()
    for _ in range(1_500):
        damaged = bytearray(original)
        for _ in range(rng.choice([1, 1, 1, 5])):
            damaged[rng.randrange(len(damaged))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        path.write_bytes(damaged)
        try:
            rows_read = read_rows(PretrainingDataset(str(folder)))
        except TrainingDataError as error:
            outcomes.add(str(error).startswith(str(path)))
        else:
            assert all(0 < len(row.ids) <= 16 and max(row.ids) < 100 for row in rows_read)
            assert all(row.split < len(row.ids) and row.label in (0, 1, -100) for row in rows_read)
            outcomes.add("read")
    assert outcomes == {True, "read"}


def overwrite_number(path: Path, position: int, value: int, width: int) -> None:
    """Overwrite a number in a file at its index."""
    with open(path, "r+b") as file:
        file.seek(position * width)
        file.write(value.to_bytes(width, "little", signed=width == 4))


@pytest.mark.parametrize(
    ("column", "width", "row", "value", "reason"),
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
def test_error_names_an_invalid_row(
    column: str, width: int, row: int, value: int, reason: str, tmp_path: Path
) -> None:
    rows = random_rows(20, 16, 100, labelled=True)
    folder = write_pretraining_set(
        tmp_path, {"a": [rows[:3]], "b": split_into_batches(rows[3:], [7])}, objective="bert"
    )
    dataset = PretrainingDataset(str(folder))
    row_in_batch = 1  # of the third record batch, which begins with row 7 of its shard
    position = find_column(get_shard_path(folder, 1), 1, column) // width
    position += dataset.blocks[2].offsets[row_in_batch] if column == "ids" else row_in_batch
    overwrite_number(get_shard_path(folder, 1), position, value, width)
    with pytest.raises(TrainingDataError) as caught:
        read_rows(dataset)
    assert (
        str(caught.value) == f"{get_shard_path(folder, 1)} is damaged at row {row}: {reason}. {REBUILD_HINT}."
    )
