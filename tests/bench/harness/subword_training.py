"""One training of subwords, timed by bench_vocab.py:
``python -m tests.bench.harness.subword_training WAY WORK``.

``make`` writes the sentences of a corpus, its words and a list of millions of words.  A corpus of 40 million
abstracts has millions of distinct words, the articles at hand some hundred thousand.  A made word is the
first half of one real word and the second half of another, so its pieces are real; it occurs as often as some
real word, so counts are spread as the real ones are.
"""

from __future__ import annotations

import argparse
import io
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import sentencepiece

from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.tokenizer.pretokenizer import Pretokenizer
from bioshards.vocab.tokenizer.wordpiece import MAX_WORD_LENGTH
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
MIN_HALVED_LENGTH: Final = 4
"""Minimum length of a word to be halved."""
WORDS, MADE_WORDS, TEXT = "words.tsv", "made-words.tsv", "text.txt"


def make_lists(work: Path, folders: Sequence[str], distinct: int) -> None:
    """Write the text of finished directories, its words, and a list of so many distinct words."""
    counts: Counter[str] = Counter()
    with open(work / TEXT, "w", encoding="utf-8") as text:
        for sentence in iter_sentences(folders):
            text.write(f"{sentence}\n")
            counts.update(sentence.split())
    rng = random.Random(6)
    ranked = counts.most_common()
    halved = [word for word, _ in ranked if len(word) >= MIN_HALVED_LENGTH]
    made = dict(ranked[:distinct])
    while len(made) < distinct:
        first, second = rng.choice(halved), rng.choice(halved)
        made.setdefault(first[: len(first) // 2] + second[len(second) // 2 :], rng.choice(ranked)[1])
    for name, words in ((WORDS, counts), (MADE_WORDS, made)):
        with open(work / name, "w", encoding="utf-8") as file:
            file.writelines(f"{word}\t{count}\n" for word, count in words.items())


def iter_sentences(folders: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of finished directories, with single blanks between words."""
    words = Pretokenizer()
    for folder in folders:
        for batch in document_shards.read_directory(LocalStorage(), folder, ["sentences"]):
            for sentence in batch.column("sentences").flatten().to_pylist():
                yield " ".join(word for word in words(sentence) if len(word) <= MAX_WORD_LENGTH)


def read_words(path: Path) -> dict[str, int]:
    """Read lines of a word, a tab and its count."""
    with open(path, encoding="utf-8", newline="\n") as file:
        pairs = (line.rstrip("\n").split("\t") for line in file)
        return {word: int(count) for word, count in pairs}


def train_with_library(path: Path, words: dict[str, int]) -> bytes:
    """Train with SentencePiece alone; its character_coverage would lose the rarest characters."""
    model = io.BytesIO()
    with open(path, encoding="utf-8", newline="\n") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=(line.rstrip("\n") for line in file),
            input_format="tsv" if path.suffix == ".tsv" else "text",
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


def print_fertility(model: bytes, words: dict[str, int]) -> None:
    """Print the mean number of pieces of a word."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    pieces = sum(len(processor.encode(word)) * count for word, count in words.items())
    print(pieces / sum(words.values()))


def main() -> None:
    """Make the lists, or train once."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.harness.subword_training")
    parser.add_argument("way")
    parser.add_argument("work", type=Path)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--distinct", type=int, default=4_000_000)
    options = parser.parse_args()
    work: Path = options.work
    if options.way == "make":
        make_lists(work, options.folders, options.distinct)
        return
    is_made = options.way in ("read", "bpe", "unigram", "wordpiece")
    words = read_words(work / (MADE_WORDS if is_made else WORDS))
    match options.way:
        case "bpe":
            train_bpe_wordpieces(words, SIZE, set("".join(words)), MAX_PIECE_LENGTH)
        case "unigram":
            train_unigram(words, SIZE)
        case "wordpiece":
            total = sum(words.values())
            scaled = {word: max(1, count * OCCURRENCES // total) for word, count in words.items()}
            train_wordpieces(scaled, SIZE, sorted(set("".join(words))))
        case "corpus":
            print_fertility(train_unigram(words, SIZE), words)
        case "sentencepiece-counts":
            print_fertility(train_with_library(work / WORDS, words), words)
        case "sentencepiece-text":
            print_fertility(train_with_library(work / TEXT, words), words)


if __name__ == "__main__":
    main()
