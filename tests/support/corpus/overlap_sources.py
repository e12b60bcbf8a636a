"""Abstracts and articles that overlap, and the expected overlap."""

from __future__ import annotations

from tests.support.corpus.jats_articles import article_xml
from tests.support.corpus.pubmed_xml import citation_xml


def citation_with_ids(pmid: int, **ids: str) -> str:
    """Format a citation with given ids (``pmc``, ``doi``)."""
    listed = "".join(f'<ArticleId IdType="{kind}">{value}</ArticleId>' for kind, value in ids.items())
    data = f"<PubmedData><ArticleIdList>{listed}</ArticleIdList></PubmedData></PubmedArticle>"
    return citation_xml(pmid, f"Abstract {pmid} is here. Yes.").replace("</PubmedArticle>", data)


OVERLAP_CITATIONS = [
    citation_with_ids(1),
    citation_with_ids(2, pmc="PMC12", doi="10.5555/other"),
    citation_with_ids(3, doi="10.5555/ODD"),
    citation_with_ids(4),
    citation_with_ids(5, pmc="PMC99"),
]


OVERLAP_ARTICLES = {
    "PMC11.xml": article_xml(11, pmid=1),
    "PMC12.xml": article_xml(12),
    "PMC13.xml": article_xml(13, doi="10.5555/odd"),
    "PMC14.xml": article_xml(14, pmid=4, licence=None),  # dropped, so it holds nothing
}


EXPECTED_OVERLAP = [
    ("pubmed:1", "pmc:PMC11.1", "pmid"),
    ("pubmed:2", "pmc:PMC12.1", "pmcid"),
    ("pubmed:3", "pmc:PMC13.1", "doi"),
]
