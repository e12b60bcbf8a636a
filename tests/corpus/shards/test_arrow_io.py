"""Shards: what is written is what was meant, byte for byte the same each time, and opens everywhere.

A shard is the end of the work and the beginning of everybody else's, so values are compared after a
way through the file, sizes and checksums with the file itself, and the folder with what Hugging
Face's ``datasets`` and pyarrow make of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.document import DOCUMENT_SCHEMA, Document
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.arrow_io import Shard
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.manifests import put_documents

PROFILE = settings(derandomize=True, deadline=None, database=None)

FILES = LocalStorage()
OVERHEAD = 16_384
"""More than the schema, the end and the frame of a record batch take in a shard."""


def document(number: int, **changes: Any) -> Document:
    made = Document(
        id=f"pubmed:{number}",
        source="pubmed",
        pmid=number,
        pmcid=f"PMC{number}" if number % 3 else None,
        doi=None if number % 2 else f"10.1000/{number}",
        version=1,
        year=2000 + number % 20,
        journal=None if number % 4 else f"Journal {number}",
        article_type=[None, "research-article", "letter"][number % 3],
        language=["eng", "eng,ger", None][number % 3],
        licence=None,
        retracted=number % 7 == 0,
        flags=["manuscript", "no-body"][: number % 3],
        title=f"Title {number}",
        sentences=[f"Title {number}", *(f"Sentence {at} of {number}." for at in range(number % 5))],
        sections=[("Abstract > AIM", 1), (f"Abstract > PART {number}", 2)][: number % 3],
        file=f"pubmed26n{number % 4:04d}.xml.gz",
        position=number * 2,
        num_words=3,
        num_characters=20,
        removed_characters={},
    )
    return made._replace(**changes)


def as_row(made: Document) -> dict[str, Any]:
    """A document as a row of a shard."""
    row = {name: getattr(made, name) for name in DOCUMENT_SCHEMA.names if name not in ("sections", "origin")}
    sections = [{"heading": heading, "first_sentence": first} for heading, first in made.sections]
    return row | {"sections": sections, "origin": {"file": made.file, "position": made.position}}


def batches(count: int, rows: int = 10) -> list[pa.RecordBatch]:
    """Batches of documents, whose dictionaries differ from batch to batch."""
    return [
        arrow_io.record_batch_from_documents([document(number) for number in range(start, start + rows)])
        for start in range(0, count * rows, rows)
    ]


def read_file(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()


# Documents to batches

SHORT = st.text(max_size=8)
DOCUMENTS = st.builds(
    Document,
    id=SHORT,
    source=st.sampled_from(["pubmed", "pmc"]),
    pmid=st.none() | st.integers(1, 2**31 - 1),
    pmcid=st.none() | SHORT,
    doi=st.none() | SHORT,
    version=st.integers(0, 9999),
    year=st.none() | st.integers(0, 9999),
    journal=st.none() | SHORT,
    article_type=st.none() | SHORT,
    language=st.none() | st.sampled_from(["eng", "eng,fre"]),
    licence=st.none() | SHORT,
    retracted=st.booleans(),
    flags=st.lists(SHORT, max_size=3),
    title=SHORT,
    sentences=st.lists(SHORT, max_size=4),
    sections=st.lists(st.tuples(SHORT, st.integers(0, 99)), max_size=3),
    file=SHORT,
    position=st.integers(0, 2**31 - 1),
    num_words=st.integers(0, 9),
    num_characters=st.integers(0, 9),
    removed_characters=st.just({}),
)


@settings(PROFILE, max_examples=200)
@given(st.lists(DOCUMENTS, max_size=6))
def test_a_batch_holds_the_documents_as_they_are(documents: list[Document]) -> None:
    batch = arrow_io.record_batch_from_documents(documents)
    batch.validate(full=True)
    assert batch.schema == DOCUMENT_SCHEMA
    assert batch.to_pylist() == [as_row(made) for made in documents]


def test_a_number_that_does_not_fit_is_an_error_and_not_another_number() -> None:
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        arrow_io.record_batch_from_documents([document(1, pmid=2**31)])
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        arrow_io.record_batch_from_documents([document(1, version=40_000)])


# Batches to files


def test_shards_are_listed_as_they_are_on_disk(tmp_path: Path) -> None:
    written = arrow_io.write_shards(FILES, str(tmp_path), "pubmed26n0001", batches(8), DOCUMENT_SCHEMA, 5_000)
    assert len(written) > 2
    assert [shard.file for shard in written] == [
        f"data-pubmed26n0001-{number:05d}.arrow" for number in range(len(written))
    ]
    assert FILES.list_names(str(tmp_path)) == [shard.file for shard in written]
    for shard in written:
        data = (tmp_path / shard.file).read_bytes()
        assert shard.bytes == len(data)
        assert shard.sha256 == hashlib.sha256(data).hexdigest()
        assert shard.rows == read_file(tmp_path / shard.file).num_rows
    rows = [row for shard in written for row in read_file(tmp_path / shard.file).to_pylist()]
    assert rows == [as_row(document(number)) for number in range(80)]


@pytest.mark.parametrize("bound", [50_000, 100_000, 250_000])
def test_no_shard_of_several_batches_is_larger_than_the_bound(tmp_path: Path, bound: int) -> None:
    big = [arrow_io.record_batch_from_documents([document(1, title="x" * 15_000)]) for _ in range(40)]
    written = arrow_io.write_shards(FILES, str(tmp_path), "a", big, DOCUMENT_SCHEMA, bound)
    assert sum(shard.rows for shard in written) == 40
    assert len(written) > 1
    assert all(shard.rows > 1 for shard in written[:-1])
    assert [shard.bytes for shard in written if shard.bytes > bound] == []


@pytest.mark.parametrize("bound", [50_000, 100_000, 250_000])
def test_shards_are_filled_before_the_next_begins(tmp_path: Path, bound: int) -> None:
    big = [arrow_io.record_batch_from_documents([document(1, title="x" * 15_000)]) for _ in range(40)]
    written = arrow_io.write_shards(FILES, str(tmp_path), "a", big, DOCUMENT_SCHEMA, bound)
    largest = max(batch.nbytes for batch in big)
    assert all(shard.bytes > bound - largest - OVERHEAD for shard in written[:-1])


def test_a_batch_above_the_bound_has_a_shard_of_its_own(tmp_path: Path) -> None:
    several = [
        arrow_io.record_batch_from_documents([document(number, title="x" * size)])
        for number, size in enumerate([100, 90_000, 90_000, 100, 100])
    ]
    written = arrow_io.write_shards(FILES, str(tmp_path), "a", several, DOCUMENT_SCHEMA, 50_000)
    assert [shard.rows for shard in written] == [1, 1, 1, 2]


def test_everything_fits_in_one_shard_where_the_bound_is_high(tmp_path: Path) -> None:
    [only] = arrow_io.write_shards(FILES, str(tmp_path), "a", batches(8), DOCUMENT_SCHEMA, 1 << 30)
    assert only.rows == 80


def test_nothing_gives_no_shard(tmp_path: Path) -> None:
    assert arrow_io.write_shards(FILES, str(tmp_path / "out"), "a", [], DOCUMENT_SCHEMA, 100) == []
    assert FILES.list_names(str(tmp_path / "out")) == []


def test_the_same_documents_give_the_same_bytes(tmp_path: Path) -> None:
    one = arrow_io.write_shards(FILES, str(tmp_path / "one"), "a", batches(8), DOCUMENT_SCHEMA, 9_000)
    two = arrow_io.write_shards(FILES, str(tmp_path / "two"), "a", iter(batches(8)), DOCUMENT_SCHEMA, 9_000)
    assert one == two
    assert len(one) > 1
    for shard in one:
        assert (tmp_path / "one" / shard.file).read_bytes() == (tmp_path / "two" / shard.file).read_bytes()


def test_other_documents_give_another_checksum(tmp_path: Path) -> None:
    [one] = arrow_io.write_shards(
        FILES,
        str(tmp_path),
        "a",
        [arrow_io.record_batch_from_documents([document(1)])],
        DOCUMENT_SCHEMA,
        9_000,
    )
    [two] = arrow_io.write_shards(
        FILES,
        str(tmp_path),
        "b",
        [arrow_io.record_batch_from_documents([document(2)])],
        DOCUMENT_SCHEMA,
        9_000,
    )
    assert one.sha256 != two.sha256


def test_batches_are_taken_one_by_one(tmp_path: Path) -> None:
    """No more than the batch being written and the next may be in memory."""
    size = 0
    ahead: list[int] = []

    def source() -> Iterator[pa.RecordBatch]:
        nonlocal size
        for batch in batches(30):
            size += 1
            names = FILES.list_names(str(tmp_path))
            ahead.append(size - sum(1 for name in names if not name.startswith(".")))
            yield batch

    arrow_io.write_shards(FILES, str(tmp_path), "a", source(), DOCUMENT_SCHEMA, 1)
    assert size == 30
    assert max(ahead) <= 2


def test_a_source_that_fails_leaves_no_half_shard(tmp_path: Path) -> None:
    def source() -> Iterator[pa.RecordBatch]:
        yield from batches(3)
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError, match="the source failed"):
        arrow_io.write_shards(FILES, str(tmp_path), "a", source(), DOCUMENT_SCHEMA, 1 << 30)
    assert list(tmp_path.iterdir()) == []


# Folders


def published(folder: Path, count: int = 8) -> list[Shard]:
    written = arrow_io.write_shards(
        FILES, str(folder), "pubmed26n0001", batches(count), DOCUMENT_SCHEMA, 9_000
    )
    arrow_io.write_dataset_info(FILES, str(folder), written)
    put_documents(folder, written)
    return written


def test_datasets_opens_a_published_folder(tmp_path: Path) -> None:
    written = published(tmp_path / "corpus")
    assert len(written) > 1
    opened = datasets.load_from_disk(str(tmp_path / "corpus"))
    assert isinstance(opened, datasets.Dataset)
    assert opened.column_names == DOCUMENT_SCHEMA.names
    assert opened.to_list() == [as_row(document(number)) for number in range(80)]
    assert [Path(file["filename"]).name for file in opened.cache_files] == [shard.file for shard in written]
    assert opened[-1]["sentences"] == document(79).sentences
    assert opened.select_columns(["pmid"]).filter(lambda row: row["pmid"] == 42).num_rows == 1


def test_the_fingerprint_of_a_folder_is_that_of_its_contents(tmp_path: Path) -> None:
    names = ["one", "two", "other"]
    for name, count in zip(names, [8, 8, 7], strict=True):
        published(tmp_path / name, count)
    one, two, other = (FILES.read_json(f"{tmp_path}/{name}/state.json")["_fingerprint"] for name in names)
    assert one == two != other
    assert (tmp_path / "one" / "state.json").read_bytes() == (tmp_path / "two" / "state.json").read_bytes()


def test_an_empty_folder_is_published_too(tmp_path: Path) -> None:
    arrow_io.write_dataset_info(FILES, str(tmp_path), [])
    assert FILES.read_json(f"{tmp_path}/state.json")["_data_files"] == []
    assert FILES.list_names(str(tmp_path)) == ["dataset_info.json", "state.json"]


def test_a_shard_is_mapped_and_not_read_into_memory(tmp_path: Path) -> None:
    big = [
        arrow_io.record_batch_from_documents([document(n, title="x" * 10_000) for n in range(50)])
        for _ in range(10)
    ]
    [shard] = arrow_io.write_shards(FILES, str(tmp_path), "a", big, DOCUMENT_SCHEMA, 1 << 30)
    assert shard.bytes > 5_000_000
    before = pa.total_allocated_bytes()
    with pa.memory_map(str(tmp_path / shard.file)) as file, pa.ipc.open_stream(file) as stream:
        table = stream.read_all()
        allocated = pa.total_allocated_bytes() - before
        assert table.num_rows == shard.rows
        assert table["title"][499].as_py() == "x" * 10_000
    assert allocated < 50_000


def test_a_finished_folder_is_read_back_in_its_order(tmp_path: Path) -> None:
    written = published(tmp_path)
    back = list(arrow_io.read_directory(FILES, str(tmp_path)))
    assert [row for batch in back for row in batch.to_pylist()] == [as_row(document(n)) for n in range(80)]
    put_documents(tmp_path, written[::-1])
    rows = sum(batch.num_rows for batch in arrow_io.read_directory(FILES, str(tmp_path)))
    first = next(arrow_io.read_directory(FILES, str(tmp_path)))
    assert rows == 80
    assert first["pmid"][0].as_py() == read_file(tmp_path / written[-1].file)["pmid"][0].as_py() > 0


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_that_is_not_finished_is_refused_with_what_to_do(tmp_path: Path, there: bool) -> None:
    folder = tmp_path / "corpus"
    if there:
        published(folder)
        (folder / "manifest.json").unlink()
    with pytest.raises(FileNotFoundError) as caught:
        list(arrow_io.read_directory(FILES, str(folder)))
    message = str(caught.value)
    assert str(folder) in message
    assert "no manifest.json" in message
    assert "--output of a completed run" in message
    assert "rerun the command" in message


def test_a_folder_on_a_store_is_to_be_copied_first() -> None:
    with pytest.raises(FileNotFoundError, match=r"is on an object store.*: beam copy gs://bucket/out FOLDER"):
        arrow_io.read_documents_manifest(LocalStorage(), "gs://bucket/out")
