"""Texts, pairs of texts and relations as a problem to fine-tune on: a class, a number, or several
classes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from bioshards.corpus.errors import InvalidValueError

from . import heads
from .examples import Batch, Encoded, Example, targets
from .recipes import Recipe
from .records import Record, Relation, Text
from .relation_inputs import relation_input
from .tokens import Tokens

Kind = Literal["class", "classes", "number", "ranking"]
"""One class of several; any of several; a number; texts to be ranked by how likely they are of the
second class."""


@dataclass(slots=True)
class Classifying:
    """A problem (examples.py).

    Attributes:
        labels: the classes, as they are numbered; of a ranking the second is what is to come first.
    """

    tokens: Tokens
    recipe: Recipe
    kind: Kind
    labels: tuple[str, ...]
    weights: Tensor | None = None

    def examples(self, records: Sequence[Record], learn: bool) -> list[Example]:
        """One for each record."""
        relations = [one for one in records if isinstance(one, Relation)]
        if relations:
            found = self._relations(relations, learn)
        else:
            found = self._texts([one for one in records if isinstance(one, Text)], learn)
        if learn:
            self.weights = self._weights(found)
        return found

    def _texts(self, texts: Sequence[Text], learn: bool) -> list[Example]:
        first = self.tokens.texts([one.text for one in texts])
        second = self.tokens.texts([one.pair or "" for one in texts])
        found = []
        for at, one in enumerate(texts):
            pieces, rest = first[at][0], second[at][0]
            room = self._room(one.pair is not None)
            pieces, rest = shorten(pieces, rest, room)
            read = self.tokens.join(pieces, None if one.pair is None else rest)
            found.append(Example(at, read.ids, read.types, target=self._target(one) if learn else None))
        return found

    def _relations(self, relations: Sequence[Relation], learn: bool) -> list[Example]:
        inputs = [relation_input(one, self.recipe.entities) for one in relations]
        room, found = self._room(pair=False), []
        texts = self.tokens.texts([one.text for one in inputs])
        for at, (one, (pieces, offsets)) in enumerate(zip(inputs, texts, strict=True)):
            begins = one.starts if self.recipe.feature == "start" else (one.first[0], one.second[0])
            spans = zip(begins, (one.first[1], one.second[1]), strict=True)
            ranges = [_pieces_of(span, offsets) for span in spans]
            begin = window(len(pieces), room, min(low for low, _ in ranges), max(high for _, high in ranges))
            read = self.tokens.join(pieces[begin : begin + room])
            shift, end = read.first - begin, read.first + min(room, len(pieces))
            places = [min(end, max(read.first, edge + shift)) for span in ranges for edge in span]
            target = self._target(relations[at]) if learn else None
            found.append(Example(at, read.ids, read.types, tuple(places), target))
        return found

    def _room(self, pair: bool) -> int:
        return min(self.recipe.length, self.tokens.longest) - self.tokens.around(pair)

    def _target(self, record: Text | Relation) -> Any:
        label = record.label
        if self.kind == "number":
            return float(label)  # type: ignore[arg-type]  # of a set of numbers
        if isinstance(label, frozenset):
            return [float(one in label) for one in self.labels]
        return self.labels.index(str(label))

    def _weights(self, examples: Sequence[Example]) -> Tensor | None:
        """The classes' weights in the loss.

        Raises:
            ValueError: the recipe names another number of them than there are classes.
        """
        if self.recipe.class_weights == "none" or self.kind not in ("class", "ranking"):
            return None
        if self.recipe.class_weights == "balanced":  # as scikit-learn: examples / (classes x examples of one)
            seen = Counter(one.target for one in examples)
            return torch.tensor(
                [
                    len(examples) / (len(seen) * seen[at]) if seen[at] else 0.0
                    for at in range(len(self.labels))
                ]
            )
        given = self.recipe.weights()
        if len(given) != len(self.labels):
            raise InvalidValueError(
                f"--class-weights has {len(given)} numbers, and there are {len(self.labels)} classes: "
                f"{', '.join(self.labels)}"
            )
        return torch.tensor(given)

    def head(self, hidden: int) -> nn.Module:
        """A linear layer, behind a BiLSTM where the recipe has one."""
        width = {"cls": hidden, "mention": 2 * hidden, "start": 2 * hidden}[self.recipe.feature]
        outputs = 1 if self.kind == "number" else len(self.labels)
        bilstm = heads.BiLSTM(hidden) if "bilstm" in self.recipe.head else None
        return Head(bilstm, heads.Pooled(width, outputs, self.recipe.dropout))

    def _outputs(self, head: Any, encoded: Encoded, batch: Batch) -> Tensor:
        hidden, features = encoded.hidden, encoded.pooled
        if head.bilstm is not None:
            hidden = head.bilstm(hidden, batch.mask)
            features = hidden[:, 0]
        if self.recipe.feature != "cls":
            at = torch.tensor([one.places for one in batch.examples], device=batch.ids.device)
            ranges = at.view(-1, 2, 2)
            features = heads.relation_features(hidden, ranges[:, 0], ranges[:, 1], self.recipe.feature)
        found: Tensor = head.pooled(features)
        return found

    def loss(self, head: Any, encoded: Encoded, batch: Batch) -> Tensor:
        """Cross-entropy, weighted if so asked; of any of several binary cross-entropy; of a number the
        square."""
        outputs = self._outputs(head, encoded, batch)
        if self.kind == "number":
            return heads.squared_error(outputs, targets(batch, torch.float32))
        if self.kind == "classes":
            return heads.binary_cross_entropy(outputs, targets(batch, torch.float32))
        weights = None if self.weights is None else self.weights.to(outputs.device)
        return heads.cross_entropy(outputs, targets(batch, torch.int64), weights)

    def predict(self, head: Any, encoded: Encoded, batch: Batch) -> list[Any]:
        """A class, classes, a number, or the share of the second class."""
        outputs = self._outputs(head, encoded, batch).float()
        match self.kind:
            case "number":
                return list(outputs[:, 0].tolist())
            case "ranking":
                return list(outputs.softmax(-1)[:, 1].tolist())
            case "classes":
                return [
                    frozenset(name for name, is_one in zip(self.labels, row, strict=True) if is_one)
                    for row in (outputs > 0).tolist()
                ]
            case _:
                return [self.labels[number] for number in outputs.argmax(-1).tolist()]

    def assemble(
        self, records: Sequence[Record], examples: Sequence[Example], found: Sequence[Any]
    ) -> list[Any]:
        """As predicted: an example is a record."""
        return list(found)

    def gold(self, records: Sequence[Record]) -> list[Any]:
        """The records' labels; of a ranking the question of each, and whether it answers that."""
        if self.kind == "ranking":
            return [(one.group, one.label == self.labels[1]) for one in records if isinstance(one, Text)]
        return [one.label for one in records if isinstance(one, (Text, Relation))]


class Head(nn.Module):
    """A linear layer on a vector, which is the encoder's or a BiLSTM's above it."""

    def __init__(self, bilstm: heads.BiLSTM | None, pooled: heads.Pooled) -> None:
        super().__init__()
        self.bilstm = bilstm
        self.pooled = pooled


def shorten(first: list[int], second: list[int], room: int) -> tuple[list[int], list[int]]:
    """Cut the longer of two at its end, piece by piece, until both fit (``longest_first`` of Hugging
    Face)."""
    over = len(first) + len(second) - room
    if over <= 0:
        return first, second
    least = min(len(first), len(second))
    kept = max(least, room - least)  # of the longer one, if cutting that is enough
    if kept + least <= room:
        return (first[:kept], second) if len(first) >= len(second) else (first, second[:kept])
    return first[: room - room // 2], second[: room // 2]


def window(size: int, room: int, low: int, high: int) -> int:
    """Where to begin to read so that ``low`` to before ``high`` is read: at 0 if that does, else around
    them."""
    if size <= room or high <= room:
        return 0
    return max(0, min(size - room, low - max(0, room - (high - low)) // 2))


def _pieces_of(span: tuple[int, int], offsets: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The pieces that share a character with a span; the next one, where none does."""
    at = [number for number, (start, end) in enumerate(offsets) if start < span[1] and end > span[0]]
    if at:
        return at[0], at[-1] + 1
    after = next((number for number, (start, _) in enumerate(offsets) if start >= span[0]), len(offsets) - 1)
    return after, after + 1
