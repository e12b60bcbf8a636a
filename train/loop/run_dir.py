"""Folder of a training run.

::

    RUN/
      run.json          recipe, data, origin and library versions; written first
      log.jsonl         losses, metrics and speed
      step-0001000/     checkpoint: hf/ (model and tokenizer), state.pt (for resuming), run.json
      manifest.json     written last; its presence marks the run complete
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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
from bioshards.corpus.storage.locks import lock_folder
from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX
from bioshards.corpus.ui.options import option_from_field
from bioshards.train.loop import checkpoint
from bioshards.train.loop.metrics_log import SPEED_FIELDS

RUN_FILE: Final = "run.json"
MANIFEST_FILE: Final = "manifest.json"
FORMAT: Final = 2
"""Raised whenever the same recipe and data give another model than before."""


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """What a rerun must have in common with the run that it resumes.

    Attributes:
        recipe: fields of the recipe as JSON values.
        data_fingerprint: SHA-256 of the names and checksums of the training shards.
        vocabulary_sha256: SHA-256 of tokenizer.json.
        origin: checkpoint or run with the initial weights; None: random weights.
    """

    recipe: Mapping[str, Any]
    data_fingerprint: str
    vocabulary_sha256: str
    origin: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON value of the field ``identity`` of run.json."""
        return {
            "pipeline": "train",
            "format": FORMAT,
            "recipe": dict(self.recipe),
            "data_fingerprint": self.data_fingerprint,
            "vocabulary_sha256": self.vocabulary_sha256,
            "origin": self.origin,
        }


def get_library_versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that results depend on."""
    libraries = {
        library.__name__: str(library.__version__) for library in (numpy, tokenizers, torch, transformers)
    }
    return {"bioshards": __version__, "python": platform.python_version(), **libraries}


@contextlib.contextmanager
def claim_run_dir(run: str) -> Iterator[None]:
    """Create and lock the folder of a run, and remove temporary files of a killed process.

    Raises:
        OutputMismatchError: the folder is remote, has other contents, or another process trains in it.
    """
    if not run or "://" in run:
        raise OutputMismatchError(f"--output {run!r} is not a local folder; training writes local files only")
    try:
        os.makedirs(run, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise OutputMismatchError(f"{error.filename} is a file; give a folder as --output") from error
    swept_prefixes = (".lock", TEMPORARY_PREFIX)  # left behind if a run is killed before run.json is written
    if not os.path.exists(f"{run}/{RUN_FILE}") and not all(
        name.startswith(swept_prefixes) for name in os.listdir(run)
    ):
        raise OutputMismatchError(
            f"{run} is not empty and has no {RUN_FILE}; give another --output, or an empty folder"
        )
    with lock_folder(f"{run}/.lock", f"another process trains in {run}; wait for it or stop it"):
        checkpoint.sweep(run)
        yield


def read_run_info(run: str) -> dict[str, Any] | None:
    """Read the run.json of a folder; None if it has none.

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
            f"{run}/{RUN_FILE} is damaged ({error!r}); give another --output"
        ) from error
    return run_info


def check_identity(run: str, identity: RunIdentity) -> None:
    """Check that a folder is new or has the same run.

    Raises:
        OutputMismatchError: it has another run; the message names every difference.
    """
    run_info = read_run_info(run)
    requested = identity.to_dict()
    if run_info is None or run_info["identity"] == requested:
        return
    recorded = run_info["identity"]
    differences = [
        f"{option_from_field(name)} {recorded['recipe'].get(name)}, not {value}"
        for name, value in requested["recipe"].items()
        if recorded["recipe"].get(name) != value
    ]
    for name, difference in (
        ("data_fingerprint", "another pretraining set, or one that was rebuilt"),
        ("vocabulary_sha256", "another vocabulary"),
        ("origin", f"other initial weights: {recorded.get('origin')}"),
        ("format", "another version of bioshards"),
    ):
        if recorded.get(name) != requested[name]:
            differences.append(difference)
    raise OutputMismatchError(
        f"{run} was started with {'; '.join(differences)}. Resume it with the same settings, or give another "
        "--output"
    )


def write_run_manifest(
    run: str, run_info: Mapping[str, Any], final_metrics: Mapping[str, Any], seconds: float
) -> None:
    """Write the manifest of a run at its last step.

    All fields but ``run`` are reproducible, however often the run was stopped.  The run.json of the
    checkpoint and the speed fields of ``final_metrics`` are therefore left out.

    Args:
        final_metrics: last line of the log about training.
        seconds: duration since the process started.
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
    identity, process_info = run_info["identity"], run_info["run"]
    manifest = TrainingManifest(
        config={**identity["recipe"], "format": FORMAT},
        inputs=(
            TrainingInput(
                data_fingerprint=identity["data_fingerprint"],
                vocabulary_sha256=identity["vocabulary_sha256"],
                origin=identity["origin"],
            ),
        ),
        outputs=tuple(outputs),
        final_metrics={name: value for name, value in final_metrics.items() if name not in SPEED_FIELDS},
        run=TrainingRun(
            command=tuple(process_info["command"]),
            started_at=storage.read_json(f"{run}/{RUN_FILE}")["started_at"],
            finished_at=utc_now(),
            world_size=process_info["world_size"],
            device=process_info["device"],
            attention_kernel=process_info["attention_kernel"],
            micro_batch_size=process_info["micro_batch_size"],
            library_versions=process_info["library_versions"],
            seconds=round(seconds, 1),
        ),
    )
    write_manifest(storage, f"{run}/{MANIFEST_FILE}", manifest)
