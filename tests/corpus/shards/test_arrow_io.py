"""Reading and writing shards: values, sizes, checksums and opening by ``datasets`` and pyarrow."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.document import ArticleColumns, Document
from bioshards.corpus.manifest import Shard
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.arrow_io import COLUMN_TYPES, DOCUMENT_SCHEMA, make_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.datasets_library import load_with_datasets
from tests.support.corpus.manifests import put_documents
from tests.support.hypothesis_profiles import examples

FILES = LocalStorage()
OVERHEAD = 16_384
"""An upper limit for the bytes of the schema and the message headers of a shard."""


LIST_OF_STRINGS = "list<item: string>"
EXPECTED_COLUMN_TYPES = {
    "journal_abbreviation": "string",
    "nlm_id": "string",
    "publication_types": LIST_OF_STRINGS,
    "mesh": "list<item: struct<descriptor: string, ui: string, major: bool, "
    "qualifiers: list<item: struct<qualifier: string, major: bool>>>>",
    "keywords": LIST_OF_STRINGS,
    "subjects": LIST_OF_STRINGS,
    "published": "string",
    "entered": "date32[day]",
    "revised": "date32[day]",
    "section_categories": LIST_OF_STRINGS,
    "authors": "list<item: struct<last_name: string, fore_name: string, orcid: string, "
    "affiliations: list<item: string>>>",
    "chemicals": "list<item: struct<name: string, ui: string, registry_number: string>>",
    "grants": "list<item: struct<id: string, agency: string, country: string>>",
    "cited_pmids": "list<item: int32>",
    "other_abstracts": "list<item: struct<type: string, language: string, text: string>>",
}


def test_columns_have_the_types_of_their_attributes() -> None:
    assert {name: str(column_type) for name, column_type in COLUMN_TYPES.items()} == EXPECTED_COLUMN_TYPES


def make_document(number: int, **changes: Any) -> Document:
    default = Document(
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
    return default._replace(**changes)


def convert_to_row(document: Document) -> dict[str, Any]:
    """Return a document as a row of a shard."""
    row = {
        name: getattr(document, name) for name in DOCUMENT_SCHEMA.names if name not in ("sections", "origin")
    }
    sections = [{"heading": heading, "first_sentence": first} for heading, first in document.sections]
    return row | {"sections": sections, "origin": {"file": document.file, "position": document.position}}


def make_batches(num_batches: int, num_rows: int = 10) -> list[pa.RecordBatch]:
    """Return batches of documents, whose dictionaries differ from batch to batch."""
    return [
        arrow_io.record_batch_from_documents(
            [make_document(number) for number in range(start, start + num_rows)]
        )
        for start in range(0, num_batches * num_rows, num_rows)
    ]


def read_file(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()


# Record batches

SHORT_TEXT = st.text(max_size=8)
DOCUMENTS = st.builds(
    Document,
    id=SHORT_TEXT,
    source=st.sampled_from(["pubmed", "pmc"]),
    pmid=st.none() | st.integers(1, 2**31 - 1),
    pmcid=st.none() | SHORT_TEXT,
    doi=st.none() | SHORT_TEXT,
    version=st.integers(0, 9999),
    year=st.none() | st.integers(0, 9999),
    journal=st.none() | SHORT_TEXT,
    article_type=st.none() | SHORT_TEXT,
    language=st.none() | st.sampled_from(["eng", "eng,fre"]),
    licence=st.none() | SHORT_TEXT,
    retracted=st.booleans(),
    flags=st.lists(SHORT_TEXT, max_size=3),
    title=SHORT_TEXT,
    sentences=st.lists(SHORT_TEXT, max_size=4),
    sections=st.lists(st.tuples(SHORT_TEXT, st.integers(0, 99)), max_size=3),
    file=SHORT_TEXT,
    position=st.integers(0, 2**31 - 1),
    num_words=st.integers(0, 9),
    num_characters=st.integers(0, 9),
    removed_characters=st.just({}),
    columns=st.builds(
        ArticleColumns,
        **{name: st.from_type(hint) for name, hint in get_type_hints(ArticleColumns).items()}
        | {"cited_pmids": st.lists(st.integers(1, 2**31 - 1), max_size=3).map(tuple)},
    ),
)


@settings(max_examples=examples(200))
@given(st.lists(DOCUMENTS, max_size=6), st.lists(st.sampled_from(list(COLUMN_TYPES)), unique=True))
def test_record_batch_equals_its_documents(documents: list[Document], columns: list[str]) -> None:
    batch = arrow_io.record_batch_from_documents(documents, make_schema(columns))
    batch.validate(full=True)
    assert batch.schema.names == [*DOCUMENT_SCHEMA.names, *columns]
    assert batch.to_pylist() == [
        convert_to_row(document)
        | {name: convert_to_python(getattr(document.columns, name)) for name in columns}
        for document in documents
    ]


def convert_to_python(value: Any) -> Any:
    """Return a value as pyarrow does: tuples as lists, named ones as dictionaries."""
    if hasattr(value, "_asdict"):
        return {name: convert_to_python(item) for name, item in value._asdict().items()}
    return list(map(convert_to_python, value)) if isinstance(value, tuple) else value


def test_number_out_of_range_is_an_error() -> None:
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        arrow_io.record_batch_from_documents([make_document(1, pmid=2**31)])
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        arrow_io.record_batch_from_documents([make_document(1, version=40_000)])


# Shards


def test_shards_are_listed_with_size_checksum_and_rows(tmp_path: Path) -> None:
    shards = arrow_io.write_shards(
        FILES, str(tmp_path), "pubmed26n0001", make_batches(8), DOCUMENT_SCHEMA, 5_000
    )
    assert len(shards) > 2
    assert [shard.file for shard in shards] == [
        f"data-pubmed26n0001-{number:05d}.arrow" for number in range(len(shards))
    ]
    assert FILES.list_names(str(tmp_path)) == [shard.file for shard in shards]
    for shard in shards:
        data = (tmp_path / shard.file).read_bytes()
        assert shard.bytes == len(data)
        assert shard.sha256 == hashlib.sha256(data).hexdigest()
        assert shard.rows == read_file(tmp_path / shard.file).num_rows
    rows = [row for shard in shards for row in read_file(tmp_path / shard.file).to_pylist()]
    assert rows == [convert_to_row(make_document(number)) for number in range(80)]


@pytest.mark.parametrize("max_bytes", [50_000, 100_000, 250_000])
def test_shard_of_several_batches_is_within_the_size_limit(tmp_path: Path, max_bytes: int) -> None:
    large_batches = [
        arrow_io.record_batch_from_documents([make_document(1, title="x" * 15_000)]) for _ in range(40)
    ]
    shards = arrow_io.write_shards(FILES, str(tmp_path), "a", large_batches, DOCUMENT_SCHEMA, max_bytes)
    assert sum(shard.rows for shard in shards) == 40
    assert len(shards) > 1
    assert all(shard.rows > 1 for shard in shards[:-1])
    assert [shard.bytes for shard in shards if shard.bytes > max_bytes] == []


@pytest.mark.parametrize("max_bytes", [50_000, 100_000, 250_000])
def test_shards_are_filled_up_to_the_size_limit(tmp_path: Path, max_bytes: int) -> None:
    large_batches = [
        arrow_io.record_batch_from_documents([make_document(1, title="x" * 15_000)]) for _ in range(40)
    ]
    shards = arrow_io.write_shards(FILES, str(tmp_path), "a", large_batches, DOCUMENT_SCHEMA, max_bytes)
    largest = max(batch.nbytes for batch in large_batches)
    assert all(shard.bytes > max_bytes - largest - OVERHEAD for shard in shards[:-1])


def test_batch_above_the_size_limit_has_its_own_shard(tmp_path: Path) -> None:
    mixed_batches = [
        arrow_io.record_batch_from_documents([make_document(number, title="x" * size)])
        for number, size in enumerate([100, 90_000, 90_000, 100, 100])
    ]
    shards = arrow_io.write_shards(FILES, str(tmp_path), "a", mixed_batches, DOCUMENT_SCHEMA, 50_000)
    assert [shard.rows for shard in shards] == [1, 1, 1, 2]


def test_high_size_limit_gives_one_shard(tmp_path: Path) -> None:
    [shard] = arrow_io.write_shards(FILES, str(tmp_path), "a", make_batches(8), DOCUMENT_SCHEMA, 1 << 30)
    assert shard.rows == 80


def test_no_batches_give_no_shard(tmp_path: Path) -> None:
    assert arrow_io.write_shards(FILES, str(tmp_path / "out"), "a", [], DOCUMENT_SCHEMA, 100) == []
    assert FILES.list_names(str(tmp_path / "out")) == []


def test_shards_are_reproducible(tmp_path: Path) -> None:
    first = arrow_io.write_shards(FILES, str(tmp_path / "one"), "a", make_batches(8), DOCUMENT_SCHEMA, 9_000)
    second = arrow_io.write_shards(
        FILES, str(tmp_path / "two"), "a", iter(make_batches(8)), DOCUMENT_SCHEMA, 9_000
    )
    assert first == second
    assert len(first) > 1
    for shard in first:
        assert (tmp_path / "one" / shard.file).read_bytes() == (tmp_path / "two" / shard.file).read_bytes()


def test_other_documents_have_another_checksum(tmp_path: Path) -> None:
    [first] = arrow_io.write_shards(
        FILES,
        str(tmp_path),
        "a",
        [arrow_io.record_batch_from_documents([make_document(1)])],
        DOCUMENT_SCHEMA,
        9_000,
    )
    [second] = arrow_io.write_shards(
        FILES,
        str(tmp_path),
        "b",
        [arrow_io.record_batch_from_documents([make_document(2)])],
        DOCUMENT_SCHEMA,
        9_000,
    )
    assert first.sha256 != second.sha256


def test_batches_are_written_as_a_stream(tmp_path: Path) -> None:
    """At most the batch being written and the next one are in memory."""
    num_taken = 0
    num_ahead: list[int] = []

    def generate_batches() -> Iterator[pa.RecordBatch]:
        nonlocal num_taken
        for batch in make_batches(30):
            num_taken += 1
            names = FILES.list_names(str(tmp_path))
            num_ahead.append(num_taken - sum(1 for name in names if not name.startswith(".")))
            yield batch

    arrow_io.write_shards(FILES, str(tmp_path), "a", generate_batches(), DOCUMENT_SCHEMA, 1)
    assert num_taken == 30
    assert max(num_ahead) <= 2


def test_failing_source_leaves_no_file(tmp_path: Path) -> None:
    def generate_batches() -> Iterator[pa.RecordBatch]:
        yield from make_batches(3)
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError, match="the source failed"):
        arrow_io.write_shards(FILES, str(tmp_path), "a", generate_batches(), DOCUMENT_SCHEMA, 1 << 30)
    assert list(tmp_path.iterdir()) == []


# Directories


def publish_shards(folder: Path, count: int = 8) -> list[Shard]:
    shards = arrow_io.write_shards(
        FILES, str(folder), "pubmed26n0001", make_batches(count), DOCUMENT_SCHEMA, 9_000
    )
    arrow_io.write_dataset_info(FILES, str(folder), shards)
    put_documents(folder, shards)
    return shards


def test_datasets_opens_a_published_directory(tmp_path: Path) -> None:
    shards = publish_shards(tmp_path / "corpus")
    assert len(shards) > 1
    dataset = load_with_datasets(tmp_path / "corpus")
    assert type(dataset).__name__ == "Dataset"
    assert dataset.column_names == DOCUMENT_SCHEMA.names
    assert dataset.to_list() == [convert_to_row(make_document(number)) for number in range(80)]
    assert [Path(file["filename"]).name for file in dataset.cache_files] == [shard.file for shard in shards]
    assert dataset[-1]["sentences"] == make_document(79).sentences
    assert dataset.select_columns(["pmid"]).filter(lambda row: row["pmid"] == 42).num_rows == 1


def test_fingerprint_depends_on_the_contents(tmp_path: Path) -> None:
    names = ["one", "two", "other"]
    for name, count in zip(names, [8, 8, 7], strict=True):
        publish_shards(tmp_path / name, count)
    first, second, other = (
        FILES.read_json(f"{tmp_path}/{name}/state.json")["_fingerprint"] for name in names
    )
    assert first == second != other
    assert (tmp_path / "one" / "state.json").read_bytes() == (tmp_path / "two" / "state.json").read_bytes()


def test_empty_directory_is_published(tmp_path: Path) -> None:
    arrow_io.write_dataset_info(FILES, str(tmp_path), [])
    assert FILES.read_json(f"{tmp_path}/state.json")["_data_files"] == []
    assert FILES.list_names(str(tmp_path)) == ["dataset_info.json", "state.json"]


def test_shard_is_memory_mapped(tmp_path: Path) -> None:
    large_batches = [
        arrow_io.record_batch_from_documents([make_document(n, title="x" * 10_000) for n in range(50)])
        for _ in range(10)
    ]
    [shard] = arrow_io.write_shards(FILES, str(tmp_path), "a", large_batches, DOCUMENT_SCHEMA, 1 << 30)
    assert shard.bytes > 5_000_000
    allocated_before = pa.total_allocated_bytes()
    with pa.memory_map(str(tmp_path / shard.file)) as file, pa.ipc.open_stream(file) as stream:
        table = stream.read_all()
        allocated = pa.total_allocated_bytes() - allocated_before
        assert table.num_rows == shard.rows
        assert table["title"][499].as_py() == "x" * 10_000
    assert allocated < 50_000


def test_finished_directory_is_read_in_manifest_order(tmp_path: Path) -> None:
    shards = publish_shards(tmp_path)
    batches = list(arrow_io.read_directory(FILES, str(tmp_path)))
    assert [row for batch in batches for row in batch.to_pylist()] == [
        convert_to_row(make_document(n)) for n in range(80)
    ]
    put_documents(tmp_path, shards[::-1])
    rows = sum(batch.num_rows for batch in arrow_io.read_directory(FILES, str(tmp_path)))
    first = next(arrow_io.read_directory(FILES, str(tmp_path)))
    assert rows == 80
    assert first["pmid"][0].as_py() == read_file(tmp_path / shards[-1].file)["pmid"][0].as_py() > 0


@pytest.mark.parametrize("has_shards", [False, True])
def test_unfinished_directory_is_refused_with_advice(tmp_path: Path, has_shards: bool) -> None:
    folder = tmp_path / "corpus"
    if has_shards:
        publish_shards(folder)
        (folder / "manifest.json").unlink()
    with pytest.raises(FileNotFoundError) as caught:
        list(arrow_io.read_directory(FILES, str(folder)))
    message = str(caught.value)
    assert str(folder) in message
    assert "no manifest.json" in message
    assert "--output of a completed run" in message
    assert "rerun the command" in message


def test_directory_on_an_object_store_must_be_copied() -> None:
    with pytest.raises(FileNotFoundError, match=r"is on an object store.*: copy it first"):
        arrow_io.read_documents_manifest(LocalStorage(), "gs://bucket/out")
