"""The report of a vocabulary as one HTML page, without scripts and external files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
        curve=plot_curve(report["curve"], report["name"]) if report["curve"] else None,
        whole_counts=_count_whole_probes(report),
        split_marks=_split_marks,
        UNK=UNK,
        MAX_WORD_LENGTH=MAX_WORD_LENGTH,
        MAX_INPUT_LENGTH=MAX_INPUT_LENGTH,
    )


@dataclass(frozen=True, slots=True)
class Curve:
    """Fertility against vocabulary size: a line for the first N pieces, a dot for each vocabulary.

    Places are per cent of the chart's width, on a logarithmic scale of sizes, and of its height.

    Attributes:
        line: places of the points.
        dots: name, size, fertility and place of each vocabulary, ours first.
        sizes: smallest and largest size, where the scale begins and ends.
        fertilities: the same of fertility.
    """

    line: list[tuple[float, float]]
    dots: list[tuple[str, int, float, tuple[float, float]]]
    sizes: tuple[int, int]
    fertilities: tuple[float, float]


def plot_curve(curve: Mapping[str, Any], name: str) -> Curve:
    """Place the points of a curve and the vocabularies that it is compared with."""
    points, (_, *baselines) = curve["points"], curve["vocabularies"]
    sizes = [entry["size"] for entry in (*points, *baselines)]
    fertilities = [entry["fertility"] for entry in (*points, *baselines)]
    low, high = math.log(min(sizes)), math.log(max(sizes))
    bottom, top = min(1, *fertilities), max(1.1, *fertilities)  # at 1, all words are whole

    def place(entry: Mapping[str, Any]) -> tuple[float, float]:
        x = (math.log(entry["size"]) - low) / (high - low) if high > low else 0.5
        return 100 * x, 100 * (entry["fertility"] - bottom) / (top - bottom)

    named = [(name, points[-1]), *((entry["name"], entry) for entry in baselines)]
    dots = [(title, entry["size"], entry["fertility"], place(entry)) for title, entry in named]
    return Curve([place(point) for point in points], dots, (min(sizes), max(sizes)), (bottom, top))


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
