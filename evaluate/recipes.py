"""Recipes of fine-tuning, and those of each task in the papers' suites, with sources."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.ui.options import check_type, option_from_field
from bioshards.train.recipe import Schedule

LegacyMode = Literal["electra-truncation", "lower-case", "merged-types", "biobert-tags"]
"""Published deviations in reading and counting tags (metrics/tags.py)."""
EntityFormat = Literal["placeholders", "markers", "original"]
RelationFeature = Literal["cls", "mention", "start"]
SearchMethod = Literal["grid", "tpe"]
"""Every combination once, in random order; or optuna's TPE sampler (Bio-ELECTRA used hyperopt's)."""


@dataclass(frozen=True, slots=True)
class FineTuneRecipe:
    """Hyperparameters of fine-tuning; each field is a command line option and a TOML key."""

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
        EntityFormat, "format of a pair's entities; placeholders replaces them with their types"
    ] = "placeholders"
    relation_feature: Annotated[
        RelationFeature, "vectors that classify a pair: [CLS], all tokens of the entities, their first tokens"
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
    answer_head="joint",
)
_ELECTRAMED_RECIPE: Final = FineTuneRecipe(
    # ELECTRAMed (Miolo et al. 2021, table 5): 5e-5, batch 32, length 128, layer decay 0.8, no weight decay,
    # epsilon 1e-6. The number of epochs is not given; 3, and no warm-up, are the defaults of the scripts that
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
    # BioALBERT (Naseem et al. 2020, table III): AdamW, 1e-5, batch 32, length 512, 5,336 updates, 320 of
    # warm-up, a checkpoint every 200, the best on dev. "All of the hyper-parameters used are same as default
    # ALBERT": its AdamW (google-research/albert, optimization.py) has no bias correction, epsilon 1e-6,
    # decay 0.01, gradients clipped to 1, and BERT's schedule.
    learning_rate=1e-5,
    steps=5336,
    schedule="bert",
    warmup=320.0,
    bias_correction=False,
    epsilon=1e-6,
    weight_decay=0.01,
    checkpoint_interval=200,
)
SQUAD_RECIPE: Final = replace(
    # ELECTRAMed (Miolo et al. 2021, table 5): 3e-5, batch 16, length 384, windows 128 apart, no weight decay
    # (0.01 in gmpoli/electramed's run_factoid.py). That script has ELECTRA's optimiser and schedule, and
    # BERT's head; 2 epochs are google-research/bert's and electra's for SQuAD.
    _ELECTRA_RECIPE,
    learning_rate=3e-5,
    batch_size=16,
    epochs=2,
    max_seq_length=384,
    weight_decay=0.0,
    answer_head="independent",
)
"""Recipe for SQuAD before a question task with ``squad_transfer="first"``."""


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
DEFAULT_SUITE: Final = "further"
"""Suite of tasks that no paper's suite lists."""
SUITES: Final[Mapping[str, Mapping[str, FineTuneRecipe]]] = {
    # PubMedBERT's paper (arXiv:2007.15779) states warm-up, dropout, tags, from 2 to 60 epochs (section 4.2),
    # and the lengths of its code; it gives a grid of rates and batches, and not what was chosen from it. What
    # it leaves open is BioLinkBERT-base's (michiyasunaga/LinkBERT, src/run_examples_blurb_*.sh), the only
    # complete settings that were published. Where both speak, the paper's value holds: GAD's length of 128
    # (BioLinkBERT 256), a warm-up of a tenth for questions (100 updates), EBM PICO's BIO tags and 2 epochs
    # (1 epoch).
    "blurb": {
        "bc5-chem": FineTuneRecipe(5e-5, 32, 20),
        "bc5-disease": FineTuneRecipe(5e-5, 16, 8),
        "ncbi-disease": FineTuneRecipe(5e-5, 32, 20),
        "bc2gm": FineTuneRecipe(6e-5, 32, 50),
        "jnlpba": FineTuneRecipe(1e-5, 16, 5),
        "ebm-pico": FineTuneRecipe(5e-5, 32, 2),
        "chemprot": FineTuneRecipe(3e-5, 32, 10, max_seq_length=256),
        "ddi": FineTuneRecipe(2e-5, 32, 5, max_seq_length=256),
        "gad": FineTuneRecipe(3e-5, 32, 10, max_seq_length=128),
        "biosses": FineTuneRecipe(1e-5, 16, 30),
        "hoc": FineTuneRecipe(4e-5, 32, 40),
        "pubmedqa": FineTuneRecipe(2e-5, 16, 30),
        "bioasq-yesno": FineTuneRecipe(2e-5, 16, 20),
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
    DEFAULT_SUITE: {
        "chemprot-scibert": FineTuneRecipe(2e-5, 32, 4),
    },
}
"""Recipes by suite and task."""

_NUM_SEEDS: Final[Mapping[str, int]] = {
    # Gu et al. 2020, section 4.2: "ten runs for BIOSSES, BioASQ, and PubMedQA, and five runs for the others".
    "blurb/biosses": 10,
    "blurb/pubmedqa": 10,
    "blurb/bioasq-yesno": 10,
    # Ozyurt 2020, section 2.2: "ten randomly initialized models are trained".
    "bio-electra": 10,
    # Miolo et al. 2021, section 3: "averaging the respective metrics over five runs with different seeds".
    "electramed": 5,
}
_DEFAULT_NUM_SEEDS: Final = 5
"""Number of seeds where the paper says none."""


def find_num_seeds(suite: str, task_name: str) -> int:
    """Return the number of runs over which the paper averages."""
    return _NUM_SEEDS.get(f"{suite}/{task_name}", _NUM_SEEDS.get(suite, _DEFAULT_NUM_SEEDS))
