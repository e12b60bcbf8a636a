"""What one call makes examples of: a shard of documents, or several small ones in a row.

Articles by ranges of ids may be a thousand shards of two documents each.  BERT's pairs need other
documents to choose from, and a trainer needs few files, so small shards are taken together until they are
large enough. What a portion is depends on the shards of its directory only, and one that has not changed
is not made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from bioshards.corpus.shards.arrow_io import Shard
from bioshards.corpus.shards.input_dirs import DocumentsInput

MIN_GROUP_BYTES: Final = 16_000_000
"""Bytes of shards that are enough for a portion: some 10,000 abstracts."""


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """Shards of one directory.

    Attributes:
        name: 16 hexadecimal digits: a hash of the seed and of all that is to be read, so that the names'
            order is a random one.
        listed_by: folders of full text that list abstracts of this directory, with their lists' SHA-256.
    """

    name: str
    folder: str
    shards: tuple[Shard, ...]
    overlap_lists: tuple[tuple[str, str], ...]


def group_shards(
    inputs: Iterable[DocumentsInput], seed: int, lists_by_folder: Mapping[str, Mapping[str, str]]
) -> Iterator[ShardGroup]:
    """The shards of directories, those that follow one another taken together until they are enough.

    Args:
        lists_by_folder: of abstracts that are held in full (overlap_filter.py).
    """
    for documents in inputs:
        overlap_lists = tuple(sorted(lists_by_folder.get(documents.folder, {}).items()))
        for group in _split_by_size(documents.shards):
            yield _make_group(documents.folder, group, overlap_lists, seed)


def _split_by_size(shards: Iterable[Shard]) -> list[list[Shard]]:
    """Shards in a row that are enough together; what is too little at the end joins the last."""
    groups: list[list[Shard]] = [[]]
    for shard in shards:
        if _total_bytes(groups[-1]) >= MIN_GROUP_BYTES:
            groups.append([])
        groups[-1].append(shard)
    if len(groups) > 1 and _total_bytes(groups[-1]) < MIN_GROUP_BYTES // 2:
        remainder = groups.pop()
        groups[-1] += remainder
    return [group for group in groups if group]


def _total_bytes(shards: Iterable[Shard]) -> int:
    return sum(shard.bytes for shard in shards)


def _make_group(
    folder: str, shards: list[Shard], overlap_lists: tuple[tuple[str, str], ...], seed: int
) -> ShardGroup:
    digests = sorted(digest for _, digest in overlap_lists)
    name_source = " ".join([str(seed), *(shard.sha256 for shard in shards), *digests])
    return ShardGroup(
        hashlib.sha256(name_source.encode()).hexdigest()[:16], folder, tuple(shards), overlap_lists
    )
