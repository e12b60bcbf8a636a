"""Stage a source: parse its records, build the documents and write them to the work folder.

A staged shard depends on its source only.  Next to it are the keys of the records and, for deduplication, the
digests of the texts (decisions.py) or their signatures (near_duplicates.py); finalize.py applies the
decisions across sources.  Staged files are named by the MD5 of the source, so that an unchanged source is not
parsed again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from bioshards.corpus import progress_notes
from bioshards.corpus.document import Document
from bioshards.corpus.errors import BadFileError, RunError
from bioshards.corpus.gc_pause import pause_gc
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.lifecycle import decisions, id_lists
from bioshards.corpus.lifecycle.inputs import compute_input_md5, load_parts
from bioshards.corpus.lifecycle.job import ShardsJob, StageResult
from bioshards.corpus.lifecycle.near_duplicates import SignatureWriter
from bioshards.corpus.output import work_files
from bioshards.corpus.output.rejects import RejectWriter
from bioshards.corpus.output.work_files import is_intact
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.shards import document_schema
from bioshards.corpus.shards.document_schema import make_schema
from bioshards.corpus.source_record import DAMAGED_COPY, RecordReader, SourceRecord
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.source_file import SourceFile, is_unchanged
from bioshards.corpus.text_config import TextConfig
from bioshards.corpus.text_files import TextFilesConfig
from bioshards.corpus.text_files.documents import TextFileReader

STAGED_FIELDS: Final = (
    pa.field("drop_reason", pa.dictionary(pa.int8(), pa.string())),
    pa.field("words", pa.int32()),
    pa.field("characters", pa.int32()),
    pa.field("removals", pa.list_(pa.struct([("rule", pa.string()), ("characters", pa.int32())]))),
)
"""Columns of a staged shard after those of its documents."""
MENDABLE_REASONS: Final = frozenset({DAMAGED_COPY, "unreadable"})
"""Reasons of articles that the next download of a mirror replaces, or that a disk failed to read."""
STAGED_KEY_SCHEMA: Final = decisions.VERSION_KEY_SCHEMA.append(
    pa.field("drop_reason", pa.dictionary(pa.int8(), pa.string()))
)

_CHUNK_CHARACTERS: Final = 1 << 20
"""Characters of documents that become Arrow arrays at a time: few enough that their strings are still in the
cache of a core. Those of a whole batch are not, which costs a tenth of the time of an article.
"""


def stage_source(job: ShardsJob, source: SourceFile) -> StageResult:
    """Stage a source unless it is staged.

    One with articles that a mirror can replace is staged again: its list stays the same.  So is one with a
    damaged work file; its documents are verified when they are read (:func:`mend_documents`).
    """
    try:
        md5 = compute_input_md5(job, source)
        progress_notes.begin_item(source.size)
        output_name = f"{source.stem}-{md5[:8]}"
        report_path = job.output.staged_path(output_name, "json")
        damaged = list[str]()
        result = work_files.read_report(job.storage, report_path, damaged)
        if result is not None:
            sha256s = {
                job.output.staged_path(output_name, suffix): sha256
                for suffix, sha256 in result["sha256s"].items()
                if suffix != "arrow"
            }
            damaged += [path for path in sha256s if not is_intact(job.storage, path, sha256s[path])]
            if not damaged and not MENDABLE_REASONS & result["rejected"].keys():
                progress_notes.count("records", result["records"])
                return StageResult(source, output_name, md5, **result, is_cached=True)
            # Its final shards are of the former staging.
            job.storage.remove(job.output.final_report_path(output_name))
        result = _Stager(job, load_parts(job, source), output_name).run()
        work_files.write_report(job.storage, report_path, result)
        return StageResult(source, output_name, md5, **result, damaged=tuple(damaged))
    except BadFileError as rejection:
        return StageResult(source, None, None, rejection=(rejection.reason, rejection.detail))


def mend_documents(job: ShardsJob, staged: StageResult) -> tuple[str, ...]:
    """Stage a source again if its documents in the work folder are damaged.

    Returns:
        The path of the damaged file, if it was.

    Raises:
        RunError: the source is not the same any more.
    """
    path = job.output.staged_path(str(staged.output_name), "arrow")
    if is_intact(job.storage, path, staged.sha256s["arrow"]):
        return ()
    job.storage.remove(job.output.staged_path(str(staged.output_name), "json"))
    if stage_source(job, staged.source).sha256s != staged.sha256s:
        raise RunError(
            f"{path} is damaged, and {staged.source.path} has changed since it was made of it. Run the same "
            "command again: it reads the source anew"
        )
    return (path,)


def make_reader(document_config: TextConfig, keep_dropped: bool) -> RecordReader:
    """Create the reader for the config: of citations, articles or text files.

    Args:
        document_config: filters and text settings.
        keep_dropped: also build documents of articles that the filters drop (PMC only).
    """
    if isinstance(document_config, PmcConfig):
        from bioshards.corpus.jats.reader import ArticleReader  # here, as its patterns take 80 ms to compile

        return ArticleReader(document_config, keep_dropped)
    if isinstance(document_config, TextFilesConfig):
        return TextFileReader(document_config)
    from bioshards.corpus.pubmed.documents import CitationReader

    assert isinstance(document_config, PubMedConfig)
    return CitationReader(document_config)


class _Stager:
    """Stages one source in a single pass: documents, keys, digests or signatures, and rejected records."""

    def __init__(self, job: ShardsJob, source: SourceFile, output_name: str) -> None:
        self._job = job
        self._source = source
        self._output_name = output_name
        self._reader = make_reader(job.documents, job.config.keep_dropped)
        self._schema = make_schema(job.documents.columns)
        self._keys: list[tuple[int, int, int, int, int, bool, str | None]] = []
        self._digests: list[tuple[int, str, int, bytes]] | None = [] if job.config.dedup == "exact" else None
        self._included_ids = (
            id_lists.read(job.storage, job.output.inclusion_list_path) if job.included else None
        )
        self._signatures: SignatureWriter | None = None
        self._records = 0
        self._sha256s: dict[str, str] = {}

    def run(self) -> dict[str, Any]:
        """Stage the source and return the fields of its result as JSON values."""
        storage, output = self._job.storage, self._job.output
        with contextlib.ExitStack() as stack:
            stack.enter_context(pause_gc())
            rejects_path = output.staged_path(self._output_name, "rejected.jsonl")
            self._rejects = stack.enter_context(RejectWriter(storage, rejects_path))
            if self._job.config.dedup == "near":
                signatures_path = output.staged_path(self._output_name, "signatures")
                self._signatures = stack.enter_context(SignatureWriter(storage, signatures_path))
            self._write_documents()
        if not is_unchanged(storage, self._source):
            raise BadFileError("changed", "it changed while it was read; rerun the command")
        self._write_rows("keys", self._keys, STAGED_KEY_SCHEMA)
        if self._digests is not None:
            self._write_rows("digests", self._digests, decisions.TEXT_DIGEST_SCHEMA)
        if self._rejects.sha256:
            self._sha256s["rejected.jsonl"] = self._rejects.sha256
        if self._signatures:
            self._sha256s["signatures"] = self._signatures.sha256
        return {
            "records": self._records,
            "deletions": sum(1 for key in self._keys if key[5]),
            "num_keys": len(self._keys),
            "rejected": dict(self._rejects.reason_counts),
            "misdeclared_files": self._reader.decoding_report.misdeclared_files,
            "skipped_entries": dict(self._reader.decoding_report.skipped_entries),
            "partial_lists": self._reader.decoding_report.partial_lists,
            "unmatched": self._reader.filter_names.find_unmatched(),
            "sha256s": self._sha256s,
        }

    def _write_documents(self) -> None:
        with self._open_table("arrow", _staged_schema(self._schema), "lz4") as stream:
            noted = 0
            for batch in self._iter_batches():
                stream.write_batch(batch)
                progress_notes.count("records", self._records - noted)
                noted = self._records
        progress_notes.count("records", self._records - noted)

    def _iter_batches(self) -> Iterator[pa.RecordBatch]:
        documents: list[Document] = []
        drop_reasons: list[str | None] = []
        chunks: list[pa.RecordBatch] = []
        rows = characters = chunk_characters = 0
        for record in self._reader.read_records(self._job.storage, self._source):
            record = self._apply_inclusion_list(record)
            self._add_record(record)
            document = record.document
            if document is None:
                continue
            drop_reason = record.keys[0].drop_reason
            if drop_reason is None or self._job.config.keep_dropped:
                documents.append(document)
                drop_reasons.append(drop_reason)
                rows += 1
                characters += document.num_characters
                chunk_characters += document.num_characters
                is_full = rows == document_schema.BATCH_ROWS or characters > document_schema.BATCH_CHARACTERS
                if is_full or chunk_characters > _CHUNK_CHARACTERS:
                    chunks.append(_make_staged_batch(documents, drop_reasons, self._schema))
                    documents, drop_reasons, chunk_characters = [], [], 0
                if is_full:
                    yield pa.concat_batches(chunks)
                    chunks, rows, characters = [], 0, 0
        if documents:
            chunks.append(_make_staged_batch(documents, drop_reasons, self._schema))
        if chunks:
            yield pa.concat_batches(chunks)

    def _apply_inclusion_list(self, record: SourceRecord) -> SourceRecord:
        """Return the record with a drop reason if its document would be kept and is not in the list."""
        if (
            self._included_ids is None
            or record.document is None
            or record.keys[0].drop_reason is not None
            or id_lists.has_document(self._included_ids, record.document)
        ):
            return record
        return record._replace(keys=[record.keys[0]._replace(drop_reason="not-included")])

    def _add_record(self, record: SourceRecord) -> None:
        """Add the keys and the digest of a record, or reject it."""
        if record.error:
            self._records += 1
            self._rejects.add_record(record.file, record.position, record.raw, record.error)
            return
        if not (record.keys and record.keys[0].is_deletion):
            self._records += 1
        for key in record.keys:
            self._keys.append(
                (
                    key.article_number,
                    key.version,
                    key.minor_version,
                    key.published,
                    record.position,
                    key.is_deletion,
                    key.drop_reason,
                )
            )
        document = record.document
        is_compared = self._digests is not None or self._signatures is not None
        if is_compared and document and document.sections and record.keys[0].drop_reason is None:
            self._add_compared_text(document, record.keys[0].article_number, record.position)

    def _add_compared_text(self, document: Document, key: int, position: int) -> None:
        """Add the digest or the signature of a document, as deduplication needs it."""
        text = document.sentences[document.sections[0][1] :]
        if self._digests is not None and (digest := decisions.digest_text(document.title, text)):
            self._digests.append((key, document.id, position, digest))
        if self._signatures is not None:
            self._signatures.add(key, document.id, position, document.year, document.title, text)

    def _write_rows(self, suffix: str, rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> None:
        columns = document_schema.transpose(rows, len(schema))
        table = pa.table(
            [
                pa.array(column, schema_field.type)
                for column, schema_field in zip(columns, schema, strict=True)
            ],
            schema=schema,
        )
        with self._open_table(suffix, schema) as stream:
            stream.write_table(table)

    @contextlib.contextmanager
    def _open_table(
        self, suffix: str, schema: pa.Schema, compression: str | None = None
    ) -> Iterator[pa.RecordBatchWriter]:
        """Write a table of the source, and note its SHA-256."""
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with self._job.storage.write(self._job.output.staged_path(self._output_name, suffix)) as out:
            file = HashingWriter(out)
            with pa.ipc.new_stream(pa.PythonFile(file, "w"), schema, options=options) as stream:
                yield stream
            self._sha256s[suffix] = file.sha256


def _staged_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([*schema, *STAGED_FIELDS])


def _make_staged_batch(
    documents: list[Document], drop_reasons: list[str | None], schema: pa.Schema
) -> pa.RecordBatch:
    offsets, removals = document_schema.flatten_lists(
        [list(document.removed_characters.items()) for document in documents]
    )
    staged_columns = [
        pa.array(drop_reasons, STAGED_FIELDS[0].type),
        pa.array([document.num_words for document in documents], pa.int32()),
        pa.array([document.num_characters for document in documents], pa.int32()),
        pa.ListArray.from_arrays(
            offsets,
            pa.StructArray.from_arrays(
                [
                    pa.array([rule for rule, _ in removals], pa.string()),
                    pa.array([characters for _, characters in removals], pa.int32()),
                ],
                names=["rule", "characters"],
            ),
        ),
    ]
    return pa.RecordBatch.from_arrays(
        [*document_schema.record_batch_from_documents(documents, schema).columns, *staged_columns],
        schema=_staged_schema(schema),
    )
