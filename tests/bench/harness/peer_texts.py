"""Extract text with another tool, a line of JSON for each file: ``PYTHON peer_texts.py TOOL < PATHS``.

The script imports nothing of bioshards, since the libraries of some tools do not fit those of bioshards. Each
tool gives what it takes for title, abstract and body, with its default settings.
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from itertools import groupby


def read_with_bconv(path: str, format_name: str) -> Iterator[str]:
    """Yield the sections of an article (``nxml``), or of a gzipped citation (``pxml``) all but its title."""
    with gzip.open(path, "rb") if format_name == "pxml" else open(path, "rb") as file:
        for document in importlib.import_module("bconv").load(file, fmt=format_name, mode="lazy"):
            for section in document.units("section"):
                if format_name == "nxml" or section.type != "Title":
                    yield section.text


def read_with_pubget(path: str) -> Iterator[str]:
    """Yield title, abstract and body of an article, of any id: pubget itself takes only digits."""
    transform = importlib.import_module("pubget._utils").load_stylesheet("text_extraction.xsl")
    text = transform(importlib.import_module("lxml.etree").parse(path))
    yield from (text.findtext(name) for name in ("title", "abstract", "body"))


def read_article_with_pubmed_parser(path: str) -> Iterator[str]:
    """Yield title, abstract, and the paragraphs of an article with their headings."""
    pubmed_parser = importlib.import_module("pubmed_parser")
    metadata = pubmed_parser.parse_pubmed_xml(path)
    yield from (metadata["full_title"] or "", metadata["abstract"] or "")
    paragraphs = pubmed_parser.parse_pubmed_paragraph(path, all_paragraph=True)
    for heading, group in groupby(paragraphs, lambda paragraph: paragraph["section"]):
        yield heading
        yield from (paragraph["text"] for paragraph in group)


def read_abstract_with_pubmed_parser(path: str) -> Iterator[str]:
    """Yield the abstract of a gzipped citation."""
    for citation in importlib.import_module("pubmed_parser").parse_medline_xml(path):
        yield citation["abstract"] or ""


TOOLS: dict[str, Callable[[str], Iterator[str]]] = {
    "bconv": lambda path: read_with_bconv(path, "nxml"),
    "bconv-abstracts": lambda path: read_with_bconv(path, "pxml"),
    "pubget": read_with_pubget,
    "pubmed_parser": read_article_with_pubmed_parser,
    "pubmed_parser-abstracts": read_abstract_with_pubmed_parser,
}


def main() -> None:
    """Write the text of each file as JSON, or an empty object if the tool raised an exception."""
    results = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what tools print
    name = sys.argv[1]
    importlib.import_module(name.partition("-")[0])
    for path in sys.stdin.read().splitlines():
        try:
            answer = {"text": "\n".join(TOOLS[name](path))}
        except Exception as error:  # counted as a failure
            print(f"{path}: {error!r}", file=sys.stderr)
            answer = {}
        results.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main()
