"""Tell the files that a server refuses from a server that serves nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from bioshards.corpus.download.http_client import (
    Connection,
    DownloadError,
    NotFoundError,
    OutageError,
    RefusedError,
    UnreachableError,
)


@dataclass
class OutageDetector:
    """Watches the downloads from one server, in several threads.

    An unreachable file, or a number of refused ones in a row, may be the server's end or only that of these
    files.  The page that :attr:`read_page` reads was there when the run began: if it can be read, the others
    are processed.  It is read again each time that the failures in a row have doubled.

    Attributes:
        read_page: reads a page that the server has.
        max_refused: refused files in a row before the page is read.
    """

    read_page: Callable[[Connection], object]
    max_refused: int
    _failures: int = 0
    _next_reading: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, connection: Connection, error: DownloadError | None) -> None:
        """Record the end of a download, None without an error; ``connection`` is free to read the page.

        Raises:
            OutageError: the server serves nothing.
        """
        with self._lock:
            if not isinstance(error, RefusedError | UnreachableError):
                self._failures = self._next_reading = 0
                return
            # One unreachable file has taken minutes of retries.
            self._failures += 1 if isinstance(error, RefusedError) else self.max_refused
            if self._failures < max(self.max_refused, self._next_reading):
                return
            self._next_reading = 2 * self._failures
            try:
                self.read_page(connection.with_few_attempts())
            except NotFoundError:
                pass  # it answers
            except DownloadError as page_error:
                raise OutageError(f"{error}; and {page_error}") from page_error
