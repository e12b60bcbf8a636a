"""URLs of object stores, and the sizes of requests.  Knows no client."""

from __future__ import annotations

from typing import Final

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

FIRST_READ_BYTES: Final = 1 << 20
"""Read when a file is opened: all of a report, of keys or decisions in one request."""
SEEK_READ_BYTES: Final = 128 << 10
"""Read after a jump to another place, where there may be no more than a few rows to read."""
MAX_READ_BYTES: Final = 8 << 20
"""Read at once at most: few requests for large files, and little memory for each that is open."""

UPLOAD_PART_BYTES: Final = 5 << 20
"""A larger object is put in parts: the least that S3 takes, as each must be sent within the time-out."""
UPLOAD_CONCURRENCY: Final = 2
MAX_UPLOAD_PARTS: Final = 10_000
"""Parts of an upload, at most (docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html)."""


def split_path(path: str) -> tuple[str, str]:
    """Split a URL into the URL of its bucket or container and the object's name; '' for the bucket itself."""
    scheme, _, rest = path.partition("://")
    num_parts = 2 if scheme == "azfs" else 1
    parts = rest.split("/", num_parts)
    return f"{scheme}://{'/'.join(parts[:num_parts])}", "/".join(parts[num_parts:])
