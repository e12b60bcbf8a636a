"""Google's own builders of examples, from a checkout of their repositories, for benchmarks.

They are no part of this repository.  TensorFlow, which they import, has a stand-in here: what they ask of it
on the way from text to examples is to open a file and to hold lists.  That only makes them faster.
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
from unittest.mock import MagicMock

import numpy as np

from bioshards.vocab.encode import EncodedBatch

Documents = Sequence[Sequence[str]]
"""Sentences of documents."""


def _install_fake_tensorflow(checkout: str, **names: Any) -> None:
    """Let ``import tensorflow`` and the checkout's own modules be found."""
    for name in ("tensorflow", "tensorflow.compat", "tensorflow.compat.v1"):
        module = sys.modules[name] = ModuleType(name)
        vars(module).update(names)
    sys.modules["tensorflow.compat"].v1 = sys.modules["tensorflow.compat.v1"]  # type: ignore[attr-defined]
    sys.path.insert(0, checkout)


def build_electra_rows(
    checkout: str, vocabulary: str, lower_case: bool, length: int, documents: Documents
) -> tuple[dict[str, Any], list[list[int]]]:
    """``ExampleBuilder`` of google-research/electra over documents.

    Returns:
        What it took and made, and the ids of each line.
    """
    example_types = SimpleNamespace(Example=dict, Features=dict, Feature=dict, Int64List=dict)
    _install_fake_tensorflow(
        checkout, train=example_types, io=SimpleNamespace(gfile=SimpleNamespace(GFile=builtins.open))
    )
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
    rows_found = [example for line in text if (example := builder.add_line(line))]
    seconds = time.process_time() - started
    tokens = sum(sum(one["features"]["feature"]["input_mask"]["int64_list"]["value"]) for one in rows_found)
    return {"cpu": [seconds], "rows": len(rows_found), "tokens": tokens}, lines


def build_bert_rows(checkout: str, length: int, short: float, documents: Sequence[Any]) -> dict[str, Any]:
    """``create_instances_from_document`` of google-research/bert, without its masking, one pass.

    Args:
        documents: of each document the pieces of each of its sentences, in lists of lists.
    """
    _install_fake_tensorflow(checkout, flags=MagicMock())
    peer_module: Any = importlib.import_module("create_pretraining_data")
    peer_module.create_masked_lm_predictions = lambda tokens, *_: (tokens, [], [])
    rng = random.Random(0)
    rows = tokens = 0
    started = time.process_time()
    for number in range(len(documents)):
        for row in peer_module.create_instances_from_document(
            documents, number, length, short, 0.15, 20, [], rng
        ):
            rows += 1
            tokens += len(row.tokens)
    return {"cpu": [time.process_time() - started], "rows": rows, "tokens": tokens}


def count_differing_lines(lines: Sequence[Sequence[int]], ours: EncodedBatch) -> int:
    """How many lines have other ids than ours; those without any, of which both have some, are left out."""
    starts, stops = ours.offsets[:-1], ours.offsets[1:]
    non_empty = stops > starts
    places = zip(starts[non_empty].tolist(), stops[non_empty].tolist(), strict=True)
    pairs = zip((line for line in lines if line), places, strict=True)
    return sum(not np.array_equal(line, ours.ids[start:stop]) for line, (start, stop) in pairs)
