"""Cutting files of articles: one article a file, efetch's sets, Europe PMC's packages, OAI-PMH's records."""

from __future__ import annotations

import gzip
import io
import re
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.jats import article_stream
from bioshards.corpus.jats.article_stream import iter_articles
from bioshards.corpus.xml import decoder

PROFILE = settings(derandomize=True, deadline=None, database=None)

XLINK = b'xmlns:xlink="http://www.w3.org/1999/xlink"'
DECLARATION = b'<?xml version="1.0" encoding="UTF-8"?>\n'
DOCTYPE = (
    b'<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving and Interchange DTD v1.4//EN" '
    b'"JATS-archivearticle1.dtd">\n'
)
ONE = (
    b"<article "
    + XLINK
    + b' article-type="research-article">\n<front><article-meta><article-id>1</article-id>'
    b"<title-group><article-title>One</article-title></title-group></article-meta></front>"
    b"<body><p>5 &lt; 6 &amp; &alpha; &#x3B1;</p></body>"
    b'<sub-article article-type="reply"><front-stub/><body><p>Sub.</p></body></sub-article></article>'
)
TWO = "<article><body><p>Naïve β-cells.</p></body><response><p>R.</p></response></article>".encode()
THREE = b"<article/>"


class Trickle:
    """A file that gives at most ``step`` bytes a read."""

    def __init__(self, data: bytes, step: int) -> None:
        self._file, self._step = io.BytesIO(data), step

    def read(self, size: int, /) -> bytes:
        return self._file.read(min(size, self._step))


def cut(data: bytes, step: int = 1 << 20) -> list[bytes]:
    return list(iter_articles(Trickle(data, step)))


def refusal(data: bytes, step: int = 1 << 20) -> BadFileError:
    with pytest.raises(BadFileError) as caught:
        cut(data, step)
    return caught.value


def package(*held: bytes, root: str = "articles", attributes: bytes = b"") -> bytes:
    name = root.encode()
    return DECLARATION + b"<" + name + attributes + b">\n" + b"\n".join(held) + b"\n</" + name + b">\n"


def oai(*held: bytes) -> bytes:
    """A page of OAI-PMH's ListRecords."""
    records = b"".join(
        b"<record><header><identifier>oai:1</identifier></header><metadata>" + xml + b"</metadata></record>"
        for xml in held
    )
    return (
        b'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/" '
        b'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="a b">'
        b'<responseDate>2026-01-01T00:00:00Z</responseDate><request verb="ListRecords">x</request>'
        b"<ListRecords>" + records + b'<record><header status="deleted"/></record>'
        b"<resumptionToken>t</resumptionToken></ListRecords></OAI-PMH>"
    )


# Every kind of file


@pytest.mark.parametrize("article", [ONE, TWO, THREE])
@pytest.mark.parametrize(
    "before", [b"", DECLARATION, DECLARATION + DOCTYPE, b"\xef\xbb\xbf" + DOCTYPE, b"\n \n"]
)
@pytest.mark.parametrize("after", [b"", b"\n", b"<!-- end --> <?x?>\n"])
def test_a_file_of_one_article(article: bytes, before: bytes, after: bytes) -> None:
    assert cut(before + article + after) == [article]
    assert cut(gzip.compress(before + article + after)) == [article]


@pytest.mark.parametrize("root", ["articles", "pmc-articleset"])
def test_a_package_gives_its_articles_in_order(root: str) -> None:
    for step in (1, 2, 3, 7, 50, 1 << 20):
        assert cut(package(ONE, TWO, THREE, ONE, root=root), step) == [ONE, TWO, THREE, ONE], step


@pytest.mark.parametrize("data", [ONE + b"\n", package(ONE, TWO), oai(TWO.replace(b">", b' xmlns="x">', 1))])
def test_the_articles_are_the_same_wherever_a_block_ends(
    data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = cut(data)
    assert expected
    for size in range(1, len(data) + 1):
        monkeypatch.setattr(decoder, "BLOCK_BYTES", size)
        assert list(iter_articles(io.BytesIO(data))) == expected, size


@pytest.mark.parametrize("root", ["articles", "pmc-articleset"])
def test_a_package_without_articles_has_none(root: str) -> None:
    name = root.encode()
    for data in (package(root=root), b"<" + name + b"/>", b"<" + name + b"><?x?><!-- y --></" + name + b" >"):
        assert cut(data) == []


def test_notices_of_servers_are_passed_over() -> None:
    for notice in (
        b'<error id="1">The following PMCID is not available: 1</error>',
        b'<Reply Id="1" error="The following PMCID is not available: 1"/>',
    ):
        assert cut(package(notice, ONE, notice, TWO, root="pmc-articleset")) == [ONE, TWO]
        assert cut(package(notice, root="pmc-articleset")) == []
    assert cut(b'<OAI-PMH><request>x</request><error code="idDoesNotExist">No</error></OAI-PMH>') == []


def test_what_is_no_article_in_a_package_is_handed_on_to_be_refused() -> None:
    book = b"<book><article>within</article></book>"
    assert cut(package(ONE, book, TWO)) == [ONE, book, TWO]


def test_the_records_of_oai_pmh() -> None:
    found = cut(oai(TWO.replace(b"<article", b'<article xmlns="https://jats.example/1.4/"'), THREE))
    roots = [etree.fromstring(xml) for xml in found]
    assert [root.tag for root in roots] == [
        "{https://jats.example/1.4/}article",
        "{http://www.openarchives.org/OAI/2.0/}article",  # which it is, without a namespace of its own
    ]
    assert roots[0][0][0].text == "Naïve β-cells."


def test_names_that_begin_like_an_articles_do_not_end_it() -> None:
    for name in (
        "article-meta",
        "article-title",
        "articles",
        "article.x",
        "article_x",
        "articlé",
        "sub-article",
    ):
        article = f"<article><{name}>x</{name}></article >".encode()
        assert cut(package(article, TWO)) == [article, TWO]
        assert cut(article) == [article]


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1", "windows-1252"])
def test_articles_come_in_utf_8(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><article><p>naïve</p></article>'
    assert cut(text.encode(encoding)) == ["<article><p>naïve</p></article>".encode()]


def test_comments_instructions_and_cdata_are_gone() -> None:
    article = (
        b"<article><!-- </article> --><?properties open_access?><p>a<![CDATA[<b> & </article>]]>c!"
        b"<!----><?x </article>?></p>?</article>"
    )
    plain = b"<article><p>a&lt;b&gt; &amp; &lt;/article&gt;c!</p>?</article>"
    for step in (1, 5, 1 << 20):
        assert cut(article, step) == [plain]
        assert cut(package(article, DECLARATION + article), step) == [plain, plain]


# Namespaces

NAMESPACED = {
    "prefixed articles": (
        package(b'<j:article><j:p xlink:href="y"/></j:article>', attributes=b' xmlns:j="urn:j" ' + XLINK),
        ["{urn:j}article"],
    ),
    "a prefixed set": (
        b'<s:pmc-articleset xmlns:s="urn:s">' + ONE.replace(b"&alpha;", b"") + b"</s:pmc-articleset>",
        ["article"],
    ),
    "a default namespace of the set": (
        package(b"<article/>", b'<article xmlns="urn:k"></article>', attributes=b' xmlns = "urn:j"'),
        ["{urn:j}article", "{urn:k}article"],
    ),
    "single quotes": (
        package(b"<j:article a='>'/>", attributes=b" x='xmlns:j=' xmlns:j='urn:j'"),
        ["{urn:j}article"],
    ),
    "a declaration within a value": (
        package(b"<j:article a=' xmlns:j=\"no\" '/>", attributes=b' b=\' xmlns:j="no" \' xmlns:j="urn:j"'),
        ["{urn:j}article"],
    ),
    "a prefixed article": (b'<j:article xmlns:j="urn:j"><j:article-x/></j:article>', ["{urn:j}article"]),
}


@pytest.mark.parametrize("what", NAMESPACED)
def test_an_article_can_be_parsed_alone(what: str) -> None:
    data, tags = NAMESPACED[what]
    found = [etree.fromstring(xml) for xml in cut(data)]
    expected = [item for item in etree.fromstring(data).iter() if etree.QName(item).localname == "article"]
    assert [item.tag for item in found] == [item.tag for item in expected]
    assert [item.tag for item in found] == tags
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.items() == theirs.items()
        assert {**theirs.nsmap, **ours.nsmap} == theirs.nsmap


def test_without_namespaces_outside_the_bytes_are_untouched() -> None:
    assert cut(package(ONE, attributes=b' xml:lang="en" version="1"')) == [ONE]


# Damage

LOL = b'<!DOCTYPE article [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>'
REFUSED = {
    "no bytes": (b"", "empty-file"),
    "text": (b"[Error] : No result can be found.", "not-xml"),
    "a web page": (b"<!DOCTYPE html>\n<html><body>503</body></html>", "wrong-root"),
    "a storage error": (b"<Error><Code>NoSuchKey</Code></Error>", "wrong-root"),
    "PubMed": (b"<PubmedArticleSet/>", "wrong-root"),
    "a name that begins alike": (b"<article-meta/>", "wrong-root"),
    "an inner wrapper": (b"<metadata>" + TWO + b"</metadata>", "wrong-root"),
    "an entity bomb": (LOL + b"<article>&b;</article>", "dtd-declarations"),
    "an entity bomb in a package": (LOL + package(TWO)[len(DECLARATION) :], "dtd-declarations"),
    "no end of the article": (TWO[:-10], "truncated-xml"),
    "an end within a tag": (TWO[:-1], "truncated-xml"),
    "an end after a name that begins alike": (b"<article><article-meta></article-meta>", "truncated-xml"),
    "an article without content": (b"<article>", "truncated-xml"),
    "an open comment": (TWO + b"<!-- ", "truncated-xml"),
    "text after the article": (TWO + b"text", "malformed-xml"),
    "an element after the article": (TWO + b"<x/>", "malformed-xml"),
    "text after an empty article": (THREE + b"text", "malformed-xml"),
    "no end of the package": (package(ONE, TWO)[:-5], "truncated-xml"),
    "no end of an article in a package": (package(ONE)[:-40], "truncated-xml"),
    "text between articles": (package(ONE, b"text", TWO), "malformed-xml"),
    "an end tag too many": (package(ONE, b"</article>"), "malformed-xml"),
    "content after the package": (package(ONE) + TWO, "malformed-xml"),
    "a damaged gzip": (gzip.compress(ONE)[:-5], "truncated-gzip"),
    "an unknown encoding": (b"<?xml version='1.0' encoding='klingon'?><article/>", "bad-encoding"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_file_that_cannot_be_trusted_is_refused_by_name(what: str) -> None:
    data, reason = REFUSED[what]
    for step in (1 << 20, 1, 7):
        assert refusal(data, step).reason == reason, step


@pytest.mark.parametrize("data", [ONE, package(ONE, TWO), package(root="pmc-articleset"), oai(TWO)])
def test_a_file_cut_short_never_passes_for_a_whole_one(data: bytes) -> None:
    data = data.rstrip()
    for length in range(len(data)):
        assert refusal(data[:length]).reason in ("truncated-xml", "not-xml", "empty-file"), length


@pytest.mark.parametrize(
    "damaged",
    [
        b"<article><p>x</article>",
        b"<article><p></q></p></article>",
        b"<article>&nothing; & < 5</article>",
        b"<article>\xff\x00</article>",
        b'<article a="1" a="2"/>',
        b"<article></p></article>",
        b"<article><p <q>></p></article>",
    ],
)
def test_an_article_that_is_not_well_formed_costs_itself_only(damaged: bytes) -> None:
    assert cut(package(ONE, damaged, TWO)) == [ONE, damaged, TWO]
    assert cut(damaged) == [damaged]


def test_the_articles_before_the_damage_come_first() -> None:
    reading = iter_articles(io.BytesIO(package(ONE, TWO)[:-4]))
    assert [next(reading), next(reading)] == [ONE, TWO]
    with pytest.raises(BadFileError, match="truncated-xml"):
        next(reading)


# Bounds


def test_an_article_above_the_bound_is_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(article_stream, "MAX_ARTICLE_BYTES", 1000)
    fits = b"<article>" + b"<p>x</p>" * 100 + b"</article>"
    long = b"<article>" + b"<p>x</p>" * 200 + b"</article>"
    for step in (50, 300):
        assert cut(package(*[fits] * 20), step) == [fits] * 20
        assert cut(fits, step) == [fits]
        assert refusal(package(fits, long), step).reason == "record-too-long"
        assert refusal(long, step).reason == "record-too-long"


def test_a_start_tag_without_end_is_not_read_for_ever() -> None:
    data = b"<articles><article " + b"a='b' " * 1_000_000
    assert refusal(data, 4096).reason == "record-too-long"


def test_a_large_package_needs_the_memory_of_an_article() -> None:
    article = b"<article>" + b"<p>x y z</p>" * 10_000 + b"</article>"
    data = gzip.compress(package(*[article] * 300), 1)  # 36 MB

    def read() -> int:
        return sum(1 for _ in iter_articles(io.BytesIO(data)))

    tracemalloc.start()
    try:
        assert read() == 300
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


def test_holders_within_holders_are_not_followed_for_ever() -> None:
    data = b"<articles>" * 5000 + b"</articles>" * 5000
    with pytest.raises(BadFileError):
        cut(data)
    nested = (
        b"<OAI-PMH><ListRecords>" + b"<record>" * 5000 + b"</record>" * 5000 + b"</ListRecords></OAI-PMH>"
    )
    with pytest.raises(BadFileError):
        cut(nested)


# Any articles

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


@PROFILE
@given(st.lists(ARTICLE, max_size=5), st.integers(1, 300), st.sampled_from([b"", b"\n", b" \t"]))
def test_any_articles_come_back_byte_for_byte(written: list[bytes], step: int, between: bytes) -> None:
    data = DECLARATION + DOCTYPE + b"<articles>" + b"".join(xml + between for xml in written) + b"</articles>"
    assert cut(data, step) == written
    assert cut(gzip.compress(data), step) == written
    for xml in written:
        assert cut(xml + between, step) == [xml]


@PROFILE
@given(st.lists(ARTICLE, min_size=1, max_size=3), st.integers(1, 300), st.data())
def test_any_package_with_comments_is_what_lxml_reads(
    written: list[bytes], step: int, choice: st.DataObject
) -> None:
    marks = st.sampled_from(
        [b"<!-- </article> -->", b"<?p <article>?>", b"<![CDATA[</article>!?]]>", b"!", b"?"]
    )
    marked = [
        re.sub(
            rb"(?<=[a-z/]>)(?=[^<]*<)",
            lambda _: choice.draw(marks),
            xml,
            count=choice.draw(st.integers(0, 4)),
        )
        for xml in written
    ]
    data = b"<articles>" + b"".join(marked) + b"</articles>"
    parser = etree.XMLParser(remove_comments=True, remove_pis=True, resolve_entities=False)
    expected = [etree.tostring(item, method="c14n") for item in etree.fromstring(data, parser)]
    assert [
        etree.tostring(etree.fromstring(xml, parser), method="c14n") for xml in cut(data, step)
    ] == expected
