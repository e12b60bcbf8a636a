"""Random batches in both layouts, and small models for them: what the tests of objectives begin with."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.models import ModelConfig, build_objective
from bioshards.train.objective import Objective

PAD, CLS, SEP, MASK = 0, 2, 3, 4
SPECIAL = {"[PAD]": PAD, "[UNK]": 1, "[CLS]": CLS, "[SEP]": SEP, "[MASK]": MASK}
VOCABULARY = 61
LENGTHS = (17, 3, 40, 8, 29)
LENGTH = 40
FAMILIES = ("electra", "bert", "albert")


@dataclass(frozen=True)
class Facts:
    """What models need to know of the data."""

    vocabulary_size: int = VOCABULARY
    special_ids: dict[str, int] = field(default_factory=lambda: SPECIAL)
    labelled: bool = True


@dataclass(frozen=True)
class Row:
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


def rows(seed: int, lengths: Sequence[int] = LENGTHS, labels: bool = True) -> list[Row]:
    """Rows of these lengths; in each a token or more is masked, most by [MASK]."""
    chance = random.Random(seed)
    found = []
    for length in lengths:
        ids = [CLS, *(chance.randrange(5, VOCABULARY) for _ in range(length - 2)), SEP]
        places = sorted(chance.sample(range(1, length - 1), max(1, length // 6)))
        seen = {place: MASK if chance.random() < 0.8 else ids[place] for place in places}
        noise = tuple(chance.random() for _ in places)
        split = chance.choice((0, length // 2))
        found.append(Row(tuple(ids), split, chance.choice((0, 1, -100)) if labels else -100, seen, noise))
    return found


def flat(rows: Sequence[Row], tokens: int = 0, masked: int = 0) -> Batch:
    """The rows end to end; with so many tokens and masked places, and one more empty segment, if asked."""
    starts = [sum(len(row.ids) for row in rows[:number]) for number in range(len(rows))]
    end = sum(len(row.ids) for row in rows)
    fill = range(tokens - end) if tokens else ()
    bounds = [*starts, end]
    if tokens:
        bounds += [min(tokens, end + LENGTH * number) for number in range(1, tokens // LENGTH + 3)]
    return _batch(
        rows,
        starts,
        [*(token for row in rows for token in row.ids), *(PAD for _ in fill)],
        [*_types(rows), *(0 for _ in fill)],
        [*(place for row in rows for place in range(len(row.ids))), *(at % LENGTH for at in fill)],
        [*(True for _ in range(end)), *(False for _ in fill)],
        masked,
        torch.tensor(bounds, dtype=torch.int32),
        LENGTH if tokens else max(len(row.ids) for row in rows),
    )


def padded(rows: Sequence[Row], masked: int = 0) -> Batch:
    """The rows padded to ``LENGTH``."""
    ids: list[int] = []
    types: list[int] = []
    real: list[bool] = []
    for row in rows:
        fill = LENGTH - len(row.ids)
        ids += [*row.ids, *[PAD] * fill]
        types += [*_types([row]), *[0] * fill]
        real += [*[True] * len(row.ids), *[False] * fill]
    starts = [LENGTH * number for number in range(len(rows))]
    places = list(range(LENGTH)) * len(rows)
    return _batch(rows, starts, ids, types, places, real, masked, None, LENGTH)


def _types(rows: Sequence[Row]) -> list[int]:
    return [int(0 < row.split <= place) for row in rows for place in range(len(row.ids))]


def _batch(
    rows: Sequence[Row],
    starts: list[int],
    ids: list[int],
    types: list[int],
    places: list[int],
    real: list[bool],
    masked: int,
    bounds: torch.Tensor | None,
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


def layouts(rows: Sequence[Row]) -> dict[str, Batch]:
    """The same rows in each layout."""
    return {
        "flat": flat(rows),
        "padded": padded(rows),
        "flat, constant": flat(rows, tokens=192, masked=32),
        "padded, constant": padded(rows, masked=32),
    }


def counts(rows: Sequence[Row]) -> BatchCounts:
    sizes = [len(row.ids) for row in rows]
    return BatchCounts(
        rows=len(rows),
        tokens=sum(sizes),
        masked=sum(len(row.masked) for row in rows),
        labelled=sum(row.label >= 0 for row in rows),
        squares=sum(size**2 for size in sizes),
    )


def shape(family: str, dropout: float = 0.0, attention_dropout: float = 0.0) -> ModelConfig:
    """Two layers; ELECTRA's and ALBERT's embeddings are of another width."""
    embedding = 32 if family == "bert" else 16
    sizes = ModelConfig(
        family,
        hidden_size=32,
        num_layers=2,
        num_heads=2,
        intermediate_size=48,
        embedding_size=embedding,
        max_positions=64,
    )
    return replace(sizes, generator_hidden_fraction=0.5, dropout=dropout, attention_dropout=attention_dropout)


def objective(
    family: str, labelled: bool = True, dropout: float = 0.0, attention_dropout: float = 0.0
) -> Objective:
    """A small model of which the weights are large enough to tell tokens apart."""
    torch.manual_seed(5)
    found = build_objective(shape(family, dropout, attention_dropout), Facts(labelled=labelled))
    with torch.no_grad():
        for parameter in found.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.1)
    return found


def loss(objective: Objective, batch: Batch, rows: Sequence[Row]) -> torch.Tensor:
    return objective.compute_loss(objective(batch), counts(rows)._asdict())
