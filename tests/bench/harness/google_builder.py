"""Google's own builder of ELECTRA examples, from a checkout of its repository.

TensorFlow, which it imports, has a stand-in here: what the builder asks of it on the way from text to
examples is to open a file and to hold lists.  That only makes it faster.
"""

from __future__ import annotations

import builtins
import importlib
import random
import sys
import time
from collections.abc import Sequence
from types import ModuleType, SimpleNamespace
from typing import Any


def build_electra_rows(
    checkout: str, vocabulary: str, lower_case: bool, length: int, documents: Sequence[Sequence[str]]
) -> tuple[dict[str, Any], list[list[int]]]:
    """Run the ``ExampleBuilder`` of google-research/electra over the sentences of documents.

    Returns:
        What it took and made, and the ids of each line.
    """
    names = {
        "train": SimpleNamespace(Example=dict, Features=dict, Feature=dict, Int64List=dict),
        "io": SimpleNamespace(gfile=SimpleNamespace(GFile=builtins.open)),
    }
    for name in ("tensorflow", "tensorflow.compat", "tensorflow.compat.v1"):
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(names)
    sys.modules["tensorflow.compat"].v1 = sys.modules["tensorflow.compat.v1"]  # type: ignore[attr-defined]
    sys.path.insert(0, checkout)
    peer_module = importlib.import_module("build_pretraining_dataset")
    tokenizer = peer_module.tokenization.FullTokenizer(vocabulary, lower_case)
    lines: list[list[int]] = []
    original_convert = tokenizer.convert_tokens_to_ids

    def record_ids(pieces: list[str]) -> list[int]:
        ids: list[int] = original_convert(pieces)
        lines.append(ids)
        return ids

    tokenizer.convert_tokens_to_ids = record_ids
    builder = peer_module.ExampleBuilder(tokenizer, length)
    random.seed(0)
    text = [line for sentences in documents for line in (*sentences, "")]
    started = time.process_time()
    rows = [example for line in text if (example := builder.add_line(line))]
    seconds = time.process_time() - started
    tokens = sum(sum(row["features"]["feature"]["input_mask"]["int64_list"]["value"]) for row in rows)
    return {"cpu": seconds, "rows": len(rows), "tokens": tokens}, lines
