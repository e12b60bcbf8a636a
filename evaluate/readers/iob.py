"""Named entities as CoNLL's shared tasks write them: a word and its tag a line, blank lines between.

Crichton et al. (2017, MTL-Bioinformatics-2016) put fifteen sets into this form, and BLURB, BioBERT and
most papers since take them from there; SciBERT and ELECTRAMed have blanks for tabs.  Columns between the
first and the last (parts of speech) are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from bioshards.evaluate.datasets import BenchmarkFileError
from bioshards.evaluate.records import Sentence

from .lines import lines, shown

_TAG: Final = re.compile(r"O|[BI](-\S+)?")
_DOCUMENT: Final = re.compile(r"-DOCSTART-|###MEDLINE:")
"""What begins a document: CoNLL's mark, and GENIA's (JNLPBA)."""
_NUMBER: Final = re.compile(r"\d+")


def sentences(path: str, type: str | None = None) -> list[Sentence]:
    """The sentences of a file.

    Args:
        type: what all mentions are, where the file's tags do not say it (``B``) or where the types that
            they say are merged; as BLURB does it, so that ``B-DNA B-protein`` stay two mentions.

    Raises:
        BenchmarkFileError: the file cannot be read, or a line has no tag, or one that is none of IOB's.
    """
    return parse(path, lines(path), type)


def parse(path: str, rows: Iterable[tuple[int, str]], type: str | None = None) -> list[Sentence]:
    """The sentences of some lines of a file; a sentence's id is the number of its first line.

    Raises:
        BenchmarkFileError: as of :func:`sentences`.
    """
    found: list[Sentence] = []
    document, first = "", 0
    words: list[str] = []
    tags: list[str] = []
    read: dict[str, str] = {}  # by what the file says, the tag: there are few, and millions of lines
    for number, row in [*rows, (0, "")]:
        mark = _DOCUMENT.match(row)
        if mark or not row or row.isspace():
            if words:
                found.append(Sentence(str(first), tuple(words), tuple(tags), document))
                words, tags = [], []
            if mark:
                named = _NUMBER.search(row, mark.end())
                document = named.group() if named else ""
            continue
        first = first if words else number
        columns = row.split("\t" if "\t" in row else " ")
        word, said = columns[0], columns[-1]
        if len(columns) < 2 or not word.strip():
            raise BenchmarkFileError(path, number, f"a word and its tag should stand there, not {shown(row)}")
        if said not in read:
            read[said] = _tag(path, number, said, type)
        words.append(word)
        tags.append(read[said])
    return found


def _tag(path: str, number: int, said: str, type: str | None) -> str:
    if not _TAG.fullmatch(said):
        raise BenchmarkFileError(path, number, f"a tag is O, B-Type or I-Type, not {shown(said)}")
    if type is not None and said != "O":
        return f"{said[0]}-{type}"
    if said in ("B", "I"):
        raise BenchmarkFileError(path, number, f"its tag {said} does not say of which type the mention is")
    return said


def begins(tags: Sequence[str]) -> list[bool]:
    """Which words begin a mention, as conlleval reads tags: so does ``I-X`` after what is no ``X``."""
    return [
        tag[0] == "B" or (tag[0] == "I" and before[1:] != tag[1:])
        for before, tag in zip(["O", *tags], tags, strict=False)
    ]


def as_iob2(found: Iterable[Sentence]) -> list[Sentence]:
    """The same mentions with ``B-`` where each begins, whatever the file's scheme puts there."""
    return [
        replace(
            sentence,
            tags=tuple(
                f"B{tag[1:]}" if begin else tag
                for tag, begin in zip(sentence.tags, begins(sentence.tags), strict=True)
            ),
        )
        for sentence in found
    ]
