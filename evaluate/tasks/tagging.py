"""Tagging: one tag per word, predicted at its first token.

Long sentences are split between words into several examples, so every word is tagged and all gold tags count.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bioshards.evaluate.benchmarks.records import TaggedSentence
from bioshards.evaluate.encoder import EncodedBatch, Example, ModelTokenizer, make_linear, pad_rows
from bioshards.evaluate.metrics.tags import (
    allowed_transitions,
    convert_from_bio,
    convert_to_bio,
    count_words_read,
    list_labels,
)
from bioshards.evaluate.recipes import FineTuneRecipe, LegacyMode
from bioshards.evaluate.tasks.head_layers import CRF, BiLSTM


class TaggingHead(nn.Module):
    """Head that scores the labels of each word: a linear layer, with a BiLSTM below or a CRF above.

    ``vectors`` are [B, W, H]; ``mask`` is bool[B, W] with padding last.
    """

    def __init__(
        self,
        hidden_size: int,
        num_labels: int,
        dropout: float = 0.1,
        has_bilstm: bool = False,
        crf: CRF | None = None,
    ) -> None:
        super().__init__()
        self.bilstm = BiLSTM(hidden_size) if has_bilstm else None
        self.dropout = nn.Dropout(dropout)
        self.linear = make_linear(hidden_size, num_labels)
        self.crf = crf

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Return label scores, float32[B, W, L]."""
        if self.bilstm is not None:
            vectors = self.bilstm(vectors, mask)
        scores: Tensor = self.linear(self.dropout(vectors))
        return scores.float()

    def loss(self, vectors: Tensor, mask: Tensor, gold: Tensor) -> Tensor:
        """Return the mean loss over the words of the batch; ``gold`` is int64[B, W]."""
        scores: Tensor = self(vectors, mask)
        if self.crf is not None:
            return self.crf.loss(scores, gold, mask)
        return F.cross_entropy(scores.flatten(0, 1), gold.where(mask, -100).flatten())

    @torch.no_grad()
    def decode(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Return the best labels, int64[B, W], 0 in padding; a CRF decodes whole sentences."""
        scores: Tensor = self(vectors, mask)
        if self.crf is not None:
            return self.crf.decode(scores, mask)
        return scores.argmax(2).where(mask, 0)


@dataclass(frozen=True, slots=True)
class Tagging:
    """Task adapter for tagged sentences.

    Attributes:
        entity_types: types in the order of the labels.
        legacy_modes: of them, ``lower-case`` lower-cases words and strips accents, and ``electra-truncation``
            ends gold and predicted tags of each sentence where ELECTRA's code cuts it.
    """

    tokenizer: ModelTokenizer
    recipe: FineTuneRecipe
    entity_types: tuple[str, ...]
    legacy_modes: Collection[LegacyMode] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Tags in the order of the outputs."""
        return list_labels(self.recipe.tag_scheme, self.entity_types)

    def make_examples(self, records: Sequence[TaggedSentence], is_training: bool) -> list[Example]:
        """Return the parts of all sentences."""
        label_ids = {label: label_id for label_id, label in enumerate(self.labels)}
        max_tokens = self.tokenizer.count_text_tokens(self.recipe.max_seq_length, is_pair=False)
        examples = []
        for index, (sentence, encoded) in enumerate(zip(records, self._encode(records), strict=True)):
            ids_by_word = [token_ids[:max_tokens] for token_ids in encoded]
            tags = convert_from_bio(self.recipe.tag_scheme, sentence.tags) if is_training else ()
            for first, end in _split_sentence([len(token_ids) for token_ids in ids_by_word], max_tokens):
                part = ids_by_word[first:end]
                model_input = self.tokenizer.build_input(list(chain.from_iterable(part)))
                word_starts = accumulate(map(len, part[:-1]), initial=model_input.first_start)
                positions = tuple(word_starts) if part else ()
                target = tuple(label_ids[tag] for tag in tags[first:end])
                examples.append(Example(index, *model_input[:2], positions, target, first))
        return examples

    def _encode(self, sentences: Sequence[TaggedSentence]) -> list[list[list[int]]]:
        """Return the token ids of each word of each sentence."""
        words: list[Sequence[str]] = [sentence.words for sentence in sentences]
        if "lower-case" in self.legacy_modes:
            words = [list(map(lowercase_without_accents, sentence.words)) for sentence in sentences]
        return self.tokenizer.encode_words(words)

    def build_head(self, hidden_size: int) -> nn.Module:
        """Return the head that the recipe names."""
        crf = None
        if "crf" in self.recipe.head:
            crf = CRF(torch.tensor(allowed_transitions(self.recipe.tag_scheme, self.labels)))
        has_bilstm = "bilstm" in self.recipe.head
        return TaggingHead(hidden_size, len(self.labels), self.recipe.dropout, has_bilstm, crf)

    def loss(self, head: Any, batch: EncodedBatch) -> Tensor:
        """Return the loss over the words of a batch."""
        vectors, mask = _select_words(batch)
        targets = pad_rows([example.target for example in batch.examples], mask.shape[1])
        loss: Tensor = head.loss(vectors, mask, targets.to(mask.device))
        return loss

    def predict(self, head: Any, batch: EncodedBatch) -> list[Any]:
        """Return the tags of the words of each part."""
        label_rows, labels = head.decode(*_select_words(batch)).tolist(), self.labels
        return [
            [labels[label_id] for label_id in row[: len(example.positions)]]
            for row, example in zip(label_rows, batch.examples, strict=True)
        ]

    def merge_predictions(
        self, records: Sequence[TaggedSentence], examples: Sequence[Example], predictions: Sequence[Any]
    ) -> list[Any]:
        """Return BIO tags of all words of each sentence."""
        tags_by_sentence = [["O"] * len(sentence.words) for sentence in records]
        for example, tags in zip(examples, predictions, strict=True):
            end = example.first_word + len(tags)
            tags_by_sentence[example.record_index][example.first_word : end] = tags
        scheme = self.recipe.tag_scheme
        bio_tags = [convert_to_bio(scheme, tags) for tags in tags_by_sentence]
        return self._truncate(records, bio_tags)

    def gold_labels(self, records: Sequence[TaggedSentence]) -> list[Any]:
        """Return the gold tags of all words of each sentence."""
        return self._truncate(records, [list(sentence.tags) for sentence in records])

    def predict_majority(self, train_gold: Sequence[Any], test_gold: Sequence[Any]) -> list[Any]:
        """Return no entity for every sentence."""
        return [["O"] * len(tags) for tags in test_gold]

    def _truncate(
        self, sentences: Sequence[TaggedSentence], tags_by_sentence: Sequence[Sequence[str]]
    ) -> list[Any]:
        """Cut the tags of each sentence where ELECTRA's code ends to read it, in that legacy mode."""
        if "electra-truncation" not in self.legacy_modes:
            return list(tags_by_sentence)
        truncated = []
        for sentence, encoded, tags in zip(sentences, self._encode(sentences), tags_by_sentence, strict=True):
            token_counts = {word: len(ids) for word, ids in zip(sentence.words, encoded, strict=True)}
            num_read = count_words_read(sentence.words, token_counts.__getitem__, self.recipe.max_seq_length)
            truncated.append(tags[:num_read])
        return truncated


def lowercase_without_accents(word: str) -> str:
    """Lower-case a word and strip its accents, as ELECTRA's tagging code does for every vocabulary.

    SOURCE: ``tokenize_and_align`` in finetune/tagging/tagging_tasks.py of google-research/electra, where
    ``cased`` is never set.
    """
    decomposed = unicodedata.normalize("NFD", word.lower())
    return "".join(character for character in decomposed if unicodedata.category(character) != "Mn")


def find_entity_types(sentences: Sequence[TaggedSentence]) -> tuple[str, ...]:
    """Return the sorted entity types of tagged sentences."""
    tags = {tag for sentence in sentences for tag in sentence.tags}
    return tuple(sorted({tag[2:] for tag in tags if tag != "O"}))


def _split_sentence(sizes: Sequence[int], max_tokens: int) -> Iterator[tuple[int, int]]:
    """Yield word ranges of parts that fit into an input, of at least one word each.

    Args:
        sizes: tokens of each word, at most ``max_tokens``.
    """
    first_word = tokens_used = 0
    for index, size in enumerate(sizes):
        if tokens_used + size > max_tokens:
            yield first_word, index
            first_word, tokens_used = index, 0
        tokens_used += size
    yield first_word, len(sizes)


def _select_words(batch: EncodedBatch) -> tuple[Tensor, Tensor]:
    """Return the vectors of first tokens of words, [B, W, H], and their mask, bool[B, W]."""
    rows = [example.positions for example in batch.examples]
    num_words, device = max(map(len, rows)), batch.hidden.device
    positions = pad_rows(rows, num_words).to(device)
    mask = pad_rows([[1] * len(row) for row in rows], num_words).bool().to(device)
    return batch.hidden.gather(1, positions[:, :, None].expand(-1, -1, batch.hidden.shape[-1])), mask
