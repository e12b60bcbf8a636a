"""Leave out documents by a list of ids: a text file in, verdicts on a source's documents out.

What a benchmark is made of must not be read in pretraining, or its scores say little; ``--exclude-ids FILE``
keeps it out.  An id names an article, in any version and in either corpus: a PMID its abstract in PubMed and
the article in PMC that gives this PMID, a PMCID these two as well, for an article begins with its abstract.

The list is asked last, of documents that would be kept, so that an output is what it would be without a list,
less the documents listed: no older version and no copy comes in for one that is left out.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.errors import UserError
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.storage_protocol import Storage

from . import versions

ExcludedIds: TypeAlias = pa.StringArray
"""The ids of a list, sorted, once each: as ``12345678``, ``PMC123456`` or ``doi:10.5555/1``."""

STAGED_COLUMNS: Final = ("id", "pmid", "pmcid", "origin", "drop_reason")
"""What is looked at of staged documents."""

_ID_PATTERN: Final = re.compile(
    r"(?:pubmed:|pmid:)?([1-9][0-9]{0,9})|(?:pmc:)?(PMC[1-9][0-9]{0,9})(?:\.[1-9][0-9]{0,3})?|(doi:10\.\S+)"
)
_ACCEPTED_FORMATS: Final = (
    "a line is a PMID (12345678), a PMCID (PMC123456, PMC123456.1) or the id of a document in shards "
    "(pubmed:12345678, pmc:PMC123456.1, doi:10.5555/1), a comment after #, or blank"
)
_COMMENT_PATTERN: Final = re.compile(r"(?:^|\s)#.*", re.DOTALL)  # a DOI may have a # inside
_MAX_LINE_BYTES: Final = 1 << 16
_SCHEMA: Final = pa.schema([pa.field("id", pa.string(), nullable=False)])
_CHUNK_ROWS: Final = 100_000


class ExclusionListError(UserError):
    """It is no list of ids; the message says where and what a list is."""


@dataclass(frozen=True, slots=True)
class ExclusionList:
    """What a manifest says of a list.

    Attributes:
        ids: how many there are, each counted once however it is written.
        sha256: of their normal forms, sorted, a line each: the same for lists that say the same.
    """

    num_ids: int
    sha256: str


def parse(file: BinaryIO, path: str) -> ExcludedIds:
    """The ids of a list that a person or a program has written.

    Args:
        path: names the file in errors.

    Raises:
        ExclusionListError: a line is no id.
    """
    ids = _iter_ids(file, path)
    chunks = []
    while chunk := list(itertools.islice(ids, _CHUNK_ROWS)):
        chunks.append(pa.array(chunk, pa.string()))
    sorted_ids = pa.chunked_array(chunks, pa.string()).combine_chunks().sort()
    return pc.run_end_encode(sorted_ids).values  # of millions, a quarter of the memory of unique()


def summarise(ids: ExcludedIds) -> ExclusionList:
    """What a manifest says of the ids that :func:`parse` gives."""
    digest = hashlib.sha256()
    for start in range(0, len(ids), _CHUNK_ROWS):
        digest.update("".join(f"{id_}\n" for id_ in ids.slice(start, _CHUNK_ROWS).to_pylist()).encode())
    return ExclusionList(len(ids), digest.hexdigest())


def write(storage: Storage, path: str, ids: ExcludedIds) -> None:
    """Write the ids where every worker can :func:`read` them."""
    with storage.write(path) as out, pa.ipc.new_stream(out, _SCHEMA) as stream:
        stream.write_table(pa.table([ids], schema=_SCHEMA))


def read(storage: Storage, path: str) -> ExcludedIds:
    """The ids that :func:`write` has written; of a local file they are mapped, not read into memory."""
    with arrow_io.open_mapped(storage, path) as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()["id"].combine_chunks()


def extend_decisions(
    documents: Iterable[pa.RecordBatch], decisions: pa.Table, ids: ExcludedIds
) -> tuple[pa.Table, int]:
    """The verdicts on a source's documents with those on listed ones, and how many ids name one of these.

    Args:
        documents: the columns :data:`COLUMNS` of the staged documents.
        decisions: the verdicts so far, of lifecycle.VERDICTS; what they or the rules drop is not asked for.
    """
    rows = [_select_kept(batch, decisions["position"].combine_chunks()) for batch in documents]
    if not rows:
        return decisions, 0
    kept = pa.concat_tables(rows).combine_chunks()
    id_columns = [kept[column].combine_chunks() for column in ("pmid", "pmcid", "id")]
    matching_ids = ids.filter(
        pc.is_in(ids, value_set=pa.concat_arrays(id_columns))
    )  # a large list is only gone through
    is_excluded = functools.reduce(
        pc.or_, (pc.is_in(column, value_set=matching_ids) for column in id_columns)
    )
    return pa.concat_tables([decisions, _make_decisions(kept["position"].filter(is_excluded))]), len(
        matching_ids
    )


def _iter_ids(file: BinaryIO, path: str) -> Iterator[str]:
    for number, line in enumerate(iter(functools.partial(file.readline, _MAX_LINE_BYTES), b""), 1):
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            raise ExclusionListError(f"{path}, line {number} is no UTF-8 text: {_ACCEPTED_FORMATS}") from None
        stripped = (_COMMENT_PATTERN.sub("", text) if "#" in text else text).strip()
        if not stripped:
            continue
        match = _ID_PATTERN.fullmatch(stripped)
        if not match:
            shown = stripped if len(stripped) <= 60 else f"{stripped[:60]}..."
            raise ExclusionListError(f"{path}, line {number}: {shown!r} is no id; {_ACCEPTED_FORMATS}")
        yield match[1] or match[2] or match[3].lower()


def _select_kept(batch: pa.RecordBatch, dropped_positions: pa.Array) -> pa.Table:
    """The ids of the documents that neither a verdict nor a rule drops."""
    position = pc.struct_field(batch["origin"], "position")
    columns = {"position": position, "pmid": batch["pmid"].cast(pa.string())}
    columns |= {name: batch[name] for name in ("pmcid", "id")}
    is_dropped = pc.or_(pc.is_valid(batch["drop_reason"]), pc.is_in(position, value_set=dropped_positions))
    return pa.table(columns).filter(pc.invert(is_dropped))


def _make_decisions(positions: pa.ChunkedArray) -> pa.Table:
    rows = len(positions)
    reason = pa.scalar(versions.DECISION_REASONS.index("excluded").as_py(), pa.int8())
    reasons = pa.DictionaryArray.from_arrays(pa.repeat(reason, rows), versions.DECISION_REASONS)
    return pa.table([positions, reasons, pa.nulls(rows, pa.string())], schema=versions.DECISION_SCHEMA)
