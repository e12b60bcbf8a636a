"""Tests of text files: formats, compression, ids, paragraphs, and the reason of every record that is none."""

from __future__ import annotations

import bz2
import dataclasses
import gzip
import io
import json
import lzma
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bioshards.corpus.document import Document
from bioshards.corpus.errors import BadFileError, InputNotFoundError, InvalidValueError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.text_files import TextFilesConfig
from bioshards.corpus.text_files.documents import TextFileReader
from bioshards.corpus.text_files.records import discover_sources, iter_raw_records

TEXT = "The heart was examined. It was large.\r\n \r\nThe liver\twas\x00not.\n"
SENTENCES = ["The heart was examined.", "It was large.", "The liver was not."]
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": lambda content: bytes(pa.compress(content, "zstd", asbytes=True)),
}
TRUNCATED = {
    ".gz": "truncated-gzip",
    ".bz2": "truncated-bzip2",
    ".xz": "truncated-xz",
    ".zst": "truncated-zstd",
}
CORRUPT = {".gz": "corrupt-gzip", ".bz2": "corrupt-bzip2", ".xz": "corrupt-xz", ".zst": "corrupt-zstd"}


def read(path: Path, **settings: str) -> tuple[list[Document], list[tuple[str, str]]]:
    """Return the documents of a file, and reason and detail of its rejected records."""
    [source] = discover_sources(LocalStorage(), [str(path)])
    config = dataclasses.replace(TextFilesConfig(), **settings)  # type: ignore[arg-type]
    records = list(TextFileReader(config).read_records(LocalStorage(), source))
    assert [record.position for record in records] == list(range(len(records)))
    documents = [record.document for record in records if record.document]
    return documents, [(record.error.reason, record.error.detail) for record in records if record.error]


def write_lines(path: Path, *records: object) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("extension", ["", *COMPRESSORS])
def test_json_lines_become_documents_also_compressed(tmp_path: Path, extension: str) -> None:
    lines = [{"id": "note 7", "text": TEXT, "title": "A heart"}, {"id": 8, "text": TEXT}, {"text": "None."}]
    content = ("\ufeff" + "\n\n".join(map(json.dumps, lines))).encode()
    path = tmp_path / f"Notes.JSONL{extension}"
    path.write_bytes(COMPRESSORS.get(extension, bytes)(content))
    documents, errors = read(path)
    assert not errors
    assert [document.id for document in documents] == ["text:note 7", "text:8", f"text:{path.name}#3"]
    assert documents[0].sentences == ["A heart", *SENTENCES]
    assert documents[0].sections == [("", 1)]
    assert documents[1].sentences == SENTENCES
    assert (documents[1].title, documents[1].num_words, documents[1].language) == ("", 11, "eng")


@pytest.mark.parametrize("extension", COMPRESSORS)
def test_damaged_compression_is_a_bad_file(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"a.txt{extension}"
    content = COMPRESSORS[extension](os.urandom(10_000).hex().encode())
    path.write_bytes(content[:-20])
    with pytest.raises(BadFileError, match=TRUNCATED[extension]):
        read(path)
    path.write_bytes(content[:20] + b"damaged" * 30 + content[230:])
    with pytest.raises(BadFileError, match=CORRUPT[extension]):
        read(path)


def test_plain_text_has_blank_lines_between_documents(tmp_path: Path) -> None:
    path = tmp_path / "guide.txt"
    path.write_text("\n\nWash your\nhands.\n  \n\nDrink water. Walk.")
    documents, errors = read(path, id_field="key")
    assert [document.sentences for document in documents] == [["Wash your hands."], ["Drink water.", "Walk."]]
    assert [document.id for document in documents] == ["text:guide.txt#1", "text:guide.txt#2"]
    assert not errors


def test_parquet_is_read_by_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    names = pa.array(["a", "b", None]).dictionary_encode()
    table = {
        "key": names,
        "body": pa.array([TEXT, None, "Third."], pa.large_string()),
        "name": ["Earlier", None, ""],
        "other": [[1], [], []],
    }
    pq.write_table(pa.table(table), path, row_group_size=2)
    documents, errors = read(path, id_field="key", text_field="body", title_field="name")
    assert [document.title for document in documents] == ["Earlier", "", ""]
    assert [document.id for document in documents] == ["text:a", "text:b", "text:a.parquet#3"]
    assert [document.sentences for document in documents] == [["Earlier", *SENTENCES], [], ["Third."]]
    assert not errors
    with pytest.raises(
        BadFileError, match=r"no-column: it has no column text, but key, body, name, other: .*--text-f"
    ):
        read(path, id_field="key")
    with pytest.raises(BadFileError, match=r"no-column: .* --id-field"):
        read(path, id_field="doi", text_field="body")
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(BadFileError, match="corrupt-parquet"):
        read(path)


@pytest.mark.parametrize(
    ("line", "reason", "detail"),
    [
        (b'{"text": "a"', "malformed-json", "line 2: not JSON: "),
        (b"[" * 100_000, "malformed-json", "recursion"),
        (b'["a"]', "not-an-object", "a JSON list"),
        (b'{"text": "caf\xe9"}', "invalid-utf-8", "line 2: not UTF-8 at its byte 14"),
        (b'{"text": "\\ud83d"}', "invalid-unicode", "surrogate"),
        (b'{"text": ["a"]}', "wrong-type", "its text is of type list"),
        (b'{"text": "a", "title": 3}', "wrong-type", "its title is of type int"),
        (b'{"text": "a", "id": true}', "wrong-type", "its id is of type bool"),
        (b'{"text": "a", "id": "a\\nb"}', "invalid-id", "printable"),
        (b'{"text": "a", "id": "seven"}', "duplicate-id", "text:seven before"),
        (b'{"body": "a"}', "no-text-field", "no field text, but body: name one of them with --text-field"),
        (b'{"text": "' + b"a" * 200_000 + b'"}', "too-large", "line 2: more than"),
    ],
)
def test_a_bad_line_is_rejected_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: bytes, reason: str, detail: str
) -> None:
    monkeypatch.setattr("bioshards.corpus.text_files.records.MAX_RECORD_BYTES", 150_000)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text": "One.", "id": "seven"}\n' + line + b'\n{"text": "Three."}')
    documents, [error] = read(path)
    assert [document.id for document in documents] == ["text:seven", "text:a.jsonl#3"]
    assert error[0] == reason
    assert detail in error[1]


def test_records_over_the_limit_are_passed_over_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bioshards.corpus.text_files.records.MAX_RECORD_BYTES", 2_000)
    path = tmp_path / "a.txt"
    path.write_text("First.\n\n" + "a lot of text\n" * 200 + "\nThird.\n\n" + "x" * 9_000)
    documents, errors = read(path)
    assert [document.id for document in documents] == ["text:a.txt#1", "text:a.txt#3"]
    assert [detail.split(":")[0] for _, detail in errors] == ["line 3", "line 206"]
    monkeypatch.setattr("bioshards.corpus.text_files.records.MAX_ROW_GROUP_BYTES", 100)
    pq.write_table(pa.table({"text": ["a" * 200]}), tmp_path / "a.parquet")
    with pytest.raises(BadFileError, match="too-large: its row group 1 "):
        read(tmp_path / "a.parquet")


def repeat_in_parquet(text: str, rows: int) -> bytes:
    """Return a Parquet file with a text once and a reference to it in every row."""
    table = pa.table(
        {"text": pa.DictionaryArray.from_arrays(pa.array([0] * rows), pa.array([text], pa.string()))}
    )
    file = io.BytesIO()
    pq.write_table(table, file, compression="zstd")
    return file.getvalue()


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "blank lines": ("a.txt.gz", lambda: gzip.compress(b"\n" * 3_000_000)),
    "blanks": ("a.jsonl.bz2", lambda: bz2.compress(b" " * 3_000_000)),
    "a line": ("a.jsonl.xz", lambda: lzma.compress(b'{"text": "' + b"a" * 3_000_000)),
    "empty records": ("a.jsonl.zst", lambda: COMPRESSORS[".zst"](b"{}\n" * 10_000)),
    "a text in many rows": ("a.parquet", lambda: repeat_in_parquet("cells " * 10_000, 100)),
    "rows of nothing": ("a.parquet", lambda: repeat_in_parquet("", 10_000)),
    "a row group": ("a.parquet", lambda: repeat_in_parquet("a" * 3_000_000, 1)),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_file_that_grows_beyond_reason_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bomb: str
) -> None:
    monkeypatch.setattr("bioshards.corpus.xml.decoder.RATIO_EXEMPT_BYTES", 1 << 20)
    name, make_data = BOMBS[bomb]
    (tmp_path / name).write_bytes(make_data())
    with pytest.raises(BadFileError, match=r"bomb: .* unpack to more than .* give it uncompressed"):
        read(tmp_path / name)


class CountedFile(io.BufferedReader):
    """A file that counts the lines and blocks read of it."""

    steps = 0

    def readline(self, size: int | None = -1) -> bytes:
        self.steps += 1
        return super().readline(size)

    def read(self, size: int | None = -1) -> bytes:
        self.steps += 1
        return super().read(size)


def test_blank_lines_are_read_in_blocks() -> None:
    data = b"First.\n" + b"\n \n" * 1_000_000 + b"\nLast."
    file = CountedFile(io.BytesIO(data))
    records = list(iter_raw_records(file, "a.txt", TextFilesConfig()))
    assert [(record.raw, record.place) for record in records] == [
        (b"First.\n", "line 1"),
        (b"Last.", "line 2000003"),
    ]
    assert file.steps < 1000


def test_a_batch_of_parquet_is_small_where_values_may_be_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dictionary may repeat a text of the row group's size in every row: the batch is made for that."""
    sizes: list[int] = []
    iter_batches = pq.ParquetFile.iter_batches

    def note_size(
        file: pq.ParquetFile, rows: int, *args: object, **settings: object
    ) -> Iterator[pa.RecordBatch]:
        sizes.append(rows)
        yield from iter_batches(file, rows, *args, **settings)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", note_size)
    path = tmp_path / "a.parquet"
    for text in ("short", "long" * 100_000):
        path.write_bytes(repeat_in_parquet(text, 3))
        monkeypatch.setattr("bioshards.corpus.text_files.records._MAX_BATCH_BYTES", 1_000_000)
        assert len(read(path)[0]) == 3
    assert sizes == [8, 2]


def test_text_that_is_empty_is_dropped_not_rejected(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"text": " \n\n\t"}, {"text": None, "title": "A title"})
    [source] = discover_sources(LocalStorage(), [str(path)])
    records = TextFileReader(TextFilesConfig()).read_records(LocalStorage(), source)
    assert [record.keys[0].drop_reason for record in records] == ["no-text", "no-text"]


def test_a_named_id_field_must_be_there(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", {"text": "a", "doi": "10.5555/1"}, {"text": "b", "id": "c"})
    documents, errors = read(path, id_field="doi")
    assert [document.id for document in documents] == ["text:10.5555/1"]
    assert errors == [("no-id-field", "line 2: it has no field doi, which --id-field names")]
    with pytest.raises(InvalidValueError, match="must name three fields"):
        TextFilesConfig(text_field="title")


def test_files_are_named_below_the_folder_of_the_input(tmp_path: Path) -> None:
    for name in ("ward-1/note.txt", "ward-2/note.txt", "ward-2/readme.md", "all.ndjson.gz"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("Slept well.")

    def discover(*inputs: str) -> list[str]:
        inputs = tuple(str(tmp_path / name) for name in inputs)
        names = [source.name for source in discover_sources(LocalStorage(), inputs, notices.append)]
        assert names == [s.name for s in discover_sources(LocalStorage(), inputs[::-1])]
        return names

    notices: list[str] = []
    assert discover("") == discover("", "ward-1") == ["all.ndjson.gz", "ward-1/note.txt", "ward-2/note.txt"]
    assert "1 file is not read" in notices[0]
    assert discover("ward-2/*") == ["note.txt"]
    assert "1 file is not read" in notices[-1]
    assert discover("*/note.txt") == ["ward-1/note.txt", "ward-2/note.txt"]
    assert discover("ward-1/note.txt", "all.ndjson.gz") == ["all.ndjson.gz", "note.txt"]
    with pytest.raises(InputNotFoundError, match=r"names no text file. Give a folder"):
        discover("ward-2/readme.md")


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ('[\n {"text": "One."}\n]', "a JSON array"),
        ('[{"text": "One."}, {"text": "Two."}]', "a JSON array"),
        ('\n[ {"text": "One."},\n{"text": "Two."}]', "a JSON array"),
        ('{\n "text": "One."\n}', "a JSON object over many lines"),
        ('{"id": "a",\n "text": "One."}', "a JSON object over many lines"),
    ],
)
def test_json_that_is_no_json_lines_is_named(tmp_path: Path, content: str, kind: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(BadFileError, match=f"not-json-lines: it is {kind}; JSON Lines are wanted"):
        read(path)


def test_text_without_a_blank_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bioshards.corpus.text_files.records.MAX_RECORD_BYTES", 150)
    path = tmp_path / "a.txt"
    path.write_text("Gulls nest.\n" * 20)
    [(reason, detail)] = read(path)[1]
    assert (reason, detail.partition(":")[2][:30]) == ("too-large", " the file has no blank line an")
    path.write_text("Gulls nest.\n\n" + "Terns nest.\n" * 20)
    [(reason, detail)] = read(path)[1]
    assert "without a blank line. A blank line ends a document" in detail


def test_byte_order_marks_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('\ufeff\ufeff{"id": "a", "text": "One."}\n')
    assert [document.id for document in read(path)[0]] == ["text:a"]
