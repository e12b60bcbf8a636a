"""Texts and their mentions apart, as PubTator's format has them (BC5CDR, NCBI-disease).

A mention is two offsets into a text, so nothing of the text is lost, and documents keep their PMIDs: the
contamination check reads BC5CDR here, for its tagged sentences no longer say where they are from.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bioshards.evaluate.datasets import PARTS, BenchmarkFileError, Files, Parts
from bioshards.evaluate.records import Mention, Record, Text

from .lines import lines, only, shown

_TEXT: Final = re.compile(r"(\d+)\|([ta])\|(.*)")


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its mentions, in the order of the file; a PubTator text is title, blank, abstract."""

    pmid: str
    text: str
    mentions: tuple[Mention, ...]


def pubtator(path: str) -> list[Document]:
    """The documents of a file of ``PMID|t|title``, ``PMID|a|abstract``, and mentions in columns.

    A mention of several concepts ("visual or auditory toxicity") is one line, and one mention.  Lines of
    four columns are relations, and not read.

    Raises:
        BenchmarkFileError: a line is none of these, is of another document, or its offsets are not the
            mention's.
    """
    found: list[Document] = []
    block: list[tuple[int, str]] = []
    for number, row in [*lines(path), (0, "")]:
        if row.strip():
            block.append((number, row))
        elif block:
            found.append(_document(path, block))
            block = []
    return found


def _document(path: str, block: Sequence[tuple[int, str]]) -> Document:
    title, abstract = (_TEXT.fullmatch(row) for _, row in [*block, (0, "")][:2])
    if not title or not abstract or title[2] + abstract[2] != "ta":
        raise BenchmarkFileError(
            path, block[0][0], "a document should begin with PMID|t|title, PMID|a|abstract"
        )
    if title[1] != abstract[1]:
        raise BenchmarkFileError(
            path, block[1][0], f"it is the abstract of {abstract[1]} after the title of {title[1]}"
        )
    pmid, text = title[1], f"{title[3]} {abstract[3]}"
    mentions = []
    for number, row in block[2:]:
        owner, *columns = row.split("\t")
        if len(columns) < 3:
            raise BenchmarkFileError(
                path, number, f"a mention or relation should stand there, not {shown(row)}"
            )
        if owner != pmid:
            raise BenchmarkFileError(path, number, f"it is of {shown(owner)}, among the lines of {pmid}")
        if len(columns) > 3:
            mentions.append(mention(path, number, text, columns))
    return Document(pmid, text, tuple(mentions))


def mention(path: str, number: int, text: str, columns: Sequence[str]) -> Mention:
    """A mention from the columns start, end, words and type of a line.

    Raises:
        BenchmarkFileError: the text has other words there.
    """
    start, end, said, type = columns[:4]
    if not (start + end).isdecimal() or not start or not end:
        raise BenchmarkFileError(
            path, number, f"offsets should be numbers, not {shown(start)} and {shown(end)}"
        )
    there = text[int(start) : int(end)]
    if there != said or not said:
        raise BenchmarkFileError(path, number, f"from {start} to {end} is {shown(there)}, not {shown(said)}")
    return Mention(int(start), int(end), type.upper())


def documents(files: Files) -> Parts:
    """The PubTator files ``train``, ``dev`` and ``test`` as a text a document.

    Its label are its mentions, each as ``start-end TYPE``: no task has it, but so they can be counted.
    """
    return {part: [_text(one) for one in pubtator(only(files, part))] for part in PARTS if part in files}


def _text(document: Document) -> Record:
    label = frozenset(f"{one.start}-{one.end} {one.type}" for one in document.mentions)
    return Text(document.pmid, document.text, label, document=document.pmid)
