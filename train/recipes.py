"""How a model is trained, as data: everything that decides what a run computes."""

from __future__ import annotations

import dataclasses
import math
import typing
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from bioshards.corpus.errors import InvalidValueError

from .masking import Masking
from .models import Shape
from .options import check_kind, flag
from .schedules import mask_rate

CORRUPTION: Final = {"electra": (0.85, 0.0), "bert": (0.8, 0.1), "albert": (0.8, 0.1)}
"""Of the chosen tokens, the share that becomes [MASK] and the share that becomes a random token; the rest
stays (google-research/electra, pretrain_helpers.py; bert and albert, create_pretraining_data.py)."""
Family = Literal["auto", "electra", "bert", "albert"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """A recipe; its fields are the command line's options, and the defaults those of a model that learns
    in seconds."""

    family: Annotated[Family, "auto: as the pretraining set was built for (plain: bert)"] = "auto"
    hidden: Annotated[int, "width of the model"] = 128
    layers: Annotated[int, "its layers"] = 2
    heads: Annotated[int, "its attention heads"] = 2
    ffn: Annotated[int, "width of its feed-forward layers"] = 512
    embedding: Annotated[int, "width of its embeddings (electra, albert)"] = 128
    positions: Annotated[int, "the longest sequence it can take"] = 512
    generator: Annotated[float, "the generator's share of width, heads and feed-forward width (electra)"] = (
        0.25
    )
    generator_layers: Annotated[float, "the generator's share of layers (electra)"] = 1.0
    dropout: Annotated[float, "of hidden states"] = 0.1
    attention_dropout: Annotated[float, "of attention; 0 lets the fastest kernels be used"] = 0.1
    begins: Annotated[
        Literal["random", "checkpoint", "run"],
        "from random weights, from --init's checkpoint, or where another run ended (--continue)",
    ] = "random"

    mask_unit: Annotated[Literal["token", "word", "ngram"], "what is masked as a whole"] = "token"
    mask_rate: Annotated[float, "share of a row's tokens that are masked"] = 0.15
    mask_rate_end: Annotated[float, "the share at the end, reached in five equal stages; 0: the same"] = 0.0
    max_predictions: Annotated[int, "masked tokens a row at most; 0: (share + .005) of the length"] = 0
    adversarial: Annotated[float, "weight of the adversarial loss; 0: none"] = 0.0

    steps: Annotated[int, "updates in all, those of a run that is continued among them"] = 200
    batch: Annotated[int, "rows an update, of all processes together"] = 16
    optimiser: Annotated[Literal["adam", "lamb"], "Adam or LAMB, with decoupled weight decay"] = "adam"
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
    decay: Annotated[float, "weight decay, of matrices only"] = 0.01
    layer_decay: Annotated[float, "learning rate of a layer as a share of that of the one above"] = 1.0
    clip: Annotated[float, "the longest gradient"] = 1.0

    precision: Annotated[Literal["float32", "bfloat16"], "of matrix products; weights are float32"] = (
        "float32"
    )
    padded: Annotated[bool, "pad rows to one length, instead of laying them end to end"] = False
    compile: Annotated[bool, "compile the model (torch.compile); batches then have constant shapes"] = False
    seed: Annotated[int, "of weights, order, masks and dropout"] = 0

    def __post_init__(self) -> None:
        for name, kind in typing.get_type_hints(Recipe).items():
            check_kind(name, getattr(self, name), kind)
        for name in ("steps", "batch", "hidden", "layers", "heads", "ffn", "embedding", "positions"):
            if getattr(self, name) < 1:
                raise InvalidValueError(f"{flag(name)} {getattr(self, name)} is below 1")
        if not 0 < self.mask_rate < 1:
            raise InvalidValueError(f"--mask-rate {self.mask_rate} is not between 0 and 1")
        for name in ("layer_decay", "generator", "generator_layers"):
            if not 0 < getattr(self, name) <= 1:
                raise InvalidValueError(f"{flag(name)} {getattr(self, name)} is not above 0 and at most 1")
        for name in ("mask_rate_end", "dropout", "attention_dropout", "beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidValueError(f"{flag(name)} {getattr(self, name)} is not from 0 to below 1")
        if self.epsilon == 0:  # what is never looked at would be 0 / 0
            raise InvalidValueError("--epsilon 0 is not above 0")
        if self.seed >= 1 << 63:
            raise InvalidValueError(f"--seed {self.seed} is not below 2^63")
        for name in _NOT_NEGATIVE:
            value = getattr(self, name)
            if value < 0 or not math.isfinite(value):
                raise InvalidValueError(f"{flag(name)} {value} is below 0 or no number")
        if self.warmup_steps > self.steps:
            raise InvalidValueError(
                f"--warmup {self.warmup:,.0f} is more than --steps {self.steps:,}: give fewer, or a share "
                "below 1"
            )
        if self.hidden % self.heads:
            raise InvalidValueError(f"--hidden {self.hidden} cannot be dealt out to --heads {self.heads}")

    @property
    def shape(self) -> Shape:
        """The model's."""
        if self.family == "auto":
            raise InvalidValueError("the family is chosen when the pretraining set is known")
        embedding = self.hidden if self.family == "bert" else self.embedding
        return Shape(
            *(self.family, self.hidden, self.layers, self.heads, self.ffn, embedding),
            positions=self.positions,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            generator=self.generator,
            generator_layers=self.generator_layers,
        )

    @property
    def masking(self) -> Masking:
        """What is masked at the first step."""
        masked, random = CORRUPTION[self.family]
        return Masking(self.mask_unit, self.mask_rate, masked, random, self.max_predictions)

    def mask_rate_at(self, step: int) -> float:
        """The share of a row's tokens that is masked at a step."""
        return mask_rate(step, self.steps, self.mask_rate, self.mask_rate_end or self.mask_rate)

    @property
    def warmup_steps(self) -> int:
        """Updates until the learning rate is at its peak."""
        return round(self.warmup * self.steps) if self.warmup < 1 else round(self.warmup)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for run.json."""
        return dataclasses.asdict(self)


_NOT_NEGATIVE: Final = (
    *("max_predictions", "adversarial", "learning_rate", "warmup"),
    *("epsilon", "decay", "clip", "seed"),
)
