"""Documents with given ids, in finished directories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bioshards.corpus.document import Document
from tests.support.corpus.synthetic_documents import make_document, write_document_dir

IdRow = tuple[str, int | None, str | None, str | None]
"""An id with a PMID, a PMCID and a DOI."""
SAMPLE_ABSTRACTS: list[IdRow] = [(f"pubmed:{n}", n, f"PMC{n + 100}", f"10.1/{n}") for n in range(1, 11)]
SAMPLE_ARTICLES: list[IdRow] = [
    ("pmc:PMC900.1", 2, "PMC900", None),
    ("pmc:PMC105.1", None, "PMC105", None),
    ("pmc:PMC901.1", None, "PMC901", "10.1/9"),
    ("pmc:PMC902.1", None, "PMC902", "10.1/of-another"),
]


def make_identified_document(id_: str, pmid: int | None, pmcid: str | None, doi: str | None) -> Document:
    title = f"About {id_}."
    return make_document(id_, [title, "It is short."], pmid, pmcid=pmcid, doi=doi, title=title)


def write_finished_dir(folder: Path, pipeline: str, rows: Sequence[IdRow], size: int = 3) -> str:
    """Write a finished directory of documents in several shards."""
    documents = [make_identified_document(*row) for row in rows]
    shards = {f"a{at:02}": documents[at : at + size] for at in range(0, len(documents), size)}
    return str(write_document_dir(folder, shards, pipeline))
