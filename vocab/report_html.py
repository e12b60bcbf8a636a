"""Pieces in the report's page as little boxes; the page's frame is ``bioshards.corpus.page``.

Pieces are learnt from whatever text there is, so any of them may write from right to left: all are isolated.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from bioshards.corpus.page import visible

from .wordpiece import CONTINUES, SPACE


def piece(written: str) -> str:
    """A piece in a box, the mark of where it stands in a word paler than the rest."""
    mark = next((mark for mark in (CONTINUES, SPACE) if written.startswith(mark) and written != mark), "")
    inner = f"<i>{mark}</i>" if mark else ""
    return f'<bdi class="piece">{inner}{html.escape(visible(written.removeprefix(mark)))}</bdi>'


def pieces(written: Iterable[str]) -> str:
    """Pieces in boxes."""
    return " ".join(map(piece, written))
