"""Read a text file: its records, and the documents built from them.

A paragraph's end ends a sentence. Text is cleaned by the character rules, as an article's body: the rules on
publishers' notes are made for abstracts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from typing import Final

from bioshards.corpus.document import Document
from bioshards.corpus.errors import BadRecordError, quote, shorten_list
from bioshards.corpus.filter_names import FilterNames
from bioshards.corpus.sentences import PARAGRAPH_BREAK, collapse_whitespace, count_line_words
from bioshards.corpus.sentences.splitters import load_splitter
from bioshards.corpus.source_record import SourceRecord, VersionKey
from bioshards.corpus.storage.source_file import SourceFile, open_source
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.text.cleaning import Cleaner
from bioshards.corpus.text.language_detection import ENGLISH, detect_language
from bioshards.corpus.text_files import DEFAULT_ID_FIELD, TextFilesConfig
from bioshards.corpus.text_files.records import iter_raw_records
from bioshards.corpus.xml.decoder import DecodingReport

_MAX_ID_CHARACTERS: Final = 300
_CONTROLS: Final = re.compile("[\x00-\x08\x0e-\x1b]")
"""Control characters that XML forbids, so that no cleaning rule has them; the others are white space."""


class TextFileReader:
    """Reader of text files with a fixed config.

    Raises:
        MissingExtraError: the config needs a library that is not installed.
    """

    def __init__(self, config: TextFilesConfig) -> None:
        self._config = config
        self._cleaner = Cleaner(config.cleaning)
        self._split = load_splitter(config.splitter)
        self._line_formatter = config.make_line_formatter()
        self.decoding_report = DecodingReport()
        self.filter_names = FilterNames({})

    def read_records(self, storage: Storage, source: SourceFile) -> Iterator[SourceRecord]:
        """Yield the records of the file, in order.

        Raises:
            BadFileError: the file as a whole is unusable.
        """
        known_ids: set[int] = set()
        with open_source(storage, source.path) as file:
            raw_records = iter_raw_records(file, source.name, self._config)
            for position, (raw, place, fields) in enumerate(raw_records):
                try:
                    if isinstance(fields, BadRecordError):
                        raise fields
                    document = self._build_document(fields, source.name, position)
                    number = _hash_id(document.id)
                    if number in known_ids:
                        raise BadRecordError("duplicate-id", f"the file has {document.id} before")
                except BadRecordError as error:
                    rejection = BadRecordError(error.reason, f"{place}: {error.detail}")
                    yield SourceRecord(position, source.name, raw, [], error=rejection)
                else:
                    known_ids.add(number)
                    key = VersionKey(number, 1, False, None if document.sections else "no-text")
                    yield SourceRecord(position, source.name, raw, [key], document)

    def _build_document(self, fields: Mapping[str, object], file: str, position: int) -> Document:
        """Build the document of a record.

        Args:
            fields: fields of the record by name.
            file: name of the source file.
            position: 0-based index of the record in the file.

        Raises:
            BadRecordError: a field is missing, or has another type than text.
        """
        if self._config.text_field not in fields:
            names = shorten_list([quote(name) for name in fields])
            raise BadRecordError(
                "no-text-field",
                f"it has no field {self._config.text_field}, but {names}: name one of them with --text-field",
            )
        removed_characters: dict[str, int] = {}
        title = self._clean_text(_get_text(fields, self._config.title_field), removed_characters)
        sentences = self._split_and_format(title, removed_characters) if self._config.titles else []
        first_sentence = len(sentences)
        paragraphs = [
            paragraph
            for text in PARAGRAPH_BREAK.split(_get_text(fields, self._config.text_field))
            if (paragraph := self._clean_text(text, removed_characters))
        ]
        for paragraph in paragraphs:
            sentences += self._split_and_format(paragraph, removed_characters)
        return Document(
            id=f"text:{self._find_id(fields, file, position)}",
            source="text",
            pmid=None,
            pmcid=None,
            doi=None,
            version=1,
            year=None,
            journal=None,
            article_type=None,
            language=detect_language(paragraphs) or ENGLISH,
            licence=None,
            retracted=False,
            flags=[],
            title=title,
            sentences=sentences,
            sections=[("", first_sentence)] if len(sentences) > first_sentence else [],
            file=file,
            position=position,
            num_words=count_line_words(" ".join(sentences)),
            num_characters=sum(map(len, sentences)),
            removed_characters=removed_characters,
        )

    def _find_id(self, fields: Mapping[str, object], file: str, position: int) -> str:
        """Return the id of a record: its field, or file and number of a record without."""
        name = self._config.id_field
        if name not in fields and name != DEFAULT_ID_FIELD:
            raise BadRecordError("no-id-field", f"it has no field {name}, which --id-field names")
        value = fields.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        elif value is not None:
            value = _get_text(fields, name).strip()
            if not value or not value.isprintable() or len(value) > _MAX_ID_CHARACTERS:
                raise BadRecordError(
                    "invalid-id",
                    f"its {name} {quote(value)!r} is not 1 to {_MAX_ID_CHARACTERS} printable characters",
                )
        return value or f"{file}#{position + 1}"

    def _clean_text(self, text: str, removed_characters: dict[str, int]) -> str:
        text = _CONTROLS.sub(" ", text)
        return collapse_whitespace(self._cleaner.clean_text(text, removed_characters))

    def _split_and_format(self, text: str, removed_characters: dict[str, int]) -> list[str]:
        sentences = self._split(text)
        return self._line_formatter(sentences, removed_characters) if self._line_formatter else sentences


def _hash_id(document_id: str) -> int:
    """Return the number of a document in version keys: 63 bits of a hash of its id."""
    return int.from_bytes(hashlib.blake2b(document_id.encode(), digest_size=8).digest()) >> 1


def _get_text(fields: Mapping[str, object], name: str) -> str:
    """Return the text of a field; "" if it is missing or null.

    Raises:
        BadRecordError: it is no text.
    """
    value = fields.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadRecordError("wrong-type", f"its {name} is of type {type(value).__name__}, not text")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadRecordError("invalid-unicode", f"its {name} has half of a surrogate pair") from error
    return value
