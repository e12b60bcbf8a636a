"""Groups of document shards: the unit of building rows.

Articles by ranges of ids may be a thousand shards of two documents each.  BERT's pairs need other documents
to draw from, and a trainer needs few files, so consecutive small shards are grouped.  A group depends on the
shards of its directory only, and an unchanged group is built once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from bioshards.corpus.manifest import Shard
from bioshards.corpus.shards.input_dirs import DocumentsInput

MIN_GROUP_BYTES: Final = 16_000_000
"""Minimum bytes of a group, about 10,000 abstracts."""


class GroupShard(NamedTuple):
    """A shard of a group; ``number`` is its number over all groups, in order."""

    folder: str
    shard: Shard
    number: int
    overlap_lists: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """Consecutive shards of one directory.

    Attributes:
        name: 16 hexadecimal digits, a hash of the seed and of all content to read, so that names sort in
            random order.
        folder: the directory.
        shards: manifest entries of the shards.
        first_shard: number of the first of them over all groups, in order.
        overlap_lists: directories of full text that list abstracts of this one, with the SHA-256 of the
            lists.
    """

    name: str
    folder: str
    shards: tuple[Shard, ...]
    overlap_lists: tuple[tuple[str, str], ...]
    first_shard: int

    def list_shards(self) -> list[GroupShard]:
        """Return the shards, each with what is needed to read it alone."""
        numbered = enumerate(self.shards, self.first_shard)
        return [GroupShard(self.folder, shard, number, self.overlap_lists) for number, shard in numbered]


def group_shards(
    inputs: Iterable[DocumentsInput], seed: int, lists_by_folder: Mapping[str, Mapping[str, str]]
) -> Iterator[ShardGroup]:
    """Yield the shards of directories in groups.

    Args:
        lists_by_folder: overlap lists of each directory (document_filters.py).
    """
    first_shard = 0
    for documents in inputs:
        overlap_lists = tuple(sorted(lists_by_folder.get(documents.folder, {}).items()))
        for group in _split_by_size(documents.shards):
            yield _make_group(documents.folder, group, overlap_lists, seed, first_shard)
            first_shard += len(group)


def _split_by_size(shards: Iterable[Shard]) -> list[list[Shard]]:
    """Split consecutive shards into groups of sufficient size; a small rest joins the last group."""
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
    folder: str,
    shards: list[Shard],
    overlap_lists: tuple[tuple[str, str], ...],
    seed: int,
    first_shard: int,
) -> ShardGroup:
    digests = sorted(digest for _, digest in overlap_lists)
    name_source = " ".join([str(seed), *(shard.sha256 for shard in shards), *digests])
    return ShardGroup(
        hashlib.sha256(name_source.encode()).hexdigest()[:16],
        folder,
        tuple(shards),
        overlap_lists,
        first_shard,
    )
