"""Parse the metadata of an article version of PMC: licence, data set and MD5 of its XML.

It is a small JSON object (https://pmc-oa-opendata.s3.amazonaws.com/README.txt), stored next to
the article and as a copy under ``metadata/``:

    {"pmcid": "PMC12345", "version": 1, "pmid": 23456 or null, "doi": "10.1000/1" or null,
     "license_code": "CC BY" or null,
     "is_pmc_openaccess": true, "is_manuscript": false, "is_historical_ocr": false, "is_retracted": false,
     "xml_url": "s3://pmc-oa-opendata/PMC12345.1/PMC12345.1.xml?md5=32 hexadecimal digits", ...}

Other notations of the same value are read: ``"23456"`` or ``23456.0`` for a number, ``"true"`` or ``1`` for
a flag, ``12345`` for an id.  Any other value is an error: without a flag or a licence nothing is known of the
article.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from bioshards.corpus.download.pmc.s3_bucket import ArticleMetadataError, version_name
from bioshards.corpus.licences import LICENCES, UNKNOWN_LICENCE

_MD5_PATTERN: Final = re.compile(r"[0-9a-fA-F]{32}")
_LICENCE_VERSION: Final = re.compile(r"-\d(\.\d)?(-IGO)?$")
_DIGITS: Final = re.compile(r"\s*[0-9]{1,10}\s*")
_PMCID: Final = re.compile(r"\s*(?:PMC)?([0-9]{1,8})\s*", re.ASCII | re.IGNORECASE)
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}
"""Values of a flag, as texts in lower case."""


def parse_metadata(body: bytes, pmcid: int, version: int) -> dict[str, Any]:
    """Parse the columns ``pmid`` to ``md5`` of :data:`~.metadata_cache.METADATA_SCHEMA`.

    Args:
        body: JSON of the metadata object.
        pmcid: number of the expected article.
        version: its expected version.

    Raises:
        ArticleMetadataError: the body is not JSON, is of another article, or has a value that is none of its
            field.
    """
    try:
        metadata = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ArticleMetadataError(f"not JSON: {error}") from error
    if not isinstance(metadata, dict):
        raise ArticleMetadataError("not a JSON object")
    if not _is_pmcid(metadata.get("pmcid"), pmcid) or _parse_int(metadata, "version") != version:
        raise ArticleMetadataError(
            f"it is of {metadata.get('pmcid')!r:.100}, version {metadata.get('version')!r:.100}"
        )
    if "license_code" not in metadata:
        raise ArticleMetadataError("it has no license_code")
    return {
        "pmid": _parse_int(metadata, "pmid"),
        "doi": _parse_doi(metadata),
        "licence": normalise_licence(_parse_text(metadata, "license_code")),
        "open_access": _parse_bool(metadata, "is_pmc_openaccess"),
        "manuscript": _parse_bool(metadata, "is_manuscript"),
        "ocr": _parse_bool(metadata, "is_historical_ocr"),
        "retracted": _parse_bool(metadata, "is_retracted"),
        "md5": _parse_xml_md5(_parse_text(metadata, "xml_url"), version_name(pmcid, version)),
    }


def normalise_licence(code: str | None) -> str:
    """Normalise a licence code: ``CC BY``, ``cc-by`` and ``CC BY 4.0`` become ``CC-BY``."""
    normalised = "-".join(re.split(r"[\s_-]+", (code or "").strip().upper()))
    normalised = _LICENCE_VERSION.sub("", normalised)
    return normalised if normalised in LICENCES else UNKNOWN_LICENCE


def _is_pmcid(value: Any, pmcid: int) -> bool:
    """Return True if the value is this id: ``"PMC12345"``, ``"12345"`` or ``12345``."""
    match = _PMCID.fullmatch(str(value)) if type(value) in (str, int) else None
    return match is not None and int(match[1]) == pmcid


def _parse_int(metadata: dict[str, Any], name: str) -> int | None:
    value = metadata.get(name)
    if value is None or value == "":
        return None
    number = value
    if (isinstance(value, str) and _DIGITS.fullmatch(value)) or (
        isinstance(value, float) and value.is_integer()
    ):
        number = int(value)
    if type(number) is int and 0 < number < 1 << 31:
        return number
    raise ArticleMetadataError(f"{name} is {value!r:.100}, not a whole number above 0")


def _parse_text(metadata: dict[str, Any], name: str) -> str | None:
    value = metadata.get(name)
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > 2000 or not value.isprintable():
        raise ArticleMetadataError(f"{name} is {value!r:.100}, not a line of text")
    return value or None


def _parse_doi(metadata: dict[str, Any]) -> str | None:
    """Return the DOI, or None if it has invalid characters: the article is kept without it."""
    value = metadata.get("doi")
    if value is not None and not isinstance(value, str):
        raise ArticleMetadataError(f"doi is {value!r:.100}, not a line of text")
    value = (value or "").strip()
    return value if value and len(value) <= 2000 and value.isprintable() else None


def _parse_bool(metadata: dict[str, Any], name: str) -> bool:
    value = metadata.get(name)
    flag = _FLAGS.get(str(value).strip().lower()) if type(value) in (bool, int, str) else None
    if flag is not None:
        return flag
    raise ArticleMetadataError(f"{name} is {value!r:.100}, not true or false")


def _parse_xml_md5(url: str | None, name: str) -> str | None:
    """Return the MD5 in the URL of the XML; the path of the URL is checked, its host ignored."""
    if url is None:
        return None
    try:
        url_parts = urlsplit(url)
    except ValueError as error:
        raise ArticleMetadataError(f"xml_url is {url!r:.200}: {error}") from error
    md5 = parse_qs(url_parts.query).get("md5", [""])
    if url_parts.path != f"/{name}/{name}.xml" or len(md5) != 1 or not _MD5_PATTERN.fullmatch(md5[0]):
        raise ArticleMetadataError(f"xml_url is {url!r:.200}, not s3://.../{name}/{name}.xml?md5=...")
    return md5[0].lower()
