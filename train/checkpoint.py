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
from bioshards.corpus.files import TEMPORARY

STATE: Final = "state.pt"
MODEL: Final = "hf"
"""The folder in a checkpoint that Hugging Face's classes load."""
_HOLDS: Final = {"model", "optimiser", "done", "first", "tokens", "tally"}
"""What a state is of: the trainer's part and the loop's, by their names."""
_NAME: Final = re.compile(r"step-(\d{7,})")


class CheckpointError(RunError):
    """A checkpoint could not be written; those before it are as they were."""


def save(run: str, step: int, write: Callable[[str], None], keep: int) -> str:
    """Write a checkpoint and remove all but the last ones; returns its folder.

    Args:
        write: puts its files into the folder it is given.
        keep: how many checkpoints stay.

    Raises:
        CheckpointError: it could not be written, and nothing of it is left.
    """
    final = f"{run}/step-{step:07d}"
    if os.path.exists(final):  # a run that was stopped before its first step
        return final
    temporary = f"{run}/{TEMPORARY}{uuid.uuid4().hex}"
    try:
        os.makedirs(temporary)
        write(temporary)
        _to_disk(temporary)
        os.rename(temporary, final)
        _sync(run)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if not isinstance(error, Exception):
            raise
        before = last(run)
        raise CheckpointError(
            f"the checkpoint of step {step:,} could not be written to {run} ({_reason(error)}). "
            + (f"{before} is whole. " if before else "There is none before it. ")
            + f"{shutil.disk_usage(run).free / 1e6:,.0f} MB are free there; mend that and run the same "
            "command again"
        ) from error
    for old in all_of(run)[:-keep]:
        _remove(run, old)
    return final


def all_of(run: str) -> list[str]:
    """The run's checkpoints, by step."""
    try:
        names = os.listdir(run)
    except (FileNotFoundError, NotADirectoryError):
        return []
    steps = sorted(int(found[1]) for name in names if (found := _NAME.fullmatch(name)))
    return [f"{run}/step-{step:07d}" for step in steps]


def last(run: str) -> str | None:
    """The run's last checkpoint, if it has any."""
    found = all_of(run)
    return found[-1] if found else None


def sweep(run: str) -> None:
    """Remove what a killed run has left of checkpoints that it was writing or removing."""
    for name in os.listdir(run):
        if name.startswith(TEMPORARY):
            path = f"{run}/{name}"
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def load(checkpoint: str, device: torch.device) -> dict[str, Any]:
    """What :func:`save`'s ``write`` has put into ``state.pt``.

    Raises:
        ValueError: it is damaged.
        OSError: it cannot be read.
    """
    path = f"{checkpoint}/{STATE}"
    try:
        state: dict[str, Any] = torch.load(path, map_location=device, weights_only=True)
        if not (isinstance(state, dict) and state.keys() >= _HOLDS):
            raise InvalidValueError("it holds something else")
    except Exception as error:  # torch has no one class for what a damaged file does to it
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise
        raise InvalidValueError(
            f"{path} is missing or damaged ({_reason(error)}): remove {checkpoint}, and the same command "
            "goes on from the one before"
        ) from error
    return state


def _remove(run: str, checkpoint: str) -> None:
    """Under another name first: a checkpoint half removed is none."""
    temporary = f"{run}/{TEMPORARY}{uuid.uuid4().hex}"
    os.rename(checkpoint, temporary)
    shutil.rmtree(temporary)


def _to_disk(folder: str) -> None:
    for root, _, names in os.walk(folder):
        for name in names:
            _sync(os.path.join(root, name))
        _sync(root)


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error).split("\n")[0]
