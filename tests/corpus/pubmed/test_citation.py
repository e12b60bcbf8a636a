"""Parsing of citations: the fast parser and a plain parser of the whole tree give the same result."""

from __future__ import annotations

import re

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bioshards.corpus.document import ArticleColumns, Author, MeshHeading, MeshQualifier
from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.pubmed.citation import (
    AbstractSection,
    Citation,
    OtherAbstract,
    parse_book,
    parse_citation,
)
from tests.support.corpus.citation_strategies import (
    MARKUP_PIECE,
    MATHML,
    OWN_IDS_XML,
    article_record,
    parse_both_ways,
    parse_record,
    small_record_xml,
)
from tests.support.hypothesis_profiles import examples


@settings(max_examples=examples(300))
@given(article_record())
def test_generated_record_equals_the_plain_parser(record: str) -> None:
    fast, plain = parse_both_ways(record)
    assert fast == plain


@settings(max_examples=examples(150), phases=[Phase.generate])
@given(article_record(), st.data())
def test_blanks_at_the_end_of_generated_tags_are_ignored(record: str, data: st.DataObject) -> None:
    tags = sorted({match["tag"] for match in MARKUP_PIECE.finditer(record) if match["tag"]})
    plain_tags = [tag for tag in tags if re.fullmatch(r"</?\w+>", tag)]
    chosen = data.draw(st.sampled_from(plain_tags))
    spaced = MARKUP_PIECE.sub(lambda match: chosen[:-1] + " >" if match[0] == chosen else match[0], record)
    fast, plain = parse_both_ways(spaced)
    assert fast == plain


def test_issns_are_parsed_if_asked_for() -> None:
    journal = "<Journal><ISSN IssnType='Print'>9990-0033</ISSN><JournalIssue/></Journal>"
    record = small_record_xml(
        date=journal,
        extra_xml="<MedlineJournalInfo><ISSNLinking>9990-0044</ISSNLinking></MedlineJournalInfo>",
    )
    assert parse_record(record).issns == ()
    assert parse_citation(record.encode(), columns={"issns"}).issns == ("9990-0033", "9990-0044")


def test_mesh_heading_with_an_entity_in_one_name_has_all_names() -> None:
    heading = (
        '<MeshHeading><DescriptorName UI="D5" MajorTopicYN="N">Gulls</DescriptorName>'
        '<QualifierName UI="Q6" MajorTopicYN="Y">growth</QualifierName>'
        '<QualifierName UI="Q7" MajorTopicYN="N">nests &amp; eggs</QualifierName></MeshHeading>'
    )
    record = small_record_xml(extra_xml=f"<MeshHeadingList>{heading}</MeshHeadingList>")
    qualifiers = (MeshQualifier("growth", True), MeshQualifier("nests & eggs", False))
    assert parse_citation(record.encode(), columns={"mesh"}).columns.mesh == (
        MeshHeading("Gulls", "D5", True, qualifiers),
    )


@pytest.mark.parametrize("inside", ["", "<QualifierName/>", "<Note>n</Note>"])
def test_mesh_heading_without_a_descriptor_is_empty(inside: str) -> None:
    extra_xml = f"<MeshHeadingList><MeshHeading>{inside}</MeshHeading></MeshHeadingList>"
    record = small_record_xml(extra_xml=extra_xml).encode()
    assert parse_citation(record, columns={"mesh"}).columns.mesh == (MeshHeading("", None, False, ()),)


def test_title_before_the_journal() -> None:
    date = (
        "<Journal><JournalIssue><PubDate><Year>2001</Year></PubDate></JournalIssue>"
        "<ISOAbbreviation>J Gulls</ISOAbbreviation></Journal>"
    )
    title = "<ArticleTitle>First.</ArticleTitle>"
    record = "<MedlineCitation><PMID>5</PMID><Article>{}<Language>eng</Language></Article></MedlineCitation>"
    first, last = (
        parse_citation(record.format(xml).encode(), columns={"journal_abbreviation"})
        for xml in (title + date, date + title)
    )
    assert first == last
    assert first.columns.journal_abbreviation == "J Gulls"


def test_record_with_only_a_pmid() -> None:
    assert parse_record("<MedlineCitation><PMID>8</PMID></MedlineCitation>") == Citation(
        8, 1, "", (), None, (), (), False, None, None
    )


@pytest.mark.parametrize(
    ("pmid_xml", "expected"),
    [
        ("<PMID>17</PMID>", (17, 1)),
        ("<PMID Version='2'>17</PMID>", (17, 2)),
        ("<PMID\n Version = '2' >17</PMID>", (17, 2)),
        ('<PMID Version="03"> 17\n</PMID>', (17, 3)),
        ("<PMID Version='9999'>17</PMID>", (17, 9999)),
        ("\n<PMID Version='1'>2147483647</PMID >", (2147483647, 1)),
        (f"<PMID{' ' * 500}Version='2'>17</PMID>", (17, 2)),
    ],
)
def test_spellings_of_pmid_and_version(pmid_xml: str, expected: tuple[int, int]) -> None:
    citation = parse_record(small_record_xml(pmid_xml=pmid_xml))
    assert (citation.pmid, citation.version) == expected


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("A<sup>2+</sup> ion", "A2+ ion"),
        ("5 × 10<sup>-6</sup> M, <i>10</i><sup>5</sup> cells", "5 × 10^-6 M, 10^5 cells"),
        ("2<sup>−ΔΔCt</sup>, CD4<sup>+</sup> and 10<sup>&#8722;3</sup>", "2^−ΔΔCt, CD4+ and 10^−3"),
        ("<i>E. coli</i><b>!</b>", "E. coli!"),
        ("H<sub>2</sub>O &lt; <u><i>x</i></u>", "H2O < x"),
        ("&#945;-helix &amp; &quot;co&quot;", 'α-helix & "co"'),
        (f'<mml:math xmlns:mml="{MATHML}"><mml:mi>k</mml:mi></mml:math>-th', "k-th"),
        ("the <mml:math><mml:mi>k</mml:mi></mml:math>-th", "the k-th"),
        (
            f'to <mml:math xmlns:mml="{MATHML}">\n <mml:msup> <mml:mn>10</mml:mn> <mml:mn>6</mml:mn>'
            " </mml:msup>\n</mml:math>, <i>n</i>",
            "to 10^6, n",
        ),
        ("<i>a</i> /> b", "a /> b"),
        ("a /> b", "a /> b"),
        ("", ""),
    ],
)
def test_inline_markup_is_joined_without_gaps(markup: str, expected: str) -> None:
    assert parse_record(small_record_xml(title=f"<ArticleTitle>{markup}</ArticleTitle>")).title == expected
    text = f"<Abstract><AbstractText Label='AIM'>{markup}</AbstractText></Abstract>"
    assert parse_record(small_record_xml(abstract_xml=text)).abstract == (AbstractSection("AIM", expected),)


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("3.5 x 10(-9) M and 10(-6) M", "3.5 x 10^-9 M and 10^-6 M"),
        ("2x10(6) cells, 1×10(4) or 7 × 10(5)", "2x10^6 cells, 1×10^4 or 7 × 10^5"),
        (
            "grades 10(2), 110(-3), 0.10(-3) and Table 10(4)",
            "grades 10(2), 110(-3), 0.10(-3) and Table 10(4)",
        ),
    ],
)
def test_powers_in_brackets_are_marked(printed: str, expected: str) -> None:
    for label in ("", " Label='AIM'"):
        text = f"<Abstract><AbstractText{label}>{printed}</AbstractText></Abstract>"
        assert parse_record(small_record_xml(abstract_xml=text)).abstract[0].text == expected


OTHER_ABSTRACTS = (
    "<OtherAbstract Type='Publisher' Language='ger'><AbstractText>Anders.</AbstractText></OtherAbstract>"
    "\n<OtherAbstract Language = 'eng' Type='PIP' ><AbstractText Label='AIM'>To <i>see</i>.</AbstractText>"
    "<AbstractText>Else.</AbstractText></OtherAbstract><OtherAbstract Type='NASA'/>"
)


@pytest.mark.parametrize("abstract_xml", ["", "<Abstract/>"])
def test_other_abstracts_of_a_record_without_an_abstract(abstract_xml: str) -> None:
    record = small_record_xml(abstract_xml=abstract_xml, extra_xml=OTHER_ABSTRACTS)
    assert parse_record(record).other_abstracts == (
        OtherAbstract("Publisher", "ger", (AbstractSection(None, "Anders."),)),
        OtherAbstract("PIP", "eng", (AbstractSection("AIM", "To see."), AbstractSection(None, "Else."))),
        OtherAbstract("NASA", "eng", ()),
    )
    with_abstract = small_record_xml(extra_xml=OTHER_ABSTRACTS)
    assert parse_record(with_abstract).other_abstracts == ()


def test_named_entities_are_resolved() -> None:
    title = "<ArticleTitle>&alpha;-helix of &bgr;<i>x</i></ArticleTitle>"
    abstract = (
        "<Abstract><AbstractText Label='5 &micro;g'>&agr; &lt; 1</AbstractText>"
        "<AbstractText>1<sup>&bgr;</sup></AbstractText></Abstract>"
    )
    record = parse_record(small_record_xml(title=title, abstract_xml=abstract))
    assert record.title == "α-helix of βx"
    assert record.abstract == (AbstractSection("5 µg", "α < 1"), AbstractSection(None, "1β"))


def test_entities_in_publication_types_are_resolved() -> None:
    kind = "<PublicationType>Support, Gov&apos;t &amp; Co</PublicationType>"
    types = f"<PublicationTypeList>{kind}</PublicationTypeList>"
    assert parse_record(small_record_xml(types=types)).publication_types == ("Support, Gov't & Co",)


@pytest.mark.parametrize(
    ("types", "comments", "retracted"),
    [
        ("RETRACTED PUBLICATION", "", True),
        ("Review", "<CommentsCorrections RefType = 'RetractionIn'/>", True),
        ("Review", "<RefSource>RefType='RetractionIn'</RefSource>", False),
    ],
)
def test_retracted_article_and_retraction_notice_are_distinguished(
    types: str, comments: str, retracted: bool
) -> None:
    types_xml = (
        f"<PublicationTypeList><PublicationType UI='D016441'>{types}</PublicationType></PublicationTypeList>"
    )
    comments_xml = f"<CommentsCorrectionsList>{comments}</CommentsCorrectionsList>"
    assert parse_record(small_record_xml(types=types_xml, extra_xml=comments_xml)).retracted is retracted


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (OWN_IDS_XML.replace("'", '"').replace("10.5555/own", " "), (None, "PMC1")),
        (
            '<ArticleIdList><ArticleId IdType="doi"> </ArticleId>'
            '<ArticleId IdType="doi">10.5555/own</ArticleId>'
            '<ArticleId IdType="doi">10.5555/second</ArticleId></ArticleIdList>',
            ("10.5555/own", None),
        ),
        (OWN_IDS_XML.replace("'pmc'", "'pmcid'").replace("PMC1", "pmc-id: PMC1; x"), ("10.5555/own", "PMC1")),
    ],
)
def test_first_id_of_a_kind_is_used_if_it_is_not_empty(
    data: str, expected: tuple[str | None, str | None]
) -> None:
    citation = parse_record(small_record_xml(pubmed_data_xml=f"<PubmedData>{data}</PubmedData>"))
    assert (citation.doi, citation.pmcid) == expected


def test_line_ends_of_every_kind_are_white_space() -> None:
    citation = parse_record(
        small_record_xml(title="<ArticleTitle\r\n>One\r\ntwo\rthree</ArticleTitle>").replace(
            "><Article", ">\r\n<Article"
        )
    )
    assert citation.title.split() == ["One", "two", "three"]


def test_a_book_is_a_citation() -> None:
    book = (
        b'<PubmedBookArticle><BookDocument><PMID Version="2">31</PMID><ArticleIdList>'
        b'<ArticleId IdType="doi">https://doi.org/10.5555/B</ArticleId></ArticleIdList>'
        b"<Book><BookTitle>Gulls of the World</BookTitle>"
        b"<PubDate><Year>2010</Year><Month>03</Month></PubDate>"
        b"<AuthorList><Author><LastName>Editor</LastName></Author></AuthorList></Book>"
        b"<ArticleTitle>Nests &amp;amp; eggs</ArticleTitle><Language>eng</Language>"
        b'<AuthorList><Author ValidYN="N"><LastName>Od</LastName></Author>'
        b"<Author><LastName>Ode</LastName><ForeName>A</ForeName><Suffix>Jr</Suffix></Author></AuthorList>"
        b"<PublicationType>Review</PublicationType>"
        b'<Abstract><AbstractText Label="AIM">We saw 10<sup>6</sup>.</AbstractText></Abstract>'
        b"</BookDocument></PubmedBookArticle>"
    )
    citation = parse_book(book, ("authors", "published"))
    assert citation == Citation(
        pmid=31,
        version=2,
        title="Nests & eggs",
        abstract=(AbstractSection("AIM", "We saw 10^6."),),
        year=2010,
        languages=("eng",),
        publication_types=("Review",),
        retracted=False,
        pmcid=None,
        doi="10.5555/B",
        journal="Gulls of the World",
        columns=ArticleColumns(published="2010-03", authors=(Author("Ode", "A", None, (), "Jr"),)),
        is_book=True,
    )
    assert parse_book(book).columns == ArticleColumns()
    with pytest.raises(BadRecordError, match="no-pmid"):
        parse_book(b"<BookDocument/>")
