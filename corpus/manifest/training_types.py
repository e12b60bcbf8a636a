"""Manifest of a training run, made by ``python -m bioshards.train``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bioshards.corpus.manifest.shared_types import SCHEMA_VERSION, Json, OutputFile, RunInfo


@dataclass(frozen=True, slots=True)
class TrainingInput:
    """What a model was trained on."""

    data_fingerprint: str
    """SHA-256 of the names and SHA-256 sums of the shards of the training split."""
    vocabulary_sha256: str
    """SHA-256 of the ``tokenizer.json`` of the vocabulary."""
    origin: str | None
    """Checkpoint or run that the weights come from; null for random weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun(RunInfo):
    """Facts about one run of ``python -m bioshards.train``."""

    world_size: int
    """Number of processes."""
    device: str
    """Type of device: ``cuda`` or ``cpu``."""
    attention_kernel: str
    """Attention of the models: ``flash``, ``efficient``, or ``padded``, which runs anywhere."""
    micro_batch_size: int
    """Number of rows in a forward pass."""
    library_versions: Mapping[str, str]
    """Versions of Python and of the libraries that the numbers depend on."""
    seconds: float
    """Duration of the run since it was last started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingManifest:
    """Manifest of a training run, made by ``python -m bioshards.train``."""

    schema_version: Literal[1] = SCHEMA_VERSION
    """Version of the fields of this file."""
    pipeline: Literal["train"] = "train"
    """Command that made the directory."""
    config: Mapping[str, Json]
    """Recipe of the model and of its training, with the ``format``."""
    inputs: tuple[TrainingInput, ...]
    """What the model was trained on."""
    outputs: tuple[OutputFile, ...]
    """Files of the last checkpoint."""
    final_metrics: Mapping[str, Json]
    """Last line of the log about training, without what depends on the machine."""
    run: TrainingRun
    """Facts about this run only."""
