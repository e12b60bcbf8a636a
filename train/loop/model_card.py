"""Model card of a checkpoint: README.md beside the model, as Hugging Face shows it.

It has neither paths nor times, so that the same run gives the same bytes.
"""

from __future__ import annotations

from typing import Final

from bioshards.train.config.recipe import TrainRecipe
from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.train.models.objective import Objective

FILE: Final = "README.md"


def format_model_card(
    objective: Objective, recipe: TrainRecipe, dataset: PretrainingDataset, steps_done: int, tokens_seen: int
) -> str:
    """Return the text of the card.

    Args:
        steps_done, tokens_seen: steps and training tokens of the model so far.
    """
    num_parameters = sum(parameter.numel() for parameter in objective.encoder.parameters())
    heads = "\n".join(f"* {sentence}" for sentence in objective.describe_heads())
    return f"""\
---
library_name: transformers
---

# {recipe.family}, {recipe.num_layers} layers of {recipe.hidden_size}

Pretrained with bioshards: an encoder of {num_parameters:,} parameters after {steps_done:,} of
{recipe.steps:,} steps and {tokens_seen:,} tokens.

## What is trained

* The encoder, for `AutoModel`, `AutoModelForTokenClassification`, `AutoModelForSequenceClassification` and
  others: a head that such a class adds is new, and has to be fine-tuned.
{heads}

## Data

* Pretraining set: objective {dataset.objective}, {dataset.tokens:,} tokens in {dataset.rows:,} rows of
  {dataset.max_seq_length:,} at most; fingerprint `{dataset.fingerprint}`
* Vocabulary: {dataset.vocabulary_size:,} pieces, SHA-256 of tokenizer.json
  `{dataset.vocabulary_sha256}`

The run.json beside this folder has the whole recipe.
"""
