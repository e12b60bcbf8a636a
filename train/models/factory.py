"""Models for an objective: of random weights in the sizes of a shape, or of the weights of a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final, TypeVar

import torch
from tokenizers import Tokenizer
from transformers import (
    AlbertForPreTraining,
    AutoConfig,
    BertForPreTraining,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    PreTrainedConfig,
    PreTrainedModel,
)

from bioshards.corpus.errors import UserError
from bioshards.train.config.model_config import DataSpec, ModelConfig

from .electra_objective import GENERATOR_FOLDER, ElectraObjective
from .mlm_objective import MlmObjective
from .objective import Objective

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
    """A folder does not have the weights that training is to begin with."""


def build_objective(
    config: ModelConfig,
    data_spec: DataSpec,
    init_checkpoint: str | None = None,
    vocabulary: Mapping[str, int] | None = None,
) -> Objective:
    """The family's objective, in training mode.

    Weights that no folder gives are random, by PyTorch's own generator, which the caller seeds.

    Args:
        init_checkpoint: a folder that ``save_pretrained`` wrote: its encoder is taken, and of heads what it
            has; for ELECTRA the generator too, if there is a folder ``generator`` in it.
        vocabulary: the vocabulary's ids by piece, to compare with the folder's tokenizer.json if it has one.

    Raises:
        InitialWeightsError: the folder has no such model, or one of another vocabulary.
    """
    if init_checkpoint is not None:
        _check_vocabulary(init_checkpoint, data_spec, vocabulary)
    objective: Objective
    if config.family == "electra":
        generator_folder = (
            os.path.join(init_checkpoint, GENERATOR_FOLDER) if init_checkpoint is not None else None
        )
        objective = ElectraObjective(
            _build_model(
                ElectraForMaskedLM,
                config.build_generator_config(data_spec),
                generator_folder if _is_folder(generator_folder) else None,
            ),
            _build_model(ElectraForPreTraining, config.build_config(data_spec), init_checkpoint),
        )
    elif config.family == "bert":
        objective = MlmObjective(
            _build_model(BertForPreTraining, config.build_config(data_spec), init_checkpoint),
            data_spec.labelled,
        )
    else:
        objective = MlmObjective(
            _build_model(AlbertForPreTraining, config.build_config(data_spec), init_checkpoint),
            data_spec.labelled,
        )
    return objective.train()


def _is_folder(folder: str | None) -> bool:
    return folder is not None and os.path.isdir(folder)


def _build_model(model_class: type[_Model], config: PreTrainedConfig, folder: str | None) -> _Model:
    """A model of random weights, or of a folder's."""
    if folder is None:
        return model_class(config)
    config = _load_matching_config(folder, config)
    from_pretrained: Any = model_class.from_pretrained  # its annotation has no report of what is missing
    try:
        model, loading_info = from_pretrained(
            folder, config=config, dtype=torch.float32, local_files_only=True, output_loading_info=True
        )
    except Exception as error:  # whatever a damaged file makes of its readers
        raise InitialWeightsError(
            f"{folder}: its weights cannot be read ({error}). Give another folder"
        ) from error
    encoder_prefix = f"{model_class.base_model_prefix}."
    missing = [
        name
        for name in sorted(loading_info["missing_keys"])
        if name.startswith(encoder_prefix) and ".pooler." not in name
    ]
    if missing:
        raise InitialWeightsError(
            f"{folder}: {len(missing)} of the encoder's weights are not in it, such as {missing[0]}, so"
            f" {model_class.__name__} cannot begin with it. Give a folder that save_pretrained wrote"
        )
    assert isinstance(model, model_class)
    return model


def _load_matching_config(folder: str, config: PreTrainedConfig) -> PreTrainedConfig:
    """A folder's own configuration, with our dropout, if its sizes are ours."""
    loaded_config = _load_config(folder)
    if loaded_config.model_type != config.model_type:
        raise InitialWeightsError(
            f"{folder}: its model is of the family {loaded_config.model_type}, and {config.model_type} is "
            "to be"
            " trained. Give another folder, or a preset of that family"
        )
    differences = [
        f"{name} is {getattr(loaded_config, name)} there and {getattr(config, name)} here"
        for name in _SIZE_FIELDS
        if hasattr(config, name) and getattr(loaded_config, name) != getattr(config, name)
    ]
    if differences:
        raise InitialWeightsError(
            f"{folder}: its model has other sizes: {'; '.join(differences)}."
            " Give another folder, or a preset of these sizes"
        )
    loaded_config.hidden_dropout_prob = config.hidden_dropout_prob
    loaded_config.attention_probs_dropout_prob = config.attention_probs_dropout_prob
    return loaded_config


def _check_vocabulary(folder: str, data_spec: DataSpec, vocabulary: Mapping[str, int] | None) -> None:
    """A folder's vocabulary has to be the data's."""
    size = _load_config(folder).vocab_size
    if size != data_spec.vocabulary_size:
        raise InitialWeightsError(
            f"{folder}: its model has a vocabulary of {size:,} entries, and the data one of"
            f" {data_spec.vocabulary_size:,}. Encode the texts with its vocabulary, or give another folder"
        )
    path = os.path.join(folder, "tokenizer.json")
    if vocabulary is None or not os.path.exists(path):
        return
    try:
        loaded_vocabulary = Tokenizer.from_file(path).get_vocab()
    except Exception as error:  # tokenizers raises no other
        raise InitialWeightsError(f"{path}: it cannot be read ({error}). Give another folder") from error
    if loaded_vocabulary != dict(vocabulary):
        num_differing = sum(
            vocabulary.get(piece) != token_id for piece, token_id in loaded_vocabulary.items()
        )
        raise InitialWeightsError(
            f"{path}: {num_differing:,} of its {len(loaded_vocabulary):,} pieces are not the data's, or "
            "have other ids."
            " Encode the texts with its vocabulary, or give another folder"
        )


def _load_config(folder: str) -> PreTrainedConfig:
    if not os.path.isfile(os.path.join(folder, "config.json")):
        problem = "there is no config.json in it" if os.path.isdir(folder) else "there is no such folder"
        raise InitialWeightsError(
            f"{folder}: {problem}. Give a folder that save_pretrained wrote, such as a run's hf/"
        )
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # whatever a damaged file makes of its reader
        raise InitialWeightsError(
            f"{folder}: its config.json cannot be read ({error}). Give another folder"
        ) from error
    assert isinstance(config, PreTrainedConfig)
    return config
