"""Exclusive lock on an output directory.

On local disks it is a locked file, on object stores a lease (pipelines/storage/lease.py).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.folder_lock import lock_folder
from bioshards.corpus.storage.storage_protocol import Storage


@contextlib.contextmanager
def lock_output(storage: Storage, output_dir: OutputDir) -> Iterator[None]:
    """Hold the exclusive lock on an output directory.

    Raises:
        OutputMismatchError: another run holds it.
    """
    if "://" in output_dir.path:
        with storage.lease(output_dir.lock_path, output_dir.path):
            yield
        return
    os.makedirs(output_dir.work_folder, exist_ok=True)
    message = f"another run is writing {output_dir.path}; wait for it or stop it"
    with lock_folder(f"{output_dir.work_folder}/lock", message):
        yield
