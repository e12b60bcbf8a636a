"""Token classification: one tag per word, predicted at its first token.

Long sentences are split between words into several inputs, so every word is tagged and all gold tags count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from bioshards.evaluate.benchmarks.record_types import Record, TaggedSentence
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe
from bioshards.evaluate.metrics import tag_schemes
from bioshards.evaluate.metrics.tag_f1 import count_words_read
from bioshards.evaluate.modeling.batches import EncoderOutput, PaddedBatch, TokenizedExample, stack_positions
from bioshards.evaluate.modeling.crf import CRF
from bioshards.evaluate.modeling.heads import TokenClassificationHead
from bioshards.evaluate.modeling.tokenization import ModelTokenizer


@dataclass(frozen=True, slots=True)
class TokenClassification:
    """Task adapter for tagged sentences.

    Attributes:
        entity_types: types in the order of the labels.
        should_lowercase: lower-case and strip accents (modeling/tokenization.py).
    """

    tokenizer: ModelTokenizer
    recipe: FineTuneRecipe
    entity_types: tuple[str, ...]
    should_lowercase: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """Tags in the order of the outputs."""
        return tag_schemes.list_labels(self.recipe.tag_scheme, self.entity_types)

    def make_examples(self, records: Sequence[Record], is_training: bool) -> list[TokenizedExample]:
        """Return the parts of all sentences."""
        sentences = _select_sentences(records)
        label_ids = {label: label_id for label_id, label in enumerate(self.labels)}
        examples = []
        encoded_sentences = self.tokenizer.encode_words(
            [sentence.words for sentence in sentences], self.should_lowercase
        )
        for record_index, (sentence, word_ids) in enumerate(zip(sentences, encoded_sentences, strict=True)):
            scheme_tags = tag_schemes.convert_from_bio(self.recipe.tag_scheme, sentence.tags)
            for first_word, end_word in self._split_sentence(word_ids):
                target_tags = scheme_tags[first_word:end_word] if is_training else ()
                examples.append(
                    self._make_example(
                        record_index, first_word, word_ids[first_word:end_word], target_tags, label_ids
                    )
                )
        return examples

    def _split_sentence(self, word_ids: Sequence[Sequence[int]]) -> Iterator[tuple[int, int]]:
        """Yield word ranges of parts that fit into an input, of at least one word each."""
        max_tokens, first_word, tokens_used = self._max_tokens, 0, 0
        for index, token_ids in enumerate(word_ids):
            size = min(len(token_ids), max_tokens)
            if tokens_used + size > max_tokens:
                yield first_word, index
                first_word, tokens_used = index, 0
            tokens_used += size
        yield first_word, len(word_ids)

    @property
    def _max_tokens(self) -> int:
        return self.tokenizer.count_text_tokens(self.recipe.max_seq_length, is_pair=False)

    def _make_example(
        self,
        record_index: int,
        first_word: int,
        word_ids: Sequence[Sequence[int]],
        target_tags: Sequence[str],
        label_ids: dict[str, int],
    ) -> TokenizedExample:
        flat_ids: list[int] = []
        word_starts = []
        for token_ids in word_ids:
            word_starts.append(len(flat_ids))
            flat_ids += token_ids[: self._max_tokens]
        tokenized_input = self.tokenizer.build_input(flat_ids)
        return TokenizedExample(
            record_index=record_index,
            input_ids=tokenized_input.input_ids,
            token_type_ids=tokenized_input.token_type_ids,
            positions=tuple(tokenized_input.first_start + start for start in word_starts),
            target=tuple(label_ids[tag] for tag in target_tags),
            first_word=first_word,
        )

    def build_head(self, hidden_size: int) -> nn.Module:
        """Return a linear layer, with a BiLSTM below or a CRF above if the recipe has them."""
        crf = None
        if "crf" in self.recipe.head:
            crf = CRF(torch.tensor(tag_schemes.allowed_transitions(self.recipe.tag_scheme, self.labels)))
        return TokenClassificationHead(
            hidden_size, len(self.labels), self.recipe.dropout, "bilstm" in self.recipe.head, crf
        )

    def loss(self, task_head: Any, encoded: EncoderOutput, batch: PaddedBatch) -> Tensor:
        """Return the loss over the words of a batch."""
        vectors, mask = _word_vectors(encoded, batch)
        targets = torch.zeros(mask.shape, dtype=torch.int64)
        for row, example in enumerate(batch.examples):
            targets[row, : len(example.target)] = torch.tensor(example.target)
        loss: Tensor = task_head.loss(vectors, mask, targets.to(mask.device))
        return loss

    def predict(self, task_head: Any, encoded: EncoderOutput, batch: PaddedBatch) -> list[Any]:
        """Return the tags of the words of each part."""
        vectors, mask = _word_vectors(encoded, batch)
        label_rows = task_head.decode(vectors, mask).tolist()
        label_names = self.labels
        return [
            [label_names[label_id] for label_id in row[: len(example.positions)]]
            for row, example in zip(label_rows, batch.examples, strict=True)
        ]

    def merge_predictions(
        self,
        records: Sequence[Record],
        tokenized_examples: Sequence[TokenizedExample],
        predictions: Sequence[Any],
    ) -> list[Any]:
        """Return BIO tags of all words of each sentence."""
        tags_by_sentence: list[list[str]] = [
            ["O"] * len(sentence.words) for sentence in _select_sentences(records)
        ]
        for example, predicted_tags in zip(tokenized_examples, predictions, strict=True):
            tags_by_sentence[example.record_index][
                example.first_word : example.first_word + len(predicted_tags)
            ] = predicted_tags
        return [tag_schemes.convert_to_bio(self.recipe.tag_scheme, tags) for tags in tags_by_sentence]

    def gold_labels(self, records: Sequence[Record]) -> list[Any]:
        """Return the gold tags of all words of each sentence."""
        return [list(sentence.tags) for sentence in _select_sentences(records)]


@dataclass(frozen=True, slots=True)
class ElectraTruncation(TokenClassification):
    """Token classification scored only on the words that ELECTRA's code reads (legacy mode).

    Gold and predicted tags of each sentence end where ELECTRA's code cuts the sentence.
    """

    def merge_predictions(
        self,
        records: Sequence[Record],
        tokenized_examples: Sequence[TokenizedExample],
        predictions: Sequence[Any],
    ) -> list[Any]:
        """Return BIO tags of the words of each sentence that are read."""
        tags = TokenClassification.merge_predictions(self, records, tokenized_examples, predictions)
        return self._truncate(records, tags)

    def gold_labels(self, records: Sequence[Record]) -> list[Any]:
        """Return the gold tags of the words of each sentence that are read."""
        return self._truncate(records, TokenClassification.gold_labels(self, records))

    def _truncate(self, records: Sequence[Record], tags_by_sentence: Sequence[list[str]]) -> list[Any]:
        sentences = _select_sentences(records)
        encoded_sentences = self.tokenizer.encode_words(
            [sentence.words for sentence in sentences], self.should_lowercase
        )
        truncated = []
        for sentence, word_ids, tags in zip(sentences, encoded_sentences, tags_by_sentence, strict=True):
            token_counts = {word: len(ids) for word, ids in zip(sentence.words, word_ids, strict=True)}
            num_read = count_words_read(sentence.words, token_counts.__getitem__, self.recipe.max_seq_length)
            truncated.append(tags[:num_read])
        return truncated


def find_entity_types(records: Sequence[Record]) -> tuple[str, ...]:
    """Return the sorted entity types of tagged sentences."""
    return tuple(
        sorted({tag[2:] for sentence in _select_sentences(records) for tag in sentence.tags if tag != "O"})
    )


def _select_sentences(records: Sequence[Record]) -> list[TaggedSentence]:
    return [record for record in records if isinstance(record, TaggedSentence)]


def _word_vectors(encoded: EncoderOutput, batch: PaddedBatch) -> tuple[Tensor, Tensor]:
    """Return the vectors of first tokens of words, [B, W, H], and their mask, bool[B, W]."""
    positions, mask = stack_positions(batch)
    return encoded.hidden.gather(1, positions[:, :, None].expand(-1, -1, encoded.hidden.shape[-1])), mask
