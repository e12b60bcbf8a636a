"""Retry policy: how often, and after which pauses, a failed request, read or step is repeated.

A :class:`RetryPolicy` is obeyed by http_client.py, which resumes requests, and by :func:`retry`, for the
reading of damaged content and for the steps of a pipeline.  The clients of object stores have their own
(pipelines/storage/store_options.py).
"""

from __future__ import annotations

import logging
import random
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
        max_attempts: consecutive failures before the request is given up.  One that has brought
            :data:`MIN_PROGRESS_BYTES`, as fast as ``min_bytes_per_second``, begins the count anew: a large
            file on a slow line has the time it needs.
        initial_backoff: seconds before the first retry; doubled for every further one.
        max_backoff: upper bound of the backoff in seconds.
    """

    connect_timeout: float = 20
    read_timeout: float = 60
    min_bytes_per_second: float = 1000
    max_attempts: int = 10
    initial_backoff: float = 1
    max_backoff: float = 120

    def draw_backoff(self, num_failures: int) -> float:
        """Return the seconds to wait after a number of failures in a row, with up to 50 % of jitter."""
        backoff: float = min(self.initial_backoff * 2 ** (num_failures - 1), self.max_backoff)
        return backoff * random.uniform(0.5, 1.5)


DEFAULT_RETRY_POLICY: Final = RetryPolicy()
"""Policy of downloads in a pipeline."""

INTERACTIVE_RETRY_POLICY: Final = RetryPolicy(max_attempts=4)
"""Policy of the driver, which reads listings while a person waits."""

MIN_PROGRESS_BYTES: Final = 4096
"""New bytes with which a failed attempt counts as progress, so that the next failure is the first."""

MAX_RETRY_AFTER_SECONDS: Final = 300.0
"""Longest pause that a server may request (``Retry-After``); the run ends if it is longer."""

READ_RETRY_POLICY: Final = RetryPolicy(max_attempts=3)
"""Policy of a file, page or object whose content is wrong: a bad checksum, or another format."""

STEP_RETRY_POLICY = RetryPolicy(max_attempts=4, initial_backoff=6)
"""Policy of a step that meets a transient storage error: as many attempts as Dataflow grants a bundle."""

MAX_FAILED_FILES: Final = 8
"""Files in a row that are refused or cannot be reached, after which the server is taken to serve nothing."""

MAX_FAILED_OBJECTS: Final = 100
"""The same for the objects of PMC's bucket."""


def retry(
    function: Callable[[], Result],
    error_type: type[Exception] = TransientStorageError,
    policy: RetryPolicy | None = None,
) -> Result:
    """Call a function until it succeeds, at most as often as the policy says.

    Local runners fail a job at its first exception.  Steps are idempotent: outputs are written atomically
    under their final names, with the same bytes each time.

    Args:
        function: a step, or the reading of a file.
        error_type: error after which it is called again.
        policy: by default :data:`STEP_RETRY_POLICY`.

    Raises:
        Exception: of ``error_type``, by the last attempt; any other error, at once.
    """
    policy = policy or STEP_RETRY_POLICY
    for num_failures in range(1, policy.max_attempts):
        try:
            return function()
        except error_type as error:
            pause = policy.draw_backoff(num_failures)
            logging.getLogger(__name__).warning(
                "%s; retrying in %.0f seconds", escape_controls(str(error)), pause
            )
            time.sleep(pause)
    return function()
