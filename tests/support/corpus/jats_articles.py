"""Small JATS articles, and the archives and packages that contain articles."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

CC_BY_URL = "https://creativecommons.org/licenses/by/4.0/"


def article_xml(
    pmcid: int | None,
    text: str = "Nothing was measured. Nothing was found.",
    version: int = 1,
    *,
    licence: str | None = CC_BY_URL,
    pmid: int | None = None,
    doi: str | None = None,
    language: str = "en",
    article_type: str = "research-article",
    title: str = "Of nothing",
    abstract: str = "",
    body: str | None = None,
    back: str = "",
) -> str:
    """Format an article with a text in its section Methods, or with another ``body``."""
    ids = {
        "pmcid": f"PMC{pmcid}" if pmcid else None,
        "pmcid-ver": f"PMC{pmcid}.{version}" if pmcid else None,
        "pmid": pmid,
        "doi": doi,
    }
    body = f"<sec><title>Methods</title><p>{text}</p></sec>" if body is None else body
    return (
        f'<article article-type="{article_type}" xml:lang="{language}" '
        'xmlns:xlink="http://www.w3.org/1999/xlink" '
        'xmlns:mml="http://www.w3.org/1998/Math/MathML">'
        "<front><journal-meta><journal-title-group><journal-title>Letters on Nothing</journal-title>"
        "</journal-title-group></journal-meta><article-meta>"
        + "".join(
            f'<article-id pub-id-type="{article_type}">{value}</article-id>'
            for article_type, value in ids.items()
            if value
        )
        + f"<title-group><article-title>{title}</article-title></title-group>"
        + '<pub-date pub-type="epub"><year>2024</year></pub-date>'
        + (f'<permissions><license xlink:href="{licence}"/></permissions>' if licence else "")
        + (f"<abstract>{abstract}</abstract>" if abstract else "")
        + f"</article-meta></front>{f'<body>{body}</body>' if body else ''}{back}</article>"
    )


def write_files(folder: Path, articles: Mapping[str, str | bytes]) -> Path:
    """Write files by name, compressed if the name ends in ``.gz``; return the folder."""
    for name, content in articles.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str):
            content = gzip.compress(content.encode(), mtime=0) if name.endswith(".gz") else content.encode()
        path.write_bytes(content)
    return folder


def europepmc_package_xml(articles: Iterable[str]) -> str:
    """Format articles as a package of Europe PMC."""
    return f"<articles>{''.join(articles)}</articles>"


def zip_articles(members: Mapping[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, xml in members.items():
            archive.writestr(name, xml)
    return file.getvalue()


def tar_articles(members: Mapping[str, str], mode: str = "w:gz") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
        for name, xml in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(xml.encode())
            archive.addfile(info, io.BytesIO(xml.encode()))
    return file.getvalue()
