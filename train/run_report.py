"""README.md and report.html of a finished run: its losses, and masked tokens with the model's guesses.

They have neither paths nor times: the same run gives the same pages.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

import torch
from tokenizers import Tokenizer

from bioshards.corpus.stats import dataset_card, report
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui import html_page
from bioshards.train import checkpoint, distributed
from bioshards.train.data.loader import StepLoader
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.train.log import flatten_entry, plot_losses
from bioshards.train.models.objectives import ElectraObjective, Objective
from bioshards.train.recipe import TrainRecipe

Entries = Sequence[Mapping[str, Any]]
"""Lines of the log."""
_NUM_GUESSES: Final = 10
_NUM_CANDIDATES: Final = 3
_CONTEXT: Final = 12
"""Tokens that are shown before and after a masked one."""


class Guess(NamedTuple):
    """A masked token, and what the model puts there.

    Attributes:
        token: the original token.
        text: the row around it, where it is ``[?]``.
        candidates: the most probable tokens with their probabilities.
        judgement: what ELECTRA's discriminator thinks of the generator's token; "" for other families.
    """

    token: str
    text: str
    candidates: str
    judgement: str


def guess_masked_tokens(
    objective: Objective,
    dataset: PretrainingDataset,
    piece_table: PieceTable,
    recipe: TrainRecipe,
    vocabulary: str,
    device: torch.device,
) -> list[Guess]:
    """Return guesses for a masked token of each of ten rows, which are drawn by the recipe's seed.

    Args:
        vocabulary: folder of the tokenizer.
    """
    tokenizer = Tokenizer.from_file(f"{vocabulary}/tokenizer.json")
    pieces = {token_id: piece for piece, token_id in tokenizer.get_vocab().items()}
    loader = StepLoader(dataset, piece_table, replace(recipe, compile=False), 1)
    rng, guesses = random.Random(recipe.seed), []
    objective.eval()
    for row in rng.sample(range(dataset.rows), min(_NUM_GUESSES, dataset.rows)):
        batch, counts = loader.load_sequential(row, 1)
        positions = batch.masked_positions[: counts.masked]
        hidden = torch.nonzero(batch.ids[positions] == piece_table.mask_id)[:, 0].tolist()
        if not hidden:
            continue
        index = rng.choice(hidden)
        position, target = int(positions[index]), int(batch.targets[index])
        with torch.no_grad(), distributed.autocast(recipe.precision, device):
            on_device, judgement = batch.to(device), ""
            if isinstance(objective, ElectraObjective):
                logits = objective.compute_generator_logits(on_device)
                outputs = objective.compute_outputs(on_device)
                sampled = int(outputs.encoder_batch.ids[position])
                replaced = torch.sigmoid(outputs.logits[position]).item()
                judgement = f"{pieces.get(sampled, sampled)}: {replaced:.0%} sure that it was replaced"
            else:
                logits = objective.predict(on_device)
        best = logits[index].softmax(-1).topk(_NUM_CANDIDATES)
        candidates = (
            f"{pieces.get(token_id, token_id)} {probability:.0%}"
            for probability, token_id in zip(best.values.tolist(), best.indices.tolist(), strict=True)
        )
        ids = batch.ids[: counts.tokens].tolist()
        sides = ids[max(0, position - _CONTEXT) : position], ids[position + 1 : position + 1 + _CONTEXT]
        left, right = (tokenizer.decode(side, skip_special_tokens=False) for side in sides)
        text = f"{left} [?] {right}".strip()
        guesses.append(Guess(pieces[target], text, ", ".join(candidates), judgement))
    return guesses


def write_pages(
    run: str, recipe: TrainRecipe, dataset: PretrainingDataset, entries: Entries, guesses: Sequence[Guess]
) -> None:
    """Write README.md and report.html into the folder of a run at its last step.

    Args:
        dataset: the split that the guesses are of.
        entries: those of the run's log.
    """
    model = f"step-{recipe.steps:07d}/{checkpoint.MODEL_FOLDER}"
    card = f"""\
{checkpoint.format_card_header(dataset)}
# {_format_title(recipe)}

A run of `bioshards train`: {recipe.steps:,} steps. `{model}` has the model, with a card of its own:

```python
transformers.AutoModel.from_pretrained("{model}")
```

`report.html` shows the losses and masked tokens with the model's guesses, `log.jsonl` has all lines of the
log, `run.json` the recipe.

{dataset_card.format_table(("last line of the log", "value"), _list_metrics(entries))}
"""
    for name, text in (
        (dataset_card.FILE, card),
        (report.FILE, render_page(recipe, dataset.split, entries, guesses)),
    ):
        with LocalStorage().write(f"{run}/{name}") as file:
            file.write(text.encode())


def render_page(recipe: TrainRecipe, split: str, entries: Entries, guesses: Sequence[Guess]) -> str:
    """Render report.html; the arguments are as of :func:`write_pages`."""
    tokens_seen = next(entry["tokens_seen"] for entry in reversed(entries) if entry["split"] == "train")
    has_judgement = any(guess.judgement for guess in guesses)
    return html_page.render_page(
        __package__,
        "run_page.html",
        title=f"Training run: {_format_title(recipe)}",
        headline=[(f"{recipe.steps:,}", "steps"), (f"{tokens_seen:,}", "tokens")],
        charts=plot_losses(entries),
        split=split,
        guess_header=["token", "text", "guesses", "discriminator"][: 3 + has_judgement],
        guesses=[guess[: 3 + has_judgement] for guess in guesses],
        metrics=_list_metrics(entries),
        settings=report.flatten_rows(recipe.to_dict()),
    )


def _format_title(recipe: TrainRecipe) -> str:
    return f"{recipe.family}, {recipe.num_layers} layers of {recipe.hidden_size}"


def _list_metrics(entries: Entries) -> list[tuple[str, str]]:
    """Return losses and metrics of the last entry of each split by name."""
    last = {entry["split"]: entry for entry in entries}
    shown = ("split", "loss", "losses", "metrics")
    return [
        (name, f"{value:.4f}")
        for entry in last.values()
        for name, value in flatten_entry({key: entry[key] for key in shown}).items()
    ]
