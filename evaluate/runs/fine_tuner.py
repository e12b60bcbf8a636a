"""Fine-tuning loop: training, selection of the checkpoint, prediction. It is the same for all tasks."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from torch import Tensor, nn

from bioshards.corpus.errors import InvalidValueError, RunError
from bioshards.corpus.ui.progress import Progress
from bioshards.evaluate.encoder import Encoder, Example
from bioshards.evaluate.recipes import FineTuneRecipe
from bioshards.evaluate.runs.results import CheckpointScore
from bioshards.evaluate.tasks.task_registry import TaskAdapter
from bioshards.train import distributed
from bioshards.train.optim import Adam, FlatGradients, compute_layer_scales, learning_rate
from bioshards.train.recipe import describe_warmup, scale_warmup

_PROGRESS_INTERVAL: Final = 20
"""Steps between two losses that are shown: each waits for the GPU."""
_PREDICT_BATCH_SIZE: Final = 64
"""Examples of a batch in prediction."""


class NaNLossError(RunError):
    """The loss or the model output is not finite. The message says what to do."""


class EncoderWithHead(nn.Module):
    """Encoder and task head."""

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head


@dataclass(slots=True)
class FineTuner:
    """A model with its task adapter and recipe, and what its training came to.

    Attributes:
        progress: shows the steps.
        checkpoints: loss and dev score of each checkpoint.
        selected_step: optimizer steps before the checkpoint whose weights the model has.
        dev_scores: scores on dev of that checkpoint; empty if it was not selected by them.
    """

    model: EncoderWithHead
    adapter: TaskAdapter
    recipe: FineTuneRecipe
    progress: Progress
    checkpoints: list[CheckpointScore] = field(default_factory=list)
    selected_step: int = 0
    dev_scores: dict[str, float] = field(default_factory=dict)

    def train(
        self,
        examples: Sequence[Example],
        seed: int,
        score_dev: Callable[[], dict[str, float]] | None = None,
        main_score: str = "",
    ) -> None:
        """Train the model. It ends with the weights of the best checkpoint on dev, or of the last.

        Args:
            seed: seed of order and dropout.
            score_dev: function that scores the current model on dev; None: keep the last checkpoint.
            main_score: name of the score that selects the checkpoint.

        Raises:
            InvalidValueError: there are no examples, or the recipe does not fit the model.
            NaNLossError: the loss is not finite.
        """
        if not examples:
            raise InvalidValueError(
                "no training examples: no passage has a marked answer that fits into --max-seq-length"
            )
        torch.manual_seed(seed)
        model, recipe = self.model, self.recipe
        batches_per_epoch = -(-len(examples) // recipe.batch_size)
        total_steps = recipe.total_steps(batches_per_epoch)
        requested_warmup = round(recipe.warmup * total_steps if recipe.warmup < 1 else recipe.warmup)
        warmup_steps = scale_warmup(requested_warmup, total_steps)
        if line := describe_warmup(requested_warmup, total_steps):
            self.progress.write(line)
        interval = recipe.checkpoint_interval or batches_per_epoch
        gradients, optimizer = _make_optimizer(model, recipe)
        losses: list[Tensor] = []
        best_score, best_weights = -math.inf, None
        model.train()
        with self.progress.bar("fine-tuning", total_steps, " steps", is_transient=True) as bar:
            batches = _draw_batches(examples, recipe.batch_size, seed, total_steps)
            for step, batch_examples in enumerate(bar.each(batches), 1):
                batch = model.encoder(batch_examples, recipe.precision == "bfloat16")
                loss = self.adapter.loss(model.head, batch)
                gradients.zero()
                loss.backward()  # type: ignore[no-untyped-call]
                if recipe.grad_clip:
                    gradients.clip(recipe.grad_clip)
                optimizer.step(
                    learning_rate(recipe.schedule, step - 1, total_steps, warmup_steps, recipe.learning_rate)
                )
                losses.append(loss.detach())
                if step % _PROGRESS_INTERVAL == 0:
                    bar.advance(0, f"epoch {-(-step // batches_per_epoch)}, loss {float(losses[-1]):.3f}")
                is_last = step == total_steps
                if step % interval and not is_last:
                    continue
                mean_loss = float(torch.stack(losses).float().mean())
                if not math.isfinite(mean_loss):
                    raise NaNLossError(
                        f"the loss is no number after {step:,} updates: give a lower --learning-rate"
                    )
                losses.clear()
                dev_scores = score_dev() if score_dev else {}
                score = dev_scores.get(main_score)
                self.checkpoints.append(CheckpointScore(step, mean_loss, score))
                if score is None:
                    self.selected_step = step
                elif score > best_score:
                    best_score, self.selected_step, self.dev_scores = score, step, dev_scores
                    best_weights = None if is_last else copy.deepcopy(model.state_dict())
                model.train()
        if best_weights is not None:
            model.load_state_dict(best_weights)

    def predict(self, examples: Sequence[Example]) -> list[Any]:
        """Return the prediction of each example (``TaskAdapter.predict``).

        Raises:
            NaNLossError: the model output is not finite.
        """
        encoder = self.model.encoder
        is_bfloat16 = self.recipe.precision == "bfloat16" or predicts_in_bfloat16(encoder.model.device)
        order = sorted(range(len(examples)), key=lambda index: len(examples[index].input_ids))
        predictions: list[Any] = [None] * len(examples)
        self.model.eval()
        with (
            torch.inference_mode(),
            self.progress.bar("predicting", len(order), " examples", is_transient=True) as bar,
        ):
            for start in range(0, len(order), _PREDICT_BATCH_SIZE):
                indices = order[start : start + _PREDICT_BATCH_SIZE]
                batch = encoder([examples[index] for index in indices], is_bfloat16)
                if not batch.hidden.isfinite().all():  # of which argmax makes a class nonetheless
                    raise NaNLossError("the model gives no numbers any more: give a lower --learning-rate")
                batch_predictions = self.adapter.predict(self.model.head, batch)
                for index, prediction in zip(indices, batch_predictions, strict=True):
                    predictions[index] = prediction
                bar.advance(len(indices))
        return predictions


def predicts_in_bfloat16(device: torch.device) -> bool:
    """Return True for a GPU that computes in bfloat16; prediction then uses it, whatever the recipe."""
    return device.type == "cuda" and distributed.has_bfloat16(device)


def _draw_batches(
    examples: Sequence[Example], batch_size: int, seed: int, total_steps: int
) -> Iterator[list[Example]]:
    """Yield ``total_steps`` batches: all examples in another order in each epoch."""
    shuffle_generator = torch.Generator().manual_seed(seed)
    steps_left = total_steps
    while steps_left:
        order = torch.randperm(len(examples), generator=shuffle_generator).tolist()
        for start in range(0, min(len(order), steps_left * batch_size), batch_size):
            yield [examples[index] for index in order[start : start + batch_size]]
            steps_left -= 1


def _make_optimizer(model: EncoderWithHead, recipe: FineTuneRecipe) -> tuple[FlatGradients, Adam]:
    """Return the gradients of a model, and Adam with layer decay.

    Raises:
        InvalidValueError: the recipe has a layer decay, and the layers of the model have unknown names.
    """
    named_parameters = [each for each in model.named_parameters() if each[1].requires_grad]
    names = [name for name, _ in named_parameters]
    scales = compute_layer_scales(names, recipe.layer_decay, recipe.electra_layer_decay)
    if recipe.layer_decay < 1 and len(set(scales.values())) < 3:  # head, a layer, embeddings
        raise InvalidValueError("--layer-decay needs a model whose layers have the names that BERT's have")
    gradients = FlatGradients(named_parameters)
    optimizer = Adam(
        named_parameters,
        eps=recipe.epsilon,
        weight_decay=recipe.weight_decay,
        bias_correction=recipe.bias_correction,
        lr_scales=scales,
    )
    return gradients, optimizer
