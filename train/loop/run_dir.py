"""A run's folder: what it says it is, and whether what is asked for is the same.

::

    RUN/
      run.json          what is trained, on what, from where, with which versions; written first
      log.jsonl         losses, figures and speed
      step-0001000/     a checkpoint: hf/ (model and tokenizer), state.pt (to go on from), run.json
      manifest.json     written last: no manifest, not finished
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy
import tokenizers
import torch
import transformers

from bioshards import __version__
from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.manifest import (
    OutputFile,
    TrainingInput,
    TrainingManifest,
    TrainingRun,
    utc_now,
    write_manifest,
)
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX

from . import checkpoint
from .metrics_log import SPEED_FIELDS

RUN_FILE: Final = "run.json"
MANIFEST_FILE: Final = "manifest.json"
FORMAT: Final = 2
"""Raised whenever the same recipe and data give another model than before."""


def build_identity(
    recipe: Mapping[str, Any], data_fingerprint: str, vocabulary_sha256: str, origin: str | None
) -> dict[str, Any]:
    """What must be the same for a run to be gone on with.

    Args:
        data_fingerprint, vocabulary_sha256: SHA-256 of either.
        origin: the checkpoint or run that the model began from; None: random weights.
    """
    return {
        "pipeline": "train",
        "format": FORMAT,
        "recipe": dict(recipe),
        "data_fingerprint": data_fingerprint,
        "vocabulary_sha256": vocabulary_sha256,
        "origin": origin,
    }


def get_library_versions() -> dict[str, str]:
    """Of what has a say in the numbers."""
    libraries = {
        library.__name__: library.__version__ for library in (numpy, tokenizers, torch, transformers)
    }
    return {"bioshards": __version__, "python": platform.python_version(), **libraries}


@contextlib.contextmanager
def claim_run_dir(run: str) -> Iterator[None]:
    """The run's folder, for this process alone; leftovers of a killed one are swept.

    Raises:
        OutputMismatchError: it is no run's folder, or another process trains there.
    """
    if not run or "://" in run:
        raise OutputMismatchError(
            f"--output {run!r} is no folder of this machine, and a model is trained on one"
        )
    try:
        os.makedirs(run, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise OutputMismatchError(
            f"{error.filename} is a file, and --output is to be a folder: give another"
        ) from error
    swept_prefixes = (
        ".lock",
        TEMPORARY_PREFIX,
    )  # a run that was killed while it wrote what it is leaves both
    if not os.path.exists(f"{run}/{RUN_FILE}") and not all(
        name.startswith(swept_prefixes) for name in os.listdir(run)
    ):
        raise OutputMismatchError(
            f"{run} holds something else than a run: give another --output, or an empty folder"
        )
    with open(f"{run}/.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputMismatchError(f"another process trains in {run}; wait for it or stop it") from error
        checkpoint.sweep(run)
        yield


def read_run_info(run: str) -> dict[str, Any] | None:
    """What the folder's run says it is; None where no run has begun there.

    Raises:
        OutputMismatchError: it cannot be read.
    """
    if not os.path.exists(f"{run}/{RUN_FILE}"):
        return None
    try:
        run_info: dict[str, Any] = LocalStorage().read_json(f"{run}/{RUN_FILE}")
        run_info["identity"]["recipe"]["steps"]
    except (ValueError, KeyError, TypeError) as error:
        raise OutputMismatchError(
            f"{run}/{RUN_FILE} is damaged ({error!r}): give another --output"
        ) from error
    return run_info


def check_identity(run: str, requested: Mapping[str, Any]) -> None:
    """Refuse to go on with a run that is another one.

    Raises:
        OutputMismatchError: it is; says in what.
    """
    run_info = read_run_info(run)
    if run_info is None or run_info["identity"] == requested:
        return
    recorded = run_info["identity"]
    differences = [
        f"--{name.replace('_', '-')} {recorded['recipe'].get(name)}, not {value}"
        for name, value in requested["recipe"].items()
        if recorded["recipe"].get(name) != value
    ]
    for name, difference in (
        ("data_fingerprint", "another pretraining set, or one that has been made anew since"),
        ("vocabulary_sha256", "another vocabulary"),
        ("origin", f"other weights to begin from: {recorded.get('origin')}"),
        ("format", "another version of bioshards"),
    ):
        if recorded.get(name) != requested[name]:
            differences.append(difference)
    raise OutputMismatchError(
        f"{run} was begun with {'; '.join(differences)}. Go on with it as it was begun, or give another --output"
    )


def write_run_manifest(
    run: str, run_info: Mapping[str, Any], final_metrics: Mapping[str, Any], seconds: float
) -> None:
    """Write the manifest: the run is at its last step.

    All but its ``run`` is the same whenever the run is done again, however often it was stopped; so the
    checkpoint's own run.json is not listed, nor how fast the last steps were.
    """
    storage = LocalStorage()
    folder = checkpoint.find_latest(run) or run
    outputs = []
    for entry in storage.walk(folder):
        if os.path.basename(entry.path) == RUN_FILE:
            continue
        with open(entry.path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        outputs.append(OutputFile(os.path.relpath(entry.path, run), entry.size, digest))
    identity, run_of = run_info["identity"], run_info["run"]
    begun = LocalStorage().read_json(f"{run}/{RUN_FILE}")["started"]
    manifest = TrainingManifest(
        config={**identity["recipe"], "format": FORMAT},
        inputs=(
            TrainingInput(identity["data_fingerprint"], identity["vocabulary_sha256"], identity["origin"]),
        ),
        outputs=tuple(outputs),
        final_metrics={name: value for name, value in final_metrics.items() if name not in SPEED_FIELDS},
        run=TrainingRun(
            command=tuple(run_of["command"]),
            started_at=begun,
            finished_at=utc_now(),
            world_size=run_of["world_size"],
            device=run_of["device"],
            micro_batch_size=run_of["micro_batch_size"],
            library_versions=run_of["library_versions"],
            seconds=round(seconds, 1),
        ),
    )
    write_manifest(storage, f"{run}/{MANIFEST_FILE}", manifest)
