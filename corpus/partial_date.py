"""Dates of publication in ISO 8601, which may lack day and month: ``2001``, ``2001-02``, ``2001-02-03``."""

from __future__ import annotations

from typing import Final

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def format_partial_date(year: str, month: str | None, day: str | None) -> str:
    """Return a date as precise as its parts allow.

    Args:
        year: four digits.
        month: ``Feb``, ``February``, ``2`` or ``02``; what is none, as a season, is left out with the day.
        day: of the month.
    """
    month_number = _parse_number(month, 12) or _find_month(month)
    if not month_number:
        return year
    day_number = _parse_number(day, 31)
    return f"{year}-{month_number:02}-{day_number:02}" if day_number else f"{year}-{month_number:02}"


def _parse_number(text: str | None, highest: int) -> int | None:
    if not (text and text.isascii() and text.isdecimal() and len(text) <= 2):
        return None
    return int(text) if 1 <= int(text) <= highest else None


def _find_month(name: str | None) -> int | None:
    beginning = name[:3].lower() if name else ""
    return _MONTHS.index(beginning) + 1 if beginning in _MONTHS else None
