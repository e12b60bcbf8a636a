"""Calls of the XML API that S3 and Google Cloud Storage share, which obstore lacks.

obstore fails to list names with an empty part (``a//b``), and lists no unfinished uploads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast
from urllib.parse import quote, urlencode

import requests
from lxml import etree
from obstore.store import GCSStore, S3Store

from bioshards.corpus.storage.retry import STORE_CONNECT_TIMEOUT_SECONDS, STORE_READ_TIMEOUT_SECONDS
from bioshards.corpus.storage.storage_protocol import FileInfo
from bioshards.pipelines.storage.store_errors import make_error

if TYPE_CHECKING:
    from obstore.auth.boto3 import Boto3CredentialProvider
    from obstore.auth.google import GoogleCredentialProvider


def list_folder(store: GCSStore | S3Store, root: str, prefix: str) -> tuple[list[FileInfo], list[str]]:
    """Return the objects and the subfolders of a folder, whatever their names.

    Args:
        root: URL of the bucket.
        prefix: what their names begin with: the folder's, and a slash.

    Raises:
        OSError: as of :func:`~.store_errors.translate_errors`.
    """
    query = {"list-type": "2", "delimiter": "/", "prefix": prefix}
    files: list[FileInfo] = []
    folders: list[str] = []
    while True:
        page = _request(store, "GET", root, "", query)
        for item in page.iterfind("{*}Contents"):
            name, size, e_tag = (item.findtext(f"{{*}}{tag}", "") for tag in ("Key", "Size", "ETag"))
            files.append(FileInfo(f"{root}/{name}", int(size), e_tag.strip('"')))
        folders += [f"{root}/{item.findtext('{*}Prefix', '')}" for item in page.iterfind("{*}CommonPrefixes")]
        query["continuation-token"] = page.findtext("{*}NextContinuationToken", "")
        if not query["continuation-token"]:
            return files, folders


def abort_uploads(store: GCSStore | S3Store, root: str, prefix: str) -> None:
    """Abort the multipart uploads into a folder, whose parts are billed until then.

    Raises:
        OSError: as of :func:`~.store_errors.translate_errors`.
    """
    page = _request(store, "GET", root, "", {"uploads": "", "prefix": prefix})
    for upload in page.iterfind("{*}Upload"):
        name = upload.findtext("{*}Key", "")
        if "/" not in name.removeprefix(prefix):
            _request(store, "DELETE", root, name, {"uploadId": upload.findtext("{*}UploadId", "")})


def _request(
    store: GCSStore | S3Store, method: str, root: str, name: str, query: dict[str, str]
) -> etree._Element:
    """Send a request with the credentials of a client, and return the response."""
    config = store.config
    endpoint = config.get("endpoint") or config.get("base_url") or "https://storage.googleapis.com"
    path = f"{root.partition('://')[2]}/{quote(name)}".rstrip("/")
    url = f"{endpoint}/{path}?{urlencode(sorted(query.items()), quote_via=quote)}"
    timeouts = (STORE_CONNECT_TIMEOUT_SECONDS, STORE_READ_TIMEOUT_SECONDS)
    try:
        response = requests.request(method, url, headers=_sign(store, method, url), timeout=timeouts)
    except requests.RequestException as error:
        raise make_error(f"{root}/{name}", None, type(error).__name__) from error
    if not response.ok:
        raise make_error(f"{root}/{name}", response.status_code, response.text)
    return etree.fromstring(response.content or b"<Empty/>")


def _sign(store: GCSStore | S3Store, method: str, url: str) -> dict[str, str]:
    """Return the headers that carry the credentials of a client."""
    if isinstance(store, GCSStore):
        google = cast("GoogleCredentialProvider | None", store.credential_provider)
        if not google:
            return {}
        token = google.credentials.token if google.credentials.valid else google()["token"]
        return {"Authorization": f"Bearer {token}"}
    from botocore.auth import S3SigV4Auth
    from botocore.awsrequest import AWSRequest

    request = AWSRequest(method, url)
    credentials = cast("Boto3CredentialProvider", store.credential_provider).credentials
    S3SigV4Auth(credentials, "s3", store.config["region"]).add_auth(request)
    return dict(request.headers)
