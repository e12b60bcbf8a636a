"""A file on somebody's server, as its listing names it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """What is known of a file before it is fetched.

    Attributes:
        url: where it is, built by us from the source's own address and a checked name, never taken
            from a page.
        path: where it is kept, relative to the mirror: ``pubmed/baseline/pubmed26n0001.xml.gz``.
        root: the local name of its XML document's root element.
        md5_beside: is its MD5 published at ``url + ".md5"``?
        listed: the listing's words on it (date and size), '' if it gives none; other words mean another file.
        changed: when it was put there, as the listing says, to the minute and in the server's own time zone.
        size: its size in bytes, rounded as in the listing; 0 if the listing gives none.
    """

    url: str
    path: str
    root_name: str
    has_md5_file: bool
    listing_text: str = ""
    modified_at: datetime | None = None
    size: int = 0

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]
