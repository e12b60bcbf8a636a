"""Check access to the object stores of a command, once for each bucket, before it starts.

A missing library, bucket or credentials is reported within seconds; a client would retry for minutes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from apache_beam.io.filesystem import BeamIOError
from apache_beam.io.filesystems import FileSystems

from bioshards.corpus.errors import UsageError

from .object_store import split_path
from .routed import get_store

_CLOUD_SCHEMES: Final = ("gs", "s3")
"""The schemes that have a client here."""


class StorageAccessError(UsageError):
    """There are no credentials for a store, or they are not enough."""


def check_access(paths: Iterable[str]) -> None:
    """See that the buckets of these paths can be used; local paths are passed over.

    Raises:
        StorageAccessError: there are no credentials or they are not enough.
        UsageError: a library is not installed, or there is no bucket.
        TransientStorageError: a store does not answer.
    """
    checked_buckets = set()
    for path in paths:
        scheme, rest_of_path, _ = path.partition("://")
        if not rest_of_path or (scheme, split_path(path)[0]) in checked_buckets:
            continue
        checked_buckets.add((scheme, split_path(path)[0]))
        _check_scheme(scheme, path)
        _check_bucket_name(scheme, path)
        try:
            get_store(path).probe(path)
        except ImportError as error:
            raise UsageError(
                f"{path} needs a library that cannot be imported ({error}): pip install 'bioshards[cloud]'"
            ) from error
        except (PermissionError, ValueError) as error:
            raise StorageAccessError(f"{path} cannot be used: {error}") from error
        except FileNotFoundError as error:
            raise UsageError(
                f"there is no bucket {scheme}://{split_path(path)[0]}: create it, or mend the name"
            ) from error


def _check_scheme(scheme: str, path: str) -> None:
    """Other schemes are those of Beam's file systems, as far as these are installed."""
    if scheme in _CLOUD_SCHEMES:
        return
    try:
        has_folders = FileSystems.get_filesystem(path).has_dirs()
    except (ValueError, BeamIOError) as error:
        raise UsageError(
            f"nothing here can open {path}: folders are local, on gs://BUCKET or on s3://BUCKET, for which "
            "there is pip install 'bioshards[cloud]'"
        ) from error
    if has_folders:  # hdfs://, which lists one at a time, and renames over nothing
        raise UsageError(
            f"{path} cannot be used: {scheme}:// is no object store. Mount it, and give its path"
        )


def _check_bucket_name(scheme: str, path: str) -> None:
    """Check a bucket's name; the clients' own messages on an invalid one are unclear."""
    if scheme in _CLOUD_SCHEMES and not re.fullmatch(
        r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]", split_path(path)[0]
    ):
        raise UsageError(f"{path} names no bucket: {scheme}://BUCKET/FOLDER is what it should be")
