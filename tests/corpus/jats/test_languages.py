"""One spelling of a language, whatever an article's own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.jats.languages import to_marc_code

_PAIRS = """
bo:tib cs:cze cy:wel de:ger el:gre eu:baq fa:per fr:fre hy:arm is:ice
ka:geo mi:mao mk:mac ms:may my:bur nl:dut ro:rum sk:slo sq:alb zh:chi
"""
TWENTY = dict(pair.split(":") for pair in _PAIRS.split())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("en", "eng"),
        ("EN", "eng"),
        ("en-US", "eng"),
        ("en_gb", "eng"),
        (" pt-BR ", "por"),
        ("zh-Hans-CN", "chi"),
        ("nb", "nob"),
        ("hr", "hrv"),
    ],
)
def test_two_letters_become_three(code: str, expected: str) -> None:
    assert to_marc_code(code) == expected


@pytest.mark.parametrize(("code", "expected"), TWENTY.items())
def test_languages_with_two_codes_get_the_bibliographic_one(code: str, expected: str) -> None:
    assert len(TWENTY) == 20
    assert to_marc_code(code) == expected


@pytest.mark.parametrize(
    ("code", "expected"), [("eng", "eng"), ("GER", "ger"), ("mul", "mul"), ("spa-419", "spa")]
)
def test_three_letters_stay(code: str, expected: str) -> None:
    assert to_marc_code(code) == expected


@pytest.mark.parametrize("code", ["qq", "x-klingon", "english", "", "q9", "en us"])
def test_what_is_not_known_stays(code: str) -> None:
    assert to_marc_code(code) == code
    assert to_marc_code(code.upper()) == code


def test_there_are_184_codes_and_no_two_are_the_same_language() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    known = [to_marc_code(first + second) for first in letters for second in letters]
    known = [code for code in known if len(code) == 3]
    assert len(known) == len(set(known)) == 184


@given(st.text())
def test_any_text_has_one_spelling(code: str) -> None:
    assert to_marc_code(to_marc_code(code)) == to_marc_code(code)
