"""Archives in memory: tar, tar.gz and zip."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile

ArchiveFiles = list[tuple[str, bytes]]


def pack_tar(files: ArchiveFiles, tar_format: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tar_format) as archive:
        for name, data in files:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def pack_tar_gz(files: ArchiveFiles) -> bytes:
    return gzip.compress(pack_tar(files), mtime=0)


def pack_zip(files: ArchiveFiles, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files:
            archive.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


class TrickleReader(io.BytesIO):
    """A reader that returns at most ``step`` bytes at a time, as pipes and connections do."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__(data)
        self._step = step
        self.reads = 0

    def read(self, size: int | None = -1, /) -> bytes:
        self.reads += 1
        return super().read(self._step if size is None or size < 0 else min(size, self._step))
