"""The MD5 of a source file: what names its staged work, checked against NLM's ``.md5`` beside it."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from typing import BinaryIO

from .ahead import prefetch_map
from .errors import BadFileError, TransientStorageError
from .files import LocalStorage
from .parts import load_parts
from .sources import SourceFile, SourcePart
from .workspace import OutputDir


def compute_input_md5(storage: LocalStorage, output_dir: OutputDir, source: SourceFile) -> str:
    """The source's MD5 in hexadecimal; it is read for that only if it is new or has changed.

    Of a source of several files it is that of a list of their names and MD5s.

    Raises:
        BadFileError: it cannot be read, or its sidecar names another MD5.
    """
    cache_path = output_dir.input_digest_path(source.path, source.stamp)
    if storage.exists(cache_path):
        return str(storage.read_json(cache_path)["md5"])
    if source.num_files:
        digest = _digest_parts(storage, load_parts(storage, output_dir, source))
        storage.write_json(cache_path, {"md5": digest, "path": source.path})
        return digest
    with open_source(storage, source.path) as file:
        digest = md5_of_file(file)
    sidecar_path = f"{source.path}.md5"
    if storage.exists(sidecar_path):
        with storage.open(sidecar_path) as file:
            expected = re.search(rb"\b[0-9a-fA-F]{32}\b", file.read(4096))
        if expected and expected[0].decode().lower() != digest:
            raise BadFileError(
                "checksum",
                f"its MD5 is {digest}, its .md5 file says {expected[0].decode()}; download it again",
            )
    storage.write_json(cache_path, {"md5": digest, "path": source.path})
    return digest


def _digest_parts(storage: LocalStorage, source: SourceFile) -> str:
    def digest_part(part: SourcePart) -> str:
        try:
            with open_source(storage, part.path) as file:
                return md5_of_file(file)
        except BadFileError:  # one that cannot be read is rejected when it is its turn
            return f"unreadable-{part.stamp}"

    digest = hashlib.md5(usedforsecurity=False)
    for part, part_md5 in zip(source.parts, prefetch_map(storage, digest_part, source.parts), strict=True):
        digest.update(f"{part.name} {part_md5}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


@contextlib.contextmanager
def open_source(storage: LocalStorage, path: str) -> Iterator[BinaryIO]:
    """An open file.

    Raises:
        BadFileError: it cannot be opened, or, while it is looked at, not read.
        TransientStorageError: not the file's fault.
    """
    try:
        with storage.open(path) as file:
            yield file
    except TransientStorageError:
        raise
    except OSError as error:
        raise bad_file_from_os_error(error) from error


def is_unchanged(storage: LocalStorage, source: SourceFile) -> bool:
    """Is the source as it was when it was found?"""

    def has_same_stamp(item: SourceFile | SourcePart) -> bool:
        return [info.stamp for info in storage.glob(item.path)] == [item.stamp]

    return (
        all(prefetch_map(storage, has_same_stamp, source.parts)) if source.parts else has_same_stamp(source)
    )


def md5_of_file(file: BinaryIO) -> str:
    """The MD5 of what is left of an open file, in hexadecimal."""
    digest = hashlib.md5(usedforsecurity=False)
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def bad_file_from_os_error(error: OSError) -> BadFileError:
    """What is said of a file that cannot be read."""
    return BadFileError("unreadable", f"cannot be read: {error.strerror or error}")
