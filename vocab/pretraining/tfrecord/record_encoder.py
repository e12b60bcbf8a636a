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
from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.row_keys import KeyArray

from . import file_format, row_features, static_masks
from .static_masks import StaticMasking

_MASK_PROB: Final = 0.15
"""Share of tokens to predict, in BERT's and ALBERT's code and in the papers."""


@dataclass(frozen=True, slots=True)
class RecordEncoder:
    """How rows become records.

    Attributes:
        pad: the id that rows are padded with.
        continues: for each id 1 where its piece continues a word: ALBERT's records say it of each token.
        masking: how BERT's and ALBERT's are masked; None for ELECTRA's, which are not.
    """

    recipe: ExampleRecipe
    pad_id: int
    is_continuation: bytes
    masking: StaticMasking | None

    def encode_batch(self, batch: pa.RecordBatch, keys: KeyArray) -> tuple[bytes, int]:
        """The records of rows with these keys, and how many: rows without a label are in no file of pairs."""
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
    """What writes rows of this recipe for the original trainers.

    Raises:
        ValueError: there is none of this objective.
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
    """Which ids continue a word: of SentencePiece's pieces ALBERT's code has a rule of its own."""
    if encoder.is_sentencepiece:
        return static_masks.find_sentencepiece_continuations(encoder.get_vocab(), encoder.special_ids)
    return encoder.is_continuation
