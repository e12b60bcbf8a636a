"""File formats of benchmarks: text, JSON, tables, words with tags (CoNLL), XML and zip archives.

Text is UTF-8, with either line ending, with or without a byte order mark. Files with invalid UTF-8 are
refused: they differ from the authors'. All functions raise BenchmarkFileError, which names file and line.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from lxml import etree

from bioshards.corpus import archives
from bioshards.corpus.errors import BadFileError, InvalidValueError
from bioshards.evaluate.benchmarks.records import BenchmarkFileError, TaggedSentence

PathsByName = Mapping[str, Sequence[str]]
"""Sorted paths of the files that exist, by the name that the layout gives them."""
_T = TypeVar("_T")
_TAG: Final = re.compile(r"O|[BI](-\S+)?")
_DOCUMENT_MARK: Final = re.compile(r"(?:-DOCSTART-|###MEDLINE:)\D*(\d*)")
"""Start of a document in CoNLL and in GENIA (JNLPBA), with its number."""
_XML_PARSER: Final = etree.XMLParser(
    encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
)
"""Untrusted XML: no entities, no network, bounded sizes."""


BYTE_ORDER_MARK: Final = "\ufeff"


def read_bytes(path: str) -> bytes:
    """Return the content of a file."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise BenchmarkFileError(path, None, f"it cannot be read ({error.strerror})") from error


def read_text(path: str) -> str:
    """Return the text of a UTF-8 file with its line endings, without byte order marks at its start."""
    data = read_bytes(path)
    if b"\0" in data:
        line = _find_line_number(data, data.index(b"\0"))
        raise BenchmarkFileError(path, line, "it is not text: it holds a NUL")
    try:
        return data.decode("utf-8-sig").lstrip(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        # The place is in error.object, which lacks the byte order mark.
        line = _find_line_number(error.object, error.start)
        byte = error.object[error.start]
        raise BenchmarkFileError(path, line, f"it is not UTF-8 text: byte {byte:#04x}") from error


def _find_line_number(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def read_lines(path: str) -> list[tuple[int, str]]:
    """Return the lines of a file with 1-based numbers.

    Only LF and CR LF end a line; other separators belong to the text.
    """
    rows = read_text(path).split("\n")
    if rows[-1] == "":
        rows.pop()
    return [(line_number, row.removesuffix("\r")) for line_number, row in enumerate(rows, 1)]


def get_only_path(files: PathsByName, name: str) -> str:
    """Return the path of a file that exists once in a benchmark."""
    first, *other_paths = files[name]
    if other_paths:
        reason = f"it may be the same file as {first}, and only one can be read"
        raise BenchmarkFileError(other_paths[0], None, reason)
    return first


def quote_excerpt(text: str) -> str:
    """Return at most 60 characters of a text, quoted, for an error message."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def parse_number(text: str) -> int | None:
    """Return the whole number of a text of digits; None if it is none, or has over 18 digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A value in a JSON file, with typed access; errors name its location.

    Attributes:
        location: path of the value, such as ``data[3].paragraphs[0]``; "" for the root.
        line: line of the value in a JSON Lines file.
    """

    path: str
    value: Any
    location: str = ""
    line: int | None = None

    def make_error(self, reason: str) -> BenchmarkFileError:
        """Return an error about this value."""
        return BenchmarkFileError(self.path, self.line, f"{self.location or 'its JSON'} {reason}")

    def _expect(self, expected_type: type[_T], description: str) -> _T:
        if not isinstance(self.value, expected_type) or isinstance(self.value, bool):
            names = {dict: "an object", list: "a list", str: "a text", type(None): "null"}
            found = names.get(type(self.value), repr(self.value))
            raise self.make_error(f"should be {description}, but is {found}")
        return self.value

    def as_text(self) -> str:
        return self._expect(str, "a text")

    def as_one_of(self, labels: Collection[str]) -> str:
        """Return the text if it is one of ``labels``."""
        if self.as_text() not in labels:
            raise self.make_error(f"should be one of {', '.join(labels)}, but is {self.value!r}")
        return self.as_text()

    def as_int(self) -> int:
        return self._expect(int, "a whole number")

    def items(self) -> Iterator[JsonValue]:
        """Return the values of a list."""
        for index, value in enumerate(self._expect(list, "a list")):
            yield JsonValue(self.path, value, f"{self.location}[{index}]", self.line)

    def members(self) -> dict[str, JsonValue]:
        """Return the values of an object by name."""
        return {key: self[key] for key in self._expect(dict, "an object")}

    def __contains__(self, key: str) -> bool:
        return key in self._expect(dict, "an object")

    def __getitem__(self, key: str) -> JsonValue:
        if key not in self:
            raise self.make_error(f"has no {key!r}")
        location = f"{self.location}.{key}" if self.location else key
        return JsonValue(self.path, self.value[key], location, self.line)


def read_json(path: str) -> JsonValue:
    """Read a JSON file."""
    return JsonValue(path, _parse_json(path, read_text(path), 1))


def read_json_lines(path: str) -> Iterator[JsonValue]:
    """Read a JSON Lines file; empty lines are skipped."""
    for line_number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            yield JsonValue(path, _parse_json(path, line, line_number), line=line_number)


def _parse_json(path: str, text: str, first_line: int) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_check_unique_keys)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise BenchmarkFileError(path, line, f"it is not JSON: {error.msg}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise BenchmarkFileError(path, None, f"its JSON is not used: {error}") from error


def _check_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise InvalidValueError(f"an object has {next(key for key in counts if counts[key] > 1)!r} twice")
    return members


def read_rows(
    path: str, columns: Sequence[str], has_header: bool = True, quoting: Literal[0, 3] = csv.QUOTE_MINIMAL
) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of ``columns`` of each row; empty lines are skipped.

    Fields are read with Python's csv module, which wrote most of these files.

    Args:
        has_header: True if the first line names the columns, which may be more; else the table has exactly
            ``columns``.
        quoting: ``csv.QUOTE_NONE`` if quotation marks are plain text.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""), "excel-tab", quoting=quoting, strict=True)
    header = [*columns]
    try:
        if has_header:
            header = next(reader, [])
            if missing := [name for name in columns if name not in header]:
                reason = f"its columns should be {', '.join(columns)}; it names {header}, without {missing}"
                raise BenchmarkFileError(path, 1, reason)
        indices = [header.index(name) for name in columns]
        for row in reader:
            if len(row) not in (0, len(header)):
                reason = f"{len(row)} fields where {len(header)} should be: {', '.join(header)}"
                raise BenchmarkFileError(path, reader.line_num, reason)
            if row:
                yield reader.line_num, [row[index] for index in indices]
    except csv.Error as error:
        raise BenchmarkFileError(path, reader.line_num, f"it cannot be read as a table: {error}") from error


def map_label(path: str, line: int, raw_label: str, label_names: Mapping[str, str]) -> str:
    """Return the name of a label that is one of ``label_names``."""
    if raw_label not in label_names:
        raise BenchmarkFileError(path, line, f"the label {raw_label!r} is none of {', '.join(label_names)}")
    return label_names[raw_label]


def read_sentences(
    path: str, entity_type: str | None = None, lines: slice = slice(None)
) -> list[TaggedSentence]:
    """Read a CoNLL file: a word and its tag on each line, sentences separated by blank lines.

    Crichton et al. (2017, MTL-Bioinformatics-2016) published fifteen corpora in this form, which BLURB,
    BioBERT and most later papers use. SciBERT and ELECTRAMed separate columns by blanks. Middle columns are
    skipped. The id of a sentence is the number of its first line.

    Args:
        entity_type: type of all mentions, for untyped tags (``B``) or to merge types. Adjacent mentions
            ``B-DNA B-protein`` stay two, as in BLURB.
        lines: part of the file to read.
    """
    parsed: list[TaggedSentence] = []
    document_id, first_line = "", 0
    words: list[str] = []
    tags: list[str] = []
    tag_cache: dict[str, str] = {}  # by what the file says, the tag: there are few, and millions of lines
    for line_number, row in [*read_lines(path)[lines], (0, "")]:
        document_mark = _DOCUMENT_MARK.match(row)
        if document_mark or not row or row.isspace():
            if words:
                parsed.append(TaggedSentence(str(first_line), tuple(words), tuple(tags), document_id))
                words, tags = [], []
            document_id = document_mark[1] if document_mark else document_id
            continue
        first_line = first_line if words else line_number
        columns = row.split("\t" if "\t" in row else " ")
        word, raw_tag = columns[0], columns[-1]
        if len(columns) < 2 or not word.strip():
            reason = f"a word and its tag should stand there, not {quote_excerpt(row)}"
            raise BenchmarkFileError(path, line_number, reason)
        if raw_tag not in tag_cache:
            tag_cache[raw_tag] = _parse_tag(path, line_number, raw_tag, entity_type)
        words.append(word)
        tags.append(tag_cache[raw_tag])
    return parsed


def _parse_tag(path: str, line_number: int, raw_tag: str, entity_type: str | None) -> str:
    if not _TAG.fullmatch(raw_tag):
        reason = f"a tag is O, B-Type or I-Type, not {quote_excerpt(raw_tag)}"
        raise BenchmarkFileError(path, line_number, reason)
    if entity_type is not None and raw_tag != "O":
        return f"{raw_tag[0]}-{entity_type}"
    if raw_tag in ("B", "I"):
        reason = f"its tag {raw_tag} does not say of which type the mention is"
        raise BenchmarkFileError(path, line_number, reason)
    return raw_tag


def convert_to_iob2(tags: Sequence[str]) -> tuple[str, ...]:
    """Return tags of the same mentions with ``B-`` at each start, by conlleval's rule.

    ``B-`` starts a mention, and so does ``I-X`` after a word that is not ``X``.
    """
    return tuple(
        f"B{tag[1:]}" if tag[0] == "I" and previous[1:] != tag[1:] else tag
        for previous, tag in zip(("O", *tags), tags, strict=False)
    )


def parse_xml(path: str, data: bytes) -> etree._Element:
    """Parse an untrusted UTF-8 file, which must not have a DOCTYPE, and return its root."""
    if b"<!DOCTYPE" in data:  # in no other encoding could it be hidden: the parser takes it for UTF-8
        line = _find_line_number(data, data.index(b"<!DOCTYPE"))
        reason = "it has a DOCTYPE, which the authors' files do not, and which is not read"
        raise BenchmarkFileError(path, line, reason)
    try:
        return etree.fromstring(data, _XML_PARSER)
    except etree.XMLSyntaxError as error:
        raise BenchmarkFileError(path, error.lineno, f"it is not well-formed XML: {error.msg}") from error


def iter_archive(path: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each XML file in a zip archive, within the limits of corpus/archives."""
    try:
        for member in archives.iter_members(io.BytesIO(read_bytes(path)), "set.zip"):
            if member.error and member.error.reason == "nested-archive":
                continue  # with the sources of an annotation tool, say
            if member.error:
                raise BenchmarkFileError(path, None, f"a member is not read: {member.error.detail}")
            yield member.name, member.read(archives.MAX_MEMBER_BYTES)
    except BadFileError as bad:
        raise BenchmarkFileError(path, None, f"it cannot be read as a zip archive: {bad.detail}") from bad
