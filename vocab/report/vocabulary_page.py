"""The report of a vocabulary as one HTML page, without scripts and external files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bioshards.corpus.ui.chart import Chart, Line, draw_lines, make_linear_axis, make_log_axis
from bioshards.corpus.ui.html_page import format_percent, spell_out_invisible
from bioshards.corpus.ui.html_page import render_page as render_template
from bioshards.vocab.report.vocabulary_report import DEFAULT_NAME, MAX_INPUT_LENGTH
from bioshards.vocab.tokenizer.wordpiece import (
    CONTINUATION_PREFIX,
    MAX_WORD_LENGTH,
    SENTENCEPIECE_SPACE,
    UNK,
)


def render_page(report: Mapping[str, Any], name: str | None = None) -> str:
    """Return the page of a report (vocabulary_report.py).

    Args:
        name: name to show for a vocabulary without one, for example that of its folder; ignored if a baseline
            has the same name.
    """
    own, *baselines = report["vocabularies"]
    if name and report["name"] == DEFAULT_NAME and all(name != each["name"] for each in baselines):
        report = {**report, "name": name, "vocabularies": [{**own, "name": name}, *baselines]}
    unknown = format_percent(own["on_words"]["unknown_words"])
    return render_template(
        __package__,
        "vocabulary_page.html",
        title="Vocabulary report" + (f": {report['name']}" if report["name"] != DEFAULT_NAME else ""),
        headline=[
            (f"{own['on_words']['fertility']:.4f}", "pieces a word (fertility)"),
            (unknown.replace("\u202f", " "), f"of words with an {UNK}"),
            (f"{own['size']:,}", "entries"),
        ],
        report=report,
        vocabularies=report["vocabularies"],
        names=[vocabulary["name"] for vocabulary in report["vocabularies"]],
        curve_chart=draw_curve(report["curve"], report["name"]) if report["curve"] else None,
        whole_counts=_count_whole_probes(report),
        split_marks=_split_marks,
        UNK=UNK,
        MAX_WORD_LENGTH=MAX_WORD_LENGTH,
        MAX_INPUT_LENGTH=MAX_INPUT_LENGTH,
    )


def draw_curve(curve: Mapping[str, Any], name: str) -> Chart:
    """Draw fertility against vocabulary size: a line for the first N pieces, a marker for each baseline."""
    points, baselines = curve["points"], curve["vocabularies"][1:]
    sizes = [entry["size"] for entry in (*points, *baselines)]
    fertilities = [entry["fertility"] for entry in (*points, *baselines)]
    lines = [_make_line(points, 0, name)]
    lines += [_make_line([entry], index, entry["name"]) for index, entry in enumerate(baselines, start=1)]
    return draw_lines(
        f"Pieces a word against the size of the vocabulary {name}",
        lines,
        make_log_axis("entries of the vocabulary", sizes),
        make_linear_axis("pieces a word", [1, 1.1, *fertilities]),  # at 1, all words are whole
    )


def _make_line(points: Sequence[Mapping[str, Any]], index: int, name: str) -> Line:
    xs, ys = [point["size"] for point in points], [point["fertility"] for point in points]
    return Line(xs, ys, index, name, "none" if index else "solid", index if index else "dot")


def _count_whole_probes(report: Mapping[str, Any]) -> list[int]:
    """Count the probe words that are one piece, by vocabulary."""
    return [
        sum(
            len(probe["pieces"][index]) == 1 and probe["pieces"][index] != [vocabulary["unknown"]]
            for probe in report["probes"]
        )
        for index, vocabulary in enumerate(report["vocabularies"])
    ]


def _split_marks(pieces: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the ``##`` or word-start sign of each piece, or an empty string, and its text."""
    for piece in pieces:
        marks = (CONTINUATION_PREFIX, SENTENCEPIECE_SPACE)
        mark = next((mark for mark in marks if piece.startswith(mark) and piece != mark), "")
        yield mark, spell_out_invisible(piece.removeprefix(mark))
