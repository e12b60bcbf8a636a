"""Cut a PubMed XML file into its records, streaming: which elements hold them, and how long they may be.

How they are cut is element_stream.py's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.xml import element_stream
from bioshards.corpus.xml.decoder import ByteStream, decode_xml

MAX_RECORD_BYTES: Final = 32 << 20
"""Largest record.  Real ones with thousands of references stay below 2 MB."""

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


def iter_records(file: ByteStream) -> Iterator[tuple[str, bytes]]:
    """Yield ``(element name, bytes)`` for each record of an open ``.xml`` or ``.xml.gz``, in order.

    Raises:
        BadFileError: what is wrong with the file as a whole, at the point where it shows; callers must
            drop what they have had from it so far.
    """
    blocks = decode_xml(file)
    root = element_stream.read_root(blocks)
    if root.name in RECORD_ELEMENTS:
        yield from element_stream.iter_root(root, blocks, MAX_RECORD_BYTES)
    elif root.name in ROOT_ELEMENTS:
        yield from element_stream.iter_children(root, blocks, MAX_RECORD_BYTES)
    else:
        raise BadFileError("wrong-root", f"its root is <{root.name}>, not PubMed's {sorted(ROOT_ELEMENTS)}")
