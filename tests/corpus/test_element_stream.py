"""The cheap checks of many records at once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.pubmed import citation
from bioshards.corpus.xml.element_stream import has_balanced_tags, pass_checks
from tests.support.corpus.pubmed_xml import citation_xml
from tests.support.hypothesis_profiles import examples

PIECES = st.sampled_from(
    ["<a>", "</a>", "<b x='1'>", "</b >", "<c/>", "<d />", "x", "é", "a > b", " ", "\n", "\t"]
)
RECORDS = st.lists(st.lists(PIECES, max_size=12).map("".join), max_size=6)


@settings(max_examples=examples(500))
@given(RECORDS)
def test_records_balance_as_their_concatenated_text(records: list[str]) -> None:
    together = "".join(records)
    assert pass_checks([record.encode() for record in records]) == (
        len(together.encode()) > 1 and has_balanced_tags(together)
    )


@settings(max_examples=examples(200))
@given(RECORDS)
def test_records_that_balance_one_by_one_balance_together(records: list[str]) -> None:
    if len("".join(records).encode()) > 1 and all(
        record.count("<") - 2 * record.count("</") == 0 for record in records
    ):
        assert pass_checks([record.encode() for record in records])


@pytest.mark.parametrize("control", ["\0", "\b", "\x0b", "\x1f"])
def test_control_character_is_detected_among_line_breaks_and_tabs(control: str) -> None:
    records = [b"<a>\r\n\tx</a>\n", f"<a>\n{control}</a>".encode()]
    assert pass_checks(records[:1])
    assert not pass_checks(records)
    assert not pass_checks(records[1:])


@pytest.mark.parametrize("tag", ["<Article>", "</Article>", "<PMID", "</ArticleTitle>"])
def test_one_broken_record_is_detected_among_many(tag: str) -> None:
    intact = [citation_xml(number).encode() for number in range(1, 32)]
    broken = citation_xml(99).replace(tag, "", 1).encode()
    assert pass_checks(intact)
    assert not pass_checks([*intact, broken])
    with pytest.raises(BadRecordError):
        citation.parse_citation(broken)
