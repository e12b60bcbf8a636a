"""What a vocabulary makes of words: fertility, whole words, [UNK], pieces used, alphabet, overlap, curve.

Everything is computed from counts of words, each distinct word encoded once and weighed by its count.  A word
is encoded as if it stood alone between blanks; for BERT's tokenizers that is how it is encoded in any
text.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece

from bioshards.corpus.errors import InvalidValueError

from .alphabet import characters
from .others import SPECIAL
from .pieces import Pieces, Surface
from .reachability import is_punctuation, unreachable
from .wordpiece import LONGEST_WORD

LISTED: Final = 40
"""Examples a list has at most: longest pieces, characters without a piece."""
_DIGITS: Final = 9
"""So that one word of a billion is seen."""
_SHARES: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1)


def share(part: float, whole: float) -> float:
    """A share, or a mean, to nine digits; 0 of nothing."""
    return round(float(part) / float(whole), _DIGITS) if whole else 0.0


def on_words(pieces: Pieces, words: Mapping[str, int]) -> dict[str, Any]:
    """How a vocabulary cuts words.

    Args:
        words: each distinct word, before any change of case, with its count.

    Returns:
        ``fertility``: pieces a word ([UNK] is one piece), and ``without_punctuation`` the same of the words
        that have anything else; ``per_100_characters``: pieces, whatever a word is; ``whole``: share of words
        that are one piece; ``unknown_words`` and ``unknown_characters``: shares in [UNK]; ``used`` and
        ``unused``: pieces.
    """
    texts = list(words)
    counts = np.fromiter(words.values(), np.int64, len(texts))
    ids, lengths = pieces.encode(texts)
    ends = np.cumsum(lengths)
    before = np.concatenate([[0], np.cumsum(ids == pieces.unknown)])
    unknown = before[ends] - before[ends - lengths]
    total, made = int(counts.sum()), int(counts @ lengths)
    length = sum(len(word) * count for word, count in words.items())
    spoken = counts * np.fromiter((not _only_punctuation(word) for word in texts), np.bool_, len(texts))
    used = len(set(np.unique(ids).tolist()) & set(pieces.ids.values()))
    return {
        "fertility": share(made, total),
        "without_punctuation": share(int(spoken @ lengths), int(spoken.sum())),
        "per_100_characters": share(100 * made, length),
        "whole": share(int(counts[(lengths == 1) & (unknown == 0)].sum()), total),
        "unknown_words": share(int(counts[unknown > 0].sum()), total),
        "unknown_characters": share(
            sum(int(counts[at]) * _unknown_characters(pieces, texts[at]) for at in np.flatnonzero(unknown)),
            length,
        ),
        "used": used,
        "unused": len(pieces.ids) - used,
    }


def _only_punctuation(word: str) -> bool:
    return not word.isalnum() and all(map(is_punctuation, word))


def _unknown_characters(pieces: Pieces, word: str) -> int:
    encoding = pieces.tokenizer.encode(word, add_special_tokens=False)
    return sum(
        end - start
        for number, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        if number == pieces.unknown
    )


def dead_pieces(pieces: Pieces) -> dict[str, Any] | None:
    """The pieces that no text can yield; none is looked for in models other than WordPiece.

    Returns:
        ``all``; ``several_characters``: of more than one, without the ##; ``with_punctuation``: those of more
        than one character as written (## counts) with a punctuation mark, which is what SentencePiece leaves
        when it was trained on text whose punctuation was not split off; ``why``: counts; ``examples``.
    """
    if pieces.model != "WordPiece":
        return None
    found = unreachable(pieces)
    texts = [pieces.surface(piece).text for piece, _ in found]
    punctuated = [
        piece
        for (piece, _), text in zip(found, texts, strict=True)
        if len(piece) > 1 and any(map(is_punctuation, text))
    ]
    return {
        "all": len(found),
        "share": share(len(found), len(pieces.ids)),
        "several_characters": sum(len(text) > 1 for text in texts),
        "with_punctuation": len(punctuated),
        "why": dict(sorted(Counter(why for _, why in found).items())),
        "examples": [piece for piece, _ in found[:: max(1, -(-len(found) // LISTED))]],
    }


def longest(pieces: Pieces) -> list[str]:
    """The pieces of the most characters, without the ##."""
    return sorted(pieces.ids, key=lambda piece: (-len(pieces.surface(piece).text), piece))[:LISTED]


def alphabet(pieces: Pieces, words: Mapping[str, int]) -> dict[str, Any]:
    """Which characters of the words have a piece.

    A character is covered when what the normaliser makes of it has a piece at a word's beginning and,
    unless it is always a word of its own, one within a word: then no word of covered characters is [UNK], but
    one of more than 100 characters.

    Returns:
        ``characters``: distinct ones; ``covered``: of those; ``covered_share``: of all occurrences;
        ``missing``: the most frequent without a piece, with their counts; ``failing``: covered ones that the
        library nevertheless makes [UNK], alone or after a letter (none, in a sound tokenizer).
    """
    counts = characters(words)
    ordered = sorted(counts, key=lambda character: (-counts[character], character))
    covered = [character for character in ordered if _covered(pieces, character)]
    missing = sorted(set(ordered) - set(covered), key=lambda character: (-counts[character], character))
    return {
        "characters": len(ordered),
        "covered": len(covered),
        "covered_share": share(sum(counts[character] for character in covered), counts.total()),
        "missing": [[character, counts[character]] for character in missing[:LISTED]],
        "failing": _failing(pieces, covered),
    }


def _covered(pieces: Pieces, character: str) -> bool:
    if pieces.model != "WordPiece":
        return pieces.unknown not in pieces.tokenizer.encode(character, add_special_tokens=False).ids
    normal = pieces.normal(character).strip()
    return all(
        one in pieces.ids and (pieces.prefix + one in pieces.ids or _stands_alone(pieces, one))
        for one in normal
    )


def _stands_alone(pieces: Pieces, character: str) -> bool:
    pre_tokenizer = pieces.tokenizer.pre_tokenizer
    text = pieces.normal(f"a{character}")
    return pre_tokenizer is not None and len(pre_tokenizer.pre_tokenize_str(text)) > 1


def _failing(pieces: Pieces, covered: Sequence[str]) -> list[str]:
    letter = next((character for character in covered if character.isalpha()), "")
    ids, lengths = pieces.encode([text for character in covered for text in (character, letter + character)])
    owners = np.repeat(np.arange(len(lengths)) // 2, lengths)
    return [covered[at] for at in np.unique(owners[ids == pieces.unknown])]


def overlap(ours: Pieces, theirs: Pieces) -> dict[str, Any]:
    """Pieces in common: as written, and in lower case without accents (the fold of BERT's uncased models).

    A piece is its characters and whether it begins a word, so WordPiece and SentencePiece compare.
    """
    written = [{pieces.surface(piece) for piece in pieces.ids} for pieces in (ours, theirs)]
    folded = [{_fold(surface) for surface in surfaces} for surfaces in written]
    return {"as_written": _common(*written), "folded": _common(*folded)}


def _fold(surface: Surface) -> Surface:
    decomposed = unicodedata.normalize("NFD", surface.text)
    bare = "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
    return Surface(surface.begins, bare.lower())


def _common(ours: set[Surface], theirs: set[Surface]) -> dict[str, Any]:
    common = len(ours & theirs)
    return {"pieces": common, "of_ours": share(common, len(ours)), "of_theirs": share(common, len(theirs))}


def curve(ranked: Sequence[str], tokenizer: Tokenizer, words: Mapping[str, int]) -> list[dict[str, Any]]:
    """Fertility of the first N of a WordPiece vocabulary, for N from a sixteenth of it to all.

    Args:
        ranked: the vocabulary in the order of learning: special tokens, alphabet, then pieces as trained.
        tokenizer: its normaliser, pre-tokeniser and mark of continuing pieces are used.
        words: as in :func:`on_words`.

    Raises:
        ValueError: the tokenizer's model is not WordPiece, or it has no [UNK].
    """
    whole = Pieces(tokenizer)
    if whole.model != "WordPiece" or whole.unknown < 0:
        raise InvalidValueError(
            f"A curve needs a WordPiece vocabulary with an unknown token, and this is {whole.model}."
        )
    unknown = str(whole.unknown_token)
    basis = _basis(ranked, whole)
    points = []
    for size in sorted({max(basis, round(len(ranked) * part)) for part in _SHARES}):
        first = {piece: number for number, piece in enumerate(ranked[:size])}
        first.setdefault(unknown, len(first))
        model = WordPiece(
            first,
            unk_token=unknown,
            max_input_chars_per_word=LONGEST_WORD,
            continuing_subword_prefix=whole.prefix,
        )
        smaller = Tokenizer(model)
        if tokenizer.normalizer is not None:
            smaller.normalizer = tokenizer.normalizer
        if tokenizer.pre_tokenizer is not None:
            smaller.pre_tokenizer = tokenizer.pre_tokenizer
        points.append({"size": size} | on_words(Pieces(smaller), words))
    return points


def _basis(ranked: Sequence[str], pieces: Pieces) -> int:
    """How many of the first are special tokens or single characters."""
    added = {token.content for token in pieces.tokenizer.get_added_tokens_decoder().values()}
    for number, piece in enumerate(ranked):
        special = piece in added or SPECIAL.fullmatch(piece)
        if not special and len(pieces.surface(piece).text) > 1:
            return number
    return len(ranked)
