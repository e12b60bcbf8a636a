"""The training recipe: every setting that changes the result of a run."""

from __future__ import annotations

import dataclasses
import math
import typing
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.ui.options import check_type, option_from_field
from bioshards.train.config.masking_config import MaskingConfig, MaskUnit, mask_rate
from bioshards.train.config.model_config import ModelConfig
from bioshards.train.config.model_families import FAMILIES, FamilyName


@dataclass(frozen=True, slots=True)
class TrainRecipe:
    """Settings of a model and of its training.

    The fields are the command-line options; the defaults train a small model in seconds.
    """

    family: Annotated[
        Literal["auto", FamilyName], "model family; auto: that of the pretraining set (plain: bert)"
    ] = "auto"
    hidden_size: Annotated[int, "width of the model"] = 128
    num_layers: Annotated[int, "number of layers"] = 2
    num_heads: Annotated[int, "number of attention heads"] = 2
    intermediate_size: Annotated[int, "width of the feed-forward layers"] = 512
    embedding_size: Annotated[int, "width of the embeddings (electra, albert)"] = 128
    max_positions: Annotated[int, "maximum sequence length in tokens"] = 512
    generator_hidden_fraction: Annotated[float, "generator width as a fraction of the model's (electra)"] = (
        0.25
    )
    generator_layers_fraction: Annotated[float, "generator depth as a fraction of the model's (electra)"] = (
        1.0
    )
    dropout: Annotated[float, "dropout of hidden states"] = 0.1
    attention_dropout: Annotated[float, "dropout of attention"] = 0.1
    start_from: Annotated[
        Literal["random", "checkpoint", "run"],
        "initial weights: random, those of --init-checkpoint, or those of --continue-from",
    ] = "random"

    mask_unit: Annotated[MaskUnit, "unit that is masked as a whole"] = "token"
    mask_rate: Annotated[float, "fraction of a row's tokens that are masked"] = 0.15
    final_mask_rate: Annotated[float, "masking rate at the end, reached in five stages; 0: constant"] = 0.0
    max_predictions_per_seq: Annotated[
        int, "maximum masked tokens in a row; 0: (mask rate + .005) x row length"
    ] = 0
    adversarial_weight: Annotated[float, "weight of the adversarial loss; 0: off"] = 0.0

    steps: Annotated[int, "total steps, those of a continued run included"] = 200
    batch_size: Annotated[int, "rows in a step, over all processes"] = 16
    optimizer: Annotated[Literal["adam", "lamb"], "Adam or LAMB, with decoupled weight decay"] = "adam"
    bias_correction: Annotated[bool, "Adam's bias correction; off in the papers' code"] = True
    learning_rate: Annotated[float, "peak learning rate"] = 1e-3
    schedule: Annotated[
        Literal["electra", "bert", "triangular"],
        "electra: decay x warm-up; bert: warm-up, then the decay; triangular",
    ] = "triangular"
    warmup: Annotated[float, "warm-up steps; below 1: fraction of all steps"] = 0.1
    beta1: Annotated[float, "decay of the first moment"] = 0.9
    beta2: Annotated[float, "decay of the second moment"] = 0.999
    epsilon: Annotated[float, "added to the root of the second moment"] = 1e-6
    weight_decay: Annotated[float, "decoupled weight decay of matrices"] = 0.01
    layer_decay: Annotated[float, "learning rate of a layer relative to the layer above"] = 1.0
    grad_clip: Annotated[float, "maximum gradient norm; 0: off"] = 1.0

    precision: Annotated[
        Literal["auto", "float32", "bfloat16", "float16"],
        "precision of matrix products; auto: bfloat16 or, on older GPUs, float16; float32 on a CPU",
    ] = "auto"
    pad_rows: Annotated[bool, "pad rows to one length instead of packing them end to end"] = False
    compile: Annotated[bool, "torch.compile the model; all batches then have the same shapes"] = False
    seed: Annotated[int, "seed of weights, row order, masks and dropout"] = 0

    def __post_init__(self) -> None:
        for name, field_type in typing.get_type_hints(TrainRecipe).items():
            check_type(name, getattr(self, name), field_type)
        for name in _POSITIVE_FIELDS:
            if getattr(self, name) < 1:
                raise InvalidValueError(f"{option_from_field(name)} {getattr(self, name)} is below 1")
        if not 0 < self.mask_rate < 1:
            raise InvalidValueError(f"--mask-rate {self.mask_rate} is not between 0 and 1")
        for name in ("layer_decay", "generator_hidden_fraction", "generator_layers_fraction"):
            if not 0 < getattr(self, name) <= 1:
                raise InvalidValueError(
                    f"{option_from_field(name)} {getattr(self, name)} is not above 0 and at most 1"
                )
        for name in ("final_mask_rate", "dropout", "attention_dropout", "beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidValueError(
                    f"{option_from_field(name)} {getattr(self, name)} is not from 0 to below 1"
                )
        if self.epsilon == 0:  # the update of a weight without a gradient would be 0 / 0
            raise InvalidValueError("--epsilon 0 is not above 0")
        if self.seed >= 1 << 63:
            raise InvalidValueError(f"--seed {self.seed} is not below 2^63")
        for name in _NON_NEGATIVE_FIELDS:
            value = getattr(self, name)
            if value < 0 or not math.isfinite(value):
                raise InvalidValueError(f"{option_from_field(name)} {value} is negative or not finite")
        if self.warmup_steps > self.steps:
            raise InvalidValueError(
                f"--warmup {self.warmup:,.0f} exceeds --steps {self.steps:,}; lower it, or give a fraction "
                "below 1"
            )
        if self.hidden_size % self.num_heads:
            raise InvalidValueError(
                f"--hidden-size {self.hidden_size} is not a multiple of --num-heads {self.num_heads}"
            )

    @property
    def model_config(self) -> ModelConfig:
        """Sizes of the model; the family must be known.

        Raises:
            InvalidValueError: the family is still ``auto``, or no such model can be built.
        """
        if self.family == "auto":
            raise InvalidValueError("--family auto is resolved when the pretraining set is opened")
        is_factorized = FAMILIES[self.family].has_factorized_embedding
        return ModelConfig(
            family=self.family,
            hidden_size=self.hidden_size,
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            intermediate_size=self.intermediate_size,
            embedding_size=self.embedding_size if is_factorized else self.hidden_size,
            max_positions=self.max_positions,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            generator_hidden_fraction=self.generator_hidden_fraction,
            generator_layers_fraction=self.generator_layers_fraction,
        )

    @property
    def masking_config(self) -> MaskingConfig:
        """Masking at the first step; the family must be known."""
        family = FAMILIES[self.family]  # type: ignore[index]  # never "auto" here
        return MaskingConfig(
            unit=self.mask_unit,
            rate=self.mask_rate,
            mask_token_fraction=family.mask_token_fraction,
            random_token_fraction=family.random_token_fraction,
            max_predictions=self.max_predictions_per_seq,
        )

    def mask_rate_at(self, step: int) -> float:
        """Return the masking rate of a step."""
        return mask_rate(step, self.steps, self.mask_rate, self.final_mask_rate or self.mask_rate)

    @property
    def warmup_steps(self) -> int:
        """Number of steps until the peak learning rate."""
        return round(self.warmup * self.steps) if self.warmup < 1 else round(self.warmup)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, for run.json and the manifest."""
        return dataclasses.asdict(self)


_POSITIVE_FIELDS: Final = (
    "steps",
    "batch_size",
    "hidden_size",
    "num_layers",
    "num_heads",
    "intermediate_size",
    "embedding_size",
    "max_positions",
)
_NON_NEGATIVE_FIELDS: Final = (
    "max_predictions_per_seq",
    "adversarial_weight",
    "learning_rate",
    "warmup",
    "epsilon",
    "weight_decay",
    "grad_clip",
    "seed",
)
