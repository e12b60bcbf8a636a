"""The measure of text fidelity (tests/bench/harness/text_fidelity.py) on an invented article and record."""

from __future__ import annotations

import pytest

from tests.bench.harness.text_fidelity import FidelityScore, expect_abstract, expect_article

ARTICLE = b"""<article><front><article-meta>
<title-group><article-title>On hats</article-title></title-group>
<abstract><p>Hats are worn on heads.</p></abstract></article-meta></front>
<body><sec><title>Results</title>
<p>Red hats were seen often<sup><xref ref-type="bibr" rid="r1">3</xref></sup> in towns by the sea.</p>
<fig><label>Figure 1</label><caption><p>A hat with a brim.</p></caption></fig>
<table-wrap><table><tr><td>forty blue caps counted</td></tr></table></table-wrap></sec></body>
<back><ack><p>We thank the hatter.</p></ack>
<ref-list><ref><mixed-citation>Ode to caps</mixed-citation></ref></ref-list></back>
</article>"""
TEXT = "Hats are worn on heads. Results. Red hats were seen often in towns by the sea. A hat with a brim."


def score(text: str | None) -> FidelityScore:
    result = FidelityScore()
    result.add(expect_article(ARTICLE), text)
    return result


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"On hats. {TEXT}",
        TEXT.replace("often", "often [3]"),
        TEXT.replace("sea. ", "sea. Figure 1 "),
        f"{TEXT} We thank the hatter.",
    ],
)
def test_choices_of_a_tool_cost_nothing(text: str) -> None:
    result = score(text)
    assert (result.words.recall, result.words.precision, result.ngrams.recall) == (1, 1, 1)
    assert not result.glued


def test_lost_text_costs_recall() -> None:
    result = score(TEXT.replace(" A hat with a brim.", ""))
    assert result.words.recall == pytest.approx(1 - 5 / 21)
    assert result.words.precision == 1
    assert result.lost.total() == 2


@pytest.mark.parametrize("leak", ["forty blue caps counted", "Ode to caps"])
def test_cells_and_references_cost_precision(leak: str) -> None:
    result = score(f"{TEXT} {leak}")
    assert result.words.recall == 1
    assert result.words.precision < 1
    assert result.ngrams.precision < 1


def test_glued_words_are_counted() -> None:
    result = score(TEXT.replace("often", "often3"))
    assert result.glued == {"often3": 1}
    assert result.words.recall < 1


def test_labels_of_an_abstract_are_a_choice() -> None:
    record = b"""<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID><Article><Abstract>
        <AbstractText Label="AIM">To count all the hats.</AbstractText>
        <AbstractText>There were nine in all.</AbstractText>
        </Abstract></Article></MedlineCitation></PubmedArticle></PubmedArticleSet>"""
    for text in (
        "To count all the hats. There were nine in all.",
        "AIM: To count all the hats. There were nine in all.",
    ):
        result = FidelityScore()
        result.add(expect_abstract(record), text)
        assert (result.ngrams.recall, result.ngrams.precision) == (1, 1)
