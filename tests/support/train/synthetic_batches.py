"""Random batches in several layouts, and small models for them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor

from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.models.objectives import Objective
from bioshards.train.models.weights import build_objective
from bioshards.train.recipe import FamilyName, TrainRecipe

PAD, CLS, SEP, MASK = 0, 2, 3, 4
SPECIAL_TOKEN_IDS = {"[PAD]": PAD, "[UNK]": 1, "[CLS]": CLS, "[SEP]": SEP, "[MASK]": MASK}
VOCABULARY = 61
LENGTHS = (17, 3, 40, 8, 29)
LENGTH = 40
FAMILIES: tuple[FamilyName, ...] = ("electra", "bert", "albert")


@dataclass(frozen=True)
class DatasetInfo:
    """The properties of a dataset that models read."""

    vocabulary_size: int = VOCABULARY
    special_ids: dict[str, int] = field(default_factory=lambda: SPECIAL_TOKEN_IDS)
    labelled: bool = True
    most_frequent_id: int = 5


@dataclass(frozen=True)
class MaskedRow:
    """A row before it is masked, and how it is.

    Attributes:
        masked: by position, what is to be seen there.
        noise: as many numbers.
    """

    ids: tuple[int, ...]
    split: int
    label: int
    masked: dict[int, int]
    noise: tuple[float, ...]


def random_masked_rows(seed: int, lengths: Sequence[int] = LENGTHS, labels: bool = True) -> list[MaskedRow]:
    """Draw rows of given lengths; in each at least one token is masked, mostly by [MASK]."""
    rng = random.Random(seed)
    masked_rows = []
    for length in lengths:
        ids = [CLS, *(rng.randrange(5, VOCABULARY) for _ in range(length - 2)), SEP]
        masked_positions = sorted(rng.sample(range(1, length - 1), max(1, length // 6)))
        seen = {place: MASK if rng.random() < 0.8 else ids[place] for place in masked_positions}
        noise = tuple(rng.random() for _ in masked_positions)
        split = rng.choice((0, length // 2))
        masked_rows.append(
            MaskedRow(tuple(ids), split, rng.choice((0, 1, -100)) if labels else -100, seen, noise)
        )
    return masked_rows


def make_flat_batch(rows: Sequence[MaskedRow], tokens: int = 0, masked: int = 0) -> Batch:
    """The rows end to end; with so many tokens and masked places, and one more empty segment, if asked."""
    starts = [sum(len(row.ids) for row in rows[:number]) for number in range(len(rows))]
    end = sum(len(row.ids) for row in rows)
    padding = range(tokens - end) if tokens else ()
    bounds = [*starts, end]
    if tokens:
        bounds += [min(tokens, end + LENGTH * number) for number in range(1, tokens // LENGTH + 3)]
    return _make_batch(
        rows,
        starts,
        [*(token for row in rows for token in row.ids), *(PAD for _ in padding)],
        [*_token_types(rows), *(0 for _ in padding)],
        [*(place for row in rows for place in range(len(row.ids))), *(at % LENGTH for at in padding)],
        [*(True for _ in range(end)), *(False for _ in padding)],
        masked,
        torch.tensor(bounds, dtype=torch.int32),
        LENGTH if tokens else max(len(row.ids) for row in rows),
    )


def make_padded_batch(rows: Sequence[MaskedRow], masked: int = 0) -> Batch:
    """Make a batch of rows padded to ``LENGTH``, as Hugging Face has them.

    Padding is in segments of its own.
    """
    ids: list[int] = []
    types: list[int] = []
    real: list[bool] = []
    for row in rows:
        padding_length = LENGTH - len(row.ids)
        ids += [*row.ids, *[PAD] * padding_length]
        types += [*_token_types([row]), *[0] * padding_length]
        real += [*[True] * len(row.ids), *[False] * padding_length]
    starts = [LENGTH * number for number in range(len(rows))]
    places = list(range(LENGTH)) * len(rows)
    bounds = [
        *(end for row, start in zip(rows, starts, strict=True) for end in (start, start + len(row.ids)))
    ]
    bounds_tensor = torch.tensor([*bounds, len(ids)], dtype=torch.int32)
    return _make_batch(rows, starts, ids, types, places, real, masked, bounds_tensor, LENGTH)


def _token_types(rows: Sequence[MaskedRow]) -> list[int]:
    return [int(0 < row.split <= place) for row in rows for place in range(len(row.ids))]


def _make_batch(
    rows: Sequence[MaskedRow],
    starts: list[int],
    ids: list[int],
    types: list[int],
    places: list[int],
    real: list[bool],
    masked: int,
    bounds: torch.Tensor,
    longest: int,
) -> Batch:
    at: list[int] = []
    targets: list[int] = []
    noise: list[float] = []
    for start, row in zip(starts, rows, strict=True):
        for (place, seen), number in zip(row.masked.items(), row.noise, strict=True):
            at.append(start + place)
            targets.append(row.ids[place])
            noise.append(number)
            ids[start + place] = seen
    fill = max(0, masked - len(at))
    return Batch(
        ids=torch.tensor(ids),
        token_type_ids=torch.tensor(types),
        position_ids=torch.tensor(places),
        is_token=torch.tensor(real),
        masked_positions=torch.tensor(at + [0] * fill),
        targets=torch.tensor(targets + [-100] * fill),
        noise=torch.tensor(noise + [0.5] * fill),
        row_starts=torch.tensor(starts),
        labels=torch.tensor([row.label for row in rows]),
        cu_seqlens=bounds,
        max_seqlen=longest,
    )


def make_batch_of_each_layout(rows: Sequence[MaskedRow]) -> dict[str, Batch]:
    """Make a batch of the same rows in each layout."""
    return {
        "flat": make_flat_batch(rows),
        "padded": make_padded_batch(rows),
        "flat, constant": make_flat_batch(rows, tokens=192, masked=32),
        "padded, constant": make_padded_batch(rows, masked=32),
    }


def count_rows(rows: Sequence[MaskedRow]) -> BatchCounts:
    sizes = [len(row.ids) for row in rows]
    return BatchCounts(
        rows=len(rows),
        tokens=sum(sizes),
        masked=sum(len(row.masked) for row in rows),
        labelled=sum(row.label >= 0 for row in rows),
    )


def make_recipe(family: str, dropout: float = 0.0, attention_dropout: float = 0.0) -> TrainRecipe:
    """Make a recipe of two layers; ELECTRA's and ALBERT's embeddings have another width."""
    return TrainRecipe(
        cast(FamilyName, family),
        hidden_size=32,
        num_layers=2,
        num_heads=2,
        intermediate_size=48,
        embedding_size=16,
        max_positions=64,
        generator_hidden_fraction=0.5,
        dropout=dropout,
        attention_dropout=attention_dropout,
    )


def make_objective(
    family: str, labelled: bool = True, dropout: float = 0.0, attention_dropout: float = 0.0
) -> Objective:
    """Make a small model whose weights are large enough to distinguish tokens."""
    torch.manual_seed(5)
    model = build_objective(make_recipe(family, dropout, attention_dropout), DatasetInfo(labelled=labelled))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return model


def total_loss(objective: Objective, batch: Batch, rows: Sequence[MaskedRow]) -> torch.Tensor:
    return objective.compute_loss(objective(batch), count_rows(rows)._asdict())


def run_dense(
    query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, max_seqlen: int, dropout: float
) -> Tensor:
    """A kernel for segments of different lengths: attention between all tokens, with a mask."""
    assert cu_seqlens.diff().max() <= max_seqlen
    segment = torch.searchsorted(cu_seqlens[1:], torch.arange(len(query), dtype=torch.int32), right=True)
    q, k, v = (tensor.transpose(0, 1) for tensor in (query, key, value))
    mask = segment[:, None] == segment
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout).transpose(0, 1)
