"""Small PubMed records and sets as XML."""

from __future__ import annotations

from pathlib import Path


def citation_xml(
    pmid: int, abstract: str = "One sentence. Another one.", version: int = 1, **fields: str
) -> str:
    """Format a small PubmedArticle; ``fields`` replace the title or the language."""
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="{version}">{pmid}</PMID><Article>'
        "<Journal><JournalIssue><PubDate><Year>2020</Year></PubDate></JournalIssue></Journal>"
        f"<ArticleTitle>{fields.get('title', 'A title.')}</ArticleTitle>"
        + (f"<Abstract><AbstractText>{abstract}</AbstractText></Abstract>" if abstract else "")
        + f"<Language>{fields.get('language', 'eng')}</Language></Article></MedlineCitation></PubmedArticle>"
    )


def pubmed_set_xml(*records: str, deleted: tuple[int, ...] = ()) -> bytes:
    """Format a PubmedArticleSet."""
    deleted_pmids = "".join(f'<PMID Version="1">{pmid}</PMID>' for pmid in deleted)
    deletion_xml = f"<DeleteCitation>{deleted_pmids}</DeleteCitation>" if deleted else ""
    articles = "".join(records)
    return f'<?xml version="1.0"?>\n<PubmedArticleSet>{articles}{deletion_xml}</PubmedArticleSet>'.encode()


def write_pubmed_files(folder: Path, *contents: bytes) -> Path:
    """Write files with the names of PubMed's, ``pubmed26n0001.xml`` and so on; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, content in enumerate(contents, 1):
        (folder / f"pubmed26n{number:04d}.xml").write_bytes(content)
    return folder
