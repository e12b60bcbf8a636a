"""Initial weights: random, or those of a Hugging Face checkpoint that is compared with the run."""

from __future__ import annotations

import filecmp
import json
import os
from collections.abc import Callable
from typing import Any, Final

import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel

from bioshards.corpus.errors import UserError
from bioshards.train.models.objectives import GENERATOR_FOLDER, OBJECTIVES, DataSpec, Objective
from bioshards.train.recipe import TrainRecipe

_SIZE_FIELDS: Final = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "embedding_size",
    "max_position_embeddings",
)


class InitialWeightsError(UserError):
    """The initial weights are missing, damaged, or of another model."""


def build_objective(
    recipe: TrainRecipe,
    data_spec: DataSpec,
    init_checkpoint: str | None = None,
    vocabulary: str | None = None,
    write: Callable[[str], None] = lambda line: None,
) -> Objective:
    """Build the objective of a recipe, whose family must be known, in training mode.

    Random weights come from PyTorch's global generator, which the caller seeds.

    Args:
        init_checkpoint: folder written by ``save_pretrained``.  Its encoder and those of its heads that the
            objective has are loaded; for ELECTRA also the generator in its subfolder ``generator``.
        vocabulary: folder of the pretraining set's vocabulary, to compare with that of the checkpoint.
        write: gets a line about everything in the checkpoint that is missing, or could not be compared.

    Raises:
        InitialWeightsError: the checkpoint is of another model or another vocabulary.
    """
    if init_checkpoint is not None:
        _check_vocabulary(init_checkpoint, data_spec, vocabulary, write)

    def load_model(model_class: type[PreTrainedModel], config: PreTrainedConfig, subfolder: str) -> Any:
        if init_checkpoint is None:
            return model_class(config)
        folder = os.path.join(init_checkpoint, subfolder) if subfolder else init_checkpoint
        if subfolder and not os.path.isdir(folder):
            write(f"{init_checkpoint} has no folder {GENERATOR_FOLDER}/: the generator starts at random")
            return model_class(config)
        return _load_model(model_class, config, folder)

    return OBJECTIVES[recipe.family](recipe, data_spec, load_model).train()  # type: ignore[index]


def _load_model(model_class: type[PreTrainedModel], config: PreTrainedConfig, folder: str) -> Any:
    config = _load_matching_config(folder, config)
    from_pretrained: Any = model_class.from_pretrained  # its annotation lacks output_loading_info
    try:
        model, loading_info = from_pretrained(
            folder,
            config=config,
            dtype=torch.float32,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
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


def _load_config(folder: str) -> PreTrainedConfig:
    if not os.path.isfile(os.path.join(folder, "config.json")):
        problem = "has no config.json" if os.path.isdir(folder) else "does not exist"
        raise InitialWeightsError(
            f"{folder} {problem}. Give a folder written by save_pretrained, such as the hf/ of a checkpoint"
        )
    try:
        config = AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:  # a damaged file raises errors of many types
        raise InitialWeightsError(
            f"cannot read the config.json of {folder} ({error}). Give another folder"
        ) from error
    assert isinstance(config, PreTrainedConfig)
    return config


def _check_vocabulary(
    folder: str, data_spec: DataSpec, vocabulary: str | None, write: Callable[[str], None]
) -> None:
    """Check that a checkpoint has the vocabulary of the data, as far as its files tell."""
    size = _load_config(folder).vocab_size
    if size != data_spec.vocabulary_size:
        raise InitialWeightsError(
            f"{folder} has a model with a vocabulary of {size:,} pieces; the pretraining set has "
            f"{data_spec.vocabulary_size:,}. Build the set with its vocabulary, or give another folder"
        )
    if vocabulary is None:
        return
    adopt_hint = (
        f"Make it yours (bioshards vocab adopt {folder}) and build the set with it, or give another folder"
    )
    own, files = f"{vocabulary}/spiece.model", set(os.listdir(folder))
    if "tokenizer.json" in files:
        tokenizer = _read_tokenizer(f"{folder}/tokenizer.json")
        loaded_ids = tokenizer.get_vocab()
    elif "vocab.txt" in files:
        tokenizer, loaded_ids = None, _read_vocab_txt(f"{folder}/vocab.txt")
    elif "spiece.model" in files and os.path.exists(own):
        if not filecmp.cmp(own, f"{folder}/spiece.model", shallow=False):
            raise InitialWeightsError(
                f"{folder}/spiece.model is not the model of the pretraining set's vocabulary. {adopt_hint}"
            )
        return
    else:
        write(
            f"{folder} has no tokenizer that can be compared: it must have the pretraining set's vocabulary "
            f"({size:,} pieces, as the model has)"
        )
        return
    own_tokenizer = _read_tokenizer(f"{vocabulary}/tokenizer.json")
    own_ids = own_tokenizer.get_vocab()
    path = f"{folder}/tokenizer.json" if tokenizer else f"{folder}/vocab.txt"
    if loaded_ids != own_ids:
        num_differing = sum(own_ids.get(piece) != token_id for piece, token_id in loaded_ids.items())
        raise InitialWeightsError(
            f"{path}: {num_differing:,} of its {len(loaded_ids):,} pieces differ from the pretraining set's "
            f"vocabulary. {adopt_hint}"
        )
    own_casing, casing = _lowers_case(vocabulary, own_tokenizer), _lowers_case(folder, tokenizer)
    if casing is None:
        write(f"{folder} does not tell its casing: it must be that of the pretraining set's vocabulary")
    elif casing != own_casing:
        words = {True: "lower case", False: "cased"}
        raise InitialWeightsError(
            f"{folder} has a tokenizer that is {words[casing]}; the pretraining set's vocabulary is "
            f"{words[bool(own_casing)]}. {adopt_hint}"
        )


def _lowers_case(folder: str, tokenizer: Tokenizer | None) -> bool | None:
    """Return True if a tokenizer writes words in lower case; None if its files do not tell.

    Args:
        tokenizer: that of the folder; None if it has no tokenizer.json.
    """
    if tokenizer is not None:
        return tokenizer.normalizer is not None and "a" in tokenizer.normalizer.normalize_str("A")
    try:
        with open(f"{folder}/tokenizer_config.json", encoding="utf-8-sig") as file:
            value = json.load(file).get("do_lower_case")
    except (OSError, ValueError, AttributeError):
        return None
    return value if isinstance(value, bool) else None


def _read_tokenizer(path: str) -> Tokenizer:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return Tokenizer.from_str(file.read())
    except Exception as error:  # tokenizers raises plain Exception
        raise InitialWeightsError(f"{path} cannot be read ({error}). Give another folder") from error


def _read_vocab_txt(path: str) -> dict[str, int]:
    """Read the ids by piece of an older checkpoint."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            lines = file.read().split("\n")
    except (OSError, ValueError) as error:
        raise InitialWeightsError(f"{path} cannot be read ({error}). Give another folder") from error
    return {piece: token_id for token_id, piece in enumerate(lines) if piece}
