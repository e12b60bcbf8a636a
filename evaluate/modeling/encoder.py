"""Encoders of checkpoints: inspect and load them, and run them on padded batches of examples."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.utils import logging

from bioshards.corpus.errors import escape_line
from bioshards.evaluate.modeling import tokenization
from bioshards.evaluate.modeling.tokenization import ModelError, ModelTokenizer

_WEIGHT_SUFFIXES: Final = (".safetensors", ".bin")
_HASHED_FILES: Final = ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "spiece.model")
_PAD_MULTIPLE: Final = 16
"""Padded lengths are multiples of this, so that oneDNN caches few kernel shapes."""


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
        """Load a new copy of the tokenizer, to which tokens may be added."""
        return tokenization.load_tokenizer(self.folder, self.max_positions)


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
        return torch.tensor(
            [example.target for example in self.examples], dtype=dtype, device=self.hidden.device
        )


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
        """Encode examples, padded to the longest one; matrix products are in bfloat16 if asked for."""
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


def pad_rows(rows: Sequence[Sequence[int]], length: int, value: int = 0) -> Tensor:
    """Pad rows of numbers at their ends, int64[B, ``length``]."""
    return torch.tensor([[*row, *[value] * (length - len(row))] for row in rows], dtype=torch.int64)


def inspect_checkpoint(folder: str, name: str | None = None) -> Checkpoint:
    """Inspect a checkpoint directory.

    Args:
        name: name of the model; default: name of the directory, ``RUN/STEP`` for ``RUN/STEP/hf``.

    Raises:
        ModelError: the directory has no complete encoder checkpoint.
    """
    if not os.path.isdir(folder):
        raise ModelError(f"there is no folder {folder} with a model: give one that save_pretrained wrote")
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
    num_tokens = len(tokenization.load_tokenizer(folder, max_positions).hf_tokenizer)
    if num_tokens > config.vocab_size:
        raise ModelError(
            f"the tokenizer of {folder} has {num_tokens} tokens, and its model {config.vocab_size}: "
            "give a model with its own tokenizer"
        )
    digest = hashlib.sha256()
    for file_name in file_names:
        if file_name in _HASHED_FILES or file_name in weights:
            with open(f"{folder}/{file_name}", "rb") as file:
                digest.update(f"{file_name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return Checkpoint(
        folder,
        escape_line(name or _default_name(folder)),
        digest.hexdigest(),
        config.model_type,
        max_positions,
    )


def load_encoder(checkpoint: Checkpoint, pad_id: int = 0, min_vocab_size: int = 0) -> Encoder:
    """Load the weights in float32.

    Args:
        pad_id: id of [PAD].
        min_vocab_size: size of the token embeddings if it is above that of the checkpoint.

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
    if min_vocab_size > model.config.vocab_size:
        # Drawn as new weights are; the library else gives all of them the mean of the others, the same one.
        model.resize_token_embeddings(min_vocab_size, mean_resizing=False)
    has_pooler = getattr(model, "pooler", None) is not None and not missing_keys
    return Encoder(model, has_pooler, pad_id)


def _default_name(folder: str) -> str:
    """Return ``tiny/step-0000200`` for ``out/tiny/step-0000200/hf``; otherwise the name of the directory."""
    path_parts = os.path.abspath(folder).split(os.sep)
    return "/".join(path_parts[-3:-1]) if path_parts[-1] == "hf" and len(path_parts) > 2 else path_parts[-1]
