"""ModelConfig: to be described."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from transformers import (
    AlbertConfig,
    BertConfig,
    ElectraConfig,
    PreTrainedConfig,
)

from bioshards.corpus.errors import InvalidValueError


@dataclass(frozen=True)
class ModelConfig:
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
    hidden_size: int
    num_layers: int
    num_heads: int
    intermediate_size: int
    embedding_size: int
    max_positions: int = 512
    dropout: float = 0.1
    attention_dropout: float = 0.1
    generator_hidden_fraction: float = 0.25
    generator_layers_fraction: float = 1.0

    def __post_init__(self) -> None:
        """Check that there is such a model.

        Raises:
            ValueError: there is none.
        """
        if self.family not in FAMILIES:
            raise InvalidValueError(f"family is {self.family!r}, and can be {', '.join(FAMILIES)}")
        if self.hidden_size % self.num_heads:
            raise InvalidValueError(f"hidden, {self.hidden_size}, is no multiple of heads, {self.num_heads}")
        if self.family == "bert" and self.embedding_size != self.hidden_size:
            raise InvalidValueError(
                f"BERT's embedding, {self.embedding_size}, has to be hidden, {self.hidden_size}"
            )
        if self.family == "electra":
            hidden_size, num_layers, num_heads = self._generator_sizes
            if min(hidden_size, num_layers) < 1 or hidden_size % num_heads:
                raise InvalidValueError(
                    f"the generator would have {num_layers} layers of {hidden_size} with {num_heads} heads, "
                    "which"
                    " cannot be: set generator (its width) or generator_layers to another part"
                )

    @property
    def _generator_sizes(self) -> tuple[int, int, int]:
        """Its width, layers, heads: ``get_generator_config``, google-research/electra, run_pretraining.py."""
        hidden_size = round(self.hidden_size * self.generator_hidden_fraction)
        return hidden_size, round(self.num_layers * self.generator_layers_fraction), max(1, hidden_size // 64)

    def build_config(self, data_spec: DataSpec) -> PreTrainedConfig:
        """Of the model that is kept."""
        common = {
            **self._common_settings(data_spec),
            "hidden_size": self.hidden_size,
            "num_hidden_layers": self.num_layers,
        }
        common |= {"num_attention_heads": self.num_heads, "intermediate_size": self.intermediate_size}
        if self.family == "electra":
            return ElectraConfig(**common, embedding_size=self.embedding_size)
        if self.family == "bert":
            return BertConfig(**common)
        cls_id, sep_id = data_spec.special_ids["[CLS]"], data_spec.special_ids["[SEP]"]
        return AlbertConfig(
            **common, embedding_size=self.embedding_size, bos_token_id=cls_id, eos_token_id=sep_id
        )

    def build_generator_config(self, data_spec: DataSpec) -> ElectraConfig:
        """Of ELECTRA's generator."""
        hidden_size, num_layers, num_heads = self._generator_sizes
        return ElectraConfig(
            **self._common_settings(data_spec),
            embedding_size=self.embedding_size,
            hidden_size=hidden_size,
            num_hidden_layers=num_layers,
            num_attention_heads=num_heads,
            intermediate_size=4 * hidden_size,
        )

    def _common_settings(self, data_spec: DataSpec) -> dict[str, Any]:
        return {
            "vocab_size": data_spec.vocabulary_size,
            "pad_token_id": data_spec.special_ids["[PAD]"],
            "max_position_embeddings": self.max_positions,
            "hidden_dropout_prob": self.dropout,
            "attention_probs_dropout_prob": self.attention_dropout,
        }


class DataSpec(Protocol):
    """What models need to know of the data."""

    @property
    def vocabulary_size(self) -> int: ...

    @property
    def special_ids(self) -> Mapping[str, int]:
        """The ids of "[PAD]", "[CLS]" and "[SEP]", among others."""

    @property
    def labelled(self) -> bool:
        """Have rows a label?"""


FAMILIES: Final = ("electra", "bert", "albert")
