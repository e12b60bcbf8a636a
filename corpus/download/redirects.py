"""Redirects: the ones that are followed, and what to do about the others."""

from __future__ import annotations

from urllib.parse import urljoin, urlsplit

from bioshards.corpus.errors import quote


def resolve_redirect(url: str, location: str) -> str | None:
    """Return the target of a redirect; None if it is on another host or malformed."""
    try:
        target = urljoin(url, location)
        return target if urlsplit(target)[:2] == urlsplit(url)[:2] else None
    except ValueError:
        return None


def explain_redirect(url: str, location: str) -> str:
    """Say where a redirect leads that is not followed, and what to do."""
    options = "--pubmed-url, --pmc-url or --europepmc-url"
    quoted = quote(location)
    try:
        old, new = urlsplit(url), urlsplit(urljoin(url, location))
    except ValueError:
        return f"another host ({quoted})"
    if old.hostname == new.hostname and old.scheme != new.scheme:
        if new.scheme == "https":
            return f"{quoted}: the server wants https. Write the address with https:// in {options}"
        return f"an address without encryption ({quoted})"
    return (
        f"another host ({quoted}). If the files have moved there, name it in {options}; if it is a login "
        "page of your network, log in with a browser first"
    )
