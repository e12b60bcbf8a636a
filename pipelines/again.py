"""Do a step's work again when an object store fails for a moment, as Dataflow does with a bundle.

Local runners fail a job at its first exception.  Every step's work may be done again: what it writes
appears whole under its final name, and is the same each time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
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
