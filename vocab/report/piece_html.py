"""Pieces as boxes in the HTML report; ``bioshards.corpus.ui.html_page`` renders the page around them.

A piece may be of a right-to-left script, so each is isolated by ``<bdi>``.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from bioshards.corpus.ui.html_page import spell_out_invisible
from bioshards.vocab.tokenizer.wordpiece import CONTINUATION_PREFIX, SENTENCEPIECE_SPACE


def render_piece(piece_text: str) -> str:
    """Return a piece as a box, its ``##`` or word-start sign in a paler colour."""
    mark = next(
        (
            mark
            for mark in (CONTINUATION_PREFIX, SENTENCEPIECE_SPACE)
            if piece_text.startswith(mark) and piece_text != mark
        ),
        "",
    )
    mark_html = f"<i>{mark}</i>" if mark else ""
    text = html.escape(spell_out_invisible(piece_text.removeprefix(mark)))
    return f'<bdi class="piece">{mark_html}{text}</bdi>'


def render_pieces(piece_texts: Iterable[str]) -> str:
    """Return pieces as boxes."""
    return " ".join(map(render_piece, piece_texts))
