"""The mirror: a folder of verified copies in the layout of the servers.

    MIRROR/pubmed/baseline/pubmed26n0001.xml.gz       complete and verified
                          /pubmed26n0001.xml.gz.md5   as NLM publishes it
                          /.part-5c1b09f2-...         incomplete download
                          /.records/...xml.gz.json    record of the verification

Other programs can read the folder, and ``--input MIRROR/pubmed`` works without a network.  A file with the
right checksum is not fetched again.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from bioshards.corpus import progress_notes
from bioshards.corpus.download.http_client import Connection, NotFoundError, RefusedError
from bioshards.corpus.download.listing import RemoteFile
from bioshards.corpus.errors import BadFileError
from bioshards.corpus.manifest import utc_now
from bioshards.corpus.storage import checksums
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.retry import READ_RETRY_POLICY, retry
from bioshards.corpus.storage.storage_protocol import FileInfo, ResumableFile, Storage
from bioshards.corpus.xml.decoder import MAX_FILE_BYTES, BoundedGunzip

_SETTLE_TIME: Final = timedelta(days=1)
"""Listings give minutes in an unknown time zone: a file that was verified sooner than this after its
modification may have been replaced without a change of the listing."""
_MAX_SIDECAR_BYTES: Final = 1 << 20
_MAX_HEAD_BYTES: Final = 1 << 16
"""Number of bytes in which the root element must begin."""
_MD5_PATTERN = re.compile(rb"\b[0-9a-fA-F]{32}\b")
_IGNORED: Final = rb"<\?.*?\?>|<!--.*?-->"
_LITERAL: Final = rb"\"[^\"]*+\"|'[^']*+'"
_SUBSET: Final = rb"\[(?:[^\]\"'<]|" + _LITERAL + rb"|" + _IGNORED + rb"|<(?!!--|\?))*+\]\s*+"
_DOCTYPE: Final = rb"<!DOCTYPE(?:[^\"'\[>]|" + _LITERAL + rb")*+(?:" + _SUBSET + rb")?>"
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s++|" + _IGNORED + rb"|" + _DOCTYPE + rb")*+", re.DOTALL)
"""What may precede the root element.  As tolerant as the readers of the files: an XML parser would refuse a
file for a declaration in its second line, or for a byte of another encoding in a comment."""
_ROOT_TAG = re.compile(rb"<(?:[\w.-]++:)?([A-Za-z_][\w.-]*+)[\s/>]")


@dataclass(frozen=True, slots=True)
class MirroredFile:
    """A verified file in the mirror.

    Attributes:
        info: path, size and stamp.
        md5: MD5 of the content.
        is_md5_published: True if the server publishes this MD5.
        retrieved_at: UTC time at which it was verified.
        fetched_bytes: bytes transferred in this run; 0 if it was in the mirror.
        download_seconds: duration of its download in this run.
    """

    info: FileInfo
    md5: str
    is_md5_published: bool
    retrieved_at: str
    fetched_bytes: int = 0
    download_seconds: float = 0


@dataclass(frozen=True, slots=True)
class _Record:
    """Record of a verification, a JSON file beside the file.

    Attributes:
        url, listing_text: of the file on the server when it was fetched.
        stamp: of the copy; '' if a reader found it damaged.
        checked_at: UTC time at which it was last compared with the server.
        md5, md5_published, retrieved_at: as in :class:`MirroredFile`.
    """

    url: str
    md5: str
    md5_published: bool
    stamp: str
    listing_text: str
    retrieved_at: str
    checked_at: str

    def has_same_listing(self, remote_file: RemoteFile) -> bool:
        """Return True if the listing shows no change; one without a readable date shows none."""
        return self.url == remote_file.url and remote_file.listing_text in ("", self.listing_text)

    def is_unchanged(self, info: FileInfo, remote_file: RemoteFile) -> bool:
        """Return True if the file and its listing have not changed since it was verified."""
        return self.stamp == info.stamp and self.has_same_listing(remote_file)

    def is_settled(self, remote_file: RemoteFile) -> bool:
        """Return True if it was checked late enough for a replacement to show in the listing."""
        if remote_file.modified_at is None:
            return False
        checked_at = datetime.fromisoformat(self.checked_at).replace(tzinfo=None)
        return checked_at - remote_file.modified_at > _SETTLE_TIME

    def describe(self, info: FileInfo) -> MirroredFile:
        """Return the file that is recorded."""
        return MirroredFile(info, self.md5, self.md5_published, self.retrieved_at)


# msgspec describes a type at its first use, and crashes if threads do so at the same time: describe it here.
msgspec.json.Decoder(_Record)


@dataclass(frozen=True, slots=True)
class Mirror:
    """A mirror folder on any storage."""

    storage: Storage
    folder: str

    def path(self, remote_file: RemoteFile) -> str:
        """Return the path of a file in the mirror."""
        return f"{self.folder}/{remote_file.path}"

    def find_mirrored(
        self, connection: Connection | None, remote_files: list[RemoteFile], is_read_only: bool = False
    ) -> dict[RemoteFile, MirroredFile]:
        """Return the files that are in the mirror, verified and up to date.

        Reads records, and for recently modified files the published MD5; removes temporary files of killed
        runs.

        Args:
            connection: to the server; without one, recently modified files count as missing.
            remote_files: files to look up.
            is_read_only: write and remove nothing.
        """
        folders = sorted({self.path(remote_file).rpartition("/")[0] for remote_file in remote_files})
        if not is_read_only:
            for folder in folders:
                remove_temporaries(self.storage, folder)
                remove_temporaries(self.storage, f"{folder}/.records")
        infos_by_path = {item.path: item for folder in folders for item in self.storage.walk(folder)}
        existing = [remote_file for remote_file in remote_files if self.path(remote_file) in infos_by_path]
        records = prefetch_map(
            self.storage, lambda remote_file: _read_record(self.storage, self.path(remote_file)), existing
        )
        mirrored = {}
        for remote_file, record in zip(existing, records, strict=True):
            info = infos_by_path[self.path(remote_file)]
            if record is None or not record.is_unchanged(info, remote_file):
                continue
            if remote_file.has_md5_file and not record.is_settled(remote_file):
                try:
                    published_md5 = self._read_published_md5(connection, remote_file) if connection else None
                except (BadFileError, RefusedError):  # an error page instead: `fetch` retries and reports it
                    continue
                if published_md5 is None or published_md5 != record.md5:
                    continue
                if not is_read_only:
                    _write_record(self.storage, info.path, replace(record, checked_at=utc_now()))
            mirrored[remote_file] = record.describe(info)
        return mirrored

    def fetch(self, connection: Connection, remote_file: RemoteFile) -> MirroredFile:
        """Fetch a file unless a verified copy is in the mirror.

        Raises:
            BadFileError: the content is wrong, after as many reads as :data:`READ_RETRY_POLICY` allows.
            DownloadError: the request failed.
        """
        try:
            return retry(lambda: self._fetch_once(connection, remote_file), BadFileError, READ_RETRY_POLICY)
        except NotFoundError as error:
            raise BadFileError(
                "gone", f"{error}; it was listed when the run started. Rerun the command for the new listing"
            ) from error
        except BadFileError as error:
            raise BadFileError(
                error.reason, f"{error.detail} (read {READ_RETRY_POLICY.max_attempts} times)"
            ) from error

    def _fetch_once(self, connection: Connection, remote_file: RemoteFile) -> MirroredFile:
        try:
            published_md5 = self._read_published_md5(connection, remote_file)
            if mirrored_file := self._find_verified(remote_file, published_md5):
                return mirrored_file
            if remote_file.is_md5_listed and published_md5 is None:
                raise BadFileError("no-checksum", "its .md5 is listed and is not there")
            return self._download(connection, remote_file, published_md5)
        except BadFileError as error:
            raise BadFileError(error.reason, f"{remote_file.url}: {error.detail}") from error

    def _read_published_md5(self, connection: Connection, remote_file: RemoteFile) -> str | None:
        """Read the MD5 that the server publishes for a file; None if there is none."""
        if not remote_file.has_md5_file:
            return None
        try:
            body = connection.read(f"{remote_file.url}.md5", _MAX_SIDECAR_BYTES).body
        except NotFoundError:  # files may be posted before their checksums
            return None
        is_page = body.lstrip().startswith(b"<")  # which may have numbers of 32 digits too
        match = None if is_page else _MD5_PATTERN.search(body)
        if match is None:
            raise BadFileError("no-checksum", f"its .md5 has no MD5; it begins {body[:80]!r}")
        return match[0].decode().lower()

    def _find_verified(self, remote_file: RemoteFile, published_md5: str | None) -> MirroredFile | None:
        """Return the copy in the mirror if it is the file on the server, else None."""
        path = self.path(remote_file)
        # glob() reads a folder name such as mirror[1] as a pattern.
        info = next((item for item in self.storage.glob(path) if item.path == path), None)
        if info is None:
            return None
        record = _read_record(self.storage, path)
        if record and record.is_unchanged(info, remote_file) and published_md5 in (None, record.md5):
            is_published = published_md5 is not None or record.md5_published
            return self._save_record(
                remote_file, replace(record.describe(info), is_md5_published=is_published)
            )
        # The file was copied or touched: compare its MD5.
        expected_md5 = published_md5
        if expected_md5 is None and record and record.has_same_listing(remote_file):
            expected_md5 = record.md5
        if expected_md5 is None:
            return None
        with self.storage.open(path) as file:
            if checksums.md5_of_file(file) != expected_md5:
                return None
        return self._save_record(
            remote_file, MirroredFile(info, expected_md5, published_md5 is not None, utc_now())
        )

    def _download(
        self, connection: Connection, remote_file: RemoteFile, published_md5: str | None
    ) -> MirroredFile:
        path = self.path(remote_file)
        started, fetched_bytes = time.monotonic(), 0
        # The version identifies the content: an incomplete file of other content is not resumed.
        version = hashlib.md5(
            (published_md5 or remote_file.listing_text).encode(), usedforsecurity=False
        ).hexdigest()[:8]
        with self.storage.open_resumable(path, version) as resumable:
            # Another process may have fetched the file while this one waited.
            if mirrored_file := self._find_verified(remote_file, published_md5):
                resumable.discard()
                return mirrored_file
            verifier = _replay_blocks(DownloadVerifier(remote_file.root_name), resumable)
            try:
                for offset, block in connection.stream(remote_file.url, resumable.size):
                    if offset != resumable.size:
                        resumable.restart()
                        verifier = DownloadVerifier(remote_file.root_name)
                    resumable.write(block)
                    fetched_bytes += len(block)
                    progress_notes.count("received", len(block))
                    verifier.feed(block)
                actual_md5 = verifier.finish(published_md5)
            except (BadFileError, NotFoundError):
                resumable.discard()
                raise
            self.storage.remove(_record_path(path))
            self.storage.remove(f"{path}.md5")
            resumable.commit()
            progress_notes.count("fetched")
            [info] = self.storage.glob(path)
            seconds = round(time.monotonic() - started, 3)
            # Write the record while this process holds the lock: a waiting process then finds the file.
            return self._save_record(
                remote_file,
                MirroredFile(info, actual_md5, published_md5 is not None, utc_now(), fetched_bytes, seconds),
            )

    def _save_record(self, remote_file: RemoteFile, mirrored_file: MirroredFile) -> MirroredFile:
        if mirrored_file.is_md5_published:
            with self.storage.write(f"{mirrored_file.info.path}.md5") as sidecar:
                sidecar.write(f"MD5({remote_file.name})= {mirrored_file.md5}\n".encode())
        record = _Record(
            url=remote_file.url,
            md5=mirrored_file.md5,
            md5_published=mirrored_file.is_md5_published,
            stamp=mirrored_file.info.stamp,
            listing_text=remote_file.listing_text,
            retrieved_at=mirrored_file.retrieved_at,
            checked_at=utc_now(),
        )
        _write_record(self.storage, self.path(remote_file), record)
        return mirrored_file


def remove_temporaries(storage: Storage, folder: str) -> None:
    """Remove the files that killed runs were writing in a folder of a mirror, which several runs may share.

    On local disks only: an object store cannot tell the uploads of a killed run from those of another one.
    """
    if "://" not in folder:
        storage.remove_temporaries(folder)


def distrust_copy(storage: Storage, path: str) -> None:
    """Forget that a file of a mirror was verified, because a reader found it damaged.

    The next run compares its MD5, and downloads it again if that is wrong.
    """
    record = _read_record(storage, path)
    if record is not None:
        _write_record(storage, path, replace(record, stamp=""))


def _record_path(path: str) -> str:
    """Return the path of the record of a file in a mirror."""
    folder, _, name = path.rpartition("/")
    return f"{folder}/.records/{name}.json"


def _read_record(storage: Storage, path: str) -> _Record | None:
    """Return the record of a file; None if it has none, or a damaged one."""
    try:
        value = storage.read_json(_record_path(path))
        if checksums.has_wrong_sha256(value):
            return None
        record = msgspec.convert(value, _Record)
        for timestamp in (record.retrieved_at, record.checked_at):
            datetime.fromisoformat(timestamp)
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    return record


def _write_record(storage: Storage, path: str, record: _Record) -> None:
    storage.write_json(_record_path(path), checksums.add_sha256(msgspec.to_builtins(record)))


def _replay_blocks(verifier: DownloadVerifier, resumable: ResumableFile) -> DownloadVerifier:
    """Feed the verifier with an incomplete file; restart the file if it is invalid."""
    try:
        for block in resumable.read_blocks():
            verifier.feed(block)
    except BadFileError:
        resumable.restart()
        return DownloadVerifier(verifier.root_name)
    return verifier


def parse_root_name(head: bytes) -> str | None:
    """Return the local name of the root element of an XML document that begins with ``head``, or None."""
    prolog = _PROLOG.match(head)
    match = _ROOT_TAG.match(head, prolog.end() if prolog else 0)
    return match[1].decode() if match else None


def _make_too_large_error() -> BadFileError:
    return BadFileError("too-large", f"more than {MAX_FILE_BYTES >> 30} GiB of XML")


class DownloadVerifier:
    """Streaming check of a gzipped XML document.

    Checks the magic number and all CRCs of gzip, the uncompressed size and the name of the root element.
    """

    def __init__(self, root_name: str) -> None:
        self.root_name = root_name
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._gunzip = BoundedGunzip()
        self._first_bytes = b""
        self._head: bytes | None = b""
        self._size = self._unpacked = 0

    def feed(self, data: bytes) -> None:
        """Check the next bytes.

        Raises:
            BadFileError: they cannot be part of the expected file.
        """
        self._md5.update(data)
        self._size += len(data)
        if self._size > MAX_FILE_BYTES:  # padding and empty blocks add nothing to the uncompressed size
            raise _make_too_large_error()
        if len(self._first_bytes) < 2:
            self._first_bytes += data[:80]
            if self._first_bytes[:2] not in (b"\x1f\x8b", b"\x1f", b""):
                detail = f"the response is not a gzip file; it begins {self._first_bytes!r}"
                if self._first_bytes.lstrip().startswith(b"<"):
                    detail += (
                        ". It is a web page: open the address in a browser, your network may want a login"
                    )
                raise BadFileError("not-gzip", detail)
        for block in self._gunzip.decompress(data):
            self._unpacked += len(block)
            if self._unpacked > MAX_FILE_BYTES:
                raise _make_too_large_error()
            if self._head is not None:
                self._head += block
                if len(self._head) >= _MAX_HEAD_BYTES:
                    self._check_root()

    def finish(self, published_md5: str | None) -> str:
        """Check the end of the file and return its MD5.

        Args:
            published_md5: MD5 that the server publishes, if any.

        Raises:
            BadFileError: the file is truncated, has another root element, or another MD5.
        """
        actual_md5 = self._md5.hexdigest()
        if published_md5 is not None and actual_md5 != published_md5:
            raise BadFileError("checksum", f"its MD5 is {actual_md5}, the published one is {published_md5}")
        if not self._size:
            raise BadFileError("empty-file", "it has no bytes")
        self._gunzip.finish()
        if self._head is not None:
            self._check_root()
        return actual_md5

    def _check_root(self) -> None:
        root_name = parse_root_name(self._head or b"")
        if root_name != self.root_name:
            description = f"<{root_name}>" if root_name else f"none: it begins {(self._head or b'')[:80]!r}"
            raise BadFileError("wrong-root", f"its root should be <{self.root_name}>, it is {description}")
        self._head = None
