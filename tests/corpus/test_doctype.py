"""Declarations of a DOCTYPE: harmless ones are read, all others reject the file; compared with lxml."""

from __future__ import annotations

import io
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.jats.article_stream import iter_articles
from bioshards.corpus.jats.xml_tree import parse_article
from bioshards.corpus.pubmed.documents import iter_records
from bioshards.corpus.xml import decoder
from bioshards.corpus.xml.decoder import resolve_doctype
from bioshards.corpus.xml.element_text import text_content
from tests.support.hypothesis_profiles import examples
from tests.support.memory import measure_peak_memory


def resolve(data: bytes, step: int = 1 << 20) -> bytes:
    return b"".join(resolve_doctype(data[start : start + step] for start in range(0, len(data), step)))


def declare(subset: str, content: str = "x") -> bytes:
    return f"<!DOCTYPE article [{subset}]>\n<article><p>{content}</p></article>".encode()


def read_article(data: bytes) -> str:
    """Return the text of the only article of a file."""
    [xml] = iter_articles(io.BytesIO(data))
    return text_content(parse_article(xml))


HARMLESS = {
    "nothing": ("", "x", "x"),
    "a character": ('<!ENTITY mgr "&#956;">', "5 &mgr;g", "5 μg"),
    "a character as it is": ('<!ENTITY agr "α">', "&agr;", "α"),
    "another character than the standard's": ('<!ENTITY alpha "a">', "&alpha;", "a"),
    "the first of two declarations": ('<!ENTITY a1 "1"><!ENTITY a1 "2">', "&a1;", "1"),
    "a short text": ('<!ENTITY co "Example &#38;#38; Sons">', "&co;", "Example & Sons"),
    "an empty text": ('<!ENTITY none "">', "a&none;b", "ab"),
    "a character of markup": (
        '<!ENTITY lower "&#38;#60;"><!ENTITY and "&#38;#38;">',
        "1 &lower; 2 &and;",
        "1 < 2 &",
    ),
    "a predefined entity": (
        '<!ENTITY lt "&#38;#60;"><!ENTITY amp "&#38;#38;">',
        "1 &lt; 2 &amp; 3",
        "1 < 2 & 3",
    ),
    "a predefined entity in a text": ('<!ENTITY le "&lt;=">', "1 &le; 2", "1 <= 2"),
    "quotation marks": ("<!ENTITY q '\"&#39;'>", "&q;", "\"'"),
    "an entity of its own name": ('<!ENTITY x.y-1 "z">', "&x.y-1;", "z"),
    "a notation": ('<!NOTATION GIF SYSTEM "viewer"><!NOTATION T PUBLIC "-//X//T//EN">', "x", "x"),
    "a figure": ('<!NOTATION TIF SYSTEM ""><!ENTITY f1 SYSTEM "f1.tif" NDATA TIF>', "x", "x"),
    "an element and its attributes": (
        "<!ELEMENT article (p|(sec+))*><!ATTLIST p id ID #IMPLIED kind (a|b) 'a' xml:lang CDATA \"]>\">",
        "x",
        "x",
    ),
    "a comment and an instruction": ('<!-- <!ENTITY % p "]>"> --><?x y?><!ENTITY a1 "1">', "&a1;", "1"),
}


@pytest.mark.parametrize("case", HARMLESS)
def test_harmless_declarations_are_read(case: str) -> None:
    subset, content, text = HARMLESS[case]
    data = declare(subset, content)
    assert read_article(data).strip() == text
    assert text_content(etree.fromstring(data)) == text


@pytest.mark.parametrize("step", [1, 2, 7, 40])
def test_result_does_not_depend_on_the_size_of_blocks(step: int) -> None:
    data = declare(
        '<!NOTATION G SYSTEM "]>"><!ENTITY agr "&#945;"><!ENTITY long.name-1 "and so on">',
        "&agr;&alpha;&long.name-1; & &amp; &agr &#945;; &agr;",
    )
    expected = "\n<article><p>&#945;&alpha;and so on &amp; &amp; &agr &#945;; &#945;</p></article>"
    assert resolve(data, step) == resolve(data) == expected.replace("on &amp;", "on &").encode()


def test_files_without_declarations_are_passed_on_as_they_are() -> None:
    for data in (
        b"<article>&agr;</article>",
        b'<!DOCTYPE article PUBLIC "-//X [" "y.dtd">\n<article>[&agr;]></article>',
        b"text",
        b"",
        b"<!DOCTYPE article",
    ):
        for step in (1, 5, 100):
            assert resolve(data, step) == data


def test_entities_are_resolved_in_attributes_and_in_every_record() -> None:
    records = '<PubmedArticle a="&x1;">&x1;</PubmedArticle>' * 2
    data = f"<!DOCTYPE s [<!ENTITY x1 'β&#34;'>]><PubmedArticleSet>{records}</PubmedArticleSet>".encode()
    for _, xml in iter_records(io.BytesIO(data)):
        record = etree.fromstring(xml)
        assert (record.text, record.get("a")) == ('β"', 'β"')


REFUSED = {
    "an entity of an entity": '<!ENTITY a "ha"><!ENTITY b "&a;&a;">',
    "an entity of one of the standard": '<!ENTITY a "&alpha;">',
    "an entity made of its characters": '<!ENTITY a "ha"><!ENTITY b "&#38;a;&#38;a;">',
    "markup": '<!ENTITY a "<b>x</b>">',
    "an ampersand": '<!ENTITY a "x & y">',
    "an ampersand by its number": '<!ENTITY a "x &#38; y">',
    "a long text": f'<!ENTITY a "{"x" * 65}">',
    "an impossible character": '<!ENTITY a "&#x110000;">',
    "invalid UTF-8": '<!ENTITY a "\udcff">',
    "an external entity": '<!ENTITY a SYSTEM "file:///etc/hostname">',
    "an external entity with a public id": '<!ENTITY a PUBLIC "-//X" "http://h.example/a">',
    "a parameter entity": "<!ENTITY % a \"<!ENTITY b 'x'>\">",
    "a reference to a parameter entity": "%a;",
    "a reference in a declaration": "<!ELEMENT article %a;>",
    "a reference in a text": '<!ENTITY a "%b;">',
    "markup between declarations": "<article/>",
    "an open declaration": '<!ENTITY a "x"',
    "an unknown declaration": "<!SHORTREF a b>",
    "a second DOCTYPE": '<!DOCTYPE b [<!ENTITY a "x">]>',
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_declarations_reject_the_file(case: str) -> None:
    data = declare(REFUSED[case].replace("\udcff", "\ufffd"), "&a;&b;").replace("\ufffd".encode(), b"\xff")
    for step in (1, 9, 1 << 20):
        with pytest.raises(BadFileError) as error_info:
            resolve(data, step)
        assert error_info.value.reason == "dtd-declarations"
        assert len(error_info.value.detail) < 400


def test_second_doctype_after_a_harmless_one_is_not_read() -> None:
    bomb = b'<!DOCTYPE article [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><article>&b;</article>'
    with pytest.raises(BadFileError) as error_info:
        list(iter_articles(io.BytesIO(b"<!DOCTYPE article []>" + bomb)))
    assert error_info.value.reason == "not-xml"


BILLION_LAUGHS = "<!ENTITY l0 'lol'>" + "".join(
    f'<!ENTITY l{level} "{f"&l{level - 1};" * 10}">' for level in range(1, 10)
)


def test_entity_bombs_are_refused_at_once() -> None:
    for subset in (BILLION_LAUGHS, f'<!ENTITY a "{"a" * 50_000}">'):
        data = declare(subset, "&l9;&a;" * 10_000)

        def resolve_bomb(data: bytes = data) -> None:
            with pytest.raises(BadFileError, match="dtd-declarations"):
                resolve(data)

        assert measure_peak_memory(resolve_bomb) < 2_000_000


def test_quadratic_blow_up_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short text, referred to many times."""
    monkeypatch.setattr(decoder, "GROWTH_EXEMPT_BYTES", 10_000)
    data = declare(f'<!ENTITY a "{"x" * 64}">', "&a;" * 100_000)
    for step in (1000, 1 << 20):
        with pytest.raises(BadFileError) as error_info:
            resolve(data, step)
        assert error_info.value.reason == "bomb"
    assert len(resolve(declare('<!ENTITY mgr "&#956;">', "&mgr;" * 100_000))) > 600_000


@pytest.mark.parametrize(
    "beginning",
    [b"<!DOCTYPE a [", b"<!DOCTYPE a [<!ENTITY a '", b"<!DOCTYPE a [<!ELEMENT a ("],
)
def test_endless_declarations_are_refused_early(beginning: bytes) -> None:
    blocks_read = 0

    def read_blocks() -> Iterator[bytes]:
        nonlocal blocks_read
        yield beginning
        while blocks_read < 1000:
            blocks_read += 1
            yield b"<!ELEMENT a (b)>" * 256

    with pytest.raises(BadFileError, match="dtd-declarations"):
        list(resolve_doctype(read_blocks()))
    assert blocks_read < 20


def test_truncated_declarations_are_truncated_xml() -> None:
    data = declare('<!ENTITY a "x">').partition(b"]>")[0] + b"]"
    for length in range(data.index(b"[") + 1, len(data)):
        with pytest.raises(BadFileError) as error_info:
            resolve(data[:length], 3)
        assert error_info.value.reason == "truncated-xml"


NAMES = st.sampled_from(["agr", "b.alpha", "x", "é", "alpha", "x-1"])
VALUES = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters='<>&%"\ufffe\uffff')
    | st.sampled_from("ab <"),
    max_size=12,
).map(
    lambda text: "".join(f"&#38;#{ord(character)};" if character == "<" else character for character in text)
)


@settings(max_examples=examples(300))
@given(
    st.lists(st.tuples(NAMES, VALUES), max_size=5),
    st.lists(NAMES | st.sampled_from(["lt", "gt", "amp"]), max_size=8),
    st.integers(1, 60),
)
def test_generated_declarations_equal_lxml(
    declarations: list[tuple[str, str]], references: list[str], step: int
) -> None:
    declared = {name for name, _ in declarations} | {"lt", "gt", "amp"}
    subset = "".join(f'<!ENTITY {name} "{value}">\n' for name, value in declarations)
    content = " ".join(f"&{name};" for name in references if name in declared)
    data = f'<!DOCTYPE a [{subset}]><a b="{content}">{content}</a>'.encode()
    expected = etree.fromstring(data)
    actual = etree.fromstring(resolve(data, step))
    assert (actual.text or "") == (expected.text or "")
    assert actual.get("b") == expected.get("b")
