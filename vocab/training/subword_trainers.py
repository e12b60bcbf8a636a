"""Subword training from words and how often each occurs, so that each weighs what it weighs.

The libraries want text, and of a large corpus they take a sample.  But they look at one word at a
time, so words and their counts are all there is to know, and fit in memory.  SentencePiece reads them
as they are (its TSV input); the tokenizers library has no such way, so each word is fed to it as often
as it occurs.

Nothing is drawn at random, so there is no seed: the same words and counts give the same bytes, in
whatever order the mapping has them, on any machine with the same versions of the libraries.
"""

from __future__ import annotations

import io
import itertools
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

import sentencepiece as library
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bioshards.corpus.errors import InvalidValueError
from bioshards.vocab.tokenizer.wordpiece import MAX_WORD_LENGTH, SENTENCEPIECE_SPACE, UNK

from . import model_proto
from .unigram_seeds import find_seeds

DEFAULT_MAX_PIECE_LENGTH: Final = 16
"""Characters of a piece at most, SPACE among them: SentencePiece's ``max_sentencepiece_length``."""
NUM_THREADS: Final = 16
"""SentencePiece's own number.  How sums are rounded depends on it, so the machine's cores must not set it."""
CHARACTERS_PER_STRING: Final = 1 << 16
"""Characters of each string that the WordPiece trainer is fed: the library counts each in one thread."""

NUM_SPECIAL_PIECES: Final = 2
"""``<pad>`` and ``<unk>``, the first pieces of every model."""
_FIRST_PRIVATE_CODE_POINT: Final = 0xF0000
"""The first of 131,068 private characters, which no cleaned text has; alphabets are smaller."""
_FORBIDDEN_CHARACTERS: Final = frozenset("\0\t\n\r " + SENTENCEPIECE_SPACE + "\u2585")
"""What SentencePiece cannot read in a word, or takes for something else: U+2585 is its unknown character."""


class VocabSizeError(InvalidValueError):
    """The corpus cannot fill a vocabulary of the size asked for: ``largest`` is the size that it can fill."""

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
    """A SentencePiece model of words as they are: the bytes of its ``.model`` file.

    Ids are ``<pad>`` 0, ``<unk>`` 1, then the controls; there is neither bos nor eos.  Words of more than
    :data:`~.wordpiece.LONGEST_WORD` characters are left out, and those with a white space, NUL, U+2581 or
    U+2585, which SentencePiece takes for something else; of the alphabet, these characters.

    Args:
        words: normalised words, and how often each occurs, 1 or more.
        algorithm: byte-pair encoding (merges, in their order), or a unigram model.
        size: pieces of the model, its first ids and all single characters among them.
        alphabet: characters that must be pieces, whether they occur or not.
        controls: further pieces, which no text becomes.
        coverage: share of the text that pieces of one character must cover, 0.98 or more; the rarest
            characters beyond it become ``<unk>``.  SentencePiece reckons it with seven digits, so of a
            large corpus it would lose characters even with 1.0; here 1.0 means all of them.
        longest: characters of a piece at most, the word's beginning among them.

    Raises:
        VocabSizeError: the corpus cannot fill a vocabulary of this size.
        ValueError: there are no words, or the size has no room for the first ids and the characters, or
            SentencePiece refuses something, such as the same control twice.
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
        "hard_vocab_limit": False,  # so that it ends with what it has found, and not with an error
        "required_chars": "".join(sorted(required)),
        "character_coverage": character_coverage,
        "max_sentencepiece_length": max_piece_length,
        "control_symbols": list(control_symbols),
    }
    if algorithm == "unigram":
        model = _train_from_seeds(
            training_words, options, find_seeds(training_words, max_piece_length, characters=characters)
        )
    else:
        model = _train_model(training_words, options)
    num_pieces = len(read_pieces(model))
    if num_pieces < size:
        raise VocabSizeError(size, num_pieces)
    return model


def read_pieces(model: bytes) -> list[tuple[str, float]]:
    """The pieces of a SentencePiece model and their scores, in the order of their ids."""
    processor = library.SentencePieceProcessor(model_proto=model)
    return [(processor.id_to_piece(id), processor.get_score(id)) for id in range(processor.get_piece_size())]


def train_bpe_wordpieces(
    words: Mapping[str, int], size: int, alphabet: Collection[str], max_piece_length: int
) -> list[str]:
    """WordPieces by byte-pair encoding, in the order of training, ``##`` before those that continue a word.

    SentencePiece merges the sign for a blank with a word's first character as any other pair, so that the
    steps to a word are pieces without that sign, which nothing else needs.  Here a word's first character is
    a symbol of its own instead, as in the tokenizers library's WordPiece trainer.  What comes out is all but
    the same as that trainer's, and takes as long as there are distinct words, not as all of them.

    Args:
        words: normalised words, and how often each occurs, 1 or more; those with other characters than the
            alphabet's are left out.
        size: how many pieces, the single characters that occur among them.
        max_piece_length: characters of a piece at most.

    Raises:
        VocabSizeError: the corpus gives fewer pieces.
        ValueError: there are no words of this alphabet, or the size has no room for it.
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
            "beginning and inside of one: ask for more, or for a smaller alphabet"
        )
    options = {
        "model_type": "bpe",
        "vocab_size": size + NUM_SPECIAL_PIECES,
        "hard_vocab_limit": False,
        "required_chars": "".join(symbols),
        "character_coverage": 1.0,
        "max_sentencepiece_length": max_piece_length,
        "add_dummy_prefix": False,
        "split_by_unicode_script": False,  # the signs for first characters have no script
    }
    model = _train_model(training_words, options)
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
    """WordPieces in the order of training, ``##`` before those that continue a word.

    The alphabet comes first, in its order: all characters as a word's beginning, then all as a
    continuation.  The trainer is told so, because else it draws the ids of continuations at
    random, and breaks ties between pairs by ids.  Words with any other character are left
    out, since they are [UNK] whatever the pieces are; so are those of more than
    :data:`~.wordpiece.LONGEST_WORD` characters, or with a blank.

    The library counts 3.6 million occurrences a second and core; memory depends on distinct words alone.

    Args:
        words: normalised words, and how often each occurs, 1 or more.
        size: how many pieces.
        alphabet: characters that are pieces in both forms.

    Raises:
        VocabSizeError: the corpus cannot fill a vocabulary of this size.
        ValueError: there are no words of this alphabet, or the size has no room for it.
    """
    characters = list(dict.fromkeys(alphabet))
    if size < 2 * len(characters):
        raise InvalidValueError(
            f"a vocabulary of {size:,} pieces has no room for {len(characters):,} characters in two forms: "
            f"ask for {2 * len(characters):,} or more, or for a smaller alphabet"
        )
    known_characters = frozenset(characters) - {" "}
    training_words = _sort_usable_words(words, known_characters.issuperset)
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=1,
        show_progress=False,
        special_tokens=[*characters, *(f"##{character}" for character in characters)],
    )
    tokenizer.train_from_iterator(_repeat_words(training_words), trainer)
    ids = tokenizer.get_vocab()
    if len(ids) < size:
        raise VocabSizeError(size, len(ids))
    return sorted(ids, key=ids.__getitem__)


def _sort_usable_words(words: Mapping[str, int], is_usable: Callable[[str], bool]) -> list[tuple[str, int]]:
    """The words that can be trained on and their counts, by falling count and then by themselves.

    Raises:
        ValueError: there are none.
    """
    usable_words = [
        (word, count)
        for word, count in words.items()
        if 0 < len(word) <= MAX_WORD_LENGTH and count > 0 and is_usable(word)
    ]
    if not usable_words:
        raise InvalidValueError(f"there is nothing to train on: of {len(words):,} words none can be used")
    return sorted(usable_words, key=lambda pair: (-pair[1], pair[0]))


def _select_characters(words: Sequence[tuple[str, int]], character_coverage: float) -> set[str]:
    """The characters that make up this share of the text, the most frequent ones; without SPACE."""
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


def _train_from_seeds(
    words: Sequence[tuple[str, int]], options: Mapping[str, Any], seed_counts: Sequence[tuple[str, int]]
) -> bytes:
    """The unigram model whose seeds are these, handed over in a file of "piece TAB count" lines."""
    with tempfile.TemporaryDirectory(prefix="bioshards-") as folder:
        path = os.path.join(folder, "seeds.tsv")
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{piece}\t{count}\n" for piece, count in seed_counts)
        model = _train_model(words, {**options, "seed_sentencepieces_file": path})
    return model_proto.remove_option(model, path.encode())


def _train_model(words: Sequence[tuple[str, int]], options: Mapping[str, Any]) -> bytes:
    """The model that SentencePiece trains on these words as they are.

    Raises:
        ValueError: it refuses; the message has what it says.
    """
    model = io.BytesIO()
    try:
        library.SentencePieceTrainer.train(
            sentence_iterator=(f"{word}\t{count}" for word, count in words),
            input_format="tsv",
            model_writer=model,
            normalization_rule_name="identity",
            pad_id=0,
            unk_id=1,
            bos_id=-1,
            eos_id=-1,
            num_threads=NUM_THREADS,
            minloglevel=3,  # silent
            **options,
        )
    except (RuntimeError, OSError) as error:
        raise InvalidValueError(
            f"SentencePiece cannot train on these {len(words):,} words: {error}"
        ) from error
    return model.getvalue()


def _repeat_words(words: Sequence[tuple[str, int]]) -> Iterator[str]:
    """Each word as often as it occurs, with a blank behind it, in strings of some :data:`FED` characters."""
    strings: list[str] = []
    size = 0
    for word, count in words:
        while count:
            repetitions = min(count, 1 + (CHARACTERS_PER_STRING - size) // (len(word) + 1))
            strings.append(f"{word} " * repetitions)
            count, size = count - repetitions, size + repetitions * (len(word) + 1)
            if size > CHARACTERS_PER_STRING:
                yield "".join(strings)
                strings, size = [], 0
    yield "".join(strings)
