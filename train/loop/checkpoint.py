"""Checkpoints of a run, written atomically: into a temporary folder, fsynced, then renamed."""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from bioshards.corpus.errors import InvalidValueError, RunError
from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX

STATE_FILE: Final = "state.pt"
MODEL_FOLDER: Final = "hf"
"""Subfolder of a checkpoint for Hugging Face's ``from_pretrained``."""
_STATE_KEYS: Final = {"model", "optimiser", "done", "first", "tokens", "tally"}
"""Keys of state.pt: those of :meth:`Trainer.state_dict` and of :class:`LoopState`."""
_FOLDER_PATTERN: Final = re.compile(r"step-(\d{7,})")


class CheckpointError(RunError):
    """A checkpoint could not be written; earlier ones are unchanged."""


@dataclass(frozen=True, slots=True)
class LoopState:
    """State of the training loop.

    Attributes:
        steps_done: steps of the model so far.
        first_step: step at which this run started: 0, or the last step of the run that it continues.
        tokens_seen: training tokens so far.
        metric_sums: :meth:`MetricSums.state_dict` since the last log line; None: empty.
        micro_batch_limit: rows of a micro-batch that fit into memory; None: all did so far.
    """

    steps_done: int = 0
    first_step: int = 0
    tokens_seen: int = 0
    metric_sums: dict[str, Any] | None = None
    micro_batch_limit: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the entries of state.pt."""
        return {
            "done": self.steps_done,
            "tokens": self.tokens_seen,
            "tally": self.metric_sums,
            "first": self.first_step,
            "micro_batch_limit": self.micro_batch_limit,
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> LoopState:
        """Build the state from the entries of state.pt."""
        return cls(
            steps_done=state["done"],
            first_step=state["first"],
            tokens_seen=state["tokens"],
            metric_sums=state["tally"],
            micro_batch_limit=state.get("micro_batch_limit"),
        )


def save(run: str, step: int, write_files: Callable[[str], None], keep_checkpoints: int) -> str:
    """Write a checkpoint, remove the oldest ones, and return the new folder.

    Args:
        write_files: called with a folder; writes the files of the checkpoint into it.
        keep_checkpoints: number of checkpoints to keep.

    Raises:
        CheckpointError: it could not be written; its temporary files are removed.
    """
    checkpoint = f"{run}/step-{step:07d}"
    if os.path.exists(checkpoint):  # the run was stopped before its first step
        return checkpoint
    temporary = f"{run}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
    try:
        os.makedirs(temporary)
        write_files(temporary)
        _fsync_tree(temporary)
        os.rename(temporary, checkpoint)
        _fsync(run)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if not isinstance(error, Exception):
            raise
        previous = find_latest(run)
        raise CheckpointError(
            f"cannot write the checkpoint of step {step:,} to {run} ({_get_error_reason(error)}). "
            + (f"{previous} is complete. " if previous else "There is no earlier one. ")
            + f"{shutil.disk_usage(run).free / 1e6:,.0f} MB are free there; fix that and rerun the command "
            "to resume"
        ) from error
    for old in list_checkpoints(run)[:-keep_checkpoints]:
        _remove_atomically(run, old)
    return checkpoint


def list_checkpoints(run: str) -> list[str]:
    """Return the checkpoints of a run, ordered by step."""
    try:
        names = os.listdir(run)
    except (FileNotFoundError, NotADirectoryError):
        return []
    steps = sorted(int(match[1]) for name in names if (match := _FOLDER_PATTERN.fullmatch(name)))
    return [f"{run}/step-{step:07d}" for step in steps]


def find_latest(run: str) -> str | None:
    """Return the latest checkpoint of a run, or None."""
    checkpoints = list_checkpoints(run)
    return checkpoints[-1] if checkpoints else None


def sweep(run: str) -> None:
    """Remove temporary files and folders of a killed process."""
    for name in os.listdir(run):
        if name.startswith(TEMPORARY_PREFIX):
            path = f"{run}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def load(checkpoint: str, device: torch.device) -> dict[str, Any]:
    """Load the state.pt of a checkpoint.

    Raises:
        InvalidValueError: it is missing or damaged.
        OSError: it cannot be read.
    """
    path = f"{checkpoint}/{STATE_FILE}"
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        if not (isinstance(state, dict) and state.keys() >= _STATE_KEYS):
            raise InvalidValueError("unexpected contents")
    except Exception as error:  # a damaged file raises errors of many types
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise
        raise InvalidValueError(
            f"{path} is missing or damaged ({_get_error_reason(error)}). Remove {checkpoint} and rerun the "
            "command to resume from the checkpoint before"
        ) from error
    return state


def _remove_atomically(run: str, checkpoint: str) -> None:
    """Rename a checkpoint before removing it, so that no partial one is left if the process is killed."""
    temporary = f"{run}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
    os.rename(checkpoint, temporary)
    shutil.rmtree(temporary)


def _fsync_tree(folder: str) -> None:
    for root, _, names in os.walk(folder):
        for name in names:
            _fsync(os.path.join(root, name))
        _fsync(root)


def _fsync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _get_error_reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error).split("\n")[0]
