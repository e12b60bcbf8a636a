"""The papers' suites: fine-tuning recipe of each task, with sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe

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


def _blurb_recipe(
    learning_rate: float, batch_size: int, epochs: int, max_seq_length: int = 512
) -> FineTuneRecipe:
    return replace(
        _BLURB_RECIPE,
        learning_rate=learning_rate,
        batch_size=batch_size,
        epochs=epochs,
        max_seq_length=max_seq_length,
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
        "bc5-chem": _blurb_recipe(5e-5, 32, 20),
        "bc5-disease": _blurb_recipe(5e-5, 16, 8),
        "ncbi-disease": _blurb_recipe(5e-5, 32, 20),
        "bc2gm": _blurb_recipe(6e-5, 32, 50),
        "jnlpba": _blurb_recipe(1e-5, 16, 5),
        "ebm-pico": _blurb_recipe(5e-5, 32, 2),
        "chemprot": _blurb_recipe(3e-5, 32, 10, 256),
        "ddi": _blurb_recipe(2e-5, 32, 5, 256),
        "gad": _blurb_recipe(3e-5, 32, 10, 128),
        "biosses": _blurb_recipe(1e-5, 16, 30),
        "hoc": _blurb_recipe(4e-5, 32, 40),
        "pubmedqa": _blurb_recipe(2e-5, 16, 30),
        "bioasq-yesno": _blurb_recipe(2e-5, 16, 20),
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
        "chemprot-scibert": _blurb_recipe(2e-5, 32, 4),
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
