"""Start of a run in several processes: all begin with the same data, recipe, step and weights, or none.

Machines without a shared folder have copies of the pretraining set, of the vocabulary and of the run.  If one
copy is another, or lacks the last checkpoint, the processes would train different models, or wait for each
other for hours.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, TypeVar

import torch

from bioshards.corpus.errors import UserError, shorten_list
from bioshards.train.loop.distributed import ProcessGroup

_Result = TypeVar("_Result")
_DIGEST_LENGTH: Final = 12


class ProcessMismatchError(UserError):
    """The processes of a run cannot begin together; every process raises it, or the error of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFacts:
    """What all processes must share.

    Attributes:
        recipe: digest of the recipe and of the options that decide when processes meet.
        pretraining_set: digest of the splits.
        vocabulary: digest of tokenizer.json.
        step: step of the checkpoint to resume from; "finished" after the last.
        weights: digest of the model.
    """

    recipe: str
    pretraining_set: str
    vocabulary: str
    step: str
    weights: str


def start_together(
    processes: ProcessGroup, start: Callable[[], tuple[_Result, StartFacts | None]], run: str
) -> _Result:
    """Call a function in every process, and return its result if all processes have the same facts.

    Args:
        start: returns its result and the facts; None for a single process.
        run: folder of the run, for the message.

    Raises:
        Exception: that of ``start``, in its own process.
        ProcessMismatchError: ``start`` failed in another process, or facts differ.
    """
    if processes.world_size == 1:
        return start()[0]
    try:
        result, facts = start()
    except Exception as error:
        processes.gather_start({"error": str(error) or repr(error)})
        raise
    assert facts is not None
    reports = processes.gather_start(asdict(facts))
    failures = [(rank, report["error"]) for rank, report in enumerate(reports) if "error" in report]
    if failures:
        rank, message = failures[0]
        raise ProcessMismatchError(f"process {rank} cannot start: {message}")
    differences = [
        f"{name.replace('_', ' ')} {reports[0][name]} in process 0 and {report[name]} in process {rank}"
        for name in asdict(facts)
        for rank, report in list(enumerate(reports))[1:]
        if report[name] != reports[0][name]
    ]
    if differences:
        raise ProcessMismatchError(
            f"the processes do not begin with the same: {shorten_list(differences, separator='; ')}. "
            f"Give every machine the same command, pretraining set and vocabulary; "
            f"{run} as a shared folder or a copy"
        )
    return result


def digest_json(value: Any) -> str:
    """Return a digest of a JSON value."""
    return _shorten(hashlib.sha256(json.dumps(value, sort_keys=True).encode()))


def digest_weights(state: Mapping[str, torch.Tensor]) -> str:
    """Return a digest of the names and values of tensors."""
    digest = hashlib.sha256()
    for name in sorted(state):
        digest.update(name.encode())
        digest.update(state[name].detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return _shorten(digest)


def _shorten(digest: Any) -> str:
    return str(digest.hexdigest())[:_DIGEST_LENGTH]
