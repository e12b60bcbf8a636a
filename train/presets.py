"""Training recipes of the papers, each number with its source."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from bioshards.train.recipe import TrainRecipe

_ELECTRA_SMALL: Final = TrainRecipe(
    # google-research/electra, configure_pretraining.py and util/training_utils.py: small is 12 layers of 256
    # with 4 heads, embeddings of 128 and a generator of a quarter; length 128, batch 128, 1,000,000 steps,
    # 5e-4, 10,000 of warm-up, decay 0.01, 15 % masked.  model/optimization.py: Adam without bias correction,
    # epsilon 1e-6, gradients clipped at 1.0.  pretrain_helpers.py: 85 % [MASK], 15 % kept.
    family="electra",
    hidden_size=256,
    num_layers=12,
    num_heads=4,
    intermediate_size=1024,
    embedding_size=128,
    generator_hidden_fraction=0.25,
    steps=1_000_000,
    batch_size=128,
    learning_rate=5e-4,
    schedule="electra",
    warmup=10_000.0,
    bias_correction=False,
)
_ELECTRA_BASE: Final = replace(
    # As above; base: 12 layers of 768, a generator of a third, length 512, batch 256, 2e-4.
    _ELECTRA_SMALL,
    hidden_size=768,
    num_heads=12,
    intermediate_size=3072,
    embedding_size=768,
    generator_hidden_fraction=1 / 3,
    batch_size=256,
    learning_rate=2e-4,
)
_BIOALBERT_BASE: Final = TrainRecipe(
    # BioALBERT (Naseem et al. 2020, tables I and II): base is 12 layers of 768 with 12 heads, embeddings of
    # 128; LAMB, batch 1,024, 0.00176, 3,125 steps of warm-up, 200,000 steps on PubMed, 20 predictions.
    # google-research/albert: n-grams, 80/10/10, poly decay (optimization.py), LAMB's decay 0.01, epsilon
    # 1e-6, clip 1.0; no dropout in the second version of its models, and the paper does not say which it
    # begins from.
    family="albert",
    hidden_size=768,
    num_layers=12,
    num_heads=12,
    intermediate_size=3072,
    embedding_size=128,
    start_from="checkpoint",
    dropout=0.0,
    attention_dropout=0.0,
    optimizer="lamb",
    bias_correction=False,
    max_predictions_per_seq=20,
    mask_unit="ngram",
    schedule="bert",
    warmup=3125.0,
    steps=200_000,
    batch_size=1024,
    learning_rate=0.00176,
)
_BIOALBERT_LARGE: Final = replace(
    # ... and large: 24 layers of 1,024 with 16 heads, batch 256, 0.00062 (0.00176 / 2 ** 1.5).
    _BIOALBERT_BASE,
    hidden_size=1024,
    num_layers=24,
    num_heads=16,
    intermediate_size=4096,
    batch_size=256,
    learning_rate=0.00062,
)
_PUBMEDBERT: Final = TrainRecipe(
    # PubMedBERT (Gu et al. 2020, section 4): BERT-base, whole words, 15 %, 80/10/10, next-sentence
    # prediction; 62,500 steps of 8,192 rows, Adam, 6e-4 after 10 % of the steps, then linear to 0.  BERT's
    # modeling.py: dropout 0.1; its optimization.py: decay 0.01, epsilon 1e-6, clip 1.0.  NVIDIA's BERT for
    # TensorFlow, which the paper builds on, predicts 80 tokens of 512 at most: 15 % are 77, so no limit is
    # needed, and one would cut progressive masking short.
    family="bert",
    hidden_size=768,
    num_layers=12,
    num_heads=12,
    intermediate_size=3072,
    embedding_size=768,
    mask_unit="word",
    steps=62_500,
    batch_size=8192,
    learning_rate=6e-4,
    schedule="triangular",
    warmup=0.1,
    bias_correction=False,
)
PRESETS: Final[dict[str, TrainRecipe]] = {
    # Not from a paper.  It corrects Adam's bias: during the first 1 / (1 - beta2) = 1,000 steps the second
    # moment is too small, and with a short warm-up updates are several times too large.  The papers warm up
    # longer.
    "tiny": TrainRecipe(),
    "electra-small": _ELECTRA_SMALL,
    "electra-base": _ELECTRA_BASE,
    # Bio-ELECTRA (Ozyurt 2020, pmc_config.json.example of its repository): ELECTRA-small, length 256, batch
    # 64, 1,800,000 steps.  Its checkpoints at 0.8, 1.0 and 1.4 million say that it was trained in stages,
    # each with a new schedule; here it is one stage.
    "bio-electra": replace(_ELECTRA_SMALL, steps=1_800_000, batch_size=64),
    # Bio-ELECTRA++ (pmc_config_v2.json.example): continues the same model to 3,600,000 steps on PMC articles.
    # The schedule covers all steps, so the learning rate at step 1,800,000 is half its peak, 2.5e-4, without
    # another warm-up; Adam's moments are kept.
    "bio-electra-pp": replace(_ELECTRA_SMALL, steps=3_600_000, batch_size=64, start_from="run"),
    # ELECTRAMed (Miolo et al. 2021, table 1): ELECTRA-base, length 512, batch 256, 1,000,000 steps, 2e-4,
    # 10,000 of warm-up, decay 0.01, a generator of a third, 15 %.
    "electramed": _ELECTRA_BASE,
    "pubmedbert": _PUBMEDBERT,
    # On abstracts and PMC's articles together (section 5 and table 10): the same steps, and 60 % more, from
    # random weights.
    "pubmedbert-pmc": _PUBMEDBERT,
    "pubmedbert-pmc-100k": replace(_PUBMEDBERT, steps=100_000),
    "bioalbert": _BIOALBERT_BASE,
    "bioalbert-large": _BIOALBERT_LARGE,
    # BioALBERT's second stage: 270,000 steps on PMC's articles after those on PubMed, 470,000 together.
    # The paper does not say whether the learning rate begins again; here, as in Bio-ELECTRA++, the schedule
    # covers all steps, without another warm-up.
    "bioalbert-pmc": replace(_BIOALBERT_BASE, steps=470_000, start_from="run"),
    "bioalbert-large-pmc": replace(_BIOALBERT_LARGE, steps=470_000, start_from="run"),
}
"""Recipes by name; a paper has the same name in the presets of vocabularies and pretraining sets."""


PRETRAINING_SETS: Final[dict[str, tuple[str, int]]] = {
    # The recipes of shards_to_pretraining, which have the sources; electra-small and -base:
    # google-research/electra, configure_pretraining.py.
    "electra-small": ("electra", 128),
    "electra-base": ("electra", 512),
    "bio-electra": ("electra", 256),
    "bio-electra-pp": ("electra", 256),
    "electramed": ("electra", 512),
    "pubmedbert": ("bert", 512),
    "pubmedbert-pmc": ("bert", 512),
    "pubmedbert-pmc-100k": ("bert", 512),
    "bioalbert": ("albert", 512),
    "bioalbert-large": ("albert", 512),
    "bioalbert-pmc": ("albert", 512),
    "bioalbert-large-pmc": ("albert", 512),
}
"""Objective and maximum row length in tokens of the set that a preset was made for; ``tiny`` takes any."""

STAGE_STEPS: Final = {"bio-electra-pp": 1_800_000, "bioalbert-pmc": 270_000, "bioalbert-large-pmc": 270_000}
"""Steps of a second stage alone: of a run that does not continue the first one, with ``--continue-from``."""


def describe_set_differences(preset: str, objective: str, max_seq_length: int) -> list[str]:
    """Return a line for each property in which a pretraining set differs from the paper's of a preset."""
    if preset not in PRETRAINING_SETS:
        return []
    lines, (own_objective, own_length) = [], PRETRAINING_SETS[preset]
    if objective != own_objective:
        lines.append(
            f"--preset {preset} is for sets of --objective {own_objective}, and this one has {objective}"
            + (": it trains without the pair task" if own_objective in ("bert", "albert") else "")
        )
    if max_seq_length != own_length:
        lines.append(
            f"--preset {preset} is for rows of up to {own_length} tokens, and this set has up to "
            f"{max_seq_length}"
        )
    return lines
