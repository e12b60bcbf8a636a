"""The filter of PMC's articles: licences, sets, versions and drop reasons."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.metadata_cache import METADATA_SCHEMA
from bioshards.corpus.download.sources import DEFAULT_SETS, SETS
from bioshards.corpus.licences import DEFAULT_LICENCES, LICENCES
from tests.support.servers.fake_pmc_bucket import TODAY

DEFAULT = ArticleFilter()


def make_row(pmcid: int = 1, version: int = 1, **values: object) -> dict[str, Any]:
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
    } | values


def select(
    article_filter: ArticleFilter, *rows: dict[str, Any]
) -> tuple[list[tuple[int, int]], dict[str, int]]:
    table, dropped = article_filter.select(pa.Table.from_pylist(list(rows), METADATA_SCHEMA))
    return [(row["pmcid"], row["version"]) for row in table.to_pylist()], dropped


def find_drop_reason(articles: ArticleFilter, **values: Any) -> str | None:
    """Return the reason for which an article is dropped."""
    selected, dropped = select(articles, make_row(**values))
    assert len(selected) + len(dropped) == 1
    return next(iter(dropped), None)


def test_defaults_permit_reuse() -> None:
    assert {"CC0", "CC-BY", "CC-BY-SA"} == DEFAULT_LICENCES
    assert set(SETS) > DEFAULT_SETS
    assert find_drop_reason(DEFAULT, retracted=True) is None
    assert find_drop_reason(DEFAULT, licence="CC-BY-NC") == "licence:CC-BY-NC"


@pytest.mark.parametrize("given", [{"licences": frozenset({"CC BY"})}, {"sets": frozenset({"open_access"})}])
def test_unknown_licence_or_set_is_an_error(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"CC-BY-ND|manuscripts"):
        ArticleFilter(**given)


ROWS = st.builds(
    lambda pmcid, version, licence, flags, md5: make_row(
        pmcid,
        version,
        licence=licence,
        md5=md5,
        **dict(zip(("open_access", "manuscript", "ocr", "retracted"), flags, strict=True)),
    ),
    st.integers(1, 5),
    st.integers(8, 11),
    st.sampled_from(list(LICENCES)),
    st.tuples(*[st.booleans()] * 4),
    st.sampled_from([None, "0" * 32]),
)


@given(
    st.lists(ROWS, unique_by=lambda row: (row["pmcid"], row["version"])),
    st.frozensets(st.sampled_from(list(LICENCES))),
    st.frozensets(st.sampled_from(SETS)),
    st.booleans(),
)
def test_selection_equals_that_of_a_loop_over_rows(
    rows: list[dict[str, Any]], licences: frozenset[str], sets: frozenset[str], drop_retracted: bool
) -> None:
    def find_expected_reason(row: dict[str, Any]) -> str | None:
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

    selected, dropped = select(ArticleFilter(licences, sets, drop_retracted), *rows)
    assert selected == sorted(
        (row["pmcid"], row["version"]) for row in rows if find_expected_reason(row) is None
    )
    reasons = sorted(filter(None, map(find_expected_reason, rows)))
    assert dropped == {name: len(list(group)) for name, group in itertools.groupby(reasons)}
