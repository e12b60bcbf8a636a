"""Write the rows of a table as lines: ``header: cell; header: cell``.

A row is complete in itself: the headers above a column are joined, and a cell that spans rows is repeated in
each of them. Tables are XHTML's, as JATS has them
(https://jats.nlm.nih.gov/archiving/tag-library/1.3/element/table.html), or those of OASIS, which name their
columns (https://www.oasis-open.org/specs/tm9901.htm).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from lxml import etree

from bioshards.corpus.jats.inline import extract_text

_MAX_SPAN: Final = 1000
"""Columns and rows that a cell can span, and columns of a table; HTML's limit for columns."""
_MAX_REPEATED_CHARACTERS: Final = 200
"""Longest text that is repeated: a longer header, or cell that spans rows, is written in the first row."""


class _Cell(NamedTuple):
    """A place of the grid.

    Attributes:
        text: text of the cell that is there.
        is_header: True for a ``th``.
        is_start: True in the first of the columns that the cell spans.
    """

    text: str
    is_header: bool
    is_start: bool = True


def format_rows(table: etree._Element) -> Iterator[str]:
    """Yield a line for each row of a ``table`` below its header that has text.

    The header is ``thead``, else the first rows that consist of ``th``. A cell without a header, as of the
    row's name, and one that spans columns stand alone. The groups of an OASIS table have their own headers.
    """
    for group in table.findall("tgroup") or [table]:
        yield from _format_group(group)


def _format_group(table: etree._Element) -> Iterator[str]:
    header_rows: list[list[_Cell]] = []
    headers: list[str] | None = None
    has_head = table.find("thead") is not None
    column_spans = _read_column_spans(table)
    for group in table.iterchildren("thead", "tbody", "tfoot", "tr"):
        rows = [group] if group.tag == "tr" else list(group.iterchildren("tr", "row"))
        for row in _read_grid(rows, column_spans | _read_column_spans(group)):
            is_head = group.tag == "thead" if has_head else all(cell.is_header for cell in row)
            if headers is None and is_head:
                header_rows.append(row)
                continue
            headers = _join_headers(header_rows) if headers is None else headers
            if line := _format_row(row, headers):
                yield line
                headers = [header if len(header) <= _MAX_REPEATED_CHARACTERS else "" for header in headers]


def _read_column_spans(group: etree._Element) -> dict[str, range]:
    """Return the columns, from 0, of each name of an OASIS table."""
    spans: dict[str, range] = {}
    column = 0
    for element in group.iterchildren("colspec", "spanspec"):
        if element.tag == "colspec":
            column = _get_number(element, "colnum", column + 1)
            spans[element.get("colname", "")] = range(column - 1, column)
        else:
            spans[element.get("spanname", "")] = _find_columns(element, spans) or range(1)
    return spans


def _find_columns(cell: etree._Element, column_spans: Mapping[str, range]) -> range | None:
    """Return the columns, from 0, that a cell of an OASIS table names, None if it names none."""
    names = [cell.get(attribute, "") for attribute in ("spanname", "namest", "colname")]
    first = next((column_spans[name] for name in names if name in column_spans), None)
    if first is None:
        return None
    last = column_spans.get(cell.get("nameend", ""), first)
    return range(first.start, max(first.stop, last.stop))


def _read_grid(rows: list[etree._Element], column_spans: Mapping[str, range]) -> Iterator[list[_Cell]]:
    """Yield rows with each cell in all columns and rows that it spans."""
    from_above: dict[int, tuple[int, _Cell]] = {}  # by column: cell of a row above, and how often it follows
    for row in rows:
        elements = row.iterchildren("td", "th", "entry")
        element = next(elements, None)
        grid_row: list[_Cell] = []
        to_below: dict[int, tuple[int, _Cell]] = {}
        while len(grid_row) < _MAX_SPAN:
            num_rows, cell = from_above.get(len(grid_row), (0, None))
            num_columns = 1
            if cell is None:
                if element is None:
                    break
                columns = _find_columns(element, column_spans) if column_spans else None
                if columns and columns.start > len(grid_row):
                    cell = _Cell("", False)
                else:
                    cell = _Cell(extract_text(element), element.tag == "th")
                    num_rows = max(
                        _get_number(element, "rowspan", 1), _get_number(element, "morerows", 0) + 1
                    )
                    num_columns = len(columns) if columns else _get_number(element, "colspan", 1)
                    element = next(elements, None)
            for place in (cell, *[cell._replace(is_start=False)] * (num_columns - 1)):
                if num_rows > 1:
                    is_long = len(place.text) > _MAX_REPEATED_CHARACTERS
                    to_below[len(grid_row)] = (num_rows - 1, place._replace(text="") if is_long else place)
                grid_row.append(place)
        from_above = to_below
        yield grid_row


def _get_number(element: etree._Element, name: str, default: int) -> int:
    """Return the number in an attribute, from the default to :data:`_MAX_SPAN`."""
    value = element.get(name, "").strip()
    return min(max(int(value), default), _MAX_SPAN) if value.isascii() and value.isdigit() else default


def _join_headers(rows: list[list[_Cell]]) -> list[str]:
    """Return the header of each column: the texts above it, each once."""
    columns: list[list[str]] = [[] for _ in range(max(map(len, rows), default=0))]
    for row in rows:
        for texts, cell in zip(columns, row, strict=False):
            if cell.text and cell.text not in texts:
                texts.append(cell.text)
    return [" ".join(texts).rstrip(": ") for texts in columns]


def _format_row(row: list[_Cell], headers: list[str]) -> str:
    parts = []
    for column, cell in enumerate(row):
        if cell.text and cell.is_start:
            has_one_column = column + 1 == len(row) or row[column + 1].is_start
            header = headers[column] if has_one_column and column < len(headers) else ""
            parts.append(f"{header}: {cell.text}" if header else cell.text)
    return "; ".join(parts)


_PARSER: Final = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
_TABLE_END: Final = "</table>"


def cut_escaped_tables(text: str) -> tuple[str, list[etree._Element]]:
    """Cut tables that came as text, in CDATA, out of a paragraph; return its rest and the tables.

    One that is not well-formed stays.
    """
    parts: list[str] = []
    tables: list[etree._Element] = []
    position = 0
    while (start := text.find("<table", position)) >= 0:
        end = text.find(_TABLE_END, start)
        if end < 0:
            break
        end += len(_TABLE_END)
        try:
            tables.append(etree.fromstring(text[start:end].replace("&", "&amp;"), _PARSER))
            parts.append(text[position:start])
        except etree.XMLSyntaxError:
            parts.append(text[position:end])
        position = end
    parts.append(text[position:])
    return " ".join("".join(parts).split()) if tables else text, tables
