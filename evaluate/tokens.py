"""A checkpoint's own tokenizer, as fine-tuning needs it: pieces with their places, and what stands
around them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from transformers import AutoTokenizer

from bioshards.corpus.errors import InvalidValueError, UserError

from .legacy import lowered

Offsets = list[tuple[int, int]]


class ModelError(UserError):
    """A folder has no checkpoint that can be fine-tuned: says what is wrong with it, and what to
    give."""


@dataclass(frozen=True, slots=True)
class Input:
    """What a model reads: the pieces of a text or two, with special tokens around them.

    Attributes:
        first, second: where the pieces of either text begin.
    """

    ids: list[int]
    types: list[int]
    first: int
    second: int


@dataclass(slots=True)
class Tokens:
    """A tokenizer.

    Attributes:
        longest: pieces, special tokens among them, that the model can read.
    """

    tokenizer: Any
    longest: int
    _around: dict[bool, tuple[list[int], list[int], list[int], list[int]]] = field(default_factory=dict)

    def texts(self, texts: Sequence[str]) -> list[tuple[list[int], Offsets]]:
        """The pieces of each text, and which characters each of them is."""
        if not texts:
            return []
        found = self.tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True)
        return list(zip(found["input_ids"], found["offset_mapping"], strict=True))

    def words(self, sentences: Sequence[Sequence[str]], plain: bool = False) -> list[list[list[int]]]:
        """The pieces of each word of each sentence; [UNK] for a word of which nothing is left.

        They are those of the words joined by blanks, as a model read them in pretraining: a byte-level
        tokenizer that is given words one by one leaves out that each follows a blank.

        Args:
            plain: in lower case and without accents, as ELECTRA's code for tagging has all text.
        """
        given = [[lowered(word) if plain else word for word in words] for words in sentences]
        every = []
        for words, (ids, offsets) in zip(given, self.texts([" ".join(one) for one in given]), strict=True):
            begins = list(accumulate((len(word) + 1 for word in words[:-1]), initial=-1))
            pieces: list[list[int]] = [[] for _ in words]
            for piece, (_, end) in zip(ids, offsets, strict=True):  # the blank before a word is the word's
                pieces[bisect_right(begins, end - 1) - 1].append(piece)
            every.append([one or [self.tokenizer.unk_token_id] for one in pieces])
        return every

    def around(self, pair: bool) -> int:
        """How many special tokens stand around a text, or around and between two."""
        before, between, after, _ = self._specials(pair)
        return len(before) + len(between) + len(after)

    def join(self, first: Sequence[int], second: Sequence[int] | None = None) -> Input:
        """One input of the pieces of a text or two."""
        before, between, after, types = self._specials(second is not None)
        rest = list(second or ())
        ids = [*before, *first, *between, *rest, *after]
        begins = len(before) + len(first) + len(between)
        kinds = [types[0]] * begins + [types[1]] * (len(ids) - begins)
        return Input(ids, kinds, len(before), begins)

    def _specials(self, pair: bool) -> tuple[list[int], list[int], list[int], list[int]]:
        """What the tokenizer puts before, between and after two texts, and the types of either."""
        if pair not in self._around:
            texts = (["a"], ["b"]) if pair else (["a"],)
            found = self.tokenizer(*texts, return_token_type_ids=True, return_special_tokens_mask=True)
            ids, types = found["input_ids"][0], found["token_type_ids"][0]
            sequences = found.sequence_ids(0)
            places = [[at for at, one in enumerate(sequences) if one == which] for which in (0, 1)]
            starts = places[0][0]
            if pair:
                between = ids[places[0][-1] + 1 : places[1][0]]
                last = places[1][-1]
            else:
                between, last = [], places[0][-1]
            self._around[pair] = (ids[:starts], between, ids[last + 1 :], [types[starts], types[last]])
        return self._around[pair]


def read(folder: str, positions: int) -> Tokens:
    """The tokenizer of a checkpoint.

    Args:
        positions: how many the model has.

    Raises:
        ModelError: there is none that can be used.
    """
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        if not tokenizer.is_fast:
            raise InvalidValueError("it gives no places of pieces in a text (no tokenizer.json)")
    except Exception as error:  # the library raises whatever it meets
        raise ModelError(
            f"{folder} has no tokenizer that can be used ({error}): give a folder with a model and its "
            "tokenizer.json, such as a run's step-NNNNNNN/hf"
        ) from error
    if len(tokenizer) < 10:
        raise ModelError(
            f"the tokenizer of {folder} has {len(tokenizer)} pieces only: tokenizer.json or vocab.txt is lost"
        )
    longest = min(positions, tokenizer.model_max_length)
    tokenizer.model_max_length = 1 << 30  # what is too long is cut by us, or not at all
    return Tokens(tokenizer, longest)
