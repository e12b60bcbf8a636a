"""Licences from URLs, names and statements, in any spelling."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.licences import (
    DEFAULT_LICENCES,
    LICENCES,
    MAX_STATEMENT_LENGTH,
    UNKNOWN_LICENCE,
    combine_licences,
    licence_from_name,
    licence_from_text,
    licence_from_url,
)

VARIANTS = ["by", "by-sa", "by-nd", "by-nc", "by-nc-sa", "by-nc-nd"]
ANY_VARIANT = st.sampled_from(VARIANTS)


def format_code(variant: str) -> str:
    return f"CC-{variant.upper()}"


def test_every_licence_is_described() -> None:
    assert {format_code(variant) for variant in VARIANTS} | {"CC0", "TDM", UNKNOWN_LICENCE} == set(LICENCES)
    assert set(LICENCES) > DEFAULT_LICENCES


# URLs


@given(
    ANY_VARIANT,
    st.sampled_from(["http://", "https://", "", "http://www.", "//"]),
    st.sampled_from(
        ["", "/", "/4.0", "/4.0/", "/3.0/igo/", "/2.0/uk", "/4.0/legalcode", "/4.0/deed.en", "/3.0/deed.de"]
    ),
    st.booleans(),
)
def test_creative_commons_urls_in_every_form(variant: str, scheme: str, suffix: str, is_upper: bool) -> None:
    url = f"{scheme}creativecommons.org/licenses/{variant}{suffix}"
    assert licence_from_url(url.upper() if is_upper else url) == format_code(variant)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0"),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "CC0"),
        ("http://creativecommons.org/licenses/publicdomain/", "CC0"),
        ("http://creativecommons.org/licenses/zero/1.0", "CC0"),
        ("http://creativecommons.org/license/by/4.0/", "CC-BY"),
        ("http://creativecommons.org/licences/by/4.0/", "CC-BY"),
        ("http://creativecommons.org//licenses/by/4.0/", "CC-BY"),
        ("http://creativecommons.org/licenses/by4.0/", "CC-BY"),
        ("http://creativecommons.org/licenses/by/legalcode", "CC-BY"),
        ("http://creativecommons.org/licenses/by-nc-nd4.0", "CC-BY-NC-ND"),
        ("http://creativecommons.org/licenses/by-ncnd/4.0/", "CC-BY-NC-ND"),
        ("http://creativecommons.org/licenses/by_nc_sa/4.0/", "CC-BY-NC-SA"),
        ("http://creativecommons.org/licenses/by–nc–nd/4.0/", "CC-BY-NC-ND"),
        ("http://creativecommons.org/licenses/by/nc/4.0/", "CC-BY-NC"),
        ("http://creativecommons.org/licenses/by%2Dnc/4.0/", "CC-BY-NC"),
        ("http://creativecommons.org/licenses/by/4.0/nc", "CC-BY-NC"),
        ("http://creativecommons.org/licenses/nc-sa/1.0/", "CC-BY-NC-SA"),
        ("https://press.example/terms/ccby_termsofuse.html", "CC-BY"),
        ("https://press.example/terms/choice_ccbyncnd_terms.html", "CC-BY-NC-ND"),
        ("https://press.example/cc0", "CC0"),
        # No licence.
        ("", None),
        ("https://creativecommons.org/", None),
        ("https://creativecommons.org/licenses/", None),
        ("https://creativecommons.org/licenses/sampling+/1.0/", None),
        ("https://creativecommons.org/licenses/nc-sampling+/1.0/", None),
        ("https://creativecommons.org/licenses/by-devnations/2.0/", None),
        ("https://creativecommons.org/licenses/by-ncx/4.0/", None),
        ("https://creativecommons.org/publicdomain/", None),
        ("https://press.example/open-access", None),
        ("https://press.example/account/by", None),
        ("https://creativecommons.org/licenses/by/4.0/" + "x" * MAX_STATEMENT_LENGTH, None),
    ],
)
def test_urls(url: str, expected: str | None) -> None:
    assert licence_from_url(url) == expected


# Names


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("CC BY", "CC-BY"),
        ("CC BY-NC-ND 4.0", "CC-BY-NC-ND"),
        ("CC BY 3.0 IGO", "CC-BY"),
        ("ccbyncsalicense", "CC-BY-NC-SA"),
        ("ccbyncndlicense", "CC-BY-NC-ND"),
        ("cc0license", "CC0"),
        ("cczerolicense", "CC0"),
        ("public-domain", "CC0"),
        ("creativeCommonsBy", "CC-BY"),
        ("Creative Commons Attribution-NonCommercial-NoDerivs", "CC-BY-NC-ND"),
        ("TDM", "TDM"),
        ("open-access", None),
        ("creative-commons", None),
        ("CC BY-NC-X", None),
        ("", None),
    ],
)
def test_names(name: str, expected: str | None) -> None:
    assert licence_from_name(name) == expected


# Statements

BY_STATEMENT = "This article may be shared under the terms of the Creative Commons Attribution License."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (BY_STATEMENT, "CC-BY"),
        (
            "Open access, distributed under the Creative\n  Commons Attribution 4.0 International License",
            "CC-BY",
        ),
        ("Free under a Creative Commons License (Attribution 4.0 International).", "CC-BY"),
        ("Free under the Creative Commons by Attribution (CC-BY) licence.", "CC-BY"),
        ("Free under the CC BY license", "CC-BY"),
        ("Re-use permitted under CC BY. Published by Us.", "CC-BY"),
        ("Free (CCBY).", "CC-BY"),
        ("Licensed under Creative Commons BY 4.0.", "CC-BY"),
        ("Free under CC BY-SA 3.0.", "CC-BY-SA"),
        ("Free under CC BY SA 3.0.", "CC-BY-SA"),
        ("Free under CC BY SAGE terms.", "CC-BY"),
        ("Free under CC BY-NC 4.0, see elsewhere.", "CC-BY-NC"),
        ("Free under CC BY_NC_ND 4.0.", "CC-BY-NC-ND"),
        ("Free under the CC-BY–NC–ND licence.", "CC-BY-NC-ND"),
        ("Free under Creative Commons Attribution (BY-NC-ND).", "CC-BY-NC-ND"),
        ("Under the Creative Commons Attribution Non-Commercial No Derivatives License.", "CC-BY-NC-ND"),
        ("Under a Creative Commons Attribution-NonCommercial-ShareAlike 4.0 licence.", "CC-BY-NC-SA"),
        (
            "Under the Creative Commons Attribution–Noncommercial–Share Alike–No Mirrors licence.",
            "CC-BY-NC-SA",
        ),
        ("Under the Creative Commons Attribution-NoDerivs License.", "CC-BY-ND"),
        ("Under the Creative Commons Non-Commercial License.", "CC-BY-NC"),
        ("Under the Creative Commons Attribution License, for non-commerical use.", "CC-BY-NC"),
        ("Under the Creative Commons Attribution License, if it is not altered in any way.", "CC-BY-ND"),
        ("Under CC BY, but no modifications or adaptations are made.", "CC-BY-ND"),
        ("Creative Commons Attribution. New works must carry the same licence.", "CC-BY-SA"),
        ("CC BY, for commercial and non-commercial purposes.", "CC-BY"),
        ("CC BY, for non-commercial or commercial purposes.", "CC-BY"),
        ("CC BY, for any purpose, even commercially, if you say what changes were made.", "CC-BY"),
        ("Free: http://creativecommons.org/licenses/by/4.0/), which permits reuse.", "CC-BY"),
        ("Free (http:// creativecommons. org/ licenses/ by-nc/4. 0).", "CC-BY-NC"),
        (f"{BY_STATEMENT} See http://creativecommons.org/licenses/by-nc-sa/4.0/.", "CC-BY-NC-SA"),
        ("Dedicated by its authors under Creative Commons CC0.", "CC0"),
        ("This article is in the public domain.", "CC0"),
        ("Free of all copyright, under the Creative Commons Public Domain Dedication.", "CC0"),
        ("This work is free of known copyright restrictions.", "CC0"),
        ("See https://creativecommons.org/publicdomain/zero/1.0/.", "CC0"),
        (
            "This file is available for text mining. It may also be used consistent with the principles of "
            "fair use under the copyright law.",
            "TDM",
        ),
        # Ambiguous ones have no licence.
        ("", None),
        ("© 2019 The Authors. All rights reserved.", None),
        ("Open access.", None),
        ("Free for non-commercial use, with proper attribution.", None),
        (
            "Under a Creative Commons license; its authors ask for attribution in a footnote of your own.",
            None,
        ),
        ("The article's Creative Commons license does not extend to images.", None),
        ("This article is not covered by the CC BY license of this journal.", None),
        ("The CC0 waiver applies to the data made available in this article.", None),
        ("All metadata are in the public domain.", None),
        ("Written by employees of the US Government, it is in the public domain.", None),
        ("This work is in the public domain in the USA.", None),
        ("This article is not in the public domain.", None),
        ("In the public domain, for non-commercial use.", None),
        (
            "Copies and redistribution are permitted in all media for any purpose, if this notice is kept.",
            None,
        ),
        ("Accepted by the University of NC, Chapel Hill.", None),
        (BY_STATEMENT + " And so on." * MAX_STATEMENT_LENGTH, None),
    ],
)
def test_statements(text: str, expected: str | None) -> None:
    assert licence_from_text(text) == expected


def test_waiver_for_data_does_not_apply_to_the_article() -> None:
    waiver = (
        "The Creative Commons Public Domain Dedication waiver "
        "(http://creativecommons.org/publicdomain/zero/1.0/) applies to the data made available here."
    )
    assert (
        licence_from_text(f"{BY_STATEMENT} {waiver}")
        == licence_from_text(f"{waiver} {BY_STATEMENT}")
        == "CC-BY"
    )
    assert licence_from_text(f"{BY_STATEMENT[:-1]}, and {waiver}") == "CC-BY"
    assert licence_from_text(f"{waiver} Free under CC BY-NC.") == "CC-BY-NC"


LONG_NAMES = {"by": "Attribution", "nc": "NonCommercial", "nd": "NoDerivatives", "sa": "ShareAlike"}


@given(
    ANY_VARIANT,
    st.sampled_from([" ", "-", "–", " - ", "\n"]),
    st.sampled_from([" ", "-", "- "]),
    st.booleans(),
)
def test_no_restriction_is_lost_in_any_spelling(
    variant: str, separator: str, short_separator: str, is_upper: bool
) -> None:
    terms = variant.split("-")
    name = f"Creative Commons {separator.join(LONG_NAMES[term] for term in terms)} License"
    text = f"Free under the {name.upper() if is_upper else name}."
    assert licence_from_text(text) == format_code(variant)
    assert licence_from_text(
        f"Free under CC {short_separator.join(terms).upper()} 4.0, in any medium."
    ) == format_code(variant)
    assert licence_from_text(f"{BY_STATEMENT} Or: {text}") == format_code(variant)


@given(st.text(max_size=200))
def test_any_text_gives_a_known_licence_or_none(text: str) -> None:
    for licence in (licence_from_url(text), licence_from_name(text), licence_from_text(text)):
        assert licence is None or licence in set(LICENCES) - {UNKNOWN_LICENCE}


@pytest.mark.parametrize(
    "piece",
    [
        "creative commons 4.0 ",
        "cc" + "-" * 50,
        "non",
        " ",
        "available for text mining ",
        "creativecommons.org/",
    ],
)
def test_hostile_text_is_parsed_in_seconds(piece: str) -> None:
    text = "creative commons " + piece * (MAX_STATEMENT_LENGTH // len(piece) - 2)
    start = time.process_time()
    licence_from_text(text), licence_from_url(text), licence_from_name(text)
    assert time.process_time() - start < 20


# Several statements


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([], None),
        (["CC0"], "CC0"),
        (["CC0", "CC-BY"], "CC-BY"),
        (["CC-BY", "CC-BY-NC"], "CC-BY-NC"),
        (["CC-BY-NC", "CC-BY-ND"], "CC-BY-NC-ND"),
        (["CC-BY-SA", "CC-BY-NC"], "CC-BY-NC-SA"),
        (["CC-BY-NC-SA", "CC-BY-ND"], "CC-BY-NC-ND"),
        (["CC-BY", "TDM"], "TDM"),
    ],
)
def test_several_statements_combine_their_restrictions(codes: list[str], expected: str | None) -> None:
    assert combine_licences(codes) == expected


@given(st.lists(st.sampled_from(sorted(set(LICENCES) - {UNKNOWN_LICENCE})), min_size=1))
def test_further_statements_only_restrict(codes: list[str]) -> None:
    combined = combine_licences(codes)
    assert combined in LICENCES
    assert all(combine_licences([combined, code]) == combined for code in codes)
    assert combine_licences(reversed(codes)) == combined
