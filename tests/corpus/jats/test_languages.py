"""Conversion of language codes to MARC codes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.jats.languages import to_marc_code

_PAIRS = """
bo:tib cs:cze cy:wel de:ger el:gre eu:baq fa:per fr:fre hy:arm is:ice
ka:geo mi:mao mk:mac ms:may my:bur nl:dut ro:rum sk:slo sq:alb zh:chi
"""
LANGUAGES_WITH_TWO_MARC_CODES = dict(pair.split(":") for pair in _PAIRS.split())


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
def test_two_letter_codes_become_three_letter_codes(code: str, expected: str) -> None:
    assert to_marc_code(code) == expected


@pytest.mark.parametrize(("code", "expected"), LANGUAGES_WITH_TWO_MARC_CODES.items())
def test_bibliographic_code_is_preferred(code: str, expected: str) -> None:
    assert len(LANGUAGES_WITH_TWO_MARC_CODES) == 20
    assert to_marc_code(code) == expected


@pytest.mark.parametrize(
    ("code", "expected"), [("eng", "eng"), ("GER", "ger"), ("mul", "mul"), ("spa-419", "spa")]
)
def test_three_letter_codes_are_kept(code: str, expected: str) -> None:
    assert to_marc_code(code) == expected


@pytest.mark.parametrize("code", ["qq", "x-klingon", "english", "", "q9", "en us"])
def test_unknown_codes_are_kept(code: str) -> None:
    assert to_marc_code(code) == code
    assert to_marc_code(code.upper()) == code


def test_184_two_letter_codes_have_distinct_marc_codes() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    marc_codes = [to_marc_code(first + second) for first in letters for second in letters]
    marc_codes = [code for code in marc_codes if len(code) == 3]
    assert len(marc_codes) == len(set(marc_codes)) == 184


@given(st.text())
def test_conversion_is_idempotent(code: str) -> None:
    assert to_marc_code(to_marc_code(code)) == to_marc_code(code)
