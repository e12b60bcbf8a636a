"""Find text files, and read their records as a stream of bounded pieces.

To add a format: a function that yields :class:`RawRecord`, and its entry in :data:`FORMATS`.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import itertools
import json
import lzma
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import BinaryIO, Final, NamedTuple, cast

import pyarrow as pa
import pyarrow.parquet as pq

from bioshards.corpus.errors import (
    BadFileError,
    BadRecordError,
    InputNotFoundError,
    TransientStorageError,
    quote,
    shorten_list,
)
from bioshards.corpus.storage.parquet_file import open_parquet
from bioshards.corpus.storage.source_file import (
    UNORDERED_YEAR,
    InputListing,
    OnNotice,
    SourceFile,
    ignore_notice,
    list_input_files,
)
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.text_files import DEFAULT_ID_FIELD, TextFilesConfig
from bioshards.corpus.xml.decoder import check_ratio

MAX_RECORD_BYTES: Final = 32 << 20
"""Largest record: a line of JSON, a document of plain text.  A larger one is passed over in pieces."""
MAX_ROW_GROUP_BYTES: Final = 4 << 30
"""Largest row group of Parquet: its columns to read, decompressed."""
MIN_RECORD_BYTES: Final = 256
"""What a record counts at least when the size of a file is compared with what it unpacks to."""
_REJECTED_BYTES: Final = 1000
"""Bytes of a record over the limit that are kept."""
_MAX_BATCH_ROWS: Final = 8
_MAX_BATCH_BYTES: Final = 1 << 30
"""Memory of a batch of Parquet rows. A dictionary repeats a value of the row group's size in every row."""
_WANTED: Final = ".jsonl, .json, .ndjson and .txt, also with .gz, .bz2, .xz or .zst, and .parquet"


def discover_sources(
    storage: Storage, inputs: Iterable[str], on_notice: OnNotice = ignore_notice
) -> list[SourceFile]:
    """Find all text files that the inputs match, each once, ordered by name.

    The name of a file, which ids may contain, is its path below the input's folder, so that files of one
    name in different folders stay apart and a moved folder keeps its ids.

    Args:
        storage: where the files are.
        inputs: folders, globs and files.
        on_notice: is told of files that are not read.

    Raises:
        InputNotFoundError: an input matches no text file.
        InputUnreadableError: a folder cannot be listed, or a file's name is not in UTF-8.
    """
    sources_by_path: dict[str, SourceFile] = {}
    for input_path in inputs:
        listing = list_input_files(storage, input_path, _EXTENSIONS, on_notice)
        listing.check_names()
        files = [info for info in listing.files if info.path.lower().endswith(_EXTENSIONS)]
        is_folder = storage.is_folder(input_path)
        if not files:
            raise InputNotFoundError(
                f"--input {input_path} {'has' if is_folder else 'names'} no text file. Give a folder, a file "
                f"or a quoted glob of {_WANTED}."
            )
        others = [info.path for info in listing.files if not info.path.lower().endswith(_EXTENSIONS)]
        if notice := InputListing(input_path, files, [*listing.others, *others]).describe_others(_WANTED):
            on_notice(notice)
        root = input_path if is_folder else re.split(r"[*?\[]", input_path)[0].rpartition("/")[0]
        root = root.rstrip("/") if "://" in root else os.path.abspath(root)
        for info in files:
            is_below = info.path.startswith(f"{root}/")
            name = info.path.removeprefix(f"{root}/") if is_below else os.path.basename(info.path)
            source = SourceFile(
                UNORDERED_YEAR,
                0,
                name.encode(errors="replace").decode(),
                info.path,
                info.size,
                info.stamp,
            )
            former = sources_by_path.get(info.path, source)
            # Of two inputs that contain the file, the upper one names it, whatever their order.
            sources_by_path[info.path] = max(source, former, key=lambda item: len(item.name))
    return sorted(sources_by_path.values())


class RawRecord(NamedTuple):
    """A record as its file has it.

    Attributes:
        raw: its bytes, or the first of them.
        place: where it is in the file, for messages: ``line 17``.
        fields: the fields by name, or why they cannot be read.
    """

    raw: bytes
    place: str
    fields: Mapping[str, object] | BadRecordError


def iter_raw_records(file: BinaryIO, name: str, config: TextFilesConfig) -> Iterator[RawRecord]:
    """Yield the records of an open file, in order.

    Args:
        file: the file, compressed or not, which is seen from its content.
        name: its name, whose extension is the format.
        config: names of the fields.

    Raises:
        BadFileError: the file as a whole is unusable, or a bomb.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    unpacked_bytes = 0
    for record in _iter_format(file, name, config, size):
        unpacked_bytes += max(len(record.raw), MIN_RECORD_BYTES)
        check_ratio(size, unpacked_bytes)
        yield record


def _iter_format(file: BinaryIO, name: str, config: TextFilesConfig, size: int) -> Iterator[RawRecord]:
    read_format = FORMATS[next(extension for extension in FORMATS if name.lower().endswith(extension))]
    start = file.read(max(map(len, _COMPRESSION_BY_MAGIC)))
    if not start:
        raise BadFileError("empty-file", "the file has no bytes")
    file.seek(0)
    compression = next(
        (_COMPRESSION_BY_MAGIC[magic] for magic in _COMPRESSION_BY_MAGIC if start.startswith(magic)), None
    )
    if compression is None:
        yield from read_format(file, config, size)
        return
    try:
        with _open_compressed(file, compression) as content:
            yield from read_format(content, config, size)
    except TransientStorageError:
        raise
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno:
            raise  # the file cannot be read
        if isinstance(error, EOFError) or "Truncated" in str(error):
            detail = f"the {compression} data ends before its end mark"
            raise BadFileError(f"truncated-{compression}", detail) from error
        raise BadFileError(f"corrupt-{compression}", f"{compression} data is damaged: {error}") from error


_COMPRESSION_BY_MAGIC: Final = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\0": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}


def _open_compressed(file: BinaryIO, compression: str) -> BinaryIO:
    match compression:
        case "gzip":
            return cast(BinaryIO, gzip.open(file))
        case "bzip2":
            return cast(BinaryIO, bz2.open(file))
        case "xz":
            return cast(BinaryIO, lzma.open(file))
    stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
    return cast(BinaryIO, io.BufferedReader(stream))


def _iter_json_lines(file: BinaryIO, config: TextFilesConfig, size: int) -> Iterator[RawRecord]:
    """Yield the records of a file with a JSON object a line; blank lines are passed over."""
    is_first = True
    for number, line, is_whole in _iter_lines(file, size):
        if line.strip():
            if is_first:
                _check_json_lines(line)
                is_first = False
            yield RawRecord(line, f"line {number}", _parse_json(line) if is_whole else _make_size_error())


def _check_json_lines(line: bytes) -> None:
    """Check that the first line is one of JSON Lines, or damaged alone.

    Raises:
        BadFileError: it begins an array, or an object over many lines.
    """
    start, has_more = line.strip(), line.strip().endswith((b"{", b"[", b","))
    if start.startswith(b"[") and (has_more or start.lstrip(b"[ \t").startswith(b"{") or start == b"[]"):
        kind = "a JSON array"
    elif start.startswith(b"{") and has_more:
        kind = "a JSON object over many lines"
    else:
        return
    detail = "JSON Lines are wanted, an object on each line: convert it, as jq -c '.[]' does with an array"
    raise BadFileError("not-json-lines", f"it is {kind}; {detail}")


def _iter_plain_text(file: BinaryIO, config: TextFilesConfig, size: int) -> Iterator[RawRecord]:
    """Yield the documents of a file of plain text, between blank lines."""
    lines: list[bytes] = []
    first_number = num_bytes = num_documents = 0
    for number, line, is_whole in itertools.chain(_iter_lines(file, size), [(0, b"", True)]):
        if line.strip():
            first_number = first_number or number
            num_bytes += len(line) if is_whole else MAX_RECORD_BYTES + 1
            if num_bytes <= MAX_RECORD_BYTES or not lines:
                lines.append(line)
        elif lines:
            raw = b"".join(lines)
            fields: Mapping[str, object] | BadRecordError
            try:
                fields = {config.id_field: None, config.text_field: raw.decode()}
            except UnicodeDecodeError as error:
                fields = _make_utf8_error(error)
            if num_bytes > MAX_RECORD_BYTES:
                is_whole_file = not number and not num_documents
                raw, fields = raw[:_REJECTED_BYTES], _make_text_size_error(is_whole_file)
            yield RawRecord(raw, f"line {first_number}", fields)
            num_documents += 1
            lines, first_number, num_bytes = [], 0, 0


def _iter_parquet(file: BinaryIO, config: TextFilesConfig, size: int) -> Iterator[RawRecord]:
    """Yield the rows of a Parquet file, of which only the columns of the fields are read."""
    number = 0
    try:
        parquet = open_parquet(file, buffer_size=1 << 20)
        columns = _select_columns(parquet.schema_arrow.names, config)
        for index in range(parquet.num_row_groups):
            group_bytes = _check_row_group(parquet.metadata.row_group(index), index, columns)
            check_ratio(size, group_bytes)
            rows = max(1, min(_MAX_BATCH_ROWS, _MAX_BATCH_BYTES // (group_bytes + 1)))
            for batch in parquet.iter_batches(rows, [index], columns, use_threads=False):
                for cells in zip(*batch.columns, strict=True):
                    number += 1
                    yield _make_row_record(number, dict(zip(batch.schema.names, cells, strict=True)))
    except TransientStorageError:
        raise
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno:
            raise  # the file cannot be read
        raise BadFileError(
            "corrupt-parquet", f"after row {number:,} it is damaged: {quote(str(error))}"
        ) from error


def _iter_lines(file: BinaryIO, size: int) -> Iterator[tuple[int, bytes, bool]]:
    """Yield (number from 1, line, True) for each line; of one over the limit its first bytes, and False.

    Of blank lines in a row the first is yielded.

    Raises:
        BadFileError: there is too much of it for a file of this size.
    """
    number = unpacked_bytes = 0
    while line := file.readline(MAX_RECORD_BYTES + 1):
        number += 1
        unpacked_bytes += len(line)
        piece = line
        while len(piece) > MAX_RECORD_BYTES and not piece.endswith(b"\n"):
            piece = file.readline(MAX_RECORD_BYTES + 1)
            unpacked_bytes += len(piece)
            check_ratio(size, unpacked_bytes)
        check_ratio(size, unpacked_bytes)
        is_whole = piece is line
        if number == 1:
            while line.startswith(codecs.BOM_UTF8):
                line = line.removeprefix(codecs.BOM_UTF8)
        yield number, line if is_whole else line[:_REJECTED_BYTES], is_whole
        while blank := _read_blank_lines(file) if line.isspace() else b"":
            number += blank.count(b"\n")
            unpacked_bytes += len(blank)
            check_ratio(size, unpacked_bytes)


def _read_blank_lines(file: BinaryIO) -> bytes:
    """Read the blank lines that come next and are in the file's buffer; a line at a time takes minutes."""
    ahead = cast(io.BufferedReader, file).peek(1)
    return file.read(ahead.rfind(b"\n", 0, len(ahead) - len(ahead.lstrip())) + 1)


def _parse_json(line: bytes) -> Mapping[str, object] | BadRecordError:
    try:
        fields = json.loads(line.decode())
    except UnicodeDecodeError as error:
        return _make_utf8_error(error)
    except (ValueError, RecursionError) as error:
        return BadRecordError("malformed-json", f"not JSON: {quote(str(error))}")
    if isinstance(fields, dict):
        return fields
    return BadRecordError("not-an-object", f"a JSON {type(fields).__name__}, not an object with fields")


def _make_utf8_error(error: UnicodeDecodeError) -> BadRecordError:
    return BadRecordError("invalid-utf-8", f"not UTF-8 at its byte {error.start + 1:,}: {error.reason}")


def _make_size_error() -> BadRecordError:
    return BadRecordError("too-large", f"more than {MAX_RECORD_BYTES >> 20} MiB; divide it")


def _make_text_size_error(is_whole_file: bool) -> BadRecordError:
    detail = "A blank line ends a document: put one between documents"
    if is_whole_file:
        detail = f"the file has no blank line and more than {MAX_RECORD_BYTES >> 20} MiB. {detail}"
    else:
        detail = f"more than {MAX_RECORD_BYTES >> 20} MiB without a blank line. {detail}, or divide it"
    return BadRecordError("too-large", detail)


def _select_columns(names: Sequence[str], config: TextFilesConfig) -> list[str]:
    """Return the columns of the fields.

    Raises:
        BadFileError: one that must be there is missing.
    """
    for option, name in (("--text-field", config.text_field), ("--id-field", config.id_field)):
        if name not in names and name != DEFAULT_ID_FIELD:
            columns = shorten_list([quote(column) for column in names])
            raise BadFileError(
                "no-column", f"it has no column {quote(name)}, but {columns}: name one of them with {option}"
            )
    return [name for name in (config.id_field, config.text_field, config.title_field) if name in names]


def _check_row_group(metadata: pq.RowGroupMetaData, index: int, columns: Sequence[str]) -> int:
    """Check that a row group can be read, and return its bytes, decompressed.

    Raises:
        BadFileError: it is too large.
    """
    chunks = [metadata.column(number) for number in range(metadata.num_columns)]
    size: int = sum(
        chunk.total_uncompressed_size for chunk in chunks if chunk.path_in_schema.split(".")[0] in columns
    )
    if size > MAX_ROW_GROUP_BYTES:
        raise BadFileError(
            "too-large",
            f"its row group {index + 1} has {size / 1e9:.1f} GB of text, more than "
            f"{MAX_ROW_GROUP_BYTES >> 30} GiB: write it with smaller row groups",
        )
    return size


def _make_row_record(number: int, cells: Mapping[str, pa.Scalar]) -> RawRecord:
    fields: dict[str, object] = {}
    error = None
    for name, cell in cells.items():
        try:
            fields[name] = cell.as_py()
        except UnicodeDecodeError as decode_error:
            error = _make_utf8_error(decode_error)
    raw = json.dumps(fields, ensure_ascii=False, default=repr).encode()
    return RawRecord(raw, f"row {number}", error or fields)


_ReadFormat = Callable[[BinaryIO, TextFilesConfig, int], Iterator[RawRecord]]
_LINE_FORMATS: Final[Mapping[str, _ReadFormat]] = {
    ".jsonl": _iter_json_lines,
    ".ndjson": _iter_json_lines,
    ".json": _iter_json_lines,
    ".txt": _iter_plain_text,
}
_COMPRESSED: Final = ("", ".gz", ".bz2", ".xz", ".zst")
FORMATS: Final[Mapping[str, _ReadFormat]] = {
    **{name + end: read_format for name, read_format in _LINE_FORMATS.items() for end in _COMPRESSED},
    ".parquet": _iter_parquet,
}
"""What reads a file, by the end of its name."""
_EXTENSIONS: Final = tuple(FORMATS)
