"""Is a downloaded file what it should be?  Asked while it comes in, block by block.

Servers answer an error with the status of success and a page, connections end early, files change
between two reads: only the content tells.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.xml_blocks import MAX_FILE_BYTES, Gunzip

_HEAD_BYTES: Final = 1 << 16
"""How far into a document its root may begin."""
_PROLOG = re.compile(
    rb"(?:\xef\xbb\xbf)?(?:\s++|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^>\[]*+(?:\[[^\]]*+\]\s*+)?>)*+", re.DOTALL
)
_ROOT = re.compile(rb"<(?:[\w.-]++:)?([A-Za-z_][\w.-]*+)[\s/>]")


def root_of(head: bytes) -> str | None:
    """The local name of the root of the XML document that begins so; None where there is none."""
    prolog = _PROLOG.match(head)
    root = _ROOT.match(head, prolog.end() if prolog else 0)
    return root[1].decode() if root else None


def _too_large() -> BadFileError:
    return BadFileError("too-large", f"more than {MAX_FILE_BYTES >> 30} GiB of XML")


class Check:
    """Feed it a gzipped XML document's bytes as they come; it ends with their MD5, or raises.

    Checked are gzip's magic, every block's CRC to the end, the size unpacked, and the root's name.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self._md5 = hashlib.md5(usedforsecurity=False)
        self._gunzip = Gunzip()
        self._first = b""
        self._head: bytes | None = b""
        self._size = self._unpacked = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes.

        Raises:
            BadFileError: they cannot belong to the file that is expected.
        """
        self._md5.update(data)
        self._size += len(data)
        if self._size > MAX_FILE_BYTES:  # padding and empty blocks unpack to nothing, for ever
            raise _too_large()
        if len(self._first) < 2:
            self._first += data[:80]
            if self._first[:2] not in (b"\x1f\x8b", b"\x1f", b""):
                raise BadFileError("not-gzip", f"what came is no gzip file; it begins {self._first!r}")
        for block in self._gunzip.blocks(data):
            self._unpacked += len(block)
            if self._unpacked > MAX_FILE_BYTES:
                raise _too_large()
            if self._head is not None:
                self._head += block
                if len(self._head) >= _HEAD_BYTES:
                    self._look_at_root()

    def finish(self, md5: str | None) -> str:
        """The file's MD5, once all of it is fed; ``md5`` is the published one, None where there is none.

        Raises:
            BadFileError: it is cut short, is no document of the expected kind, or has another MD5.
        """
        found = self._md5.hexdigest()
        if md5 is not None and found != md5:
            raise BadFileError("checksum", f"its MD5 is {found}, the published one is {md5}")
        if not self._size:
            raise BadFileError("empty-file", "it has no bytes")
        self._gunzip.finish()
        if self._head is not None:
            self._look_at_root()
        return found

    def _look_at_root(self) -> None:
        root = root_of(self._head or b"")
        if root != self.root:
            named = f"<{root}>" if root else f"none: it begins {(self._head or b'')[:80]!r}"
            raise BadFileError("wrong-root", f"its root should be <{self.root}>, it is {named}")
        self._head = None
