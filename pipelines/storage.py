"""Object stores (gs://, s3:// ...) behind the same calls as local files.

A name without a scheme is a local path and handled by :class:`LocalFiles`, so one object serves
inputs on one store and outputs on another.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, BinaryIO, Final, cast

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.files import Found, LocalFiles
from bioshards.corpus.partial import Partial

from .object_store import Store

_MEMORY_BYTES: Final = 8 << 20
"""A file on its way to a store is kept on this machine's disk above this size."""

_stores: dict[str, tuple[Any, Store]] = {}
_making = threading.Lock()


def _remote(path: str) -> bool:
    return "://" in path


def configure(options: PipelineOptions) -> None:
    """Give this process' stores their options (``--s3_endpoint_url`` ...); Beam gives workers theirs."""
    FileSystems.set_options(options)
    with _making:
        _stores.clear()  # of another command of this process


def store(path: str) -> Store:
    """The store of a path: its client is made once for a process and its options.

    Raises:
        ModuleNotFoundError: the client's library is not installed.
        CredentialsError: there are no credentials.
    """
    scheme = path.partition("://")[0]
    options = FileSystems._pipeline_options  # there is no other way to them; sdk_worker_main sets them
    with _making:
        before, made = _stores.get(scheme, (None, None))
        if made is None or (before is not options and _all(before) != _all(options)):
            made = _made(scheme, options or PipelineOptions([]))
        _stores[scheme] = (options, made)
        return made


def _all(options: PipelineOptions | None) -> dict[str, Any]:
    """The options as plain data; a pipeline has a copy of those that it is given."""
    return {} if options is None else dict(options.get_all_options(drop_default=True))


def _made(scheme: str, options: PipelineOptions) -> Store:
    if scheme == "gs":
        from .google_storage import GoogleStore

        return GoogleStore(options)
    if scheme == "s3":
        from .s3_storage import S3Store

        return S3Store(options)
    from .beam_storage import BeamStore

    return BeamStore()


def _waiting() -> BinaryIO:
    """A file that waits on this machine until it is whole, to be put into a store at once."""
    return cast(BinaryIO, tempfile.SpooledTemporaryFile(_MEMORY_BYTES))


def _hidden(path: str) -> bool:
    return path.rstrip("/").rpartition("/")[2].startswith(".")


def _real(files: list[Found]) -> list[Found]:
    """Without the objects by which some tools mark folders: their names end with a slash."""
    return [found for found in files if not found.path.endswith("/")]


def _fits(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Do a path's names fit a pattern's, as :mod:`glob` has it: ``**`` for any folders, none hidden?"""
    if not pattern or not names:
        return not pattern and not names
    first, *rest = pattern
    seen = first.startswith(".") or not names[0].startswith(".")
    if first != "**":
        return seen and fnmatchcase(names[0], first) and _fits(names[1:], rest)
    further = pattern if rest or names[1:] else ()  # a last one takes any file
    return (bool(rest) and _fits(names, rest)) or (seen and _fits(names[1:], further))


class AnyFiles(LocalFiles):
    """Local files, and those of every store there is a client or a file system of Beam's for."""

    far = True

    def open(self, path: str) -> BinaryIO:
        return store(path).open(path) if _remote(path) else super().open(path)

    @contextlib.contextmanager
    def write(self, path: str) -> Iterator[BinaryIO]:
        if not _remote(path):
            with super().write(path) as local:
                yield local
            return
        with _waiting() as file:
            yield file
            store(path).put(path, file, file.seek(0, os.SEEK_END))

    @contextlib.contextmanager
    def partial(self, path: str, version: str) -> Iterator[Partial]:
        if not _remote(path):
            with super().partial(path, version) as local:
                yield local
            return
        with _waiting() as file:
            yield _StorePartial(file, path)

    def exists(self, path: str) -> bool:
        return store(path).look(path) is not None if _remote(path) else super().exists(path)

    def remove(self, path: str) -> None:
        if _remote(path):
            store(path).remove(path)
        else:
            super().remove(path)

    def names(self, folder: str) -> list[str]:
        if not _remote(folder):
            return super().names(folder)
        files, _ = store(folder).folder(folder.rstrip("/"))
        return sorted(found.path.rpartition("/")[2] for found in _real(files))

    def is_folder(self, path: str) -> bool:
        if not _remote(path):
            return super().is_folder(path)
        return next(store(path).below(f"{path.rstrip('/')}/"), None) is not None

    def find(self, pattern: str) -> list[Found]:
        if not _remote(pattern):
            return super().find(pattern)
        there = store(pattern)
        if found := there.look(pattern):
            return [found]
        literal = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
        if literal == pattern:
            return []
        parts = pattern.split("/")
        folder = literal.rpartition("/")[0]
        deep = "/" in pattern[len(literal) :] or "**" in pattern
        among = list(there.below(literal)) if deep else there.folder(folder)[0]
        wanted = (found for found in _real(among) if _fits(found.path.split("/"), parts))
        return sorted(wanted, key=lambda found: found.path)

    def walk(self, folder: str) -> list[Found]:
        if not _remote(folder):
            return super().walk(folder)
        there = store(folder)
        found: list[Found] = []
        waiting = [folder.rstrip("/")]
        while waiting:
            files, folders = there.folder(waiting.pop())
            found += [item for item in _real(files) if not _hidden(item.path)]
            waiting += [inner for inner in folders if not _hidden(inner)]
        return sorted(found, key=lambda item: item.path)

    def sweep(self, folder: str) -> None:
        if _remote(folder):
            store(folder).sweep(folder.rstrip("/"))
        else:
            super().sweep(folder)


class _StorePartial:
    """A file on its way to a store, which cannot add to an object: it waits here until it is whole."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self._file, self._path = file, path
        self.size = 0

    def blocks(self) -> Iterator[bytes]:
        self._file.seek(0)
        while block := self._file.read(1 << 20):
            yield block

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.size += len(data)

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self.size = 0

    def keep(self) -> None:
        store(self._path).put(self._path, self._file, self.size)

    def discard(self) -> None:
        """Nothing of it is anywhere but here."""
