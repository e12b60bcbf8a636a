"""A run's checkpoints: each a folder that is there whole or not at all.

A checkpoint is written under another name, brought to disk, and renamed; so whatever kills a run, its last
checkpoint is one that can be gone on from.
"""

from __future__ import annotations

import os
import re
import shutil
import uuid
from collections.abc import Callable
from typing import Any, Final

import torch

from bioshards.corpus.errors import InvalidValueError, RunError
from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX

STATE_FILE: Final = "state.pt"
MODEL_FOLDER: Final = "hf"
"""The folder in a checkpoint that Hugging Face's classes load."""
_STATE_KEYS: Final = {"model", "optimiser", "done", "first", "tokens", "tally"}
"""What a state is of: the trainer's part and the loop's, by their names."""
_FOLDER_PATTERN: Final = re.compile(r"step-(\d{7,})")


class CheckpointError(RunError):
    """A checkpoint could not be written; those before it are as they were."""


def save(run: str, step: int, write_files: Callable[[str], None], keep_checkpoints: int) -> str:
    """Write a checkpoint and remove all but the last ones; returns its folder.

    Args:
        write_files: puts its files into the folder it is given.
        keep: how many checkpoints stay.

    Raises:
        CheckpointError: it could not be written, and nothing of it is left.
    """
    checkpoint = f"{run}/step-{step:07d}"
    if os.path.exists(checkpoint):  # a run that was stopped before its first step
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
            f"the checkpoint of step {step:,} could not be written to {run} ({_get_error_reason(error)}). "
            + (f"{previous} is whole. " if previous else "There is none before it. ")
            + f"{shutil.disk_usage(run).free / 1e6:,.0f} MB are free there; mend that and run the same "
            "command again"
        ) from error
    for old in list_checkpoints(run)[:-keep_checkpoints]:
        _remove_atomically(run, old)
    return checkpoint


def list_checkpoints(run: str) -> list[str]:
    """The run's checkpoints, by step."""
    try:
        names = os.listdir(run)
    except (FileNotFoundError, NotADirectoryError):
        return []
    steps = sorted(int(match[1]) for name in names if (match := _FOLDER_PATTERN.fullmatch(name)))
    return [f"{run}/step-{step:07d}" for step in steps]


def find_latest(run: str) -> str | None:
    """The run's last checkpoint, if it has any."""
    checkpoints = list_checkpoints(run)
    return checkpoints[-1] if checkpoints else None


def sweep(run: str) -> None:
    """Remove what a killed run has left of checkpoints that it was writing or removing."""
    for name in os.listdir(run):
        if name.startswith(TEMPORARY_PREFIX):
            path = f"{run}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def load(checkpoint: str, device: torch.device) -> dict[str, Any]:
    """What :func:`save`'s ``write`` has put into ``state.pt``.

    Raises:
        ValueError: it is damaged.
        OSError: it cannot be read.
    """
    path = f"{checkpoint}/{STATE_FILE}"
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        if not (isinstance(state, dict) and state.keys() >= _STATE_KEYS):
            raise InvalidValueError("it holds something else")
    except Exception as error:  # torch has no one class for what a damaged file does to it
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise
        raise InvalidValueError(
            f"{path} is missing or damaged ({_get_error_reason(error)}): remove {checkpoint}, and the same "
            "command "
            "goes on from the one before"
        ) from error
    return state


def _remove_atomically(run: str, checkpoint: str) -> None:
    """Under another name first: a checkpoint half removed is none."""
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
