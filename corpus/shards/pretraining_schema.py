"""Schema of the shards of a pretraining set.

vocab/pretraining/ writes them and the trainer memory-maps them.  A row is a sequence of unmasked token ids:
the trainer masks them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa

PIPELINE: Final = "shards_to_pretraining"
BATCH_ROWS: Final = 2048
"""Rows in a record batch: 1 MB at 256 tokens; a shard of 100 million rows opens within a second."""
NO_LABEL: Final = -100
"""Label of a row without a pair of segments; the default ``ignore_index`` of PyTorch's losses."""
_METADATA_KEY: Final = b"bioshards"


def make_schema(vocabulary_size: int, has_labels: bool, metadata: Mapping[str, Any]) -> pa.Schema:
    """Build the schema of a shard.

    ``input_ids``: [CLS], segment A, [SEP] and, if present, segment B, [SEP]; without padding.
    ``split``: offset of segment B in ``input_ids``; 0 without segment B.
    ``label``: 0 if segment B follows segment A; 1 if it is a random text (next-sentence prediction) or the
    segments are swapped (sentence-order prediction); :data:`NO_LABEL` without a pair.

    Args:
        vocabulary_size: token ids are uint16 up to 65,536 entries, uint32 above.
        has_labels: True if the objective has a label.
        metadata: facts about all rows as JSON values, for :func:`metadata_from_schema`.
    """
    ids = pa.uint16() if vocabulary_size <= 1 << 16 else pa.uint32()
    fields = [
        pa.field("input_ids", pa.list_(ids), nullable=False),
        pa.field("split", pa.uint16(), nullable=False),
        *([pa.field("label", pa.int8(), nullable=False)] if has_labels else []),
    ]
    return pa.schema(fields, {_METADATA_KEY: json.dumps(dict(metadata), sort_keys=True).encode()})


def metadata_from_schema(shard_schema: pa.Schema) -> dict[str, Any]:
    """Return the facts about all rows that :func:`make_schema` stored in a schema.

    Raises:
        ValueError: the schema is not that of a pretraining set.
    """
    try:
        metadata: dict[str, Any] = json.loads(shard_schema.metadata[_METADATA_KEY])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError("its schema lacks the metadata of a pretraining set") from error
    return metadata
