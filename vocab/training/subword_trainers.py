"""Subword training from counted words.

The libraries train on text, and sample a large corpus.  But they look at one word at a time, so that words
with their counts are equivalent and fit in memory.  SentencePiece reads them as TSV.  The tokenizers library
has no such input, so that each word is repeated as often as it occurs.

Training is deterministic: the same words and counts give the same bytes, in any order and on any machine
with the same versions of the libraries.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Literal

import sentencepiece

from bioshards.corpus.errors import InvalidValueError
from bioshards.vocab.tokenizer import model_proto
from bioshards.vocab.tokenizer.wordpiece import MAX_WORD_LENGTH, SENTENCEPIECE_SPACE
from bioshards.vocab.training.trainer_process import train_in_process
from bioshards.vocab.training.unigram_seeds import find_seeds

DEFAULT_MAX_PIECE_LENGTH: Final = 16
"""Default maximum characters of a piece, the word-start sign included (``max_sentencepiece_length``)."""
NUM_SPECIAL_PIECES: Final = 2
"""``<pad>`` and ``<unk>``, the first pieces of every model."""
_FIRST_PRIVATE_CODE_POINT: Final = 0xF0000
"""First of 131,068 private characters; cleaned text has none of them, and alphabets are smaller."""
_FORBIDDEN_CHARACTERS: Final = frozenset("\0\t\n\r " + SENTENCEPIECE_SPACE + "\u2585")
"""Characters with a special meaning to SentencePiece; U+2585 is its unknown character."""


class VocabSizeError(InvalidValueError):
    """The corpus is too small for the requested size; ``largest`` is the size that it can fill."""

    def __init__(self, size: int, largest: int) -> None:
        super().__init__(
            f"the corpus is too small for a vocabulary of {size:,} pieces: training found {largest:,}. "
            f"Ask for {largest:,} at most, or give more text"
        )
        self.largest = largest


def train_sentencepiece(
    words: Mapping[str, int],
    algorithm: Literal["bpe", "unigram"],
    size: int,
    alphabet: Collection[str] = (),
    control_symbols: Sequence[str] = (),
    character_coverage: float = 1.0,
    max_piece_length: int = DEFAULT_MAX_PIECE_LENGTH,
) -> bytes:
    """Train a SentencePiece model, and return the bytes of its ``.model`` file.

    Ids are ``<pad>`` 0, ``<unk>`` 1, then the control symbols, without bos and eos.  Words of more than
    :data:`~.wordpiece.MAX_WORD_LENGTH` characters are left out, and words with white space, NUL, U+2581 or
    U+2585, which have a special meaning to SentencePiece.

    Args:
        words: occurrences of each normalised word, 1 or more.
        algorithm: byte-pair encoding, or a unigram model.
        size: number of pieces, special pieces and single characters included.
        alphabet: characters that must be pieces.
        control_symbols: further pieces that text never yields.
        character_coverage: fraction of the text that single characters must cover, 0.98 or more; rarer
            characters become ``<unk>``.  SentencePiece computes it with seven digits and would lose
            characters of a large corpus even with 1.0; here 1.0 keeps all of them.
        max_piece_length: maximum characters of a piece, the word-start sign included.

    Raises:
        VocabSizeError: the corpus cannot fill a vocabulary of this size.
        ValueError: there are no words, the size is too small for special pieces and characters, or
            SentencePiece rejects an option, such as a repeated control symbol.
    """
    training_words = _sort_usable_words(words, lambda word: _FORBIDDEN_CHARACTERS.isdisjoint(word))
    characters = _select_characters(training_words, character_coverage)
    required = characters.union(alphabet) - _FORBIDDEN_CHARACTERS
    required_counts = 2 + len(control_symbols), len(required) + 1
    if size < sum(required_counts):
        raise InvalidValueError(
            f"a vocabulary of {size:,} pieces has no room for {required_counts[0]} special pieces and "
            f"{required_counts[1]:,} "
            f"characters: ask for {sum(required_counts):,} or more, or for a smaller alphabet"
        )
    options = {
        "model_type": algorithm,
        "vocab_size": size,
        "hard_vocab_limit": False,  # fewer pieces are reported below
        "required_chars": "".join(sorted(required)),
        "character_coverage": character_coverage,
        "max_sentencepiece_length": max_piece_length,
        "control_symbols": list(control_symbols),
    }
    if algorithm == "unigram":
        seeds = find_seeds(training_words, max_piece_length, characters=characters)
        model = train_in_process("sentencepiece", training_words, options, seeds)
        model = model_proto.remove_option(model, b"seeds.tsv")
    else:
        model = train_in_process("sentencepiece", training_words, options)
    num_pieces = len(read_pieces(model))
    if num_pieces < size:
        raise VocabSizeError(size, num_pieces)
    return model


def read_pieces(model: bytes) -> list[tuple[str, float]]:
    """Return the pieces of a SentencePiece model with their scores, in the order of ids."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [(processor.id_to_piece(id), processor.get_score(id)) for id in range(processor.get_piece_size())]


def train_bpe_wordpieces(
    words: Mapping[str, int], size: int, alphabet: Collection[str], max_piece_length: int
) -> list[str]:
    """Train WordPieces by byte-pair encoding, and return them in the order of training.

    SentencePiece merges the word-start sign like any other character, so that intermediate merges without the
    sign become pieces that no text uses.  Here the first character of a word is a symbol of its own instead,
    as in the WordPiece trainer of the tokenizers library.  The result is nearly the same as that trainer's,
    in time proportional to the distinct words.

    Args:
        words: occurrences of each normalised word, 1 or more; words with characters outside the alphabet are
            left out.
        size: number of pieces, single characters included.
        max_piece_length: maximum characters of a piece.

    Raises:
        VocabSizeError: the corpus yields fewer pieces.
        ValueError: there are no words of this alphabet, or the size is too small for it.
    """
    characters = sorted(
        character
        for character in set(alphabet) - _FORBIDDEN_CHARACTERS
        if ord(character) < _FIRST_PRIVATE_CODE_POINT
    )
    start_symbols = {
        character: chr(_FIRST_PRIVATE_CODE_POINT + number) for number, character in enumerate(characters)
    }
    known_characters = frozenset(characters)
    training_words = [
        (start_symbols[word[0]] + word[1:], count)
        for word, count in _sort_usable_words(words, known_characters.issuperset)
    ]
    symbols = sorted(set().union(*(word for word, _ in training_words)))
    if size < len(symbols):
        raise InvalidValueError(
            f"{size:,} pieces are fewer than the {len(symbols):,} characters of these words, at a word's "
            "start and within one: ask for more, or for a smaller alphabet"
        )
    options = {
        "model_type": "bpe",
        "vocab_size": size + NUM_SPECIAL_PIECES,
        "hard_vocab_limit": False,
        "required_chars": "".join(symbols),
        "character_coverage": 1.0,
        "max_sentencepiece_length": max_piece_length,
        "add_dummy_prefix": False,
        "split_by_unicode_script": False,  # symbols of first characters have no script
    }
    model = train_in_process("sentencepiece", training_words, options)
    character_by_symbol = {symbol: character for character, symbol in start_symbols.items()}
    names = [name for name, _ in read_pieces(model)[NUM_SPECIAL_PIECES:]]
    wordpieces = [
        character_by_symbol[name[0]] + name[1:] if name[0] in character_by_symbol else f"##{name}"
        for name in names
    ]
    if len(wordpieces) < size:
        raise VocabSizeError(size, len(wordpieces))
    return wordpieces


def train_wordpieces(words: Mapping[str, int], size: int, alphabet: Collection[str]) -> list[str]:
    """Train WordPieces with the tokenizers library, and return them in the order of training.

    The alphabet comes first, in its order: all characters at the start of a word, then all as continuations.
    It is passed to the trainer as special tokens, because it otherwise assigns the ids of continuations at
    random and breaks ties by id.  Left out are words with other characters, words of more than
    :data:`~.wordpiece.MAX_WORD_LENGTH` characters, which are [UNK] anyway, and words with a blank or a
    line break.

    The library counts 3.6 million occurrences per second and core; memory depends on distinct words only.

    Args:
        words: occurrences of each normalised word, 1 or more.
        size: number of pieces.
        alphabet: characters that are pieces in both forms.

    Raises:
        VocabSizeError: the corpus cannot fill a vocabulary of this size.
        ValueError: there are no words of this alphabet, or the size is too small for it.
    """
    characters = list(dict.fromkeys(alphabet))
    if size < 2 * len(characters):
        raise InvalidValueError(
            f"a vocabulary of {size:,} pieces has no room for {len(characters):,} characters in two forms: "
            f"ask for {2 * len(characters):,} or more, or for a smaller alphabet"
        )
    known_characters = frozenset(characters) - {" ", "\n"}
    training_words = _sort_usable_words(words, known_characters.issuperset)
    special_tokens = [*characters, *(f"##{character}" for character in characters)]
    options = {"vocab_size": size, "special_tokens": special_tokens}
    pieces: list[str] = json.loads(train_in_process("tokenizers", training_words, options))
    if len(pieces) < size:
        raise VocabSizeError(size, len(pieces))
    return pieces


def _sort_usable_words(words: Mapping[str, int], is_usable: Callable[[str], bool]) -> list[tuple[str, int]]:
    """Return the usable words with their counts, most frequent first, then by word.

    Raises:
        ValueError: there are none.
    """
    usable_words = [
        (word, count)
        for word, count in words.items()
        if 0 < len(word) <= MAX_WORD_LENGTH and count > 0 and is_usable(word)
    ]
    if not usable_words:
        raise InvalidValueError(f"there is no word to train on: none of {len(words):,} words is usable")
    return sorted(usable_words, key=lambda pair: (-pair[1], pair[0]))


def _select_characters(words: Sequence[tuple[str, int]], character_coverage: float) -> set[str]:
    """Return the most frequent characters that make up this fraction of the text."""
    counts = Counter({SENTENCEPIECE_SPACE: sum(count for _, count in words)})
    for word, count in words:
        for character in word:
            counts[character] += count
    if character_coverage < 1:
        most_frequent = sorted(counts, key=lambda character: (-counts[character], character))
        cumulative_counts = itertools.accumulate(counts[character] for character in most_frequent)
        target_count = character_coverage * counts.total()
        num_kept = sum(1 for preceding in itertools.chain([0], cumulative_counts) if preceding < target_count)
        return set(most_frequent[:num_kept]) - {SENTENCEPIECE_SPACE}
    return set(counts) - {SENTENCEPIECE_SPACE}
