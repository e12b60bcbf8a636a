"""A pretraining set's shards, mapped into memory: where in them each row lies, and nothing copied.

A set of 100 million rows is 50 GB, and a trainer that is started again should work within seconds.  So of
a shard's record batches it is only noted where their columns begin; a row is looked up when it is asked for
(gather.py), and the operating system reads and keeps what is used.

What is opened is checked against the manifest and the shards' schemas.  Bytes that have changed are found by
:meth:`Shards.verify`, which reads them all, or by the checks of gather.py, where they make no sense.  A file
that is cut short while it is mapped ends the process (SIGBUS): nothing may write to a set in use.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bioshards.corpus.pretraining import LABELLED, PIPELINE, facts_of, schema

_READ: Final = 1 << 20
AGAIN: Final = "Delete it and run the command that made the set once more, which makes it anew"


class WrongData(Exception):
    """This cannot be trained on; the message says what, where, why and what to do."""


class Facts(NamedTuple):
    """What a shard's schema says of its rows; all but their number and that of their tokens of all shards."""

    objective: str
    length: int
    vocabulary_size: int
    vocabulary_sha256: str
    special: dict[str, int]
    split: str
    rows: int
    tokens: int


class File(NamedTuple):
    """A mapped shard, read as what its columns hold; each view begins where the file does."""

    path: str
    offsets: memoryview
    """int32: of ``input_ids``, where each row begins, and the last one's end."""
    ids: memoryview
    """uint16 or uint32."""
    splits: memoryview
    """uint16."""
    labels: memoryview
    """int8."""


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
            WrongData: it is no finished pretraining set, has no such rows, or a shard is not as listed.
        """
        self._folder, self._listed = folder, _listed(folder, split)
        if not sum(one["rows"] for one in self._listed):
            raise WrongData(
                f"{folder} has no rows for {split}. Make a set with some: --validation of "
                f"beam run {PIPELINE} is the share of documents that is held out."
            )
        digests = "".join(f"{one['file']} {one['sha256']}\n" for one in self._listed)
        self.fingerprint = hashlib.sha256(digests.encode()).hexdigest()
        self.files: list[File] = []
        facts: list[Facts] = []
        found: list[tuple[int, ...]] = []
        for number, listed in enumerate(self._listed):
            file, said, blocks = _opened(os.path.join(folder, listed["file"]), listed)
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
                    raise WrongData(
                        f"{file.path} is not of the same set as {self.files[0].path}: its {name} is {here}, "
                        f"and that one's is {there}. Make the set anew."
                    )
        if first.split != split:
            raise WrongData(
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
            WrongData: a shard is not as it was written.
        """
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            waiting = [
                threads.submit(_check, os.path.join(self._folder, one["file"]), one["sha256"])
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
        WrongData: it is no finished pretraining set.
    """
    return not sum(one["rows"] for one in _listed(folder, split))


def _listed(folder: str, split: str) -> list[dict[str, Any]]:
    """The split's shards, as the manifest lists them."""
    path = os.path.join(folder, "manifest.json")
    if "://" in folder:
        raise WrongData(f"{folder} is no folder of this machine, and shards are mapped: copy it here first.")
    try:
        with open(path, encoding="utf-8") as file:
            manifest = json.load(file)
        pipeline = manifest["pipeline"]
        if pipeline == PIPELINE:
            return [
                {
                    "file": str(one["file"]),
                    "rows": int(one["rows"]),
                    "bytes": int(one["bytes"]),
                    "sha256": str(one["sha256"]),
                }
                for one in manifest["outputs"]
                if one["file"].startswith(f"{split}/")
            ]
    except (FileNotFoundError, NotADirectoryError) as error:
        raise WrongData(_unfinished(folder)) from error
    except OSError as error:
        raise WrongData(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise WrongData(
            f"{path} is not as bioshards writes it ({type(error).__name__}: {error}). "
            "Delete it and run the command that made the set once more."
        ) from error
    raise WrongData(
        f"{folder} is an output of {pipeline}, and what is trained on is one of {PIPELINE}: "
        f"make a pretraining set of it (beam run {PIPELINE} --input {folder} ...) and give that."
    )


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


def _opened(path: str, listed: dict[str, Any]) -> tuple[File, Facts, list[tuple[int, ...]]]:
    """A shard, what its schema says, and of each record batch how many rows and where its columns are."""
    try:
        size = os.stat(path).st_size
        if size != listed["bytes"]:
            raise WrongData(
                f"{path} has {size:,} bytes, and its manifest lists {listed['bytes']:,}. {AGAIN}."
            )
        with pa.memory_map(path) as file:  # the mapping outlives the file, of which a process may open 1,024
            mapped = file.read_buffer()
        facts, blocks = _read(mapped)
    except FileNotFoundError as error:
        raise WrongData(
            f"{path} is not there, and its manifest lists it. Run the command that made the set once more."
        ) from error
    except OSError as error:  # which is pyarrow's ArrowIOError too
        raise WrongData(f"{path} cannot be read: {error.strerror or error}. {AGAIN}.") from error
    except (pa.ArrowException, ValueError, LookupError, TypeError) as error:
        raise WrongData(
            f"{path} is no shard of a pretraining set, or is damaged: {error}. {AGAIN}."
        ) from error
    for what, rows in (("has", sum(block[0] for block in blocks)), ("says that it has", facts.rows)):
        if rows != listed["rows"]:
            raise WrongData(
                f"{path} {what} {rows:,} rows, and its manifest lists {listed['rows']:,}. {AGAIN}."
            )
    whole = memoryview(mapped)[: mapped.size // 4 * 4]
    ids = "H" if facts.vocabulary_size <= 1 << 16 else "I"
    views = (whole.cast("i"), whole.cast(ids), whole.cast("H"), whole.cast("b"))  # type: ignore[call-overload]
    return File(path, *views), facts, blocks


def _read(mapped: pa.Buffer) -> tuple[Facts, list[tuple[int, ...]]]:
    """The facts of a mapped stream, and of each record batch: rows, offsets, ids, tokens, splits, labels.

    Raises:
        ArrowException, OSError, ValueError, LookupError, TypeError: it is none that a pretraining set has.
    """
    has = pa.ipc.read_schema(mapped)
    facts = _facts(has)
    labelled = facts.objective in LABELLED
    if not has.equals(schema(facts.vocabulary_size, labelled, {})):
        raise ValueError(f"its columns are {', '.join(map(str, has))}")
    wide = 2 if facts.vocabulary_size <= 1 << 16 else 4
    names = ["input_ids", "split", *(["label"] if labelled else [])]
    only = pa.ipc.IpcReadOptions(included_fields=[has.get_field_index(name) for name in names])
    blocks: list[tuple[int, ...]] = []
    with pa.ipc.open_stream(mapped, options=only) as stream:
        for batch in stream:
            rows = batch.num_rows
            if not rows:
                continue
            if any(column.null_count for column in batch.columns):
                raise ValueError("it has rows without a value")
            _, offsets, _, ids = batch.column(0).buffers()
            (_, splits), (_, labels) = (
                (batch.column(number).buffers() if number < batch.num_columns else (None, None))
                for number in (1, 2)
            )
            tokens = 0 if ids is None else ids.size // wide
            blocks.append(
                (
                    rows,
                    _begin(mapped, offsets, 4, rows + 1),
                    _begin(mapped, ids, wide, tokens),
                    tokens,
                    _begin(mapped, splits, 2, rows),
                    _begin(mapped, labels, 1, rows) if labelled else 0,
                )
            )
    return facts, blocks


def _facts(of: pa.Schema) -> Facts:
    said = facts_of(of)
    return Facts(
        objective=str(said["objective"]),
        length=int(said["length"]),
        vocabulary_size=int(said["vocabulary_size"]),
        vocabulary_sha256=str(said["vocabulary_sha256"]),
        special={str(name): int(number) for name, number in dict(said["special"]).items()},
        split=str(said["split"]),
        rows=int(said["rows"]),
        tokens=int(said["tokens"]),
    )


def _begin(mapped: pa.Buffer, column: pa.Buffer | None, wide: int, values: int) -> int:
    """Where a column begins in its file, in values of so many bytes."""
    if column is None or column.size < values * wide:
        raise ValueError("a column has fewer values than the record batch has rows")
    begin = int(column.address - mapped.address)
    if not 0 <= begin <= mapped.size - column.size:
        raise ValueError("it is compressed, and cannot be mapped")
    if begin % wide:
        raise ValueError("its columns are not aligned")
    return begin // wide


def _check(path: str, sha256: str) -> None:
    """Compare a file with its checksum.  It is read: an error of the disk would end a mapping process."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(_READ):
                digest.update(block)
    except OSError as error:
        raise WrongData(f"{path} cannot be read: {error.strerror}. {AGAIN}.") from error
    if digest.hexdigest() != sha256:
        raise WrongData(
            f"{path} is not as it was written: its SHA-256 is another than the manifest's. {AGAIN}."
        )
