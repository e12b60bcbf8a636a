"""Pieces in the report's page as little boxes; the page's frame is ``bioshards.corpus.ui.html_page``.

Pieces are learnt from whatever text there is, so any of them may write from right to left: all are isolated.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from bioshards.corpus.ui.html_page import spell_out_invisible
from bioshards.vocab.tokenizer.wordpiece import CONTINUATION_PREFIX, SENTENCEPIECE_SPACE


def render_piece(piece_text: str) -> str:
    """A piece in a box, the mark of where it stands in a word paler than the rest."""
    mark = next(
        (
            mark
            for mark in (CONTINUATION_PREFIX, SENTENCEPIECE_SPACE)
            if piece_text.startswith(mark) and piece_text != mark
        ),
        "",
    )
    mark_html = f"<i>{mark}</i>" if mark else ""
    return f'<bdi class="piece">{mark_html}{html.escape(spell_out_invisible(piece_text.removeprefix(mark)))}</bdi>'


def render_pieces(piece_texts: Iterable[str]) -> str:
    """Pieces in boxes."""
    return " ".join(map(render_piece, piece_texts))
