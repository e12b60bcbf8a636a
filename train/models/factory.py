"""Build the models of an objective, with random weights or from a Hugging Face checkpoint."""

from __future__ import annotations

import os
import pkgutil
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from bioshards.corpus.errors import UserError
from bioshards.train.config.model_config import DataSpec, ModelConfig
from bioshards.train.config.model_families import FAMILIES, FamilyName
from bioshards.train.models.objective import Objective

_SIZE_FIELDS: Final = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "embedding_size",
    "max_position_embeddings",
)
_Model = TypeVar("_Model", bound=PreTrainedModel)


class InitialWeightsError(UserError):
    """The initial weights are missing, damaged, or of another model."""


def get_objective_class(family: FamilyName) -> type[Objective]:
    """Import the objective of a family."""
    objective_class: type[Objective] = pkgutil.resolve_name(FAMILIES[family].objective_class)
    assert issubclass(objective_class, Objective)
    return objective_class


def build_objective(
    config: ModelConfig,
    data_spec: DataSpec,
    init_checkpoint: str | None = None,
    vocabulary: Mapping[str, int] | None = None,
) -> Objective:
    """Build the objective of a family, in training mode.

    Random weights come from PyTorch's global generator, which the caller seeds.

    Args:
        init_checkpoint: folder written by ``save_pretrained``.  Its encoder and those of its heads that the
            objective has are loaded; for ELECTRA also the generator in its subfolder ``generator``.
        vocabulary: ids by piece, to compare with the ``tokenizer.json`` or ``vocab.txt`` of the checkpoint,
            if it has one.

    Raises:
        InitialWeightsError: the checkpoint is of another model or another vocabulary.
    """
    if init_checkpoint is not None:
        _check_vocabulary(init_checkpoint, data_spec, vocabulary)

    def load_model(
        model_class: type[_Model], config: PreTrainedConfig, subfolder: str | None = None
    ) -> _Model:
        folder = init_checkpoint
        if folder is not None and subfolder is not None:
            folder = os.path.join(folder, subfolder)
            if not os.path.isdir(folder):
                folder = None
        return _build_model(model_class, config, folder)

    return get_objective_class(config.family).build(config, data_spec, load_model).train()


def _build_model(model_class: type[_Model], config: PreTrainedConfig, folder: str | None) -> _Model:
    """Build a model with random weights, or load it from a folder."""
    if folder is None:
        return model_class(config)
    config = _load_matching_config(folder, config)
    from_pretrained: Any = model_class.from_pretrained  # its annotation lacks output_loading_info
    try:
        model, loading_info = from_pretrained(
            folder, config=config, dtype=torch.float32, local_files_only=True, output_loading_info=True
        )
    except Exception as error:  # a damaged file raises errors of many types
        raise InitialWeightsError(
            f"cannot read the weights of {folder} ({error}). Give another folder"
        ) from error
    encoder_prefix = f"{model_class.base_model_prefix}."
    missing = [
        name
        for name in sorted(loading_info["missing_keys"])
        if name.startswith(encoder_prefix) and ".pooler." not in name
    ]
    if missing:
        raise InitialWeightsError(
            f"{folder}: {len(missing)} encoder weights of {model_class.__name__} are missing, such as "
            f"{missing[0]}. Give a folder written by save_pretrained"
        )
    assert isinstance(model, model_class)
    return model


def _load_matching_config(folder: str, config: PreTrainedConfig) -> PreTrainedConfig:
    """Load the configuration of a folder, check its sizes, and set [PAD] and the dropout of ``config``."""
    loaded_config = _load_config(folder)
    if loaded_config.model_type != config.model_type:
        raise InitialWeightsError(
            f"{folder} has a model of family {loaded_config.model_type}; this run trains "
            f"{config.model_type}. Give another folder, or a preset of that family"
        )
    differences = [
        f"{name} is {getattr(loaded_config, name)}, not {getattr(config, name)}"
        for name in _SIZE_FIELDS
        if hasattr(config, name) and getattr(loaded_config, name) != getattr(config, name)
    ]
    if differences:
        raise InitialWeightsError(
            f"{folder} has a model of other sizes: {'; '.join(differences)}. "
            "Give another folder, or a preset of these sizes"
        )
    loaded_config.pad_token_id = config.pad_token_id  # the row of the embedding that is not trained
    loaded_config.hidden_dropout_prob = config.hidden_dropout_prob
    loaded_config.attention_probs_dropout_prob = config.attention_probs_dropout_prob
    return loaded_config


def _check_vocabulary(folder: str, data_spec: DataSpec, vocabulary: Mapping[str, int] | None) -> None:
    """Check that a checkpoint has the vocabulary of the data."""
    size = _load_config(folder).vocab_size
    if size != data_spec.vocabulary_size:
        raise InitialWeightsError(
            f"{folder} has a model with a vocabulary of {size:,} pieces; the pretraining set has "
            f"{data_spec.vocabulary_size:,}. Build the set with its vocabulary, or give another folder"
        )
    if vocabulary is None:
        return
    loaded = _read_vocabulary(folder)
    if loaded is None:
        return
    path, loaded_vocabulary = loaded
    if loaded_vocabulary != dict(vocabulary):
        num_differing = sum(
            vocabulary.get(piece) != token_id for piece, token_id in loaded_vocabulary.items()
        )
        raise InitialWeightsError(
            f"{path}: {num_differing:,} of its {len(loaded_vocabulary):,} pieces differ from the pretraining "
            f"set's vocabulary. Make it yours (python -m bioshards.vocab adopt {folder}) and build the set "
            "with it, or give another folder"
        )


def _read_vocabulary(folder: str) -> tuple[str, dict[str, int]] | None:
    """Read the ids by piece of a checkpoint's tokenizer.json, or of the vocab.txt of an older one.

    Returns:
        The path and the ids; None if the folder has neither.
    """
    path = os.path.join(folder, "tokenizer.json")
    if os.path.exists(path):
        try:
            return path, Tokenizer.from_file(path).get_vocab()
        except Exception as error:  # tokenizers raises plain Exception
            raise InitialWeightsError(f"{path} cannot be read ({error}). Give another folder") from error
    path = os.path.join(folder, "vocab.txt")
    if not os.path.exists(path):
        return None
    try:
        with open(path, encoding="utf-8-sig") as file:
            lines = file.read().split("\n")
    except (OSError, ValueError) as error:
        raise InitialWeightsError(f"{path} cannot be read ({error}). Give another folder") from error
    return path, {piece: token_id for token_id, piece in enumerate(lines) if piece}


def _load_config(folder: str) -> PreTrainedConfig:
    if not os.path.isfile(os.path.join(folder, "config.json")):
        problem = "has no config.json" if os.path.isdir(folder) else "does not exist"
        raise InitialWeightsError(
            f"{folder} {problem}. Give a folder written by save_pretrained, such as the hf/ of a checkpoint"
        )
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # a damaged file raises errors of many types
        raise InitialWeightsError(
            f"cannot read the config.json of {folder} ({error}). Give another folder"
        ) from error
    assert isinstance(config, PreTrainedConfig)
    return config
