"""Powers among superscripts, and the superscripts that are none."""

from __future__ import annotations

import re

import pytest

from bioshards.corpus.xml import element_text


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        ("10<sup>6</sup>", "10^6"),
        ("5 × 10<sup>−6 </sup>M", "5 × 10^−6 M"),
        ("1.5x10<sup>9 </sup>cells", "1.5x10^9 cells"),
        ("2.10<sup>6</sup> nuclei", "2.10^6 nuclei"),
        ("<i>10</i><sup> 6</sup>", "<i>10</i>^6"),
        ("10<sup>4</sup>–10<sup>5</sup>", "10^4–10^5"),
        ("10<sup>&#x2212;3</sup>", "10^&#x2212;3"),
        ("2<sup>ΔΔCT</sup> fold", "2^ΔΔCT fold"),
        ("2<sup>n</sup>, 4<sup>L</sup>, 2<sup>n−1</sup>", "2^n, 4^L, 2^n−1"),
        ("2<sup>−ΔΔCt</sup>, 2<sup>-DDCT</sup>, 2<sup>4.2</sup>", "2^−ΔΔCt, 2^-DDCT, 2^4.2"),
        ("2<sup>-△△CT</sup>", "2^-△△CT"),
        ("a 2<sup>6-1</sup> design", "a 2^6-1 design"),
        ("1 − 0.9<sup>22</sup>", "1 − 0.9^22"),
        ("10<sup>0</sup> to 10<sup>3</sup>", "10^0 to 10^3"),
        ("37<sup>0</sup>C, 4 <sup>o</sup>C", "37°C, 4 °C"),
        ("line N7<sup>4G2</sup> and gull-1<sup> 3B </sup>", "line N7^4G2 and gull-1^3B "),
    ],
)
def test_powers_are_marked(xml: str, expected: str) -> None:
    assert element_text.mark_exponents(xml) == expected


@pytest.mark.parametrize(
    "xml",
    [
        "Ca<sup>2+</sup> and SO<sub>4</sub><sup>2−</sup>",
        "NO<sub>3</sub><sup>−</sup>",
        "CD4<sup>+</sup>, IL-10<sup>−/−</sup>",
        "gull<sup>4G2</sup> and N7<sup>wt</sup>",
        "<sup>13</sup>C and H<sub>2</sub><sup>18</sup>O",
        "(CH<sub>3</sub>)<sub>2</sub><sup>13</sup>C",
        "the 1<sup>st</sup> and 10<sup>th</sup>",
        "12<sup>a</sup>, 7<sup>*</sup> and 37<sup>°</sup>",
        "Gulltime 10<sup>TM</sup>",
        "cm<sup>2</sup> and s<sup>−1</sup>",
        "log10<sup>8</sup>",
        "5<sup>−</sup>",
        "3<sup>−ΔΔCt</sup>",
        "12<sup>n</sup>",
        # Numbers that are no citations.
        "10 cm<sup>2</sup>, as",
        "1984 pixels<sup>2</sup>.",
        "weight/height<sup>2</sup>.",
        "the squared length<sup>2</sup>, as",
        "chi-square<sup>2</sup> = 3",
        "R<sup>2</sup> of",
        "Tyr<sup>380</sup> and",
        "Gly<sup>5,7</sup> and",
        "sp<sup>3</sup> carbon",
        "using<sup>1</sup>H NMR",
        "Atom%<sup>15</sup>N",
        "at 5 °C,<sup>13</sup>C NMR",
        "Ca<sup>2+</sup>, as",
        "SO<sub>4</sub><sup>2-</sup>.",
        "<i>ebony<sup>1</sup></i> flies",
        "<italic>white</italic><sup>1118</sup> flies",
        "(weight)<sup>2</sup>.",
        "(x + y)<sup>4</sup>.",
        "Phyre<sup>2</sup> predicts",
        "1<sup>st</sup> gull",
        "IL-2<sup>1,2</sup>",
        "<term>influenza</term><term>km<sup>2</sup></term>",
        "density<sub>gull</sub>s<sup>2</sup>, as",
        "of USDA<sup>1</sup> and",
        "gulls <sup>14</sup>C",
        "day<sup>-1</sup>.",
        "length<sup>2</sup>+ 3",
    ],
)
def test_other_superscripts_are_unchanged(xml: str) -> None:
    assert element_text.mark_exponents(xml) == xml


@pytest.mark.parametrize(
    "xml",
    [
        "gulls<sup>1,2</sup>.",
        "gulls<sup>3-7,10</sup> nest",
        "of genes<sup>1</sup>, and",
        "worldwide.<sup>4</sup> They",
        "as Ode,<sup>5–7</sup> we",
        "(the common gull)<sup>1</sup>.",
        "the group (GULL)<sup>12</sup> says",
        "<i>Larus</i> gulls (<i>L. canus</i>)<sup>1</sup>, as",
        "“gulls”<sup>2</sup></p>",
        "Jean-Fran&#x000e7;ois<sup>1</sup>, Ode",
        "per day for adults<sup>2</sup>. Terns",
        "Smith<sup>2</sup>, Ode",
        "and &#x0201c;gulls<sup>26,30</sup>&#x0201d; nest",
    ],
)
def test_superscript_numbers_of_citations(xml: str) -> None:
    assert element_text.mark_exponents(xml) == re.sub("<sup>.*</sup>", "", xml)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p &lt;5 &amp; &gt;2", "p <5 & >2"),
        ("&alpha;, &#945; and &#x3B1; &agr;", "α, α and α α"),
        ("&amp;lt;b", "&lt;b"),
        ("AT&T; R&D&nosuchname; &#0; &#xD800; &# &;", "AT&T; R&D&nosuchname; &#0; &#xD800; &# &;"),
        ("no entity", "no entity"),
    ],
)
def test_what_was_escaped_twice_is_unescaped_once(text: str, expected: str) -> None:
    assert element_text.unescape_once(text) == expected
