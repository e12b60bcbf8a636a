"""Batches of the trainer from a pretraining set: ``python -m tests.bench.bench_batches [SET]``.

Rows of Bio-ELECTRA's set of the real text of BIOSHARDS_DATA, or of a set that is given, are gathered in the
order of the sampler and collated: not masked, and with tokens, words and n-grams masked.  Hugging Face's
DataCollatorForLanguageModeling masks tokens of the same rows as lists, which are not timed.

All run in turns in one process on one core.  Times are CPU seconds; padding is not counted as tokens.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerFast

from bioshards.train.data.loader import collate_rows
from bioshards.train.data.masking import MaskedRows, MaskingConfig, make_row_keys, mask_rows
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import FlatRows, PretrainingDataset, manifest_of
from bioshards.train.data.sampler import RowSampler
from tests.bench.harness.text_corpora import WORK, build_document_dirs, build_vocabulary, run_python
from tests.bench.harness.timing import MB, PIPELINE, Figure, print_table, ratios_by_round

Int64Array = NDArray[np.int64]
Mask = Callable[[FlatRows, Int64Array, Int64Array], MaskedRows]
WORDS: Final = MaskingConfig(unit="word", mask_token_fraction=0.8, random_token_fraction=0.1)
MASKINGS: Final = {
    "tokens masked": MaskingConfig(unit="token", mask_token_fraction=0.85, random_token_fraction=0.0),
    "words masked": WORDS,
    "n-grams masked": replace(WORDS, unit="ngram"),
}
"""ELECTRA's, BERT's of whole words, and ALBERT's."""
COLLATOR: Final = "Hugging Face's collator"
COLLATED_BATCHES: Final = 40
"""Batches a round for the slower collator of the library."""


class BatchBench:
    """A pretraining set and the functions that make its batches, by the number of a step."""

    def __init__(self, folder: str, rows: int) -> None:
        self.shards, self.rows = PretrainingDataset(folder), rows
        self.vocabulary = manifest_of(folder).run.vocabulary
        self.pieces = PieceTable.load(
            self.vocabulary, self.shards.vocabulary_size, self.shards.vocabulary_sha256
        )
        self._order = RowSampler(self.shards.block_sizes, 0)

    def leave_unmasked(self, rows: FlatRows, _epochs: Int64Array, _row_ids: Int64Array) -> MaskedRows:
        """Convert rows to model inputs without masking."""
        none = np.zeros(0, np.int64)
        return MaskedRows(rows.ids.astype(np.int64), none, none, np.zeros(0, np.float32))

    def make_mask(self, masking: MaskingConfig) -> Mask:
        """Return a function that masks rows."""

        def mask(rows: FlatRows, epochs: Int64Array, row_ids: Int64Array) -> MaskedRows:
            keys = make_row_keys(0, epochs, row_ids)
            length = self.shards.max_seq_length
            return mask_rows(rows.ids, rows.offsets, keys, self.pieces, masking, length)

        return mask

    def make_assembler(self, mask: Mask) -> Callable[[int], int]:
        """Return a function that makes the batch of a step and returns its number of tokens."""

        def assemble_step(step: int) -> int:
            epochs, row_ids = self._order.get_rows(step * self.rows, self.rows)
            found = self.shards.gather_rows(row_ids)
            masked = mask(found, epochs, row_ids)
            collate_rows(found, masked, self.shards.special_ids["[PAD]"], self.shards.max_seq_length, 0)
            return len(found.ids)

        return assemble_step

    def make_collator(self) -> Callable[[int], int]:
        """Return the function of the library's collator, whose lists have the mask of special tokens."""
        tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
            tokenizer_file=os.path.join(self.vocabulary, "tokenizer.json"),
            **{f"{name[1:-1].lower()}_token": name for name in self.shards.special_ids},
        )
        collate = DataCollatorForLanguageModeling(tokenizer)
        batches, tokens = [], []
        for step in range(COLLATED_BATCHES):
            found = self.shards.gather_rows(self._order.get_rows(step * self.rows, self.rows)[1])
            tokens.append(len(found.ids))
            batches.append(
                [
                    {
                        "input_ids": ids.tolist(),
                        "special_tokens_mask": self.pieces.is_special[ids].astype(int).tolist(),
                    }
                    for ids in np.split(found.ids, found.offsets[1:-1])
                ]
            )

        def collate_step(step: int) -> int:
            collate(batches[step])
            return tokens[step]

        return collate_step


def measure_rate(steps: int, make_batch: Callable[[int], int]) -> float:
    """Measure millions of tokens a CPU second."""
    started = time.process_time()
    tokens = sum(map(make_batch, range(steps)))
    return tokens / MB / (time.process_time() - started)


def build_pretraining_set() -> str:
    """Build Bio-ELECTRA's set of the real text, if not there yet."""
    folders, output = build_document_dirs([]), str(WORK / "examples")
    inputs = [word for folder in folders for word in ("--input", folder)]
    options = ("--preset", "bio-electra", "--vocab", build_vocabulary(folders), "--output", output)
    run_python(*PIPELINE, "shards_to_pretraining", *inputs, *options)
    return output


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_batches", description=__doc__)
    parser.add_argument("data", nargs="?", type=Path, help="a pretraining set; default: of BIOSHARDS_DATA")
    parser.add_argument("--rows", type=int, default=256, help="of a batch (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    bench = BatchBench(str(options.data or build_pretraining_set()), options.rows)
    shards, rows = bench.shards, options.rows
    steps = max(1, min(shards.rows // rows, 20_000_000 // (rows * shards.max_seq_length)))
    cases = {"not masked": (steps, bench.make_assembler(bench.leave_unmasked))}
    for name, masking in MASKINGS.items():
        cases[name] = (steps, bench.make_assembler(bench.make_mask(masking)))
    cases[COLLATOR] = (COLLATED_BATCHES, bench.make_collator())
    rates: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(options.rounds + 1):
        for name, (steps_of_case, make_batch) in cases.items():
            rate = measure_rate(steps_of_case, make_batch)
            if turn:  # the first round maps the pages of the files
                rates[name].append(rate)
    bars = {"not masked": (60, 100), **dict.fromkeys(MASKINGS, (15,))}
    figures = [
        Figure(name, values, "million tokens/s", at_least=bars.get(name, ()))
        for name, values in rates.items()
    ]
    for name in MASKINGS:
        ratios = ratios_by_round(rates[name], rates[COLLATOR])
        figures.append(Figure(f"**{name} / {COLLATOR}**", ratios, "×"))
    tokens = shards.tokens / shards.rows
    print_table(f"Batches of {rows} of {shards.rows:,} rows, {tokens:.0f} tokens each, one core;", figures)


if __name__ == "__main__":
    main()
