"""Contamination report as an HTML page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bioshards.corpus.ui import html_page

from . import split_summary as words
from .matches import ContaminationResult
from .ngrams import NGRAM_SIZE
from .split_summary import TABLE_HEADER, TABLE_LEGEND, SplitSummary

_MAX_DOCUMENTS: Final = 100
"""Documents on the page; documents.tsv has all."""


def render_page(result: ContaminationResult, summaries: list[SplitSummary]) -> str:
    """Render the page, with the requested splits first."""
    title = "Benchmarks in the pretraining text"
    other_summaries = [summary for summary in summaries if summary.split not in result.splits]
    folders = ", ".join(
        f"{corpus.folder} ({corpus.pipeline}, {corpus.documents:,} documents)" for corpus in result.corpora
    )
    return html_page.render_html_page(
        title,
        [
            f"<h1>{title}</h1>",
            _render_paragraph(f"{words.describe_exclusions(result)}."),
            _render_paragraph(f"Scanned: {words.describe_corpora(result)}; {folders}.", "note"),
            f"<h2>Examples of {', '.join(result.splits)}</h2>",
            _render_summaries(summary for summary in summaries if summary.split in result.splits),
            _render_paragraph(TABLE_LEGEND, "note"),
            *(_render_paragraph(f"{note}.", "note") for note in words.collect_notes(result)),
            "<h2>Documents that contain them</h2>",
            _render_documents(result),
            *(
                ["<h2>Examples of other splits</h2>", _render_summaries(other_summaries)]
                if other_summaries
                else []
            ),
        ],
    )


def _render_paragraph(text: str, css_class: str = "") -> str:
    return f"<p{f' class={css_class}' if css_class else ''}>{html_page.escape_html(text)}</p>"


def _render_summaries(summaries: Iterable[SplitSummary]) -> str:
    return html_page.render_table(
        list(map(html_page.escape_html, TABLE_HEADER)),
        [list(map(html_page.escape_html, summary.to_cells())) for summary in summaries],
        left_aligned=(1,),
    )


def _render_documents(result: ContaminationResult) -> str:
    sorted_matches = sorted(
        result.document_matches,
        key=lambda match: (not match.should_exclude, -match.num_shared, match.document.id),
    )
    shown_matches = sorted_matches[:_MAX_DOCUMENTS]
    if not shown_matches:
        return _render_paragraph("None.")
    cells = [
        (
            match.document.id,
            match.document.pmid or "",
            "yes" if match.has_pmid else "no",
            f"{match.num_shared:,}",
            "excluded" if match.should_exclude else "kept",
            ", ".join(match.benchmarks),
        )
        for match in shown_matches
    ]
    header = ("document", "PMID", "by PMID", f"shared {NGRAM_SIZE}-grams", "", "benchmarks")
    note = f"{len(shown_matches):,} of {len(result.document_matches):,}; all are in documents.tsv."
    return html_page.render_table(
        header, [list(map(html_page.escape_html, row)) for row in cells], left_aligned=(5,)
    ) + _render_paragraph(note, "note")
