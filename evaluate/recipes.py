"""How a model is fine-tuned, as data: every suite's numbers for each of its tasks, with where they are
written."""

from __future__ import annotations

import dataclasses
import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from bioshards.corpus.errors import InvalidValueError
from bioshards.train.options import check_type, option_from_field
from bioshards.train.schedules import Schedule


@dataclass(frozen=True, slots=True)
class FineTuneRecipe:
    """A recipe; its fields are the command line's options."""

    learning_rate: Annotated[float, "at its peak"] = 5e-5
    batch_size: Annotated[int, "examples an update"] = 32
    epochs: Annotated[int, "how often the training examples are gone through"] = 10
    steps: Annotated[int, "updates in all, instead of epochs; 0: by epochs"] = 0
    max_seq_length: Annotated[int, "pieces a model reads at once, at most"] = 512
    stride: Annotated[int, "pieces between two windows on a long passage (questions)"] = 128
    schedule: Annotated[Schedule, "triangular, or as ELECTRA's and BERT's code have it"] = "triangular"
    warmup: Annotated[float, "updates to the peak; below 1: a share of all"] = 0.1
    bias_correction: Annotated[
        bool, "Adam's correction of its moments; ELECTRA's and BERT's code have none"
    ] = True
    epsilon: Annotated[float, "added to the second moment's root"] = 1e-8
    weight_decay: Annotated[float, "of matrices only"] = 0.0
    layer_decay: Annotated[float, "learning rate of a layer as a share of that of the one above"] = 1.0
    electra_layer_decay: Annotated[
        bool, "one power more of layer decay for all but the head, as ELECTRA's code"
    ] = False
    dropout: Annotated[float, "before the head's last layer"] = 0.1
    grad_clip: Annotated[float, "the longest gradient"] = 1.0
    train_on: Annotated[
        Literal["train", "train+dev"], "train+dev leaves no dev to choose by, and needs --keep last"
    ] = "train"
    select_epoch: Annotated[Literal["best", "last"], "the epoch that is best on dev, or the last one"] = (
        "best"
    )
    tag_scheme: Annotated[Literal["BIO", "BIOUL", "IO"], "how entities are tagged"] = "BIO"
    head: Annotated[
        Literal["linear", "bilstm", "crf", "bilstm-crf"], "on the encoder; a CRF is for tags only"
    ] = "linear"
    entity_format: Annotated[
        Literal["dummies", "markers", "original"],
        "how a pair's entities are shown, where the files have their text",
    ] = "dummies"
    relation_feature: Annotated[
        Literal["cls", "mention", "start"],
        "what a pair is classified by: [CLS], the entities' pieces, their first",
    ] = "cls"
    class_weights: Annotated[str, "of the loss: none, balanced, or one a class (1,99)"] = "none"
    squad_transfer: Annotated[
        Literal["no", "first", "joint"], "SQuAD before a question set, or together with it"
    ] = "no"
    precision: Annotated[
        Literal["float32", "bfloat16"], "of the encoder's matrix products; weights are float32"
    ] = "float32"

    def __post_init__(self) -> None:
        for name, field_type in typing.get_type_hints(FineTuneRecipe).items():
            check_type(name, getattr(self, name), field_type)
        for name in ("batch", "epochs", "stride"):
            if getattr(self, name) < 1:
                raise InvalidValueError(f"{option_from_field(name)} {getattr(self, name)} is below 1")
        if self.max_seq_length < 8:
            raise InvalidValueError(
                f"--length {self.max_seq_length} is below 8: nothing but special tokens would fit"
            )
        if not 0 < self.layer_decay <= 1:
            raise InvalidValueError(f"--layer-decay {self.layer_decay} is not above 0 and at most 1")
        if not 0 <= self.dropout < 1:
            raise InvalidValueError(f"--dropout {self.dropout} is not from 0 to below 1")
        for name in ("learning_rate", "steps", "warmup", "epsilon", "weight_decay", "clip"):
            value = getattr(self, name)
            if value < 0 or not math.isfinite(value):
                raise InvalidValueError(f"{option_from_field(name)} {value} is below 0 or no number")
        if self.train_on != "train" and self.select_epoch != "last":
            raise InvalidValueError(
                "--learn-from train+dev leaves no dev to choose the best epoch by: add --keep last"
            )
        if self.class_weights not in ("none", "balanced"):
            self.parse_class_weights()

    def parse_class_weights(self) -> tuple[float, ...]:
        """The weights of classes that are given as numbers.

        Raises:
            ValueError: they are no numbers above 0.
        """
        try:
            weights = tuple(float(number) for number in self.class_weights.split(","))
        except ValueError:
            weights = ()
        if not weights or min(weights) <= 0 or not all(map(math.isfinite, weights)):
            raise InvalidValueError(
                f"--class-weights {self.class_weights} is not none, balanced, or numbers such as 1,99"
            )
        return weights

    def total_steps(self, batches_per_epoch: int) -> int:
        """Updates in all, of epochs of so many batches."""
        return self.steps or self.epochs * batches_per_epoch

    def warmup_steps(self, total_steps: int) -> int:
        """Updates until the learning rate is at its peak."""
        return min(total_steps, round(self.warmup * total_steps) if self.warmup < 1 else round(self.warmup))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, for a result."""
        return dataclasses.asdict(self)


def override_recipe(recipe: FineTuneRecipe, overrides: Mapping[str, Any]) -> FineTuneRecipe:
    """A recipe with other fields; with other epochs, these and not its ``steps`` say how long it is, and
    where the best epoch is asked for, dev is not learned from.

    Raises:
        ValueError: there can be no such recipe.
    """
    implied: dict[str, Any] = {"steps": 0} if "epochs" in overrides else {}
    if overrides.get("keep") == "best":
        implied["learn_from"] = "train"
    return replace(recipe, **{**implied, **overrides})


_BLURB_RECIPE: Final = FineTuneRecipe()
_ELECTRA_RECIPE: Final = FineTuneRecipe(
    # SciCrunch/bio_electra's scripts on google-research/electra's code: 1e-4, 3 epochs, decay 0.8 a layer
    # (one power too many: electra's issue 51), weight decay 0.01, warm-up 10 %, and the last epoch's weights.
    learning_rate=1e-4,
    batch_size=12,
    epochs=3,
    max_seq_length=128,
    schedule="electra",
    bias_correction=False,
    epsilon=1e-6,
    weight_decay=0.01,
    layer_decay=0.8,
    electra_layer_decay=True,
    select_epoch="last",
)
_ELECTRAMED_RECIPE: Final = FineTuneRecipe(
    # ELECTRAMed (Miolo et al. 2021, table 5): 5e-5, batch 32, length 128, layer decay 0.8, no weight decay,
    # epsilon 1e-6.  The number of epochs is not said; 3, and no warm-up, are the defaults of the scripts that
    # it used (Hugging Face's run_tf_ner.py and run_tf_text_classification.py).
    learning_rate=5e-5,
    batch_size=32,
    epochs=3,
    max_seq_length=128,
    warmup=0.0,
    epsilon=1e-6,
    layer_decay=0.8,
)
_BIOALBERT_RECIPE: Final = FineTuneRecipe(
    # BioALBERT (Naseem et al. 2020): AdamW, 1e-5, batch 32, length 512, 5,336 updates, 320 of warm-up,
    # the best on dev.
    learning_rate=1e-5,
    steps=5336,
    warmup=320.0,
    weight_decay=0.01,
)
SQUAD_RECIPE: Final = replace(
    # ELECTRAMed (Miolo et al. 2021, section 3): 3e-5, batch 16, length 384, windows 128 apart, on ELECTRA's
    # code, with what that has by itself; 2 epochs are google-research/bert's and electra's for SQuAD.
    _ELECTRA_RECIPE,
    learning_rate=3e-5,
    batch_size=16,
    epochs=2,
    max_seq_length=384,
)
"""What a model is fine-tuned by on SQuAD, before a question set with ``squad="first"``."""


_NER_TASKS: Final = (
    "ncbi-disease",
    "bc5-disease",
    "bc5-chem",
    "bc4chemd",
    "bc2gm",
    "jnlpba",
    "linnaeus",
    "s800",
)


def _blurb_recipe(
    learning_rate: float, batch_size: int, epochs: int, max_seq_length: int = 512, **overrides: Any
) -> FineTuneRecipe:
    return replace(
        _BLURB_RECIPE,
        learning_rate=learning_rate,
        batch_size=batch_size,
        epochs=epochs,
        max_seq_length=max_seq_length,
        **overrides,
    )


SUITES: Final[Mapping[str, Mapping[str, FineTuneRecipe]]] = {
    # PubMedBERT's paper gives the grid and not what was chosen from it.  Rates, batches, epochs and lengths
    # are BioLinkBERT-base's (michiyasunaga/LinkBERT, src/run_examples_blurb_*.sh), the only complete ones
    # that were published.  It keeps the last epoch, and warms up for named entities (a tenth) and questions
    # (100 updates) only; the tenth for all tasks, and the dropout, are of PubMedBERT's paper (section 4.2).
    "blurb": {
        "bc5-chem": _blurb_recipe(5e-5, 32, 20),
        "bc5-disease": _blurb_recipe(5e-5, 16, 8),
        "ncbi-disease": _blurb_recipe(5e-5, 32, 20),
        "bc2gm": _blurb_recipe(6e-5, 32, 50),
        "jnlpba": _blurb_recipe(1e-5, 16, 5),
        "ebm-pico": _blurb_recipe(5e-5, 32, 1, tags="IO"),
        "chemprot": _blurb_recipe(3e-5, 32, 10, 256),
        "ddi": _blurb_recipe(2e-5, 32, 5, 256),
        "gad": _blurb_recipe(3e-5, 32, 10, 256),
        "biosses": _blurb_recipe(1e-5, 16, 30),
        "hoc": _blurb_recipe(4e-5, 32, 40),
        "pubmedqa": _blurb_recipe(2e-5, 16, 30, warmup=100.0),
        "bioasq-yesno": _blurb_recipe(2e-5, 16, 20, warmup=100.0),
    },
    # The published scripts' length, batch and epochs, for Bio-ELECTRA and Bio-ELECTRA++.
    "bio-electra": {
        "ncbi-disease": _ELECTRA_RECIPE,
        "bc4chemd": _ELECTRA_RECIPE,
        "bc2gm": _ELECTRA_RECIPE,
        "linnaeus": replace(_ELECTRA_RECIPE, max_seq_length=192),
        "chemprot-lim-kang": replace(_ELECTRA_RECIPE, batch_size=24),
        "gad": replace(_ELECTRA_RECIPE, batch_size=32, train_on="train+dev"),  # all 4,796 of fold 1
        "yesno-ideal": replace(_ELECTRA_RECIPE, max_seq_length=192),
        "factoid-8b": replace(_ELECTRA_RECIPE, max_seq_length=192, squad_transfer="joint"),
        "reranker": replace(_ELECTRA_RECIPE, max_seq_length=64),
        "reranker-weighted": replace(_ELECTRA_RECIPE, max_seq_length=64, class_weights="1,99"),
    },
    "electramed": {
        "ncbi-disease": _ELECTRAMED_RECIPE,
        "bc5cdr-merged": _ELECTRAMED_RECIPE,
        "jnlpba-typed": _ELECTRAMED_RECIPE,
        "chemprot-blue": _ELECTRAMED_RECIPE,
        "ddi-blue": _ELECTRAMED_RECIPE,
        "factoid-7b": replace(
            SQUAD_RECIPE, learning_rate=5e-6, epochs=3, select_epoch="best", squad_transfer="first"
        ),
    },
    "bioalbert": dict.fromkeys(_NER_TASKS, _BIOALBERT_RECIPE),
    # Of none of these papers: SciBERT's ChemProt (allenai/scibert: 2e-5, batch 32, 4 epochs).
    "further": {
        "chemprot-scibert": _blurb_recipe(2e-5, 32, 4),
    },
}
"""The tasks of each paper, with what their models were fine-tuned by."""
