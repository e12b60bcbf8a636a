"""Retry policy: how often, and after which pauses, a failed request, read or step is repeated.

Every constant of retrying is in this file.  http_client.py retries requests by :class:`RetryPolicy`,
download/ reads damaged content again, pipelines/storage/ configures the clients of object stores, and
:func:`retry` repeats a step on a transient storage error.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from bioshards.corpus.errors import TransientStorageError, escape_controls

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Time-outs and retries of HTTP requests.

    Attributes:
        connect_timeout: seconds to wait for a connection.
        read_timeout: seconds to wait for the next byte of a response, and for the whole of its header.
        min_bytes_per_second: a body that is slower than this for ``read_timeout`` seconds is a failure.
        max_attempts: consecutive failures, without :data:`MIN_PROGRESS_BYTES`, before the request is given
            up.
        max_idle_seconds: seconds that failed attempts and the pauses between them may take beyond those that
            their bytes take at ``min_bytes_per_second``.  A large file on a slow line has the time it needs.
        initial_backoff: seconds before the first retry; doubled for every further one.
        max_backoff: upper bound of the backoff in seconds.
    """

    connect_timeout: float = 20
    read_timeout: float = 60
    min_bytes_per_second: float = 1000
    max_attempts: int = 10
    max_idle_seconds: float = 600
    initial_backoff: float = 1
    max_backoff: float = 120


DEFAULT_RETRY_POLICY: Final = RetryPolicy()
"""Policy of downloads in a pipeline."""

INTERACTIVE_RETRY_POLICY: Final = RetryPolicy(max_attempts=4)
"""Policy of the driver, which reads listings while a person waits."""

MIN_PROGRESS_BYTES: Final = 4096
"""New bytes with which a failed attempt counts as progress, so that the next failure is the first."""

MAX_RETRY_AFTER_SECONDS: Final = 300.0
"""Longest pause that a server may request (``Retry-After``); the run ends if it is longer."""

MAX_READ_ATTEMPTS: Final = 3
"""Reads of a file, page or object whose content is wrong: a bad checksum, or another format."""

MAX_REFUSED_FILES: Final = 3
"""Files that a server refuses in a row before its listing is read, to see whether it refuses everything."""

MAX_REFUSED_OBJECTS: Final = 20
"""The same for the objects of PMC's bucket."""

STORE_CONNECT_TIMEOUT_SECONDS: Final = 10
"""Seconds that the client of an object store waits for a connection."""

STORE_READ_TIMEOUT_SECONDS: Final = 60
"""Seconds that the client of an object store waits for the next byte."""

S3_MAX_ATTEMPTS: Final = 5
"""Attempts of the client of S3, with exponential backoff, before the error reaches :func:`retry`."""

GCS_RETRY_SECONDS: Final = 1.5 * STORE_READ_TIMEOUT_SECONDS
"""Seconds for which the client of Google Cloud Storage retries: time for one retry after a read time-out."""

STEP_BACKOFF_SECONDS = (2.0, 10.0, 30.0)
"""Pauses between the attempts of a step: four attempts, as many as Dataflow grants a bundle."""


def retry(function: Callable[[], Result]) -> Result:
    """Retry a step on transient storage errors.

    Local runners fail a job at its first exception.  Steps are idempotent: outputs are written atomically
    under their final names, with the same bytes each time.

    Raises:
        TransientStorageError: the last attempt failed.
        Exception: any other error of ``function``, at once.
    """
    for pause in STEP_BACKOFF_SECONDS:
        try:
            return function()
        except TransientStorageError as error:
            logging.getLogger(__name__).warning(
                "%s; retrying in %g seconds", escape_controls(str(error)), pause
            )
            time.sleep(pause)
    return function()
