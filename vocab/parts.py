"""A text's ids from those of its parts; each distinct part is looked up once, and Arrow does the rest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def joined(texts: pa.Array, ids_of: Callable[[list[str]], list[bytes]]) -> pa.Array:
    """For each text the ids of its parts in a row.

    Args:
        texts: an array of strings; parts are what stands between their blanks, the empty ones too.
        ids_of: asked once, for all distinct parts.

    Returns:
        As many large_binary values; where a text is null, an empty one.
    """
    parts = pc.split_pattern(texts, " ")
    distinct = parts.flatten().dictionary_encode()
    found = ids_of(distinct.dictionary.to_pylist())
    _, places, data = pa.array(found, pa.large_binary()).take(distinct.indices).buffers()
    ends = np.frombuffer(places, np.int64)[parts.offsets.to_numpy()]
    return pa.Array.from_buffers(pa.large_binary(), len(texts), [None, pa.py_buffer(ends), data])
