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

from . import protobuf
from .seeds import seeds
from .wordpiece import LONGEST_WORD, SPACE, UNK

LONGEST_PIECE: Final = 16
"""Characters of a piece at most, SPACE among them: SentencePiece's ``max_sentencepiece_length``."""
THREADS: Final = 16
"""SentencePiece's own number.  How sums are rounded depends on it, so the machine's cores must not set it."""
FED: Final = 1 << 16
"""Characters of each string that the WordPiece trainer is fed: the library counts each in one thread."""

ASIDE: Final = 2
"""``<pad>`` and ``<unk>``, the first pieces of every model."""
_FIRST: Final = 0xF0000
"""The first of 131,068 private characters, which no cleaned text has; alphabets are smaller."""
_NO_WORD: Final = frozenset("\0\t\n\r " + SPACE + "\u2585")
"""What SentencePiece cannot read in a word, or takes for something else: U+2585 is its unknown character."""


class VocabSizeError(InvalidValueError):
    """The corpus cannot fill a vocabulary of the size asked for: ``largest`` is the size that it can fill."""

    def __init__(self, size: int, largest: int) -> None:
        super().__init__(
            f"the corpus is too small for a vocabulary of {size:,} pieces: training found {largest:,}. "
            f"Ask for {largest:,} at most, or give more text"
        )
        self.largest = largest


def sentencepiece(
    words: Mapping[str, int],
    algorithm: Literal["bpe", "unigram"],
    size: int,
    alphabet: Collection[str] = (),
    controls: Sequence[str] = (),
    coverage: float = 1.0,
    longest: int = LONGEST_PIECE,
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
    chosen = _in_order(words, lambda word: _NO_WORD.isdisjoint(word))
    characters = _covered(chosen, coverage)
    required = characters.union(alphabet) - _NO_WORD
    room = 2 + len(controls), len(required) + 1
    if size < sum(room):
        raise InvalidValueError(
            f"a vocabulary of {size:,} pieces has no room for {room[0]} special pieces and {room[1]:,} "
            f"characters: ask for {sum(room):,} or more, or for a smaller alphabet"
        )
    options = {
        "model_type": algorithm,
        "vocab_size": size,
        "hard_vocab_limit": False,  # so that it ends with what it has found, and not with an error
        "required_chars": "".join(sorted(required)),
        "character_coverage": coverage,
        "max_sentencepiece_length": longest,
        "control_symbols": list(controls),
    }
    if algorithm == "unigram":
        model = _trained_from_seeds(chosen, options, seeds(chosen, longest, characters=characters))
    else:
        model = _trained(chosen, options)
    found = len(pieces(model))
    if found < size:
        raise VocabSizeError(size, found)
    return model


def pieces(model: bytes) -> list[tuple[str, float]]:
    """The pieces of a SentencePiece model and their scores, in the order of their ids."""
    loaded = library.SentencePieceProcessor(model_proto=model)
    return [(loaded.id_to_piece(id), loaded.get_score(id)) for id in range(loaded.get_piece_size())]


def marked(words: Mapping[str, int], size: int, alphabet: Collection[str], longest: int) -> list[str]:
    """WordPieces by byte-pair encoding, in the order of training, ``##`` before those that continue a word.

    SentencePiece merges the sign for a blank with a word's first character as any other pair, so that the
    steps to a word are pieces without that sign, which nothing else needs.  Here a word's first character is
    a symbol of its own instead, as in the tokenizers library's WordPiece trainer.  What comes out is all but
    the same as that trainer's, and takes as long as there are distinct words, not as all of them.

    Args:
        words: normalised words, and how often each occurs, 1 or more; those with other characters than the
            alphabet's are left out.
        size: how many pieces, the single characters that occur among them.
        longest: characters of a piece at most.

    Raises:
        VocabSizeError: the corpus gives fewer pieces.
        ValueError: there are no words of this alphabet, or the size has no room for it.
    """
    characters = sorted(character for character in set(alphabet) - _NO_WORD if ord(character) < _FIRST)
    first = {character: chr(_FIRST + number) for number, character in enumerate(characters)}
    known = frozenset(characters)
    chosen = [(first[word[0]] + word[1:], count) for word, count in _in_order(words, known.issuperset)]
    symbols = sorted(set().union(*(word for word, _ in chosen)))
    if size < len(symbols):
        raise InvalidValueError(
            f"{size:,} pieces are fewer than the {len(symbols):,} characters of these words, at a word's "
            "beginning and inside of one: ask for more, or for a smaller alphabet"
        )
    options = {
        "model_type": "bpe",
        "vocab_size": size + ASIDE,
        "hard_vocab_limit": False,
        "required_chars": "".join(symbols),
        "character_coverage": 1.0,
        "max_sentencepiece_length": longest,
        "add_dummy_prefix": False,
        "split_by_unicode_script": False,  # the signs for first characters have no script
    }
    model = _trained(chosen, options)
    of = {sign: character for character, sign in first.items()}
    names = [name for name, _ in pieces(model)[ASIDE:]]
    found = [of[name[0]] + name[1:] if name[0] in of else f"##{name}" for name in names]
    if len(found) < size:
        raise VocabSizeError(size, len(found))
    return found


def wordpiece(words: Mapping[str, int], size: int, alphabet: Collection[str]) -> list[str]:
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
    known = frozenset(characters) - {" "}
    chosen = _in_order(words, known.issuperset)
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.CharDelimiterSplit(" ")
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=1,
        show_progress=False,
        special_tokens=[*characters, *(f"##{character}" for character in characters)],
    )
    tokenizer.train_from_iterator(_repeated(chosen), trainer)
    ids = tokenizer.get_vocab()
    if len(ids) < size:
        raise VocabSizeError(size, len(ids))
    return sorted(ids, key=ids.__getitem__)


def _in_order(words: Mapping[str, int], fit: Callable[[str], bool]) -> list[tuple[str, int]]:
    """The words that can be trained on and their counts, by falling count and then by themselves.

    Raises:
        ValueError: there are none.
    """
    chosen = [
        (word, count)
        for word, count in words.items()
        if 0 < len(word) <= LONGEST_WORD and count > 0 and fit(word)
    ]
    if not chosen:
        raise InvalidValueError(f"there is nothing to train on: of {len(words):,} words none can be used")
    return sorted(chosen, key=lambda pair: (-pair[1], pair[0]))


def _covered(words: Sequence[tuple[str, int]], coverage: float) -> set[str]:
    """The characters that make up this share of the text, the most frequent ones; without SPACE."""
    counts = Counter({SPACE: sum(count for _, count in words)})
    for word, count in words:
        for character in word:
            counts[character] += count
    if coverage < 1:
        most_frequent = sorted(counts, key=lambda character: (-counts[character], character))
        up_to = itertools.accumulate(counts[character] for character in most_frequent)
        enough = coverage * counts.total()
        kept = sum(1 for before in itertools.chain([0], up_to) if before < enough)
        return set(most_frequent[:kept]) - {SPACE}
    return set(counts) - {SPACE}


def _trained_from_seeds(
    words: Sequence[tuple[str, int]], options: Mapping[str, Any], found: Sequence[tuple[str, int]]
) -> bytes:
    """The unigram model whose seeds are these, handed over in a file of "piece TAB count" lines."""
    with tempfile.TemporaryDirectory(prefix="bioshards-") as folder:
        path = os.path.join(folder, "seeds.tsv")
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{piece}\t{count}\n" for piece, count in found)
        model = _trained(words, {**options, "seed_sentencepieces_file": path})
    return protobuf.without(model, path.encode())


def _trained(words: Sequence[tuple[str, int]], options: Mapping[str, Any]) -> bytes:
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
            num_threads=THREADS,
            minloglevel=3,  # silent
            **options,
        )
    except (RuntimeError, OSError) as error:
        raise InvalidValueError(
            f"SentencePiece cannot train on these {len(words):,} words: {error}"
        ) from error
    return model.getvalue()


def _repeated(words: Sequence[tuple[str, int]]) -> Iterator[str]:
    """Each word as often as it occurs, with a blank behind it, in strings of some :data:`FED` characters."""
    parts: list[str] = []
    size = 0
    for word, count in words:
        while count:
            times = min(count, 1 + (FED - size) // (len(word) + 1))
            parts.append(f"{word} " * times)
            count, size = count - times, size + times * (len(word) + 1)
            if size > FED:
                yield "".join(parts)
                parts, size = [], 0
    yield "".join(parts)
