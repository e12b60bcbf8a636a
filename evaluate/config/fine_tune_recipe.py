"""Fine-tuning hyperparameters; each field is a command line option and a TOML key."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.ui.options import check_type, option_from_field
from bioshards.train.recipe import Schedule, scale_warmup

LegacyMode = Literal["electra-truncation", "lower-case", "merged-types", "biobert-tags"]
"""Published deviations in reading and counting tags (metrics/tag_f1.py)."""
SearchMethod = Literal["grid", "tpe"]
"""Every combination once, in random order; or optuna's TPE sampler (Bio-ELECTRA used hyperopt's)."""


@dataclass(frozen=True, slots=True)
class FineTuneRecipe:
    """Hyperparameters of fine-tuning."""

    learning_rate: Annotated[float, "peak learning rate"] = 5e-5
    batch_size: Annotated[int, "examples per optimizer step"] = 32
    epochs: Annotated[int, "passes over the training examples"] = 10
    steps: Annotated[int, "total optimizer steps; 0: by epochs"] = 0
    max_seq_length: Annotated[int, "maximum tokens of an input"] = 512
    stride: Annotated[int, "tokens between two windows of a long passage (questions)"] = 128
    schedule: Annotated[
        Schedule, "learning rate schedule: triangular, constant, or that of ELECTRA's or BERT's code"
    ] = "triangular"
    warmup: Annotated[
        float,
        "warm-up steps; below 1: fraction of all steps. As long as the run or longer: 10 %% of the run",
    ] = 0.1
    bias_correction: Annotated[
        bool, "bias correction of Adam's moments; ELECTRA's and BERT's code have none"
    ] = True
    epsilon: Annotated[float, "Adam's epsilon"] = 1e-8
    weight_decay: Annotated[float, "weight decay, of matrices only"] = 0.0
    layer_decay: Annotated[float, "factor of the learning rate from each layer to the one below"] = 1.0
    electra_layer_decay: Annotated[
        bool, "apply layer decay once more below the head, as ELECTRA's code does"
    ] = False
    dropout: Annotated[float, "dropout before the head's last layer"] = 0.1
    grad_clip: Annotated[float, "maximum gradient norm; 0: no clipping"] = 1.0
    train_on: Annotated[
        Literal["train", "train+dev"], "splits to train on; train+dev needs --select-epoch last"
    ] = "train"
    select_epoch: Annotated[
        Literal["best", "last"], "checkpoint whose weights are scored: best on dev, or last"
    ] = "best"
    checkpoint_interval: Annotated[
        int, "optimizer steps from one checkpoint that is scored on dev to the next; 0: an epoch"
    ] = 0
    tag_scheme: Annotated[Literal["BIO", "BIOUL", "IO"], "tag scheme of entities"] = "BIO"
    head: Annotated[
        Literal["linear", "bilstm", "crf", "bilstm-crf"], "head on the encoder; a CRF only for tagging"
    ] = "linear"
    answer_head: Annotated[
        Literal["independent", "joint"],
        "head of questions: start and end apart, as BERT's, or the end given the start, as ELECTRA's",
    ] = "independent"
    entity_format: Annotated[
        Literal["placeholders", "markers", "original"],
        "format of a pair's entities; placeholders replaces them with their types",
    ] = "placeholders"
    relation_feature: Annotated[
        Literal["cls", "mention", "start"],
        "vectors that classify a pair: [CLS], all tokens of the entities, their first tokens",
    ] = "cls"
    class_weights: Annotated[str, "class weights of the loss: none, balanced, or one per class (1,99)"] = (
        "none"
    )
    squad_transfer: Annotated[
        Literal["no", "first", "joint"],
        "train on SQuAD before a question task (first), or together with it (joint)",
    ] = "no"
    precision: Annotated[
        Literal["float32", "bfloat16"], "precision of the encoder's matrix products; weights are float32"
    ] = "float32"

    def __post_init__(self) -> None:
        for name, field_type in typing.get_type_hints(FineTuneRecipe).items():
            check_type(name, getattr(self, name), field_type)
        for name in ("batch_size", "epochs", "stride"):
            if getattr(self, name) < 1:
                raise InvalidValueError(f"{option_from_field(name)} {getattr(self, name)} is below 1")
        if self.max_seq_length < 8:
            raise InvalidValueError(
                f"--max-seq-length {self.max_seq_length} is below 8: special tokens leave no room for text"
            )
        if not 0 < self.layer_decay <= 1:
            raise InvalidValueError(f"--layer-decay {self.layer_decay} is not above 0 and at most 1")
        if not 0 <= self.dropout < 1:
            raise InvalidValueError(f"--dropout {self.dropout} is not from 0 to below 1")
        for name in (
            *("learning_rate", "steps", "checkpoint_interval", "warmup", "epsilon", "weight_decay"),
            "grad_clip",
        ):
            value = getattr(self, name)
            if value < 0 or not math.isfinite(value):
                raise InvalidValueError(f"{option_from_field(name)} {value} is below 0 or not a number")
        if self.train_on != "train" and self.select_epoch != "last":
            raise InvalidValueError(
                "--train-on train+dev leaves no dev set to select an epoch: add --select-epoch last"
            )
        if self.class_weights not in ("none", "balanced"):
            parse_class_weights(self.class_weights)

    def total_steps(self, batches_per_epoch: int) -> int:
        """Return the total number of optimizer steps."""
        return self.steps or self.epochs * batches_per_epoch

    def warmup_steps(self, total_steps: int) -> int:
        """Return the number of steps with rising learning rate."""
        return scale_warmup(self.requested_warmup_steps(total_steps), total_steps)

    def requested_warmup_steps(self, total_steps: int) -> int:
        """Return the number of warm-up steps before :func:`scale_warmup`."""
        return round(self.warmup * total_steps) if self.warmup < 1 else round(self.warmup)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for a result file."""
        return dataclasses.asdict(self)


def parse_class_weights(setting: str) -> tuple[float, ...]:
    """Return the weights of a list such as ``1,99``.

    Raises:
        InvalidValueError: a weight is not a number above 0.
    """
    try:
        weights = tuple(float(number) for number in setting.split(","))
    except ValueError:
        weights = ()
    if not weights or min(weights) <= 0 or not all(map(math.isfinite, weights)):
        raise InvalidValueError(f"--class-weights {setting} is not none, balanced, or numbers such as 1,99")
    return weights


def override_recipe(recipe: FineTuneRecipe, overrides: Mapping[str, Any]) -> FineTuneRecipe:
    """Return a recipe with other field values.

    ``epochs`` resets ``steps`` and ``checkpoint_interval``; ``select_epoch="best"`` resets ``train_on`` to
    ``train``.

    Raises:
        InvalidValueError: the recipe is invalid.
    """
    implied: dict[str, Any] = {"steps": 0, "checkpoint_interval": 0} if "epochs" in overrides else {}
    if overrides.get("select_epoch") == "best":
        implied["train_on"] = "train"
    return replace(recipe, **{**implied, **overrides})
