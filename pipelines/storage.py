"""Object stores (gs://, s3:// ...) behind the same calls as local files, through Beam.

A name without a scheme is a local path and handled by :class:`LocalFiles`, so one object serves
inputs on one store and outputs on another.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator
from typing import BinaryIO, cast

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.files import TEMPORARY, Found, LocalFiles
from bioshards.corpus.partial import Partial


def _remote(path: str) -> bool:
    return "://" in path


def configure(options: PipelineOptions) -> None:
    """Give the file systems of this process their options (``--s3_endpoint_url`` ...)."""
    FileSystems.set_options(options)


def supported(path: str) -> bool:
    """Is there a file system for this path?  Those of the clouds come with ``bioshards[cloud]``."""
    try:
        return FileSystems.get_filesystem(path) is not None
    except ValueError:
        return False


def _temporary(path: str) -> str:
    """A name of its own beside the final one."""
    return f"{path.rpartition('/')[0]}/{TEMPORARY}{uuid.uuid4().hex}"


class AnyFiles(LocalFiles):
    """Local files and every store that Beam has a file system for."""

    def open(self, path: str) -> BinaryIO:
        if not _remote(path):
            return super().open(path)
        return cast(BinaryIO, FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED))

    @contextlib.contextmanager
    def write(self, path: str) -> Iterator[BinaryIO]:
        if not _remote(path):
            with super().write(path) as local:
                yield local
            return
        # Object stores make an object visible whole, when it is closed; a name of its own until
        # then keeps a writer that dies from ever showing half of it under the final one.
        temporary = _temporary(path)
        file = FileSystems.create(temporary, compression_type=CompressionTypes.UNCOMPRESSED)
        try:
            yield cast(BinaryIO, file)
        except BaseException:
            file.close()
            self.remove(temporary)
            raise
        file.close()
        FileSystems.rename([temporary], [path])

    @contextlib.contextmanager
    def partial(self, path: str, version: str) -> Iterator[Partial]:
        if not _remote(path):
            with super().partial(path, version) as local:
                yield local
            return
        part = _StorePartial(self, path)
        try:
            yield part
        finally:
            part.discard()

    def exists(self, path: str) -> bool:
        return bool(FileSystems.exists(path)) if _remote(path) else super().exists(path)

    def remove(self, path: str) -> None:
        if not _remote(path):
            super().remove(path)
        elif FileSystems.exists(path):
            FileSystems.delete([path])

    def names(self, folder: str) -> list[str]:
        if not _remote(folder):
            return super().names(folder)
        paths = (found.path[len(folder) + 1 :] for found in self.find(f"{folder}/*"))
        return sorted(name for name in paths if "/" not in name)

    def is_folder(self, path: str) -> bool:
        if not _remote(path):
            return super().is_folder(path)
        return not any(mark in path for mark in "*?[") and bool(self.walk(path))

    def find(self, pattern: str) -> list[Found]:
        if not _remote(pattern):
            return super().find(pattern)
        return sorted(
            (
                Found(data.path, data.size_in_bytes, f"{data.size_in_bytes}-{data.last_updated_in_seconds}")
                for result in FileSystems.match([pattern])
                for data in result.metadata_list
            ),
            key=lambda found: found.path,
        )

    def walk(self, folder: str) -> list[Found]:
        if not _remote(folder):
            return super().walk(folder)
        return self.find(f"{folder.rstrip('/')}/**")


class _StorePartial:
    """A file on its way to an object store, which cannot add to an object: one broken off begins anew.

    The object is made with its first bytes: S3 refuses to end an upload that has none.
    """

    def __init__(self, files: AnyFiles, path: str) -> None:
        self._files, self._path = files, path
        self._temporary = _temporary(path)
        self._file: BinaryIO | None = None
        self.size = 0

    def blocks(self) -> Iterator[bytes]:
        return iter(())

    def write(self, data: bytes) -> None:
        if self._file is None:
            self._file = cast(
                BinaryIO,
                FileSystems.create(self._temporary, compression_type=CompressionTypes.UNCOMPRESSED),
            )
        self._file.write(data)
        self.size += len(data)

    def restart(self) -> None:
        self.discard()
        self.size = 0

    def keep(self) -> None:
        if self._file is None:
            return
        self._file.close()
        self._file = None
        FileSystems.rename([self._temporary], [self._path])

    def discard(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            self._files.remove(self._temporary)
