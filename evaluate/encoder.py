"""Checkpoints, their tokenizers and their encoders, which run on padded batches of examples."""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.utils import logging

from bioshards.corpus.errors import InvalidValueError, UserError, escape_line
from bioshards.train.checkpoint import describe_damage

_WEIGHT_SUFFIXES: Final = (".safetensors", ".bin")
_HASHED_FILES: Final = ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "spiece.model")
_PAD_MULTIPLE: Final = 16
"""Padded lengths are multiples of this, so that oneDNN caches few kernel shapes."""
_INIT_STD: Final = 0.02
"""Standard deviation of new weights (``initializer_range`` of BERT's configuration)."""

Offsets = list[tuple[int, int]]


class ModelError(UserError):
    """A directory has no checkpoint that can be fine-tuned. The message names cause and remedy."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint directory that was inspected; its weights are not loaded yet.

    Attributes:
        name: name of the model in reports.
        sha256: digest of weights, configuration and tokenizer.
    """

    folder: str
    name: str
    sha256: str
    model_type: str
    max_positions: int

    def load_tokenizer(self) -> ModelTokenizer:
        """Load a new copy of the tokenizer, to which tokens may be added.

        Raises:
            ModelError: there is no usable fast tokenizer.
        """
        files = set(os.listdir(self.folder))
        if "spiece.model" in files and not files & {"tokenizer.json", "vocab.txt"}:
            raise ModelError(
                f"{self.folder} has a spiece.model alone, and no tokenizer.json: make one (bioshards vocab "
                f"adopt {self.folder} --output VOCABULARY) and copy its files beside the model"
            )
        try:
            tokenizer = AutoTokenizer.from_pretrained(
                self.folder, local_files_only=True, trust_remote_code=False
            )
            if not tokenizer.is_fast:
                raise InvalidValueError("it gives no character offsets (no tokenizer.json)")
        except Exception as error:  # the library raises whatever it meets
            raise ModelError(
                f"{self.folder} has no usable tokenizer ({error}): give a folder with a model and its "
                "tokenizer.json, such as a run's step-NNNNNNN/hf"
            ) from error
        if len(tokenizer) < 10:
            raise ModelError(
                f"the tokenizer of {self.folder} has {len(tokenizer)} tokens: tokenizer.json or vocab.txt is "
                "missing"
            )
        max_length = min(self.max_positions, tokenizer.model_max_length)
        tokenizer.model_max_length = 1 << 30  # what is too long is cut by us, or not at all
        return ModelTokenizer(tokenizer, max_length)


def inspect_checkpoint(folder: str, name: str | None = None) -> Checkpoint:
    """Inspect a checkpoint directory.

    Args:
        name: name of the model; default: name of the directory, ``RUN/STEP`` for ``RUN/STEP/hf``.

    Raises:
        ModelError: the directory has no complete encoder checkpoint.
    """
    if not os.path.isdir(folder):
        raise ModelError(f"there is no folder {folder} with a model: give one that save_pretrained wrote")
    if damage := describe_damage(folder):
        raise ModelError(damage)
    file_names = sorted(os.listdir(folder))
    if "config.json" not in file_names:
        steps = [each for each in file_names if os.path.exists(f"{folder}/{each}/hf/config.json")]
        hint = f"; {folder}/{steps[-1]}/hf is meant?" if steps else ", such as a run's step-NNNNNNN/hf"
        raise ModelError(f"{folder} holds no config.json: give a folder that save_pretrained wrote{hint}")
    weights = [file_name for file_name in file_names if file_name.endswith(_WEIGHT_SUFFIXES)]
    if not weights:
        raise ModelError(f"{folder} holds no weights (model.safetensors): its config.json alone is no model")
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        max_positions = getattr(config, "max_position_embeddings", 1 << 30)
        if "roberta" in config.model_type:  # it counts places from the id of [PAD] and one
            max_positions -= config.pad_token_id + 1
    except Exception as error:  # the library raises whatever it meets
        raise ModelError(f"{folder}/config.json is of no model that transformers knows: {error}") from error
    if config.is_encoder_decoder or config.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        raise ModelError(
            f"{folder} is of type {config.model_type}, which is no encoder that sees both sides of a word: "
            "give one such as BERT, ELECTRA or ALBERT"
        )
    digest = hashlib.sha256()
    for file_name in file_names:
        if file_name in _HASHED_FILES or file_name in weights:
            with open(f"{folder}/{file_name}", "rb") as file:
                digest.update(f"{file_name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    checkpoint = Checkpoint(
        folder,
        escape_line(name or _default_name(folder)),
        digest.hexdigest(),
        config.model_type,
        max_positions,
    )
    num_tokens = len(checkpoint.load_tokenizer().hf_tokenizer)
    if num_tokens > config.vocab_size:
        raise ModelError(
            f"the tokenizer of {folder} has {num_tokens} tokens, and its model {config.vocab_size}: "
            "give a model with its own tokenizer"
        )
    return checkpoint


def _default_name(folder: str) -> str:
    """Return ``tiny/step-0000200`` for ``out/tiny/step-0000200/hf``; otherwise the name of the directory."""
    path_parts = os.path.abspath(folder).split(os.sep)
    return "/".join(path_parts[-3:-1]) if path_parts[-1] == "hf" and len(path_parts) > 2 else path_parts[-1]


class ModelInput(NamedTuple):
    """Token ids of one or two texts with special tokens, and the index of the first token of each text."""

    input_ids: list[int]
    token_type_ids: list[int]
    first_start: int
    second_start: int


class SpecialTokens(NamedTuple):
    """Special tokens before, between and after the texts of an input, and the token type of each text."""

    before: list[int]
    between: list[int]
    after: list[int]
    types: tuple[int, int]


@dataclass(slots=True)
class ModelTokenizer:
    """A Hugging Face tokenizer.

    Attributes:
        max_length: maximum tokens of an input, with special tokens.
    """

    hf_tokenizer: Any
    max_length: int
    _special_tokens: dict[bool, SpecialTokens] = field(default_factory=dict)

    def encode_texts(self, texts: Sequence[str]) -> list[tuple[list[int], Offsets]]:
        """Return token ids and character offsets of each text, without special tokens."""
        if not texts:
            return []
        encoding = self.hf_tokenizer(list(texts), add_special_tokens=False, return_offsets_mapping=True)
        return list(zip(encoding["input_ids"], encoding["offset_mapping"], strict=True))

    def encode_words(self, sentences: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """Return the token ids of each word of each sentence; [UNK] for a word without any.

        Words are joined by blanks and tokenized together, so that a byte-level tokenizer sees the blank
        before each.
        """
        ids_by_sentence = []
        encoded = self.encode_texts([" ".join(words) for words in sentences])
        for words, (ids, offsets) in zip(sentences, encoded, strict=True):
            word_starts = list(accumulate((len(word) + 1 for word in words[:-1]), initial=-1))
            ids_by_word: list[list[int]] = [[] for _ in words]
            for token_id, (_, end) in zip(ids, offsets, strict=True):  # the blank before a word is the word's
                ids_by_word[bisect_right(word_starts, end - 1) - 1].append(token_id)
            ids_by_sentence.append([word_ids or [self.hf_tokenizer.unk_token_id] for word_ids in ids_by_word])
        return ids_by_sentence

    def count_text_tokens(self, max_seq_length: int, is_pair: bool) -> int:
        """Return the number of tokens of text, or of two texts, that fit into an input."""
        special = self._find_special_tokens(is_pair)
        num_special_tokens = len(special.before) + len(special.between) + len(special.after)
        return min(max_seq_length, self.max_length) - num_special_tokens

    def build_input(self, first_ids: Sequence[int], second_ids: Sequence[int] | None = None) -> ModelInput:
        """Add special tokens and token types to one or two texts."""
        before, between, after, types = self._find_special_tokens(second_ids is not None)
        first_part = [*before, *first_ids, *between]
        second_part = [*(second_ids or ()), *after]
        token_type_ids = [types[0]] * len(first_part) + [types[1]] * len(second_part)
        return ModelInput([*first_part, *second_part], token_type_ids, len(before), len(first_part))

    def _find_special_tokens(self, is_pair: bool) -> SpecialTokens:
        if is_pair not in self._special_tokens:
            texts = (["a"], ["b"]) if is_pair else (["a"],)
            encoding = self.hf_tokenizer(*texts, return_token_type_ids=True)
            ids, types = encoding["input_ids"][0], encoding["token_type_ids"][0]
            text_indices = encoding.sequence_ids(0)  # None for a special token
            first = text_indices.index(0)
            last = len(ids) - 1 - text_indices[::-1].index(int(is_pair))
            between = [ids[place] for place in range(first, last) if text_indices[place] is None]
            special = SpecialTokens(ids[:first], between, ids[last + 1 :], (types[first], types[last]))
            self._special_tokens[is_pair] = special
        return self._special_tokens[is_pair]


@dataclass(frozen=True, slots=True)
class Example:
    """Model input for a record or a part of one: of a long sentence, or a window of a long passage.

    Attributes:
        record_index: index of the record.
        positions: token indices that the task uses: first tokens of words, edges of entity ranges, answer
            starts.
        target: training target in the form of the task; None in prediction.
        first_word: index of the first word in the record.
        offsets: character range of each token in the passage; (0, 0) for other tokens.
    """

    record_index: int
    input_ids: Sequence[int]
    token_type_ids: Sequence[int]
    positions: tuple[int, ...] = ()
    target: Any = None
    first_word: int = 0
    offsets: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """B examples and their vectors, padded to T tokens.

    Attributes:
        hidden: float32[B, T, H].
        pooled: float32[B, H], output of the pretrained pooler; without one, the vector of the first token.
        mask: bool[B, T], False in padding.
    """

    examples: Sequence[Example]
    hidden: Tensor
    pooled: Tensor
    mask: Tensor

    def stack_targets(self, dtype: torch.dtype = torch.int64) -> Tensor:
        """Stack numeric targets, or rows of numbers, into a tensor."""
        targets = [example.target for example in self.examples]
        return torch.tensor(targets, dtype=dtype, device=self.hidden.device)


class Encoder(nn.Module):
    """An encoder without a head.

    Attributes:
        hidden_size: width of the output vectors.
    """

    def __init__(self, model: Any, has_pooler: bool, pad_id: int) -> None:
        super().__init__()
        self.model = model
        self.hidden_size: int = model.config.hidden_size
        self._has_pooler = has_pooler
        self._has_token_types = getattr(model.config, "type_vocab_size", 0) > 1
        self._pad_id = pad_id

    def forward(self, examples: Sequence[Example], is_bfloat16: bool = False) -> EncodedBatch:
        """Encode examples, padded to the longest one; matrix products are in bfloat16 if asked for.

        The vectors are float32, and so are the heads: the 8 bits of bfloat16 would make many scores equal.
        """
        device = self.model.device
        longest = max(len(example.input_ids) for example in examples)
        length = -(-longest // _PAD_MULTIPLE) * _PAD_MULTIPLE
        input_ids = pad_rows([example.input_ids for example in examples], length, self._pad_id).to(device)
        mask = pad_rows([[1] * len(example.input_ids) for example in examples], length).to(device)
        inputs = {"input_ids": input_ids, "attention_mask": mask}
        if self._has_token_types:
            inputs["token_type_ids"] = pad_rows([each.token_type_ids for each in examples], length).to(device)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_bfloat16):
            outputs = self.model(**inputs)
        hidden: Tensor = outputs.last_hidden_state.float()
        pooled = outputs.pooler_output.float() if self._has_pooler else hidden[:, 0]
        return EncodedBatch(examples, hidden, pooled, mask.bool())


def load_encoder(checkpoint: Checkpoint, tokenizer: ModelTokenizer) -> Encoder:
    """Load the weights in float32, and add random embeddings of tokens that the tokenizer has learnt.

    Raises:
        ModelError: the weights cannot be read, or do not belong to the model.
    """
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model, loading_info = AutoModel.from_pretrained(
            checkpoint.folder,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
            dtype=torch.float32,
        )
    except Exception as error:  # the library raises whatever it meets
        raise ModelError(f"the weights of {checkpoint.folder} cannot be loaded: {error}") from error
    missing_keys = sorted(loading_info["missing_keys"])
    missing_weights = [name for name in missing_keys if not name.startswith("pooler.")]
    if missing_weights:
        raise ModelError(
            f"the weights of {checkpoint.folder} lack {len(missing_weights)} parts of the model "
            f"({missing_weights[0]} ...), which would be random: give a whole checkpoint"
        )
    if len(tokenizer.hf_tokenizer) > model.config.vocab_size:
        # Drawn as new weights are; the library else gives all of them the mean of the others, the same one.
        model.resize_token_embeddings(len(tokenizer.hf_tokenizer), mean_resizing=False)
    has_pooler = getattr(model, "pooler", None) is not None and not missing_keys
    return Encoder(model, has_pooler, tokenizer.hf_tokenizer.pad_token_id or 0)


def pad_rows(rows: Sequence[Sequence[int]], length: int, value: int = 0) -> Tensor:
    """Pad rows of numbers at their ends, int64[B, ``length``]."""
    return torch.tensor([[*row, *[value] * (length - len(row))] for row in rows], dtype=torch.int64)


def make_linear(in_features: int, out_features: int) -> nn.Linear:
    """Return a linear layer of a head, with weights as BERT's: normal, truncated at two deviations."""
    layer = nn.Linear(in_features, out_features)
    nn.init.trunc_normal_(layer.weight, std=_INIT_STD, a=-2 * _INIT_STD, b=2 * _INIT_STD)
    nn.init.zeros_(layer.bias)
    return layer
