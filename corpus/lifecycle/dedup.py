"""Decide across files which documents repeat another's text: digests in, verdicts out.

PubMed has articles twice, under two PMIDs, and a language model learns what it reads twice by heart.
Two documents are the same here if their titles and abstracts are the same letters and digits: digests
are compared, so no text is kept for it, and nothing is said of texts that are only much alike.

Of documents with one digest the one of the lowest PMID or PMCID stays.  That never changes, whereas the
place of a record does: were the first record in the order of files to stay, a revision of it would make it
the last one, and an update that changes no text would turn the verdicts around.

A document without an abstract is not compared: "Editorial." is thousands of different articles.
"""

from __future__ import annotations

import hashlib
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from . import versions
from .versions import TableReader

TEXT_DIGEST_SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("digest", pa.binary(16), nullable=False),
    ]
)
"""One row a document to compare, in the order of the file."""

_ASCII_TO_DELETE: Final = bytes(set(range(128)) - set((string.ascii_lowercase + string.digits).encode()))
"""ASCII without the small letters and the digits."""
_NON_ALPHANUMERIC: Final = re.compile(r"[\W_]+")


def digest_text(title: str, abstract: Iterable[str]) -> bytes | None:
    """128 bits that are the same for texts of the same letters and digits.

    Case, spacing, punctuation, markup and ways to write a character (NFKC: a subscript 2 is a 2) make no
    difference, nor does where the abstract is cut into sentences or sections.

    Args:
        title: may be empty: then only abstracts without a title have the same digest.
        abstract: its texts in order.

    Returns:
        None where the abstract has no letter and no digit: such documents are not to be compared.
    """
    text = _normalise(" ".join(abstract))
    if not text:
        return None
    return hashlib.blake2b(_normalise(title) + b"\n" + text, digest_size=16).digest()


def find_duplicates(
    readers: Sequence[TableReader],
    bucket: int,
    num_buckets: int,
    map_fn: Callable[[Callable[[TableReader], pa.Table], Sequence[TableReader]], Iterable[pa.Table]] = map,
) -> Iterator[pa.RecordBatch]:
    """The verdicts on one bucket's documents: one batch of lifecycle.VERDICTS per source, in order.

    Args:
        readers: how to read each source's :data:`DIGESTS`, only those of documents that live, so that a
            number is there once; in the order in which the sources are applied.
        bucket: the digests of this one of ``num_buckets`` equal ranges are decided.
        map_fn: as in lifecycle.decide.
    """
    lowest = pa.scalar(((bucket << 128) // num_buckets).to_bytes(16), TEXT_DIGEST_SCHEMA.field("digest").type)
    highest = pa.scalar(
        (((bucket + 1) << 128) // num_buckets - 1).to_bytes(16), TEXT_DIGEST_SCHEMA.field("digest").type
    )

    def read_bucket(reader: TableReader) -> pa.Table:
        digests = reader()
        is_in_bucket = pc.and_(
            pc.greater_equal(digests["digest"], lowest), pc.less_equal(digests["digest"], highest)
        )
        return digests.filter(is_in_bucket)

    if readers:
        duplicates = _select_duplicates(versions.concat_with_source(map_fn(read_bucket, readers)))
        yield from versions.split_by_source(duplicates, len(readers))


def _normalise(text: str) -> bytes:
    if text.isascii():
        return text.lower().encode().translate(None, _ASCII_TO_DELETE)
    # Compatibility forms first, as some hide capitals (℃), and once more, as casefold takes letters apart.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    reduced = (
        folded.encode().translate(None, _ASCII_TO_DELETE).decode()
    )  # halves the time, as most that goes is ASCII
    return _NON_ALPHANUMERIC.sub("", reduced).encode()


def _select_duplicates(table: pa.Table) -> pa.Table:
    """The documents that repeat one of a lower number, as lifecycle.by_source takes them."""
    table = table.sort_by([("digest", "ascending"), ("key", "ascending")])
    digests, ids = table["digest"].combine_chunks(), table["id"].combine_chunks()
    is_duplicate = pc.equal(digests.slice(0, max(0, len(digests) - 1)), digests.slice(1))
    is_first = pa.concat_arrays([pa.array([True]), pc.invert(is_duplicate)]).slice(0, len(digests))
    originals = pc.fill_null_forward(pc.if_else(is_first, ids, None)).filter(pc.invert(is_first))
    rows = table.filter(pc.invert(is_first)).select(["source", "position"])
    reason = pa.scalar(versions.DECISION_REASONS.index("duplicate").as_py(), pa.int8())
    rows = rows.append_column("reason", pa.repeat(reason, rows.num_rows))
    return rows.append_column("duplicate_of", originals)
