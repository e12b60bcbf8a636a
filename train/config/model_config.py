"""Sizes of a model, and the facts about the data that it depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from bioshards.corpus.errors import InvalidValueError
from bioshards.train.config.model_families import FAMILIES, FamilyName


class GeneratorSizes(NamedTuple):
    """Sizes of ELECTRA's generator."""

    hidden_size: int
    num_layers: int
    num_heads: int


@dataclass(frozen=True)
class ModelConfig:
    """Sizes and dropout of a model.

    Attributes:
        intermediate_size: width of the inner layer of a feed-forward block.
        embedding_size: width of the embeddings; BERT's is ``hidden_size``.
        max_positions: maximum row length in tokens.
        dropout: dropout of embeddings and layers.
        attention_dropout: dropout of attention probabilities; 0 allows the GPU's varlen kernel.
        generator_hidden_fraction: width of ELECTRA's generator, as a fraction of ``hidden_size``.
        generator_layers_fraction: depth of ELECTRA's generator, as a fraction of ``num_layers``.
    """

    family: FamilyName
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
        """Check that the sizes fit together.

        Raises:
            InvalidValueError: the family is unknown, or no such model can be built.
        """
        if self.family not in FAMILIES:
            raise InvalidValueError(
                f"unknown model family {self.family!r}; choose from {', '.join(FAMILIES)}"
            )
        if self.hidden_size % self.num_heads:
            raise InvalidValueError(
                f"hidden_size {self.hidden_size} is not a multiple of num_heads {self.num_heads}"
            )
        family = FAMILIES[self.family]
        if not family.has_factorized_embedding and self.embedding_size != self.hidden_size:
            raise InvalidValueError(
                f"embedding_size {self.embedding_size} of {self.family} must equal hidden_size "
                f"{self.hidden_size}"
            )
        if family.has_generator:
            sizes = self.generator_sizes
            if min(sizes.hidden_size, sizes.num_layers) < 1 or sizes.hidden_size % sizes.num_heads:
                raise InvalidValueError(
                    f"invalid generator sizes: {sizes.num_layers} layers of width {sizes.hidden_size} with "
                    f"{sizes.num_heads} heads; change generator_hidden_fraction or generator_layers_fraction"
                )

    @property
    def generator_sizes(self) -> GeneratorSizes:
        """Sizes of the generator (google-research/electra, run_pretraining.py: ``get_generator_config``)."""
        hidden_size = round(self.hidden_size * self.generator_hidden_fraction)
        return GeneratorSizes(
            hidden_size=hidden_size,
            num_layers=round(self.num_layers * self.generator_layers_fraction),
            num_heads=max(1, hidden_size // 64),
        )


class DataSpec(Protocol):
    """Facts about a pretraining set that a model depends on."""

    @property
    def vocabulary_size(self) -> int: ...

    @property
    def special_ids(self) -> Mapping[str, int]:
        """Ids of the special tokens, [PAD], [CLS], [SEP] and [MASK] among them."""

    @property
    def most_frequent_id(self) -> int:
        """Id of the most frequent token of the text."""

    @property
    def labelled(self) -> bool:
        """True if rows have a label of next-sentence prediction or sentence order."""
