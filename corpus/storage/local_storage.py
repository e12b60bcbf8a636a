"""Storage on local disks, and what other storages share with it.

Files are written under a temporary name, flushed to disk and renamed, so that a file under its final name is
complete.  A temporary file is locked while its writer lives.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import heapq
import os
import re
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import BinaryIO, ClassVar, Final

from bioshards.corpus.errors import DiskFullError
from bioshards.corpus.storage.locks import RunLock, lock_folder, open_locked, remove_unlocked
from bioshards.corpus.storage.storage_protocol import (
    PARTIAL_PREFIX,
    TEMPORARY_PREFIX,
    FileInfo,
    OnRepeatedFolder,
    ResumableFile,
    Storage,
)

DISK_FULL_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT)
"""Numbers of the errors of a full disk and of a used-up quota."""
_DANGLING_LINK_ERRORS: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def make_disk_full_error(path: str, number: int) -> DiskFullError:
    """Return the error for a path that cannot be written, with the room that its disk has left."""
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    status = os.statvfs(folder)
    free = f"{status.f_bavail * status.f_frsize:,} bytes are free"
    if status.f_files and not status.f_favail:
        free += " and no further file can be made"
    return DiskFullError(f"the disk is full: {os.strerror(number)} in {folder}, where {free}", number)


def get_temporary_folder() -> str:
    """Return the folder of temporary files, without writing to it as :mod:`tempfile` does."""
    return str(tempfile.tempdir or os.environ.get("TMPDIR") or "/tmp")


@contextlib.contextmanager
def locate_full_disk(path: str) -> Iterator[None]:
    """Inside, a full disk is that of this path, unless the error says another.

    Raises:
        DiskFullError: the disk is full.
    """
    try:
        yield
    except DiskFullError:
        raise
    except OSError as error:
        if error.errno in DISK_FULL_ERRORS:
            raise make_disk_full_error(path, error.errno) from error
        raise


def matches_glob(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return True if the names of a path match those of a pattern, as :mod:`glob` has it.

    ``**`` matches any folders but hidden ones.
    """
    if not pattern or not names:
        return not pattern and not names
    first, *rest = pattern
    is_visible = first.startswith(".") or not names[0].startswith(".")
    if first != "**":
        return is_visible and fnmatchcase(names[0], first) and matches_glob(names[1:], rest)
    rest_of_pattern = pattern if rest or names[1:] else ()  # a last one takes any file
    return (bool(rest) and matches_glob(names, rest)) or (
        is_visible and matches_glob(names[1:], rest_of_pattern)
    )


def ignore_extension_case(pattern: str) -> str:
    """Return a pattern that matches the extension in any case: ``*.[xX][mM][lL]`` for ``*.xml``."""
    stem, extension = os.path.splitext(pattern)
    return stem + re.sub("[A-Za-z]", lambda letter: f"[{letter[0].lower()}{letter[0].upper()}]", extension)


def _get_info(path: str) -> FileInfo:
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno not in _DANGLING_LINK_ERRORS:
            raise
        status = os.lstat(path)  # a dangling link: listed here, reported when it is read
    return FileInfo(path, status.st_size, f"{status.st_size}-{status.st_mtime_ns}")


def _walk_folders(
    tops: list[str],
    with_hidden_folders: bool = False,
    with_hidden_files: bool = False,
    on_repeated_folder: OnRepeatedFolder | None = None,
) -> Iterator[FileInfo]:
    """Yield the files of folders at any depth, each folder once, in no order.

    Links to folders are followed after all folders that lie in ``tops`` themselves, so that a link to one
    of these changes no path.

    Raises:
        OSError: a folder cannot be listed, or a file not be looked at.
    """
    path_by_folder_id: dict[tuple[int, int], str] = {}
    folders, links = tops[::-1], list[str]()
    while folders or links:
        folder = folders.pop() if folders else heapq.heappop(links)
        try:
            status = os.stat(folder)
            first_path = path_by_folder_id.setdefault((status.st_dev, status.st_ino), folder)
            if first_path != folder:
                if on_repeated_folder:
                    on_repeated_folder(folder, first_path)
                continue
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except (FileNotFoundError, NotADirectoryError):  # removed since its parent was listed
            continue
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_link_to_folder = entry.is_symlink() and os.path.isdir(entry.path)
            is_wanted = with_hidden_folders if is_folder or is_link_to_folder else with_hidden_files
            if entry.name.startswith(".") and not is_wanted:
                continue
            if is_folder:
                folders.append(entry.path)
            elif is_link_to_folder:
                heapq.heappush(links, entry.path)
            else:
                yield _get_info(entry.path)


def _glob_at_any_depth(pattern: str) -> Iterator[FileInfo]:
    """Yield the files that match a pattern with ``**``, each folder once.

    ``glob`` follows links in circles, and skips folders that it cannot list.
    """
    parts = pattern.split("/")
    depth = parts.index("**")
    is_hidden_wanted = any(part.startswith(".") for part in parts[depth:])
    top_pattern = "/".join([*parts[:depth], ""])
    tops = list(_list_matches(top_pattern)) if top_pattern else ["./"]
    tops.sort(key=lambda top: (os.path.islink(top.rstrip("/")), top))
    for info in _walk_folders(tops, is_hidden_wanted, is_hidden_wanted):
        path = info.path if top_pattern else info.path.removeprefix("./")
        if matches_glob(path.split("/"), parts):
            yield FileInfo(path, info.size, info.stamp)


def _list_matches(pattern: str) -> Iterator[str]:
    """Yield the paths that match a pattern without ``**``, as :mod:`glob` does where it may look.

    Raises:
        OSError: it cannot be seen whether there are any: ``glob`` finds none then.
    """
    folder, name = os.path.split(pattern)
    for parent in _list_matches(folder) if glob.has_magic(folder) else [folder]:
        if not glob.has_magic(name):
            path = os.path.join(parent, name)
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                os.lstat(path)
                yield path
            continue
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(parent or ".") as entries:
            for entry in entries:
                if matches_glob([entry.name], [name]):
                    yield os.path.join(parent, entry.name)


class LocalStorage(Storage):
    """Files on this machine; the stamp is size and modification time.

    Args:
        checks_locks: a run that has lost its lock writes nothing more.  False for a cluster, where a job goes
            on when the command ends that has started it, and with that its lock.
    """

    is_remote: ClassVar[bool] = False

    def __init__(self, checks_locks: bool = True) -> None:
        self._checks_locks = checks_locks
        self._held_locks: list[RunLock] = []

    def open(self, path: str) -> BinaryIO:
        return open(path, "rb")

    @contextlib.contextmanager
    def write(self, path: str) -> Iterator[BinaryIO]:
        folder = os.path.dirname(path) or "."
        temporary = os.path.join(folder, f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
        try:
            with locate_full_disk(folder):
                os.makedirs(folder, exist_ok=True)
                with open_locked(temporary) as file:
                    yield file
                    file.flush()
                    os.fsync(file.fileno())
                    self.check_locks()
                    os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(temporary)
            raise

    @contextlib.contextmanager
    def open_resumable(self, path: str, version: str) -> Iterator[ResumableFile]:
        folder, name = os.path.split(path)
        os.makedirs(folder, exist_ok=True)
        partial_name = f"{PARTIAL_PREFIX}{version}-{name}"
        for sibling in os.listdir(folder):
            is_version = sibling.startswith(PARTIAL_PREFIX) and sibling.endswith(f"-{name}")
            if is_version and sibling != partial_name:
                remove_unlocked(os.path.join(folder, sibling))
        partial_path = os.path.join(folder, partial_name)
        with locate_full_disk(folder), open_locked(partial_path) as file:
            yield ResumableFile(file, partial_path, path, self.check_locks)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def remove(self, path: str) -> None:
        self.check_locks()
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)

    def list_names(self, folder: str) -> list[str]:
        try:
            with os.scandir(folder) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def remove_temporaries(self, folder: str) -> None:
        for name in self.list_names(folder):
            if name.startswith(TEMPORARY_PREFIX):
                remove_unlocked(os.path.join(folder, name))

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def glob(self, pattern: str) -> list[FileInfo]:
        if os.path.isfile(pattern):
            return [_get_info(pattern)]
        if "**" in pattern.split("/"):
            return sorted(_glob_at_any_depth(pattern), key=lambda item: item.path)
        return [_get_info(path) for path in sorted(_list_matches(pattern)) if not os.path.isdir(path)]

    def walk(
        self,
        folder: str,
        on_repeated_folder: OnRepeatedFolder | None = None,
        with_hidden_files: bool = False,
    ) -> list[FileInfo]:
        infos = _walk_folders([folder], False, with_hidden_files, on_repeated_folder)
        return sorted(infos, key=lambda item: item.path)

    @contextlib.contextmanager
    def lock(self, path: str, folder: str, is_forced: bool = False) -> Iterator[None]:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with lock_folder(path, folder) as lock, self._held(lock):
            yield

    @contextlib.contextmanager
    def _held(self, lock: RunLock) -> Iterator[None]:
        """Check inside the block, before anything is written, that this run holds the lock."""
        self._held_locks.append(lock)
        try:
            yield
        finally:
            self._held_locks.remove(lock)

    def check_locks(self) -> None:
        for lock in self._held_locks if self._checks_locks else ():
            lock.check(self.open)
