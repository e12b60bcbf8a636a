"""Language codes: conversion to MARC codes, and those of the command line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.languages import parse_language, to_marc_code

_PAIRS = """
bo:tib cs:cze cy:wel de:ger el:gre eu:baq fa:per fr:fre hy:arm is:ice
ka:geo mi:mao mk:mac ms:may my:bur nl:dut ro:rum sk:slo sq:alb zh:chi
"""
LANGUAGES_WITH_TWO_MARC_CODES = dict(pair.split(":") for pair in _PAIRS.split())


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        *LANGUAGES_WITH_TWO_MARC_CODES.items(),
        ("en-US", "eng"),
        (" pt-BR ", "por"),
        ("zh-Hans-CN", "chi"),
        ("nb", "nob"),
        ("GER", "ger"),
        ("mul", "mul"),
        ("spa-419", "spa"),
        ("FRA", "fre"),
        ("zho-CN", "chi"),
    ],
)
def test_codes_become_bibliographic_ones_of_marc(code: str, expected: str) -> None:
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


def test_every_marc_code_of_another_code_is_known() -> None:
    letters = "abcdefghijklmnopqrstuvwxyz"
    marc_codes = {to_marc_code(first + second) for first in letters for second in letters}
    for code in {code for code in marc_codes if len(code) == 3} | {*LANGUAGES_WITH_TWO_MARC_CODES.values()}:
        assert parse_language(code) == code


@pytest.mark.parametrize(
    ("text", "code"), [("eng", "eng"), (" ENG", "eng"), ("en", "eng"), ("de-CH", "ger"), ("mul", "mul")]
)
def test_language_may_be_spelled_in_several_ways(text: str, code: str) -> None:
    assert parse_language(text) == code


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("english", "did you mean eng (English)?"),
        ("Germn", "did you mean ger (German)?"),
        ("enf", "did you mean "),
        ("qq", "eng is English, fre French, ger German"),
    ],
)
def test_unknown_language_is_refused_with_the_nearest(text: str, hint: str) -> None:
    with pytest.raises(InvalidValueError) as error_info:
        parse_language(text)
    assert str(error_info.value).startswith(f"{text} is no code of a language: {hint}")


@given(st.text())
def test_conversion_is_idempotent(code: str) -> None:
    assert to_marc_code(to_marc_code(code)) == to_marc_code(code)
