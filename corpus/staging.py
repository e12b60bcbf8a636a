"""Stage one source file: read, parse, shape, split and write its documents, once.

The staged shard holds every document of the file as if there were no other file; its keys say which
PMIDs and versions are in it and, if duplicates are looked for, its digests what its texts are.  What
other files have to say comes later (finishing.py).  Staged files are named by the source's MD5, so a
file is read again only when its bytes have changed.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import pyarrow as pa

from . import checksums, duplicates, medline, shards
from .document import SCHEMA, Document
from .files import LocalFiles
from .lifecycle import KEYS
from .medline import BadRecord
from .medline_file import records
from .rejects import Rejects
from .rules import Rules
from .shaping import Shaper
from .sources import Source
from .tags import all_balanced
from .workspace import Workspace
from .xml_blocks import BadFile

STAGED_SCHEMA: Final = (
    SCHEMA.append(pa.field("drop", pa.dictionary(pa.int8(), pa.string())))
    .append(pa.field("words", pa.int32()))
    .append(pa.field("characters", pa.int32()))
    .append(pa.field("cleaned", pa.list_(pa.struct([("rule", pa.string()), ("characters", pa.int32())]))))
)
STAGED_KEYS: Final = KEYS.append(pa.field("drop", pa.dictionary(pa.int8(), pa.string())))

_GROUP: Final = 32
"""Records whose tags are counted at a time: few enough to stay in a core's cache until they are read."""
_DELETIONS: Final = frozenset({"DeleteCitation", "DeleteDocument"})
_BOOKS: Final = frozenset({"PubmedBookArticle", "BookDocument"})
_CITATIONS: Final = frozenset({"PubmedArticle", "MedlineCitation"})


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
    """

    source: Source
    name: str | None
    md5: str | None
    records: int = 0
    deletions: int = 0
    keys: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    bad: tuple[str, str] | None = None


def stage(
    files: LocalFiles, work: Workspace, source: Source, rules: Rules, keep_dropped: bool, digests: bool
) -> Staged:
    """Stage a source unless that is done already; ``digests``: are duplicates to be looked for?"""
    try:
        md5 = checksums.md5(files, work, source)
        name = f"{source.stem}-{md5[:8]}"
        report = work.staged(name, "json")
        if not files.exists(report):
            files.write_json(report, _Stager(files, work, source, rules, keep_dropped, digests, name).run())
        return Staged(source, name, md5, **files.read_json(report)["staged"])
    except BadFile as bad:
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


class _Reading:
    """A source being read: a failing disk or connection makes it a bad file, not a failed run."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except OSError as error:
            raise checksums.unreadable(error) from error


class _Stager:
    """One pass over a file: documents to a staged shard, keys and rejected records beside it."""

    def __init__(
        self,
        files: LocalFiles,
        work: Workspace,
        source: Source,
        rules: Rules,
        keep_dropped: bool,
        digests: bool,
        name: str,
    ) -> None:
        self._files, self._work, self._source, self._name = files, work, source, name
        self._shaper, self._keep_dropped = Shaper(rules), keep_dropped
        self._keys: list[tuple[int, int, int, bool, str | None]] = []
        self._digests: list[tuple[int, int, bytes]] | None = [] if digests else None
        self._records = 0

    def run(self) -> dict[str, Any]:
        """Stage the file; what the report says of it."""
        started = time.monotonic()
        with contextlib.ExitStack() as stack:
            stack.enter_context(_without_cycle_search())
            try:
                file = stack.enter_context(self._files.open(self._source.path))
            except OSError as error:
                raise checksums.unreadable(error) from error
            rejected = self._work.staged(self._name, "rejected.jsonl")
            self._rejects = stack.enter_context(Rejects(self._files, rejected))
            self._write_documents(_Reading(file))
        if [found.stamp for found in self._files.find(self._source.path)] != [self._source.stamp]:
            raise BadFile("changed", "it changed while it was read; run again when it is at rest")
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

    def _write_documents(self, file: _Reading) -> None:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        path = self._work.staged(self._name, "arrow")
        with (
            self._files.write(path) as out,
            pa.ipc.new_stream(out, STAGED_SCHEMA, options=options) as stream,
        ):
            for batch in self._batches(file):
                stream.write_batch(batch)

    def _batches(self, file: _Reading) -> Iterator[pa.RecordBatch]:
        documents: list[Document] = []
        drops: list[str | None] = []
        numbered = enumerate(records(file))
        while group := list(itertools.islice(numbered, _GROUP)):
            balanced = all_balanced([xml for _, (_, xml) in group])
            for position, (element, xml) in group:
                try:
                    drop, shaped = self._read(position, element, xml, balanced)
                except BadRecord as bad:
                    self._rejects.add(self._source.name, position, xml, bad)
                    continue
                if shaped is not None and (drop is None or self._keep_dropped):
                    documents.append(shaped)
                    drops.append(drop)
                    if len(documents) == shards.BATCH_ROWS:
                        yield _staged_batch(documents, drops)
                        documents, drops = [], []
        if documents:
            yield _staged_batch(documents, drops)

    def _read(
        self, position: int, element: str, xml: bytes, balanced: bool
    ) -> tuple[str | None, Document | None]:
        if element in _DELETIONS:
            self._keys += [(pmid, version, position, True, None) for pmid, version in medline.pmids(xml)]
            return None, None
        self._records += 1
        if element in _CITATIONS:
            citation = medline.parse(xml, balanced)
            drop, shaped = self._shaper.document(citation, self._source.name, position)
            self._keys.append((citation.pmid, citation.version, position, False, drop))
            if self._digests is not None and drop is None and shaped.sections:
                abstract = shaped.sentences[shaped.sections[0][1] :]
                if digest := duplicates.digest(shaped.title, abstract):
                    self._digests.append((citation.pmid, position, digest))
            return drop, shaped
        if element in _BOOKS:
            found = medline.pmids(xml)
            if not found:
                raise BadRecord("no-pmid", "a book record without a PMID")
            self._keys.append((*found[0], position, False, "book"))
            return "book", None
        raise BadRecord("unexpected-element", f"<{element}> is none of PubMed's records")

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
