"""Which tokens of a row are to be predicted, and what the model sees in their place.

Single tokens (ELECTRA), whole words (BERT's whole-word masking, PubMedBERT) and n-grams of words (ALBERT) are
chosen by one rule, that of ``create_masked_lm_predictions`` in the references: groups of tokens are gone
through in a random order, and each is taken as a whole if it fits into what is left of the row's budget, else
it is skipped and the next one tried.  Here the order is that of a random number of each group, which is a
function of the seed, the epoch, the row and the place (counter_rng.py).  All rows of a micro-batch are masked
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

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from bioshards.train.config.masking_config import MaskingConfig

from .counter_rng import random_bits, uniform, uniform_float32
from .piece_table import PieceTable

_PRIORITY_STREAM, _NGRAM_STREAM, _CORRUPTION_STREAM, _REPLACEMENT_STREAM, _NOISE_STREAM = range(5)
"""What random numbers are drawn for: each has its own stream."""
_NGRAM_THRESHOLDS: Final = (6 / 11, 9 / 11)
"""ALBERT's n-grams are of one to three words with probabilities in the ratio of 1/n: 6, 3 and 2 of 11."""
_MAX_NGRAM: Final = len(_NGRAM_THRESHOLDS) + 1
_UNSELECTABLE: Final = np.iinfo(np.int64).max
"""The size of what cannot be chosen."""


class MaskedRows(NamedTuple):
    """Rows laid end to end, T tokens, of which M are to be predicted.

    Attributes:
        ids: int64[T]: what the model sees.
        at: int64[M]: the places of those to predict, ascending.
        targets: int64[M]: what stood there.
        noise: float32[M]: a number from 0 to below 1 for each, from which a generator's token is drawn.
    """

    ids: npt.NDArray[np.int64]
    positions: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]
    noise: npt.NDArray[np.float32]


def mask_rows(
    ids: np.ndarray[Any, np.dtype[np.integer[Any]]],
    offsets: npt.NDArray[np.int64],
    row_keys: npt.NDArray[np.uint64],
    piece_table: PieceTable,
    config: MaskingConfig,
    max_seq_length: int,
) -> MaskedRows:
    """Mask a micro-batch.

    Args:
        ids: [T], R rows of tokens laid end to end; each begins with a special token, [CLS].  Not changed.
        offsets: [R + 1], where in ids each row begins, and T.
        row_keys: [R], of randomness.key.
        max_seq_length: the most tokens that a row may have.
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
        replacement_indices = uniform(*random_args, _REPLACEMENT_STREAM)[is_random] * len(
            piece_table.replacement_ids
        )
        masked_ids[positions[is_random]] = piece_table.replacement_ids[replacement_indices.astype(np.int64)]
    return MaskedRows(masked_ids, positions, targets, uniform_float32(*random_args, _NOISE_STREAM))


class _TokenGroups(NamedTuple):
    """G groups of tokens, one after another; a special token is a group too, which is never chosen.

    Attributes:
        begins: [G + 1], the place of each group's first token, and T.
        row: [G], ascending.
        special: [G], is it a special token?
        keys: uint64[G], those of the rows.
        places: [G], the place of the first token in its row.
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
    """The words of all rows, or their tokens."""
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
    """The places to predict, ascending.

    A row's budget is used up long before all of its groups have been gone through.  So at first only those
    are sorted whose random numbers are low, and then the others of rows in which something is left.
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
        select(
            groups,
            _sort_candidates(groups, priorities, ~is_early & (budgets > 0)[groups.row]),
            budgets,
            is_selected,
        )
    return np.flatnonzero(np.repeat(is_selected, np.diff(groups.starts)))


def _compute_priority_thresholds(
    budgets: npt.NDArray[np.int64], tokens: npt.NDArray[np.int64]
) -> npt.NDArray[np.uint64]:
    """Below which number a row has groups enough to use up its budget, but for one row in some thousands."""
    fraction = (budgets + 4 * np.sqrt(budgets) + 4) / np.maximum(tokens, 1)
    thresholds: npt.NDArray[np.uint64] = (np.minimum(fraction, 1 - 2.0**-53) * 2.0**64).astype(np.uint64)
    return thresholds


def _sort_candidates(
    groups: _TokenGroups, priorities: npt.NDArray[np.uint64], is_candidate: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int64]:
    """Those of the groups that may be chosen, row by row in the order of their random numbers.

    40 bits of a number count, below 24 of the row's; of equal ones the first in the row comes first.
    """
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
    """Take the candidates that fit into what is left of their row when it is their turn.

    In rounds: those are taken that fit together with all before them in their row; all that are larger than
    what is left then will never fit, and are dropped; the first of the others does fit.
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
    """Take n-grams that begin with the candidates, each shortened to what is left of its row at its turn.

    One that meets words chosen before is left out as a whole, as in ALBERT.  The first of all rows are tried
    at once, then the second ones.
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
    """[3, C]: the tokens of each candidate's first word, of its first two, of all three; and these words.

    What is more than was drawn for it, or goes beyond a special token or the end, cannot be chosen; in its
    place is the first row's [CLS], so that no row touches what is another's.
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
