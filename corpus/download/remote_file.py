"""A file on a server, as its listing describes it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file that can be fetched.

    Attributes:
        url: built from the URL of the source and a file name that matches a pattern.
        path: path in the mirror: ``pubmed/baseline/pubmed26n0001.xml.gz``.
        root_name: local name of the root element of its XML document.
        has_md5_file: True if its MD5 is published at ``url + ".md5"``.
        listing_text: date and size as the listing writes them, or '' if it has no date that can be read.
            Another text means another file.
        modified_at: time of modification in the listing, to the minute, in the time zone of the server.
        size: in bytes, rounded as in the listing; 0 if it is not listed.
        is_md5_listed: True if the listing has the file of its MD5, so that it must be there.
    """

    url: str
    path: str
    root_name: str
    has_md5_file: bool
    listing_text: str = ""
    modified_at: datetime | None = None
    size: int = 0
    is_md5_listed: bool = False

    @property
    def name(self) -> str:
        """File name."""
        return self.path.rpartition("/")[2]
