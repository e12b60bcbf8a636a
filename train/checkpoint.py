"""Folder of a training run, its checkpoints, and what resuming compares.

::

    RUN/
      run.json          recipe, data, origin and library versions; written first
      log.jsonl         losses, metrics and speed
      README.md, report.html   of a finished run: losses, masked tokens with the model's guesses
      step-0001000/     checkpoint: hf/ (model and tokenizer), state.pt (for resuming), run.json
      manifest.json     written last; its presence marks the run complete

Checkpoints are written atomically: into a temporary folder, fsynced, then renamed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import re
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
import numpy
import tokenizers
import torch
import transformers

from bioshards import __version__
from bioshards.corpus.errors import InvalidValueError, OutputMismatchError, RunError
from bioshards.corpus.manifest import (
    OutputFile,
    TrainingInput,
    TrainingManifest,
    TrainingRun,
    utc_now,
    write_manifest,
)
from bioshards.corpus.storage.checksums import add_sha256, has_wrong_sha256
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX
from bioshards.corpus.ui.options import option_from_field
from bioshards.train.data.piece_table import VocabularyError
from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.train.log import SPEED_FIELDS
from bioshards.train.models.objectives import Objective
from bioshards.train.recipe import TrainRecipe

RUN_FILE: Final = "run.json"
MANIFEST_FILE: Final = "manifest.json"
STATE_FILE: Final = "state.pt"
MODEL_FOLDER: Final = "hf"
"""Subfolder of a checkpoint for Hugging Face's ``from_pretrained``."""
FORMAT: Final = 2
"""Raised whenever the same recipe and data give another model than before."""
_STATE_KEYS: Final = {"model", "optimiser", "done", "first", "tokens", "tally"}
_FOLDER_PATTERN: Final = re.compile(r"step-(\d{7,})")
_REMOVED_FIELDS: Final[Mapping[str, object]] = {"pad_rows": False}
"""Recipe fields of earlier versions, and the value with which their runs can be resumed."""
_TOKENIZER_FILES: Final = ("tokenizer.json", "vocab.txt", "spiece.model")
"""Tokenizer files of a vocabulary, except its configuration; a vocabulary has some of them."""
_TOKENIZER_CONFIG_FILE: Final = "tokenizer_config.json"
VOCABULARY_FILES: Final = (*_TOKENIZER_FILES, _TOKENIZER_CONFIG_FILE)
"""Files of a vocabulary that a model gets a copy of."""


class CheckpointError(RunError):
    """A checkpoint could not be written; earlier ones are unchanged."""


@contextlib.contextmanager
def claim(run: str) -> Iterator[LocalStorage]:
    """Create and lock the folder of a run, and remove temporary files of a killed process.

    The storage that this yields writes nothing once another process has the lock.

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
    storage = LocalStorage()
    with storage.lock(f"{run}/.lock", run):
        for name in os.listdir(run):
            if name.startswith(TEMPORARY_PREFIX):
                path = f"{run}/{name}"
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        yield storage


def write_run_info(storage: LocalStorage, folder: str, run_info: Mapping[str, Any]) -> None:
    """Write the run.json of a run or of a checkpoint, with its SHA-256."""
    storage.write_json(f"{folder}/{RUN_FILE}", add_sha256(run_info))


def read_run_info(folder: str) -> dict[str, Any] | None:
    """Read the run.json of a run or of a checkpoint; None if it has none.

    Raises:
        OutputMismatchError: it cannot be read, or is damaged.
    """
    if not os.path.exists(f"{folder}/{RUN_FILE}"):
        return None
    try:
        run_info: dict[str, Any] = LocalStorage().read_json(f"{folder}/{RUN_FILE}")
        if has_wrong_sha256(run_info):
            raise InvalidValueError("its SHA-256 is not the one that it names")
        run_info["identity"]["recipe"]["steps"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputMismatchError(
            f"{folder}/{RUN_FILE} is damaged ({_get_error_reason(error)}); give another --output"
        ) from error
    return run_info


def check_identity(run: str, identity: Mapping[str, Any]) -> None:
    """Check that a folder is new or has the same run.

    Args:
        identity: the field ``identity`` of its run.json: what a rerun must have in common with it.

    Raises:
        OutputMismatchError: it has another run; the message names every difference.
    """
    run_info = read_run_info(run)
    if run_info is None:
        return
    recorded = run_info["identity"]
    recipe, recorded_recipe = ({**_REMOVED_FIELDS, **value["recipe"]} for value in (identity, recorded))
    differences = [
        f"{option_from_field(name)} {recorded_recipe.get(name)}, not {recipe.get(name)}"
        for name in recipe.keys() | recorded_recipe.keys()
        if recorded_recipe.get(name) != recipe.get(name)
    ]
    for name, difference in (
        ("data_fingerprint", "another pretraining set, or one that was rebuilt"),
        ("vocabulary_sha256", "another vocabulary"),
        ("origin", f"other initial weights: {recorded.get('origin')}"),
        ("format", "another version of bioshards"),
    ):
        if recorded.get(name) != identity[name]:
            differences.append(difference)
    if differences:
        raise OutputMismatchError(
            f"{run} was started with {'; '.join(differences)}. Resume it with the same settings, or give "
            "another --output"
        )


def save(
    storage: LocalStorage, run: str, step: int, write_files: Callable[[str], None], keep_checkpoints: int
) -> str:
    """Write a checkpoint, remove all but the last ``keep_checkpoints``, and return the new folder.

    Args:
        storage: of :func:`claim`.
        write_files: writes the files of the checkpoint into a folder.

    Raises:
        RunError: another process has the lock of the run.
        CheckpointError: it could not be written; its temporary files are removed.
    """
    checkpoint = f"{run}/step-{step:07d}"
    if os.path.exists(checkpoint):  # the run was stopped before its first step
        return checkpoint
    temporary = f"{run}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
    try:
        os.makedirs(temporary)
        write_files(temporary)
        for root, _, names in os.walk(temporary):
            for name in names:
                _fsync(os.path.join(root, name))
            _fsync(root)
        storage.check_locks()
        os.rename(temporary, checkpoint)
        _fsync(run)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        if isinstance(error, RunError) or not isinstance(error, Exception):
            raise
        previous = find_latest(run)
        raise CheckpointError(
            f"cannot write the checkpoint of step {step:,} to {run} ({_get_error_reason(error)}). "
            + (f"{previous} is complete. " if previous else "There is no earlier one. ")
            + f"{shutil.disk_usage(run).free / 1e6:,.0f} MB are free there; fix that and rerun the command "
            "to resume"
        ) from error
    for old in list_checkpoints(run)[:-keep_checkpoints]:
        # Renamed first, so that no partial checkpoint is left if the process is killed.
        temporary = f"{run}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
        os.rename(old, temporary)
        shutil.rmtree(temporary)
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


def load(checkpoint: str, device: torch.device) -> dict[str, Any]:
    """Load the state.pt of a checkpoint.

    Raises:
        InvalidValueError: it is missing or damaged.
        OSError: it cannot be read.
    """
    path = f"{checkpoint}/{STATE_FILE}"
    try:
        if damaged := _find_damaged(checkpoint, [STATE_FILE]):
            path = damaged
            raise InvalidValueError("its SHA-256 is not the one that was written")
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


def digest_files(folder: str) -> dict[str, str]:
    """Return the SHA-256 of every file of a checkpoint by its path within the folder."""
    return {file: digest_file(f"{folder}/{file}") for file in _list_files(folder)}


def _list_files(folder: str) -> list[str]:
    paths = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]
    return sorted(os.path.relpath(path, folder) for path in paths)


def describe_damage(model: str) -> str | None:
    """Return which file of a model is not as a run has written it, and what to do; None if all are.

    Args:
        model: folder of a model: ``hf`` of a checkpoint, or any other, of which nothing is known.
    """
    checkpoint, name = os.path.split(os.path.realpath(model))
    if name != MODEL_FOLDER:
        return None
    files = [f"{name}/{file}" for file in _list_files(f"{checkpoint}/{name}") if file != "README.md"]
    damaged = _find_damaged(checkpoint, files)
    return damaged and (
        f"{damaged} is damaged or was edited: its SHA-256 is not the one that was written. Copy the "
        f"checkpoint again or give another one; to use it as it is, copy {model} elsewhere"
    )


def _find_damaged(checkpoint: str, files: Iterable[str]) -> str | None:
    """Return the path of the first of these files that differs from what the run.json of a checkpoint lists.

    It is that of the run.json if this is damaged.  None if there is none, or one of an earlier version.
    """
    try:
        sha256s = (read_run_info(checkpoint) or {}).get("files", {})
    except OutputMismatchError:
        return f"{checkpoint}/{RUN_FILE}"
    paths = {f"{checkpoint}/{file}": sha256s[file] for file in files if file in sha256s}
    return next((path for path, sha256 in paths.items() if digest_file(path) != sha256), None)


def digest_file(path: str) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_model(
    folder: str,
    objective: Objective,
    recipe: TrainRecipe,
    dataset: PretrainingDataset,
    vocabulary: str,
    step: int,
    tokens: int,
) -> None:
    """Write the model with its tokenizer and its card, for Hugging Face's ``from_pretrained``.

    The card has neither paths nor times: the same run gives the same bytes.

    Args:
        vocabulary: folder of the tokenizer.
        step, tokens: steps and training tokens of the model so far.
    """
    objective.save(folder)
    config = {**read_tokenizer_config(vocabulary), "model_max_length": recipe.max_positions}
    for subfolder, _, names in os.walk(folder):
        if "config.json" not in names:
            continue
        for name in _TOKENIZER_FILES:  # beside the model, and beside ELECTRA's generator
            if os.path.exists(f"{vocabulary}/{name}"):
                shutil.copyfile(f"{vocabulary}/{name}", f"{subfolder}/{name}")
        with open(f"{subfolder}/{_TOKENIZER_CONFIG_FILE}", "w", encoding="utf-8") as file:
            json.dump(config, file, indent=2, ensure_ascii=False)
    num_parameters = sum(parameter.numel() for parameter in objective.encoder.parameters())
    heads = "\n".join(f"* {sentence}" for sentence in objective.describe_heads())
    card = f"""\
{format_card_header(dataset)}
# {recipe.family}, {recipe.num_layers} layers of {recipe.hidden_size}

Pretrained with bioshards: an encoder of {num_parameters:,} parameters after {step:,} of
{recipe.steps:,} steps and {tokens:,} tokens.

## What is trained

* The encoder, for `AutoModel`, `AutoModelForTokenClassification`, `AutoModelForSequenceClassification` and
  others: a head that such a class adds is new, and has to be fine-tuned.
{heads}

## Data

* Pretraining set: objective {dataset.objective}, {dataset.tokens:,} tokens in {dataset.rows:,} rows of
  {dataset.max_seq_length:,} at most; fingerprint `{dataset.fingerprint}`
* Vocabulary: {dataset.vocabulary_size:,} pieces, SHA-256 of tokenizer.json
  `{dataset.vocabulary_sha256}`

The run.json beside this folder has the whole recipe.
"""
    with open(f"{folder}/README.md", "w", encoding="utf-8") as file:
        file.write(card)


def format_card_header(dataset: PretrainingDataset) -> str:
    """Return the metadata of a model's card as Hugging Face's hub reads them."""
    language = "language: en\n" * dataset.is_english
    return f"---\nlibrary_name: transformers\nlicense: other\n{language}tags:\n- biology\n- medical\n---\n"


def read_tokenizer_config(vocabulary: str) -> dict[str, Any]:
    """Read the tokenizer_config.json of a vocabulary.

    Raises:
        VocabularyError: it is missing or damaged.
    """
    path = f"{vocabulary}/{_TOKENIZER_CONFIG_FILE}"
    try:
        with open(path, encoding="utf-8-sig") as file:
            config: dict[str, Any] = {**json.load(file)}
    except (OSError, ValueError, TypeError) as error:
        raise VocabularyError(
            f"{path} is missing or damaged ({error}). Give --vocab FOLDER, a vocabulary written by "
            "bioshards vocab"
        ) from error
    return config


def get_library_versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that results depend on."""
    libraries = {
        library.__name__: str(library.__version__) for library in (numpy, tokenizers, torch, transformers)
    }
    return {"bioshards": __version__, "python": platform.python_version(), **libraries}


def write_run_manifest(
    storage: LocalStorage,
    run: str,
    run_info: Mapping[str, Any],
    final_metrics: Mapping[str, Any],
    seconds: float,
) -> None:
    """Write the manifest of a run at its last step.

    All fields but ``run`` are reproducible, however often the run was stopped.  The run.json of the
    checkpoint and the speed fields of ``final_metrics`` are therefore left out.

    Args:
        final_metrics: last line of the log about training.
        seconds: duration since the process started.
    """
    outputs = []
    for entry in storage.walk(find_latest(run) or run):
        if os.path.basename(entry.path) == RUN_FILE:
            continue
        outputs.append(OutputFile(os.path.relpath(entry.path, run), entry.size, digest_file(entry.path)))
    identity = run_info["identity"]
    facts = {
        **run_info["run"],
        "started_at": storage.read_json(f"{run}/{RUN_FILE}")["started_at"],
        "finished_at": utc_now(),
        "seconds": round(seconds, 1),
    }
    del facts["threads"]  # of run.json only
    manifest = TrainingManifest(
        config={**identity["recipe"], "format": FORMAT},
        inputs=(
            TrainingInput(identity["data_fingerprint"], identity["vocabulary_sha256"], identity["origin"]),
        ),
        outputs=tuple(outputs),
        final_metrics={name: value for name, value in final_metrics.items() if name not in SPEED_FIELDS},
        run=msgspec.convert(facts, TrainingRun),
    )
    write_manifest(storage, f"{run}/{MANIFEST_FILE}", manifest)


def _fsync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _get_error_reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error).split("\n")[0]
