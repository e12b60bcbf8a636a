"""Stage one source file: read, parse, shape, split and write its documents, once.

The staged shard holds every document of the file as if there were no other file; its keys say which
PMIDs and versions are in it and, if duplicates are looked for, its digests what its texts are.  What
other files have to say comes later (finishing.py).  Staged files are named by the source's MD5, so a
file is read again only when its bytes have changed.
"""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from . import checksums, duplicates, shards
from .article_rules import ArticleRules
from .articles import ArticleReader
from .citations import CitationReader
from .document import SCHEMA, Document
from .errors import BadFileError
from .files import LocalFiles
from .lifecycle import KEYS
from .parts import take_up
from .records import Reader, Record
from .rejects import Rejects
from .rules import Rules, TextRules
from .sources import Source
from .workspace import Workspace

STAGED_SCHEMA: Final = (
    SCHEMA.append(pa.field("drop", pa.dictionary(pa.int8(), pa.string())))
    .append(pa.field("words", pa.int32()))
    .append(pa.field("characters", pa.int32()))
    .append(pa.field("cleaned", pa.list_(pa.struct([("rule", pa.string()), ("characters", pa.int32())]))))
)
STAGED_KEYS: Final = KEYS.append(pa.field("drop", pa.dictionary(pa.int8(), pa.string())))


@dataclass(frozen=True, slots=True)
class Staged:
    """What is known of a source once it is staged; the same for the same bytes and rules.

    Attributes:
        name: names everything that comes of this source; None for a bad file.
        records: record elements of the file, rejected ones too, deletions not.
        deletions: PMIDs named by its DeleteCitation.
        keys: rows of its keys.
        rejected: how many records were rejected, by reason.
        bad: why the file as a whole cannot be used: (reason, detail).
        not_fetched: how many articles should be in it but could not be fetched.
    """

    source: Source
    name: str | None
    md5: str | None
    records: int = 0
    deletions: int = 0
    keys: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    bad: tuple[str, str] | None = None
    not_fetched: int = 0


def stage(
    files: LocalFiles, work: Workspace, source: Source, rules: TextRules, keep_dropped: bool, digests: bool
) -> Staged:
    """Stage a source unless that is done already; ``digests``: are duplicates to be looked for?"""
    try:
        md5 = checksums.md5(files, work, source)
        name = f"{source.stem}-{md5[:8]}"
        report = work.staged(name, "json")
        if files.exists(report):
            found = files.read_json(report)
        else:
            stager = _Stager(files, work, take_up(files, work, source), rules, keep_dropped, digests, name)
            found = stager.run()
            files.write_json(report, found)
        return Staged(source, name, md5, **found["staged"])
    except BadFileError as bad:
        return Staged(source, None, None, bad=(bad.reason, bad.detail))


def ordered(staged: list[Staged]) -> tuple[list[Staged], list[tuple[str, str]]]:
    """The sources in the order they are applied, each once; and (path, path kept) of the copies.

    A copy is a file of the same name and bytes at another path.
    """
    once: dict[str, Staged] = {}
    copies = []
    for source in sorted(staged, key=lambda item: item.source):
        kept = once.setdefault(source.name or source.source.path, source)
        if kept is not source:
            copies.append((source.source.path, kept.source.path))
    return list(once.values()), copies


@contextlib.contextmanager
def _without_cycle_search() -> Iterator[None]:
    """No search for reference cycles: documents have none, and it costs a twentieth of the time."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def reader(rules: TextRules, keep_dropped: bool) -> Reader:
    """What reads sources by these rules: citations or articles."""
    if isinstance(rules, ArticleRules):
        return ArticleReader(rules, keep_dropped)
    assert isinstance(rules, Rules)
    return CitationReader(rules)


class _Stager:
    """One pass over a file: documents to a staged shard, keys and rejected records beside it."""

    def __init__(
        self,
        files: LocalFiles,
        work: Workspace,
        source: Source,
        rules: TextRules,
        keep_dropped: bool,
        digests: bool,
        name: str,
    ) -> None:
        self._files, self._work, self._source, self._name = files, work, source, name
        self._reader, self._keep_dropped = reader(rules, keep_dropped), keep_dropped
        self._keys: list[tuple[int, int, int, bool, str | None]] = []
        self._digests: list[tuple[int, str, int, bytes]] | None = [] if digests else None
        self._records = 0

    def run(self) -> dict[str, Any]:
        """Stage the file; what the report says of it."""
        started = time.monotonic()
        with contextlib.ExitStack() as stack:
            stack.enter_context(_without_cycle_search())
            rejected = self._work.staged(self._name, "rejected.jsonl")
            self._rejects = stack.enter_context(Rejects(self._files, rejected))
            self._write_documents()
        if not checksums.unchanged(self._files, self._source):
            raise BadFileError("changed", "it changed while it was read; run again when it is at rest")
        self._write_rows("keys", self._keys, STAGED_KEYS)
        if self._digests is not None:
            self._write_rows("digests", self._digests, duplicates.DIGESTS)
        return {
            "staged": {
                "records": self._records,
                "deletions": sum(1 for key in self._keys if key[3]),
                "keys": len(self._keys),
                "rejected": dict(self._rejects.reasons),
            },
            "seconds": round(time.monotonic() - started, 3),
        }

    def _write_documents(self) -> None:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        path = self._work.staged(self._name, "arrow")
        with (
            self._files.write(path) as out,
            pa.ipc.new_stream(out, STAGED_SCHEMA, options=options) as stream,
        ):
            for batch in self._batches():
                stream.write_batch(batch)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        documents: list[Document] = []
        drops: list[str | None] = []
        characters = 0
        for record in self._reader.records(self._files, self._source):
            self._take(record)
            document = record.document
            if document is None:
                continue
            drop = record.keys[0].drop
            if drop is None or self._keep_dropped:
                documents.append(document)
                drops.append(drop)
                characters += document.characters
                if len(documents) == shards.BATCH_ROWS or characters > shards.BATCH_CHARACTERS:
                    yield _staged_batch(documents, drops)
                    documents, drops, characters = [], [], 0
        if documents:
            yield _staged_batch(documents, drops)

    def _take(self, record: Record) -> None:
        """Note what is to be known of a record across sources, or that it is rejected."""
        if record.bad:
            self._records += 1
            self._rejects.add(record.file, record.position, record.raw, record.bad)
            return
        if not (record.keys and record.keys[0].deletes):
            self._records += 1
        for key in record.keys:
            self._keys.append((key.key, key.version, record.position, key.deletes, key.drop))
        document = record.document
        if self._digests is not None and document and document.sections and record.keys[0].drop is None:
            text = document.sentences[document.sections[0][1] :]
            if digest := duplicates.digest(document.title, text):
                self._digests.append((record.keys[0].key, document.id, record.position, digest))

    def _write_rows(self, ending: str, rows: Sequence[tuple[object, ...]], schema: pa.Schema) -> None:
        columns = list(zip(*rows, strict=True)) or [()] * len(schema)
        table = pa.table(
            [pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)], schema=schema
        )
        path = self._work.staged(self._name, ending)
        with self._files.write(path) as out, pa.ipc.new_stream(out, schema) as stream:
            stream.write_table(table)


def _staged_batch(documents: list[Document], drops: list[str | None]) -> pa.RecordBatch:
    offsets, cleaned = shards.listed([list(document.cleaned.items()) for document in documents])
    extra = [
        pa.array(drops, STAGED_SCHEMA.field("drop").type),
        pa.array([document.words for document in documents], pa.int32()),
        pa.array([document.characters for document in documents], pa.int32()),
        pa.ListArray.from_arrays(
            offsets,
            pa.StructArray.from_arrays(
                [
                    pa.array([rule for rule, _ in cleaned], pa.string()),
                    pa.array([characters for _, characters in cleaned], pa.int32()),
                ],
                names=["rule", "characters"],
            ),
        ),
    ]
    return pa.RecordBatch.from_arrays([*shards.batch(documents).columns, *extra], schema=STAGED_SCHEMA)
