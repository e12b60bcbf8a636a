"""DOIs have one parser for both corpora and for lists of ids."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.document import find_earliest_date, parse_doi
from bioshards.corpus.lifecycle import id_lists

SICI = "10.5555/(SICI)1234-5678(1999)8:2/3<109::AID-GUL7>3.0.CO;2-W"
DOIS = {
    SICI: SICI,
    SICI.replace("<", "&lt;").replace(">", "&gt;"): SICI,
    "https://doi.org/" + SICI.replace("<", "%3C").replace(">", "%3E"): SICI,
    "10.5555/A(b)[c]{d}_e;f/g#h%3Ci": "10.5555/A(b)[c]{d}_e;f/g#h%3Ci",
    " 10.5555/é\n": "10.5555/é",
    "HTTP://DX.DOI.ORG/10.5555/Ab": "10.5555/Ab",
    "www.doi.org/10.5555/1": "10.5555/1",
    "doi: 10.5555/1": "10.5555/1",
    "DOI 10.5555/1": "10.5555/1",
    "info:doi/10.5555.6/1": "10.5555.6/1",
    "https://doi.org/10.5555/a%20b": None,
    "10.5555/a b": None,
    "10.5555/a\x07": None,
    "10.5555/a\u200f": None,
    "10.5555/" + "x" * 2000: None,
    "10.5555/": None,
    "10.555/1": None,
    "11.5555/1": None,
    "": None,
}


@pytest.mark.parametrize("text", DOIS)
def test_a_doi_is_read_however_it_is_written(text: str) -> None:
    assert parse_doi(text) == DOIS[text]


@given(
    st.from_regex(r"10\.[1-9][0-9]{3,8}(\.[1-9][0-9]?)?/[A-Za-z0-9();:._/-]{1,40}", fullmatch=True),
    st.sampled_from(
        ["", "doi:", "DOI: ", "https://doi.org/", "http://dx.doi.org/", "HTTPS://DOI.ORG/", "info:doi/"]
    ),
    st.sampled_from(["", " ", "\n\t"]),
)
def test_doi_in_any_spelling(doi: str, before: str, around: str) -> None:
    assert parse_doi(f"{around}{before}{doi}{around}") == doi


def test_lists_have_dois_as_documents_do() -> None:
    lines = [
        "\ufeffdoi:10.5555/A",
        "https://doi.org/10.5555/b",
        "DOI:10.5555/C",
        f"doi:{SICI} # gulls",
        "PMC5",
    ]
    ids = id_lists.parse(io.BytesIO("\n".join(lines).encode()), "ids.txt")
    assert ids.to_pylist() == sorted(
        ["PMC5", "doi:10.5555/a", "doi:10.5555/b", "doi:10.5555/c", f"doi:{SICI.lower()}"]
    )


@pytest.mark.parametrize(
    ("dates", "earliest"),
    [
        (["2019", "2018-12-30"], "2018-12-30"),
        (["2019", "2019-05"], "2019-05"),
        (["2019-05", "2019-05-03", "2019-06-01"], "2019-05-03"),
    ],
)
def test_a_date_without_a_month_is_late_in_its_year(dates: list[str], earliest: str) -> None:
    assert find_earliest_date(dates) == find_earliest_date(dates[::-1]) == earliest
