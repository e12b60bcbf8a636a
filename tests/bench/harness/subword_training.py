"""One training of subwords, timed by bench_vocab_training.py:
``python -m tests.bench.harness.subword_training read|bpe|unigram|wordpiece WORDS``.

``sentencepiece-unigram`` is SentencePiece on its own, on the counts or, with
``--text``, on the text.  The last line printed is the number of pieces a word, or for ``wordpiece`` the
number of occurrences.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Final

import sentencepiece

from bioshards.vocab.training.subword_trainers import (
    train_bpe_wordpieces,
    train_unigram,
    train_wordpieces,
)

SIZE: Final = 30_000
"""Pieces of a vocabulary."""
OCCURRENCES: Final = 100_000_000
"""Occurrences to which a list is scaled for the WordPiece trainer, which reads each of them."""
MAX_PIECE_LENGTH: Final = 32
WAYS: Final = (
    "read",
    "bpe",
    "unigram",
    "wordpiece",
    "sentencepiece-unigram",
)


def read_words(path: Path) -> dict[str, int]:
    """Read lines of a word, a tab and its count."""
    with open(path, encoding="utf-8", newline="\n") as file:
        pairs = (line.rstrip("\n").split("\t") for line in file)
        return {word: int(count) for word, count in pairs}


def train_with_library(path: Path, words: dict[str, int], text: bool) -> bytes:
    """Train with SentencePiece alone; its character_coverage would lose the rarest characters."""
    model = io.BytesIO()
    with open(path, encoding="utf-8", newline="\n") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line.rstrip("\n") for line in file),
            input_format="text" if text else "tsv",
            model_writer=model,
            model_type="unigram",
            vocab_size=SIZE,
            normalization_rule_name="identity",
            character_coverage=1.0,
            num_threads=16,
            required_chars="".join(sorted(set("".join(words)) - {*"\u2581\u2585"})),
            max_sentence_length=1 << 20,
            minloglevel=3,
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
        )
    return model.getvalue()


def compute_fertility(model: bytes, words: dict[str, int]) -> float:
    """Return the mean number of pieces of a word."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = sum(len(processor.encode(word)) * count for word, count in words.items())
    return pieces / sum(words.values())


def main() -> None:
    """Train once."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.harness.subword_training")
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("words", type=Path)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--fertility", action="store_true", help="print the pieces a word")
    options = parser.parse_args()
    words = read_words(options.words)
    model = b""
    match options.way:
        case "unigram":
            model = train_unigram(words, SIZE)
        case "sentencepiece-unigram":
            model = train_with_library(options.text or options.words, words, options.text is not None)
        case "bpe":
            train_bpe_wordpieces(words, SIZE, set("".join(words)), MAX_PIECE_LENGTH)
        case "wordpiece":
            total = sum(words.values())
            words = {word: max(1, count * OCCURRENCES // total) for word, count in words.items()}
            train_wordpieces(words, SIZE, sorted(set("".join(words))))
            print(sum(words.values()))
    if options.fertility:
        print(compute_fertility(model, words))


if __name__ == "__main__":
    main()
