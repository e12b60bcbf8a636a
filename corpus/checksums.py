"""The MD5 of a source file: what names its staged work, checked against NLM's ``.md5`` beside it."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from typing import BinaryIO

from .ahead import ahead
from .errors import BadFileError, TransientStorageError
from .files import LocalFiles
from .parts import take_up
from .sources import Part, Source
from .workspace import Workspace


def md5(files: LocalFiles, work: Workspace, source: Source) -> str:
    """The source's MD5 in hexadecimal; it is read for that only if it is new or has changed.

    Of a source of several files it is that of a list of their names and MD5s.

    Raises:
        BadFileError: it cannot be read, or its sidecar names another MD5.
    """
    seen = work.seen(source.path, source.stamp)
    if files.exists(seen):
        return str(files.read_json(seen)["md5"])
    if source.files:
        found = _of_parts(files, take_up(files, work, source))
        files.write_json(seen, {"md5": found, "path": source.path})
        return found
    with opened(files, source.path) as file:
        found = of_file(file)
    sidecar = f"{source.path}.md5"
    if files.exists(sidecar):
        with files.open(sidecar) as file:
            expected = re.search(rb"\b[0-9a-fA-F]{32}\b", file.read(4096))
        if expected and expected[0].decode().lower() != found:
            raise BadFileError(
                "checksum",
                f"its MD5 is {found}, its .md5 file says {expected[0].decode()}; download it again",
            )
    files.write_json(seen, {"md5": found, "path": source.path})
    return found


def _of_parts(files: LocalFiles, source: Source) -> str:
    def of(part: Part) -> str:
        try:
            with opened(files, part.path) as file:
                return of_file(file)
        except BadFileError:  # one that cannot be read is rejected when it is its turn
            return f"unreadable-{part.stamp}"

    digest = hashlib.md5(usedforsecurity=False)
    for part, md5 in zip(source.parts, ahead(files, of, source.parts), strict=True):
        digest.update(f"{part.name} {md5}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()


@contextlib.contextmanager
def opened(files: LocalFiles, path: str) -> Iterator[BinaryIO]:
    """An open file.

    Raises:
        BadFileError: it cannot be opened, or, while it is looked at, not read.
        TransientStorageError: not the file's fault.
    """
    try:
        with files.open(path) as file:
            yield file
    except TransientStorageError:
        raise
    except OSError as error:
        raise unreadable(error) from error


def unchanged(files: LocalFiles, source: Source) -> bool:
    """Is the source as it was when it was found?"""

    def as_found(one: Source | Part) -> bool:
        return [found.stamp for found in files.find(one.path)] == [one.stamp]

    return all(ahead(files, as_found, source.parts)) if source.parts else as_found(source)


def of_file(file: BinaryIO) -> str:
    """The MD5 of what is left of an open file, in hexadecimal."""
    digest = hashlib.md5(usedforsecurity=False)
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def unreadable(error: OSError) -> BadFileError:
    """What is said of a file that cannot be read."""
    return BadFileError("unreadable", f"cannot be read: {error.strerror or error}")
