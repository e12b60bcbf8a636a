"""The oracle of articles itself, on articles of ours: what it finds in references, prose and leaks."""

from __future__ import annotations

import collections

import pytest

from tests.support.corpus.jats_oracle import count_prose_words, find_leaked_titles, find_reference_titles

LONG = "Quiet rivers and the slow growth of small northern fish"
OTHER = "A second long account of lakes, <italic>their</italic> reeds and H<sub>2</sub>O"
NESTED = "What the older records of harbour towns say about weather"
FREE = "How winter light changes the colour of birds that never leave"


def article(
    body: str, *, abstract: str = "", back: str = "", attributes: str = "", title: str = "A title"
) -> bytes:
    return (
        f"<article {attributes}><front><article-meta><title-group><article-title>{title}</article-title>"
        f"</title-group>{abstract}</article-meta></front><body>{body}</body><back>{back}</back></article>"
    ).encode()


REFERENCES = (
    "<ref-list><title>References</title>"
    f"<ref><element-citation><article-title>{LONG}</article-title><source>Journal</source></element-citation></ref>"
    f"<ref><mixed-citation>Doe J. <article-title>{OTHER}</article-title>. J Reeds.</mixed-citation></ref>"
    f"<ref-list><ref><citation><source>{NESTED}</source></citation></ref></ref-list>"
    f"<ref><mixed-citation><name><surname>Roe</surname></name> {FREE}. J Birds. 2001.</mixed-citation></ref>"
    "<ref><mixed-citation><article-title>Too short to count</article-title></mixed-citation></ref></ref-list>"
)


def test_titles_of_references_are_found_wherever_they_stand() -> None:
    assert find_reference_titles(article("", back=REFERENCES)) == [
        "a second long account of lakes their reeds and h2o",
        "how winter light changes the colour of birds that never leave",
        "quiet rivers and the slow growth of small northern fish",
        "what the older records of harbour towns say about weather",
    ]
    assert len(find_reference_titles(article(f"<sec>{REFERENCES}</sec>"))) == 4
    inside = article("").replace(
        b"</article>", f"<sub-article><back>{REFERENCES}</back></sub-article></article>".encode()
    )
    assert len(find_reference_titles(inside)) == 4


def test_titles_are_found_in_any_namespace_and_with_entities() -> None:
    title = f"<article-title>{LONG} &eacute;t&eacute;</article-title>"
    back = f"<ref-list><ref><citation>{title}</citation></ref></ref-list>"
    xml = article("", back=back, attributes='xmlns="https://jats.nlm.nih.gov/ns/archiving/1.4/"')
    declared = b'<!DOCTYPE article PUBLIC "-//NLM//DTD" "archivearticle.dtd">' + xml
    assert find_reference_titles(declared) == ["quiet rivers and the slow growth of small northern fish été"]


def test_a_title_outside_of_reference_lists_is_none_of_a_reference() -> None:
    assert find_reference_titles(article(f"<p><article-title>{LONG}</article-title></p>", title=LONG)) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>One two.</p><p>two</p>", "one two two"),
        ("<sec><title>Head</title><sec><title>Deeper</title><p>text</p></sec></sec>", "head deeper text"),
        ("<p>H<sub>2</sub>O and <italic>E</italic>. coli</p>", "h2o and e coli"),
        ('<p>known<xref ref-type="bibr">1</xref> <xref ref-type="fig">Fig 2</xref></p>', "known fig 2"),
        ("<p>before<disp-formula><tex-math>x</tex-math></disp-formula>after</p>", "before after"),
        ('<p>a <m:math xmlns:m="http://www.w3.org/1998/Math/MathML"><m:mi>q</m:mi></m:math> b</p>', "a b"),
        ("<p>a<list><list-item><p>b</p></list-item><list-item>c</list-item></list>d</p>", "a b c d"),
        ("<table-wrap><label>Table 1</label><caption><title>Fish</title><p>seen</p></caption>"
         "<table><tr><td><p>cell</p></td></tr></table></table-wrap>", "fish seen"),
        (f"<p>text</p>{REFERENCES}", "text"),
        ("<p>note<fn><p>aside</p></fn> here</p>", "note here"),
        ("<p>caf&#233; <!-- no --> naïve ﬁn</p>", "café naïve fin"),
    ],
)  # fmt: skip
def test_prose_is_what_paragraphs_and_titles_of_the_body_say(body: str, expected: str) -> None:
    assert count_prose_words(article(body)) == collections.Counter(expected.split())


def test_prose_has_the_main_abstract_and_no_other_part() -> None:
    abstract = (
        "<abstract><sec><title>Aim</title><p>fish</p></sec></abstract>"
        '<abstract abstract-type="graphical"><p>drawing</p></abstract>'
        "<trans-abstract><p>Fisch</p></trans-abstract>"
    )
    xml = article("<p>body</p>", abstract=abstract, back="<ack><p>thanks</p></ack>")
    xml = xml.replace(b"</article>", b"<sub-article><body><p>review</p></body></sub-article></article>")
    assert count_prose_words(xml) == collections.Counter(["aim", "fish", "body"])


def test_a_title_that_only_a_reference_says_is_a_leak() -> None:
    xml = article("<p>Some text.</p>", back=REFERENCES)
    assert find_leaked_titles(xml, ["Some text."]) == []
    assert find_leaked_titles(xml, ["Some text.", f"1. Doe: {LONG.upper()}. 2001"]) == [LONG.lower()]
    assert find_leaked_titles(xml, ["Quiet rivers and the slow growth", "of small northern fish."]) == [
        LONG.lower()
    ]
    assert find_leaked_titles(xml, [LONG + "eries"]) == []


@pytest.mark.parametrize(
    "xml",
    [
        article(f"<p>We liked '{LONG}' much.</p>", back=REFERENCES),
        article(f"<fig><caption><p>{LONG}</p></caption></fig>", back=REFERENCES),
        article("<p>x</p>", back=f"<ack><p>{LONG}</p></ack>{REFERENCES}"),
        article("<p>x</p>", back=REFERENCES, title=LONG),
        article(
            "<p>x</p>",
            back=REFERENCES,
            title=LONG + "</article-title><alt-title>Fish</alt-title><article-title>",
        ),
        article(f"<p>{LONG}<xref ref-type='fn'>1</xref></p>", back=REFERENCES),
        article("<p>x</p>", back=REFERENCES, abstract=f"<abstract><p>{LONG}</p></abstract>"),
    ],
)
def test_a_title_that_the_article_itself_says_is_no_leak(xml: bytes) -> None:
    assert find_leaked_titles(xml, [LONG]) == []


def test_a_title_is_not_excused_by_two_paragraphs_that_say_half_of_it_each() -> None:
    xml = article("<p>Quiet rivers and the slow growth</p><p>of small northern fish</p>", back=REFERENCES)
    assert find_leaked_titles(xml, [LONG]) == [LONG.lower()]
