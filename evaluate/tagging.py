"""Tagged words as a problem to fine-tune on: one tag a word, predicted at its first piece.

A sentence that is longer than what the model can read is cut into parts, between words, and no word is
ever left out: what is measured is all of the gold.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from . import tags
from .crf import CRF
from .examples import Batch, Encoded, Example, places
from .heads import Tagger
from .recipes import Recipe
from .records import Record, Sentence
from .tokens import Tokens


@dataclass(frozen=True, slots=True)
class Tagging:
    """A problem (examples.py).

    Attributes:
        types: of entities, in the order in which labels are numbered.
        plain: read all text in lower case and without accents (tokens.py).
    """

    tokens: Tokens
    recipe: Recipe
    types: tuple[str, ...]
    plain: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The tags that can be predicted."""
        return tags.labels(self.recipe.tags, self.types)

    def examples(self, records: Sequence[Record], learn: bool) -> list[Example]:
        """The parts of all sentences."""
        sentences = _sentences(records)
        numbers = {label: number for number, label in enumerate(self.labels)}
        found = []
        words = self.tokens.words([one.words for one in sentences], self.plain)
        for record, (sentence, pieces) in enumerate(zip(sentences, words, strict=True)):
            scheme = tags.to(self.recipe.tags, sentence.tags)
            for first, last in self._parts(pieces):
                tagged = scheme[first:last] if learn else ()
                found.append(self._example(record, first, pieces[first:last], tagged, numbers))
        return found

    def _parts(self, pieces: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
        """From which to before which word a part goes: as many words as fit, one at least."""
        room, first, used = self._room, 0, 0
        for at, one in enumerate(pieces):
            size = min(len(one), room)
            if used + size > room:
                yield first, at
                first, used = at, 0
            used += size
        yield first, len(pieces)

    @property
    def _room(self) -> int:
        return min(self.recipe.length, self.tokens.longest) - self.tokens.around(pair=False)

    def _example(
        self,
        record: int,
        first: int,
        pieces: Sequence[Sequence[int]],
        tagged: Sequence[str],
        numbers: dict[str, int],
    ) -> Example:
        flat: list[int] = []
        starts = []
        for one in pieces:
            starts.append(len(flat))
            flat += one[: self._room]
        read = self.tokens.join(flat)
        return Example(
            *(record, read.ids, read.types, tuple(read.first + start for start in starts)),
            target=tuple(numbers[tag] for tag in tagged),
            first=first,
        )

    def head(self, hidden: int) -> nn.Module:
        """A linear layer, behind a BiLSTM or before a CRF where the recipe has one."""
        crf = None
        if "crf" in self.recipe.head:
            crf = CRF(torch.tensor(tags.allowed(self.recipe.tags, self.labels)))
        return Tagger(hidden, len(self.labels), self.recipe.dropout, "bilstm" in self.recipe.head, crf)

    def loss(self, head: Any, encoded: Encoded, batch: Batch) -> Tensor:
        """Of the words' tags."""
        vectors, mask = _words(encoded, batch)
        gold = torch.zeros(mask.shape, dtype=torch.int64)
        for row, one in enumerate(batch.examples):
            gold[row, : len(one.target)] = torch.tensor(one.target)
        found: Tensor = head.loss(vectors, mask, gold.to(mask.device))
        return found

    def predict(self, head: Any, encoded: Encoded, batch: Batch) -> list[Any]:
        """A tag for each word of each part."""
        vectors, mask = _words(encoded, batch)
        found = head.decode(vectors, mask).tolist()
        names = self.labels
        return [
            [names[number] for number in row[: len(one.places)]]
            for row, one in zip(found, batch.examples, strict=True)
        ]

    def assemble(
        self, records: Sequence[Record], examples: Sequence[Example], found: Sequence[Any]
    ) -> list[Any]:
        """BIO tags for all words of each sentence."""
        whole: list[list[str]] = [["O"] * len(one.words) for one in _sentences(records)]
        for example, predicted in zip(examples, found, strict=True):
            whole[example.record][example.first : example.first + len(predicted)] = predicted
        return [tags.back(self.recipe.tags, one) for one in whole]

    def gold(self, records: Sequence[Record]) -> list[Any]:
        """The sentences' own tags, in full."""
        return [list(one.tags) for one in _sentences(records)]


def types_of(records: Sequence[Record]) -> tuple[str, ...]:
    """The types of entities in tagged sentences, sorted."""
    return tuple(sorted({tag[2:] for one in _sentences(records) for tag in one.tags if tag != "O"}))


def _sentences(records: Sequence[Record]) -> list[Sentence]:
    return [one for one in records if isinstance(one, Sentence)]


def _words(encoded: Encoded, batch: Batch) -> tuple[Tensor, Tensor]:
    """The vectors of words' first pieces, [B, W, H], and which there are."""
    at, mask = places(batch)
    return encoded.hidden.gather(1, at[:, :, None].expand(-1, -1, encoded.hidden.shape[-1])), mask
