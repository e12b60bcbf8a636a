"""Rows as files of the original trainers: google-research/electra, bert and albert, from the same examples.

Beside a pretraining set lie then ``pretrain_tfrecords/pretrain_data.tfrecord-*``, where ELECTRA's trainer
looks for them (configure_pretraining.py), and the same in ``validation_tfrecords``.  BERT's and ALBERT's rows
are masked once and for all, with chances of the row's key.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.pretraining import NO_LABEL
from bioshards.vocab.encode import Encoder

from . import layouts, static_masks, tfrecord
from .plan import Keys
from .recipes import Recipe
from .static_masks import Masking

_PROBABILITY: Final = 0.15
"""Share of tokens to predict, in BERT's and ALBERT's code and in the papers."""


@dataclass(frozen=True, slots=True)
class Tensorflow:
    """How rows become records.

    Attributes:
        pad: the id that rows are padded with.
        continues: for each id 1 where its piece continues a word: ALBERT's records say it of each token.
        masking: how BERT's and ALBERT's are masked; None for ELECTRA's, which are not.
    """

    recipe: Recipe
    pad: int
    continues: bytes
    masking: Masking | None

    def records(self, batch: pa.RecordBatch, keys: Keys) -> tuple[bytes, int]:
        """The records of rows with these keys, and how many: rows without a label are in no file of pairs."""
        length = self.recipe.length
        if self.masking is None:
            return tfrecord.encode(layouts.electra(batch, length, self.pad)), len(batch)
        of_row = keys[batch["label"].to_numpy() != NO_LABEL].tolist()
        kept = layouts.pairs(batch)
        if not of_row:
            return b"", 0
        rows = zip(kept["input_ids"].to_pylist(), of_row, strict=True)
        most = self.masking.max_predictions
        if self.recipe.objective == "bert":
            masked = [static_masks.bert(ids, self.masking, random.Random(key)) for ids, key in rows]
            return tfrecord.encode(layouts.bert(kept, masked, length, most, self.pad)), len(kept)
        masked = [static_masks.albert(ids, self.masking, random.Random(key)) for ids, key in rows]
        features = layouts.albert(kept, masked, length, most, self.pad, self.continues)
        return tfrecord.encode(features), len(kept)


def tensorflow(encoder: Encoder, recipe: Recipe) -> Tensorflow:
    """What writes rows of this recipe for the original trainers.

    Raises:
        ValueError: there is none of this objective.
    """
    if recipe.objective == "plain":
        raise InvalidValueError(
            "--tfrecord is for electra, bert and albert: no original trainer reads plain rows"
        )
    pad = max(encoder.pad, 0)
    continues = _continues(encoder)
    if recipe.objective == "electra":
        return Tensorflow(recipe, pad, continues, None)
    special = frozenset((encoder.special["[CLS]"], encoder.special["[SEP]"]))
    most = recipe.max_predictions or math.ceil(_PROBABILITY * recipe.length)
    words = continues if recipe.whole_words else None
    masking = Masking(encoder.special["[MASK]"], special, encoder.size, most, _PROBABILITY, words)
    return Tensorflow(recipe, pad, continues, masking)


def _continues(encoder: Encoder) -> bytes:
    """Which ids continue a word: of SentencePiece's pieces ALBERT's code has a rule of its own."""
    if encoder.sentencepiece:
        return static_masks.sentencepiece_continues(encoder.pieces(), encoder.special)
    return encoder.continues
