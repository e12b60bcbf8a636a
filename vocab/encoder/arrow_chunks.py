"""A text's ids from those of its parts; each distinct part is looked up once, and Arrow does the rest."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def join_chunk_ids(texts: pa.Array, encode_chunks: Callable[[list[str]], list[bytes]]) -> pa.Array:
    """For each text the ids of its parts in a row.

    Args:
        texts: an array of strings; parts are what stands between their blanks, the empty ones too.
        encode_chunks: asked once, for all distinct parts.

    Returns:
        As many large_binary values; where a text is null, an empty one.
    """
    chunks = pc.split_pattern(texts, " ")
    distinct = chunks.flatten().dictionary_encode()
    encoded = encode_chunks(distinct.dictionary.to_pylist())
    _, offsets_buffer, data = pa.array(encoded, pa.large_binary()).take(distinct.indices).buffers()
    text_offsets = np.frombuffer(offsets_buffer, np.int64)[chunks.offsets.to_numpy()]
    return pa.Array.from_buffers(pa.large_binary(), len(texts), [None, pa.py_buffer(text_offsets), data])
