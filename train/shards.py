"""A pretraining set's shards, mapped into memory, and where in them each row lies.

A set of 100 million rows is 50 GB, and a trainer that is started again should work within seconds.  So rows
are not read here but when they are asked for (gather.py); the operating system reads and keeps what is used.

What is opened is checked against the manifest and the shards' schemas.  Bytes that have changed are found by
:meth:`Shards.verify`, which reads them all, or by the checks of gather.py, where they make no sense.  A file
that is cut short while it is mapped ends the process (SIGBUS): nothing may write to a set in use.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import (
    ManifestError,
    ManifestNotFoundError,
    PretrainingManifest,
    Shard,
    read_manifest,
)
from bioshards.corpus.pretraining import LABELLED, PIPELINE
from bioshards.corpus.workspace import FORMAT

from .mapped import AGAIN, Facts, File, TrainingDataError, opened

__all__ = ["Places", "Shards", "TrainingDataError", "empty", "manifest_of"]

_READ: Final = 1 << 20


class Places(NamedTuple):
    """Where in their files the record batches' columns begin, int64[blocks] each, counted in values.

    Attributes:
        file: which of the files.
        offsets, ids, splits, labels: in its views; labels are 0 where there are none.
        tokens: how many values ``ids`` has for this record batch.
    """

    file: NDArray[np.int64]
    offsets: NDArray[np.int64]
    ids: NDArray[np.int64]
    tokens: NDArray[np.int64]
    splits: NDArray[np.int64]
    labels: NDArray[np.int64]


class Shards:
    """The rows of one split of a finished pretraining set, numbered in the order of its manifest.

    Attributes:
        rows, tokens: how many there are.
        length: tokens that a row may have.
        objective: electra, bert, albert or plain.
        labelled: do rows have labels?
        special: ids of [PAD], [UNK], [CLS], [SEP] and [MASK].
        vocabulary_sha256: of the vocabulary's tokenizer.json.
        fingerprint: SHA-256 over the names and checksums of the split's shards: what tells data apart.
        blocks: int64[record batches], the rows of each.
        ends: int64[record batches], the number of the row after each one's last.
    """

    def __init__(self, folder: str, split: str = "train") -> None:
        """Map the shards.

        Raises:
            TrainingDataError: it is no finished pretraining set, has no such rows, or a shard is not as
                listed.
        """
        self._folder, self._listed = folder, _listed(folder, split)
        if not sum(one.rows for one in self._listed):
            raise TrainingDataError(
                f"{folder} has no rows for {split}. Make a set with some: --validation of "
                f"beam run {PIPELINE} is the share of documents that is held out."
            )
        digests = "".join(f"{one.file} {one.sha256}\n" for one in self._listed)
        self.fingerprint = hashlib.sha256(digests.encode()).hexdigest()
        self.files: list[File] = []
        facts: list[Facts] = []
        found: list[tuple[int, ...]] = []
        for number, listed in enumerate(self._listed):
            file, said, blocks = opened(os.path.join(folder, listed.file), listed)
            self.files.append(file)
            facts.append(said)
            found += [(*block, number) for block in blocks]
        self._take(facts, split)
        rows, offsets, ids, tokens, splits, labels, file_of = np.array(found, np.int64).T.copy()
        self.blocks, self.ends = rows, np.cumsum(rows)
        self.places = Places(file_of, offsets, ids, tokens, splits, labels)

    def _take(self, facts: Sequence[Facts], split: str) -> None:
        """What the schemas say, which must be the same of all."""
        first = facts[0]
        for file, said in zip(self.files, facts, strict=True):
            for name, here, there in zip(Facts._fields[:-2], said, first, strict=False):
                if here != there:
                    raise TrainingDataError(
                        f"{file.path} is not of the same set as {self.files[0].path}: its {name} is {here}, "
                        f"and that one's is {there}. Make the set anew."
                    )
        if first.split != split:
            raise TrainingDataError(
                f"{self.files[0].path} is of the rows for {first.split}, and its folder says {split}: "
                "its files were moved. Make the set anew."
            )
        self.rows = sum(said.rows for said in facts)
        self.tokens = sum(said.tokens for said in facts)
        self.objective, self.length = first.objective, first.length
        self.labelled = self.objective in LABELLED
        self.vocabulary_size, self.vocabulary_sha256 = first.vocabulary_size, first.vocabulary_sha256
        self.special = first.special

    def sizes(self, block: int) -> NDArray[np.int64]:
        """How many tokens each row of a record batch has."""
        begin = int(self.places.offsets[block])
        offsets = self.files[int(self.places.file[block])].offsets
        return np.diff(np.asarray(offsets[begin : begin + int(self.blocks[block]) + 1])).astype(np.int64)

    def verify(self, say: Callable[[str], None]) -> None:
        """Read all shards, as many at a time as there are cores, and compare them with their checksums.

        Args:
            say: is told how far it is, a line for each shard.

        Raises:
            TrainingDataError: a shard is not as it was written.
        """
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            waiting = [
                threads.submit(_check, os.path.join(self._folder, one.file), one.sha256)
                for one in self._listed
            ]
            try:
                for number, done in enumerate(as_completed(waiting), 1):
                    done.result()
                    say(f"verified {number} of {len(waiting)} shards")
            finally:
                threads.shutdown(wait=False, cancel_futures=True)


def empty(folder: str, split: str) -> bool:
    """Has a finished pretraining set no rows of this split?  There are none to validate on unless asked for.

    Raises:
        TrainingDataError: it is no finished pretraining set.
    """
    return not sum(one.rows for one in _listed(folder, split))


def manifest_of(folder: str) -> PretrainingManifest:
    """The manifest of a finished pretraining set on this machine.

    Raises:
        TrainingDataError: it is none.
    """
    if "://" in folder:
        raise TrainingDataError(
            f"{folder} is no folder of this machine, and shards are mapped: copy it here first."
        )
    try:
        manifest = read_manifest(LocalFiles(), folder)
    except ManifestNotFoundError as error:
        raise TrainingDataError(_unfinished(folder)) from error
    except ManifestError as error:
        raise TrainingDataError(f"{error}: run the command that made the set once more.") from error
    if not isinstance(manifest, PretrainingManifest):
        raise TrainingDataError(
            f"{folder} is an output of {manifest.pipeline}, and what is trained on is one of {PIPELINE}: "
            f"make a pretraining set of it (beam run {PIPELINE} --input {folder} ...) and give that."
        )
    if manifest.config.format != FORMAT:
        raise TrainingDataError(
            f"{folder} was made by another version of bioshards (format {manifest.config.format}, this is "
            f"{FORMAT}). Make it anew: beam run {PIPELINE} with another --output."
        )
    return manifest


def _listed(folder: str, split: str) -> list[Shard]:
    """The split's shards, as the manifest lists them."""
    return [one for one in manifest_of(folder).outputs if one.file.startswith(f"{split}/")]


def _unfinished(folder: str) -> str:
    if not os.path.isdir(folder):
        return f"{folder}: there is no such folder. Give the --output of beam run {PIPELINE}."
    above = os.path.dirname(os.path.abspath(folder))
    if os.path.exists(os.path.join(above, "manifest.json")):
        return f"{folder} has no manifest.json, but the folder above it has: give {above}."
    return (
        f"{folder} has no manifest.json: it is no finished pretraining set. Give the --output of a "
        f"beam run {PIPELINE} that has ended, or run it again to its end."
    )


def _check(path: str, sha256: str) -> None:
    """Compare a file with its checksum.  It is read: an error of the disk would end a mapping process."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(_READ):
                digest.update(block)
    except OSError as error:
        raise TrainingDataError(f"{path} cannot be read: {error.strerror}. {AGAIN}.") from error
    if digest.hexdigest() != sha256:
        raise TrainingDataError(
            f"{path} is not as it was written: its SHA-256 is another than the manifest's. {AGAIN}."
        )
