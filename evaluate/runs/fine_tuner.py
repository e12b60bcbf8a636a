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
from bioshards.evaluate.benchmarks.record_types import Record
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe
from bioshards.evaluate.modeling import batches
from bioshards.evaluate.modeling.batches import EncoderOutput, TokenizedExample
from bioshards.evaluate.modeling.pretrained import EncoderModel
from bioshards.evaluate.tasks.adapter import TaskAdapter
from bioshards.train import distributed
from bioshards.train.optim import Adam, FlatGradients, compute_layer_scales, learning_rate
from bioshards.train.recipe import describe_warmup

_PROGRESS_INTERVAL: Final = 20
"""Steps between two losses that are shown: each waits for the GPU."""
_PREDICT_BATCH_SIZE: Final = 64
"""Examples of a batch in prediction."""


ExampleCache = dict[tuple[int, bool], tuple[Sequence[Record], list[TokenizedExample]]]
"""Records and their examples, by the ``id`` of the records and whether they are for training."""


class NaNLossError(RunError):
    """The loss or the model output is not finite. The message says what to do."""


@dataclass(frozen=True, slots=True)
class CheckpointScore:
    """Mean training loss since the checkpoint before, and the dev score if it was computed.

    Attributes:
        step: optimizer steps before the checkpoint.
    """

    step: int
    loss: float
    dev: float | None


class EncoderWithHead(nn.Module):
    """Encoder and task head."""

    def __init__(self, encoder: EncoderModel, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head


@dataclass(slots=True)
class FineTuner:
    """A model with its task adapter and recipe.

    Attributes:
        pad_id: id of [PAD].
        progress: shows the steps.
        example_cache: examples that were made with this adapter; several seeds share it.
    """

    model: EncoderWithHead
    adapter: TaskAdapter
    recipe: FineTuneRecipe
    pad_id: int
    device: torch.device
    progress: Progress
    example_cache: ExampleCache = field(default_factory=dict)

    def train(
        self, records: Sequence[Record], seed: int, score_dev: Callable[[], float] | None
    ) -> tuple[list[CheckpointScore], int]:
        """Train the model on records. It ends with the weights of the best checkpoint on dev, or of the last.

        Args:
            seed: seed of order and dropout.
            score_dev: function that scores the current model on dev; None: keep the last checkpoint.

        Returns:
            The score of each checkpoint, and the index of the one whose weights the model has.

        Raises:
            NaNLossError: the loss is not finite.
        """
        training_examples = self._make_examples(records, is_training=True)
        if not training_examples:
            raise InvalidValueError(
                "no training examples: no passage has a marked answer that fits into --max-seq-length"
            )
        torch.manual_seed(seed)
        batches_per_epoch = -(-len(training_examples) // self.recipe.batch_size)
        total_steps = self.recipe.total_steps(batches_per_epoch)
        if line := describe_warmup(self.recipe.requested_warmup_steps(total_steps), total_steps):
            self.progress.write(line)
        interval = self.recipe.checkpoint_interval or batches_per_epoch
        optimizer = _ScheduledOptimizer(self.model, self.recipe, total_steps)
        checkpoints: list[CheckpointScore] = []
        losses: list[Tensor] = []
        best_score, best_index, best_weights = -math.inf, None, None
        self.model.train()
        with self.progress.bar("fine-tuning", total_steps, " steps", is_transient=True) as bar:
            for batch_examples in bar.each(self._draw_batches(training_examples, seed, total_steps)):
                loss = self._train_batch(batch_examples, optimizer)
                losses.append(loss)
                if optimizer.steps_done % _PROGRESS_INTERVAL == 0:
                    epoch = -(-optimizer.steps_done // batches_per_epoch)
                    bar.advance(0, f"epoch {epoch}, loss {float(loss):.3f}")
                is_last = optimizer.steps_done == total_steps
                if optimizer.steps_done % interval and not is_last:
                    continue
                mean_loss = float(torch.stack(losses).float().mean())
                if not math.isfinite(mean_loss):
                    raise NaNLossError(
                        f"the loss is no number after {optimizer.steps_done:,} updates: "
                        "give a lower --learning-rate"
                    )
                losses.clear()
                score = score_dev() if score_dev else None
                checkpoints.append(CheckpointScore(optimizer.steps_done, mean_loss, score))
                if score is not None and score > best_score:
                    best_score, best_index = score, len(checkpoints) - 1
                    best_weights = None if is_last else copy.deepcopy(self.model.state_dict())
                self.model.train()
        if best_weights is not None:
            self.model.load_state_dict(best_weights)
        return checkpoints, len(checkpoints) - 1 if best_index is None else best_index

    def _draw_batches(
        self, training_examples: Sequence[TokenizedExample], seed: int, total_steps: int
    ) -> Iterator[list[TokenizedExample]]:
        """Yield ``total_steps`` batches: all examples in another order in each epoch."""
        shuffle_generator = torch.Generator().manual_seed(seed)
        batch_size, steps_left = self.recipe.batch_size, total_steps
        while steps_left:
            order = torch.randperm(len(training_examples), generator=shuffle_generator).tolist()
            for start in range(0, min(len(order), steps_left * batch_size), batch_size):
                yield [training_examples[index] for index in order[start : start + batch_size]]
                steps_left -= 1

    def _train_batch(
        self,
        batch_examples: Sequence[TokenizedExample],
        optimizer: _ScheduledOptimizer,
    ) -> Tensor:
        """Update the weights by a batch, and return its loss."""
        batch = self._collate(batch_examples)
        loss = self.adapter.loss(self.model.head, self._encode(batch, self._is_bfloat16), batch)
        optimizer.step(loss)
        return loss.detach()

    def predict(self, records: Sequence[Record]) -> list[Any]:
        """Return the merged predictions of records (``TaskAdapter.merge_predictions``).

        Raises:
            NaNLossError: the model output is not finite.
        """
        inputs = self._make_examples(records, is_training=False)
        is_bfloat16 = self._is_bfloat16 or predicts_in_bfloat16(self.device)
        order = sorted(range(len(inputs)), key=lambda index: len(inputs[index].input_ids))
        predictions: list[Any] = [None] * len(inputs)
        self.model.eval()
        with (
            torch.inference_mode(),
            self.progress.bar("predicting", len(order), " examples", is_transient=True) as bar,
        ):
            for start in range(0, len(order), _PREDICT_BATCH_SIZE):
                batch_indices = order[start : start + _PREDICT_BATCH_SIZE]
                batch = self._collate([inputs[index] for index in batch_indices])
                encoded = self._encode(batch, is_bfloat16)
                if not encoded.hidden.isfinite().all():  # of which argmax makes a class nonetheless
                    raise NaNLossError("the model gives no numbers any more: give a lower --learning-rate")
                batch_predictions = self.adapter.predict(self.model.head, encoded, batch)
                for index, prediction in zip(batch_indices, batch_predictions, strict=True):
                    predictions[index] = prediction
                bar.advance(len(batch_indices))
        return self.adapter.merge_predictions(records, inputs, predictions)

    def _collate(self, batch_examples: Sequence[TokenizedExample]) -> batches.PaddedBatch:
        return batches.collate(batch_examples, self.pad_id, self.device)

    def _make_examples(self, records: Sequence[Record], is_training: bool) -> list[TokenizedExample]:
        """Tokenize records, once for all epochs and seeds."""
        key = id(records), is_training
        if key not in self.example_cache:
            self.example_cache[key] = records, self.adapter.make_examples(records, is_training)
        return self.example_cache[key][1]

    @property
    def _is_bfloat16(self) -> bool:
        return self.recipe.precision == "bfloat16"

    def _encode(self, batch: batches.PaddedBatch, is_bfloat16: bool) -> EncoderOutput:
        """Run the encoder.

        The head always runs in float32: the 8 bits of bfloat16 would make many scores equal.
        """
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=is_bfloat16):
            encoded: EncoderOutput = self.model.encoder(batch)
        return encoded


def predicts_in_bfloat16(device: torch.device) -> bool:
    """Return True for a GPU that computes in bfloat16; prediction then uses it, whatever the recipe."""
    return device.type == "cuda" and distributed.has_bfloat16(device)


class _ScheduledOptimizer:
    """Adam with learning rate schedule, layer decay and gradient clipping."""

    def __init__(self, model: EncoderWithHead, recipe: FineTuneRecipe, total_steps: int) -> None:
        named_parameters = [
            (name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad
        ]
        scales = compute_layer_scales(
            [name for name, _ in named_parameters], recipe.layer_decay, recipe.electra_layer_decay
        )
        if recipe.layer_decay < 1 and len(set(scales.values())) < 3:  # head, a layer, embeddings
            raise InvalidValueError(
                "--layer-decay needs a model whose layers have the names that BERT's have"
            )
        self._gradients = FlatGradients(named_parameters)
        self._adam = Adam(
            named_parameters,
            eps=recipe.epsilon,
            weight_decay=recipe.weight_decay,
            bias_correction=recipe.bias_correction,
            lr_scales=scales,
        )
        self._recipe = recipe
        self._warmup_steps = recipe.warmup_steps(total_steps)
        self.total_steps = total_steps
        self.steps_done = 0

    def step(self, loss: Tensor) -> None:
        """Update the weights by the gradients of a loss."""
        self._gradients.zero()
        loss.backward()  # type: ignore[no-untyped-call]
        if self._recipe.grad_clip:
            self._gradients.clip(self._recipe.grad_clip)
        rate = learning_rate(
            self._recipe.schedule,
            self.steps_done,
            self.total_steps,
            self._warmup_steps,
            self._recipe.learning_rate,
        )
        self._adam.step(rate)
        self.steps_done += 1
