"""Object stores of other kinds (azfs:// ...), by whatever file system Beam has for them."""

from __future__ import annotations

import contextlib
import glob
import io
import shutil
import uuid
from collections.abc import Iterator
from typing import BinaryIO

from apache_beam.io.filesystem import CompressionTypes
from apache_beam.io.filesystems import FileSystems

from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.files import TEMPORARY, Found

from .object_store import opened


class BeamStore:
    """What Beam's file systems do, all or nothing: an object has another name until it is whole."""

    def open(self, path: str) -> BinaryIO:
        with _failures(path):
            if not FileSystems.exists(path):
                raise FileNotFoundError(f"{path} is not there")
            file = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)

        def fetch(start: int, count: int) -> bytes:
            with _failures(path):
                file.seek(start)
                return bytes(file.read(count))

        def size() -> int:
            with _failures(path):
                return int(file.seek(0, io.SEEK_END))

        return opened(fetch, size)

    def put(self, path: str, file: BinaryIO, size: int) -> None:
        temporary = f"{path.rpartition('/')[0]}/{TEMPORARY}{uuid.uuid4().hex}"
        file.seek(0)
        with _failures(path):
            with FileSystems.create(temporary, compression_type=CompressionTypes.UNCOMPRESSED) as whole:
                shutil.copyfileobj(file, whole, 1 << 20)
            FileSystems.rename([temporary], [path])

    def remove(self, path: str) -> None:
        with _failures(path):
            if FileSystems.exists(path):
                FileSystems.delete([path])

    def look(self, path: str) -> Found | None:
        return next((found for found in self.below(path) if found.path == path), None)

    def below(self, prefix: str) -> Iterator[Found]:
        with _failures(prefix):
            [listed] = FileSystems.match([f"{glob.escape(prefix)}**"])
            for data in listed.metadata_list:
                stamp = f"{data.size_in_bytes}-{data.last_updated_in_seconds}"
                yield Found(data.path, data.size_in_bytes, stamp)

    def folder(self, folder: str) -> tuple[list[Found], list[str]]:
        begin = folder if folder.endswith("/") else f"{folder}/"
        files: list[Found] = []
        folders: set[str] = set()
        for found in self.below(begin):
            first, deeper, _ = found.path.removeprefix(begin).partition("/")
            if deeper:
                folders.add(f"{begin}{first}/")
            else:
                files.append(found)
        return files, sorted(folders)

    def sweep(self, folder: str) -> None:
        begin = f"{folder.rstrip('/')}/{TEMPORARY}"
        for left in list(self.below(begin)):
            self.remove(left.path)

    def probe(self, path: str) -> None:
        next(self.below(path), None)


@contextlib.contextmanager
def _failures(path: str) -> Iterator[None]:
    """An error may be any library's: it is nobody's fault until more is known."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:
        raise TransientStorageError(f"the store failed at {path}: {error}") from error
