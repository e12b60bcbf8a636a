"""TFRecord files for the original trainers of google-research: electra, bert and albert.

They are written to ``pretrain_tfrecords/pretrain_data.tfrecord-*``, where ELECTRA's trainer looks for them
(configure_pretraining.py), and to ``validation_tfrecords``.  Rows of BERT and ALBERT are masked once, with
random numbers from the row's key.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.row_keys import KeyArray

from . import file_format, row_features, static_masks
from .static_masks import StaticMasking

_MASK_PROB: Final = 0.15
"""Fraction of tokens to predict, in the code and the papers of BERT and ALBERT."""


@dataclass(frozen=True, slots=True)
class RecordEncoder:
    """Encoder of rows as records.

    Attributes:
        pad_id: id of the padding token.
        is_continuation: for each id, 1 if its piece continues a word; a feature of ALBERT's records.
        masking: masking of BERT and ALBERT; None for ELECTRA, whose rows are not masked.
    """

    recipe: ExampleRecipe
    pad_id: int
    is_continuation: bytes
    masking: StaticMasking | None

    def encode_batch(self, batch: pa.RecordBatch, keys: KeyArray) -> tuple[bytes, int]:
        """Return the records of rows and their number; rows of pairs without a label are left out."""
        max_seq_length = self.recipe.max_seq_length
        if self.masking is None:
            return file_format.encode_records(
                row_features.make_electra_features(batch, max_seq_length, self.pad_id)
            ), len(batch)
        row_keys = keys[batch["label"].to_numpy() != NO_LABEL].tolist()
        labelled_batch = row_features.select_labelled(batch)
        if not row_keys:
            return b"", 0
        keyed_rows = zip(labelled_batch["input_ids"].to_pylist(), row_keys, strict=True)
        max_predictions_per_seq = self.masking.max_predictions_per_seq
        if self.recipe.objective == "bert":
            masked_rows = [
                static_masks.mask_bert_row(ids, self.masking, random.Random(key)) for ids, key in keyed_rows
            ]
            return file_format.encode_records(
                row_features.make_bert_features(
                    labelled_batch, masked_rows, max_seq_length, max_predictions_per_seq, self.pad_id
                )
            ), len(labelled_batch)
        masked_rows = [
            static_masks.mask_albert_row(ids, self.masking, random.Random(key)) for ids, key in keyed_rows
        ]
        features = row_features.make_albert_features(
            labelled_batch,
            masked_rows,
            max_seq_length,
            max_predictions_per_seq,
            self.pad_id,
            self.is_continuation,
        )
        return file_format.encode_records(features), len(labelled_batch)


def make_record_encoder(encoder: Encoder, recipe: ExampleRecipe) -> RecordEncoder:
    """Return the encoder for a recipe.

    Raises:
        ValueError: no original trainer reads rows of this objective.
    """
    if recipe.objective == "plain":
        raise InvalidValueError(
            "--tfrecord is for electra, bert and albert: no original trainer reads plain rows"
        )
    pad_id = max(encoder.pad_id, 0)
    is_continuation = _continuation_flags(encoder)
    if recipe.objective == "electra":
        return RecordEncoder(recipe, pad_id, is_continuation, None)
    special_ids = frozenset((encoder.special_ids["[CLS]"], encoder.special_ids["[SEP]"]))
    max_predictions_per_seq = recipe.max_predictions_per_seq or math.ceil(_MASK_PROB * recipe.max_seq_length)
    word_continuation = is_continuation if recipe.whole_words else None
    masking = StaticMasking(
        encoder.special_ids["[MASK]"],
        special_ids,
        encoder.size,
        max_predictions_per_seq,
        _MASK_PROB,
        word_continuation,
    )
    return RecordEncoder(recipe, pad_id, is_continuation, masking)


def _continuation_flags(encoder: Encoder) -> bytes:
    """Return which ids continue a word; ALBERT's code has its own rule for SentencePiece."""
    if encoder.is_sentencepiece:
        return static_masks.find_sentencepiece_continuations(encoder.get_vocab(), encoder.special_ids)
    return encoder.is_continuation
