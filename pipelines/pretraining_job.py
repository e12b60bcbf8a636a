"""A run that makes pretraining examples: from parsed options to the exit code."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import math
from collections.abc import Sequence
from typing import Any, Final

from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import (
    ManifestError,
    PretrainingInput,
    PretrainingManifest,
    PretrainingRun,
    VocabularyManifest,
    read_manifest,
)
from bioshards.corpus.workspace import FORMAT, Workspace
from bioshards.vocab import inputs
from bioshards.vocab.encode import Encoder
from bioshards.vocab.examples import fitting, held_in_full, portions, publishing, recipes
from bioshards.vocab.examples.making import Making
from bioshards.vocab.examples.recipes import Recipe
from bioshards.vocab.examples.tensorflow import tensorflow
from bioshards.vocab.examples.writing import Writer
from bioshards.vocab.inputs import Documents, InputError

from . import from_documents, plan_documents, shards_to_pretraining
from .options import Parser, UsageError
from .progress import ExampleProgress
from .shards_to_pretraining import NAME, Job
from .starting import absolute, command_of

_MOST_MB: Final = 2000
"""The largest shard: Arrow's lists are addressed with 31 bits."""
_TOKENS_A_BYTE: Final = 0.22
"""Of document shards; abstracts and articles have 0.19 to 0.21.  How many shards a global shuffle makes
depends on it, not what is in them."""


def run(parser: Parser, options: Any, rest: Sequence[str], arguments: Sequence[str]) -> int:
    """Do what the command line asks for; returns the exit code."""
    return from_documents.run(
        parser,
        options,
        rest,
        lambda files, given: _job(options, arguments, files, given),
        finished=_finished,
        build=shards_to_pretraining.build,
        watcher=ExampleProgress,
        lines=_lines,
        planned=plan_documents.of_examples,
        kind=PretrainingManifest,
        beside=[options.vocab] if options.vocab else [],
    )


def _finished(job: Job) -> bool:
    done = publishing.finished(job.files, job.work, job.inputs)
    if done:
        publishing.tidy(job.files, job.work)
    return done


def recipe(options: Any) -> Recipe:
    """The recipe that the command line asks for.

    Raises:
        UsageError: options that contradict each other.
    """
    if options.preset:
        base = recipes.PRESETS[options.preset]
        if options.objective not in (None, base.objective):
            raise UsageError(
                f"--preset {options.preset} has the objective {base.objective}, and --objective "
                f"{options.objective} is another one"
            )
    else:
        base = recipes.DEFAULTS[options.objective or "electra"]
    if options.max_predictions and not options.tfrecord:
        raise UsageError("--max-predictions says nothing without --tfrecord: other rows are not masked")
    names = ("length", "short", "single", "dupe_factor", "max_predictions")
    given = {name: getattr(options, name) for name in names}
    changed = {name: value for name, value in given.items() if value is not None}
    try:
        return dataclasses.replace(
            base, **changed, keep_overflow=options.keep_overflow, as_published=options.as_published
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def _job(options: Any, arguments: Sequence[str], files: LocalFiles, given: Sequence[str]) -> Job:
    """The job that the command line asks for, its inputs looked at.

    Raises:
        UsageError: options that contradict each other.
        InputError: an input or the vocabulary cannot be used.
    """
    if not options.vocab:
        raise UsageError("--vocab DIR is missing: the --out of a python -m bioshards.vocab build")
    wanted = recipe(options)
    if options.max_shard_mb > _MOST_MB:
        raise UsageError(f"--max-shard-mb {options.max_shard_mb} is above {_MOST_MB}, what a worker can sort")
    if options.validation == 1:
        raise UsageError("--validation 1 holds out every document, and there would be nothing to train on")
    output = absolute(options.output)
    inputs.apart(given, output)
    found = inputs.find(files, given)
    encoder, vocabulary = _vocabulary(files, options.vocab)
    fitting.check(files, found, encoder, options.vocab)
    lists = held_in_full.lists(files, found)
    making = Making(
        recipe=wanted,
        encoder=encoder,
        vocabulary=vocabulary,
        seed=options.seed,
        validation=options.validation,
        buckets=_buckets(options, wanted, found, encoder.size) if options.shuffle == "global" else {},
        max_bytes=options.max_shard_mb * 1_000_000,
        writer=_writer(options, encoder, wanted),
    )
    return Job(
        files=files,
        work=Workspace(output),
        inputs=[
            PretrainingInput(
                pipeline=documents.summary.pipeline,
                shards_sha256=documents.summary.shards_sha256,
                shards=documents.summary.shards,
                documents=documents.summary.documents,
                overlap=tuple(sorted(lists.get(documents.folder, {}).values())),
            )
            for documents in found
        ],
        portions=list(portions.portions(found, options.seed, lists)),
        making=making,
        max_rejected=options.max_rejected,
        config={
            "pipeline": NAME,
            "format": FORMAT,
            **wanted.as_dict(),
            "seed": options.seed,
            "validation_fraction": options.validation,
            "shuffle": options.shuffle,
            "max_shard_mb": options.max_shard_mb,
            "tfrecord": options.tfrecord,
            "vocabulary": {"sha256": vocabulary, "size": encoder.size},
            "library_versions": {"tokenizers": importlib.metadata.version("tokenizers")},
        },
        run=PretrainingRun(
            command=command_of(NAME, arguments),
            inputs=tuple(documents.folder for documents in found),
            vocabulary=absolute(options.vocab),
        ),
    )


def _vocabulary(files: LocalFiles, folder: str) -> tuple[Encoder, str]:
    """The encoder of a folder, and the SHA-256 of what it is made of.

    Raises:
        InputError: there is none, or it is not as its manifest lists it.
    """
    try:
        encoder = Encoder(folder, special_as_text=True, files=files)
    except TransientStorageError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"--vocab: {error}".rstrip(".")) from error
    with files.open(f"{folder}/tokenizer.json") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    if files.exists(f"{folder}/manifest.json"):
        try:
            manifest = read_manifest(files, folder)
        except ManifestError as error:
            raise InputError(f"--vocab: {str(error).rstrip('.')}. Build the vocabulary again") from error
        if not isinstance(manifest, VocabularyManifest):
            raise InputError(
                f"--vocab {folder}: it is no vocabulary, it was made by {manifest.pipeline}. Give the --out "
                "of a python -m bioshards.vocab build"
            )
        listed = {one.file: one.sha256 for one in manifest.outputs}
        if listed.get("tokenizer.json", digest) != digest:
            raise InputError(
                f"--vocab {folder}: tokenizer.json is not the one that its manifest.json lists; one of "
                "the two has been changed. Build the vocabulary again"
            )
    return encoder, digest


def _writer(options: Any, encoder: Encoder, wanted: Recipe) -> Writer:
    try:
        return Writer(tensorflow(encoder, wanted) if options.tfrecord else None)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _buckets(options: Any, wanted: Recipe, found: Sequence[Documents], pieces: int) -> dict[str, int]:
    """How many shards a global shuffle makes of each split, by the size of the inputs."""
    size = sum(shard.bytes for documents in found for shard in documents.shards)
    bytes_a_token = 2 if pieces <= 1 << 16 else 4
    train = size * _TOKENS_A_BYTE * bytes_a_token * wanted.dupe_factor / (options.max_shard_mb * 1e6)
    validation = train / wanted.dupe_factor * options.validation
    return {"train": max(1, math.ceil(train)), "validation": max(1, math.ceil(validation))}


def _lines(job: Job, manifest: PretrainingManifest) -> list[str]:
    length, counts = job.making.recipe.length, manifest.counts
    lines = [f"{counts.documents:,} documents"]
    for split, of in (("train", counts.train), ("validation", counts.validation)):
        if not of.rows:
            continue
        fill = of.tokens / (of.rows * length)
        lost = "".join(f", {tokens:,} lost ({reason})" for reason, tokens in of.lost_tokens.items())
        lines.append(
            f"  {split + ':':11} {of.documents:,} documents, {of.rows:,} rows, {of.tokens:,} tokens "
            f"({fill:.0%} of {length} a row){lost}"
        )
    dropped = {**counts.dropped, **counts.rejected}
    lines += [f"  {reason + ':':11} {number:,} documents" for reason, number in dropped.items() if number]
    return [*lines, f"{'examples:':13} {job.work.output}"]
