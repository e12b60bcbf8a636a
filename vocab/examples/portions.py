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

from bioshards.corpus.shards import Shard
from bioshards.vocab.inputs import Documents

ENOUGH: Final = 16_000_000
"""Bytes of shards that are enough for a portion: some 10,000 abstracts."""


@dataclass(frozen=True, slots=True)
class Portion:
    """Shards of one directory.

    Attributes:
        name: 16 hexadecimal digits: a hash of the seed and of all that is to be read, so that the names'
            order is a random one.
        listed_by: folders of full text that list abstracts of this directory, with their lists' SHA-256.
    """

    name: str
    folder: str
    shards: tuple[Shard, ...]
    listed_by: tuple[tuple[str, str], ...]


def portions(
    inputs: Iterable[Documents], seed: int, lists: Mapping[str, Mapping[str, str]]
) -> Iterator[Portion]:
    """The shards of directories, those that follow one another taken together until they are enough.

    Args:
        lists: of abstracts that are held in full (held_in_full.py).
    """
    for documents in inputs:
        listed_by = tuple(sorted(lists.get(documents.folder, {}).items()))
        for shards in _together(documents.shards):
            yield _portion(documents.folder, shards, listed_by, seed)


def _together(shards: Iterable[Shard]) -> list[list[Shard]]:
    """Shards in a row that are enough together; what is too little at the end joins the last."""
    found: list[list[Shard]] = [[]]
    for shard in shards:
        if _size(found[-1]) >= ENOUGH:
            found.append([])
        found[-1].append(shard)
    if len(found) > 1 and _size(found[-1]) < ENOUGH // 2:
        rest = found.pop()
        found[-1] += rest
    return [some for some in found if some]


def _size(shards: Iterable[Shard]) -> int:
    return sum(shard.bytes for shard in shards)


def _portion(folder: str, shards: list[Shard], listed_by: tuple[tuple[str, str], ...], seed: int) -> Portion:
    digests = sorted(digest for _, digest in listed_by)
    text = " ".join([str(seed), *(shard.sha256 for shard in shards), *digests])
    return Portion(hashlib.sha256(text.encode()).hexdigest()[:16], folder, tuple(shards), listed_by)
