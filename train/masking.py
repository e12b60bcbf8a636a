"""Which tokens of a row are to be predicted, and what the model sees in their place.

Single tokens (ELECTRA), whole words (BERT's whole-word masking, PubMedBERT) and n-grams of words (ALBERT) are
chosen by one rule, that of ``create_masked_lm_predictions`` in the references: groups of tokens are gone
through in a random order, and each is taken as a whole if it fits into what is left of the row's budget, else
it is skipped and the next one tried.  Here the order is that of a random number of each group, which is a
function of the seed, the epoch, the row and the place (randomness.py).  All rows of a micro-batch are masked
at once, and each as it would be alone.

Where a reference errs, or is careless, the sane thing is done:

* ELECTRA draws positions with replacement, and gives one that comes twice the average of two ids
  (https://github.com/google-research/electra/issues/41).  Here no place comes twice.
* BERT and ALBERT join a piece that follows [SEP] and continues a word to the word before [SEP], and ALBERT's
  n-grams go on beyond [SEP].  Here neither a word nor an n-gram goes beyond a special token.
* BERT and ALBERT put any piece of the vocabulary in a token's place, [CLS], [SEP], [MASK] and [PAD] among
  them (ELECTRA puts none).  Here it is any that is no special token, the token itself as well, as there.

SOURCES:
    https://github.com/google-research/electra/blob/master/pretrain/pretrain_helpers.py
    https://github.com/google-research/bert/blob/master/create_pretraining_data.py
    https://github.com/google-research/albert/blob/master/create_pretraining_data.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from bioshards.corpus.errors import InvalidValueError

from .pieces import Pieces
from .randomness import bits, uniform, uniform32

Unit = Literal["token", "word", "ngram"]
_CHOICE, _WORDS, _FATE, _REPLACEMENT, _NOISE = range(5)
"""What random numbers are drawn for: each has its own stream."""
_NGRAMS: Final = (6 / 11, 9 / 11)
"""ALBERT's n-grams are of one to three words with probabilities in the ratio of 1/n: 6, 3 and 2 of 11."""
_LONGEST: Final = len(_NGRAMS) + 1
_NEVER: Final = np.iinfo(np.int64).max
"""The size of what cannot be chosen."""


@dataclass(frozen=True, slots=True)
class Masking:
    """How rows are masked.

    Attributes:
        unit: what is masked as a whole.
        rate: the share of a row's tokens, special ones counted, that are to be predicted.
        masked, random: the share of those that become [MASK], and that become a random token; the rest stays
            as it is.  0.85 and 0 in ELECTRA, 0.8 and 0.1 in BERT and ALBERT.
        most: the most predictions of a row; 0 for what ELECTRA's configuration has
            (``configure_pretraining.py``): 0.005 more than the rate, of the longest row.
    """

    unit: Unit = "token"
    rate: float = 0.15
    masked: float = 0.85
    random: float = 0.0
    most: int = 0

    def __post_init__(self) -> None:
        if self.unit not in get_args(Unit):
            raise InvalidValueError(f"masking unit {self.unit!r} is none of {', '.join(get_args(Unit))}")
        if not 0 < self.rate < 1:
            raise InvalidValueError(
                f"masking rate {self.rate} is a share of a row's tokens: give one between 0 and 1"
            )
        if self.masked < 0 or self.random < 0 or self.masked + self.random > 1 + 1e-9:
            raise InvalidValueError(
                f"masked {self.masked} and random {self.random} are shares of the tokens to predict: give "
                "numbers that are together at most 1"
            )
        if self.most < 0:
            raise InvalidValueError(
                f"{self.most} predictions a row at most: give 1 or more, or 0 for what the rate gives"
            )

    def budgets(self, tokens: npt.NDArray[np.int64], length: int) -> npt.NDArray[np.int64]:
        """How many tokens may be predicted of rows of so many tokens, special ones counted.

        Args:
            length: the most tokens that a row may have.
        """
        most = self.most or int((self.rate + 0.005) * length)
        budgets: npt.NDArray[np.int64] = np.rint(tokens * self.rate).astype(np.int64)
        return budgets.clip(1, max(1, most), out=budgets)


class Masked(NamedTuple):
    """Rows laid end to end, T tokens, of which M are to be predicted.

    Attributes:
        ids: int64[T]: what the model sees.
        at: int64[M]: the places of those to predict, ascending.
        targets: int64[M]: what stood there.
        noise: float32[M]: a number from 0 to below 1 for each, from which a generator's token is drawn.
    """

    ids: npt.NDArray[np.int64]
    at: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    noise: npt.NDArray[np.float32]


def mask(
    ids: np.ndarray[Any, np.dtype[np.integer[Any]]],
    offsets: npt.NDArray[np.int64],
    keys: npt.NDArray[np.uint64],
    pieces: Pieces,
    masking: Masking,
    length: int,
) -> Masked:
    """Mask a micro-batch.

    Args:
        ids: [T], R rows of tokens laid end to end; each begins with a special token, [CLS].  Not changed.
        offsets: [R + 1], where in ids each row begins, and T.
        keys: [R], of randomness.key.
        length: the most tokens that a row may have.
    """
    seen = ids.astype(np.int64)
    at = _chosen(seen, offsets, keys, pieces, masking, length)
    targets = seen[at]
    row = np.repeat(np.arange(len(keys)), np.diff(np.searchsorted(at, offsets)))
    draw = keys[row], at - offsets[row]
    fate = uniform(*draw, _FATE)
    seen[at[fate < masking.masked]] = pieces.mask
    if masking.random:
        swapped = (fate >= masking.masked) & (fate < masking.masked + masking.random)
        numbers = uniform(*draw, _REPLACEMENT)[swapped] * len(pieces.replacements)
        seen[at[swapped]] = pieces.replacements[numbers.astype(np.int64)]
    return Masked(seen, at, targets, uniform32(*draw, _NOISE))


class _Groups(NamedTuple):
    """G groups of tokens, one after another; a special token is a group too, which is never chosen.

    Attributes:
        begins: [G + 1], the place of each group's first token, and T.
        row: [G], ascending.
        special: [G], is it a special token?
        keys: uint64[G], those of the rows.
        places: [G], the place of the first token in its row.
    """

    begins: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    special: npt.NDArray[np.bool_]
    keys: npt.NDArray[np.uint64]
    places: npt.NDArray[np.int64]


def _groups(
    ids: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    keys: npt.NDArray[np.uint64],
    pieces: Pieces,
    words: bool,
) -> _Groups:
    """The words of all rows, or their tokens."""
    special = pieces.special[ids]
    if words:
        first = ~pieces.continues[ids] | special
        first[1:] |= special[:-1]
        begins = np.append(np.flatnonzero(first), len(ids))
        special = special[begins[:-1]]
        counts = np.diff(np.searchsorted(begins, offsets))
    else:
        begins = np.arange(len(ids) + 1)
        counts = np.diff(offsets)
    row = np.repeat(np.arange(len(keys)), counts)
    places = begins[:-1] - np.repeat(offsets[:-1], counts)
    return _Groups(begins, row, special, np.repeat(keys, counts), places)


def _chosen(
    ids: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    keys: npt.NDArray[np.uint64],
    pieces: Pieces,
    masking: Masking,
    length: int,
) -> npt.NDArray[np.int64]:
    """The places to predict, ascending.

    A row's budget is used up long before all of its groups have been gone through.  So at first only those
    are sorted whose random numbers are low, and then the others of rows in which something is left.
    """
    tokens = np.diff(offsets)
    left = masking.budgets(tokens, length)
    groups = _groups(ids, offsets, keys, pieces, masking.unit != "token")
    order = bits(groups.keys, groups.places, _CHOICE)
    low = order < _enough(left, tokens)[groups.row]
    chosen = np.zeros(len(groups.row), np.bool_)
    take = _take_ngrams if masking.unit == "ngram" else _take_groups
    take(groups, _sorted(groups, order, low), left, chosen)
    if left.any():
        take(groups, _sorted(groups, order, ~low & (left > 0)[groups.row]), left, chosen)
    return np.flatnonzero(np.repeat(chosen, np.diff(groups.begins)))


def _enough(left: npt.NDArray[np.int64], tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Below which number a row has groups enough to use up its budget, but for one row in some thousands."""
    share = (left + 4 * np.sqrt(left) + 4) / np.maximum(tokens, 1)
    below: npt.NDArray[np.uint64] = (np.minimum(share, 1 - 2.0**-53) * 2.0**64).astype(np.uint64)
    return below


def _sorted(
    groups: _Groups, order: npt.NDArray[np.uint64], which: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Those of the groups that may be chosen, row by row in the order of their random numbers.

    40 bits of a number count, below 24 of the row's; of equal ones the first in the row comes first.
    """
    found = np.flatnonzero(which & ~groups.special)
    ranks = (groups.row[found].astype(np.uint64) << np.uint64(40)) | (order[found] >> np.uint64(24))
    return found[np.argsort(ranks, kind="stable")]


def _take_groups(
    groups: _Groups,
    candidates: npt.NDArray[np.int64],
    left: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.bool_],
) -> None:
    """Take the candidates that fit into what is left of their row when it is their turn.

    In rounds: those are taken that fit together with all before them in their row; all that are larger than
    what is left then will never fit, and are dropped; the first of the others does fit.
    """
    sizes = groups.begins[candidates + 1] - groups.begins[candidates]
    while len(candidates):
        row = groups.row[candidates]
        ends = np.cumsum(sizes)
        first = np.searchsorted(row, np.arange(len(left)))
        before = np.append(ends - sizes, 0)[first]
        fits = ends <= (before + left)[row]
        chosen[candidates[fits]] = True
        left -= np.bincount(row[fits], sizes[fits], len(left)).astype(np.int64)
        others = ~fits & (sizes <= left[row])
        candidates, sizes = candidates[others], sizes[others]


def _take_ngrams(
    groups: _Groups,
    candidates: npt.NDArray[np.int64],
    left: npt.NDArray[np.int64],
    chosen: npt.NDArray[np.bool_],
) -> None:
    """Take n-grams that begin with the candidates, each shortened to what is left of its row at its turn.

    One that meets words chosen before is left out as a whole, as in ALBERT.  The first of all rows are tried
    at once, then the second ones.
    """
    sizes, words = _ngrams(groups, candidates)
    row = groups.row[candidates]
    turn = np.arange(len(row)) - np.searchsorted(row, np.arange(len(left)))[row]
    turns = 1 + int(turn.max(initial=-1))
    size = np.full((turns, _LONGEST, len(left)), _NEVER)
    word = np.zeros((turns, _LONGEST, len(left)), np.int64)
    for n in range(_LONGEST):
        size[turn, n, row] = sizes[n]
        word[turn, n, row] = words[n]
    for at, of_words in zip(word, size, strict=True):
        if not np.count_nonzero(left):
            break
        fits = of_words <= left
        met = chosen[at]
        taken = fits & ~np.logical_or.reduce(met & fits)
        chosen[at] = met | taken
        left -= np.maximum.reduce(of_words * taken)


def _ngrams(
    groups: _Groups, candidates: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """[3, C]: the tokens of each candidate's first word, of its first two, of all three; and these words.

    What is more than was drawn for it, or goes beyond a special token or the end, cannot be chosen; in its
    place is the first row's [CLS], so that no row touches what is another's.
    """
    number = np.arange(_LONGEST)[:, None]
    words = candidates + number
    draw = uniform(groups.keys[candidates], groups.places[candidates], _WORDS)
    last = np.minimum(words, len(groups.row) - 1)
    allowed = (number <= np.searchsorted(_NGRAMS, draw, "right")) & (words == last) & ~groups.special[last]
    sizes = groups.begins[last + 1] - groups.begins[candidates]
    allowed = np.logical_and.accumulate(allowed)
    return np.where(allowed, sizes, _NEVER), np.where(allowed, words, 0)
