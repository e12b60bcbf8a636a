"""Which of PMC's articles are chosen, and why the others are not."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.download.pmc.article_filter import DEFAULT_SETS, SETS, ArticleFilter
from bioshards.corpus.download.pmc.metadata_cache import METADATA_SCHEMA
from bioshards.corpus.licences import DEFAULT_LICENCES, LICENCES
from tests.support.servers.fake_pmc_bucket import TODAY

DEFAULT = ArticleFilter()


def row(pmcid: int = 1, version: int = 1, **values: object) -> dict[str, Any]:
    return {
        "pmcid": pmcid,
        "version": version,
        "etag": "",
        "listed": "",
        "licence": "CC-BY",
        "open_access": True,
        "manuscript": False,
        "ocr": False,
        "retracted": False,
        "md5": "0" * 32,
        "retrieved": TODAY,
        "problem": None,
    } | values


UNREADABLE = dict.fromkeys(("licence", "open_access", "manuscript", "ocr", "retracted", "md5"))


def chosen(articles: ArticleFilter, *rows: dict[str, Any]) -> tuple[list[tuple[int, int]], dict[str, int]]:
    table, dropped = articles.select(pa.Table.from_pylist(list(rows), METADATA_SCHEMA))
    return [(row["pmcid"], row["version"]) for row in table.to_pylist()], dropped


def why(articles: ArticleFilter, **values: Any) -> str | None:
    """The reason why an article is dropped."""
    kept, dropped = chosen(articles, row(**values))
    assert len(kept) + len(dropped) == 1
    return next(iter(dropped), None)


def test_the_defaults_are_some_of_what_there_is() -> None:
    assert set(LICENCES) > DEFAULT_LICENCES
    assert set(SETS) > DEFAULT_SETS


@pytest.mark.parametrize("code", LICENCES)
def test_an_article_needs_a_chosen_licence(code: str) -> None:
    assert why(DEFAULT, licence=code) == (None if code in ("CC0", "CC-BY", "CC-BY-SA") else f"licence:{code}")
    assert why(ArticleFilter(licences=frozenset({code})), licence=code) is None
    assert why(ArticleFilter(licences=frozenset(LICENCES) - {code}), licence=code) == f"licence:{code}"


@pytest.mark.parametrize(
    ("sets", "flags", "reason"),
    [
        ("open-access manuscripts", "open_access", None),
        ("open-access manuscripts", "manuscript", None),
        ("open-access manuscripts", "open_access manuscript", None),
        ("open-access manuscripts", "", "set:none"),
        ("open-access manuscripts", "ocr", "set:ocr"),
        ("open-access manuscripts", "open_access ocr", "set:ocr"),
        ("open-access", "manuscript", "set:none"),
        ("manuscripts", "open_access", "set:none"),
        ("ocr", "ocr", None),
        ("ocr", "open_access", "set:none"),
        ("open-access ocr", "open_access ocr", None),
        ("", "open_access", "set:none"),
    ],
)
def test_an_article_must_be_in_a_chosen_set(sets: str, flags: str, reason: str | None) -> None:
    articles = ArticleFilter(sets=frozenset(sets.split()))
    names = ("open_access", "manuscript", "ocr")
    assert why(articles, **{name: name in flags.split() for name in names}) == reason


def test_retracted_articles_stay_unless_they_are_to_go() -> None:
    assert why(DEFAULT, retracted=True) is None
    assert why(ArticleFilter(drop_retracted=True), retracted=True) == "retracted"
    assert why(ArticleFilter(drop_retracted=True)) is None


def test_the_first_reason_counts() -> None:
    """In the order of the documentation: each row has the reasons of all that come after its own."""
    articles = ArticleFilter(drop_retracted=True)
    last = {"retracted": True}
    none = last | {"open_access": False}
    ocr = none | {"ocr": True}
    licence = ocr | {"licence": "TDM"}
    assert why(articles, **last) == "retracted"
    assert why(articles, **none) == "set:none"
    assert why(articles, **ocr) == "set:ocr"
    assert why(articles, **licence) == "licence:TDM"
    assert why(articles, **licence, md5=None) == "no-xml"
    assert why(articles, **UNREADABLE, problem="not JSON") == "unreadable-metadata"
    assert chosen(articles, row(1, 1, **licence), row(1, 2))[1] == {"not-newest": 1}
    assert chosen(articles, row(1, 1, md5=None), row(1, 2))[1] == {"no-xml": 1}


def test_the_newest_version_is_the_highest_number() -> None:
    rows = [row(7, 10), row(7, 2), row(7, 9), row(70, 1), row(1, 1)]
    assert chosen(DEFAULT, *rows) == ([(1, 1), (7, 10), (70, 1)], {"not-newest": 2})
    every = ArticleFilter(versions="all")
    assert chosen(every, *rows) == ([(1, 1), (7, 2), (7, 9), (7, 10), (70, 1)], {})


def test_an_older_version_does_not_stand_in_for_a_newer_one_that_is_dropped() -> None:
    assert chosen(DEFAULT, row(7, 1), row(7, 2, licence="TDM")) == ([], {"licence:TDM": 1, "not-newest": 1})


def test_nothing_is_chosen_of_nothing() -> None:
    assert chosen(DEFAULT) == ([], {})


@pytest.mark.parametrize("given", [{"licences": frozenset({"CC BY"})}, {"sets": frozenset({"open_access"})}])
def test_a_misspelt_choice_is_an_error_that_names_what_there_is(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"CC-BY-ND|manuscripts"):
        ArticleFilter(**given)


ROWS = st.builds(
    lambda pmcid, version, licence, flags, md5, readable: row(
        pmcid,
        version,
        **(
            {
                "licence": licence,
                "md5": md5,
                **dict(zip(("open_access", "manuscript", "ocr", "retracted"), flags, strict=True)),
            }
            if readable
            else UNREADABLE | {"problem": "x"}
        ),
    ),
    st.integers(1, 5),
    st.integers(8, 11),
    st.sampled_from(list(LICENCES)),
    st.tuples(*[st.booleans()] * 4),
    st.sampled_from([None, "0" * 32]),
    st.booleans(),
)


@settings(deadline=None, derandomize=True, database=None)
@given(
    st.lists(ROWS, unique_by=lambda row: (row["pmcid"], row["version"])),
    st.frozensets(st.sampled_from(list(LICENCES))),
    st.frozensets(st.sampled_from(SETS)),
    st.booleans(),
)
def test_the_choice_is_that_of_a_loop_over_rows(
    rows: list[dict[str, Any]], licences: frozenset[str], sets: frozenset[str], drop_retracted: bool
) -> None:
    def reason(row: dict[str, Any]) -> str | None:
        if row["problem"]:
            return "unreadable-metadata"
        if not row["md5"]:
            return "no-xml"
        if row["version"] < max(other["version"] for other in rows if other["pmcid"] == row["pmcid"]):
            return "not-newest"
        if row["licence"] not in licences:
            return f"licence:{row['licence']}"
        if row["ocr"] and "ocr" not in sets:
            return "set:ocr"
        if not any(
            row[flag]
            for flag, name in zip(("open_access", "manuscript", "ocr"), SETS, strict=True)
            if name in sets
        ):
            return "set:none"
        return "retracted" if row["retracted"] and drop_retracted else None

    kept, dropped = chosen(ArticleFilter(licences, sets, drop_retracted), *rows)
    assert kept == sorted((row["pmcid"], row["version"]) for row in rows if reason(row) is None)
    reasons = sorted(filter(None, map(reason, rows)))
    assert dropped == {word: len(list(same)) for word, same in itertools.groupby(reasons)}
