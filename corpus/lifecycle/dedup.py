"""Exact deduplication of documents, across all sources.

Documents are duplicates if the letters and digits of their titles and abstracts are equal; 128-bit digests
are compared.  Near duplicates are kept.

The document with the lowest PMID or PMCID is kept.  The position of a record is no criterion, because a
revision moves it to a later file, which would change decisions without a change of text.

Documents without an abstract are not compared: titles such as "Editorial." are shared by many articles.
"""

from __future__ import annotations

import hashlib
import re
import string
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.lifecycle import versions
from bioshards.corpus.lifecycle.versions import TableReader
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

TEXT_DIGEST_SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("digest", pa.binary(16), nullable=False),
    ]
)
"""A document to compare, in the order of the source."""

_ASCII_TO_DELETE: Final = bytes(set(range(128)) - set((string.ascii_lowercase + string.digits).encode()))
"""ASCII characters except lower-case letters and digits."""
_NON_ALPHANUMERIC: Final = re.compile(r"[\W_]+")


def digest_text(title: str, abstract: Iterable[str]) -> bytes | None:
    """Compute a 128-bit digest of the letters and digits of a text.

    Case, white space, punctuation, compatibility forms (NFKC: a subscript 2 is a 2) and the division into
    sentences and sections make no difference.

    Args:
        title: title, may be empty.
        abstract: texts of the abstract, in order.

    Returns:
        The digest; None if the abstract has no letter or digit, so that the document is not compared.
    """
    text = _normalise(" ".join(abstract))
    if not text:
        return None
    return hashlib.blake2b(_normalise(title) + b"\n" + text, digest_size=16).digest()


def find_duplicates(
    storage: Storage, readers: Sequence[TableReader], bucket: int, num_buckets: int
) -> Iterator[pa.RecordBatch]:
    """Yield the duplicates of a bucket: a batch of :data:`~.versions.DECISION_SCHEMA` per source, in order.

    Args:
        readers: read :data:`TEXT_DIGEST_SCHEMA` of the surviving documents of each source, in the order of
            application.
        bucket: number of the range of digests.
        num_buckets: number of equal ranges of digests.
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
        digests = versions.concat_with_source(prefetch_map(storage, read_bucket, readers))
        yield from versions.split_by_source(_select_duplicates(digests), len(readers))


def _normalise(text: str) -> bytes:
    if text.isascii():
        return text.lower().encode().translate(None, _ASCII_TO_DELETE)
    # NFKC before casefold, as compatibility forms contain capitals (℃), and after, as casefold decomposes.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # Deleting ASCII characters first halves the time.
    reduced = folded.encode().translate(None, _ASCII_TO_DELETE).decode()
    return _NON_ALPHANUMERIC.sub("", reduced).encode()


def _select_duplicates(table: pa.Table) -> pa.Table:
    """Find the documents that duplicate one of a lower key, as rows for :func:`.versions.split_by_source`."""
    table = table.sort_by([("digest", "ascending"), ("key", "ascending")])
    digests, ids = table["digest"].combine_chunks(), table["id"].combine_chunks()
    is_duplicate = pc.equal(digests.slice(0, max(0, len(digests) - 1)), digests.slice(1))
    is_first = pa.concat_arrays([pa.array([True]), pc.invert(is_duplicate)]).slice(0, len(digests))
    originals = pc.fill_null_forward(pc.if_else(is_first, ids, None)).filter(pc.invert(is_first))
    rows = table.filter(pc.invert(is_first)).select(["source", "position"])
    reason = pa.scalar(versions.DECISION_REASONS.index("duplicate").as_py(), pa.int8())
    rows = rows.append_column("reason", pa.repeat(reason, rows.num_rows))
    return rows.append_column("duplicate_of", originals)
