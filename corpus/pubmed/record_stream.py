"""Split a PubMed XML file into records, streaming (xml/element_stream.py)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.xml import element_stream
from bioshards.corpus.xml.decoder import ByteStream, DecodingReport, decode_xml

MAX_RECORD_BYTES: Final = 32 << 20
"""Largest record. Real ones with thousands of references have less than 2 MB."""

ROOT_ELEMENTS: Final = frozenset(
    {"PubmedArticleSet", "PubmedBookArticleSet", "MedlineCitationSet", "BookDocumentSet"}
)
RECORD_ELEMENTS: Final = frozenset(
    {
        "PubmedArticle",
        "MedlineCitation",
        "PubmedBookArticle",
        "BookDocument",
        "DeleteCitation",
        "DeleteDocument",
    }
)


def iter_records(file: ByteStream, report: DecodingReport | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield ``(element name, bytes)`` for each record of an open ``.xml`` or ``.xml.gz``, in order.

    Raises:
        BadFileError: the file as a whole is unusable. Callers must discard the records read so far.
    """
    blocks = decode_xml(file, report)
    root = element_stream.read_root(blocks)
    if root.name in RECORD_ELEMENTS:
        yield from element_stream.iter_root(root, blocks, MAX_RECORD_BYTES)
    elif root.name in ROOT_ELEMENTS:
        yield from element_stream.iter_children(root, blocks, MAX_RECORD_BYTES)
    else:
        raise BadFileError("wrong-root", f"its root is <{root.name}>, not PubMed's {sorted(ROOT_ELEMENTS)}")
