"""Metrics of a vocabulary on words: fertility, whole words, [UNK], used pieces, alphabet, overlap, curve.

All are computed from counted words: each distinct word is encoded once and weighted by its count.  A word is
encoded as if it stood between blanks, which for BERT's tokenizers is how it is encoded in any text.
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
from bioshards.vocab.report.reachability import find_unreachable, is_punctuation
from bioshards.vocab.tokenizer.alphabet import count_characters
from bioshards.vocab.tokenizer.pieces import Pieces, Surface
from bioshards.vocab.tokenizer.wordpiece import MAX_WORD_LENGTH, SPECIAL_TOKEN_PATTERN

MAX_EXAMPLES: Final = 40
"""Maximum number of examples in a list: longest pieces, characters without a piece."""
_RATIO_DIGITS: Final = 9
"""Decimal digits of ratios, enough to show one word of a billion."""
_CURVE_FRACTIONS: Final = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 1)


def rounded_ratio(numerator: float, denominator: float) -> float:
    """Return a fraction or mean with nine digits; 0 if the denominator is 0."""
    return round(float(numerator) / float(denominator), _RATIO_DIGITS) if denominator else 0.0


def measure_words(pieces: Pieces, words: Mapping[str, int]) -> dict[str, Any]:
    """Measure how a vocabulary splits words.

    Args:
        words: occurrences of each distinct word, as written.

    Returns:
        ``fertility``: pieces per word, [UNK] being one piece; ``without_punctuation``: the same of words that
        are not punctuation only; ``per_100_characters``: pieces per 100 characters; ``whole``: fraction of
        words that are one piece; ``unknown_words`` and ``unknown_characters``: fractions in [UNK]; ``used``
        and ``unused``: numbers of pieces.
    """
    texts = list(words)
    counts = np.fromiter(words.values(), np.int64, len(texts))
    ids, lengths = pieces.encode(texts)
    ends = np.cumsum(lengths)
    unknown_cumulative = np.concatenate([[0], np.cumsum(ids == pieces.unknown_id)])
    unknown_counts = unknown_cumulative[ends] - unknown_cumulative[ends - lengths]
    total, piece_total = int(counts.sum()), int(counts @ lengths)
    character_total = sum(len(word) * count for word, count in words.items())
    nonpunctuation_counts = counts * np.fromiter(
        (not _is_only_punctuation(word) for word in texts), np.bool_, len(texts)
    )
    used = len(set(np.unique(ids).tolist()) & set(pieces.ids.values()))
    return {
        "fertility": rounded_ratio(piece_total, total),
        "without_punctuation": rounded_ratio(
            int(nonpunctuation_counts @ lengths), int(nonpunctuation_counts.sum())
        ),
        "per_100_characters": rounded_ratio(100 * piece_total, character_total),
        "whole": rounded_ratio(int(counts[(lengths == 1) & (unknown_counts == 0)].sum()), total),
        "unknown_words": rounded_ratio(int(counts[unknown_counts > 0].sum()), total),
        "unknown_characters": rounded_ratio(
            sum(
                int(counts[index]) * _count_unknown_characters(pieces, texts[index])
                for index in np.flatnonzero(unknown_counts)
            ),
            character_total,
        ),
        "used": used,
        "unused": len(pieces.ids) - used,
    }


def _is_only_punctuation(word: str) -> bool:
    return not word.isalnum() and all(map(is_punctuation, word))


def _count_unknown_characters(pieces: Pieces, word: str) -> int:
    encoding = pieces.tokenizer.encode(word, add_special_tokens=False)
    return sum(
        end - start
        for token_id, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        if token_id == pieces.unknown_id
    )


def measure_unreachable(pieces: Pieces) -> dict[str, Any] | None:
    """Count the pieces that no text yields; None for models other than WordPiece.

    Returns:
        ``all``; ``several_characters``: of more than one character without ``##``; ``with_punctuation``: of
        more than one character with ``##`` and with a punctuation mark, which SentencePiece produces from
        text whose punctuation was not split off; ``why``: counts by reason; ``examples``.
    """
    if pieces.model_type != "WordPiece":
        return None
    unreachable_pieces = find_unreachable(pieces)
    texts = [pieces.get_surface(piece).text for piece, _ in unreachable_pieces]
    punctuated = [
        piece
        for (piece, _), text in zip(unreachable_pieces, texts, strict=True)
        if len(piece) > 1 and any(map(is_punctuation, text))
    ]
    return {
        "all": len(unreachable_pieces),
        "share": rounded_ratio(len(unreachable_pieces), len(pieces.ids)),
        "several_characters": sum(len(text) > 1 for text in texts),
        "with_punctuation": len(punctuated),
        "why": dict(sorted(Counter(reason for _, reason in unreachable_pieces).items())),
        "examples": [
            piece for piece, _ in unreachable_pieces[:: max(1, -(-len(unreachable_pieces) // MAX_EXAMPLES))]
        ],
    }


def find_longest_pieces(pieces: Pieces) -> list[str]:
    """Return the pieces with the most characters, ``##`` not counted."""
    return sorted(pieces.ids, key=lambda piece: (-len(pieces.get_surface(piece).text), piece))[:MAX_EXAMPLES]


def measure_alphabet(pieces: Pieces, words: Mapping[str, int]) -> dict[str, Any]:
    """Measure which characters of the words have a piece.

    A character is covered if its normalised form has a piece at the start of a word and, unless it always is
    a word of its own, one within a word.  A word of covered characters is [UNK] only if it has more than 100.

    Returns:
        ``characters``: number of distinct ones; ``covered``: number of covered ones; ``covered_share``: their
        fraction of all occurrences; ``missing``: the most frequent without a piece, with counts; ``failing``:
        covered ones that the library still encodes as [UNK], alone or after a letter (none, in a valid
        tokenizer).
    """
    counts = count_characters(words)
    ordered = sorted(counts, key=lambda character: (-counts[character], character))
    covered = [character for character in ordered if _is_covered(pieces, character)]
    missing = sorted(set(ordered) - set(covered), key=lambda character: (-counts[character], character))
    return {
        "characters": len(ordered),
        "covered": len(covered),
        "covered_share": rounded_ratio(sum(counts[character] for character in covered), counts.total()),
        "missing": [[character, counts[character]] for character in missing[:MAX_EXAMPLES]],
        "failing": _find_failing(pieces, covered),
    }


def _is_covered(pieces: Pieces, character: str) -> bool:
    if pieces.model_type != "WordPiece":
        return pieces.unknown_id not in pieces.tokenizer.encode(character, add_special_tokens=False).ids
    normalized = pieces.normalize(character).strip()
    return all(
        normalized_character in pieces.ids
        and (
            pieces.continuation_prefix + normalized_character in pieces.ids
            or _is_own_word(pieces, normalized_character)
        )
        for normalized_character in normalized
    )


def _is_own_word(pieces: Pieces, character: str) -> bool:
    pre_tokenizer = pieces.tokenizer.pre_tokenizer
    text = pieces.normalize(f"a{character}")
    return pre_tokenizer is not None and len(pre_tokenizer.pre_tokenize_str(text)) > 1


def _find_failing(pieces: Pieces, covered: Sequence[str]) -> list[str]:
    letter = next((character for character in covered if character.isalpha()), "")
    ids, lengths = pieces.encode([text for character in covered for text in (character, letter + character)])
    owners = np.repeat(np.arange(len(lengths)) // 2, lengths)
    return [covered[index] for index in np.unique(owners[ids == pieces.unknown_id])]


def measure_overlap(ours: Pieces, theirs: Pieces) -> dict[str, Any]:
    """Count the common pieces: as written, and in lower case without accents as in BERT's uncased models.

    A piece is compared by its characters and by whether it starts a word, for WordPiece and SentencePiece
    alike.
    """
    surfaces_as_written = [{pieces.get_surface(piece) for piece in pieces.ids} for pieces in (ours, theirs)]
    folded = [{_fold(surface) for surface in surfaces} for surfaces in surfaces_as_written]
    return {"as_written": _count_common(*surfaces_as_written), "folded": _count_common(*folded)}


def _fold(surface: Surface) -> Surface:
    decomposed = unicodedata.normalize("NFD", surface.text)
    without_accents = "".join(
        character for character in decomposed if unicodedata.category(character) != "Mn"
    )
    return Surface(surface.is_word_initial, without_accents.lower())


def _count_common(ours: set[Surface], theirs: set[Surface]) -> dict[str, Any]:
    common = len(ours & theirs)
    return {
        "pieces": common,
        "of_ours": rounded_ratio(common, len(ours)),
        "of_theirs": rounded_ratio(common, len(theirs)),
    }


def measure_curve(
    ranked_pieces: Sequence[str], tokenizer: Tokenizer, words: Mapping[str, int]
) -> list[dict[str, Any]]:
    """Measure the fertility of the first N pieces of a WordPiece vocabulary, from a sixteenth of it to all.

    Args:
        ranked_pieces: pieces in the order of training: special tokens, alphabet, then learned pieces.
        tokenizer: supplies normaliser, pre-tokenizer and continuation prefix.
        words: as in :func:`measure_words`.

    Raises:
        ValueError: the model is not WordPiece, or has no unknown token.
    """
    full_pieces = Pieces(tokenizer)
    if full_pieces.model_type != "WordPiece" or full_pieces.unknown_id < 0:
        raise InvalidValueError(
            "A curve needs a WordPiece vocabulary with an unknown token, and this is "
            f"{full_pieces.model_type}."
        )
    unknown_token = str(full_pieces.unknown_token)
    min_size = _count_base_pieces(ranked_pieces, full_pieces)
    points = []
    for size in sorted(
        {max(min_size, round(len(ranked_pieces) * fraction)) for fraction in _CURVE_FRACTIONS}
    ):
        ids = {piece: piece_id for piece_id, piece in enumerate(ranked_pieces[:size])}
        ids.setdefault(unknown_token, len(ids))
        model = WordPiece(
            ids,
            unk_token=unknown_token,
            max_input_chars_per_word=MAX_WORD_LENGTH,
            continuing_subword_prefix=full_pieces.continuation_prefix,
        )
        truncated_tokenizer = Tokenizer(model)
        if tokenizer.normalizer is not None:
            truncated_tokenizer.normalizer = tokenizer.normalizer
        if tokenizer.pre_tokenizer is not None:
            truncated_tokenizer.pre_tokenizer = tokenizer.pre_tokenizer
        points.append({"size": size} | measure_words(Pieces(truncated_tokenizer), words))
    return points


def _count_base_pieces(ranked_pieces: Sequence[str], pieces: Pieces) -> int:
    """Return how many of the first pieces are special tokens or single characters."""
    added = {token.content for token in pieces.tokenizer.get_added_tokens_decoder().values()}
    for index, piece in enumerate(ranked_pieces):
        is_special = piece in added or SPECIAL_TOKEN_PATTERN.fullmatch(piece)
        if not is_special and len(pieces.get_surface(piece).text) > 1:
            return index
    return len(ranked_pieces)
