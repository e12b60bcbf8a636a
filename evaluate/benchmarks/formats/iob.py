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

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError
from bioshards.evaluate.benchmarks.record_types import TaggedSentence

from .text_files import quote_excerpt, read_lines

_TAG: Final = re.compile(r"O|[BI](-\S+)?")
_DOCUMENT_MARK: Final = re.compile(r"-DOCSTART-|###MEDLINE:")
"""What begins a document: CoNLL's mark, and GENIA's (JNLPBA)."""
_NUMBER: Final = re.compile(r"\d+")


def read_sentences(path: str, entity_type: str | None = None) -> list[TaggedSentence]:
    """The sentences of a file.

    Args:
        type: what all mentions are, where the file's tags do not say it (``B``) or where the types that
            they say are merged; as BLURB does it, so that ``B-DNA B-protein`` stay two mentions.

    Raises:
        BenchmarkFileError: the file cannot be read, or a line has no tag, or one that is none of IOB's.
    """
    return parse_sentences(path, read_lines(path), entity_type)


def parse_sentences(
    path: str, rows: Iterable[tuple[int, str]], entity_type: str | None = None
) -> list[TaggedSentence]:
    """The sentences of some lines of a file; a sentence's id is the number of its first line.

    Raises:
        BenchmarkFileError: as of :func:`sentences`.
    """
    parsed: list[TaggedSentence] = []
    document_id, first_line = "", 0
    words: list[str] = []
    tags: list[str] = []
    tag_cache: dict[str, str] = {}  # by what the file says, the tag: there are few, and millions of lines
    for line_number, row in [*rows, (0, "")]:
        document_mark = _DOCUMENT_MARK.match(row)
        if document_mark or not row or row.isspace():
            if words:
                parsed.append(TaggedSentence(str(first_line), tuple(words), tuple(tags), document_id))
                words, tags = [], []
            if document_mark:
                number_match = _NUMBER.search(row, document_mark.end())
                document_id = number_match.group() if number_match else ""
            continue
        first_line = first_line if words else line_number
        columns = row.split("\t" if "\t" in row else " ")
        word, raw_tag = columns[0], columns[-1]
        if len(columns) < 2 or not word.strip():
            raise BenchmarkFileError(
                path, line_number, f"a word and its tag should stand there, not {quote_excerpt(row)}"
            )
        if raw_tag not in tag_cache:
            tag_cache[raw_tag] = _parse_tag(path, line_number, raw_tag, entity_type)
        words.append(word)
        tags.append(tag_cache[raw_tag])
    return parsed


def _parse_tag(path: str, line_number: int, raw_tag: str, entity_type: str | None) -> str:
    if not _TAG.fullmatch(raw_tag):
        raise BenchmarkFileError(
            path, line_number, f"a tag is O, B-Type or I-Type, not {quote_excerpt(raw_tag)}"
        )
    if entity_type is not None and raw_tag != "O":
        return f"{raw_tag[0]}-{entity_type}"
    if raw_tag in ("B", "I"):
        raise BenchmarkFileError(
            path, line_number, f"its tag {raw_tag} does not say of which type the mention is"
        )
    return raw_tag


def find_mention_starts(tags: Sequence[str]) -> list[bool]:
    """Which words begin a mention, as conlleval reads tags: so does ``I-X`` after what is no ``X``."""
    return [
        tag[0] == "B" or (tag[0] == "I" and previous[1:] != tag[1:])
        for previous, tag in zip(["O", *tags], tags, strict=False)
    ]


def convert_to_iob2(tagged_sentences: Iterable[TaggedSentence]) -> list[TaggedSentence]:
    """The same mentions with ``B-`` where each begins, whatever the file's scheme puts there."""
    return [
        replace(
            sentence,
            tags=tuple(
                f"B{tag[1:]}" if is_start else tag
                for tag, is_start in zip(sentence.tags, find_mention_starts(sentence.tags), strict=True)
            ),
        )
        for sentence in tagged_sentences
    ]
