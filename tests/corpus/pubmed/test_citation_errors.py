"""Errors of citations that cannot be parsed, and the PMIDs of deletions and books."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.pubmed import citation
from tests.support.corpus.citation_strategies import (
    MARKUP_PIECE,
    MATHML,
    OWN_IDS_XML,
    article_record,
    small_record_xml,
)
from tests.support.hypothesis_profiles import examples

# Errors


def catch_error(record: str | bytes) -> BadRecordError:
    with pytest.raises(BadRecordError) as error_info:
        citation.parse_citation(record.encode() if isinstance(record, str) else record)
    return error_info.value


OTHER_PMID = "<CommentsCorrections RefType='Cites'><PMID Version='1'>99</PMID></CommentsCorrections>"


def record_of_pmid(pmid: str) -> str:
    return small_record_xml(pmid_xml=pmid)


def record_of_title(title: str) -> str:
    return small_record_xml(title=f"<ArticleTitle>{title}</ArticleTitle>")


def record_of_text(text: str, attributes: str = "") -> str:
    return small_record_xml(
        abstract_xml=f"<Abstract><AbstractText{attributes}>{text}</AbstractText></Abstract>"
    )


IDS_XML = f"<PubmedData>{OWN_IDS_XML.replace('own', '&alfa;')}</PubmedData>"


BAD_RECORDS: dict[str, tuple[str | bytes, str]] = {
    "no PMID": (record_of_pmid(""), "no-pmid"),
    "no PMID but another article's": (small_record_xml(pmid_xml="", extra_xml=OTHER_PMID), "no-pmid"),
    "no citation": ("<PubmedArticle><PubmedData/></PubmedArticle>", "no-pmid"),
    "an empty record": ("<PubmedArticle/>", "no-pmid"),
    "a PMID outside": ("<PubmedArticle><PMID>5</PMID><MedlineCitation/></PubmedArticle>", "no-pmid"),
    "a PMID of letters": (record_of_pmid('<PMID Version="1">5-a</PMID>'), "bad-pmid"),
    "an empty PMID": (record_of_pmid('<PMID Version="1"> </PMID>'), "bad-pmid"),
    "PMID zero": (record_of_pmid('<PMID Version="1">0</PMID>'), "bad-pmid"),
    "a PMID beyond 31 bits": (record_of_pmid('<PMID Version="1">2147483648</PMID>'), "bad-pmid"),
    "a PMID of thousands of digits": (record_of_pmid(f"<PMID>{'9' * 9000}</PMID>"), "bad-pmid"),
    "a PMID of digits far apart": (record_of_pmid(f"<PMID>5{' ' * 900}5</PMID>"), "bad-pmid"),
    "a PMID in foreign digits": (record_of_pmid('<PMID Version="1">٤٢</PMID>'), "bad-pmid"),
    "a version too high": (record_of_pmid('<PMID Version="10000">5</PMID>'), "bad-version"),
    "a version in foreign digits": (record_of_pmid('<PMID Version="٤">5</PMID>'), "bad-version"),
    "a version of letters": (record_of_pmid('<PMID Version="one">5</PMID>'), "bad-version"),
    "an empty version": (record_of_pmid('<PMID Version="">5</PMID>'), "bad-version"),
    "an invalid byte": (small_record_xml().encode().replace(b"title.", b"title\xff"), "invalid-utf-8"),
    "one that is not parsed": (small_record_xml().encode().replace(b"Doe", b"D\xe9"), "invalid-utf-8"),
    "an open title": (small_record_xml(title="<ArticleTitle>A title."), "malformed-xml"),
    "crossed inline elements": (record_of_title("<i>A <b>title</i>.</b>"), "malformed-xml"),
    "an additional end tag": (
        small_record_xml().replace("</LastName>", "</LastName></Initials>"),
        "malformed-xml",
    ),
    "an unknown entity in the title": (record_of_title("&alfa;-helix"), "unknown-entity"),
    "an unknown entity in a segment": (record_of_text("5 &mikro;g"), "unknown-entity"),
    "an unknown entity in a label": (record_of_text("x", " Label='&alfa;'"), "unknown-entity"),
    "an unknown entity in an id": (small_record_xml(pubmed_data_xml=IDS_XML), "unknown-entity"),
    "a bare ampersand in the title": (record_of_title("AT&T"), "malformed-xml"),
    "a forbidden character by number": (record_of_title("a&#1;b"), "malformed-xml"),
    "a forbidden character in the title": (record_of_title("a\x01b"), "malformed-xml"),
    "a prefix that is declared nowhere": (record_of_title("<foo:bar>x</foo:bar>"), "malformed-xml"),
    "an open formula": (record_of_title("<mml:math><mml:mi>x</mml:math>"), "malformed-xml"),
    "a tag without its bracket": (record_of_title("x<i/"), "malformed-xml"),
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_bad_record_raises_with_its_reason(case: str) -> None:
    record, reason = BAD_RECORDS[case]
    error = catch_error(record)
    assert error.reason == reason
    assert error.detail


def escape_stray_tag_ends(record: str) -> str:
    """Remove comments and CDATA sections, and escape each ``/>`` that does not end a tag."""
    return MARKUP_PIECE.sub(
        lambda match: (
            match["tag"][:-2].replace("/>", "/&gt;") + match["tag"][-2:]
            if match["tag"]
            else "/&gt;"
            if match[0] == "/>"
            else ""
        ),
        record,
    )


@settings(max_examples=examples(150))
@given(article_record(), st.data())
def test_missing_end_tag_raises(record: str, data: st.DataObject) -> None:
    whole = escape_stray_tag_ends(record)
    ends = [match.span() for match in MARKUP_PIECE.finditer(whole) if (match["tag"] or "").startswith("</")]
    start, end = data.draw(st.sampled_from(ends))
    broken = whole[:start] + whole[end:]
    with pytest.raises(etree.XMLSyntaxError):
        etree.fromstring(f'<x xmlns:mml="{MATHML}">{broken}</x>')
    assert catch_error(broken).reason in ("malformed-xml", "bad-pmid")


@pytest.mark.parametrize(
    "end", ["</Language>", "</PublicationType>", "</LastName>", "</Year>", "</AbstractText>"]
)
def test_missing_end_tag_beside_text_that_looks_like_a_tag_end_raises(end: str) -> None:
    record = small_record_xml(title="<ArticleTitle>a /> b</ArticleTitle>")
    assert end in record
    assert catch_error(record.replace(end, "")).reason == "malformed-xml"


# PMIDs of deletions and books


def test_pmids_of_a_deletion() -> None:
    record = (
        b"<DeleteCitation>\n<PMID Version='1'>7</PMID><!-- x -->"
        b'<PMID Version="2"> 8 </PMID><PMID>9</PMID>\n</DeleteCitation>'
    )
    assert citation.parse_pmids(record) == [(7, 1), (8, 2), (9, 1)]
    assert citation.parse_pmids(b"<DeleteDocument><PMID Version='1'>7</PMID></DeleteDocument>") == [(7, 1)]
    assert citation.parse_pmids(b"<DeleteCitation/>") == []


BOOK_DOCUMENT = "<BookDocument><PMID Version='3'>31</PMID><Ref><PMID>99</PMID></Ref>{}</BookDocument>"


def test_pmid_of_a_book() -> None:
    chapter = BOOK_DOCUMENT.format("<ReferenceList><PMID>98</PMID></ReferenceList>")
    assert citation.parse_pmids(chapter.encode()) == [(31, 3)]
    data = "<PubmedBookData><PMID>97</PMID></PubmedBookData>"
    assert citation.parse_pmids(f"<PubmedBookArticle>{chapter}{data}</PubmedBookArticle>".encode()) == [
        (31, 3)
    ]
    assert citation.parse_pmids(f"<PubmedBookArticle>{data}</PubmedBookArticle>".encode()) == []


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"<DeleteCitation><PMID>7</PMID><PMID>x</PMID></DeleteCitation>", "bad-pmid"),
        (b"<DeleteCitation><PMID/></DeleteCitation>", "bad-pmid"),
        (b"<DeleteCitation><PMID Version='x'>7</PMID></DeleteCitation>", "bad-version"),
        (b"<DeleteCitation><PMID Version='10000'>7</PMID></DeleteCitation>", "bad-version"),
        (b"<DeleteCitation><PMID>7</DeleteCitation>", "malformed-xml"),
        (b"<DeleteCitation>&x;<PMID>7</PMID></DeleteCitation>", "unknown-entity"),
        (b"<DeleteCitation>\xff<PMID>7</PMID></DeleteCitation>", "invalid-utf-8"),
    ],
)
def test_bad_deletion_raises_with_its_reason(record: bytes, reason: str) -> None:
    with pytest.raises(BadRecordError) as error_info:
        citation.parse_pmids(record)
    assert error_info.value.reason == reason


def test_external_entity_raises() -> None:
    record = '<!DOCTYPE PubmedArticle [<!ENTITY e SYSTEM "file:///etc/hostname">]>' + small_record_xml(
        title="<ArticleTitle>&e;</ArticleTitle>"
    )
    with pytest.raises(BadRecordError):
        citation.parse_citation(record.encode())
