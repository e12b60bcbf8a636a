"""Check access to the object stores of a command, once for each bucket, before it starts.

A missing library, bucket or credentials is reported within seconds; a client would retry for minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bioshards.corpus.errors import UsageError
from bioshards.pipelines.storage.object_store import SCHEMES, split_path

if TYPE_CHECKING:
    from bioshards.pipelines.storage.remote_storage import RemoteStorage


class StorageAccessError(UsageError):
    """There are no credentials for a store, or they are not enough."""


def check_access(storage: RemoteStorage, paths: Iterable[str]) -> None:
    """See that the buckets of these paths can be used; local paths are passed over.

    Raises:
        StorageAccessError: there are no credentials or they are not enough.
        UsageError: there is no such bucket or kind of store, or a library is not installed.
        TransientStorageError: a store does not answer.
    """
    path_by_bucket: dict[str, str] = {}
    for path in paths:
        if "://" in path:
            path_by_bucket.setdefault(split_path(path)[0], path)
    for bucket, path in path_by_bucket.items():
        scheme, _, name = bucket.partition("://")
        if scheme not in SCHEMES:
            raise UsageError(
                f"nothing here can open {path}: folders are local or mounted, on gs://BUCKET, s3://BUCKET or "
                "az://CONTAINER"
            )
        if not re.fullmatch(r"[a-z0-9][a-z0-9._@/-]{1,220}[a-z0-9]", name):  # clients say so less clearly
            raise UsageError(f"{path} names no bucket: {scheme}://BUCKET/FOLDER is what it should be")
        try:
            storage.probe(path)
        except ImportError as error:
            raise make_missing_library_error(path, error) from error
        except (PermissionError, ValueError) as error:
            raise StorageAccessError(f"{path} cannot be used: {error}") from error
        except FileNotFoundError as error:
            raise UsageError(f"there is no bucket {bucket}: create it, or mend the name") from error


def make_missing_library_error(path: str, error: ImportError) -> UsageError:
    """Return the error for a path that needs a library that is not installed."""
    return UsageError(
        f"{path} needs a library that cannot be imported ({error}): pip install 'bioshards[cloud]'"
    )
