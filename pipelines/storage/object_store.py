"""URLs of object stores, and the check that a command can use them.  Knows no client."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from bioshards.corpus.errors import UsageError, describe_install

if TYPE_CHECKING:
    from bioshards.pipelines.storage.remote_storage import RemoteStorage

AZURE_SCHEMES: Final = ("az", "abfs", "abfss", "azfs")
SCHEMES: Final = ("gs", "s3", *AZURE_SCHEMES)
"""``azfs://ACCOUNT/CONTAINER/...`` is Beam's; the others are obstore's."""

CREDENTIALS_HINTS: Final = {
    "gs": "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS=FILE, "
    "or for public buckets --no_auth",
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, "
    "or --s3_access_key_id and --s3_secret_access_key",
    **dict.fromkeys(
        AZURE_SCHEMES,
        "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY, or with AZURE_USE_AZURE_CLI=true "
        "after az login, or --azure_connection_string",
    ),
}
"""Where credentials come from."""


def split_path(path: str) -> tuple[str, str]:
    """Split a URL into the URL of its bucket or container and the object's name; '' for the bucket itself."""
    scheme, _, rest = path.partition("://")
    num_parts = 2 if scheme == "azfs" else 1
    parts = rest.split("/", num_parts)
    return f"{scheme}://{'/'.join(parts[:num_parts])}", "/".join(parts[num_parts:])


class StorageAccessError(UsageError):
    """There are no credentials for a store, or they are not enough."""


def check_access(storage: RemoteStorage, paths: Iterable[str]) -> None:
    """Check that the buckets of these paths can be used, with one request each; local paths are passed over.

    A missing library, bucket or credentials is so reported within seconds; a client would retry for minutes.

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
        f"{path} needs a library that cannot be imported ({error}): {describe_install('cloud')}"
    )
