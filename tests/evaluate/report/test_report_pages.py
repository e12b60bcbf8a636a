"""Report pages in Markdown and HTML: layout, notes beside scores, and escaping."""

from __future__ import annotations

import re
from typing import Any

import lxml.html
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.evaluate.report.published import BLURB_TASKS
from bioshards.evaluate.report.report_pages import render_markdown, render_page
from tests.support.evaluate.synthetic_results import (
    DEFAULTS,
    build_synthetic_report,
    make_provenance,
    make_result,
    make_rows,
)
from tests.support.hypothesis_profiles import examples

MODELS = ("tiny", "other")
SAMPLED = {"train": 200, "dev": 100, "test": 2}
UNVERIFIED = make_provenance("differs", "The split is ours.")
COUNTED = make_provenance("counts agree")
PARTIAL = make_provenance("partial")
INVENTED = make_provenance("invented")
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


def parse_table(text: str, title: str) -> list[list[str]]:
    """Parse the Markdown table below a title into its cells."""
    lines = text[text.index(title) :].splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("|"))
    table = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return [table[0], *table[2:]]


def find_row(text: str, title: str, first: str) -> dict[str, str]:
    header, *rows = parse_table(text, title)
    (match,) = [cells for cells in rows if re.sub(r"( <sup>|<br>).*", "", cells[0]) == first]
    return dict(zip((re.sub(r" <sup>.*", "", name) for name in header), match, strict=True))


GOLDEN = """\
# Evaluation

Scores are in per cent. Scores of our models are means over n seeds, with the standard deviation in \
brackets (numpy.std over seeds, ddof 0). Below is the 95% interval of 1,000 bootstrap resamples; it \
covers the choice of test documents (examples, if files name no documents), not the choice of seeds. \
Words below a score, and footnotes, name limits of comparability.

## Models

| Model | Type | Parameters | SHA-256 of weights | Fine-tuned with | On |
| --- | --- | --: | --- | --- | --- |
| tiny | electra | 1,234,567 | 8950abfda7b7 | bioshards 0.9 | cpu |
| other | electra | 1,234,567 | d9298a10d1b0 | bioshards 0.9 | cpu |

## further

| Task | Score | tiny | other | Majority class <sup>1</sup> |
| --- | --- | --: | --: | --: |
| zebra | F1 | 60.00 (10.00) n=2<br>[60.00, 60.00] | 90.00 n=1 <sup>2</sup><br>[90.00, 90.00]\
<br>sample of the data<br>changed settings | 12.50 / 22.50 |

- sample of the data: how much of it is in Runs; not comparable with published scores.
- changed settings: settings are not the suite's; they are listed in Runs.
- <sup>1</sup> What a model scores that knows the labels of train and reads no text: the most frequent \
class, no entity, the mean, the order of the files, no answer.
- <sup>2</sup> Stripes are new.

### Models compared

| Task | Model | Compared with | Difference | Interval | p | Seeds |
| --- | --- | --- | --: | --: | --: | --- |
| zebra<br>sample of the data<br>changed settings | other \
| tiny | +40.00 | [40.00, 40.00] | 0.001 | 0 (only one has 1) |

- By paired bootstrap on the same test examples, of means over the seeds that both models have; p is \
two-sided and of one comparison alone: of 1, chance makes about 0.1 smaller than 0.05.
- sample of the data: how much of it is in Runs; not comparable with published scores.
- changed settings: settings are not the suite's; they are listed in Runs.

<details><summary>Runs</summary>

| Task | Model | Metric | Test | Dev | Examples | Files | Settings | Seeds | Best steps | Time |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --: |
| zebra | tiny | entity F1 (conlleval) | precision 60.00 (10.00), recall 60.00 (10.00), F1 60.00 (10.00), \
strict precision 60.00 (10.00), strict recall 60.00 (10.00), strict F1 60.00 (10.00) | precision 30.00 \
(5.00), recall 30.00 (5.00), F1 30.00 (5.00), strict precision 30.00 (5.00), strict recall 30.00 (5.00), \
strict F1 30.00 (5.00) | all | verified (SHA-256) | the suite's | 0, 1 | 200, 200 | 0:02:01 |
| zebra<br>sample of the data<br>changed settings | other | entity F1 (conlleval) \
| precision 90.00, recall 90.00, F1 90.00, strict \
precision 90.00, strict recall 90.00, strict F1 90.00 | precision 45.00, recall 45.00, F1 45.00, strict \
precision 45.00, strict recall 45.00, strict F1 45.00 | train 200, dev 100, test 2 | verified (SHA-256) \
| batch\\_size 16 (suite: 32) | 0 | 200 | 1:00:00 |

</details>
"""


def test_markdown_equals_the_golden_page() -> None:
    runs = [
        make_result(task="zebra", suite="further", seed=0, rows=make_rows(5)),
        make_result(task="zebra", suite="further", seed=1, rows=make_rows(7)),
        make_result(
            "other",
            task="zebra",
            suite="further",
            rows=make_rows(9),
            sample_sizes=SAMPLED,
            settings={**DEFAULTS, "batch_size": 16},
            provenance=make_provenance("verified", "Stripes are new."),
            seconds=3599.6,
        ),
    ]
    assert render_markdown(build_synthetic_report(*runs)) == GOLDEN


def test_blurb_table_has_the_published_layout() -> None:
    runs = [make_result(task=task, seed=seed, rows=make_rows(8)) for task in BLURB_TASKS for seed in (0, 1)]
    _, *rows = parse_table(render_markdown(build_synthetic_report(*runs)), "## BLURB")
    assert [re.sub(r" <sup>.*", "", cells[0]) for cells in rows if cells[1] in ("F1", "Pearson", "accuracy")][
        :9
    ] == [
        *("BC5-chem", "BC5-disease", "NCBI-disease", "BC2GM", "JNLPBA"),
        *("EBM PICO", "ChemProt", "DDI", "GAD"),
    ]
    assert [cells[0] for cells in rows[-7:]] == [
        *("NER, mean of 5", "PICO", "Relation extraction, mean of 3", "Sentence similarity"),
        *("Document classification", "Question answering, mean of 2", "BLURB score"),
    ]
    last = find_row(render_markdown(build_synthetic_report(*runs)), "## BLURB", "BLURB score")
    assert (last["tiny"], last["PubMedBERT"], last["BERT uncased"]) == ("80.00", "81.16", "76.11")
    first = find_row(render_markdown(build_synthetic_report(*runs)), "## BLURB", "BC5-chem")
    assert (first["tiny"], first["PubMedBERT"]) == ("80.00 (0.00) n=2<br>[80.00, 80.00]", "93.33")


def test_partial_mean_is_not_called_blurb_score() -> None:
    text = render_markdown(
        build_synthetic_report(*(make_result(task=task, rows=make_rows(8)) for task in BLURB_TASKS[:11]))
    )
    missing = find_row(text, "## BLURB", "BLURB score")
    assert re.fullmatch(r"– <sup>\d+</sup>", missing["tiny"])
    assert missing["PubMedBERT"] == "81.16"
    assert "No BLURB score without PubMedQA, BioASQ yes/no." in text
    average = find_row(text, "## BLURB", "Average over 11 of 13 tasks")
    assert (average["tiny"], average["PubMedBERT"]) == ("80.00", "83.05")
    assert "Not the BLURB score" in text


@pytest.mark.parametrize(
    ("fields", "word", "meaning"),
    [
        ({"sample_sizes": SAMPLED}, "sample of the data", "how much of it is in Runs"),
        ({"provenance": UNVERIFIED}, "not as published", "are not the published ones"),
        ({"provenance": INVENTED}, "invented", "a score on it means nothing"),
        ({"provenance": COUNTED}, "counts agree", "the SHA-256 of a file is none that is known"),
        ({"provenance": PARTIAL}, "partial", "a split has no file"),
        ({"settings": {**DEFAULTS, "epochs": 1}}, "changed settings", "settings are not the suite's"),
        ({"legacy": ["lower-case"]}, "legacy", "counted as a paper does"),
    ],
)
def test_incomparable_scores_are_marked_everywhere(fields: Any, word: str, meaning: str) -> None:
    runs = [make_result(model, task, rows=make_rows(8), **fields) for model in MODELS for task in BLURB_TASKS]
    report = build_synthetic_report(*runs)
    labels = list(dict.fromkeys(each.model for each in report.scores))
    text, page = render_markdown(report), render_page(report)
    for row_name in ("DDI", "NER, mean of 5", "BLURB score"):
        row = find_row(text, "## BLURB", row_name)
        assert [name for name, cell in row.items() if cell.endswith(f"<br>{word}")] == labels
    for title in ("### Models compared", "<summary>Runs"):
        _, *rows = parse_table(text, title)
        assert {cells[0].partition("<br>")[2] for cells in rows} == {word}
    assert f"\n- {word}: " in text
    assert meaning in text
    assert f"</strong> BLURB score of {labels[0]} ({word})</span>" in page
    assert not set("¤¶†‡°‖§") & {*text, *page}


def test_only_scores_on_the_invented_sample_say_so() -> None:
    runs = [make_result(), make_result("other", provenance=INVENTED), make_result(task="biosses")]
    _, *rows = parse_table(render_markdown(build_synthetic_report(*runs)), "## BLURB")
    cells = [cells for cells in rows if any("invented" in cell for cell in cells)]
    assert [re.sub(r" <.*", "", row[0]) for row in cells] == ["BC5-chem", "Average over 1 of 13 tasks"]
    assert [["invented" in cell for cell in row].index(True) for row in cells] == [3, 3]


@pytest.mark.parametrize(
    ("suite", "task", "models"),
    [
        ("blurb", "ddi", ["PubMedBERT", "PubMedBERT + PMC", "PubMedBERT + PMC, longer", "BERT uncased"]),
        ("bio-electra", "gad", ["Bio-ELECTRA", "Bio-ELECTRA++", "Bio-ELECTRA++ optimised"]),
        ("bioalbert", "s800", ["BioALBERT 1.0 PubMed", "BioALBERT 1.0 PubMed + PMC"]),
    ],
)
def test_columns_are_ours_then_the_papers_own_models(suite: str, task: str, models: list[str]) -> None:
    """PubMedBERT is the ninth model in its paper's table, off a screen of 1,400 pixels."""
    text = render_markdown(build_synthetic_report(make_result(task=task, suite=suite)))
    scores = text[text.index("## Models") + len("## Models") :]
    header = [re.sub(r" <sup>.*", "", name) for name in parse_table(scores, "## ")[0]]
    assert header[:4] == ["Task", "Score", "tiny", "Majority class"]
    assert header[4 : 4 + len(models)] == models


@pytest.mark.parametrize("suite", ["Bio-ELECTRA", "ELECTRAMed", "BioALBERT"])
def test_other_suites_have_rows_for_precision_and_recall(suite: str) -> None:
    result = make_result(task="ncbi-disease", suite=suite.lower(), rows=make_rows(8))
    text = render_markdown(build_synthetic_report(result))
    _, *rows = parse_table(text, f"## {suite}'s tasks")
    assert [cells[1:3] for cells in rows if re.sub(r" <sup>.*", "", cells[0]) == "NCBI-disease"] == [
        ["precision", "80.00"],
        ["recall", "80.00"],
        ["F1", "80.00 n=1<br>[80.00, 80.00]"],
    ]
    assert "Without results here: " in text


def test_development_scores_are_footnoted() -> None:
    text = render_markdown(build_synthetic_report(make_result(task="linnaeus", suite="bio-electra")))
    cell = next(
        cells[6]
        for cells in parse_table(text, "## Bio-ELECTRA's tasks")
        if cells[0].startswith("LINNAEUS") and cells[1] == "F1"
    )
    numbers = re.fullmatch(r"95\.01 \(0\.84\) <sup>([\d,]+)</sup>", cell)
    assert numbers
    notes = [re.search(rf"<sup>{number}</sup> (.*)", text) for number in numbers[1].split(",")]
    assert any(note and note[1].startswith("Scores of the development set") for note in notes)


def test_main_score_missing_in_the_published_table_gets_a_row() -> None:
    result = make_result(task="yesno-ideal", suite="bio-electra", metric="accuracy", rows=YES_NO)
    text = render_markdown(build_synthetic_report(result))
    _, *rows = parse_table(text, "## Bio-ELECTRA's tasks")
    assert rows[-1][:3] == ["BioASQ 8b yes/no", "accuracy", "100.00 n=1<br>[100.00, 100.00]"]


YES_NO = [(1, 1, 1, 0, 0, 0, 0, 0, 0)]


@pytest.mark.parametrize("name", HOSTILE)
def test_markup_in_names_is_escaped(name: str) -> None:
    hostile: Any = {
        "provenance": make_provenance("verified", name),
        "settings": {**DEFAULTS, name: name},
        "device": name,
        "library_versions": {name: name},
        "legacy": [name],
    }
    hostile_report = build_synthetic_report(
        make_result(name, name, suite=name, **hostile), make_result(f"{name} 2", name, suite=name, **hostile)
    )
    for report in (
        hostile_report,
        build_synthetic_report(make_result(name, "ddi"), make_result("other", "ddi")),
    ):
        tree = lxml.html.document_fromstring(render_page(report))
        assert not list(tree.iter("script", "link", "iframe", "b", "img", "a"))
        assert not [key for element in tree.iter() for key in element.attrib if str(key).startswith("on")]
        assert len(list(tree.iter("style"))) == 1
        text = render_markdown(report)
        assert "\r" not in text
        for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
            separators = [re.findall(r"(?<!\\)(?:\\\\)*\|", line) for line in table.splitlines()]
            assert len(set(map(len, separators))) == 1
        assert not re.search(r"<(?!/?(sup|br|details|summary)>)", text)
        assert not re.search(r"(?<!\\)\]\(", text)


@settings(max_examples=examples(25))
@given(st.text(max_size=40), st.text(max_size=40))
def test_pages_are_well_formed_for_any_names(model: str, task: str) -> None:
    report = build_synthetic_report(make_result(model, task), make_result(model + "'", task))
    tree = lxml.html.document_fromstring(render_page(report))
    assert len(list(tree.iter("table"))) == 6  # models, scores, compared, runs, two of variants
