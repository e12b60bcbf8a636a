"""Peers of the trainer on a GPU: Hugging Face's Trainer, and a plain loop in the manner of nanochat.

Both train Hugging Face's models as they are on the trainer's batches, padded: attention by
``scaled_dot_product_attention``, logits for all positions.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bioshards.train.batch import Batch

WARMUP_STEPS = 3
_RTD_WEIGHT = 50.0
_MAX_MASKED_FRACTION = 0.155
PaddedInputs = dict[str, Tensor]


class PeerModel(nn.Module):
    """Hugging Face's models of an objective, which it takes over, with the loss as their output."""

    def __init__(self, objective: Any) -> None:
        super().__init__()
        self.generator = getattr(objective, "generator", None)
        self.model = objective.model if self.generator is None else objective.discriminator
        for model in filter(None, (self.model, self.generator)):
            model.set_attn_implementation("sdpa")

    def forward(
        self, input_ids: Tensor, token_type_ids: Tensor, attention_mask: Tensor, labels: Tensor
    ) -> dict[str, Tensor]:
        inputs = {"token_type_ids": token_type_ids, "attention_mask": attention_mask}
        if self.generator is None:
            logits = self.model(input_ids, **inputs).prediction_logits
            return {"loss": F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())}
        logits = self.generator(input_ids, **inputs).logits.float()
        mlm_loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        corrupted_ids = self._replace_tokens(input_ids, labels, logits.detach())
        is_replaced = corrupted_ids != torch.where(labels >= 0, labels, input_ids)
        rtd_loss = F.binary_cross_entropy_with_logits(
            self.model(corrupted_ids, **inputs).logits.float(),
            is_replaced.float(),
            weight=attention_mask.float(),
            reduction="sum",
        )
        return {"loss": mlm_loss + _RTD_WEIGHT * rtd_loss / attention_mask.sum()}

    def _replace_tokens(self, input_ids: Tensor, labels: Tensor, logits: Tensor) -> Tensor:
        """Return the ids with tokens of the generator at masked positions, in shapes that can be compiled."""
        is_masked = labels >= 0
        num_masked = int(_MAX_MASKED_FRACTION * labels.shape[1]) + 1
        at = is_masked.int().topk(num_masked, dim=1).indices
        logits = logits.gather(1, at[:, :, None].expand(-1, -1, logits.shape[2]))
        sampled = (logits - (-torch.rand_like(logits).log()).log()).argmax(-1)
        tokens = torch.where(is_masked.gather(1, at), sampled, input_ids.gather(1, at))
        return input_ids.scatter(1, at, tokens)


def pad_batch(batch: Batch, pad_id: int, max_seq_length: int) -> PaddedInputs:
    """Return the rows of a batch as Hugging Face's models take them, [rows, length]."""
    num_rows = len(batch.row_starts)
    row = torch.searchsorted(batch.row_starts, torch.arange(len(batch.ids)), right=True) - 1
    at = (row[batch.is_token], batch.position_ids[batch.is_token])
    inputs = {
        "input_ids": torch.full((num_rows, max_seq_length), pad_id),
        "token_type_ids": torch.zeros(num_rows, max_seq_length, dtype=torch.int64),
        "attention_mask": torch.zeros(num_rows, max_seq_length, dtype=torch.int64),
        "labels": torch.full((num_rows, max_seq_length), -100),
    }
    inputs["input_ids"][at] = batch.ids[batch.is_token]
    inputs["token_type_ids"][at] = batch.token_type_ids[batch.is_token]
    inputs["attention_mask"][at] = 1
    masked = batch.masked_positions[batch.targets >= 0]
    inputs["labels"][row[masked], batch.position_ids[masked]] = batch.targets[batch.targets >= 0]
    return inputs


def synchronize(device: torch.device) -> None:
    """Wait for a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def time_steps(step: Callable[[int], object], seconds: float, device: torch.device) -> tuple[int, float]:
    """Run steps for some seconds after the warm-up; return their number and the seconds they took."""
    for number in range(WARMUP_STEPS):
        step(number)
    synchronize(device)
    started, number = time.perf_counter(), 0
    while not number or time.perf_counter() - started < seconds:
        step(WARMUP_STEPS + number)
        number += 1
        if number % 8 == 0:
            synchronize(device)  # else the clock would show how fast steps are queued
    synchronize(device)
    return number, time.perf_counter() - started


def time_plain_loop(
    model: PeerModel, batches: Sequence[PaddedInputs], is_compiled: bool, seconds: float, device: torch.device
) -> tuple[int, float]:
    """Time forward, backward, clipping and fused AdamW in bfloat16, without a wait for the GPU."""
    model = model.to(device).train()
    forward: Any = torch.compile(model, dynamic=False) if is_compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=device.type == "cuda")

    def step(number: int) -> None:
        batch = batches[number % len(batches)]
        inputs = {name: value.to(device, non_blocking=True) for name, value in batch.items()}
        with torch.autocast(device.type, torch.bfloat16):
            loss = forward(**inputs)["loss"]
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return time_steps(step, seconds, device)


def time_hf_trainer(
    model: PeerModel, batches: Sequence[PaddedInputs], seconds: float, device: torch.device
) -> tuple[int, float]:
    """Time Hugging Face's Trainer in bfloat16; it needs the package accelerate.

    Raises:
        ImportError: accelerate is not installed.
    """
    from transformers import Trainer, TrainerCallback, TrainingArguments

    class Clock(TrainerCallback):
        """Stops the training when its time is over."""

        number, started, ended = 0, 0.0, 0.0

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
            if state.global_step == WARMUP_STEPS:
                synchronize(device)
                self.started = time.perf_counter()
            elif state.global_step > WARMUP_STEPS:
                self.number += 1
                if self.number % 8 == 0:
                    synchronize(device)
                if time.perf_counter() - self.started > seconds:
                    synchronize(device)
                    self.ended = time.perf_counter()
                    control.should_training_stop = True
            return control

    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=1,  # a batch is one item
            max_steps=1_000_000,
            bf16=True,
            max_grad_norm=1.0,
            use_cpu=device.type == "cpu",
            report_to="none",
            logging_strategy="no",
            save_strategy="no",
            disable_tqdm=True,
            remove_unused_columns=False,
        )
        dataset: Any = list(batches)
        Trainer(
            model, arguments, data_collator=lambda items: items[0], train_dataset=dataset, callbacks=[clock]
        ).train()
    return clock.number, clock.ended - clock.started
