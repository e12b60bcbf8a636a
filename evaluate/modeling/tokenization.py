"""Tokenization with a checkpoint's own tokenizer, with character offsets and special tokens."""

from __future__ import annotations

import os
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from transformers import AutoTokenizer

from bioshards.corpus.errors import InvalidValueError, UserError

Offsets = list[tuple[int, int]]


class ModelError(UserError):
    """A directory has no checkpoint that can be fine-tuned. The message names cause and remedy."""


@dataclass(frozen=True, slots=True)
class TokenizedInput:
    """Token ids of one or two texts with special tokens.

    Attributes:
        first_start: index of the first token of the first text.
        second_start: index of the first token of the second text.
    """

    input_ids: list[int]
    token_type_ids: list[int]
    first_start: int
    second_start: int


@dataclass(slots=True)
class ModelTokenizer:
    """A Hugging Face tokenizer.

    Attributes:
        max_length: maximum tokens of an input, with special tokens.
    """

    hf_tokenizer: Any
    max_length: int
    _special_tokens: dict[bool, tuple[list[int], list[int], list[int], list[int]]] = field(
        default_factory=dict
    )

    def encode_texts(self, texts: Sequence[str]) -> list[tuple[list[int], Offsets]]:
        """Return token ids and character offsets of each text, without special tokens."""
        if not texts:
            return []
        encoding = self.hf_tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True)
        return list(zip(encoding["input_ids"], encoding["offset_mapping"], strict=True))

    def encode_words(
        self, sentences: Sequence[Sequence[str]], should_lowercase: bool = False
    ) -> list[list[list[int]]]:
        """Return the token ids of each word of each sentence; [UNK] for a word without any.

        Words are joined by blanks and tokenized together, so that a byte-level tokenizer sees the blank
        before each.

        Args:
            should_lowercase: lower-case and strip accents first, as ELECTRA's tagging code does.
        """
        normalised = [
            [lowercase_without_accents(word) if should_lowercase else word for word in words]
            for words in sentences
        ]
        ids_by_sentence = []
        for words, (ids, offsets) in zip(
            normalised, self.encode_texts([" ".join(words) for words in normalised]), strict=True
        ):
            word_starts = list(accumulate((len(word) + 1 for word in words[:-1]), initial=-1))
            ids_by_word: list[list[int]] = [[] for _ in words]
            for token_id, (_, end) in zip(ids, offsets, strict=True):  # the blank before a word is the word's
                ids_by_word[bisect_right(word_starts, end - 1) - 1].append(token_id)
            ids_by_sentence.append(
                [token_ids or [self.hf_tokenizer.unk_token_id] for token_ids in ids_by_word]
            )
        return ids_by_sentence

    def count_text_tokens(self, max_seq_length: int, is_pair: bool) -> int:
        """Return the number of tokens of text, or of two texts, that fit into an input."""
        return min(max_seq_length, self.max_length) - self.count_special_tokens(is_pair)

    def count_special_tokens(self, is_pair: bool) -> int:
        """Return the number of special tokens of an input of one text or a pair."""
        before, between, after, _ = self._find_special_tokens(is_pair)
        return len(before) + len(between) + len(after)

    def build_input(
        self, first_ids: Sequence[int], second_ids: Sequence[int] | None = None
    ) -> TokenizedInput:
        """Add special tokens and token types to one or two texts."""
        before, between, after, segment_types = self._find_special_tokens(second_ids is not None)
        second_list = list(second_ids or ())
        input_ids = [*before, *first_ids, *between, *second_list, *after]
        second_start = len(before) + len(first_ids) + len(between)
        token_type_ids = [segment_types[0]] * second_start + [segment_types[1]] * (
            len(input_ids) - second_start
        )
        return TokenizedInput(input_ids, token_type_ids, len(before), second_start)

    def _find_special_tokens(self, is_pair: bool) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return the special tokens before, between and after the texts, and the token type of each text."""
        if is_pair not in self._special_tokens:
            texts = (["a"], ["b"]) if is_pair else (["a"],)
            encoding = self.hf_tokenizer(*texts, return_token_type_ids=True, return_special_tokens_mask=True)
            input_ids, token_type_ids = encoding["input_ids"][0], encoding["token_type_ids"][0]
            sequences = encoding.sequence_ids(0)
            positions_by_text = [
                [position for position, sequence in enumerate(sequences) if sequence == text_index]
                for text_index in (0, 1)
            ]
            first_position = positions_by_text[0][0]
            if is_pair:
                between = input_ids[positions_by_text[0][-1] + 1 : positions_by_text[1][0]]
                last_position = positions_by_text[1][-1]
            else:
                between, last_position = [], positions_by_text[0][-1]
            self._special_tokens[is_pair] = (
                input_ids[:first_position],
                between,
                input_ids[last_position + 1 :],
                [token_type_ids[first_position], token_type_ids[last_position]],
            )
        return self._special_tokens[is_pair]


def load_tokenizer(folder: str, max_positions: int) -> ModelTokenizer:
    """Load the tokenizer of a checkpoint.

    Args:
        max_positions: number of positions of the model.

    Raises:
        ModelError: there is no usable fast tokenizer.
    """
    files = set(os.listdir(folder))
    if "spiece.model" in files and not files & {"tokenizer.json", "vocab.txt"}:
        raise ModelError(
            f"{folder} has a spiece.model alone, and no tokenizer.json: make one (bioshards vocab adopt "
            f"{folder} --output VOCABULARY) and copy its files beside the model"
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        if not tokenizer.is_fast:
            raise InvalidValueError("it gives no character offsets (no tokenizer.json)")
    except Exception as error:  # the library raises whatever it meets
        raise ModelError(
            f"{folder} has no usable tokenizer ({error}): give a folder with a model and its "
            "tokenizer.json, such as a run's step-NNNNNNN/hf"
        ) from error
    if len(tokenizer) < 10:
        raise ModelError(
            f"the tokenizer of {folder} has {len(tokenizer)} tokens: tokenizer.json or vocab.txt is missing"
        )
    max_length = min(max_positions, tokenizer.model_max_length)
    tokenizer.model_max_length = 1 << 30  # what is too long is cut by us, or not at all
    return ModelTokenizer(tokenizer, max_length)


def lowercase_without_accents(word: str) -> str:
    """Lower-case a word and strip its accents, as ELECTRA's tagging code does for every vocabulary.

    SOURCE: ``tokenize_and_align`` in finetune/tagging/tagging_tasks.py of google-research/electra, where
    ``cased`` is never set.
    """
    decomposed = unicodedata.normalize("NFD", word.lower())
    return "".join(character for character in decomposed if unicodedata.category(character) != "Mn")
