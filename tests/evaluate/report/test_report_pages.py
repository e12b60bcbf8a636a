"""What is shown of a report: the papers' layouts, every caveat at its number, nothing that can do harm."""

from __future__ import annotations

import re
from typing import Any

import lxml.html
import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.evaluate.report.blurb import BLURB_TASKS
from bioshards.evaluate.report.evaluation_page import render_page
from bioshards.evaluate.report.markdown import render_markdown
from bioshards.evaluate.report.report_data import build_report
from bioshards.evaluate.report.report_types import Report
from bioshards.evaluate.report.score_chart import ModelBars, ScoreBar, draw_chart
from bioshards.evaluate.runs.results import Result
from tests.support.evaluate.synthetic_results import (
    DEFAULTS,
    defaults_of,
    make_result,
    metric_of,
    results_by_path,
)

SAMPLED = {"train": 200, "dev": 100, "test": 2}
UNVERIFIED = {"verified": False, "notes": ["The split is ours."], "files": {}, "counts": {}}
HOSTILE = (
    "<script>alert(1)</script>",
    '"onload="x',
    "&amp;",
    "a|b",
    "**bold** _it_ `code` ~~no~~ $x$",
    "[a](javascript:alert(1))",
    "![a][b]: c",
    "line\nend\r\n# head",
    "\u202egnp",
    "\x1b[0m",
    "</style></svg></details>",
    "\\",
)


def report(*found: Result) -> Report:
    return build_report(results_by_path(*found), metric_of, defaults_of)


def rows_of(text: str, title: str) -> list[list[str]]:
    """The cells of the Markdown table below a title."""
    lines = text[text.index(title) :].splitlines()
    start = next(at for at, line in enumerate(lines) if line.startswith("|"))
    table = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return [table[0], *table[2:]]


def row(text: str, title: str, first: str) -> dict[str, str]:
    head, *rows = rows_of(text, title)
    (found,) = [one for one in rows if re.sub(r" <sup>.*", "", one[0]) == first]
    return dict(zip((re.sub(r" <sup>.*", "", name) for name in head), found, strict=True))


def rows_counted(correct: int) -> list[tuple[int, ...]]:
    return [(correct, 10, 10, correct, 10, 10)]


GOLDEN = """\
# Evaluation

Scores are in per cent. Scores of our models are means over n seeds, with the standard deviation in \
brackets (numpy.std over seeds, ddof 0). Below is the 95% interval of 1,000 bootstrap resamples; it \
covers the choice of test documents (examples, if files name no documents), not the choice of seeds. \
Footnotes name limits of comparability.

## Models

| Model | Type | Parameters | SHA-256 of weights | Fine-tuned with | On |
| --- | --- | --: | --- | --- | --- |
| tiny | electra | 1,234,567 | 8950abfda7b7 | bioshards 0.9 | cpu |
| other | electra | 1,234,567 | d9298a10d1b0 | bioshards 0.9 | cpu |

## further

| Task | Score | tiny | other |
| --- | --- | --: | --: |
| zebra | F1 | 60.00 (10.00) n=2<br>[60.00, 60.00] | 90.00 n=1 <sup>† 1</sup><br>[90.00, 90.00] |

- <sup>†</sup> On a sample of the data (how much of it: see Runs): not comparable with published scores.
- <sup>1</sup> Stripes are invented.

### Models compared

| Task | Model | Compared with | Difference | Interval | p | Seeds |
| --- | --- | --- | --: | --: | --: | --- |
| zebra <sup>†</sup> | other | tiny | +40.00 | [40.00, 40.00] | 0.001 | 0 (only one has 1) |

- By paired bootstrap on the same test examples, of means over the seeds that both models have; p is \
two-sided and of one comparison alone: of 1, chance makes about 0.1 smaller than 0.05.
- <sup>†</sup> On a sample of the data (how much of it: see Runs): not comparable with published scores.

### Settings that are not the suite's

| Model | Setting | Here | Suite's own | Tasks |
| --- | --- | --: | --: | --- |
| other | batch\\_size | 16 | 32 | zebra |

<details><summary>Runs</summary>

| Task | Model | Metric | Examples | Counts as published | Seeds | Best epochs | Time |
| --- | --- | --- | --- | --- | --- | --- | --: |
| zebra | tiny | entity F1 (conlleval) | all | yes | 0, 1 | 1, 1 | 0:02:01 |
| zebra | other | entity F1 (conlleval) | train 200, dev 100, test 2 | yes | 0 | 1 | 1:00:00 |

</details>

<details><summary>All scores</summary>

| Task | Score | tiny, test | tiny, dev | other, test | other, dev |
| --- | --- | --: | --: | --: | --: |
| zebra | precision | 60.00 (10.00) | 30.00 (5.00) | 90.00 <sup>†</sup> | 45.00 <sup>†</sup> |
| zebra | recall | 60.00 (10.00) | 30.00 (5.00) | 90.00 <sup>†</sup> | 45.00 <sup>†</sup> |
| zebra | F1 | 60.00 (10.00) | 30.00 (5.00) | 90.00 <sup>†</sup> | 45.00 <sup>†</sup> |
| zebra | strict precision | 60.00 (10.00) | 30.00 (5.00) | 90.00 <sup>†</sup> | 45.00 <sup>†</sup> |
| zebra | strict recall | 60.00 (10.00) | 30.00 (5.00) | 90.00 <sup>†</sup> | 45.00 <sup>†</sup> |
| zebra | strict F1 | 60.00 (10.00) | 30.00 (5.00) | 90.00 <sup>†</sup> | 45.00 <sup>†</sup> |

- <sup>†</sup> On a sample of the data (how much of it: see Runs): not comparable with published scores.

</details>
"""


def test_markdown_is_golden() -> None:
    runs = [
        make_result(task="zebra", suite="further", seed=0, rows=rows_counted(5)),
        make_result(task="zebra", suite="further", seed=1, rows=rows_counted(7)),
        make_result(
            "other",
            task="zebra",
            suite="further",
            rows=rows_counted(9),
            sample_sizes=SAMPLED,
            settings={**DEFAULTS, "batch_size": 16},
            provenance={"verified": True, "notes": ["Stripes are invented."], "files": {}, "counts": {}},
            seconds=3599.6,
        ),
    ]
    assert render_markdown(report(*runs)) == GOLDEN


def test_blurb_is_in_the_papers_layout() -> None:
    runs = [
        make_result(task=task, seed=seed, rows=rows_counted(8)) for task in BLURB_TASKS for seed in (0, 1)
    ]
    _, *rows = rows_of(render_markdown(report(*runs)), "## BLURB")
    assert [re.sub(r" <sup>.*", "", one[0]) for one in rows if one[1] in ("F1", "Pearson", "accuracy")][
        :9
    ] == [
        *("BC5-chem", "BC5-disease", "NCBI-disease", "BC2GM", "JNLPBA"),
        *("EBM PICO", "ChemProt", "DDI", "GAD"),
    ]
    assert [one[0] for one in rows[-7:]] == [
        "NER, mean of 5",
        "PICO",
        "Relation extraction, mean of 3",
        "Sentence similarity",
        "Document classification",
        "Question answering, mean of 2",
        "BLURB score",
    ]
    last = row(render_markdown(report(*runs)), "## BLURB", "BLURB score")
    assert (last["tiny"], last["PubMedBERT"], last["BERT uncased"]) == ("80.00", "81.16", "76.11")
    first = row(render_markdown(report(*runs)), "## BLURB", "BC5-chem")
    assert (first["tiny"], first["PubMedBERT"]) == ("80.00 (0.00) n=2<br>[80.00, 80.00]", "93.33")


def test_a_partial_average_is_never_the_blurb_score() -> None:
    text = render_markdown(
        report(*(make_result(task=task, rows=rows_counted(8)) for task in BLURB_TASKS[:11]))
    )
    missing = row(text, "## BLURB", "BLURB score")
    assert re.fullmatch(r"– <sup>\d+</sup>", missing["tiny"])
    assert missing["PubMedBERT"] == "81.16"
    assert "No BLURB score without PubMedQA, BioASQ yes/no." in text
    average = row(text, "## BLURB", "Average over 11 of 13 tasks")
    assert (average["tiny"], average["PubMedBERT"]) == ("80.00", "83.05")
    assert "Not the BLURB score" in text


@pytest.mark.parametrize(
    ("others", "mark", "said"),
    [
        ({"sample_sizes": SAMPLED}, "†", "On a sample of the data"),
        ({"provenance": UNVERIFIED}, "‡", "are not the published ones"),
        ({"legacy": ["lower-case"]}, "§", "Counted as a paper does"),
    ],
)
def test_what_does_not_compare_is_marked_wherever_it_is_shown(others: Any, mark: str, said: str) -> None:
    runs = [make_result(task=task, rows=rows_counted(8), **others) for task in BLURB_TASKS]
    found = report(*runs)
    (label,) = found["suites"][0]["tasks"]["ddi"]["models"]
    text = render_markdown(found)
    for first in ("DDI", "NER, mean of 5", "BLURB score"):
        assert mark in row(text, "## BLURB", first)[label]
        assert mark not in row(text, "## BLURB", first)["PubMedBERT"]
    assert said in text
    shown = lxml.html.document_fromstring(render_page(found))
    ours = [one.text for one in shown.iter("text") if one.text and one.text.startswith("80.00")]
    assert ours == [f"80.00{mark}"] * 13


def test_notes_on_the_data_are_at_the_score() -> None:
    text = render_markdown(report(make_result(task="hoc", provenance=UNVERIFIED)))
    number = re.search(r"<sup>(\d+)</sup> The split is ours\.", text)
    assert number
    assert f"<sup>‡ {number[1]}</sup>" in row(text, "## BLURB", "HoC")["tiny"]


@pytest.mark.parametrize(
    ("suite", "title", "task", "figures"),
    [
        ("bio-electra", "Bio-ELECTRA's tasks", "NCBI-disease", ["precision", "recall", "F1"]),
        ("electramed", "ELECTRAMed's tasks", "NCBI-disease", ["precision", "recall", "F1"]),
        ("bioalbert", "BioALBERT's tasks", "NCBI-disease", ["precision", "recall", "F1"]),
    ],
)
def test_other_papers_have_rows_for_precision_and_recall(
    suite: str, title: str, task: str, figures: list[str]
) -> None:
    text = render_markdown(report(make_result(task="ncbi-disease", suite=suite, rows=rows_counted(8))))
    _, *rows = rows_of(text, f"## {title}")
    of_task = [one for one in rows if re.sub(r" <sup>.*", "", one[0]) == task]
    assert [one[1] for one in of_task] == figures
    assert [one[2] for one in of_task] == ["80.00", "80.00", "80.00 n=1<br>[80.00, 80.00]"]
    assert "Without results here: " in text


def test_development_scores_are_footnoted() -> None:
    text = render_markdown(report(make_result(task="linnaeus", suite="bio-electra")))
    cell = next(
        one[6]
        for one in rows_of(text, "## Bio-ELECTRA's tasks")
        if one[0].startswith("LINNAEUS") and one[1] == "F1"
    )
    numbers = re.fullmatch(r"95\.01 \(0\.84\) <sup>([\d,]+)</sup>", cell)
    assert numbers
    notes = [re.search(rf"<sup>{number}</sup> (.*)", text) for number in numbers[1].split(",")]
    assert any(note and note[1].startswith("Scores of the development set") for note in notes)


def test_a_paper_without_our_main_figure_gets_a_row_for_it() -> None:
    text = render_markdown(
        report(make_result(task="yesno-ideal", suite="bio-electra", metric="accuracy", rows=YES_NO))
    )
    _, *rows = rows_of(text, "## Bio-ELECTRA's tasks")
    assert rows[-1][:3] == ["BioASQ 8b yes/no", "accuracy", "100.00 n=1<br>[100.00, 100.00]"]


YES_NO = [(1, 1, 1, 0, 0, 0, 0, 0, 0)]


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_in_a_name_is_mark_up(name: str) -> None:
    data = {"verified": True, "notes": [name], "files": {}, "counts": {}}
    hostile: Any = {
        "data": data,
        "settings": {**DEFAULTS, name: name},
        "device": name,
        "library_versions": {name: name},
        "legacy": [name],
    }
    found = report(
        make_result(name, name, suite=name, **hostile), make_result(f"{name} 2", name, suite=name, **hostile)
    )
    for shown in (found, report(make_result(name, "ddi"), make_result("other", "ddi"))):
        tree = lxml.html.document_fromstring(render_page(shown))
        assert not list(tree.iter("script", "b", "img", "a"))
        assert not [key for one in tree.iter() for key in one.attrib if str(key).startswith("on")]
        assert len(list(tree.iter("style"))) == 1
        text = render_markdown(shown)
        assert "\r" not in text
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            marks = [re.findall(r"(?<!\\)(?:\\\\)*\|", line) for line in table.splitlines()]
            assert len(set(map(len, marks))) == 1
        assert not re.search(r"<(?!/?(sup|br|details|summary)>)", text)
        assert not re.search(r"(?<!\\)\]\(", text)


@settings(max_examples=25)
@given(st.text(max_size=40), st.text(max_size=40))
def test_pages_are_well_formed_whatever_the_names(model: str, task: str) -> None:
    found = report(make_result(model, task), make_result(model + "'", task))
    tree = lxml.html.document_fromstring(render_page(found))
    assert len(list(tree.iter("table"))) == 7  # models, scores, compared, runs, figures, two of variants
    assert len(list(tree.iter("svg"))) == 1


def test_the_page_runs_and_loads_nothing() -> None:
    shown = render_page(report(make_result()))
    assert "default-src 'none'" in shown
    tree = lxml.html.document_fromstring(shown)
    assert not list(tree.iter("script", "link", "img", "iframe"))
    assert not [one for one in tree.iter() if "src" in one.attrib or "href" in one.attrib]


def test_the_chart_is_drawn_to_scale() -> None:
    svg = draw_chart(
        "Scores",
        ["one", "two"],
        [
            ModelBars("ours", [ScoreBar(50, "50.00", 40, 60), None]),
            ModelBars("theirs", [ScoreBar(100, "100.00"), ScoreBar(-20, "-20.00")], is_published=True),
        ],
    )
    tree = lxml.html.fragment_fromstring(svg)
    bars = [one for one in tree.iter("rect") if len(one)]
    widths = [float(one.attrib["width"]) for one in bars]
    assert widths[1] == pytest.approx(2 * widths[0])
    assert widths[2] == 0  # below 0 there is no bar, but the number is there
    assert [one.attrib["fill"] == "none" for one in bars] == [False, True, True]
    assert [one.findtext("title") for one in bars] == [
        "ours, one: 50.00",
        "theirs, one: 100.00",
        "theirs, two: -20.00",
    ]
    (line,) = tree.iter("path")
    low, high = map(float, re.findall(r"M([\d.]+) [\d.]+H([\d.]+)", line.attrib["d"])[0])
    assert numpy.isclose((high - low) / widths[1], 0.2, atol=0.001)


def test_the_chart_has_the_papers_own_figure_beside_ours() -> None:
    tree = lxml.html.document_fromstring(render_page(report(make_result(task="ddi"))))
    told = [one.text for one in tree.iter("title")]
    assert "PubMedBERT, DDI: 82.36" in told
    assert "BERT uncased, DDI: 80.04" in told
