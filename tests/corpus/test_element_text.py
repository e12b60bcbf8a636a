"""Powers among superscripts, and the superscripts that are none."""

from __future__ import annotations

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
        ("2<sup>−ΔΔCt</sup>, 2<sup>-DDCT</sup>, 2<sup>4.2</sup>", "2^−ΔΔCt, 2^-DDCT, 2^4.2"),
        ("a 2<sup>6-1</sup> design", "a 2^6-1 design"),
        ("1 − 0.9<sup>22</sup>", "1 − 0.9^22"),
        ("10<sup>0</sup> to 10<sup>3</sup>", "10^0 to 10^3"),
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
        "<sup>13</sup>C and H<sub>2</sub><sup>18</sup>O",
        "(CH<sub>3</sub>)<sub>2</sub><sup>13</sup>C",
        "the 1<sup>st</sup> and 10<sup>th</sup>",
        "12<sup>a</sup>, 7<sup>*</sup> and 37<sup>°</sup>",
        "Gulltime 10<sup>TM</sup>",
        "cm<sup>2</sup> and s<sup>−1</sup>",
        "37<sup>0</sup>C",
        "log10<sup>8</sup>",
        "5<sup>−</sup>",
        "3<sup>−ΔΔCt</sup>",
    ],
)
def test_other_superscripts_are_unchanged(xml: str) -> None:
    assert element_text.mark_exponents(xml) == xml
