"""Keep or drop documents by a list of ids: ``--include-ids``, and ``--exclude-ids`` as for benchmarks.

An id names all versions of an article in both corpora: a PMID the abstract in PubMed and the article in PMC
with this PMID, and so does a PMCID or a DOI.

``--include-ids`` is applied when documents are staged, so that an included document is compared with included
ones only when duplicates are dropped. ``--exclude-ids`` is applied last, to documents that would be kept, so
that no older version or duplicate takes the place of an excluded document.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.document import Document, parse_doi
from bioshards.corpus.errors import UserError
from bioshards.corpus.lifecycle.decisions import DECISION_REASONS, DECISION_SCHEMA
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.storage_protocol import Storage

ListedIds: TypeAlias = pa.StringArray
"""Sorted distinct ids: ``12345678``, ``PMC123456``, ``doi:10.5555/1`` or ``text:note-17``."""

STAGED_COLUMNS: Final = ("id", "pmid", "pmcid", "doi", "origin", "drop_reason")
"""Columns of staged documents that are read."""

_ID_PATTERN: Final = re.compile(
    r"(?:pubmed:|pmid:)?([1-9][0-9]{0,9})|(?:pmc:)?(PMC[1-9][0-9]{0,9})(?:\.[1-9][0-9]{0,3})?|(text:\S.*)"
)
_ACCEPTED_FORMATS: Final = (
    "a line is a PMID (12345678), a PMCID (PMC123456, PMC123456.1), a DOI (doi:10.5555/1, an address) or the "
    "id of a document in shards (pubmed:12345678, pmc:PMC123456.1, text:note-17), a comment after #, or blank"
)
_COMMENT_PATTERN: Final = re.compile(r"(?:^|\s)#.*", re.DOTALL)  # a DOI may contain a #
MAX_LIST_BYTES: Final = 2 << 30
"""Largest file of ids. All PMIDs and PMCIDs of 2026 have 0.5 GB."""
_MAX_LINE_BYTES: Final = 1 << 16
_SCHEMA: Final = pa.schema([pa.field("id", pa.string(), nullable=False)])
_CHUNK_ROWS: Final = 100_000


class IdListError(UserError):
    """A line of the file is not an id; the message names the line and the accepted formats."""


@dataclass(frozen=True, slots=True)
class IdList:
    """Digest of a list.

    Attributes:
        num_ids: number of distinct ids.
        sha256: SHA-256 of the sorted normalised ids, one a line.
    """

    num_ids: int
    sha256: str


def parse(file: BinaryIO, path: str) -> ListedIds:
    """Parse a file of ids.

    Args:
        path: its path, for messages.

    Raises:
        IdListError: a line is not an id, or the file is too large.
    """
    ids = _iter_ids(file, path)
    chunks = []
    while chunk := list(itertools.islice(ids, _CHUNK_ROWS)):
        chunks.append(pa.array(chunk, pa.string()))
    sorted_ids = pa.chunked_array(chunks, pa.string()).combine_chunks().sort()
    return pc.run_end_encode(sorted_ids).values  # a quarter of the memory of unique()


def summarise(ids: ListedIds) -> IdList:
    """Summarise the ids that :func:`parse` returns."""
    digest = hashlib.sha256()
    for start in range(0, len(ids), _CHUNK_ROWS):
        digest.update("".join(f"{id_}\n" for id_ in ids.slice(start, _CHUNK_ROWS).to_pylist()).encode())
    return IdList(len(ids), digest.hexdigest())


def write(storage: Storage, path: str, ids: ListedIds) -> None:
    """Write the ids, for :func:`read`."""
    with storage.write(path) as out, pa.ipc.new_stream(out, _SCHEMA) as stream:
        stream.write_table(pa.table([ids], schema=_SCHEMA))


def read(storage: Storage, path: str) -> ListedIds:
    """Read the ids that :func:`write` wrote; a local file is memory-mapped."""
    with arrow_io.open_mapped(storage, path) as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()["id"].combine_chunks()


def has_document(ids: ListedIds, document: Document) -> bool:
    """Return True if a list has an id of a document."""
    doi = document.doi and f"doi:{document.doi.lower()}"
    own_id = document.id if document.source == "text" else None  # else it is one of the others
    names = (str(document.pmid or ""), document.pmcid, doi, own_id)
    return any(_has_id(ids, name) for name in names if name)


def find_matches(
    documents: Iterable[pa.RecordBatch], decisions: pa.Table, ids: ListedIds
) -> tuple[pa.ChunkedArray, int]:
    """Find the documents of a source that a list names.

    Args:
        documents: columns :data:`STAGED_COLUMNS` of the staged documents.
        decisions: decisions on the source, of :data:`~.decisions.DECISION_SCHEMA`; documents that they or the
            filters drop are not matched.
        ids: the list.

    Returns:
        Positions of the documents, and the number of ids that match one.
    """
    rows = [_select_kept(batch, decisions["position"].combine_chunks()) for batch in documents]
    if not rows:
        return pa.chunked_array([], pa.int32()), 0
    kept = pa.concat_tables(rows).combine_chunks()
    id_columns = [kept[column].combine_chunks() for column in ("pmid", "pmcid", "doi", "id")]
    # The hash table is built from the documents, since the list may be large.
    matching_ids = ids.filter(pc.is_in(ids, value_set=pa.concat_arrays(id_columns)))
    is_listed = functools.reduce(pc.or_, (pc.is_in(column, value_set=matching_ids) for column in id_columns))
    return kept["position"].filter(is_listed), len(matching_ids)


def extend_decisions(
    documents: Iterable[pa.RecordBatch], decisions: pa.Table, ids: ListedIds
) -> tuple[pa.Table, int]:
    """Add decisions on excluded documents to the decisions on a source.

    The arguments are those of :func:`find_matches`.

    Returns:
        All decisions, and the number of ids that match a document.
    """
    positions, matched = find_matches(documents, decisions, ids)
    return pa.concat_tables([decisions, _make_decisions(positions)]), matched


def _iter_ids(file: BinaryIO, path: str) -> Iterator[str]:
    num_bytes = 0
    for number, line in enumerate(iter(functools.partial(file.readline, _MAX_LINE_BYTES), b""), 1):
        num_bytes += len(line)
        if num_bytes > MAX_LIST_BYTES:
            raise IdListError(
                f"{path} has more than {MAX_LIST_BYTES >> 20:,} MiB, more than all ids of PubMed and PMC: "
                "see that it is a list of ids"
            )
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise IdListError(f"{path}, line {number} is not UTF-8: {_ACCEPTED_FORMATS}") from None
        text = text.lstrip("\ufeff") if number == 1 else text
        stripped = (_COMMENT_PATTERN.sub("", text) if "#" in text else text).strip()
        if not stripped:
            continue
        match = _ID_PATTERN.fullmatch(stripped)
        if not match and not stripped.startswith("10.") and (doi := parse_doi(stripped)):
            yield f"doi:{doi.lower()}"
            continue
        if not match:
            shown = stripped if len(stripped) <= 60 else f"{stripped[:60]}..."
            raise IdListError(f"{path}, line {number}: {shown!r} is not an id; {_ACCEPTED_FORMATS}")
        yield match[1] or match[2] or match[3]


def _has_id(ids: ListedIds, name: str) -> bool:
    index = bisect.bisect_left(ids, name, key=pa.StringScalar.as_py)
    return index < len(ids) and ids[index].as_py() == name


def _select_kept(batch: pa.RecordBatch, dropped_positions: pa.Array) -> pa.Table:
    """Select the ids of the documents that neither a decision nor a filter drops."""
    position = pc.struct_field(batch["origin"], "position")
    doi = pc.binary_join_element_wise("doi:", pc.utf8_lower(batch["doi"]), "")
    columns = {"position": position, "pmid": batch["pmid"].cast(pa.string()), "doi": doi}
    columns |= {name: batch[name] for name in ("pmcid", "id")}
    is_dropped = pc.or_(pc.is_valid(batch["drop_reason"]), pc.is_in(position, value_set=dropped_positions))
    return pa.table(columns).filter(pc.invert(is_dropped))


def _make_decisions(positions: pa.ChunkedArray) -> pa.Table:
    rows = len(positions)
    reason = pa.scalar(DECISION_REASONS.index("excluded").as_py(), pa.int8())
    reasons = pa.DictionaryArray.from_arrays(pa.repeat(reason, rows), DECISION_REASONS)
    columns = [positions, reasons, pa.nulls(rows, pa.string()), pa.nulls(rows, pa.float32())]
    return pa.table(columns, schema=DECISION_SCHEMA)
