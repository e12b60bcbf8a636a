"""What one call makes examples of: a shard of documents, or several small ones in a row.

Articles by ranges of ids may be a thousand shards of two documents each.  BERT's pairs need other
documents to choose from, and a trainer needs few files, so small shards are taken together until they are
large enough. What a portion is depends on the shards of its directory only, and one that has not changed
is not made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
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
        name: 16 hexadecimal digits: a hash of the seed and of what the shards hold, so that the names' order
            is a random one.
    """

    name: str
    folder: str
    shards: tuple[Shard, ...]


def portions(inputs: Iterable[Documents], seed: int) -> Iterator[Portion]:
    """The shards of directories, those that follow one another taken together until they are enough."""
    for documents in inputs:
        waiting: list[Shard] = []
        for shard in documents.shards:
            waiting.append(shard)
            if sum(one.bytes for one in waiting) >= ENOUGH:
                yield _portion(documents.folder, waiting, seed)
                waiting = []
        if waiting:
            yield _portion(documents.folder, waiting, seed)


def _portion(folder: str, shards: list[Shard], seed: int) -> Portion:
    text = " ".join([str(seed), *(shard.sha256 for shard in shards)])
    return Portion(hashlib.sha256(text.encode()).hexdigest()[:16], folder, tuple(shards))
