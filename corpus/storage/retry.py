"""Do a step's work again when an object store fails for a moment, as Dataflow does with a bundle.

Local runners fail a job at its first exception.  Every step's work may be done again: what it writes
appears whole under its final name, and is the same each time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from bioshards.corpus.errors import TransientStorageError

PAUSES_SECONDS = (2.0, 10.0, 30.0)
"""Seconds before each further try: four in all, as many as Dataflow allows a bundle.

A store's client has tried for a while itself by then.
"""

Result = TypeVar("Result")


def retry(function: Callable[[], Result]) -> Result:
    """What ``function`` returns, tried once more after each of :data:`PAUSES` if an object store fails.

    Raises:
        TransientStorageError: the last try's.
        Exception: any other error, at once.
    """
    for pause in PAUSES_SECONDS:
        try:
            return function()
        except TransientStorageError as error:
            logging.getLogger(__name__).warning("%s; trying again in %g seconds", error, pause)
            time.sleep(pause)
    return function()


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to wait for a server.

    Attributes:
        connect, stall: seconds to wait for a connection, and for the next byte of an answer.
        slowest: bytes a second; a body that comes more slowly than that for ``stall`` seconds is broken off.
        tries: without a byte of progress, before giving up.
        first_pause, longest_pause: seconds between tries: the first, doubled each time up to the longest.
    """

    connect_timeout: float = 20
    read_timeout: float = 60
    min_bytes_per_second: float = 1000
    max_attempts: int = 10
    initial_backoff: float = 1
    max_backoff: float = 120
