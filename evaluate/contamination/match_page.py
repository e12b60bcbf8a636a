"""Contamination report as an HTML page."""

from __future__ import annotations

from typing import Final

from bioshards.corpus.ui.html_page import render_page as render_template
from bioshards.evaluate.contamination import split_summary as words
from bioshards.evaluate.contamination.matches import ContaminationResult
from bioshards.evaluate.contamination.ngrams import NGRAM_SIZE
from bioshards.evaluate.contamination.split_summary import TABLE_HEADER, TABLE_LEGEND, SplitSummary

_MAX_DOCUMENTS: Final = 100
"""Documents on the page; documents.tsv has all."""


def render_page(result: ContaminationResult, summaries: list[SplitSummary]) -> str:
    """Render the page, with the requested splits first."""
    return render_template(
        __package__,
        "match_page.html",
        title="Benchmarks in the pretraining text",
        headline=[
            (f"{sum(match.should_exclude for match in result.document_matches):,}", "documents to exclude"),
        ],
        result=result,
        words=words,
        requested=[summary.to_cells() for summary in summaries if summary.split in result.splits],
        others=[summary.to_cells() for summary in summaries if summary.split not in result.splits],
        matches=sorted(
            result.document_matches,
            key=lambda match: (not match.should_exclude, -match.num_shared, match.document.id),
        )[:_MAX_DOCUMENTS],
        NGRAM_SIZE=NGRAM_SIZE,
        TABLE_HEADER=TABLE_HEADER,
        TABLE_LEGEND=TABLE_LEGEND,
    )
