"""The table of a Word document (.docx): a zip archive with its XML in ``word/document.xml``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from lxml import etree

from bioshards.evaluate.datasets import BenchmarkFileError

from .xml_files import archived, tree

_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_TEXT: Final = f"{_W}t"


def table(path: str, columns: Sequence[str]) -> list[list[str]]:
    """The rows of a document's first table below the one that names its columns, these in this order.

    Raises:
        BenchmarkFileError: no such document, or its first table has other columns.
    """
    parts = dict(archived(path))
    if "word/document.xml" not in parts:
        raise BenchmarkFileError(path, None, "it is no Word document: it has no word/document.xml")
    root = tree(f"{path}, word/document.xml", parts["word/document.xml"])
    first = next(root.iter(f"{_W}tbl"), None)
    rows = [] if first is None else [_cells(row) for row in first.iter(f"{_W}tr")]
    names, *rows = rows or [[]]
    if missing := [column for column in columns if column not in names]:
        why = (
            f"its first table should have the columns {', '.join(columns)}; it has {names}, without {missing}"
        )
        raise BenchmarkFileError(path, None, why)
    places = [names.index(column) for column in columns]
    for number, row in enumerate(rows, 2):
        if len(row) != len(names):
            raise BenchmarkFileError(
                path, None, f"row {number} of its table has {len(row)} cells, not {len(names)}"
            )
    return [[row[place] for place in places] for row in rows]


def _cells(row: etree._Element) -> list[str]:
    return [_text(cell) for cell in row.iter(f"{_W}tc")]


def _text(cell: etree._Element) -> str:
    """The text of a cell, a blank between its paragraphs."""
    paragraphs = ("".join(run.text or "" for run in one.iter(_TEXT)) for one in cell.iter(f"{_W}p"))
    return " ".join(paragraphs).strip()
