"""Verify a downloaded file block by block, while it arrives.

Servers send error pages with a status of success, connections end early, and files change between two reads.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.xml.decoder import MAX_FILE_BYTES, BoundedGunzip

_MAX_HEAD_BYTES: Final = 1 << 16
"""Number of bytes in which the root element must begin."""
_IGNORED: Final = rb"<\?.*?\?>|<!--.*?-->"
_LITERAL: Final = rb"\"[^\"]*+\"|'[^']*+'"
_SUBSET: Final = rb"\[(?:[^\]\"'<]|" + _LITERAL + rb"|" + _IGNORED + rb"|<(?!!--|\?))*+\]\s*+"
_DOCTYPE: Final = rb"<!DOCTYPE(?:[^\"'\[>]|" + _LITERAL + rb")*+(?:" + _SUBSET + rb")?>"
_PROLOG = re.compile(rb"(?:\xef\xbb\xbf)?(?:\s++|" + _IGNORED + rb"|" + _DOCTYPE + rb")*+", re.DOTALL)
_ROOT_TAG = re.compile(rb"<(?:[\w.-]++:)?([A-Za-z_][\w.-]*+)[\s/>]")


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
