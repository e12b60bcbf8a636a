"""Read a text file: its records, and the documents built from them."""

from __future__ import annotations

from collections.abc import Iterator

from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.source_record import SourceRecord, VersionKey
from bioshards.corpus.storage.source_file import SourceFile, open_source
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.text_files.document_builder import TextDocumentBuilder, hash_id
from bioshards.corpus.text_files.filters import TextFilesConfig
from bioshards.corpus.text_files.raw_records import iter_raw_records
from bioshards.corpus.xml.decoder import DecodingReport


class TextFileReader:
    """Reader of text files with a fixed config.

    Raises:
        MissingExtraError: the config needs a library that is not installed.
    """

    def __init__(self, config: TextFilesConfig) -> None:
        self._config = config
        self._document_builder = TextDocumentBuilder(config)
        self.decoding_report = DecodingReport()

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
                    drop_reason, document = self._document_builder.build_document(
                        fields, source.name, position
                    )
                    number = hash_id(document.id)
                    if number in known_ids:
                        raise BadRecordError("duplicate-id", f"the file has {document.id} before")
                except BadRecordError as error:
                    rejection = BadRecordError(error.reason, f"{place}: {error.detail}")
                    yield SourceRecord(position, source.name, raw, [], error=rejection)
                else:
                    known_ids.add(number)
                    key = VersionKey(number, 1, False, drop_reason)
                    yield SourceRecord(position, source.name, raw, [key], document)
