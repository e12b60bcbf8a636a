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
from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX, FileInfo

from .object_store import open_ranged


class BeamFileSystemStore:
    """What Beam's file systems do, all or nothing: an object has another name until it is whole."""

    def open(self, path: str) -> BinaryIO:
        with _translate_errors(path):
            if not FileSystems.exists(path):
                raise FileNotFoundError(f"{path} is not there")
            file = FileSystems.open(path, compression_type=CompressionTypes.UNCOMPRESSED)

        def read_range(start: int, count: int) -> bytes:
            with _translate_errors(path):
                file.seek(start)
                return bytes(file.read(count))

        def get_size() -> int:
            with _translate_errors(path):
                return int(file.seek(0, io.SEEK_END))

        return open_ranged(read_range, get_size)

    def put(self, path: str, file: BinaryIO, size: int) -> None:
        temporary_path = f"{path.rpartition('/')[0]}/{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
        file.seek(0)
        with _translate_errors(path):
            with FileSystems.create(temporary_path, compression_type=CompressionTypes.UNCOMPRESSED) as target:
                shutil.copyfileobj(file, target, 1 << 20)
            FileSystems.rename([temporary_path], [path])

    def remove(self, path: str) -> None:
        with _translate_errors(path):
            if FileSystems.exists(path):
                FileSystems.delete([path])

    def get_info(self, path: str) -> FileInfo | None:
        return next((info for info in self.list_prefix(path) if info.path == path), None)

    def list_prefix(self, prefix: str) -> Iterator[FileInfo]:
        with _translate_errors(prefix):
            [match] = FileSystems.match([f"{glob.escape(prefix)}**"])
            for metadata in match.metadata_list:
                stamp = f"{metadata.size_in_bytes}-{metadata.last_updated_in_seconds}"
                yield FileInfo(metadata.path, metadata.size_in_bytes, stamp)

    def list_folder(self, folder: str) -> tuple[list[FileInfo], list[str]]:
        prefix = folder if folder.endswith("/") else f"{folder}/"
        files: list[FileInfo] = []
        folders: set[str] = set()
        for info in self.list_prefix(prefix):
            name, deeper, _ = info.path.removeprefix(prefix).partition("/")
            if deeper:
                folders.add(f"{prefix}{name}/")
            else:
                files.append(info)
        return files, sorted(folders)

    def remove_temporaries(self, folder: str) -> None:
        prefix = f"{folder.rstrip('/')}/{TEMPORARY_PREFIX}"
        for leftover in list(self.list_prefix(prefix)):
            self.remove(leftover.path)

    def probe(self, path: str) -> None:
        next(self.list_prefix(path), None)


@contextlib.contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    """Raise any library's error as a transient one."""
    try:
        yield
    except FileNotFoundError:
        raise
    except Exception as error:
        raise TransientStorageError(f"the store failed at {path}: {error}") from error
