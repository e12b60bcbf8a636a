"""Join the ids of chunks into the ids of texts in Arrow, looking up each distinct chunk once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def join_chunk_ids(texts: pa.Array, encode_chunks: Callable[[list[str]], list[bytes]]) -> pa.Array:
    """Return the concatenated ids of the chunks of each text.

    Args:
        texts: array of strings; chunks are the parts between blanks, empty ones included.
        encode_chunks: called once with all distinct chunks.

    Returns:
        large_binary array of the same length; the value of a null text is empty.
    """
    chunks = pc.split_pattern(texts, " ")
    distinct = chunks.flatten().dictionary_encode()
    encoded = encode_chunks(distinct.dictionary.to_pylist())
    _, offsets_buffer, data = pa.array(encoded, pa.large_binary()).take(distinct.indices).buffers()
    text_offsets = np.frombuffer(offsets_buffer, np.int64)[chunks.offsets.to_numpy()]
    return pa.Array.from_buffers(pa.large_binary(), len(texts), [None, pa.py_buffer(text_offsets), data])
