"""Batches of the trainer from a pretraining set: ``python -m tests.bench.bench_batches``.

The set is one that is given, or Bio-ELECTRA's of the real text of BIOSHARDS_DATA.

1. Rows gathered in sampler order and collated without masking: end to end, and in constant shapes.
2. The same with tokens, words and n-grams masked.
3. Hugging Face's DataCollatorForLanguageModeling on the same rows as lists: single tokens, and whole words.

All run in turns in one process on one core.  Times are CPU seconds; padding is not counted as tokens.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

from bioshards.train.data.loader import collate_rows, compute_token_capacity
from bioshards.train.data.masking import MaskedRows, MaskingConfig, make_row_keys, mask_rows
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import FlatRows, PretrainingDataset
from bioshards.train.data.sampler import RowSampler
from tests.bench.harness import timing
from tests.bench.harness.bench_runner import ratios_by_round
from tests.bench.harness.text_corpora import build_pretraining_set
from tests.bench.harness.timing import MB, Figure

Int64Array = NDArray[np.int64]
COLLATOR: Final = "the library's collator"
COLLATED_BATCHES: Final = 40
"""Batches a round for the slower collator of the library."""


def make_unmasked(rows: FlatRows, _epochs: Int64Array, _row_ids: Int64Array) -> MaskedRows:
    """Convert rows to model inputs without masking."""
    none = np.zeros(0, np.int64)
    return MaskedRows(rows.ids.astype(np.int64), none, none, np.zeros(0, np.float32))


def measure_rate(steps: range, make_batch: Callable[[int], int]) -> float:
    """Measure millions of tokens a CPU second."""
    started = time.process_time()
    tokens = sum(make_batch(step) for step in steps)
    return tokens / MB / (time.process_time() - started)


def make_assembler(
    shards: PretrainingDataset,
    order: RowSampler,
    rows: int,
    mask: Callable[[FlatRows, Int64Array, Int64Array], MaskedRows],
    constant_tokens: int = 0,
) -> Callable[[int], int]:
    """Return a function that makes the batch of a step and returns its number of tokens."""

    def assemble_step(step: int) -> int:
        epochs, row_ids = order.get_rows(step * rows, rows)
        rows_of_step = shards.gather_rows(row_ids)
        masked = mask(rows_of_step, epochs, row_ids)
        pad_id = shards.special_ids["[PAD]"]
        collate_rows(rows_of_step, masked, pad_id, shards.max_seq_length, constant_tokens)
        return len(rows_of_step.ids)

    return assemble_step


def iter_maskings(
    shards: PretrainingDataset, pieces: PieceTable
) -> Iterator[tuple[str, Callable[[FlatRows, Int64Array, Int64Array], MaskedRows]]]:
    """Yield masking functions by name: ELECTRA's, BERT's of whole words, and ALBERT's."""
    bert = MaskingConfig(unit="word", mask_token_fraction=0.8, random_token_fraction=0.1)
    for name, masking in (
        ("tokens masked", MaskingConfig(unit="token", mask_token_fraction=0.85, random_token_fraction=0.0)),
        ("words masked", bert),
        ("n-grams masked", replace(bert, unit="ngram")),
    ):

        def masked(
            rows: FlatRows, epochs: Int64Array, row_ids: Int64Array, masking: MaskingConfig = masking
        ) -> MaskedRows:
            keys = make_row_keys(0, epochs, row_ids)
            return mask_rows(rows.ids, rows.offsets, keys, pieces, masking, shards.max_seq_length)

        yield name, masked


def make_collator(
    shards: PretrainingDataset,
    order: RowSampler,
    rows: int,
    vocabulary: str,
    pieces: PieceTable,
    whole_words: bool,
) -> tuple[range, Callable[[int], int]]:
    """Return the steps and the function of the library's collator; making its input lists is not timed.

    The lists have the mask of special tokens that it would else compute.  For whole words it needs offsets of
    tokens in the text, which are synthetic, and rows of one length, because it does not pad offsets.
    """
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_file=os.path.join(vocabulary, "tokenizer.json"),
        **{f"{name[1:-1].lower()}_token": name for name in shards.special_ids},
    )
    collate = DataCollatorForLanguageModeling(tokenizer, whole_word_mask=whole_words)
    batches, tokens = [], []
    for step in range(COLLATED_BATCHES):
        found = shards.gather_rows(order.get_rows(step * rows, rows)[1])
        tokens.append(len(found.ids))
        examples = []
        for ids in np.split(found.ids, found.offsets[1:-1]):
            if whole_words:
                ids = np.pad(
                    ids, (0, shards.max_seq_length - len(ids)), constant_values=shards.special_ids["[PAD]"]
                )
            example = {
                "input_ids": ids.tolist(),
                "special_tokens_mask": pieces.is_special[ids].astype(int).tolist(),
            }
            if whole_words:
                starts = np.arange(len(ids)) + np.cumsum(~pieces.is_continuation[ids])
                example["offset_mapping"] = np.stack((starts, starts + 1), axis=1).tolist()
            examples.append(example)
        batches.append(examples)

    def make(step: int) -> int:
        collate(batches[step])
        return tokens[step]

    return range(COLLATED_BATCHES), make


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_batches", description=__doc__)
    parser.add_argument("--data", help="a pretraining set; default: made of BIOSHARDS_DATA")
    parser.add_argument("--vocab", help="the folder of its vocabulary, if that is not where it was")
    parser.add_argument("--rows", type=int, default=256, help="of a batch (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=7, help="default: %(default)s")
    options = parser.parse_args()
    data, vocabulary = build_pretraining_set(options.data, options.vocab, Path("build/bench-text").resolve())
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    started = time.perf_counter()
    shards = PretrainingDataset(data)
    opened = time.perf_counter() - started
    order, rows = RowSampler(shards.block_sizes, 0), options.rows
    steps = range(max(1, min(shards.rows // rows, 20_000_000 // (rows * shards.max_seq_length))))
    token_capacity = compute_token_capacity(shards, rows)
    benchmarks: dict[str, tuple[range, Callable[[int], int]]] = {
        f"not masked, {name}": (
            steps,
            make_assembler(shards, order, rows, make_unmasked, constant_tokens),
        )
        for name, constant_tokens in (("end to end", 0), ("end to end, constant shapes", token_capacity))
    }
    goals: dict[str, tuple[float, float | None]] = {"not masked, end to end": (60, 100)}
    pieces = PieceTable.load(vocabulary, shards.vocabulary_size, shards.vocabulary_sha256)
    for name, masked in iter_maskings(shards, pieces):
        benchmarks[f"{name}, end to end"] = (steps, make_assembler(shards, order, rows, masked))
        goals[f"{name}, end to end"] = (15, None)
    for name, words in ((COLLATOR, False), (f"{COLLATOR}, whole words", True)):
        benchmarks[name] = make_collator(shards, order, rows, vocabulary, pieces, words)
    measured: dict[str, list[float]] = {name: [] for name in benchmarks}
    for turn in range(options.rounds + 1):
        for name, (steps_of_case, make) in benchmarks.items():
            measured_rate = measure_rate(steps_of_case, make)
            if turn:  # the first round maps the pages of the files
                measured[name].append(measured_rate)
                print(f"{name}: {measured_rate:.1f} million tokens/s", file=sys.stderr, flush=True)
    for name in ("not masked, end to end", "tokens masked, end to end"):
        measured[f"{name} / {COLLATOR}"] = ratios_by_round(measured[name], measured[COLLATOR])
    figures = [
        Figure(
            name,
            values,
            "×" if " / " in name else "million tokens/s",
            *((">=", *goals[name]) if name in goals else ()),
        )
        for name, values in measured.items()
    ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB
    print(
        f"{shards.rows:,} rows of {shards.max_seq_length}, {shards.tokens / shards.rows:.0f} tokens each; "
        "opened in "
        f"{opened * 1000:.1f} ms; batches of {rows} rows; one core; peak {peak:.0f} MB with mapped shards."
        f"\n\n{timing.format_table(figures)}"
    )


if __name__ == "__main__":
    main()
