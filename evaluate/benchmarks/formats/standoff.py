"""PubTator files: texts with standoff mentions (BC5CDR, NCBI-disease).

Documents keep their PMIDs, so the contamination check reads BC5CDR in this format.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bioshards.evaluate.benchmarks.definition import SPLITS, BenchmarkFileError, PathsByName, RecordsBySplit
from bioshards.evaluate.benchmarks.formats.text_files import get_only_path, quote_excerpt, read_lines
from bioshards.evaluate.benchmarks.record_types import LabelledText, Mention, Record

_TEXT_LINE: Final = re.compile(r"(\d+)\|([ta])\|(.*)")


@dataclass(frozen=True, slots=True)
class PubTatorDocument:
    """A text with its mentions in file order. The text is the title, a blank and the abstract."""

    pmid: str
    text: str
    mentions: tuple[Mention, ...]


def read_pubtator(path: str) -> list[PubTatorDocument]:
    """Read ``PMID|t|title``, ``PMID|a|abstract`` and mention lines.

    A mention of several concepts ("visual or auditory toxicity") is one mention. Relation lines (four
    columns) are skipped.

    Raises:
        BenchmarkFileError: a line has another form or document, or its offsets do not match the text.
    """
    parsed: list[PubTatorDocument] = []
    block: list[tuple[int, str]] = []
    for line_number, row in [*read_lines(path), (0, "")]:
        if row.strip():
            block.append((line_number, row))
        elif block:
            parsed.append(_parse_document(path, block))
            block = []
    return parsed


def _parse_document(path: str, block: Sequence[tuple[int, str]]) -> PubTatorDocument:
    title, abstract = (_TEXT_LINE.fullmatch(row) for _, row in [*block, (0, "")][:2])
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
    for line_number, row in block[2:]:
        line_pmid, *columns = row.split("\t")
        if len(columns) < 3:
            raise BenchmarkFileError(
                path, line_number, f"a mention or relation should stand there, not {quote_excerpt(row)}"
            )
        if line_pmid != pmid:
            raise BenchmarkFileError(
                path, line_number, f"it is of {quote_excerpt(line_pmid)}, among the lines of {pmid}"
            )
        if len(columns) > 3:
            mentions.append(parse_mention(path, line_number, text, columns))
    return PubTatorDocument(pmid, text, tuple(mentions))


def parse_mention(path: str, line_number: int, text: str, columns: Sequence[str]) -> Mention:
    """Return the mention of the columns start, end, text and type.

    Raises:
        BenchmarkFileError: the offsets are invalid or do not match the text.
    """
    start, end, expected_text, entity_type = columns[:4]
    if not (start + end).isdecimal() or not start or not end:
        raise BenchmarkFileError(
            path,
            line_number,
            f"offsets should be numbers, not {quote_excerpt(start)} and {quote_excerpt(end)}",
        )
    actual_text = text[int(start) : int(end)]
    if actual_text != expected_text or not expected_text:
        raise BenchmarkFileError(
            path,
            line_number,
            f"from {start} to {end} is {quote_excerpt(actual_text)}, not {quote_excerpt(expected_text)}",
        )
    return Mention(int(start), int(end), entity_type.upper())


def read_documents(files: PathsByName) -> RecordsBySplit:
    """Read each PubTator file as one text per document.

    The label of a text is the set of its mentions as ``start-end TYPE``, so that ``verify`` can count them.
    """
    return {
        split: [_make_text(document) for document in read_pubtator(get_only_path(files, split))]
        for split in SPLITS
        if split in files
    }


def _make_text(document: PubTatorDocument) -> Record:
    label = frozenset(
        f"{entity_mention.start}-{entity_mention.end} {entity_mention.type}"
        for entity_mention in document.mentions
    )
    return LabelledText(document.pmid, document.text, label, document_id=document.pmid)
