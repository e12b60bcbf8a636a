"""From counted words to a vocabulary: the alphabet, the training, and the mending of what was learned."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from tokenizers import Tokenizer

from bioshards.corpus.errors import InvalidValueError

from . import alphabet, counts, hugging_face, training, wordpiece
from .alphabet import Alphabet
from .pieces import Pieces
from .recipes import Recipe
from .words import Words

LONGEST_PIECE = 32
"""Characters of a piece: no word that is frequent in PubMed or PMC is longer.  SentencePiece's default is
16, and so "immunohistochemistry" cannot be a piece."""
_SPARE = 6
"""Learned is a sixth more than is needed, as one piece in twenty or thirty will lie idle."""
_ROUNDS = 3
"""After three rounds fewer than one piece in a thousand lies idle."""


class Vocabulary(NamedTuple):
    """What was built.

    Attributes:
        tokenizer: with the pieces by id.
        learned: the pieces of WordPiece in the order in which they were learned, after what is reserved and
            the alphabet; None for a model that is kept.
        model: SentencePiece's, if one was trained.
        alphabet: the characters that have a piece whatever was learned; None where none is looked after.
        distinct: words trained on, in their casing, and ``tokens`` how often they occur together.
    """

    tokenizer: Tokenizer
    learned: list[str] | None
    model: bytes | None
    alphabet: Alphabet | None
    distinct: int
    tokens: int


def build(recipe: Recipe, words: Mapping[str, int]) -> Vocabulary:
    """Build a vocabulary.

    Nothing is drawn at random: the same words and recipe give the same bytes.

    Args:
        words: as they were counted for ``recipe.kind``, how often each occurs.

    Raises:
        ValueError: the size has no room for the alphabet, or the words do not give so many pieces.
    """
    split = recipe.words()
    to_train = _short(counts.recased(words, split))
    letters = None
    if not recipe.as_published:
        letters = alphabet.of(to_train, recipe.coverage, split)
        known = set(letters.characters)
        to_train = {word: number for word, number in to_train.items() if known.issuperset(word)}
    if not to_train:
        raise InvalidValueError("there is no word to train on")
    make = _sentencepiece if recipe.sentencepiece else _wordpiece
    tokenizer, learned, model = make(recipe, to_train, letters)
    return Vocabulary(tokenizer, learned, model, letters, len(to_train), sum(to_train.values()))


def _short(words: Mapping[str, int]) -> dict[str, int]:
    """Without the words that are [UNK] for their length, whatever is learned of them."""
    return {word: number for word, number in words.items() if len(word) <= wordpiece.LONGEST_WORD}


def _sentencepiece(
    recipe: Recipe, words: Mapping[str, int], letters: Alphabet | None
) -> tuple[Tokenizer, None, bytes]:
    """A unigram model as SentencePiece trains it."""
    controls = recipe.reserved[training.ASIDE :]
    characters: Collection[str] = letters.characters if letters else ()
    coverage = 1.0 if letters else recipe.coverage
    try:
        model = training.sentencepiece(words, "unigram", recipe.size, characters, controls, coverage)
    except training.VocabSizeError as few:
        raise wordpiece.TooFewPiecesError(recipe.size, few.largest) from few
    tokenizer = hugging_face.unigram(training.pieces(model), recipe.casing, recipe.dummies)
    return tokenizer, None, model


def _wordpiece(
    recipe: Recipe, words: Mapping[str, int], letters: Alphabet | None
) -> tuple[Tokenizer, list[str], bytes | None]:
    """WordPieces, learned as the recipe says."""
    learned, model = _as_published(recipe, words) if letters is None else _mended(recipe, words, letters)
    by_id = wordpiece.by_collation(learned, len(recipe.reserved)) if recipe.by_collation else learned
    return hugging_face.wordpiece(by_id, recipe.casing, recipe.dummies), learned, model


def _as_published(recipe: Recipe, words: Mapping[str, int]) -> tuple[list[str], bytes | None]:
    """All pieces of a model of the size that is needed, and its characters in both forms."""
    characters = alphabet.characters(words).keys() if recipe.algorithm == "wordpiece" else ()
    ask = recipe.size
    for _ in range(_ROUNDS):
        found = _learn(recipe, words, ask, characters)
        pieces = dict.fromkeys([*recipe.reserved, *found.pieces])
        letters = sorted({bare for piece in found.pieces if len(bare := wordpiece.bare(piece)) == 1})
        pieces.update(dict.fromkeys(form for letter in letters for form in (letter, f"##{letter}")))
        if len(pieces) == recipe.size or (found.all_there_are and len(pieces) < recipe.size):
            break
        ask += recipe.size - len(pieces)
    return wordpiece.assemble(recipe.size, recipe.reserved, (), pieces, None), found.model


def _mended(recipe: Recipe, words: Mapping[str, int], letters: Alphabet) -> tuple[list[str], bytes | None]:
    """The alphabet, and of the pieces learned the first that WordPiece uses.

    Learning and use are not the same: WordPiece takes the longest piece that fits, so that the steps by
    which a word was put together lie idle.  Where they do, the next pieces take their place.
    """
    split = Words(recipe.casing)
    forms = list(alphabet.forms(letters, split))
    ask = recipe.size + recipe.size // _SPARE + len(letters.characters)
    found = _learn(recipe, words, ask, letters.characters)
    idle: set[str] = set()
    by_id = wordpiece.assemble(recipe.size, recipe.reserved, forms, found.pieces, split)
    for _ in range(_ROUNDS):
        tokenizer = hugging_face.wordpiece(by_id, recipe.casing)
        used = set(Pieces(tokenizer).encode(list(words))[0].tolist())
        idle.update(piece for number, piece in enumerate(by_id) if number not in used)
        idle.difference_update(forms, recipe.reserved)
        pieces = [piece for piece in found.pieces if piece not in idle]
        try:
            by_id = wordpiece.assemble(recipe.size, recipe.reserved, forms, pieces, split)
        except wordpiece.TooFewPiecesError:
            break  # idle pieces are better than none
    return by_id, found.model


class _Learned(NamedTuple):
    """Pieces of WordPiece, the best first, and whether the words give no more."""

    pieces: list[str]
    model: bytes | None
    all_there_are: bool


def _learn(recipe: Recipe, words: Mapping[str, int], size: int, characters: Collection[str]) -> _Learned:
    """Learn so many pieces, or as many as there are."""

    def learn(size: int) -> tuple[list[str], bytes | None]:
        if recipe.algorithm == "wordpiece":
            return training.wordpiece(words, size, characters), None
        if recipe.algorithm == "bpe" and not recipe.as_published:
            return training.marked(words, size, characters, LONGEST_PIECE), None
        share, longest = 1.0, LONGEST_PIECE
        if recipe.as_published:
            share, longest = recipe.coverage, training.LONGEST_PIECE
        model = training.sentencepiece(words, recipe.algorithm, size, characters, (), share, longest)
        names = (name for name, _ in training.pieces(model)[training.ASIDE :])
        return list(wordpiece.from_sentencepiece(names)), model

    try:
        return _Learned(*learn(size), all_there_are=False)
    except training.VocabSizeError as few:
        return _Learned(*learn(few.largest), all_there_are=True)
