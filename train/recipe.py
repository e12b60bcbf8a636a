"""The training recipe: every setting that changes the result of a run, without slow imports."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NamedTuple, get_args

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.ui.options import check_type, option_from_field

FamilyName = Literal["electra", "bert", "albert"]
MaskUnit = Literal["token", "word", "ngram"]
Schedule = Literal["electra", "bert", "triangular", "constant"]
SCHEDULES: Final[tuple[Schedule, ...]] = get_args(Schedule)
_MASK_RATE_STAGES: Final = 5
LABELLED_OBJECTIVES: Final = frozenset({"bert", "albert"})
"""Objectives of pretraining sets whose rows have a label."""


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """How one family of models is pretrained.

    To add a family: its name in :data:`FamilyName`, its entry in :data:`FAMILIES`, and its objective in
    ``models/objectives.py``.

    Attributes:
        mask_token_fraction, random_token_fraction: fractions of the selected tokens that become [MASK], and a
            random token; the others are kept.
        data_objectives: objectives of pretraining sets that it can be trained on.
    """

    mask_token_fraction: float
    random_token_fraction: float
    data_objectives: frozenset[str]


FAMILIES: Final[Mapping[FamilyName, ModelFamily]] = {
    # 85 % [MASK], 15 % kept: google-research/electra, pretrain/pretrain_helpers.py.
    "electra": ModelFamily(0.85, 0.0, frozenset({"electra", "bert", "albert", "plain"})),
    # 80 % [MASK], 10 % random, 10 % kept: google-research/bert, create_pretraining_data.py.
    "bert": ModelFamily(0.8, 0.1, frozenset({"electra", "bert", "plain"})),  # albert's labels: sentence order
    # As bert: google-research/albert, create_pretraining_data.py.
    "albert": ModelFamily(
        0.8, 0.1, frozenset({"electra", "albert", "plain"})
    ),  # bert's labels: next sentence
}


DEFAULT_FAMILIES: Final[Mapping[str, FamilyName]] = {
    "electra": "electra",
    "bert": "bert",
    "albert": "albert",
    "plain": "bert",
}
"""Family that ``--family auto`` chooses, by the objective of the pretraining set."""


class GeneratorSizes(NamedTuple):
    """Sizes of ELECTRA's generator."""

    hidden_size: int
    num_layers: int
    num_heads: int


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
        Schedule,
        "electra: decay x warm-up; bert: warm-up, then the decay; triangular; constant: warm-up, then the "
        "peak",
    ] = "triangular"
    warmup: Annotated[
        float, "warm-up steps; below 1: fraction of all steps. As long as the run or longer: 10 %% of the run"
    ] = 0.1
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
    compile: Annotated[bool, "torch.compile the model; all batches then have the same shapes"] = False
    seed: Annotated[int, "seed of weights, row order, masks and dropout"] = 0

    def __post_init__(self) -> None:
        for name, field_type in typing.get_type_hints(TrainRecipe).items():
            check_type(name, getattr(self, name), field_type)
        for names, is_valid, problem in _RANGES:
            for name in names:
                value = getattr(self, name)
                if not is_valid(value):
                    raise InvalidValueError(f"{option_from_field(name)} {value} {problem}")
        if self.epsilon == 0:  # the update of a weight without a gradient would be 0 / 0
            raise InvalidValueError("--epsilon 0 is not above 0")
        if self.hidden_size % self.num_heads:
            raise InvalidValueError(
                f"--hidden-size {self.hidden_size} is not a multiple of --num-heads {self.num_heads}"
            )
        if self.family == "electra":
            sizes = self.generator_sizes
            if min(sizes.hidden_size, sizes.num_layers) < 1 or sizes.hidden_size % sizes.num_heads:
                raise InvalidValueError(
                    f"invalid generator sizes: {sizes.num_layers} layers of width {sizes.hidden_size} with "
                    f"{sizes.num_heads} heads; change --generator-hidden-fraction or "
                    "--generator-layers-fraction"
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

    @property
    def warmup_steps(self) -> int:
        """Number of steps until the peak learning rate."""
        return scale_warmup(self.requested_warmup_steps, self.steps)

    @property
    def requested_warmup_steps(self) -> int:
        """Number of warm-up steps before :func:`scale_warmup`."""
        return round(self.warmup * self.steps) if self.warmup < 1 else round(self.warmup)

    def mask_rate_at(self, step: int) -> float:
        """Return the masking rate of a step: five equal stages from ``mask_rate`` to ``final_mask_rate``.

        PubMedBERT raises it from 5 % to 25 %, by 5 % for every 20 % of the steps (arXiv:2007.15779, section
        2.1.3).
        """
        final_rate = self.final_mask_rate or self.mask_rate
        stage = min(_MASK_RATE_STAGES - 1, _MASK_RATE_STAGES * step // self.steps)
        return self.mask_rate + (final_rate - self.mask_rate) * stage / (_MASK_RATE_STAGES - 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, for run.json and the manifest."""
        return dataclasses.asdict(self)


def scale_warmup(warmup_steps: int, steps: int) -> int:
    """Return the warm-up of a run: 10 % of its steps if the requested one is as long as the run or longer.

    A shorter run of a paper's recipe would otherwise end before its peak learning rate.
    """
    return round(0.1 * steps) if warmup_steps >= steps else warmup_steps


def describe_warmup(requested_steps: int, steps: int) -> str:
    """Return a line that says how :func:`scale_warmup` has changed the warm-up; '' if it has not."""
    scaled_steps = scale_warmup(requested_steps, steps)
    if scaled_steps == requested_steps:
        return ""
    return (
        f"the warm-up of {requested_steps:,} steps is not shorter than the {steps:,} steps of the run: it is "
        f"{scaled_steps:,} steps, a tenth of the run"
    )


_RANGES: Final[Sequence[tuple[Sequence[str], Callable[[float], bool], str]]] = (
    (
        (
            *("steps", "batch_size", "hidden_size", "num_layers", "num_heads", "intermediate_size"),
            *("embedding_size", "max_positions"),
        ),
        lambda value: value >= 1,
        "is below 1",
    ),
    (("mask_rate",), lambda value: 0 < value < 1, "is not between 0 and 1"),
    (
        ("layer_decay", "generator_hidden_fraction", "generator_layers_fraction"),
        lambda value: 0 < value <= 1,
        "is not above 0 and at most 1",
    ),
    (
        ("final_mask_rate", "dropout", "attention_dropout", "beta1", "beta2"),
        lambda value: 0 <= value < 1,
        "is not from 0 to below 1",
    ),
    (("seed",), lambda value: value < 1 << 63, "is not below 2^63"),
    (
        (
            *("max_predictions_per_seq", "adversarial_weight", "learning_rate", "warmup", "epsilon"),
            *("weight_decay", "grad_clip", "seed"),
        ),
        lambda value: 0 <= value < math.inf,
        "is negative or not finite",
    ),
)
"""Fields, the values that they can have, and what an error says of others."""
