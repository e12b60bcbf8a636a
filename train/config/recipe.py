"""How a model is trained, as data: everything that decides what a run computes."""

from __future__ import annotations

import dataclasses
import math
import typing
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from bioshards.corpus.errors import InvalidValueError

from .dataclass_options import check_type, option_from_field
from .masking_config import MaskingConfig, mask_rate
from .model_config import ModelConfig

CORRUPTION_FRACTIONS: Final = {"electra": (0.85, 0.0), "bert": (0.8, 0.1), "albert": (0.8, 0.1)}
"""Of the chosen tokens, the share that becomes [MASK] and the share that becomes a random token; the rest
stays (google-research/electra, pretrain_helpers.py; bert and albert, create_pretraining_data.py)."""
Family = Literal["auto", "electra", "bert", "albert"]


@dataclass(frozen=True, slots=True)
class TrainRecipe:
    """A recipe; its fields are the command line's options, and the defaults those of a model that learns
    in seconds."""

    family: Annotated[Family, "auto: as the pretraining set was built for (plain: bert)"] = "auto"
    hidden_size: Annotated[int, "width of the model"] = 128
    num_layers: Annotated[int, "its layers"] = 2
    num_heads: Annotated[int, "its attention heads"] = 2
    intermediate_size: Annotated[int, "width of its feed-forward layers"] = 512
    embedding_size: Annotated[int, "width of its embeddings (electra, albert)"] = 128
    max_positions: Annotated[int, "the longest sequence it can take"] = 512
    generator_hidden_fraction: Annotated[
        float, "the generator's share of width, heads and feed-forward width (electra)"
    ] = 0.25
    generator_layers_fraction: Annotated[float, "the generator's share of layers (electra)"] = 1.0
    dropout: Annotated[float, "of hidden states"] = 0.1
    attention_dropout: Annotated[float, "of attention; 0 lets the fastest kernels be used"] = 0.1
    start_from: Annotated[
        Literal["random", "checkpoint", "run"],
        "from random weights, from --init-checkpoint's checkpoint, or where another run ended (--continue-from)",
    ] = "random"

    mask_unit: Annotated[Literal["token", "word", "ngram"], "what is masked as a whole"] = "token"
    mask_rate: Annotated[float, "share of a row's tokens that are masked"] = 0.15
    final_mask_rate: Annotated[float, "the share at the end, reached in five equal stages; 0: the same"] = 0.0
    max_predictions_per_seq: Annotated[
        int, "masked tokens a row at most; 0: (share + .005) of the length"
    ] = 0
    adversarial_weight: Annotated[float, "weight of the adversarial loss; 0: none"] = 0.0

    steps: Annotated[int, "updates in all, those of a run that is continued among them"] = 200
    batch_size: Annotated[int, "rows an update, of all processes together"] = 16
    optimizer: Annotated[Literal["adam", "lamb"], "Adam or LAMB, with decoupled weight decay"] = "adam"
    bias_correction: Annotated[bool, "Adam's correction of its moments; the papers' code has none"] = True
    learning_rate: Annotated[float, "at its peak"] = 1e-3
    schedule: Annotated[
        Literal["electra", "bert", "triangular"],
        "electra: decay times warm-up; bert: warm-up, then the decay; triangular",
    ] = "triangular"
    warmup: Annotated[float, "updates to the peak; below 1: a share of all"] = 0.1
    beta1: Annotated[float, "decay of the first moment"] = 0.9
    beta2: Annotated[float, "decay of the second moment"] = 0.999
    epsilon: Annotated[float, "added to the second moment's root"] = 1e-6
    weight_decay: Annotated[float, "weight decay, of matrices only"] = 0.01
    layer_decay: Annotated[float, "learning rate of a layer as a share of that of the one above"] = 1.0
    grad_clip: Annotated[float, "the longest gradient"] = 1.0

    precision: Annotated[Literal["float32", "bfloat16"], "of matrix products; weights are float32"] = (
        "float32"
    )
    pad_rows: Annotated[bool, "pad rows to one length, instead of laying them end to end"] = False
    compile: Annotated[bool, "compile the model (torch.compile); batches then have constant shapes"] = False
    seed: Annotated[int, "of weights, order, masks and dropout"] = 0

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
        if self.epsilon == 0:  # what is never looked at would be 0 / 0
            raise InvalidValueError("--epsilon 0 is not above 0")
        if self.seed >= 1 << 63:
            raise InvalidValueError(f"--seed {self.seed} is not below 2^63")
        for name in _NON_NEGATIVE_FIELDS:
            value = getattr(self, name)
            if value < 0 or not math.isfinite(value):
                raise InvalidValueError(f"{option_from_field(name)} {value} is below 0 or no number")
        if self.warmup_steps > self.steps:
            raise InvalidValueError(
                f"--warmup {self.warmup:,.0f} is more than --steps {self.steps:,}: give fewer, or a share "
                "below 1"
            )
        if self.hidden_size % self.num_heads:
            raise InvalidValueError(
                f"--hidden-size {self.hidden_size} cannot be dealt out to --num-heads {self.num_heads}"
            )

    @property
    def model_config(self) -> ModelConfig:
        """The model's."""
        if self.family == "auto":
            raise InvalidValueError("the family is chosen when the pretraining set is known")
        embedding_size = self.hidden_size if self.family == "bert" else self.embedding_size
        return ModelConfig(
            *(
                self.family,
                self.hidden_size,
                self.num_layers,
                self.num_heads,
                self.intermediate_size,
                embedding_size,
            ),
            max_positions=self.max_positions,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            generator_hidden_fraction=self.generator_hidden_fraction,
            generator_layers_fraction=self.generator_layers_fraction,
        )

    @property
    def masking_config(self) -> MaskingConfig:
        """What is masked at the first step."""
        mask_token_fraction, random_token_fraction = CORRUPTION_FRACTIONS[self.family]
        return MaskingConfig(
            self.mask_unit,
            self.mask_rate,
            mask_token_fraction,
            random_token_fraction,
            self.max_predictions_per_seq,
        )

    def mask_rate_at(self, step: int) -> float:
        """The share of a row's tokens that is masked at a step."""
        return mask_rate(step, self.steps, self.mask_rate, self.final_mask_rate or self.mask_rate)

    @property
    def warmup_steps(self) -> int:
        """Updates until the learning rate is at its peak."""
        return round(self.warmup * self.steps) if self.warmup < 1 else round(self.warmup)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for run.json."""
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
