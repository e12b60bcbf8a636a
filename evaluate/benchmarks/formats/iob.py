"""CoNLL files of named entities: a word and its tag on each line, sentences separated by blank lines.

Crichton et al. (2017, MTL-Bioinformatics-2016) published fifteen corpora in this form, which BLURB, BioBERT
and most later papers use. SciBERT and ELECTRAMed separate columns by blanks. Middle columns are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError
from bioshards.evaluate.benchmarks.formats.text_files import quote_excerpt, read_lines
from bioshards.evaluate.benchmarks.record_types import TaggedSentence

_TAG: Final = re.compile(r"O|[BI](-\S+)?")
_DOCUMENT_MARK: Final = re.compile(r"-DOCSTART-|###MEDLINE:")
"""Start of a document in CoNLL and in GENIA (JNLPBA)."""
_NUMBER: Final = re.compile(r"\d+")


def read_sentences(path: str, entity_type: str | None = None) -> list[TaggedSentence]:
    """Read the sentences of a file.

    Args:
        entity_type: type of all mentions, for untyped tags (``B``) or to merge types. Adjacent mentions
            ``B-DNA B-protein`` stay two, as in BLURB.

    Raises:
        BenchmarkFileError: the file cannot be read, or a line has no valid tag.
    """
    return parse_sentences(path, read_lines(path), entity_type)


def parse_sentences(
    path: str, rows: Iterable[tuple[int, str]], entity_type: str | None = None
) -> list[TaggedSentence]:
    """Parse the sentences of numbered lines; the id of a sentence is its first line.

    Raises:
        BenchmarkFileError: see :func:`read_sentences`.
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
    """Return which words start a mention by conlleval's rule.

    ``B-`` starts one, and so does ``I-X`` after a word that is not ``X``.
    """
    return [
        tag[0] == "B" or (tag[0] == "I" and previous[1:] != tag[1:])
        for previous, tag in zip(["O", *tags], tags, strict=False)
    ]


def convert_to_iob2(tagged_sentences: Iterable[TaggedSentence]) -> list[TaggedSentence]:
    """Return the same mentions with ``B-`` at each start."""
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
