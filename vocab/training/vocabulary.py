"""Build a vocabulary from counted words: alphabet, training, removal of unused pieces."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from tokenizers import Tokenizer

from bioshards.corpus.errors import InvalidValueError
from bioshards.vocab.counting.word_counts import convert_counts
from bioshards.vocab.options import VocabularyRecipe
from bioshards.vocab.tokenizer import hugging_face, wordpiece
from bioshards.vocab.tokenizer.pretokenizer import PretokenizeFn, Pretokenizer
from bioshards.vocab.tokenizer.wordpiece import SENTENCEPIECE_SPACE, Alphabet
from bioshards.vocab.training import subword_trainers

MAX_PIECE_LENGTH: Final = 32
"""Maximum characters of a piece.  With SentencePiece's default of 16, "immunohistochemistry" cannot be a
piece; no frequent word of PubMed or PMC has more than 32.
"""
_SURPLUS_DIVISOR: Final = 6
"""A sixth more pieces are trained than needed, because one in twenty or thirty is never used."""
_MAX_ROUNDS: Final = 3
"""After three rounds, fewer than one piece in a thousand is unused."""


class Vocabulary(NamedTuple):
    """A trained vocabulary.

    Attributes:
        sentencepiece_model: SentencePiece model of a unigram vocabulary.
        alphabet: characters that always have a piece.
        distinct_words, total_words: those that were trained on, in their casing, and their occurrences.
    """

    tokenizer: Tokenizer
    sentencepiece_model: bytes | None
    alphabet: Alphabet
    distinct_words: int
    total_words: int


def check_size(recipe: VocabularyRecipe) -> None:
    """Check that a vocabulary has room for its reserved tokens and the smallest alphabet, ASCII and Greek.

    Raises:
        InvalidValueError: it has not.
    """
    _list_required(recipe, wordpiece.build_alphabet({}, 1, make_pretokenizer(recipe)))


def _list_required(recipe: VocabularyRecipe, alphabet: Alphabet) -> list[str]:
    """Return the reserved tokens and the pieces of the alphabet, for which the size must have room."""
    pieces: Iterable[str] = (SENTENCEPIECE_SPACE, *alphabet.characters)
    if not recipe.is_sentencepiece:
        pieces = wordpiece.iter_pieces(alphabet, make_pretokenizer(recipe))
    required = list(dict.fromkeys([*recipe.reserved_tokens, *pieces]))
    if recipe.size < len(required):
        raise InvalidValueError(
            f"--size {recipe.size:,} has no room for the {len(recipe.reserved_tokens):,} reserved tokens and "
            f"the alphabet of {len(alphabet.characters):,} characters: give --size {len(required)} or more, "
            "or a smaller --character-coverage"
        )
    return required


def make_pretokenizer(recipe: VocabularyRecipe) -> PretokenizeFn:
    """Return the function that turns a counted word into the words to train on."""
    if not recipe.is_sentencepiece:
        return Pretokenizer(recipe.casing)
    normalizer = hugging_face.make_albert_normalizer(recipe.casing)
    return lambda word: normalizer.normalize_str(word).split()


def build_vocabulary(recipe: VocabularyRecipe, words: Mapping[str, int]) -> Vocabulary:
    """Build the vocabulary of a recipe; the same words and recipe give the same bytes.

    Args:
        words: occurrences of words, as counted for ``recipe.pretokenizer``.

    Raises:
        ValueError: the size is too small for the alphabet, or the words yield too few pieces.
    """
    pretokenize = make_pretokenizer(recipe)
    training_words: Mapping[str, int] = {
        word: count
        for word, count in convert_counts(words, pretokenize).items()
        if len(word) <= wordpiece.MAX_WORD_LENGTH  # longer ones are [UNK]
    }
    alphabet = wordpiece.build_alphabet(training_words, recipe.character_coverage, pretokenize)
    is_known = frozenset(alphabet.characters).issuperset
    training_words = {word: count for word, count in training_words.items() if is_known(word)}
    if not training_words:
        raise InvalidValueError("there is no word to train on")
    required = _list_required(recipe, alphabet)
    model = None
    if recipe.is_sentencepiece:
        control_symbols = recipe.reserved_tokens[subword_trainers.NUM_SPECIAL_PIECES :]
        model = subword_trainers.train_unigram(
            training_words, recipe.size, alphabet.characters, control_symbols
        )
        tokenizer = hugging_face.make_unigram_tokenizer(
            subword_trainers.read_pieces(model), recipe.casing, recipe.entity_placeholders
        )
    else:
        pieces = _train_wordpieces(recipe, training_words, alphabet, required)
        tokenizer = hugging_face.make_wordpiece_tokenizer(pieces, recipe.casing, recipe.entity_placeholders)
    return Vocabulary(tokenizer, model, alphabet, len(training_words), sum(training_words.values()))


def _train_wordpieces(
    recipe: VocabularyRecipe, words: Mapping[str, int], alphabet: Alphabet, required: Sequence[str]
) -> list[str]:
    """Return the required pieces and the first learned ones that WordPiece uses.

    WordPiece takes the longest piece that matches, so that the intermediate merges of a word are never used.
    The next learned pieces replace them.
    """
    pretokenize, characters = make_pretokenizer(recipe), alphabet.characters
    num_trained = recipe.size + recipe.size // _SURPLUS_DIVISOR + len(characters)
    if recipe.algorithm == "wordpiece":
        learned = subword_trainers.train_wordpieces(words, num_trained, characters)
    else:
        learned = subword_trainers.train_bpe_wordpieces(words, num_trained, characters, MAX_PIECE_LENGTH)
    pieces = wordpiece.assemble_vocabulary(recipe.size, required, learned, pretokenize)
    with contextlib.suppress(wordpiece.TooFewPiecesError):  # unused pieces are better than none
        for _ in range(_MAX_ROUNDS):
            tokenizer = hugging_face.make_wordpiece_tokenizer(pieces, recipe.casing)
            used_ids = set(hugging_face.encode_words(tokenizer, list(words))[0].tolist())
            unused = {piece for piece_id, piece in enumerate(pieces) if piece_id not in used_ids}
            learned = [piece for piece in learned if piece not in unused]
            pieces = wordpiece.assemble_vocabulary(recipe.size, required, learned, pretokenize)
    if recipe.sort_by_collation:
        return wordpiece.sort_by_collation(pieces, len(recipe.reserved_tokens))
    return pieces
