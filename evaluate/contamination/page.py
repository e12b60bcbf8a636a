"""What was found, as a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bioshards.corpus import page

from . import accounts as words
from .accounts import HEAD, LEGEND, Account
from .judging import Contamination
from .ngrams import WORDS

_SHOWN: Final = 100
"""Documents on the page; documents.tsv has all."""


def of(found: Contamination, accounts: list[Account]) -> str:
    """The page, with the parts asked for first."""
    title = "Benchmarks in the pretraining text"
    others = [account for account in accounts if account.part not in found.parts]
    folders = ", ".join(
        f"{one.folder} ({one.pipeline}, {one.documents:,} documents)" for one in found.corpora
    )
    return page.document(
        title,
        [
            f"<h1>{title}</h1>",
            _paragraph(f"{words.to_exclude(found)}."),
            _paragraph(f"Looked at: {words.corpus(found)}; {folders}.", "note"),
            f"<h2>Examples of {', '.join(found.parts)}</h2>",
            _accounts(account for account in accounts if account.part in found.parts),
            _paragraph(LEGEND, "note"),
            *(_paragraph(f"{note}.", "note") for note in words.notes(found)),
            "<h2>Documents that hold them</h2>",
            _documents(found),
            *(["<h2>Examples of other parts</h2>", _accounts(others)] if others else []),
        ],
    )


def _paragraph(text: str, kind: str = "") -> str:
    return f"<p{f' class={kind}' if kind else ''}>{page.text(text)}</p>"


def _accounts(accounts: Iterable[Account]) -> str:
    return page.table(
        list(map(page.text, HEAD)), [list(map(page.text, one.cells())) for one in accounts], left=(1,)
    )


def _documents(found: Contamination) -> str:
    order = sorted(found.holders, key=lambda one: (not one.excluded, -one.shared, one.document.id))
    most = order[:_SHOWN]
    if not most:
        return _paragraph("None.")
    cells = [
        (
            one.document.id,
            one.document.pmid or "",
            "yes" if one.by_pmid else "no",
            f"{one.shared:,}",
            "left out" if one.excluded else "stays",
            ", ".join(one.sets),
        )
        for one in most
    ]
    head = ("document", "PMID", "by PMID", f"shared {WORDS}-grams", "", "sets")
    note = f"{len(most):,} of {len(found.holders):,}; all are in documents.tsv."
    return page.table(head, [list(map(page.text, row)) for row in cells], left=(5,)) + _paragraph(
        note, "note"
    )
