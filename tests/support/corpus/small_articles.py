"""Small JATS articles, and packages of them."""

from __future__ import annotations

from bioshards.corpus.jats.article_metadata import ArticleMetadata
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.licences import LICENCES

KEEP_EVERYTHING = PmcConfig(licences=tuple(LICENCES), languages=(), keep_ocr=True, keep_abstract_only=True)
DROP_CITATIONS = PmcConfig(citations="drop")


def small_article(
    number: int, text: str = "One. Two.", version: int = 1, body: str = "", extra_front: str = ""
) -> bytes:
    """Format a small article with the licence CC-BY; ``body`` and ``front`` are inserted unchanged."""
    body = body or f"<body><sec><title>Methods</title><p>{text}</p></sec></body>"
    return (
        '<article article-type="research-article"><front><article-meta>'
        f'<article-id pub-id-type="pmcid">PMC{number}</article-id>'
        f'<article-id pub-id-type="pmcid-ver">PMC{number}.{version}</article-id>'
        f"<title-group><article-title>Of {number}</article-title></title-group>"
        '<permissions><license><ext-link xmlns:xlink="http://www.w3.org/1999/xlink" '
        'xlink:href="https://creativecommons.org/licenses/by/4.0/">CC BY</ext-link></license></permissions>'
        f"{extra_front}</article-meta></front>{body}</article>"
    ).encode()


def pack_articles(*articles: bytes) -> bytes:
    return b"<?xml version='1.0'?>\n<articles>" + b"\n".join(articles) + b"</articles>"


ACCEPTED_ARTICLE = ArticleMetadata(
    pmcid="PMC77",
    version=2,
    pmid=12_345,
    doi="10.5555/Sleep.7",
    year=2019,
    journal="Journal of Rest",
    article_type="research-article",
    language="eng",
    licence="CC-BY",
    retracted=False,
    notice=None,
    manuscript=False,
    ocr=False,
)
