"""A Beam file system in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

from apache_beam.io.filesystem import BeamIOError, FileMetadata, FileSystem

MEMORY_OBJECTS: dict[str, bytes] = {}


class _MemoryObject(io.BytesIO):
    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path

    def close(self) -> None:
        if not self.closed:
            MEMORY_OBJECTS[self._path] = self.getvalue()
        super().close()


class MemoryFileSystem(FileSystem):  # type: ignore[misc]
    """``mem://`` paths."""

    @classmethod
    def scheme(cls) -> str:
        return "mem"

    def join(self, basepath: str, *paths: str) -> str:
        return "/".join([basepath, *paths])

    def split(self, path: str) -> tuple[str, ...]:
        return tuple(path.rsplit("/", 1))

    def mkdirs(self, path: str) -> None: ...

    def has_dirs(self) -> bool:
        return False

    def _list(self, dir_or_prefix: str) -> Iterator[FileMetadata]:
        for path, data in MEMORY_OBJECTS.items():
            if path.startswith(dir_or_prefix):
                yield FileMetadata(path, len(data), 1.0)

    def create(self, path: str, *_: Any, **__: Any) -> Any:
        return _MemoryObject(path)

    def open(self, path: str, *_: Any, **__: Any) -> Any:
        if path not in MEMORY_OBJECTS:
            raise BeamIOError(f"no object {path}")
        return io.BytesIO(MEMORY_OBJECTS[path])

    def copy(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        for source, destination in zip(source_file_names, destination_file_names, strict=True):
            MEMORY_OBJECTS[destination] = MEMORY_OBJECTS[source]

    def rename(self, source_file_names: list[str], destination_file_names: list[str]) -> None:
        self.copy(source_file_names, destination_file_names)
        self.delete(source_file_names)

    def exists(self, path: str) -> bool:
        return path in MEMORY_OBJECTS

    def size(self, path: str) -> int:
        return len(MEMORY_OBJECTS[path])

    def last_updated(self, path: str) -> float:
        return 1.0

    def checksum(self, path: str) -> str:
        return str(len(MEMORY_OBJECTS[path]))

    def metadata(self, path: str) -> FileMetadata:
        return FileMetadata(path, len(MEMORY_OBJECTS[path]), 1.0)

    def delete(self, paths: list[str]) -> None:
        for path in paths:
            del MEMORY_OBJECTS[path]
