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

from ..inputs import Documents

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
        waiting: list[Shard] = []
        for shard in documents.shards:
            waiting.append(shard)
            if sum(one.bytes for one in waiting) >= ENOUGH:
                yield _portion(documents.folder, waiting, listed_by, seed)
                waiting = []
        if waiting:
            yield _portion(documents.folder, waiting, listed_by, seed)


def _portion(folder: str, shards: list[Shard], listed_by: tuple[tuple[str, str], ...], seed: int) -> Portion:
    digests = sorted(digest for _, digest in listed_by)
    text = " ".join([str(seed), *(shard.sha256 for shard in shards), *digests])
    return Portion(hashlib.sha256(text.encode()).hexdigest()[:16], folder, tuple(shards), listed_by)
