"""Hypothesis strategies of PubMed records, and an independent parser with lxml to compare with."""

from __future__ import annotations

import datetime
import io
import re

from hypothesis import strategies as st
from lxml import etree

from bioshards.corpus.document import ArticleColumns
from bioshards.corpus.mathml import formula_to_text
from bioshards.corpus.pubmed import citation as medline
from bioshards.corpus.pubmed.citation import AbstractSection, Citation, OtherAbstract
from bioshards.corpus.pubmed.documents import iter_records
from bioshards.corpus.shards.document_schema import COLUMN_TYPES
from tests.support.corpus.pubmed_oracle import find_doi, find_ids, first_year, is_retracted, list_columns

MATHML = "http://www.w3.org/1998/Math/MathML"


# The independent parser


def text_of(element: etree._Element | None) -> str:
    """Return the text of an element, its formulas as those of articles (tests/corpus/test_mathml.py)."""
    if element is None:
        return ""
    if element.tag == f"{{{MATHML}}}math":
        return formula_to_text(element)
    return (element.text or "") + "".join(text_of(child) + (child.tail or "") for child in element)


def one_line(text: str | None) -> str | None:
    return " ".join((text or "").split()) or None


def list_sections(parts: list[etree._Element]) -> tuple[AbstractSection, ...]:
    labels = [(part.get("Label") or "").strip() for part in parts]
    return tuple(
        AbstractSection(None if label.upper() in ("", "UNLABELLED") else label, text_of(part))
        for label, part in zip(labels, parts, strict=True)
    )


def parse_with_lxml(record: etree._Element) -> Citation:
    citation = record if record.tag == "MedlineCitation" else record.find("MedlineCitation")
    assert citation is not None
    pmid = citation.find("PMID")
    assert pmid is not None
    ids = find_ids(record)
    types = tuple(text_of(item) for item in citation.findall("Article/PublicationTypeList/PublicationType"))
    pmcid = re.search(r"PMC\d+", ids.get("pmc") or ids.get("pmcid") or "")
    sections = list_sections(citation.findall("Article/Abstract/AbstractText"))
    return Citation(
        pmid=int(text_of(pmid)),
        version=int(pmid.get("Version", "1")),
        title=text_of(citation.find("Article/ArticleTitle")),
        abstract=sections,
        year=first_year(citation),
        languages=tuple(text_of(item).strip() for item in citation.findall("Article/Language")),
        publication_types=types,
        retracted=is_retracted(citation),
        pmcid=pmcid[0] if pmcid else None,
        doi=find_doi(record, citation),
        other_abstracts=()
        if sections
        else tuple(
            OtherAbstract(
                other.get("Type", ""),
                other.get("Language", "eng"),
                list_sections(other.findall("AbstractText")),
            )
            for other in citation.findall("OtherAbstract")
        ),
        journal=one_line(citation.findtext("Article/Journal/Title")),
        abstract_categories=tuple(
            item.get("NlmCategory") or None for item in citation.findall("Article/Abstract/AbstractText")
        ),
        columns=ArticleColumns(**list_columns(record, citation, lambda each: one_line(text_of(each)))),
    )


def parse_both_ways(inner: str) -> tuple[Citation, Citation]:
    """Parse a record with bioshards and with the independent parser."""
    data = f'<PubmedArticleSet xmlns:mml="{MATHML}">\n{inner}\n</PubmedArticleSet>'.encode()
    [(_, record_bytes)] = iter_records(io.BytesIO(data))
    parser = etree.XMLParser(remove_comments=True, remove_pis=True, resolve_entities=False)
    [record] = etree.fromstring(data, parser)
    return medline.parse_citation(record_bytes, columns=COLUMN_TYPES), parse_with_lxml(record)


# Strategies of records


def escape_xml(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


LEGAL = st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff\u00a0")
TEXT = st.text(LEGAL | st.sampled_from(" \t\n<>&'\"=/"), max_size=10) | st.sampled_from(
    ["p < 0.05", "AT&T", "a /> b", "<Abstract>", "</ArticleTitle>", "Label='x'", "10 µg", "<PMID>1</PMID>"]
)
RUNS = st.one_of(
    TEXT.map(escape_xml).map(lambda text: text.replace("]]>", "]]&gt;")),
    TEXT.map(
        lambda text: escape_xml(text).replace(">", "&gt;").replace("'", "&apos;").replace('"', "&quot;")
    ),
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
PLAIN = TEXT.map(lambda text: escape_xml(text).replace(">", ""))
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
    value = escape_xml(value).replace(quote, "&quot;" if quote == '"' else "&apos;")
    if draw(st.booleans()):
        value = value.replace(">", "&gt;")
    before, left, right = draw(
        st.sampled_from([(" ", "", ""), ("\n ", " ", " "), ("  ", "\t", ""), (" ", "", " ")])
    )
    return f"{before}{name}{left}={right}{quote}{value}{quote}"


@st.composite
def element(draw: st.DrawFn, /, name: str, content: str, **attributes: str | None) -> str:
    """Draw an element with attributes in any order and quoting; an empty one may be self-closing."""
    present_attributes = [(key, value) for key, value in attributes.items() if value is not None]
    start = name + "".join(
        draw(attribute(key, value)) for key, value in draw(st.permutations(present_attributes))
    )
    if not content and draw(st.booleans()):
        return f"<{start}{draw(st.sampled_from(['', ' ']))}/>"
    blank = draw(st.sampled_from(["", " ", "\n"])) if present_attributes else ""
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
                f"<Year>{year}</Year><Month>11</Month>",
                f"<MedlineDate>{year} Nov-Dec</MedlineDate>",
                f"<MedlineDate>{year} Dec 15-31</MedlineDate>",
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
    if draw(st.booleans()):
        title += f"<ISOAbbreviation>{draw(PLAIN)}</ISOAbbreviation>"
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
    abstract_type = draw(st.sampled_from(["Publisher", "AIDS"])) if name == "OtherAbstract" else None
    language = draw(st.none() | st.just("ger")) if name == "OtherAbstract" else None
    return draw(element(name, "".join(parts) + draw(GAPS), Type=abstract_type, Language=language))


DOIS = st.sampled_from(["10.1000/a.1", "10.1000/B&lt;2&gt;", " 10.1000/c;3-4\n", "10.1000/d&amp;e"])


@st.composite
def location(draw: st.DrawFn) -> str:
    id_type = draw(st.sampled_from(["doi", "pii"]))
    return draw(
        element("ELocationID", draw(DOIS), EIdType=id_type, ValidYN=draw(st.sampled_from([None, "Y", "N"])))
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
    identifier = draw(
        st.sampled_from(["", "<Identifier Source='ORCID'>http://orcid.org/000000021825009X</Identifier>"])
    )
    affiliation = f"<AffiliationInfo><Affiliation>Of {draw(PLAIN)}</Affiliation></AffiliationInfo>"
    person = f"<LastName>I{draw(PLAIN)}</LastName><ForeName>E</ForeName>{identifier}{affiliation}"
    group = f"<CollectiveName>{draw(MIXED)}</CollectiveName>"
    parts.append(f"<AuthorList><Author>{group}</Author><Author>{person}</Author></AuthorList>")
    parts += [
        draw(element("Language", code))
        for code in draw(st.lists(st.sampled_from(["eng", "fre", " ger "]), max_size=3))
    ]
    if draw(st.booleans()):
        parts.append(
            f"<GrantList><Grant><GrantID>{draw(PLAIN)}</GrantID><Agency>A</Agency></Grant></GrantList>"
        )
    if draw(st.integers(0, 3)):
        parts.append(draw(publication_types()))
    if draw(st.booleans()):
        parts.append(draw(element("VernacularTitle", draw(MIXED))))
    parts.append(f"<ArticleDate DateType='Electronic'><Year>{draw(YEARS)}</Year></ArticleDate>")
    return draw(element("Article", "".join(draw(GAPS) + part for part in parts), PubModel="Print"))


@st.composite
def comments(draw: st.DrawFn) -> str:
    ref_types = st.sampled_from(
        ["Cites", "RetractionOf", "RetractionIn", "ErratumIn", "RetractedandRepublishedIn"]
    )
    is_new_form = draw(st.booleans())
    items = []
    for ref_type in draw(st.lists(ref_types, min_size=1, max_size=2)):
        inside = f"<RefSource>{draw(PLAIN)}</RefSource>{draw(pmid())}"
        if is_new_form:
            items.append(draw(GAPS) + draw(element("CommentsCorrections", inside, RefType=ref_type)))
        else:
            items.append(f"{draw(GAPS)}<{ref_type}>{inside}</{ref_type}>")
    name = "CommentsCorrectionsList" if is_new_form or draw(st.booleans()) else "CommentsCorrections"
    return f"<{name}>{''.join(items)}</{name}>"


YES_NO = st.none() | st.sampled_from("YN")


@st.composite
def mesh(draw: st.DrawFn) -> str:
    headings = []
    for _ in range(draw(st.integers(1, 3))):
        names = ["DescriptorName", *["QualifierName"] * draw(st.integers(0, 2))]
        elements = []
        for name in names:
            ui = draw(st.none() | st.sampled_from(["D000818", "Q000502"]))
            elements.append(draw(element(name, draw(PLAIN) + "x", UI=ui, MajorTopicYN=draw(YES_NO))))
        headings.append(f"<MeshHeading>{draw(GAPS).join(['', *elements, ''])}</MeshHeading>")
    return f"<MeshHeadingList>{draw(GAPS).join(['', *headings, ''])}</MeshHeadingList>"


@st.composite
def keyword_list(draw: st.DrawFn) -> str:
    keywords = [
        draw(element("Keyword", draw(MIXED), MajorTopicYN=draw(YES_NO)))
        for _ in range(draw(st.integers(1, 3)))
    ]
    return draw(element("KeywordList", "".join(keywords), Owner="NOTNLM"))


DATES = st.dates(datetime.date(1900, 1, 1)).map(
    lambda date: f"<Year>{date.year}</Year>\n<Month>{date.month:02}</Month><Day>{date.day}</Day>"
)


@st.composite
def citation_element(draw: st.DrawFn) -> str:
    parts = [draw(pmid())]
    parts.append(f"<DateCompleted><Year>{draw(YEARS)}</Year></DateCompleted>")
    if draw(st.booleans()):
        parts.append(f"<DateRevised>{draw(DATES)}</DateRevised>")
    parts.append(draw(article()))
    nlm_id = draw(st.sampled_from(["", "<NlmUniqueID>101</NlmUniqueID>"]))
    parts.append(f"<MedlineJournalInfo><Country>Nowhere</Country>{nlm_id}</MedlineJournalInfo>")
    if draw(st.booleans()):
        substance = f"<NameOfSubstance UI='D1'>{draw(PLAIN)}</NameOfSubstance>"
        chemical = f"<Chemical><RegistryNumber>0</RegistryNumber>{substance}</Chemical>"
        parts.append(f"<ChemicalList>{chemical}</ChemicalList>")
    if draw(st.booleans()):
        parts.append(draw(comments()))
    if draw(st.booleans()):
        parts.append(draw(mesh()))
    if draw(st.booleans()):
        parts.append(draw(abstract("OtherAbstract")))
    parts += draw(st.lists(keyword_list(), max_size=2))
    content = "".join(draw(GAPS) + part for part in parts)
    return draw(element("MedlineCitation", content, Status=draw(st.sampled_from([None, "MEDLINE", "a > b"]))))


@st.composite
def ids(draw: st.DrawFn) -> str:
    id_types = st.sampled_from(["pubmed", "doi", "pmc", "pmcid", "pii", "mid"])
    items = []
    for id_type in draw(st.lists(id_types, min_size=1, max_size=4)):
        value = draw(
            DOIS
            if id_type == "doi"
            else st.sampled_from(
                ["77", "8"] if id_type == "pubmed" else ["", "PMC12", "pmc-id: PMC345;", "S1-2(3)4", "77"]
            )
        )
        items.append(draw(GAPS) + draw(element("ArticleId", value, IdType=id_type)))
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
    inside = draw(citation_element())
    if not draw(st.integers(0, 4)):
        return inside
    if draw(st.integers(0, 5)):
        statuses = draw(st.lists(st.sampled_from(["entrez", "pubmed"]), unique=True))
        dates = [f"<PubMedPubDate PubStatus='{status}'>{draw(DATES)}</PubMedPubDate>" for status in statuses]
        history = f"<History>{draw(GAPS).join(dates)}</History>"
        own = draw(ids()) if draw(st.integers(0, 4)) else draw(st.sampled_from(["", "<ArticleIdList/>"]))
        cited = "".join(draw(st.lists(references(), max_size=2)))
        pair = [own, cited] if draw(st.booleans()) else [cited, own]
        inside += draw(GAPS) + f"<PubmedData>{history}{draw(GAPS)}{''.join(pair)}</PubmedData>"
    return f"<PubmedArticle>{draw(GAPS)}{inside}{draw(GAPS)}</PubmedArticle>"


# A small record


def small_record_xml(
    *,
    pmid_xml: str = '<PMID Version="1">5</PMID>',
    date: str = "<PubDate><Year>2001</Year></PubDate>",
    title: str = "<ArticleTitle>A title.</ArticleTitle>",
    abstract_xml: str = "<Abstract><AbstractText>Some text.</AbstractText></Abstract>",
    languages: str = "<Language>eng</Language>",
    types: str = (
        "<PublicationTypeList><PublicationType UI='D1'>Review</PublicationType></PublicationTypeList>"
    ),
    extra_xml: str = "",
    pubmed_data_xml: str = "",
) -> str:
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE">{pmid_xml}<Article PubModel="Print"><Journal>'
        f"<JournalIssue>{date}</JournalIssue></Journal>{title}{abstract_xml}<AuthorList><Author>"
        f"<LastName>Doe</LastName></Author></AuthorList>{languages}{types}</Article>{extra_xml}"
        f"</MedlineCitation>{pubmed_data_xml}</PubmedArticle>"
    )


def parse_record(record: str) -> Citation:
    return medline.parse_citation(record.encode())


MARKUP_PIECE = re.compile(
    r"""(?s)<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|(?P<tag></?[A-Za-z](?:[^<>"']|"[^"]*"|'[^']*')*>)|/>"""
)

OWN_IDS_XML = (
    "<ArticleIdList><ArticleId IdType='pubmed'>5</ArticleId><ArticleId IdType='doi'>10.5555/own</ArticleId>"
    "<ArticleId IdType='pmc'>PMC1</ArticleId></ArticleIdList>"
)
