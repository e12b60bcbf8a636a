"""The words of a corpus, and lists of millions of words made of them:
``python -m tests.bench.harness.synthetic_words WORK SHARDS... --millions 1 2``.

A corpus of 40 million abstracts has millions of distinct words, the articles at hand some hundred thousand.
A made word is the first half of one real word and the second half of another, so its pieces are real; it
occurs as often as some real word, so counts are spread as the real ones are.  The real words come along.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.tokenizer.pretokenizer import Pretokenizer
from bioshards.vocab.tokenizer.wordpiece import MAX_WORD_LENGTH

SEED: Final = 6
MIN_HALVED_LENGTH: Final = 4
"""Minimum length of a word to be halved."""


def iter_sentences(folders: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of finished directories, with single spaces between words."""
    words = Pretokenizer()
    for folder in folders:
        for batch in document_shards.read_directory(LocalStorage(), folder, ["sentences"]):
            for sentence in batch.column("sentences").flatten().to_pylist():
                yield " ".join(word for word in words(sentence) if len(word) <= MAX_WORD_LENGTH)


def recombine_words(real: Sequence[tuple[str, int]], distinct: int) -> list[tuple[str, int]]:
    """Make a number of distinct words: the real ones, and others of their halves."""
    rng = random.Random(SEED)
    halved = [word for word, _ in real if len(word) >= MIN_HALVED_LENGTH]
    counts = dict(real[:distinct])
    while len(counts) < distinct:
        first, second = rng.choice(halved), rng.choice(halved)
        new_word = first[: len(first) // 2] + second[len(second) // 2 :]
        counts.setdefault(new_word, rng.choice(real)[1])
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def main() -> None:
    """Write ``text.txt``, ``words.tsv``, ``words-1m.tsv`` and so on; print their numbers of words."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.harness.synthetic_words", description=__doc__
    )
    parser.add_argument("work", type=Path)
    parser.add_argument("shards", nargs="+")
    parser.add_argument("--millions", type=float, nargs="*", default=[])
    options = parser.parse_args()
    word_counts: Counter[str] = Counter()
    with open(options.work / "text.txt", "w", encoding="utf-8") as text:
        for sentence in iter_sentences(options.shards):
            text.write(f"{sentence}\n")
            word_counts.update(sentence.split(" "))
    del word_counts[""]
    ranked_words = sorted(word_counts.items(), key=lambda pair: (-pair[1], pair[0]))
    lists = {"words": ranked_words} | {
        f"words-{n:g}m": recombine_words(ranked_words, round(1e6 * n)) for n in options.millions
    }
    for name, words in lists.items():
        with open(options.work / f"{name}.tsv", "w", encoding="utf-8") as file:
            file.writelines(f"{word}\t{count}\n" for word, count in words)
        print(f"{name}: {len(words):,} words, {sum(count for _, count in words):,} occurrences")


if __name__ == "__main__":
    main()
