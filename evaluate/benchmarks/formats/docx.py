"""Read the first table of a Word document (.docx), a zip archive with ``word/document.xml``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lxml import etree

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError
from bioshards.evaluate.benchmarks.formats.xml_files import iter_archive, parse_xml

_NAMESPACE: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TEXT_TAG: Final = f"{_NAMESPACE}t"


def read_first_table(path: str, columns: Sequence[str]) -> list[list[str]]:
    """Return the rows of the first table, below its header, with these columns in this order.

    Raises:
        BenchmarkFileError: the file is damaged, or its first table has other columns.
    """
    members = dict(iter_archive(path))
    if "word/document.xml" not in members:
        raise BenchmarkFileError(path, None, "it is no Word document: it has no word/document.xml")
    root = parse_xml(f"{path}, word/document.xml", members["word/document.xml"])
    first_table = next(root.iter(f"{_NAMESPACE}tbl"), None)
    rows = (
        [] if first_table is None else [_get_cell_texts(row) for row in first_table.iter(f"{_NAMESPACE}tr")]
    )
    header, *rows = rows or [[]]
    if missing := [column for column in columns if column not in header]:
        reason = (
            f"its first table should have the columns {', '.join(columns)}; it has {header}, without "
            f"{missing}"
        )
        raise BenchmarkFileError(path, None, reason)
    indices = [header.index(column) for column in columns]
    for row_number, row in enumerate(rows, 2):
        if len(row) != len(header):
            raise BenchmarkFileError(
                path, None, f"row {row_number} of its table has {len(row)} cells, not {len(header)}"
            )
    return [[row[index] for index in indices] for row in rows]


def _get_cell_texts(row: etree._Element) -> list[str]:
    return [_get_text(cell) for cell in row.iter(f"{_NAMESPACE}tc")]


def _get_text(cell: etree._Element) -> str:
    """Return the text of a cell, with a blank between its paragraphs."""
    paragraphs = (
        "".join(run.text or "" for run in paragraph.iter(_TEXT_TAG))
        for paragraph in cell.iter(f"{_NAMESPACE}p")
    )
    return " ".join(paragraphs).strip()
