"""Any Hugging Face encoder, as fine-tuning begins with it."""

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

from . import tokens
from .examples import Batch, Encoded
from .tokens import ModelError, Tokens

_WEIGHTS: Final = (".safetensors", ".bin")
_FILES: Final = ("config.json", "tokenizer.json", "tokenizer_config.json", "vocab.txt", "spiece.model")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint's folder, looked at but not loaded.

    Attributes:
        name: what reports call it.
        sha256: of its weights, configuration and tokenizer.
    """

    folder: str
    name: str
    sha256: str
    type: str
    positions: int

    def tokens(self) -> Tokens:
        """Its tokenizer, read anew: whoever adds pieces to it adds them to this one."""
        return tokens.read(self.folder, self.positions)


class Encoder(nn.Module):
    """A model without a head.

    Attributes:
        width: of its output.
    """

    def __init__(self, model: Any, pooler: bool) -> None:
        super().__init__()
        self.model = model
        self.width: int = model.config.hidden_size
        self._pooler = pooler
        self._types = getattr(model.config, "type_vocab_size", 0) > 1

    def forward(self, batch: Batch) -> Encoded:
        more = {"token_type_ids": batch.types} if self._types else {}
        found = self.model(input_ids=batch.ids, attention_mask=batch.mask.long(), **more)
        hidden: Tensor = found.last_hidden_state.float()
        return Encoded(hidden, found.pooler_output.float() if self._pooler else hidden[:, 0])


def look(folder: str, name: str | None = None) -> Checkpoint:
    """A checkpoint.

    Args:
        name: what to call it; else the folder's name, and of a run's the run's too.

    Raises:
        ModelError: there is none.
    """
    if not os.path.isdir(folder):
        raise ModelError(f"there is no folder {folder} with a model: give one that save_pretrained wrote")
    inside = sorted(os.listdir(folder))
    if "config.json" not in inside:
        near = [one for one in inside if os.path.exists(f"{folder}/{one}/hf/config.json")]
        hint = f"; {folder}/{near[-1]}/hf is meant?" if near else ", such as a run's step-NNNNNNN/hf"
        raise ModelError(f"{folder} holds no config.json: give a folder that save_pretrained wrote{hint}")
    weights = [one for one in inside if one.endswith(_WEIGHTS)]
    if not weights:
        raise ModelError(f"{folder} holds no weights (model.safetensors): its config.json alone is no model")
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        positions = getattr(config, "max_position_embeddings", 1 << 30)
        if "roberta" in config.model_type:  # it counts places from the id of [PAD] and one
            positions -= config.pad_token_id + 1
    except Exception as error:  # the library raises whatever it meets
        raise ModelError(f"{folder}/config.json is of no model that transformers knows: {error}") from error
    if config.is_encoder_decoder or config.model_type not in MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        raise ModelError(
            f"{folder} is of type {config.model_type}, which is no encoder that sees both sides of a word: "
            "give one such as BERT, ELECTRA or ALBERT"
        )
    pieces = len(tokens.read(folder, positions).tokenizer)
    if pieces > config.vocab_size:
        raise ModelError(
            f"the tokenizer of {folder} has {pieces} pieces, and its model knows {config.vocab_size}: "
            "give a model with its own tokenizer"
        )
    files = [one for one in inside if one in _FILES or one in weights]
    return Checkpoint(folder, name or _name(folder), _sha256(folder, files), config.model_type, positions)


def load(checkpoint: Checkpoint, pieces: int = 0) -> Encoder:
    """The model with its weights, as float32 in whatever precision they were saved.

    Args:
        pieces: how many pieces it has to know, if these are more than it was trained with.

    Raises:
        ModelError: the weights cannot be read, or are another model's.
    """
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        model, told = AutoModel.from_pretrained(
            checkpoint.folder, local_files_only=True, output_loading_info=True, dtype=torch.float32
        )
    except Exception as error:  # the library raises whatever it meets
        raise ModelError(f"the weights of {checkpoint.folder} cannot be loaded: {error}") from error
    missing = sorted(told["missing_keys"])
    lacking = [name for name in missing if not name.startswith("pooler.")]
    if lacking:
        raise ModelError(
            f"the weights of {checkpoint.folder} lack {len(lacking)} parts of the model ({lacking[0]} ...), "
            "which would be random: give a whole checkpoint"
        )
    if pieces > model.config.vocab_size:
        # Drawn as new weights are; the library else gives all of them the mean of the others, the same one.
        model.resize_token_embeddings(pieces, mean_resizing=False)
    pooler = getattr(model, "pooler", None) is not None and not missing
    return Encoder(model, pooler)


def _name(folder: str) -> str:
    """``tiny/step-0000200`` of ``out/tiny/step-0000200/hf``, else the folder's own name."""
    parts = os.path.abspath(folder).split(os.sep)
    return "/".join(parts[-3:-1]) if parts[-1] == "hf" and len(parts) > 2 else parts[-1]


def _sha256(folder: str, names: Sequence[str]) -> str:
    whole = hashlib.sha256()
    for name in names:
        with open(f"{folder}/{name}", "rb") as file:
            whole.update(f"{name} {hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return whole.hexdigest()
