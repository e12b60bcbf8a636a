"""Models for an objective: of random weights in the sizes of a shape, or of the weights of a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import torch
from tokenizers import Tokenizer
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    AutoConfig,
    BertConfig,
    BertForPreTraining,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    PreTrainedConfig,
    PreTrainedModel,
)

from bioshards.corpus.errors import InvalidValueError, UserError

from .electra import GENERATOR, Electra
from .objective import Objective
from .pairs import Pairs

FAMILIES: Final = ("electra", "bert", "albert")
_SIZES: Final = (
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


class Data(Protocol):
    """What models need to know of the data."""

    @property
    def vocabulary_size(self) -> int: ...

    @property
    def special(self) -> Mapping[str, int]:
        """The ids of "[PAD]", "[CLS]" and "[SEP]", among others."""

    @property
    def labelled(self) -> bool:
        """Have rows a label?"""


@dataclass(frozen=True)
class Shape:
    """The sizes of a model.

    Attributes:
        family: "electra", "bert" or "albert".
        ffn: the inner layer of a feed-forward block.
        embedding: numbers of an embedding; BERT has as many as ``hidden``.
        positions: the longest row that the model can take.
        dropout: of embeddings and layers.
        attention_dropout: of attention's probabilities; 0 lets :mod:`.attention` use the GPU's kernel.
        generator: ELECTRA's generator is so wide, in parts of the discriminator.
        generator_layers: and so deep.
    """

    family: str
    hidden: int
    layers: int
    heads: int
    ffn: int
    embedding: int
    positions: int = 512
    dropout: float = 0.1
    attention_dropout: float = 0.1
    generator: float = 0.25
    generator_layers: float = 1.0

    def __post_init__(self) -> None:
        """Check that there is such a model.

        Raises:
            ValueError: there is none.
        """
        if self.family not in FAMILIES:
            raise InvalidValueError(f"family is {self.family!r}, and can be {', '.join(FAMILIES)}")
        if self.hidden % self.heads:
            raise InvalidValueError(f"hidden, {self.hidden}, is no multiple of heads, {self.heads}")
        if self.family == "bert" and self.embedding != self.hidden:
            raise InvalidValueError(f"BERT's embedding, {self.embedding}, has to be hidden, {self.hidden}")
        if self.family == "electra":
            hidden, layers, heads = self._generator
            if min(hidden, layers) < 1 or hidden % heads:
                raise InvalidValueError(
                    f"the generator would have {layers} layers of {hidden} with {heads} heads, which"
                    " cannot be: set generator (its width) or generator_layers to another part"
                )

    @property
    def _generator(self) -> tuple[int, int, int]:
        """Its width, layers, heads: ``get_generator_config``, google-research/electra, run_pretraining.py."""
        hidden = round(self.hidden * self.generator)
        return hidden, round(self.layers * self.generator_layers), max(1, hidden // 64)

    def config(self, data: Data) -> PreTrainedConfig:
        """Of the model that is kept."""
        common = {**self._common(data), "hidden_size": self.hidden, "num_hidden_layers": self.layers}
        common |= {"num_attention_heads": self.heads, "intermediate_size": self.ffn}
        if self.family == "electra":
            return ElectraConfig(**common, embedding_size=self.embedding)
        if self.family == "bert":
            return BertConfig(**common)
        begin, end = data.special["[CLS]"], data.special["[SEP]"]
        return AlbertConfig(**common, embedding_size=self.embedding, bos_token_id=begin, eos_token_id=end)

    def generator_config(self, data: Data) -> ElectraConfig:
        """Of ELECTRA's generator."""
        hidden, layers, heads = self._generator
        return ElectraConfig(
            **self._common(data),
            embedding_size=self.embedding,
            hidden_size=hidden,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=4 * hidden,
        )

    def _common(self, data: Data) -> dict[str, Any]:
        return {
            "vocab_size": data.vocabulary_size,
            "pad_token_id": data.special["[PAD]"],
            "max_position_embeddings": self.positions,
            "hidden_dropout_prob": self.dropout,
            "attention_probs_dropout_prob": self.attention_dropout,
        }


def build(
    shape: Shape, data: Data, init: str | None = None, pieces: Mapping[str, int] | None = None
) -> Objective:
    """The family's objective, in training mode.

    Weights that no folder gives are random, by PyTorch's own generator, which the caller seeds.

    Args:
        init: a folder that ``save_pretrained`` wrote: its encoder is taken, and of heads what it has; for
            ELECTRA the generator too, if there is a folder ``generator`` in it.
        pieces: the vocabulary's ids by piece, to compare with the folder's tokenizer.json if it has one.

    Raises:
        InitialWeightsError: the folder has no such model, or one of another vocabulary.
    """
    if init is not None:
        _check_vocabulary(init, data, pieces)
    objective: Objective
    if shape.family == "electra":
        inner = os.path.join(init, GENERATOR) if init is not None else None
        objective = Electra(
            _made(ElectraForMaskedLM, shape.generator_config(data), inner if _there(inner) else None),
            _made(ElectraForPreTraining, shape.config(data), init),
        )
    elif shape.family == "bert":
        objective = Pairs(_made(BertForPreTraining, shape.config(data), init), data.labelled)
    else:
        objective = Pairs(_made(AlbertForPreTraining, shape.config(data), init), data.labelled)
    return objective.train()


def _there(folder: str | None) -> bool:
    return folder is not None and os.path.isdir(folder)


def _made(kind: type[_Model], config: PreTrainedConfig, folder: str | None) -> _Model:
    """A model of random weights, or of a folder's."""
    if folder is None:
        return kind(config)
    config = _adopted(folder, config)
    loaded: Any = kind.from_pretrained  # its annotation has no report of what is missing
    try:
        model, report = loaded(
            folder, config=config, dtype=torch.float32, local_files_only=True, output_loading_info=True
        )
    except Exception as error:  # whatever a damaged file makes of its readers
        raise InitialWeightsError(
            f"{folder}: its weights cannot be read ({error}). Give another folder"
        ) from error
    encoder = f"{kind.base_model_prefix}."
    lacking = [
        name for name in sorted(report["missing_keys"]) if name.startswith(encoder) and ".pooler." not in name
    ]
    if lacking:
        raise InitialWeightsError(
            f"{folder}: {len(lacking)} of the encoder's weights are not in it, such as {lacking[0]}, so"
            f" {kind.__name__} cannot begin with it. Give a folder that save_pretrained wrote"
        )
    assert isinstance(model, kind)
    return model


def _adopted(folder: str, config: PreTrainedConfig) -> PreTrainedConfig:
    """A folder's own configuration, with our dropout, if its sizes are ours."""
    theirs = _config(folder)
    if theirs.model_type != config.model_type:
        raise InitialWeightsError(
            f"{folder}: its model is of the family {theirs.model_type}, and {config.model_type} is to be"
            " trained. Give another folder, or a preset of that family"
        )
    differing = [
        f"{name} is {getattr(theirs, name)} there and {getattr(config, name)} here"
        for name in _SIZES
        if hasattr(config, name) and getattr(theirs, name) != getattr(config, name)
    ]
    if differing:
        raise InitialWeightsError(
            f"{folder}: its model has other sizes: {'; '.join(differing)}."
            " Give another folder, or a preset of these sizes"
        )
    theirs.hidden_dropout_prob = config.hidden_dropout_prob
    theirs.attention_probs_dropout_prob = config.attention_probs_dropout_prob
    return theirs


def _check_vocabulary(folder: str, data: Data, pieces: Mapping[str, int] | None) -> None:
    """A folder's vocabulary has to be the data's."""
    size = _config(folder).vocab_size
    if size != data.vocabulary_size:
        raise InitialWeightsError(
            f"{folder}: its model has a vocabulary of {size:,} entries, and the data one of"
            f" {data.vocabulary_size:,}. Encode the texts with its vocabulary, or give another folder"
        )
    path = os.path.join(folder, "tokenizer.json")
    if pieces is None or not os.path.exists(path):
        return
    try:
        theirs = Tokenizer.from_file(path).get_vocab()
    except Exception as error:  # tokenizers raises no other
        raise InitialWeightsError(f"{path}: it cannot be read ({error}). Give another folder") from error
    if theirs != dict(pieces):
        other = sum(pieces.get(piece) != number for piece, number in theirs.items())
        raise InitialWeightsError(
            f"{path}: {other:,} of its {len(theirs):,} pieces are not the data's, or have other ids."
            " Encode the texts with its vocabulary, or give another folder"
        )


def _config(folder: str) -> PreTrainedConfig:
    if not os.path.isfile(os.path.join(folder, "config.json")):
        what = "there is no config.json in it" if os.path.isdir(folder) else "there is no such folder"
        raise InitialWeightsError(
            f"{folder}: {what}. Give a folder that save_pretrained wrote, such as a run's hf/"
        )
    try:
        found = AutoConfig.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # whatever a damaged file makes of its reader
        raise InitialWeightsError(
            f"{folder}: its config.json cannot be read ({error}). Give another folder"
        ) from error
    assert isinstance(found, PreTrainedConfig)
    return found
