"""Iteration over the articles of a file: a single article, a package, an efetch set, an OAI-PMH response."""

from __future__ import annotations

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from bioshards.corpus.errors import BadFileError, BadRecordError
from bioshards.corpus.jats import article_stream
from bioshards.corpus.jats.article_stream import iter_articles
from bioshards.corpus.xml import decoder
from bioshards.corpus.xml.element_stream import check_length
from tests.support.corpus.archive_bytes import TrickleReader
from tests.support.memory import measure_peak_memory

XLINK = b'xmlns:xlink="http://www.w3.org/1999/xlink"'
DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'
DOCTYPE = (
    b'<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving and Interchange DTD v1.4//EN" '
    b'"JATS-archivearticle1.dtd">\n'
)
FIRST = (
    b"<article "
    + XLINK
    + b' article-type="research-article">\n<front><article-meta><article-id>1</article-id>'
    b"<title-group><article-title>One</article-title></title-group></article-meta></front>"
    b"<body><p>5 &lt; 6 &amp; &alpha; &#x3B1;</p></body>"
    b'<sub-article article-type="reply"><front-stub/><body><p>Sub.</p></body></sub-article></article>'
)
SECOND = "<article><body><p>Naïve β-cells.</p></body><response><p>R.</p></response></article>".encode()
EMPTY = b"<article/>"


def list_articles(data: bytes, step: int = 1 << 20) -> list[bytes]:
    return list(iter_articles(TrickleReader(data, step)))


def catch_error(data: bytes, step: int = 1 << 20) -> BadFileError:
    with pytest.raises(BadFileError) as error_info:
        list_articles(data, step)
    return error_info.value


def build_package(*articles: bytes, root: str = "articles", attributes: bytes = b"") -> bytes:
    name = root.encode()
    return DECLARATION + b"<" + name + attributes + b">\n" + b"\n".join(articles) + b"\n</" + name + b">\n"


def build_oai_response(*articles: bytes, token: bytes = b"<resumptionToken>t</resumptionToken>") -> bytes:
    """Return a response to OAI-PMH's ListRecords with these articles, and the token of the next page."""
    records = b"".join(
        b"<record><header><identifier>oai:1</identifier></header><metadata>" + xml + b"</metadata></record>"
        for xml in articles
    )
    return (
        b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" '
        b'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="a b">'
        b'<responseDate>2026-01-01T00:00:00Z</responseDate><request verb="ListRecords">x</request>'
        b"<ListRecords>"
        + records
        + b'<record><header status="deleted"/></record>'
        + token
        + b"</ListRecords></OAI-PMH>"
    )


# Kinds of files


@pytest.mark.parametrize("article", [FIRST, SECOND, EMPTY])
@pytest.mark.parametrize(
    "before", [b"", DECLARATION, DECLARATION + DOCTYPE, b"\xef\xbb\xbf" + DOCTYPE, b"\n \n"]
)
@pytest.mark.parametrize("after", [b"", b"\n", b"<!-- end --> <?x?>\n"])
def test_file_of_one_article(article: bytes, before: bytes, after: bytes) -> None:
    assert list_articles(before + article + after) == [article]
    assert list_articles(gzip.compress(before + article + after)) == [article]


NOTICES = (
    b'<error id="1">The following PMCID is not available: 1</error>',
    b'<Reply Id="1" error="The following PMCID is not available: 1"/>',
)


UNUSUAL_ARTICLES = [
    *(
        f"<article><{name}>x</{name}></article >".encode()
        for name in (
            "article-meta",
            "article-title",
            "articles",
            "article.x",
            "article_x",
            "articlé",
            "sub-article",
        )
    ),
    # Malformed ones are yielded as they are, and do not affect the others.
    b"<article><p>x</article>",
    b"<article><p></q></p></article>",
    b"<article>&nothing; & < 5</article>",
    b"<article>\xff\x00</article>",
    b'<article a="1" a="2"/>',
    b"<article><p <q>></p></article>",
]


MARKED_UP = (
    b"<article><!-- </article> --><?properties open_access?><p>a<![CDATA[<b> & </article>]]>c!"
    b"<!----><?x </article>?></p>?</article>"
)


PLAIN = b"<article><p>a&lt;b&gt; &amp; &lt;/article&gt;c!</p>?</article>"


@pytest.mark.parametrize("root", ["articles", "pmc-articleset"])
@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        ([], None),
        ([FIRST, SECOND, EMPTY, FIRST], None),
        ([NOTICES[0], FIRST, NOTICES[1], SECOND], None),
        ([FIRST, b"<book><article>within</article></book>", SECOND], None),
        *(([FIRST, article, SECOND], None) for article in UNUSUAL_ARTICLES),
        ([MARKED_UP, DECLARATION + MARKED_UP], [PLAIN, PLAIN]),
    ],
)
def test_package_yields_its_elements_in_order(
    elements: list[bytes], expected: list[bytes] | None, root: str
) -> None:
    attributes = b' xml:lang="en" version="1"'  # no namespace, which would be repeated in each article
    for step in (1, 2, 3, 7, 50, 1 << 20):
        package = build_package(*elements, root=root, attributes=attributes)
        assert list_articles(package, step) == (expected or elements), step


def test_unusual_articles_and_packages_are_read_alone() -> None:
    for article in UNUSUAL_ARTICLES:
        assert list_articles(article) == [article]
    assert list_articles(MARKED_UP, 5) == [PLAIN]
    for name in (b"articles", b"pmc-articleset"):
        for data in (b"<" + name + b"/>", b"<" + name + b"><?x?><!-- y --></" + name + b" >"):
            assert list_articles(data) == []
    error = b'<error code="idDoesNotExist">No</error>'
    assert list_articles(b"<OAI-PMH><request>x</request>" + error + b"</OAI-PMH>") == [error]


def test_articles_of_an_oai_pmh_response() -> None:
    articles = list_articles(
        build_oai_response(SECOND.replace(b"<article", b'<article xmlns="https://jats.example/1.4/"'), EMPTY)
    )
    roots = [etree.fromstring(xml) for xml in articles]
    assert [root.tag for root in roots] == [
        "{https://jats.example/1.4/}article",
        "{http://www.openarchives.org/OAI/2.0/}article",  # inherited: the article declares no namespace
        "{http://www.openarchives.org/OAI/2.0/}header",  # of a deleted record
    ]
    assert roots[0][0][0].text == "Naïve β-cells."


@pytest.mark.parametrize("encoding", ["ISO-8859-1", "windows-1252", "latin1"])
@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_utf_8_that_declares_a_single_byte_encoding_is_read_as_utf_8(encoding: str, step: int) -> None:
    declaration = f'<?xml version="1.0" encoding="{encoding}"?>'
    for text in ("naïve", "the mouse’s α-helix", "x" * 2000 + "€"):
        article = f"<article><p>{text}</p></article>"
        report = decoder.DecodingReport()
        data = (declaration + article).encode()
        assert list(iter_articles(TrickleReader(data, step), report)) == [article.encode()]
        assert report.misdeclared_files == 1


@pytest.mark.parametrize(
    ("token", "pages"),
    [
        (b"<resumptionToken>t</resumptionToken>", 1),
        (b'<o:resumptionToken cursor="0" completeListSize="9">\n oai&amp;1</o:resumptionToken>', 1),
        (b"<resumptionToken/>", 0),
        (b'<resumptionToken cursor="8"> </resumptionToken>', 0),
        (b"", 0),
    ],
)
@pytest.mark.parametrize("step", [1, 1 << 20])
def test_a_page_of_a_longer_list_is_counted(token: bytes, pages: int, step: int) -> None:
    report = decoder.DecodingReport()
    data = build_oai_response(b"<article/>", token=token)
    assert len(list(iter_articles(TrickleReader(data, step), report, "a"))) == 2  # and the deleted record
    assert report.partial_lists == ["a"] * pages


@pytest.mark.parametrize("text", ["naïve", "5 µg", "x" * 2000 + "é", "plain", "Ã©t\xe9"])
def test_text_in_its_declared_encoding_is_read_by_it(text: str) -> None:
    article = f"<article><p>{text}</p></article>"
    for step in (1, 1 << 20):
        report = decoder.DecodingReport()
        data = f'<?xml version="1.0" encoding="iso-8859-1"?>{article}'.encode("latin-1")
        assert list(iter_articles(TrickleReader(data, step), report)) == [article.encode()]
        assert report.misdeclared_files == 0


def test_encoding_is_decided_by_a_sample_that_blocks_do_not_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "_UTF_8_SAMPLE_BYTES", 10)
    declaration = b'<?xml version="1.0" encoding="iso-8859-1"?>'
    for content, is_utf8 in (
        ("é23456789é".encode() + b"\xe9", True),  # the sample ends within a character
        ("é23456".encode() + b"\xe9x", False),
    ):
        article = b"<article>" + content + b"</article>"
        expected = article if is_utf8 else article.decode("latin-1").encode()
        for step in (1, 3, 1 << 20):
            assert list(iter_articles(TrickleReader(declaration + article, step))) == [expected]


# Namespaces

NAMESPACED = {
    "prefixed articles": (
        build_package(
            b'<j:article><j:p xlink:href="y"/></j:article>', attributes=b' xmlns:j="urn:j" ' + XLINK
        ),
        ["{urn:j}article"],
    ),
    "a prefixed set": (
        b'<s:pmc-articleset xmlns:s="urn:s">' + FIRST.replace(b"&alpha;", b"") + b"</s:pmc-articleset>",
        ["article"],
    ),
    "a default namespace of the set": (
        build_package(b"<article/>", b'<article xmlns="urn:k"></article>', attributes=b' xmlns = "urn:j"'),
        ["{urn:j}article", "{urn:k}article"],
    ),
    "single quotes": (
        build_package(b"<j:article a='>'/>", attributes=b" x='xmlns:j=' xmlns:j='urn:j'"),
        ["{urn:j}article"],
    ),
    "a declaration within a value": (
        build_package(
            b"<j:article a=' xmlns:j=\"no\" '/>", attributes=b' b=\' xmlns:j="no" \' xmlns:j="urn:j"'
        ),
        ["{urn:j}article"],
    ),
    "a prefixed article": (b'<j:article xmlns:j="urn:j"><j:article-x/></j:article>', ["{urn:j}article"]),
}


@pytest.mark.parametrize("case", NAMESPACED)
def test_article_keeps_the_namespaces_of_its_ancestors(case: str) -> None:
    data, tags = NAMESPACED[case]
    parsed = [etree.fromstring(xml) for xml in list_articles(data)]
    expected = [item for item in etree.fromstring(data).iter() if etree.QName(item).localname == "article"]
    assert [item.tag for item in parsed] == [item.tag for item in expected]
    assert [item.tag for item in parsed] == tags
    for article, expected_article in zip(parsed, expected, strict=True):
        assert article.items() == expected_article.items()
        assert {**expected_article.nsmap, **article.nsmap} == expected_article.nsmap


# Damage

ENTITY_BOMB = b'<!DOCTYPE article [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
BAD_FILES = {
    "no bytes": (b"", "empty-file"),
    "a web page": (b"<!DOCTYPE html>\n<html><body>503</body></html>", "wrong-root"),
    "PubMed": (b"<PubmedArticleSet/>", "wrong-root"),
    "a root with the same prefix": (b"<article-meta/>", "wrong-root"),
    "an inner wrapper": (b"<metadata>" + SECOND + b"</metadata>", "wrong-root"),
    "an entity bomb": (ENTITY_BOMB + b"<article>&b;</article>", "dtd-declarations"),
    "an entity bomb in a package": (
        ENTITY_BOMB + build_package(SECOND)[len(DECLARATION) :],
        "dtd-declarations",
    ),
    "no end of the article": (SECOND[:-10], "truncated-xml"),
    "an end within a tag": (SECOND[:-1], "truncated-xml"),
    "an end after an element with the same prefix": (
        b"<article><article-meta></article-meta>",
        "truncated-xml",
    ),
    "an article without content": (b"<article>", "truncated-xml"),
    "an open comment": (SECOND + b"<!-- ", "truncated-xml"),
    "text after the article": (SECOND + b"text", "malformed-xml"),
    "an element after the article": (SECOND + b"<x/>", "malformed-xml"),
    "text after an empty article": (EMPTY + b"text", "malformed-xml"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_file_raises_with_its_reason(case: str) -> None:
    data, reason = BAD_FILES[case]
    for step in (1 << 20, 1, 7):
        assert catch_error(data, step).reason == reason, step


@pytest.mark.parametrize(
    "data",
    [FIRST, build_package(FIRST, SECOND), build_package(root="pmc-articleset"), build_oai_response(SECOND)],
)
def test_truncated_file_raises_at_every_length(data: bytes) -> None:
    data = data.rstrip()
    for length in range(len(data)):
        assert catch_error(data[:length]).reason in ("truncated-xml", "not-xml", "empty-file"), length


# Limits


def test_article_above_the_size_limit_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(article_stream, "MAX_ARTICLE_BYTES", 1000)
    fits = b"<article>" + b"<p>x</p>" * 100 + b"</article>"
    long = b"<article>" + b"<p>x</p>" * 200 + b"</article>"
    for step in (50, 300):
        assert list_articles(build_package(*[fits] * 20), step) == [fits] * 20
        assert list_articles(fits, step) == [fits]
        first, cut, last = list_articles(build_package(fits, long, fits), step)
        assert (first, last) == (fits, fits), "the others are kept"
        assert long.startswith(cut)
        with pytest.raises(BadRecordError, match=r"record-too-long: .* begins b'<article><p>x"):
            check_length(cut)
        assert catch_error(long, step).reason == "record-too-long"


def test_memory_does_not_grow_with_the_package() -> None:
    article = b"<article>" + b"<p>x y z</p>" * 10_000 + b"</article>"
    data = gzip.compress(build_package(*[article] * 300), 1)  # 36 MB

    def count_articles() -> None:
        assert sum(1 for _ in iter_articles(io.BytesIO(data))) == 300

    assert measure_peak_memory(count_articles) < 4_000_000


def test_deeply_nested_containers_raise() -> None:
    data = b"<articles>" * 5000 + b"</articles>" * 5000
    with pytest.raises(BadFileError):
        list_articles(data)
    nested = (
        b"<OAI-PMH><ListRecords>" + b"<record>" * 5000 + b"</record>" * 5000 + b"</ListRecords></OAI-PMH>"
    )
    with pytest.raises(BadFileError):
        list_articles(nested)


# Generated articles

LEGAL = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="<>&\ufffe\uffff")
TEXT = st.text(LEGAL, max_size=30) | st.sampled_from(
    ["&lt;/article&gt;", "&#60;", "?!", "! ?", "?>", "-->", "]]"]
)
NAMES = st.sampled_from(["p", "article-title", "article-meta", "sub-article", "articles", "sec", "response"])
CONTENT = st.recursive(
    TEXT,
    lambda inner: st.tuples(NAMES, st.lists(inner, max_size=3)).map(
        lambda parts: f"<{parts[0]}>{''.join(parts[1])}</{parts[0]}>"
    ),
    max_leaves=12,
)
ARTICLE = st.tuples(st.sampled_from(["", ' a="</"', " b='>'", "\n"]), CONTENT).map(
    lambda parts: f"<article{parts[0].replace('</', '')}>{parts[1]}</article>".encode()
)


@given(st.lists(ARTICLE, max_size=5), st.integers(1, 300), st.sampled_from([b"", b"\n", b" \t"]))
def test_generated_articles_are_yielded_byte_for_byte(
    articles: list[bytes], step: int, separator: bytes
) -> None:
    data = (
        DECLARATION + DOCTYPE + b"<articles>" + b"".join(xml + separator for xml in articles) + b"</articles>"
    )
    assert list_articles(data, step) == articles
    assert list_articles(gzip.compress(data), step) == articles
    for xml in articles:
        assert list_articles(xml + separator, step) == [xml]
