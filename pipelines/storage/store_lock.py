"""The lock of an output directory on an object store.

It is a small object that says who writes the directory and since when. A conditional put creates it if there
is none, so that of any number of runs that start at the same moment one gets it. It has no end: the lock of
a run that was killed is taken over with ``--force``, and a run whose lock is gone writes nothing more.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError

from bioshards.corpus.errors import OutputMismatchError, TransientStorageError
from bioshards.corpus.storage.locks import RunLock
from bioshards.pipelines.storage.object_store import split_path
from bioshards.pipelines.storage.store_errors import translate_errors
from bioshards.pipelines.storage.store_options import ObjectStore

if TYPE_CHECKING:
    from obstore import PutMode


def take_lock(
    lock: RunLock, store: ObjectStore, open_file: Callable[[str], BinaryIO], is_forced: bool
) -> None:
    """Create a lock, or see that an attempt of this run has created it whose answer was lost.

    Args:
        is_forced: take over the lock of another run.

    Raises:
        OutputMismatchError: another run holds it.
        TransientStorageError: the store fails, or another run has released it in this moment.
    """
    mode: PutMode = "overwrite" if is_forced else "create"
    with translate_errors(lock.path), contextlib.suppress(AlreadyExistsError, PreconditionError):
        obstore.put(store, split_path(lock.path)[1], lock.encode_holder(), mode=mode)
        return
    holder = lock.read_holder(open_file)
    if holder is None:
        raise TransientStorageError(f"the lock on {lock.folder} was released while it was read")
    if holder.token != lock.token:
        raise OutputMismatchError(
            f"another run is writing {lock.folder}: {holder}. Wait for it or stop it; if it has ended "
            "without releasing its lock, as when it was killed, run the same command with --force"
        )
