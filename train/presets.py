"""How the models of the papers were trained: each number with where it is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .recipes import Recipe

_ELECTRA_SMALL: Final = Recipe(
    # google-research/electra, configure_pretraining.py and util/training_utils.py: small is 12 layers of 256
    # with 4 heads, embeddings of 128 and a generator of a quarter; length 128, batch 128, 1,000,000 steps,
    # 5e-4, 10,000 of warm-up, decay 0.01, 15 % masked.  model/optimization.py: Adam without bias correction,
    # epsilon 1e-6, gradients clipped at 1.0.  pretrain_helpers.py: 85 % [MASK], 15 % kept.
    family="electra",
    hidden=256,
    layers=12,
    heads=4,
    ffn=1024,
    embedding=128,
    generator=0.25,
    steps=1_000_000,
    batch=128,
    learning_rate=5e-4,
    schedule="electra",
    warmup=10_000.0,
    bias_correction=False,
)
_ELECTRA_BASE: Final = replace(
    # As above; base: 12 layers of 768, a generator of a third, length 512, batch 256, 2e-4.
    _ELECTRA_SMALL,
    hidden=768,
    heads=12,
    ffn=3072,
    embedding=768,
    generator=1 / 3,
    batch=256,
    learning_rate=2e-4,
)
_BIOALBERT_BASE: Final = Recipe(
    # BioALBERT (Naseem et al. 2020, tables I and II): base is 12 layers of 768 with 12 heads, embeddings of
    # 128; LAMB, batch 1,024, 0.00176, 3,125 steps of warm-up, 200,000 steps on PubMed, 20 predictions.
    # google-research/albert: n-grams, 80/10/10, poly decay (optimization.py), LAMB's decay 0.01, epsilon
    # 1e-6, clip 1.0; no dropout in the second version of its models, and the paper does not say which it
    # begins from.
    family="albert",
    hidden=768,
    layers=12,
    heads=12,
    ffn=3072,
    embedding=128,
    begins="checkpoint",
    dropout=0.0,
    attention_dropout=0.0,
    optimiser="lamb",
    bias_correction=False,
    max_predictions=20,
    mask_unit="ngram",
    schedule="bert",
    warmup=3125.0,
    steps=200_000,
    batch=1024,
    learning_rate=0.00176,
)
PRESETS: Final[dict[str, Recipe]] = {
    # No paper's.  Adam's moments are corrected, for without that a warm-up so short takes steps several times
    # too long: the second one is too small for 1 / (1 - beta2) = 1,000 steps.  The papers warm up for longer.
    "tiny": Recipe(),
    "electra-small": _ELECTRA_SMALL,
    "electra-base": _ELECTRA_BASE,
    # Bio-ELECTRA (Ozyurt 2020, pmc_config.json.example of its repository): ELECTRA-small, length 256, batch
    # 64, 1,800,000 steps.  Its checkpoints at 0.8, 1.0 and 1.4 million say that it was trained in stages,
    # the learning rate anew by the formula for each new total; here in one.
    "bio-electra": replace(_ELECTRA_SMALL, steps=1_800_000, batch=64),
    # Bio-ELECTRA++ (pmc_config_v2.json.example): the same model goes on to 3,600,000 steps on PMC's articles.
    # The rule: the schedule is that of all steps, so that at step 1,800,000 the learning rate is half its
    # peak, 2.5e-4, without another warm-up; Adam's moments go on.
    "bio-electra-pp": replace(_ELECTRA_SMALL, steps=3_600_000, batch=64, begins="run"),
    # ELECTRAMed (Miolo et al. 2021, table 1): ELECTRA-base, length 512, batch 256, 1,000,000 steps, 2e-4,
    # 10,000 of warm-up, decay 0.01, a generator of a third, 15 %.
    "electramed": _ELECTRA_BASE,
    # PubMedBERT (Gu et al. 2020, section 4): BERT-base, whole words, 15 %, 80/10/10, next-sentence
    # prediction; 62,500 steps of 8,192 rows, Adam, 6e-4 after 10 % of the steps, then linear to 0.  BERT's
    # modeling.py: dropout 0.1; its optimization.py: decay 0.01, epsilon 1e-6, clip 1.0.  NVIDIA's BERT for
    # TensorFlow, which the paper builds on, predicts 80 tokens of 512 at most: 15 % are 77, so no limit is
    # needed, and one would cut progressive masking short.
    "pubmedbert": Recipe(
        family="bert",
        hidden=768,
        layers=12,
        heads=12,
        ffn=3072,
        embedding=768,
        mask_unit="word",
        steps=62_500,
        batch=8192,
        learning_rate=6e-4,
        schedule="triangular",
        warmup=0.1,
        bias_correction=False,
    ),
    "bioalbert-base": _BIOALBERT_BASE,
    # ... and large: 24 layers of 1,024 with 16 heads, batch 256, 0.00062 (0.00176 / 2 ** 1.5).
    "bioalbert-large": replace(
        _BIOALBERT_BASE,
        hidden=1024,
        layers=24,
        heads=16,
        ffn=4096,
        batch=256,
        learning_rate=0.00062,
    ),
}
