"""The letters and numbers that the notes of a table begin with, and the superscripts that are none."""

from __future__ import annotations

import pytest

from bioshards.corpus.jats import text_blocks, xml_tree

XREF = '<xref ref-type="bibr" rid="b1">1</xref>'


def extract_text(paragraph: str, flatten: bool) -> str:
    xml = f"<article><body>{paragraph}</body></article>".encode()
    return " | ".join(
        block.text for block in text_blocks.extract_blocks(xml_tree.parse_article(xml, flatten=flatten))
    )


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<p><sup>t</sup>Percentage of gulls</p>", "Percentage of gulls"),
        ('<p id="n1">\n  <sup>a</sup>\n  Gulls of 2019</p>', "Gulls of 2019"),
        ("<p><sup>a </sup><italic>n</italic> = 35</p>", "n = 35"),
        ("<p><bold><sup>(6)</sup></bold> Ratio of terns</p>", "Ratio of terns"),
        ("<p><sup>a,b</sup>Means with other letters differ</p>", "Means with other letters differ"),
        ("<p><sup>xxvii</sup>All gulls</p>", "All gulls"),
        ("<p><sup>2</sup>In all colonies</p>", "In all colonies"),
        ("<p><sup>1</sup>Hôtel des Mouettes</p>", "Hôtel des Mouettes"),
        (f"<p><sup>a</sup>[{XREF}]</p><p>Terns</p>", "Terns"),
        ("<p><sup>a</sup>By age. <sup>b</sup>By sex; <sup>c</sup> n = 5.</p>", "By age. By sex; n = 5."),
        ("<p><sup>a</sup>n = 2, <sup>b</sup>n = 3</p>", "n = 2, n = 3"),
        ("<p>Counts of gulls. <sup>a</sup>Adjusted for rain.</p>", "Counts of gulls. Adjusted for rain."),
        ("<p>Note: <sup>1</sup>Five gulls.</p>", "Note: Five gulls."),
        ("<p>Gulls at week 4. <sup>a</sup></p>", "Gulls at week 4."),
        # Marks that are the subject of their sentence.
        ("<p><sup>a</sup> = mean; <sup>b</sup> = median</p>", "a = mean; b = median"),
        ("<p><sup>a</sup>: Mean of gulls</p>", "a: Mean of gulls"),
        ("<p><sup>a</sup>indicates gulls</p>", "a indicates gulls"),
        ("<p><sup>ns</sup>not significant</p>", "ns not significant"),
        ("<p><sup>*</sup>p &lt; 0.05</p>", "*p < 0.05"),
    ],
)
def test_notes_begin_without_their_marks(xml: str, text: str, flatten: bool) -> None:
    assert extract_text(xml, flatten) == text


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<p><sup>13</sup>C NMR. <sup>1</sup>H NMR</p>", "13C NMR. 1H NMR"),
        ("<p><sup>1</sup>HNMR; <sup>15</sup>NH<sub>4</sub></p>", "1HNMR; 15NH4"),
        ("<p>ions (<sup>9</sup>Be, <sup>66</sup>Zn; <sup>238</sup>U)</p>", "ions (9Be, 66Zn; 238U)"),
        ("<p><sup>t</sup>BuOH was added; <sup>i</sup>PrOH too</p>", "tBuOH was added; iPrOH too"),
        ("<p>sites. <sup>m</sup>CpG and <sup>m6</sup>A</p>", "sites. mCpG and m6A"),
        ("<p>at 8 <sup>o</sup>C and 25, <sup>o</sup>C</p>", "at 8 oC and 25, oC"),
        ("<p>mice. <sup>GFP</sup>Ode and lines</p>", "mice. GFPOde and lines"),
        ("<p>cliffs.<sup>12</sup> Terns</p>", "cliffs.12 Terns"),
        ("<p>the 10, <sup>a</sup> and <sup>b</sup></p>", "the 10, a and b"),
        ("<p><xref><sup>1</sup>Terns</xref></p>", "1Terns"),
    ],
)
def test_other_superscripts_stay(xml: str, text: str, flatten: bool) -> None:
    assert extract_text(xml, flatten) == text


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<p>Mean weight<sup>a</sup> or median<sup><italic>b</italic></sup>.</p>", "Mean weight or median."),
        ("<p>Weight of gulls <sup>1</sup>.</p>", "Weight of gulls."),
        ("<p>Gulls in winter <sup>1, 2</sup>.</p>", "Gulls in winter."),
        ("<p>gulls <sup>1</sup> in <sup>2</sup>.</p><p>per m <sup>2</sup>.</p>", "gulls 1 in 2. | per m 2."),
        ("<p>mm<sup>a</sup>, NaCl<sup>b</sup>, weight<sup>n</sup></p>", "mma, NaClb, weightn"),
    ],
)
def test_words_in_tables_do_not_have_the_marks_of_notes(xml: str, text: str, flatten: bool) -> None:
    for table in (f"<table-wrap-foot>{xml}</table-wrap-foot>", f"<caption>{xml}</caption>"):
        assert extract_text(f"<table-wrap>{table}</table-wrap>", flatten) == text
    assert extract_text("<p>Gulls of allele ruber<sup>a</sup></p>", flatten) == "Gulls of allele rubera"
    assert extract_text("<p>Gulls of type <sup>1</sup>.</p>", flatten) == "Gulls of type 1."
