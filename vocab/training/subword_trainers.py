"""Subword training from counted words.

The libraries train on text, and sample a large corpus.  But they look at one word at a time, so that words
with their counts are equivalent and fit in memory.  SentencePiece reads them as TSV.  The tokenizers library
has no such input, so that each word is repeated as often as it occurs.

Training is deterministic: the same words and counts give the same bytes, in any order and on any machine
with the same versions of the libraries.  It runs in a process of its own: the libraries block signals for
minutes, and a process can be killed at any time.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import sentencepiece

from bioshards.corpus.errors import InvalidValueError, RunError
from bioshards.corpus.storage.locks import make_temporary_folder
from bioshards.vocab.tokenizer import sentencepiece_model, wordpiece
from bioshards.vocab.tokenizer.wordpiece import CONTINUATION_PREFIX, MAX_WORD_LENGTH, SENTENCEPIECE_SPACE
from bioshards.vocab.training.unigram_seeds import find_seeds

NUM_SPECIAL_PIECES: Final = 2
"""``<pad>`` and ``<unk>``, the first pieces of every model."""
_MAX_UNIGRAM_LENGTH: Final = 16
"""SentencePiece's default, the word-start sign included."""
_SEEDS_FILE: Final = "seeds.tsv"
_FIRST_PRIVATE_CODE_POINT: Final = 0xF0000
"""First of 131,068 private characters; cleaned text has none of them, and alphabets are smaller."""
_FORBIDDEN_CHARACTERS: Final = frozenset("\0\t\n\r " + SENTENCEPIECE_SPACE + "\u2585")
"""Characters with a special meaning to SentencePiece; U+2585 is its unknown character."""


def train_unigram(
    words: Mapping[str, int],
    size: int,
    alphabet: Collection[str] = (),
    control_symbols: Sequence[str] = (),
) -> bytes:
    """Train a unigram model of SentencePiece, and return the bytes of its ``.model`` file.

    Ids are ``<pad>`` 0, ``<unk>`` 1, then the control symbols, without bos and eos.  Words of more than
    :data:`~.wordpiece.MAX_WORD_LENGTH` characters are left out, and words with
    :data:`_FORBIDDEN_CHARACTERS`.

    Args:
        words: occurrences of each normalised word, 1 or more.
        size: number of pieces, special pieces and single characters included.
        alphabet: characters that must be pieces, beside those of the words.
        control_symbols: further pieces that text never yields.

    Raises:
        TooFewPiecesError: the corpus cannot fill a vocabulary of this size.
        ValueError: there are no words, or SentencePiece rejects an option, such as a repeated control symbol
            or a size without room for the characters.
    """
    training_words = _sort_usable_words(words, _FORBIDDEN_CHARACTERS.isdisjoint)
    required = set(alphabet).union(*(word for word, _ in training_words)) - _FORBIDDEN_CHARACTERS
    options = {
        "model_type": "unigram",
        "vocab_size": size,
        "required_chars": "".join(sorted(required)),
        "max_sentencepiece_length": _MAX_UNIGRAM_LENGTH,
        "control_symbols": list(control_symbols),
        "seed_sentencepieces_file": _SEEDS_FILE,
    }
    seeds = find_seeds(training_words, _MAX_UNIGRAM_LENGTH)
    with make_temporary_folder("vocab") as folder:
        with open(f"{folder}/{_SEEDS_FILE}", "w", encoding="utf-8", newline="\n") as file:
            file.write(_format_counts(seeds))
        model = _train_in_process("sentencepiece", training_words, options, folder)
    model = sentencepiece_model.remove_option(model, _SEEDS_FILE.encode())
    if (num_pieces := len(read_pieces(model))) < size:
        raise wordpiece.TooFewPiecesError(size, num_pieces)
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
        size: number of pieces, single characters included; the result is shorter if the words yield fewer.

    Raises:
        ValueError: there are no words of this alphabet, or SentencePiece rejects the size.
    """
    usable = {char for char in alphabet if ord(char) < _FIRST_PRIVATE_CODE_POINT} - _FORBIDDEN_CHARACTERS
    symbol_by_character = {
        character: chr(_FIRST_PRIVATE_CODE_POINT + number) for number, character in enumerate(sorted(usable))
    }
    training_words = [
        (symbol_by_character[word[0]] + word[1:], count)
        for word, count in _sort_usable_words(words, usable.issuperset)
    ]
    symbols = sorted(set().union(*(word for word, _ in training_words)))
    options = {
        "model_type": "bpe",
        "vocab_size": size + NUM_SPECIAL_PIECES,
        "required_chars": "".join(symbols),
        "max_sentencepiece_length": max_piece_length,
        "add_dummy_prefix": False,
        "split_by_unicode_script": False,  # symbols of first characters have no script
    }
    model = _train_in_process("sentencepiece", training_words, options)
    character_by_symbol = {symbol: character for character, symbol in symbol_by_character.items()}
    return [
        character_by_symbol[piece[0]] + piece[1:]
        if piece[0] in character_by_symbol
        else CONTINUATION_PREFIX + piece
        for piece, _ in read_pieces(model)[NUM_SPECIAL_PIECES:]
    ]


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
        size: number of pieces; the result is shorter if the words yield fewer.
        alphabet: characters that are pieces in both forms.

    Raises:
        ValueError: there are no words of this alphabet.
    """
    characters = list(dict.fromkeys(alphabet))
    known_characters = frozenset(characters) - {" ", "\n"}
    training_words = _sort_usable_words(words, known_characters.issuperset)
    continuations = [CONTINUATION_PREFIX + character for character in characters]
    options = {"vocab_size": size, "special_tokens": [*characters, *continuations]}
    pieces: list[str] = json.loads(_train_in_process("tokenizers", training_words, options))
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


def _format_counts(counts: Iterable[tuple[str, int]]) -> str:
    return "".join(f"{text}\t{count}\n" for text, count in counts)


# The process

_COMMAND: Final = (sys.executable, "-P", "-m", "bioshards.vocab.training.training_process")


def _train_in_process(
    library: Literal["sentencepiece", "tokenizers"],
    words: Sequence[tuple[str, int]],
    options: Mapping[str, Any],
    folder: str | None = None,
) -> bytes:
    """Train in a process of its own and return the model; kill it if this one is interrupted.

    It is in a process group of its own, so that Ctrl-C reaches this process alone.  multiprocessing would
    import the main module again, which runs a script that has no guard a second time.

    Args:
        library: ``sentencepiece`` gives the bytes of a ``.model`` file, ``tokenizers`` a JSON list of pieces.
        folder: working directory of the process, so that names of files in the options need no path.

    Raises:
        ValueError: the library rejects the words or the options; the message is its own.
        RunError: the process was killed.
    """
    job = pickle.dumps((library, _format_counts(words), dict(options)))
    process = subprocess.Popen(
        [*_COMMAND, str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=folder,
        process_group=0,
    )
    try:
        output, _ = process.communicate(job)
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        raise RunError(
            f"the training process ended with code {process.returncode} (out of memory?): give a higher "
            "--min-count, or a machine with more"
        )
    model, error = pickle.loads(output)
    if error is not None:
        raise InvalidValueError(f"{library} cannot train on these {len(words):,} words: {error}")
    trained: bytes = model
    return trained
