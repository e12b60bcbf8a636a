"""Build a vocabulary from counted words: alphabet, training, removal of unused pieces."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from tokenizers import Tokenizer

from bioshards.corpus.errors import InvalidValueError
from bioshards.vocab.counting import word_counts
from bioshards.vocab.tokenizer import alphabet, hugging_face, wordpiece
from bioshards.vocab.tokenizer.alphabet import Alphabet
from bioshards.vocab.tokenizer.pieces import Pieces
from bioshards.vocab.tokenizer.pretokenizer import Pretokenizer
from bioshards.vocab.training import subword_trainers
from bioshards.vocab.training.vocabulary_recipes import VocabularyRecipe

MAX_PIECE_LENGTH = 32
"""Maximum characters of a piece.  With SentencePiece's default of 16, "immunohistochemistry" cannot be a
piece; no frequent word of PubMed or PMC has more than 32.
"""
_SURPLUS_DIVISOR = 6
"""A sixth more pieces are trained than needed, because one in twenty or thirty is never used."""
_MAX_ROUNDS = 3
"""After three rounds, fewer than one piece in a thousand is unused."""


class Vocabulary(NamedTuple):
    """A trained vocabulary.

    Attributes:
        tokenizer: tokenizer with the pieces.
        ranked_pieces: WordPieces in the order of training, after reserved tokens and alphabet; None if the
            SentencePiece model is kept.
        sentencepiece_model: SentencePiece model, if one was trained.
        alphabet: characters that always have a piece; None if the algorithm chose them.
        distinct_words: distinct words that were trained on, in their casing.
        total_words: occurrences of these words.
    """

    tokenizer: Tokenizer
    ranked_pieces: list[str] | None
    sentencepiece_model: bytes | None
    alphabet: Alphabet | None
    distinct_words: int
    total_words: int


def build_vocabulary(recipe: VocabularyRecipe, words: Mapping[str, int]) -> Vocabulary:
    """Build the vocabulary of a recipe.

    The same words and recipe give the same bytes.

    Args:
        words: occurrences of words, as counted for ``recipe.pretokenizer``.

    Raises:
        ValueError: the size is too small for the alphabet, or the words yield too few pieces.
    """
    pretokenize = recipe.make_pretokenizer()
    training_words = _drop_long_words(word_counts.convert_counts(words, pretokenize))
    letters = None
    if not recipe.as_published:
        letters = alphabet.build_alphabet(training_words, recipe.character_coverage, pretokenize)
        alphabet_characters = set(letters.characters)
        training_words = {
            word: count for word, count in training_words.items() if alphabet_characters.issuperset(word)
        }
    if not training_words:
        raise InvalidValueError("there is no word to train on")
    train = _train_sentencepiece if recipe.sentencepiece else _train_wordpiece
    tokenizer, ranked_pieces, model = train(recipe, training_words, letters)
    return Vocabulary(
        tokenizer, ranked_pieces, model, letters, len(training_words), sum(training_words.values())
    )


def _drop_long_words(words: Mapping[str, int]) -> dict[str, int]:
    """Remove words that are [UNK] because of their length."""
    return {word: count for word, count in words.items() if len(word) <= wordpiece.MAX_WORD_LENGTH}


def _train_sentencepiece(
    recipe: VocabularyRecipe, words: Mapping[str, int], letters: Alphabet | None
) -> tuple[Tokenizer, None, bytes]:
    """Train a unigram model of SentencePiece."""
    control_symbols = recipe.reserved_tokens[subword_trainers.NUM_SPECIAL_PIECES :]
    characters: Collection[str] = letters.characters if letters else ()
    character_coverage = 1.0 if letters else recipe.character_coverage
    try:
        model = subword_trainers.train_sentencepiece(
            words, "unigram", recipe.size, characters, control_symbols, character_coverage
        )
    except subword_trainers.VocabSizeError as error:
        raise wordpiece.TooFewPiecesError(recipe.size, error.largest) from error
    tokenizer = hugging_face.make_unigram_tokenizer(
        subword_trainers.read_pieces(model), recipe.casing, recipe.entity_placeholders
    )
    return tokenizer, None, model


def _train_wordpiece(
    recipe: VocabularyRecipe, words: Mapping[str, int], letters: Alphabet | None
) -> tuple[Tokenizer, list[str], bytes | None]:
    """Train WordPieces."""
    ranked_pieces, model = (
        _train_as_published(recipe, words) if letters is None else _train_corrected(recipe, words, letters)
    )
    by_id = (
        wordpiece.sort_by_collation(ranked_pieces, len(recipe.reserved_tokens))
        if recipe.sort_by_collation
        else ranked_pieces
    )
    return (
        hugging_face.make_wordpiece_tokenizer(by_id, recipe.casing, recipe.entity_placeholders),
        ranked_pieces,
        model,
    )


def _train_as_published(recipe: VocabularyRecipe, words: Mapping[str, int]) -> tuple[list[str], bytes | None]:
    """Return all pieces of a model of the required size, and its characters in both forms."""
    characters = alphabet.count_characters(words).keys() if recipe.algorithm == "wordpiece" else ()
    requested_size = recipe.size
    for _ in range(_MAX_ROUNDS):
        learned = _learn_pieces(recipe, words, requested_size, characters)
        pieces = dict.fromkeys([*recipe.reserved_tokens, *learned.pieces])
        letters = sorted(
            {character for piece in learned.pieces if len(character := wordpiece.strip_prefix(piece)) == 1}
        )
        pieces.update(
            dict.fromkeys(piece_form for letter in letters for piece_form in (letter, f"##{letter}"))
        )
        if len(pieces) == recipe.size or (learned.is_exhausted and len(pieces) < recipe.size):
            break
        requested_size += recipe.size - len(pieces)
    return wordpiece.assemble_vocabulary(recipe.size, recipe.reserved_tokens, (), pieces, None), learned.model


def _train_corrected(
    recipe: VocabularyRecipe, words: Mapping[str, int], letters: Alphabet
) -> tuple[list[str], bytes | None]:
    """Return the alphabet and the first learned pieces that WordPiece uses.

    WordPiece takes the longest piece that matches, so that the intermediate merges of a word are never used.
    The next learned pieces replace them.
    """
    pretokenize = Pretokenizer(recipe.casing)
    alphabet_pieces = list(alphabet.iter_pieces(letters, pretokenize))
    requested_size = recipe.size + recipe.size // _SURPLUS_DIVISOR + len(letters.characters)
    learned = _learn_pieces(recipe, words, requested_size, letters.characters)
    unused_pieces: set[str] = set()
    by_id = wordpiece.assemble_vocabulary(
        recipe.size, recipe.reserved_tokens, alphabet_pieces, learned.pieces, pretokenize
    )
    for _ in range(_MAX_ROUNDS):
        tokenizer = hugging_face.make_wordpiece_tokenizer(by_id, recipe.casing)
        used_ids = set(Pieces(tokenizer).encode(list(words))[0].tolist())
        unused_pieces.update(piece for piece_id, piece in enumerate(by_id) if piece_id not in used_ids)
        unused_pieces.difference_update(alphabet_pieces, recipe.reserved_tokens)
        pieces = [piece for piece in learned.pieces if piece not in unused_pieces]
        try:
            by_id = wordpiece.assemble_vocabulary(
                recipe.size, recipe.reserved_tokens, alphabet_pieces, pieces, pretokenize
            )
        except wordpiece.TooFewPiecesError:
            break  # unused pieces are better than none
    return by_id, learned.model


class _LearnedPieces(NamedTuple):
    """Learned WordPieces, best first; ``is_exhausted`` is True if the words yield no more."""

    pieces: list[str]
    model: bytes | None
    is_exhausted: bool


def _learn_pieces(
    recipe: VocabularyRecipe, words: Mapping[str, int], size: int, characters: Collection[str]
) -> _LearnedPieces:
    """Learn ``size`` pieces, or as many as the words yield."""

    def run_trainer(size: int) -> tuple[list[str], bytes | None]:
        if recipe.algorithm == "wordpiece":
            return subword_trainers.train_wordpieces(words, size, characters), None
        if recipe.algorithm == "bpe" and not recipe.as_published:
            return subword_trainers.train_bpe_wordpieces(words, size, characters, MAX_PIECE_LENGTH), None
        character_coverage, max_piece_length = 1.0, MAX_PIECE_LENGTH
        if recipe.as_published:
            character_coverage, max_piece_length = (
                recipe.character_coverage,
                subword_trainers.DEFAULT_MAX_PIECE_LENGTH,
            )
        model = subword_trainers.train_sentencepiece(
            words, recipe.algorithm, size, characters, (), character_coverage, max_piece_length
        )
        names = (
            name for name, _ in subword_trainers.read_pieces(model)[subword_trainers.NUM_SPECIAL_PIECES :]
        )
        return list(wordpiece.wordpieces_from_sentencepiece(names)), model

    try:
        return _LearnedPieces(*run_trainer(size), is_exhausted=False)
    except subword_trainers.VocabSizeError as error:
        return _LearnedPieces(*run_trainer(error.largest), is_exhausted=True)
