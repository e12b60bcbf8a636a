"""Load Hugging Face encoders for fine-tuning."""

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
from bioshards.evaluate.modeling.batches import EncoderOutput, PaddedBatch
from bioshards.evaluate.modeling.tokenization import ModelError, ModelTokenizer

_WEIGHT_SUFFIXES: Final = (".safetensors", ".bin")
_HASHED_FILES: Final = ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "spiece.model")


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


class EncoderModel(nn.Module):
    """An encoder without a head.

    Attributes:
        hidden_size: width of the output vectors.
    """

    def __init__(self, model: Any, has_pooler: bool) -> None:
        super().__init__()
        self.model = model
        self.hidden_size: int = model.config.hidden_size
        self._has_pooler = has_pooler
        self._has_token_types = getattr(model.config, "type_vocab_size", 0) > 1

    def forward(self, batch: PaddedBatch) -> EncoderOutput:
        token_type_kwargs = {"token_type_ids": batch.token_type_ids} if self._has_token_types else {}
        outputs = self.model(input_ids=batch.input_ids, attention_mask=batch.mask.long(), **token_type_kwargs)
        hidden: Tensor = outputs.last_hidden_state.float()
        return EncoderOutput(hidden, outputs.pooler_output.float() if self._has_pooler else hidden[:, 0])


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
        step_folders = [
            file_name for file_name in file_names if os.path.exists(f"{folder}/{file_name}/hf/config.json")
        ]
        hint = (
            f"; {folder}/{step_folders[-1]}/hf is meant?"
            if step_folders
            else ", such as a run's step-NNNNNNN/hf"
        )
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
    hashed_files = [
        file_name for file_name in file_names if file_name in _HASHED_FILES or file_name in weights
    ]
    return Checkpoint(
        folder,
        escape_line(name or _default_name(folder)),
        _hash_files(folder, hashed_files),
        config.model_type,
        max_positions,
    )


def load_encoder(checkpoint: Checkpoint, min_vocab_size: int = 0) -> EncoderModel:
    """Load the weights in float32.

    Args:
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
            f"({missing_weights[0]} ...), "
            "which would be random: give a whole checkpoint"
        )
    if min_vocab_size > model.config.vocab_size:
        # Drawn as new weights are; the library else gives all of them the mean of the others, the same one.
        model.resize_token_embeddings(min_vocab_size, mean_resizing=False)
    has_pooler = getattr(model, "pooler", None) is not None and not missing_keys
    return EncoderModel(model, has_pooler)


def _default_name(folder: str) -> str:
    """Return ``tiny/step-0000200`` for ``out/tiny/step-0000200/hf``; otherwise the name of the directory."""
    path_parts = os.path.abspath(folder).split(os.sep)
    return "/".join(path_parts[-3:-1]) if path_parts[-1] == "hf" and len(path_parts) > 2 else path_parts[-1]


def _hash_files(folder: str, file_names: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for file_name in file_names:
        with open(f"{folder}/{file_name}", "rb") as file:
            digest.update(f"{file_name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()
