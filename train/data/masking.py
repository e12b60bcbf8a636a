"""Dynamic masking of tokens (ELECTRA), whole words (BERT, PubMedBERT) and n-grams of words (ALBERT).

One rule selects all units, that of ``create_masked_lm_predictions`` in the references: candidate groups of
tokens are visited in random order; a group is selected if it fits into the rest of the row's budget, and
skipped otherwise.  The order is that of a random number per group.  All rows of a micro-batch are masked at
once, each independently of the others.

Random numbers are a stateless hash of seed, epoch, row, position and stream: SplitMix64
(corpus/splitmix.py).  Masks are therefore independent of batch composition, number of processes and
resumption, differ in every epoch, and need no saved state.

Defects of the references that are not reproduced:

* ELECTRA draws positions with replacement and averages the ids of a duplicate
  (https://github.com/google-research/electra/issues/41).  Here positions are distinct.
* BERT and ALBERT join a continuation piece after [SEP] to the word before [SEP], and ALBERT's n-grams cross
  [SEP].  Here words and n-grams end at special tokens.
* BERT and ALBERT draw random tokens from the whole vocabulary, special tokens included.  Here special tokens
  are excluded; as in the references, the original token is included.

Sources:
    https://github.com/google-research/electra/blob/master/pretrain/pretrain_helpers.py
    https://github.com/google-research/bert/blob/master/create_pretraining_data.py
    https://github.com/google-research/albert/blob/master/create_pretraining_data.py
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bioshards.corpus.splitmix import GAMMA, mix
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.recipe import FAMILIES, MaskUnit, TrainRecipe

IntegerArray = np.ndarray[Any, np.dtype[np.integer[Any]]]

_PRIORITY_STREAM, _NGRAM_STREAM, _CORRUPTION_STREAM, _REPLACEMENT_STREAM, _NOISE_STREAM = range(5)
"""Streams of random numbers, one for each purpose.  The values determine the masks."""
_NGRAM_THRESHOLDS: Final = (6 / 11, 9 / 11)
"""ALBERT's n-grams have one to three words with probabilities 6/11, 3/11 and 2/11."""
_MAX_NGRAM: Final = len(_NGRAM_THRESHOLDS) + 1
_UNSELECTABLE: Final = np.iinfo(np.int64).max
"""Size of an n-gram that cannot be selected."""


@dataclass(frozen=True, slots=True)
class MaskingConfig:
    """Which tokens of a row are selected for prediction, and what replaces them.

    Attributes:
        unit: unit that is masked as a whole.
        rate: fraction of a row's tokens, special tokens included, that are selected.
        mask_token_fraction: fraction of the selected tokens that become [MASK]: 0.85 in ELECTRA, 0.8 in BERT
            and ALBERT.
        random_token_fraction: fraction of the selected tokens that become a random token: 0 in ELECTRA, 0.1
            in BERT and ALBERT.  The others are kept.
        max_predictions: maximum number of selected tokens in a row.  0: ELECTRA's limit, (rate + 0.005) times
            the maximum row length (google-research/electra, configure_pretraining.py).
    """

    unit: MaskUnit = "token"
    rate: float = 0.15
    mask_token_fraction: float = 0.85
    random_token_fraction: float = 0.0
    max_predictions: int = 0

    @classmethod
    def of_recipe(cls, recipe: TrainRecipe, rate: float) -> MaskingConfig:
        """Return the masking of a recipe, whose family must be known, at a masking rate."""
        family = FAMILIES[recipe.family]  # type: ignore[index]  # never "auto" here
        return cls(
            unit=recipe.mask_unit,
            rate=rate,
            mask_token_fraction=family.mask_token_fraction,
            random_token_fraction=family.random_token_fraction,
            max_predictions=recipe.max_predictions_per_seq,
        )

    def compute_budgets(self, tokens: npt.NDArray[np.int64], max_seq_length: int) -> npt.NDArray[np.int64]:
        """Return the maximum number of selected tokens of each row, int64[R], at least 1.

        Args:
            tokens: int64[R], tokens of each row, special tokens included.
            max_seq_length: maximum row length in tokens.
        """
        limit = self.max_predictions or int((self.rate + 0.005) * max_seq_length)
        budgets: npt.NDArray[np.int64] = (tokens * self.rate).round().astype("int64")
        return budgets.clip(1, max(1, limit), out=budgets)


class MaskedRows(NamedTuple):
    """Concatenated rows of T tokens after masking, with M selected positions.

    Attributes:
        ids: int64[T], token ids after masking.
        positions: int64[M], selected positions, ascending.
        targets: int64[M], original ids at the selected positions.
        noise: float32[M], uniform in [0, 1), for sampling a generator's tokens.
    """

    ids: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    noise: npt.NDArray[np.float32]


def mask_rows(
    ids: IntegerArray,
    offsets: npt.NDArray[np.int64],
    row_keys: npt.NDArray[np.uint64],
    piece_table: PieceTable,
    config: MaskingConfig,
    max_seq_length: int,
) -> MaskedRows:
    """Mask a micro-batch of R rows.

    Args:
        ids: integers[T], concatenated rows; each starts with the special token [CLS].  Unchanged.
        offsets: int64[R + 1], start of each row, and T.
        row_keys: uint64[R], of :func:`make_row_keys`.
        max_seq_length: maximum row length in tokens.
    """
    masked_ids = ids.astype(np.int64)
    positions = _select_positions(masked_ids, offsets, row_keys, piece_table, config, max_seq_length)
    targets = masked_ids[positions]
    row = np.repeat(np.arange(len(row_keys)), np.diff(np.searchsorted(positions, offsets)))
    random_args = row_keys[row], positions - offsets[row]
    uniforms = uniform(*random_args, _CORRUPTION_STREAM)
    masked_ids[positions[uniforms < config.mask_token_fraction]] = piece_table.mask_id
    if config.random_token_fraction:
        is_random = (uniforms >= config.mask_token_fraction) & (
            uniforms < config.mask_token_fraction + config.random_token_fraction
        )
        choices = piece_table.replacement_ids
        indices = (uniform(*random_args, _REPLACEMENT_STREAM)[is_random] * len(choices)).astype(np.int64)
        masked_ids[positions[is_random]] = choices[indices]
    return MaskedRows(masked_ids, positions, targets, uniform_float32(*random_args, _NOISE_STREAM))


class _TokenGroups(NamedTuple):
    """G consecutive groups of tokens.  A special token is a group of its own, which is never selected.

    Attributes:
        starts: int64[G + 1], position of each group's first token, and T.
        row: int64[G], row of each group, ascending.
        is_special: bool[G], True for special tokens.
        row_keys: uint64[G], key of each group's row.
        positions: int64[G], position of the first token in its row.
    """

    starts: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    is_special: npt.NDArray[np.bool_]
    row_keys: npt.NDArray[np.uint64]
    positions: npt.NDArray[np.int64]


def _group_tokens(
    ids: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    row_keys: npt.NDArray[np.uint64],
    piece_table: PieceTable,
    whole_words: bool,
) -> _TokenGroups:
    """Group the tokens of all rows into words, or into single tokens."""
    is_special = piece_table.is_special[ids]
    if whole_words:
        is_start = ~piece_table.is_continuation[ids] | is_special
        is_start[1:] |= is_special[:-1]
        starts = np.append(np.flatnonzero(is_start), len(ids))
        is_special = is_special[starts[:-1]]
        counts = np.diff(np.searchsorted(starts, offsets))
    else:
        starts = np.arange(len(ids) + 1)
        counts = np.diff(offsets)
    row = np.repeat(np.arange(len(row_keys)), counts)
    positions = starts[:-1] - np.repeat(offsets[:-1], counts)
    return _TokenGroups(starts, row, is_special, np.repeat(row_keys, counts), positions)


def _select_positions(
    ids: npt.NDArray[np.int64],
    offsets: npt.NDArray[np.int64],
    row_keys: npt.NDArray[np.uint64],
    piece_table: PieceTable,
    config: MaskingConfig,
    max_seq_length: int,
) -> npt.NDArray[np.int64]:
    """Return the selected positions, ascending.

    Most budgets are used up by the groups with the lowest random numbers.  Sorting only these first, and the
    other groups of rows with a remaining budget afterwards, saves most of the sorting.
    """
    tokens = np.diff(offsets)
    budgets = config.compute_budgets(tokens, max_seq_length)
    groups = _group_tokens(ids, offsets, row_keys, piece_table, config.unit != "token")
    priorities = random_bits(groups.row_keys, groups.positions, _PRIORITY_STREAM)
    is_early = priorities < _compute_priority_thresholds(budgets, tokens)[groups.row]
    is_selected = np.zeros(len(groups.row), np.bool_)
    select = _select_ngrams if config.unit == "ngram" else _select_groups
    select(groups, _sort_candidates(groups, priorities, is_early), budgets, is_selected)
    if budgets.any():
        is_late = ~is_early & (budgets > 0)[groups.row]
        select(groups, _sort_candidates(groups, priorities, is_late), budgets, is_selected)
    return np.flatnonzero(np.repeat(is_selected, np.diff(groups.starts)))


def _compute_priority_thresholds(
    budgets: npt.NDArray[np.int64], tokens: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Return the random number below which a row almost always has enough groups for its budget."""
    fraction = (budgets + 4 * np.sqrt(budgets) + 4) / np.maximum(tokens, 1)
    thresholds: npt.NDArray[np.uint64] = (np.minimum(fraction, 1 - 2.0**-53) * 2.0**64).astype(np.uint64)
    return thresholds


def _sort_candidates(
    groups: _TokenGroups, priorities: npt.NDArray[np.uint64], is_candidate: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Return the candidate groups, sorted by row (24 bits), then by 40 bits of the random number."""
    candidates = np.flatnonzero(is_candidate & ~groups.is_special)
    sort_keys = (groups.row[candidates].astype(np.uint64) << np.uint64(40)) | (
        priorities[candidates] >> np.uint64(24)
    )
    return candidates[np.argsort(sort_keys, kind="stable")]


def _select_groups(
    groups: _TokenGroups,
    candidates: npt.NDArray[np.int64],
    budgets: npt.NDArray[np.int64],
    is_selected: npt.NDArray[np.bool_],
) -> None:
    """Select the candidates that fit into the rest of their row's budget at their turn.

    Each round selects the candidates that fit together with all before them in their row, and drops those
    that are larger than the rest of the budget.  The first remaining candidate of a row then fits, so rounds
    are few.
    """
    sizes = groups.starts[candidates + 1] - groups.starts[candidates]
    while len(candidates):
        row = groups.row[candidates]
        ends = np.cumsum(sizes)
        first_candidates = np.searchsorted(row, np.arange(len(budgets)))
        preceding = np.append(ends - sizes, 0)[first_candidates]
        fits = ends <= (preceding + budgets)[row]
        is_selected[candidates[fits]] = True
        budgets -= np.bincount(row[fits], sizes[fits], len(budgets)).astype(np.int64)
        is_undecided = ~fits & (sizes <= budgets[row])
        candidates, sizes = candidates[is_undecided], sizes[is_undecided]


def _select_ngrams(
    groups: _TokenGroups,
    candidates: npt.NDArray[np.int64],
    budgets: npt.NDArray[np.int64],
    is_selected: npt.NDArray[np.bool_],
) -> None:
    """Select n-grams that start at the candidates, shortened to the rest of their row's budget.

    An n-gram that overlaps a selected word is skipped, as in ALBERT.  The first candidates of all rows are
    processed together, then the second ones, and so on.
    """
    sizes, words = _list_ngrams(groups, candidates)
    row = groups.row[candidates]
    rank = np.arange(len(row)) - np.searchsorted(row, np.arange(len(budgets)))[row]
    num_ranks = 1 + int(rank.max(initial=-1))
    sizes_by_rank = np.full((num_ranks, _MAX_NGRAM, len(budgets)), _UNSELECTABLE)
    words_by_rank = np.zeros((num_ranks, _MAX_NGRAM, len(budgets)), np.int64)
    for n in range(_MAX_NGRAM):
        sizes_by_rank[rank, n, row] = sizes[n]
        words_by_rank[rank, n, row] = words[n]
    for rank_words, rank_sizes in zip(words_by_rank, sizes_by_rank, strict=True):
        if not np.count_nonzero(budgets):
            break
        fits = rank_sizes <= budgets
        is_taken = is_selected[rank_words]
        is_accepted = fits & ~np.logical_or.reduce(is_taken & fits)
        is_selected[rank_words] = is_taken | is_accepted
        budgets -= np.maximum.reduce(rank_sizes * is_accepted)


def _list_ngrams(
    groups: _TokenGroups, candidates: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the tokens of the first one, two and three words from each candidate, and the last word's group.

    Both are int64[3, C].  N-grams that exceed the drawn length, cross a special token or the end cannot be
    selected: they have the size ``_UNSELECTABLE`` and word 0, the [CLS] of the first row.
    """
    word_offsets = np.arange(_MAX_NGRAM)[:, None]
    words = candidates + word_offsets
    uniforms = uniform(groups.row_keys[candidates], groups.positions[candidates], _NGRAM_STREAM)
    clipped_words = np.minimum(words, len(groups.row) - 1)
    is_allowed = (
        (word_offsets <= np.searchsorted(_NGRAM_THRESHOLDS, uniforms, "right"))
        & (words == clipped_words)
        & ~groups.is_special[clipped_words]
    )
    sizes = groups.starts[clipped_words + 1] - groups.starts[candidates]
    is_allowed = np.logical_and.accumulate(is_allowed)
    return np.where(is_allowed, sizes, _UNSELECTABLE), np.where(is_allowed, words, 0)


def make_row_keys(seed: int, epochs: IntegerArray, row_ids: IntegerArray) -> npt.NDArray[np.uint64]:
    """Return a 64-bit key for each row of an epoch, the input of :func:`random_bits`, uint64[R].

    Keys are distinct within an epoch, because each step of the hash is a bijection.

    Args:
        seed: any integer; the lower 64 bits are used.
        epochs, row_ids: integers[R], epoch of each row and its number in the set.
    """
    seed_state = mix(np.full(1, seed % (1 << 64), np.uint64) + GAMMA)
    epoch_state = mix(seed_state + GAMMA * (epochs.astype(np.uint64) + np.uint64(1)))
    return mix(epoch_state + GAMMA * (row_ids.astype(np.uint64) + np.uint64(1)))


def random_bits(
    row_keys: npt.NDArray[np.uint64], positions: IntegerArray, stream: int
) -> npt.NDArray[np.uint64]:
    """Return 64 random bits for each position, uint64[N].

    Args:
        row_keys: uint64[N], key of each position's row.
        positions: integers[N], positions in their rows, below 2**32.
        stream: purpose of the numbers, from 0; streams are independent.
    """
    state = positions.astype(np.uint64)
    state += np.uint64(stream << 32)
    state *= GAMMA
    state += row_keys
    return mix(state)


def uniform(
    row_keys: npt.NDArray[np.uint64], positions: IntegerArray, stream: int
) -> npt.NDArray[np.float64]:
    """Return a uniform number in [0, 1) of 53 bits for each position; arguments as :func:`random_bits`."""
    high_bits = random_bits(row_keys, positions, stream) >> np.uint64(11)
    uniforms: npt.NDArray[np.float64] = np.multiply(high_bits, 2.0**-53, dtype=np.float64)
    return uniforms


def uniform_float32(
    row_keys: npt.NDArray[np.uint64], positions: IntegerArray, stream: int
) -> npt.NDArray[np.float32]:
    """Return a uniform float32 in [0, 1) for each position; 24 bits, so that none rounds up to 1."""
    return (random_bits(row_keys, positions, stream) >> np.uint64(40)).astype(np.float32) * np.float32(
        2.0**-24
    )
