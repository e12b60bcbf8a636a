"""A pretraining set's shards: what every row of them holds, and what their schema says of all rows.

``vocab/examples`` writes them, and the trainer maps them into its memory.  A row is a sequence of token ids,
not masked: masking belongs to the trainer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

PIPELINE: Final = "shards_to_pretraining"
BATCH_ROWS: Final = 2048
"""Rows a record batch: 1 MB at a length of 256, and a shard of 100 million rows is opened in a second."""
LABELLED_OBJECTIVES: Final = ("bert", "albert")
"""The objectives whose rows have a label."""
NO_LABEL: Final = -100
"""The label of a row that has no pair to judge; PyTorch's losses leave it out (``ignore_index``)."""
_METADATA_KEY: Final = b"bioshards"

SPAN_TYPE: Final = pa.struct(
    [
        pa.field("document", pa.string(), nullable=False),
        pa.field("start", pa.uint16(), nullable=False),
        pa.field("first_sentence", pa.int32(), nullable=False),
        pa.field("end_sentence", pa.int32(), nullable=False),
    ]
)
"""Where a part of a row comes from: the text that begins at ``input_ids[start]`` is of the sentences from
``first_sentence`` to before ``end_sentence`` of the document of this id."""


def make_schema(vocabulary_size: int, has_labels: bool, metadata: Mapping[str, Any]) -> pa.Schema:
    """The schema of a shard.

    ``input_ids``: [CLS], segment A, [SEP] and, where there is one, segment B, [SEP]; not padded.
    ``split``: where in them segment B starts; 0 where there is none.
    ``label``: 1 where segment B is not the text that follows segment A (next-sentence prediction), or where
    the two have changed places (sentence-order prediction); 0 where they are in order; :data:`NO_LABEL`.
    ``spans``: where the text comes from (:data:`SPAN`), in the order of the text in ``input_ids``.

    Args:
        vocabulary_size: ids are uint16 up to 65,536 entries, uint32 above.
        labelled: has the objective a label?
        metadata: what is true of all rows, for :func:`facts_of`: JSON.
    """
    ids = pa.uint16() if vocabulary_size <= 1 << 16 else pa.uint32()
    fields = [
        pa.field("input_ids", pa.list_(ids), nullable=False),
        pa.field("split", pa.uint16(), nullable=False),
        *([pa.field("label", pa.int8(), nullable=False)] if has_labels else []),
        pa.field("spans", pa.list_(SPAN_TYPE), nullable=False),
    ]
    return pa.schema(fields, {_METADATA_KEY: json.dumps(dict(metadata), sort_keys=True).encode()})


def metadata_from_schema(shard_schema: pa.Schema) -> dict[str, Any]:
    """What a shard's schema says of its rows.

    Raises:
        ValueError: it is no schema of a pretraining set.
    """
    try:
        metadata: dict[str, Any] = json.loads(shard_schema.metadata[_METADATA_KEY])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("its schema does not say what a pretraining set's says") from error
    return metadata
