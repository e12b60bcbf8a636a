"""Reading one record: what the fast reading finds is what a tree of the whole record says.

``medline.parse`` looks at a record's text from left to right and builds trees of small parts only.
Every answer is therefore compared with a reading that is slow and plain: the whole record as an lxml
tree, elements by their path from the record down.  The records are made up at random within the DTD,
with everything around that could be taken for the real thing: PMIDs and ids of cited papers, years of
other dates, abstracts in other languages, text that looks like tags.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lxml import etree

from bioshards.corpus import medline
from bioshards.corpus.medline import BadRecord, Citation, Section
from bioshards.corpus.medline_file import records

PROFILE = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

MATHML = "http://www.w3.org/1998/Math/MathML"


# The plain reading


def text_of(element: etree._Element | None) -> str:
    return "" if element is None else "".join(map(str, element.itertext()))


def first_year(date: etree._Element | None) -> int | None:
    if date is None:
        return None
    found = re.search(r"\d{4}", date.findtext("Year") or date.findtext("MedlineDate") or "")
    return int(found[0]) if found else None


def plain_reading(record: etree._Element) -> Citation:
    citation = record if record.tag == "MedlineCitation" else record.find("MedlineCitation")
    assert citation is not None
    pmid = citation.find("PMID")
    assert pmid is not None
    ids: dict[str, str] = {}
    for item in record.findall("PubmedData/ArticleIdList/ArticleId"):
        if text_of(item).strip():
            ids.setdefault(item.get("IdType", ""), text_of(item).strip())
    locations = [
        text_of(item).strip()
        for item in citation.findall("Article/ELocationID")
        if item.get("EIdType") == "doi" and item.get("ValidYN", "Y") != "N"
    ]
    types = tuple(text_of(item) for item in citation.findall("Article/PublicationTypeList/PublicationType"))
    retraction = citation.xpath(
        "CommentsCorrectionsList/CommentsCorrections[@RefType='RetractionIn']"
        "|CommentsCorrectionsList/RetractionIn|CommentsCorrections/RetractionIn"
    )
    pmcid = re.search(r"PMC\d+", ids.get("pmc") or ids.get("pmcid") or "")
    sections = []
    for part in citation.findall("Article/Abstract/AbstractText"):
        label = (part.get("Label") or "").strip()
        sections.append(Section(None if label.upper() in ("", "UNLABELLED") else label, text_of(part)))
    return Citation(
        pmid=int(text_of(pmid)),
        version=int(pmid.get("Version", "1")),
        title=text_of(citation.find("Article/ArticleTitle")),
        abstract=tuple(sections),
        year=first_year(citation.find("Article/Journal/JournalIssue/PubDate")),
        languages=tuple(text_of(item).strip() for item in citation.findall("Article/Language")),
        publication_types=types,
        retracted=bool(retraction) or "Retracted Publication" in types,
        pmcid=pmcid[0] if pmcid else None,
        doi=ids.get("doi") or (locations[0] if locations else None),
    )


def both(inner: str) -> tuple[Citation, Citation]:
    """A record as it is read from a file, and as the plain reading has it."""
    data = f'<PubmedArticleSet xmlns:mml="{MATHML}">\n{inner}\n</PubmedArticleSet>'.encode()
    [(_, cut)] = records(io.BytesIO(data))
    parser = etree.XMLParser(remove_comments=True, remove_pis=True, resolve_entities=False)
    [record] = etree.fromstring(data, parser)
    return medline.parse(cut), plain_reading(record)


# Records made up at random


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


LEGAL = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff\u00a0")
TEXT = st.text(LEGAL | st.sampled_from(" \t\n<>&'\"=/"), max_size=10) | st.sampled_from(
    ["p < 0.05", "AT&T", "a /> b", "<Abstract>", "</ArticleTitle>", "Label='x'", "10 µg", "<PMID>1</PMID>"]
)
RUNS = st.one_of(
    TEXT.map(escaped).map(lambda text: text.replace("]]>", "]]&gt;")),
    TEXT.map(lambda text: escaped(text).replace(">", "&gt;").replace("'", "&apos;").replace('"', "&quot;")),
    TEXT.map(lambda text: "<![CDATA[" + text.replace("]]>", "") + "]]>"),
    st.sampled_from(["&#945;", "&#x10D;", "&#x2009;", "<!-- </i> <Abstract> -->", "<?pi </b>?>", "<!---->"]),
)
FORMULAS = st.sampled_from(
    [
        f'<mml:math xmlns:mml="{MATHML}"><mml:mi>x</mml:mi><mml:mo>+</mml:mo><mml:mn>2</mml:mn></mml:math>',
        f"<mml:math xmlns:mml='{MATHML}' display = 'block'><mml:mi>α</mml:mi>\n<mml:mspace/></mml:math>",
        "<mml:math><mml:mi>y</mml:mi></mml:math>",
        '<mml:math overflow="scroll"><mml:mrow><mml:mi>z</mml:mi>&lt;</mml:mrow></mml:math>',
    ]
)
INLINE: st.SearchStrategy[str] = st.recursive(
    RUNS | FORMULAS,
    lambda inner: st.tuples(
        st.sampled_from(["i", "b", "sup", "sub", "u", "DispFormula"]),
        st.lists(inner, max_size=3).map("".join),
    ).map(lambda pair: f"<{pair[0]}>{pair[1]}</{pair[0]}>" if pair[1] else f"<{pair[0]}/>"),
    max_leaves=4,
)
PLAIN = TEXT.map(lambda text: escaped(text).replace(">", ""))
MIXED = PLAIN | st.lists(RUNS, max_size=3).map("".join) | st.lists(INLINE, max_size=4).map("".join)
LABELS = st.sampled_from(
    [
        "METHODS",
        "UNLABELLED",
        "Unlabelled",
        "",
        " AIM ",
        "WHAT'S NEW",
        'A "NEW" AIM',
        "A > B",
        "A & B",
        "p < .05",
    ]
) | st.text(LEGAL | st.sampled_from("<>&'\"= "), max_size=8)
GAPS = st.sampled_from(["", "\n", "\n    ", "<!-- c -->", " <?p?>"])
NUMBERS = st.integers(1, 2**31 - 1)
YEARS = st.integers(1700, 2100).map(str)


@st.composite
def attribute(draw: st.DrawFn, name: str, value: str) -> str:
    quote = draw(st.sampled_from("\"'"))
    value = escaped(value).replace(quote, "&quot;" if quote == '"' else "&apos;")
    if draw(st.booleans()):
        value = value.replace(">", "&gt;")
    before, left, right = draw(
        st.sampled_from([(" ", "", ""), ("\n ", " ", " "), ("  ", "\t", ""), (" ", "", " ")])
    )
    return f"{before}{name}{left}={right}{quote}{value}{quote}"


@st.composite
def element(draw: st.DrawFn, /, name: str, content: str, **attributes: str | None) -> str:
    """An element with its attributes in any order and writing; one without content may be closed."""
    given_ = [(key, value) for key, value in attributes.items() if value is not None]
    start = name + "".join(draw(attribute(key, value)) for key, value in draw(st.permutations(given_)))
    if not content and draw(st.booleans()):
        return f"<{start}{draw(st.sampled_from(['', ' ']))}/>"
    blank = draw(st.sampled_from(["", " ", "\n"])) if given_ else ""
    return f"<{start}{blank}>{content}</{name}>"


@st.composite
def pmid(draw: st.DrawFn) -> str:
    version = draw(st.none() | st.integers(1, 99).map(str))
    return draw(element("PMID", str(draw(NUMBERS)), Version=version))


@st.composite
def pub_date(draw: st.DrawFn) -> str:
    year = draw(YEARS)
    inside = draw(
        st.sampled_from(
            [
                "",
                f"<Year>{year}</Year>",
                f"\n  <Year>{year}</Year>\n  <Month>Feb</Month><Day>03</Day>",
                f"<Year>{year}</Year><Season>Spring</Season>",
                f"<MedlineDate>{year} Nov-Dec</MedlineDate>",
                f"\n<MedlineDate>Spring {year}-{int(year) + 1}</MedlineDate>",
                f"<MedlineDate>7th to 9th of {year}</MedlineDate>",
                "<MedlineDate>undated</MedlineDate>",
            ]
        )
    )
    return draw(element("PubDate", inside))


@st.composite
def journal(draw: st.DrawFn) -> str:
    issue = f"<Volume>{draw(YEARS)}</Volume>" + (draw(pub_date()) if draw(st.integers(0, 5)) else "")
    title = f"<Title>Of {draw(PLAIN)}</Title>"
    return f"<Journal><JournalIssue CitedMedium='Print'>{issue}</JournalIssue>{title}</Journal>"


@st.composite
def abstract(draw: st.DrawFn, name: str = "Abstract") -> str:
    parts = []
    for content in draw(st.lists(MIXED, min_size=1, max_size=4)):
        label = draw(st.none() | LABELS)
        category = draw(st.none() | st.sampled_from(["METHODS", "Label > x", "UNASSIGNED"]))
        parts.append(draw(GAPS) + draw(element("AbstractText", content, Label=label, NlmCategory=category)))
    if draw(st.booleans()):
        parts.append(draw(GAPS) + draw(element("CopyrightInformation", draw(MIXED))))
    kind = draw(st.sampled_from(["Publisher", "AIDS"])) if name == "OtherAbstract" else None
    language = draw(st.none() | st.just("ger")) if name == "OtherAbstract" else None
    return draw(element(name, "".join(parts) + draw(GAPS), Type=kind, Language=language))


DOIS = st.sampled_from(["10.1000/a.1", "10.1000/B&lt;2&gt;", " 10.1000/c;3-4\n", "10.1000/d&amp;e"])


@st.composite
def location(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(["doi", "pii"]))
    return draw(
        element("ELocationID", draw(DOIS), EIdType=kind, ValidYN=draw(st.sampled_from([None, "Y", "N"])))
    )


TYPES = ["Journal Article", "Review", "Retracted Publication", "Retraction of Publication", "Editorial"]


@st.composite
def publication_types(draw: st.DrawFn) -> str:
    items = [
        draw(GAPS) + draw(element("PublicationType", name, UI=draw(st.sampled_from([None, "D016441"]))))
        for name in draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    ]
    return f"<PublicationTypeList>{''.join(items)}{draw(GAPS)}</PublicationTypeList>"


@st.composite
def article(draw: st.DrawFn) -> str:
    parts = [draw(journal())]
    if draw(st.integers(0, 9)):
        parts.append(draw(element("ArticleTitle", draw(MIXED), book=draw(st.none() | st.just("b > c")))))
    parts.append("<Pagination><MedlinePgn>1-9</MedlinePgn></Pagination>")
    parts += draw(st.lists(location(), max_size=3))
    if draw(st.integers(0, 3)):
        parts.append(draw(abstract()))
    parts.append(f"<AuthorList><Author><CollectiveName>{draw(MIXED)}</CollectiveName></Author></AuthorList>")
    parts += [
        draw(element("Language", code))
        for code in draw(st.lists(st.sampled_from(["eng", "fre", " ger "]), max_size=3))
    ]
    if draw(st.integers(0, 3)):
        parts.append(draw(publication_types()))
    if draw(st.booleans()):
        parts.append(draw(element("VernacularTitle", draw(MIXED))))
    parts.append(f"<ArticleDate DateType='Electronic'><Year>{draw(YEARS)}</Year></ArticleDate>")
    return draw(element("Article", "".join(draw(GAPS) + part for part in parts), PubModel="Print"))


@st.composite
def comments(draw: st.DrawFn) -> str:
    kinds = st.sampled_from(
        ["Cites", "RetractionOf", "RetractionIn", "ErratumIn", "RetractedandRepublishedIn"]
    )
    new = draw(st.booleans())
    items = []
    for kind in draw(st.lists(kinds, min_size=1, max_size=2)):
        inside = f"<RefSource>{draw(PLAIN)}</RefSource>{draw(pmid())}"
        if new:
            items.append(draw(GAPS) + draw(element("CommentsCorrections", inside, RefType=kind)))
        else:
            items.append(f"{draw(GAPS)}<{kind}>{inside}</{kind}>")
    name = "CommentsCorrectionsList" if new or draw(st.booleans()) else "CommentsCorrections"
    return f"<{name}>{''.join(items)}</{name}>"


@st.composite
def citation(draw: st.DrawFn) -> str:
    parts = [draw(pmid())]
    parts.append(f"<DateCompleted><Year>{draw(YEARS)}</Year></DateCompleted>")
    parts.append(draw(article()))
    parts.append("<MedlineJournalInfo><Country>Nowhere</Country></MedlineJournalInfo>")
    if draw(st.booleans()):
        parts.append(draw(comments()))
    if draw(st.booleans()):
        parts.append(draw(abstract("OtherAbstract")))
    parts.append(f"<KeywordList><Keyword>{draw(MIXED)}</Keyword></KeywordList>")
    content = "".join(draw(GAPS) + part for part in parts)
    return draw(element("MedlineCitation", content, Status=draw(st.sampled_from([None, "MEDLINE", "a > b"]))))


@st.composite
def ids(draw: st.DrawFn) -> str:
    kinds = st.sampled_from(["pubmed", "doi", "pmc", "pmcid", "pii", "mid"])
    items = []
    for kind in draw(st.lists(kinds, min_size=1, max_size=4)):
        value = draw(
            DOIS if kind == "doi" else st.sampled_from(["", "PMC12", "pmc-id: PMC345;", "S1-2(3)4", "77"])
        )
        items.append(draw(GAPS) + draw(element("ArticleId", value, IdType=kind)))
    return f"<ArticleIdList>{''.join(items)}{draw(GAPS)}</ArticleIdList>"


@st.composite
def references(draw: st.DrawFn, depth: int = 2) -> str:
    inside = "".join(
        f"<Reference><Citation>{draw(MIXED)}</Citation>{draw(ids())}</Reference>"
        for _ in range(draw(st.integers(0, 2)))
    )
    if depth and draw(st.booleans()):
        inside += draw(references(depth - 1))
        if draw(st.booleans()):
            inside += f"<Reference>{draw(ids())}</Reference>"
    return f"<ReferenceList><Title>R</Title>{inside}</ReferenceList>"


@st.composite
def article_record(draw: st.DrawFn) -> str:
    inside = draw(citation())
    if not draw(st.integers(0, 4)):
        return inside
    if draw(st.integers(0, 5)):
        history = (
            f"<History><PubMedPubDate PubStatus='entrez'><Year>{draw(YEARS)}</Year></PubMedPubDate></History>"
        )
        own = draw(ids()) if draw(st.integers(0, 4)) else draw(st.sampled_from(["", "<ArticleIdList/>"]))
        cited = "".join(draw(st.lists(references(), max_size=2)))
        pair = [own, cited] if draw(st.booleans()) else [cited, own]
        inside += draw(GAPS) + f"<PubmedData>{history}{draw(GAPS)}{''.join(pair)}</PubmedData>"
    return f"<PubmedArticle>{draw(GAPS)}{inside}{draw(GAPS)}</PubmedArticle>"


@settings(PROFILE, max_examples=300)
@given(article_record())
def test_any_record_is_read_as_its_tree_says(record: str) -> None:
    fast, plain = both(record)
    assert fast == plain


PIECE = re.compile(
    r"""(?s)<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|(?P<tag></?[A-Za-z](?:[^<>"']|"[^"]*"|'[^']*')*>)|/>"""
)


@settings(PROFILE, max_examples=150, phases=[Phase.generate])
@given(article_record(), st.data())
def test_blanks_at_the_end_of_tags_change_nothing(record: str, choice: st.DataObject) -> None:
    tags = sorted({found["tag"] for found in PIECE.finditer(record) if found["tag"]})
    plain_tags = [tag for tag in tags if re.fullmatch(r"</?\w+>", tag)]
    chosen = choice.draw(st.sampled_from(plain_tags))
    spaced = PIECE.sub(lambda found: chosen[:-1] + " >" if found[0] == chosen else found[0], record)
    fast, plain = both(spaced)
    assert fast == plain


# Single facts, on a small record


def small(
    *,
    pmid_: str = '<PMID Version="1">5</PMID>',
    date: str = "<PubDate><Year>2001</Year></PubDate>",
    title: str = "<ArticleTitle>A title.</ArticleTitle>",
    abstract_: str = "<Abstract><AbstractText>Some text.</AbstractText></Abstract>",
    languages: str = "<Language>eng</Language>",
    types: str = (
        "<PublicationTypeList><PublicationType UI='D1'>Review</PublicationType></PublicationTypeList>"
    ),
    after: str = "",
    data: str = "",
) -> str:
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE">{pmid_}<Article PubModel="Print"><Journal>'
        f"<JournalIssue>{date}</JournalIssue></Journal>{title}{abstract_}<AuthorList><Author>"
        f"<LastName>Doe</LastName></Author></AuthorList>{languages}{types}</Article>{after}"
        f"</MedlineCitation>{data}</PubmedArticle>"
    )


def read(record: str) -> Citation:
    return medline.parse(record.encode())


def test_a_small_record_is_read_whole() -> None:
    assert read(small()) == Citation(
        pmid=5,
        version=1,
        title="A title.",
        abstract=(Section(None, "Some text."),),
        year=2001,
        languages=("eng",),
        publication_types=("Review",),
        retracted=False,
        pmcid=None,
        doi=None,
    )


def test_a_record_of_nothing_but_a_pmid_is_read() -> None:
    assert read("<MedlineCitation><PMID>8</PMID></MedlineCitation>") == Citation(
        8, 1, "", (), None, (), (), False, None, None
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("<PMID>17</PMID>", (17, 1)),
        ("<PMID Version='2'>17</PMID>", (17, 2)),
        ("<PMID\n Version = '2' >17</PMID>", (17, 2)),
        ('<PMID Version="03"> 17\n</PMID>', (17, 3)),
        ("\n<PMID Version='1'>2147483647</PMID >", (2147483647, 1)),
    ],
)
def test_pmid_and_version_may_be_written_in_any_way(written: str, expected: tuple[int, int]) -> None:
    found = read(small(pmid_=written))
    assert (found.pmid, found.version) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("A<sup>2+</sup> ion", "A2+ ion"),
        ("<i>E. coli</i><b>!</b>", "E. coli!"),
        ("H<sub>2</sub>O &lt; <u><i>x</i></u>", "H2O < x"),
        ("&#945;-helix &amp; &quot;co&quot;", 'α-helix & "co"'),
        (f'<mml:math xmlns:mml="{MATHML}"><mml:mi>k</mml:mi></mml:math>-th', "k-th"),
        ("the <mml:math><mml:mi>k</mml:mi></mml:math>-th", "the k-th"),
        ("<i>a</i> /> b", "a /> b"),
        ("a /> b", "a /> b"),
        ("", ""),
    ],
)
def test_inline_markup_joins_as_written(written: str, expected: str) -> None:
    assert read(small(title=f"<ArticleTitle>{written}</ArticleTitle>")).title == expected
    text = f"<Abstract><AbstractText Label='AIM'>{written}</AbstractText></Abstract>"
    assert read(small(abstract_=text)).abstract == (Section("AIM", expected),)


@pytest.mark.parametrize(
    "title", ["", "<ArticleTitle/>", "<ArticleTitle />", "<ArticleTitle></ArticleTitle>"]
)
def test_a_record_without_a_title_has_an_empty_one_and_all_the_rest(title: str) -> None:
    found = read(small(title=title))
    assert found.title == ""
    assert found.abstract == (Section(None, "Some text."),)
    assert found.year == 2001
    assert found.languages == ("eng",)


@pytest.mark.parametrize(
    ("written", "label"),
    [
        ('Label="METHODS" NlmCategory="METHODS"', "METHODS"),
        ("NlmCategory='METHODS'\nLabel = 'METHODS'", "METHODS"),
        ("Label='IT IS \"NEW\"'", 'IT IS "NEW"'),
        ('Label="WHAT\'S > NEW"', "WHAT'S > NEW"),
        ('Label="A &amp; B &lt; &quot;C&quot; &#945;"', 'A & B < "C" α'),
        ('Label="UNLABELLED"', None),
        ('Label="Unlabelled "', None),
        ('Label=""', None),
        ('Label=" "', None),
        ('NlmCategory="METHODS"', None),
        ('NlmCategory="Label"', None),
        ("NlmCategory=\"its Label='x' is none\"", None),
    ],
)
@pytest.mark.parametrize("content", ["plain", "with <i>markup</i>"])
def test_labels_are_as_printed(written: str, label: str | None, content: str) -> None:
    text = f"<Abstract><AbstractText {written}>{content}</AbstractText></Abstract>"
    assert read(small(abstract_=text)).abstract == (Section(label, re.sub("<.*?>", "", content)),)


def test_an_abstract_is_its_segments_and_nothing_else() -> None:
    text = (
        "<Abstract>\n <AbstractText Label='A'>One.</AbstractText><AbstractText/>\n<AbstractText Label='B'/>"
        "<AbstractText></AbstractText><AbstractText>Two <i>x</i>.</AbstractText>"
        "<CopyrightInformation>© A &amp; B</CopyrightInformation></Abstract>"
    )
    other = (
        "<OtherAbstract Type='Publisher' Language='ger'><AbstractText>Anders.</AbstractText></OtherAbstract>"
    )
    expected = (
        Section("A", "One."),
        Section(None, ""),
        Section("B", ""),
        Section(None, ""),
        Section(None, "Two x."),
    )
    assert read(small(abstract_=text, after=other)).abstract == expected
    assert read(small(abstract_="", after=other)).abstract == ()
    assert read(small(abstract_="<Abstract/>", after=other)).abstract == ()


@pytest.mark.parametrize("copyright_", ["© Us", "© Us &amp; you", "<i>©</i> us", ""])
def test_the_copyright_line_is_no_text(copyright_: str) -> None:
    text = (
        "<Abstract><AbstractText>Some text.</AbstractText>"
        f"<CopyrightInformation>{copyright_}</CopyrightInformation></Abstract>"
    )
    assert read(small(abstract_=text)).abstract == (Section(None, "Some text."),)


@pytest.mark.parametrize(
    ("written", "year"),
    [
        ("<PubDate><Year>1999</Year><Season>Fall</Season></PubDate>", 1999),
        ("<PubDate>\n<MedlineDate>1998 Dec-1999 Jan</MedlineDate></PubDate>", 1998),
        ("<PubDate><MedlineDate>Winter 1975</MedlineDate></PubDate>", 1975),
        ("<PubDate><MedlineDate>long ago</MedlineDate></PubDate>", None),
        ("<PubDate/>", None),
        ("", None),
    ],
)
def test_the_year_is_that_of_the_issue(written: str, year: int | None) -> None:
    later = "<DateRevised><Year>2024</Year></DateRevised>"
    data = "<PubmedData><History><PubMedPubDate><Year>2023</Year></PubMedPubDate></History></PubmedData>"
    assert read(small(date=written, after=later, data=data)).year == year


def test_languages_come_in_their_order() -> None:
    codes = "<Language>fre</Language>\n<Language>eng</Language><Language> ger </Language>"
    assert read(small(languages=codes)).languages == ("fre", "eng", "ger")
    assert read(small(languages="")).languages == ()
    assert read(small(languages="")).abstract == (Section(None, "Some text."),)


def test_entities_in_publication_types_are_resolved() -> None:
    kind = "<PublicationType>Support, Gov&apos;t &amp; Co</PublicationType>"
    types = f"<PublicationTypeList>{kind}</PublicationTypeList>"
    assert read(small(types=types)).publication_types == ("Support, Gov't & Co",)


@pytest.mark.parametrize(
    ("tags", "field", "expected"),
    [
        (("<Language >eng</Language>",), "languages", ("eng",)),
        (("<Language>eng</Language >",), "languages", ("eng",)),
        (("<PubDate ><Year>2001</Year></PubDate>",), "year", 2001),
        (("<PubDate><Year >2001</Year></PubDate>",), "year", 2001),
        (("<ArticleTitle >A title.</ArticleTitle >",), "title", "A title."),
        (("<AbstractText >Some text.</AbstractText >",), "abstract", (Section(None, "Some text."),)),
        (("<PublicationType>Review</PublicationType >",), "publication_types", ("Review",)),
        (("<ArticleIdList >", "<ArticleId IdType='doi'>10.1/x</ArticleId>"), "doi", "10.1/x"),
        (("<ArticleIdList>", "<ArticleId IdType='doi'>10.1/x</ArticleId >"), "doi", "10.1/x"),
    ],
)
def test_blanks_inside_tags_change_nothing(tags: Sequence[str], field: str, expected: object) -> None:
    data = (
        "<PubmedData><ArticleIdList><ArticleId IdType='doi'>10.1/x</ArticleId></ArticleIdList></PubmedData>"
    )
    record = small(data=data)
    for tag in tags:
        tidy = re.sub(r"\s+>", ">", tag)
        tidy = tidy.replace("<PublicationType>", "<PublicationType UI='D1'>")
        assert tidy in record
        record = record.replace(tidy, tag)
    assert getattr(read(record), field) == expected


@pytest.mark.parametrize(
    ("types", "after", "retracted"),
    [
        ("Retracted Publication", "", True),
        ("Retraction of Publication", "", False),
        ("Review", '<CommentsCorrections RefType="RetractionIn"><PMID>9</PMID></CommentsCorrections>', True),
        ("Review", "<CommentsCorrections RefType = 'RetractionIn'/>", True),
        ("Review", "<RetractionIn><RefSource>X</RefSource></RetractionIn>", True),
        ("Review", '<CommentsCorrections RefType="RetractionOf"><PMID>9</PMID></CommentsCorrections>', False),
        ("Review", "<RetractionOf><RefSource>X</RefSource></RetractionOf>", False),
        ("Review", '<CommentsCorrections RefType="RetractedandRepublishedIn"/>', False),
        ("Review", "<RefSource>RefType='RetractionIn'</RefSource>", False),
        (
            "Review",
            "<CommentsCorrections RefType='Cites'><Note>RetractionIn</Note></CommentsCorrections>",
            False,
        ),
    ],
)
def test_a_retracted_article_is_told_from_the_notice_of_it(types: str, after: str, retracted: bool) -> None:
    listed = (
        f"<PublicationTypeList><PublicationType UI='D016441'>{types}</PublicationType></PublicationTypeList>"
    )
    around = f"<CommentsCorrectionsList>{after}</CommentsCorrectionsList>"
    assert read(small(types=listed, after=around)).retracted is retracted


OWN = (
    "<ArticleIdList><ArticleId IdType='pubmed'>5</ArticleId><ArticleId IdType='doi'>10.1/own</ArticleId>"
    "<ArticleId IdType='pmc'>PMC1</ArticleId></ArticleIdList>"
)
CITED = (
    "<Reference><ArticleIdList><ArticleId IdType='doi'>10.1/cited</ArticleId>"
    "<ArticleId IdType='pmc'>PMC9</ArticleId></ArticleIdList></Reference>"
)
NESTED = f"<ReferenceList>{CITED}<ReferenceList>{CITED}</ReferenceList>{CITED}</ReferenceList>"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (OWN, ("10.1/own", "PMC1")),
        (OWN + NESTED, ("10.1/own", "PMC1")),
        (NESTED + OWN, ("10.1/own", "PMC1")),
        (NESTED + NESTED + OWN, ("10.1/own", "PMC1")),
        ("<ReferenceList/>" + OWN, ("10.1/own", "PMC1")),
        (NESTED, (None, None)),
        ("<ArticleIdList/>" + NESTED, (None, None)),
        (NESTED + "<ArticleIdList/>", (None, None)),
        ("", (None, None)),
        (OWN.replace("PMC1", "PMC1 "), ("10.1/own", "PMC1")),
        (OWN.replace("10.1/own", " 10.1/o&lt;w&gt;n\n"), ("10.1/o<w>n", "PMC1")),
        (OWN.replace("10.1/own", ""), (None, "PMC1")),
        (OWN.replace("'pmc'", "'pmcid'").replace("PMC1", "pmc-id: PMC1; x"), ("10.1/own", "PMC1")),
    ],
)
def test_ids_are_the_records_own_and_never_those_of_a_cited_paper(
    data: str, expected: tuple[str | None, str | None]
) -> None:
    found = read(small(data=f"<PubmedData>{data}</PubmedData>"))
    assert (found.doi, found.pmcid) == expected


@pytest.mark.parametrize(
    ("locations", "doi"),
    [
        ("<ELocationID EIdType='doi' ValidYN='Y'>10.1/a</ELocationID>", "10.1/a"),
        ('<ELocationID ValidYN="Y" EIdType="doi"> 10.1/a </ELocationID>', "10.1/a"),
        ("<ELocationID EIdType='doi'>10.1/a&lt;b</ELocationID>", "10.1/a<b"),
        ("<ELocationID EIdType='doi' ValidYN='N'>10.1/a</ELocationID>", None),
        ("<ELocationID ValidYN = 'N' EIdType = 'doi'>10.1/a</ELocationID>", None),
        ("<ELocationID EIdType='pii'>10.1/a</ELocationID>", None),
        (
            "<ELocationID EIdType='doi' ValidYN='N'>10.1/a</ELocationID>"
            "<ELocationID EIdType='pii'>b</ELocationID><ELocationID EIdType='doi'>10.1/c</ELocationID>",
            "10.1/c",
        ),
    ],
)
def test_a_valid_location_stands_in_for_a_missing_doi(locations: str, doi: str | None) -> None:
    title = "<ArticleTitle>A title.</ArticleTitle>" + locations
    assert read(small(title=title)).doi == doi
    assert read(small(title=title, data=f"<PubmedData>{OWN}</PubmedData>")).doi == "10.1/own"


def test_the_pmid_is_never_that_of_another_article() -> None:
    other = (
        "<CommentsCorrectionsList><CommentsCorrections RefType='Cites'><PMID Version='4'>99</PMID>"
        "</CommentsCorrections></CommentsCorrectionsList>"
    )
    assert (read(small(after=other)).pmid, read(small(after=other)).version) == (5, 1)


def test_line_ends_of_any_kind_are_white_space() -> None:
    found = read(
        small(title="<ArticleTitle\r\n>One\r\ntwo\rthree</ArticleTitle>").replace(
            "><Article", ">\r\n<Article"
        )
    )
    assert found.title.split() == ["One", "two", "three"]


# Errors


def refusal(record: str | bytes) -> BadRecord:
    with pytest.raises(BadRecord) as caught:
        medline.parse(record.encode() if isinstance(record, str) else record)
    return caught.value


OTHER_PMID = "<CommentsCorrections RefType='Cites'><PMID Version='1'>99</PMID></CommentsCorrections>"
BROKEN: dict[str, tuple[str | bytes, str]] = {
    "no PMID": (small(pmid_=""), "no-pmid"),
    "no PMID but another article's": (small(pmid_="", after=OTHER_PMID), "no-pmid"),
    "no citation": ("<PubmedArticle><PubmedData/></PubmedArticle>", "no-pmid"),
    "an empty record": ("<PubmedArticle/>", "no-pmid"),
    "a PMID outside the citation": (
        "<PubmedArticle><PMID>5</PMID><MedlineCitation/></PubmedArticle>",
        "no-pmid",
    ),
    "a PMID of letters": (small(pmid_='<PMID Version="1">5-a</PMID>'), "bad-pmid"),
    "an empty PMID": (small(pmid_='<PMID Version="1"> </PMID>'), "bad-pmid"),
    "PMID zero": (small(pmid_='<PMID Version="1">0</PMID>'), "bad-pmid"),
    "a negative PMID": (small(pmid_='<PMID Version="1">-5</PMID>'), "bad-pmid"),
    "a PMID beyond 31 bits": (small(pmid_='<PMID Version="1">2147483648</PMID>'), "bad-pmid"),
    "a PMID of thousands of digits": (small(pmid_=f"<PMID>{'9' * 9000}</PMID>"), "bad-pmid"),
    "a PMID in foreign digits": (small(pmid_='<PMID Version="1">٤٢</PMID>'), "bad-pmid"),
    "a version too high": (small(pmid_='<PMID Version="10000">5</PMID>'), "bad-version"),
    "a version in foreign digits": (small(pmid_='<PMID Version="٤">5</PMID>'), "bad-version"),
    "a version of letters": (small(pmid_='<PMID Version="one">5</PMID>'), "bad-version"),
    "an empty version": (small(pmid_='<PMID Version="">5</PMID>'), "bad-version"),
    "a broken byte": (small().encode().replace(b"title.", b"title\xff"), "invalid-utf-8"),
    "a broken byte in what is not read": (small().encode().replace(b"Doe", b"D\xe9"), "invalid-utf-8"),
    "an open title": (small(title="<ArticleTitle>A title."), "malformed-xml"),
    "an open abstract": (
        small(abstract_="<Abstract><AbstractText>Some text.</AbstractText>"),
        "malformed-xml",
    ),
    "an open segment": (small(abstract_="<Abstract><AbstractText>Some text.</Abstract>"), "malformed-xml"),
    "an open inline element": (small(title="<ArticleTitle>A <i>title.</ArticleTitle>"), "malformed-xml"),
    "crossed inline elements": (
        small(title="<ArticleTitle><i>A <b>title</i>.</b></ArticleTitle>"),
        "malformed-xml",
    ),
    "crossed elements in a segment": (
        small(abstract_="<Abstract><AbstractText><i>A <b>x</i>.</b></AbstractText></Abstract>"),
        "malformed-xml",
    ),
    "an open element that is not read": (small().replace("</LastName>", ""), "malformed-xml"),
    "an end tag too many": (small().replace("</LastName>", "</LastName></Initials>"), "malformed-xml"),
    "an unknown entity in the title": (
        small(title="<ArticleTitle>&alpha;-helix</ArticleTitle>"),
        "malformed-xml",
    ),
    "an unknown entity in a segment": (
        small(abstract_="<Abstract><AbstractText>5 &micro;g</AbstractText></Abstract>"),
        "malformed-xml",
    ),
    "an unknown entity in a label": (
        small(abstract_="<Abstract><AbstractText Label='&alpha;'>x</AbstractText></Abstract>"),
        "malformed-xml",
    ),
    "an unknown entity in an id": (
        small(data=f"<PubmedData>{OWN.replace('own', '&alpha;')}</PubmedData>"),
        "malformed-xml",
    ),
    "a bare ampersand in the title": (small(title="<ArticleTitle>AT&T</ArticleTitle>"), "malformed-xml"),
    "a bare ampersand in a segment": (
        small(abstract_="<Abstract><AbstractText>Q & A</AbstractText></Abstract>"),
        "malformed-xml",
    ),
    "a forbidden character by number": (
        small(title="<ArticleTitle>a&#1;b</ArticleTitle>"),
        "malformed-xml",
    ),
    "a forbidden character in the title": (
        small(title="<ArticleTitle>a\x01b</ArticleTitle>"),
        "malformed-xml",
    ),
    "a prefix that is declared nowhere": (
        small(title="<ArticleTitle><foo:bar>x</foo:bar></ArticleTitle>"),
        "malformed-xml",
    ),
    "a formula that is not closed": (
        small(title="<ArticleTitle><mml:math><mml:mi>x</mml:math></ArticleTitle>"),
        "malformed-xml",
    ),
    "a tag without its bracket": (small(title="<ArticleTitle>x<i/</ArticleTitle>"), "malformed-xml"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_record_is_refused_by_name(what: str) -> None:
    record, reason = BROKEN[what]
    error = refusal(record)
    assert error.reason == reason
    assert error.detail


def test_a_broken_record_is_refused_when_the_file_has_cut_it_too() -> None:
    broken = str(BROKEN["an open title"][0])
    file = f"<PubmedArticleSet>{small()}{broken}{small()}</PubmedArticleSet>".encode()
    cut = [record for _, record in records(io.BytesIO(file))]
    assert len(cut) == 3
    assert medline.parse(cut[0]) == medline.parse(cut[2])
    assert refusal(cut[1]).reason == "malformed-xml"


def without_false_ends(record: str) -> str:
    """The record without comments and sections, and with ``/>`` only where it ends a tag."""
    return PIECE.sub(
        lambda found: (
            found["tag"][:-2].replace("/>", "/&gt;") + found["tag"][-2:]
            if found["tag"]
            else "/&gt;"
            if found[0] == "/>"
            else ""
        ),
        record,
    )


@settings(PROFILE, max_examples=150)
@given(article_record(), st.data())
def test_an_end_tag_left_out_anywhere_is_found(record: str, choice: st.DataObject) -> None:
    whole = without_false_ends(record)
    ends = [found.span() for found in PIECE.finditer(whole) if (found["tag"] or "").startswith("</")]
    start, end = choice.draw(st.sampled_from(ends))
    broken = whole[:start] + whole[end:]
    with pytest.raises(etree.XMLSyntaxError):
        etree.fromstring(f'<x xmlns:mml="{MATHML}">{broken}</x>')
    assert refusal(broken).reason in ("malformed-xml", "bad-pmid")


@pytest.mark.parametrize(
    "end", ["</Language>", "</PublicationType>", "</LastName>", "</Year>", "</AbstractText>"]
)
def test_an_end_tag_left_out_is_found_beside_text_that_looks_like_one(end: str) -> None:
    record = small(title="<ArticleTitle>a /> b</ArticleTitle>")
    assert end in record
    assert refusal(record.replace(end, "")).reason == "malformed-xml"


# PMIDs of deletions and books


def test_a_deletion_names_all_its_pmids() -> None:
    record = (
        b"<DeleteCitation>\n<PMID Version='1'>7</PMID><!-- x -->"
        b'<PMID Version="2"> 8 </PMID><PMID>9</PMID>\n</DeleteCitation>'
    )
    assert medline.pmids(record) == [(7, 1), (8, 2), (9, 1)]
    assert medline.pmids(b"<DeleteDocument><PMID Version='1'>7</PMID></DeleteDocument>") == [(7, 1)]
    assert medline.pmids(b"<DeleteCitation/>") == []


BOOK = "<BookDocument><PMID Version='3'>31</PMID><Ref><PMID>99</PMID></Ref>{}</BookDocument>"


def test_a_book_gives_its_own_pmid_only() -> None:
    chapter = BOOK.format("<ReferenceList><PMID>98</PMID></ReferenceList>")
    assert medline.pmids(chapter.encode()) == [(31, 3)]
    data = "<PubmedBookData><PMID>97</PMID></PubmedBookData>"
    assert medline.pmids(f"<PubmedBookArticle>{chapter}{data}</PubmedBookArticle>".encode()) == [(31, 3)]
    assert medline.pmids(f"<PubmedBookArticle>{data}</PubmedBookArticle>".encode()) == []


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"<DeleteCitation><PMID>7</PMID><PMID>x</PMID></DeleteCitation>", "bad-pmid"),
        (b"<DeleteCitation><PMID/></DeleteCitation>", "bad-pmid"),
        (b"<DeleteCitation><PMID Version='x'>7</PMID></DeleteCitation>", "bad-version"),
        (b"<DeleteCitation><PMID Version='10000'>7</PMID></DeleteCitation>", "bad-version"),
        (b"<DeleteCitation><PMID>7</DeleteCitation>", "malformed-xml"),
        (b"<DeleteCitation>&x;<PMID>7</PMID></DeleteCitation>", "malformed-xml"),
        (b"<DeleteCitation>\xff<PMID>7</PMID></DeleteCitation>", "invalid-utf-8"),
    ],
)
def test_a_broken_deletion_is_refused_by_name(record: bytes, reason: str) -> None:
    with pytest.raises(BadRecord) as caught:
        medline.pmids(record)
    assert caught.value.reason == reason


def test_an_external_entity_is_never_fetched() -> None:
    record = '<!DOCTYPE PubmedArticle [<!ENTITY e SYSTEM "file:///etc/hostname">]>' + small(
        title="<ArticleTitle>&e;</ArticleTitle>"
    )
    with pytest.raises(BadRecord):
        medline.parse(record.encode())
