"""Document shards: values, sizes, checksums, statistics, damage, and what other libraries read."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import random
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.document import ArticleColumns, Document
from bioshards.corpus.download.pmc import mirror_table
from bioshards.corpus.manifest import ManifestError, Shard
from bioshards.corpus.output.output_layout import FORMAT
from bioshards.corpus.shards import document_schema, document_shards
from bioshards.corpus.shards.document_schema import COLUMN_TYPES, DOCUMENT_SCHEMA, make_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.manifests import put_documents
from tests.support.fuzzing import list_again
from tests.support.hypothesis_profiles import examples
from tests.support.outputs import load_manifest, save_manifest

FILES = LocalStorage()
TABLE = pa.table({"id": ["1", "2", "3"], "file": ["a", "b", "c"]})
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
    "affiliations: list<item: string>, suffix: string>>",
    "chemicals": "list<item: struct<name: string, ui: string, registry_number: string>>",
    "grants": "list<item: struct<id: string, agency: string, country: string>>",
    "cited_pmids": "list<item: int32>",
    "other_abstracts": "list<item: struct<type: string, language: string, text: string>>",
    "vernacular_title": "string",
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
        document_schema.record_batch_from_documents(
            [make_document(number) for number in range(start, start + num_rows)]
        )
        for start in range(0, num_batches * num_rows, num_rows)
    ]


def read_file(path: Path) -> pa.Table:
    return pq.read_table(path)


# Record batches

SHORT_TEXT = st.text(max_size=8)
NUMBERS = st.integers(0, 2**31 - 1)
DOCUMENTS = st.builds(  # fields without a strategy are of their types
    Document,
    pmid=st.none() | NUMBERS,
    version=st.integers(0, 9999),
    year=st.none() | st.integers(0, 9999),
    sections=st.lists(st.tuples(SHORT_TEXT, NUMBERS), max_size=3),
    position=NUMBERS,
    num_words=NUMBERS,
    num_characters=NUMBERS,
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
    batch = document_schema.record_batch_from_documents(documents, make_schema(columns))
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
        document_schema.record_batch_from_documents([make_document(1, pmid=2**31)])
    with pytest.raises((pa.ArrowInvalid, OverflowError)):
        document_schema.record_batch_from_documents([make_document(1, version=40_000)])


# Shards


def write_shards(
    folder: Path, batches: Iterable[pa.RecordBatch], max_bytes: int = 1 << 30, stem: str = "a"
) -> list[Shard]:
    return document_shards.write_shards(FILES, str(folder), stem, batches, DOCUMENT_SCHEMA, max_bytes)


def make_large_batches(num_batches: int = 40, size: int = 150_000) -> list[pa.RecordBatch]:
    """Return batches of one document each, of text that zstd hardly makes smaller."""
    rng = random.Random(1)
    texts = [base64.b64encode(rng.randbytes(size * 3 // 4)).decode() for _ in range(num_batches)]
    return [document_schema.record_batch_from_documents([make_document(1, title=text)]) for text in texts]


def test_shards_are_listed_with_size_checksum_and_rows(tmp_path: Path) -> None:
    shards = write_shards(tmp_path, make_batches(8), 5_000, "_pubmed26n0001")
    assert len(shards) > 2
    assert [shard.file for shard in shards] == [
        f"data/data-_pubmed26n0001-{number:05d}.parquet" for number in range(len(shards))
    ]
    assert [f"data/{name}" for name in FILES.list_names(f"{tmp_path}/data")] == [
        shard.file for shard in shards
    ]
    for shard in shards:
        data = (tmp_path / shard.file).read_bytes()
        assert shard.bytes == len(data)
        assert shard.sha256 == hashlib.sha256(data).hexdigest()
        assert shard.rows == read_file(tmp_path / shard.file).num_rows
    rows = [row for shard in shards for row in read_file(tmp_path / shard.file).to_pylist()]
    assert rows == [convert_to_row(make_document(number)) for number in range(80)]


@pytest.mark.parametrize("max_bytes", [500_000, 1_000_000, 2_500_000])
def test_shards_are_filled_up_to_the_size_limit(tmp_path: Path, max_bytes: int) -> None:
    shards = write_shards(tmp_path, make_large_batches(), max_bytes)
    assert sum(shard.rows for shard in shards) == 40
    assert len(shards) > 1
    assert [shard.bytes for shard in shards if shard.bytes > max_bytes] == []
    assert all(shard.bytes > max_bytes // 3 for shard in shards[:-1])


def test_document_above_the_size_limit_has_its_own_shard(tmp_path: Path) -> None:
    small, large = make_batches(1, 1), make_large_batches(1, 900_000)
    shards = write_shards(tmp_path, [*small, *large, *large, *small, *small], 500_000)
    assert [shard.rows for shard in shards] == [1, 1, 1, 2]


def test_large_batch_is_divided(tmp_path: Path) -> None:
    table = pa.Table.from_batches(make_large_batches()).combine_chunks()
    [batch] = table.to_batches()
    assert batch.num_rows == 40
    shards = write_shards(tmp_path, [batch], 1_000_000)
    assert len(shards) > 4
    assert all(shard.bytes <= 1_000_000 for shard in shards)
    assert pa.concat_tables(read_file(tmp_path / shard.file) for shard in shards).equals(table)


def test_high_size_limit_gives_one_shard_of_one_row_group(tmp_path: Path) -> None:
    [shard] = write_shards(tmp_path, make_batches(8))
    assert shard.rows == 80
    assert pq.ParquetFile(tmp_path / shard.file).num_row_groups == 1


def test_no_batches_give_no_shard(tmp_path: Path) -> None:
    assert write_shards(tmp_path / "out", []) == []
    assert FILES.list_names(str(tmp_path / "out")) == []


@pytest.mark.parametrize("threads", [1, 8])
def test_shards_are_reproducible(tmp_path: Path, threads: int) -> None:
    before = pa.cpu_count()
    first = write_shards(tmp_path / "one", make_batches(8), 9_000)
    pa.set_cpu_count(threads)
    try:
        second = write_shards(tmp_path / "two", iter(make_batches(8)), 9_000)
    finally:
        pa.set_cpu_count(before)
    assert first == second
    assert len(first) > 1
    for shard in first:
        assert (tmp_path / "one" / shard.file).read_bytes() == (tmp_path / "two" / shard.file).read_bytes()


def test_batches_are_written_as_a_stream(tmp_path: Path) -> None:
    """At most the row group being written and the next one are in memory."""
    num_taken = 0
    num_ahead: list[int] = []

    def generate_batches() -> Iterator[pa.RecordBatch]:
        nonlocal num_taken
        for batch in make_large_batches(30):
            num_taken += 1
            names = FILES.list_names(f"{tmp_path}/data")
            num_ahead.append(num_taken - sum(1 for name in names if not name.startswith(".")))
            yield batch

    write_shards(tmp_path, generate_batches(), 1)
    assert num_taken == 30
    assert max(num_ahead) <= 3


def test_failing_source_leaves_no_file(tmp_path: Path) -> None:
    def generate_batches() -> Iterator[pa.RecordBatch]:
        yield from make_large_batches(3)
        raise RuntimeError("the source failed")

    with pytest.raises(RuntimeError, match="the source failed"):
        document_shards.write_shards(FILES, str(tmp_path), "a", generate_batches(), DOCUMENT_SCHEMA, 200_000)
    assert all(path.is_dir() or path.name.startswith("data-a-") for path in tmp_path.rglob("*"))


def test_footer_has_statistics_checksums_and_the_format(tmp_path: Path) -> None:
    [shard] = write_shards(tmp_path, make_batches(8))
    parquet = pq.ParquetFile(tmp_path / shard.file)
    metadata = json.loads(parquet.schema_arrow.metadata[b"bioshards"])
    assert metadata == {"format": FORMAT, "output": "data"}
    assert parquet.schema_arrow.equals(DOCUMENT_SCHEMA)
    group = parquet.metadata.row_group(0)
    columns = {column.path_in_schema: column for column in map(group.column, range(group.num_columns))}
    assert {name for name, column in columns.items() if column.is_stats_set} == {
        "id",
        "pmid",
        "pmcid",
        "doi",
        "year",
    }
    assert (columns["pmid"].statistics.min, columns["pmid"].statistics.max) == (0, 79)
    assert {column.compression for column in columns.values()} == {"ZSTD"}
    assert not any(column.has_dictionary_page for column in columns.values())
    assert columns["pmid"].has_column_index
    assert columns["pmid"].has_offset_index


def test_row_groups_are_read_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_shards, "_GROUP_BYTES", 400_000)
    [shard] = write_shards(tmp_path, make_large_batches(10))
    batches = list(document_shards.read_file(FILES, str(tmp_path / shard.file)))
    assert [batch.num_rows for batch in batches] == [2] * 5


class ThreadRecordingFile(io.FileIO):
    """A file that records the threads that read it."""

    threads: set[int]

    def read(self, size: int | None = -1, /) -> bytes:
        self.threads.add(threading.get_ident())
        return super().read(size) or b""


class ThreadRecordingStorage(LocalStorage):
    def __init__(self) -> None:
        super().__init__()
        self.threads: set[int] = set()

    def open(self, path: str) -> BinaryIO:
        file = ThreadRecordingFile(path)
        file.threads = self.threads
        return cast(BinaryIO, file)


def test_only_the_calling_thread_reads(tmp_path: Path) -> None:
    """A thread of Arrow that releases a Python file while the process ends aborts it, once in 200 times."""
    [shard] = write_shards(tmp_path, make_batches(8))
    mirror_table.write_table(FILES, str(tmp_path / "table"), TABLE)
    storage = ThreadRecordingStorage()
    assert len(list(document_shards.read_file(storage, str(tmp_path / shard.file)))) > 0
    assert len(mirror_table.read_table(storage, str(tmp_path / "table"), TABLE.schema)) == 3
    assert storage.threads == {threading.get_ident()}


# Directories


def publish_shards(folder: Path, count: int = 8) -> list[Shard]:
    shards = write_shards(folder, make_batches(count), 9_000, "pubmed26n0001")
    put_documents(folder, shards)
    return shards


def test_finished_directory_is_read_in_manifest_order(tmp_path: Path) -> None:
    shards = publish_shards(tmp_path)
    batches = list(document_shards.read_directory(FILES, str(tmp_path)))
    assert [row for batch in batches for row in batch.to_pylist()] == [
        convert_to_row(make_document(n)) for n in range(80)
    ]
    put_documents(tmp_path, shards[::-1])
    rows = sum(batch.num_rows for batch in document_shards.read_directory(FILES, str(tmp_path)))
    first = next(document_shards.read_directory(FILES, str(tmp_path)))
    assert rows == 80
    assert first["pmid"][0].as_py() == read_file(tmp_path / shards[-1].file)["pmid"][0].as_py() > 0


@pytest.mark.parametrize("data", [b"", b"no Parquet", b"PAR1" + bytes(40) + b"PAR1"])
def test_shard_that_is_no_parquet_is_named_even_if_its_manifest_agrees(tmp_path: Path, data: bytes) -> None:
    [shard, *_] = publish_shards(tmp_path)
    (tmp_path / shard.file).write_bytes(data)
    list_again(tmp_path, shard.file)
    with pytest.raises(document_shards.DamagedShardError, match=f"{shard.file} is damaged: .*Copy it again"):
        list(document_shards.read_directory(FILES, str(tmp_path)))


def test_output_of_another_format_is_refused(tmp_path: Path) -> None:
    publish_shards(tmp_path)
    manifest = load_manifest(tmp_path)
    manifest["config"]["format"] -= 1
    save_manifest(tmp_path, manifest)
    with pytest.raises(
        ManifestError,
        match=rf"another version of bioshards \(format {FORMAT - 1}, this is {FORMAT}\)\. Make it anew",
    ):
        list(document_shards.read_directory(FILES, str(tmp_path)))
