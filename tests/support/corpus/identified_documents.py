"""Documents with given ids, in finished directories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bioshards.corpus.document import Document
from bioshards.corpus.shards import document_schema, document_shards
from bioshards.corpus.shards.document_schema import DOCUMENT_SCHEMA
from tests.support.corpus.manifests import FILES, put_documents

IdRow = tuple[str, int | None, str | None, str | None]
"""An id with a PMID, a PMCID and a DOI."""


def make_identified_document(id_: str, pmid: int | None, pmcid: str | None, doi: str | None) -> Document:
    return Document(
        id=id_,
        source=id_.partition(":")[0],
        pmid=pmid,
        pmcid=pmcid,
        doi=doi,
        version=1,
        year=2020,
        journal=None,
        article_type=None,
        language="eng",
        licence=None,
        retracted=False,
        flags=[],
        title=f"About {id_}.",
        sentences=[f"About {id_}.", "It is short."],
        sections=[],
        file="a.xml",
        position=0,
        num_words=5,
        num_characters=30,
        removed_characters={},
    )


def write_finished_dir(folder: Path, pipeline: str, rows: Sequence[IdRow], size: int = 3) -> str:
    """Write a finished directory of documents in several shards."""
    made_documents = [make_identified_document(*row) for row in rows]
    written = [
        shard
        for at in range(0, len(made_documents), size)
        for shard in document_shards.write_shards(
            FILES,
            str(folder),
            f"a{at:02}",
            [document_schema.record_batch_from_documents(made_documents[at : at + size])],
            DOCUMENT_SCHEMA,
            1 << 30,
        )
    ]
    put_documents(folder, written, pipeline)
    return str(folder)


SAMPLE_ABSTRACTS: list[IdRow] = [(f"pubmed:{n}", n, f"PMC{n + 100}", f"10.1/{n}") for n in range(1, 11)]


SAMPLE_ARTICLES: list[IdRow] = [
    ("pmc:PMC900.1", 2, "PMC900", None),
    ("pmc:PMC105.1", None, "PMC105", None),
    ("pmc:PMC901.1", None, "PMC901", "10.1/9"),
    ("pmc:PMC902.1", None, "PMC902", "10.1/of-another"),
]
