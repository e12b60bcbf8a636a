"""Ids, year, journal, type, flags and licence that are parsed from an article's front matter."""

from __future__ import annotations

import collections
import gzip
import itertools
import re
from pathlib import Path

import pytest
from lxml import etree

from bioshards.corpus.document import AbstractText, ArticleColumns, Author, Grant
from bioshards.corpus.jats.article_metadata import NOTICE_TYPES, ArticleMetadata, parse_metadata
from bioshards.corpus.jats.xml_tree import parse_article
from bioshards.corpus.shards.document_schema import COLUMN_TYPES
from tests.support.real_data import DATA, needs_data

PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
)
NAMESPACES = 'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:ali="http://www.niso.org/schemas/ali/1.0/"'
BY = "http://creativecommons.org/licenses/by/4.0/"
BY_NC = "http://creativecommons.org/licenses/by-nc/4.0/"
ZERO = "http://creativecommons.org/publicdomain/zero/1.0/"


def parse_xml(xml: str) -> ArticleMetadata:
    return parse_metadata(etree.fromstring(xml, PARSER))


def parse_article_meta(
    meta: str = "", attributes: str = "", rest: str = "", journal: str = ""
) -> ArticleMetadata:
    """Parse an article with this content in its ``article-meta``."""
    return parse_xml(
        f"<article {NAMESPACES} {attributes}><front><journal-meta>{journal}</journal-meta>"
        f"<article-meta>{meta}</article-meta></front>{rest}</article>"
    )


def parse_licence(inside: str) -> str | None:
    return parse_article_meta(f"<permissions>{inside}</permissions>").licence


COLUMNS_XML = f"""
<article {NAMESPACES}>
 <front>
  <journal-meta><journal-id journal-id-type="nlm-ta">Ann Tides</journal-id>
   <journal-id journal-id-type="iso-abbrev">Ann. Tides</journal-id>
   <journal-id journal-id-type="nlm-journal-id">101</journal-id></journal-meta>
  <article-meta>
   <article-categories><subj-group><subject>Research</subject><subj-group><subject>Moon and
    <italic>sea</italic></subject></subj-group></subj-group>
    <subj-group><subject>Research</subject></subj-group></article-categories>
   <contrib-group>
    <contrib contrib-type="author"><contrib-id contrib-id-type="orcid">https://orcid.org/0000-0002-1825-0097
     </contrib-id><name><surname>Ebb</surname><given-names>Ito</given-names></name>
     <xref ref-type="aff" rid="a2 a1"/><xref ref-type="corresp" rid="c1"/></contrib>
    <contrib><collab>The Tide Group</collab></contrib>
    <contrib contrib-type="editor"><name><surname>Flow</surname></name></contrib>
    <aff id="a1"><label>1</label>Harbour, Sea</aff></contrib-group>
   <aff id="a2"><label>2</label><institution>School of <italic>Tides</italic></institution></aff>
   <pub-date pub-type="epub"><day>3</day><month>2</month><year>2024</year></pub-date>
   <pub-date pub-type="ppub"><month>November</month><year>2024</year></pub-date>
   <abstract><p>Mice.</p></abstract><abstract abstract-type="teaser"><p>Short.</p></abstract>
   <trans-abstract xml:lang="fr"><p>Souris.</p></trans-abstract>
   <kwd-group><title>Words</title><kwd>tide</kwd><kwd><italic>Mare</italic> nostrum</kwd><kwd/></kwd-group>
   <kwd-group xml:lang="fr"><kwd>marée</kwd></kwd-group>
   <kwd-group kwd-group-type="abbreviations"><kwd>NT: neap tide</kwd></kwd-group>
   <funding-group><award-group><funding-source><institution-wrap><institution>Sea Fund</institution>
     <institution-id>77</institution-id></institution-wrap></funding-source>
     <award-id>S1</award-id><award-id>S2</award-id></award-group>
    <award-group><funding-source>Moon Fund</funding-source></award-group></funding-group>
  </article-meta>
 </front>
 <back><ref-list><ref><pub-id pub-id-type="doi">10.5555/1</pub-id><pub-id pub-id-type="pmid">12</pub-id></ref>
  <ref><pub-id pub-id-type='pmid'> 7 </pub-id></ref><ref><pub-id pub-id-type="pmid">12</pub-id></ref>
 </ref-list></back>
</article>"""


def test_columns_of_jats() -> None:
    expected = ArticleColumns(
        journal_abbreviation="Ann. Tides",
        nlm_id="101",
        keywords=("tide", "Mare nostrum", "marée"),
        subjects=("Research", "Moon and sea"),
        published="2024-02-03",
        authors=(
            Author("Ebb", "Ito", "0000-0002-1825-0097", ("School of Tides", "Harbour, Sea")),
            Author("The Tide Group", None, None, ()),
        ),
        grants=(Grant("S1", "Sea Fund", None), Grant("S2", "Sea Fund", None), Grant(None, "Moon Fund", None)),
        cited_pmids=(12, 7),
        other_abstracts=(AbstractText("teaser", None, "Short."), AbstractText(None, "fre", "Souris.")),
    )
    article = etree.fromstring(COLUMNS_XML, PARSER)
    assert parse_metadata(article, COLUMN_TYPES, COLUMNS_XML.encode()).columns == expected
    for name in COLUMN_TYPES:
        alone = parse_metadata(article, [name], COLUMNS_XML.encode()).columns
        assert alone == ArticleColumns()._replace(**{name: getattr(expected, name)})


def parse_columns(meta: str, after: str = "") -> ArticleColumns:
    """Parse the columns of an article with this ``article-meta``, and elements after its ``front``."""
    xml = f"<article><front><article-meta>{meta}</article-meta></front>{after}</article>".encode()
    return parse_metadata(parse_article(xml), COLUMN_TYPES, xml).columns


def test_keywords_are_also_read_from_a_section_of_the_abstract() -> None:
    section = '<sec sec-type="kwd-group"><p><bold>Keywords:</bold> tide, spring tide</p></sec>'
    columns = parse_columns(f"<abstract><sec><p>Mice: two.</p></sec>{section}</abstract>")
    assert columns.keywords == ("tide", "spring tide")


@pytest.mark.parametrize(
    ("affiliation", "expected"),
    [
        ("<sup>1</sup>School of Tides", "School of Tides"),
        ("<label>1</label><institution>School</institution>, <country>Sea</country>", "School, Sea"),
        (
            "<sup>a</sup><institution>School</institution><addr-line>Quay</addr-line><country>Sea</country>",
            "School Quay Sea",
        ),
        (
            '<institution-wrap><institution-id institution-id-type="GRID">grid.7</institution-id>'
            "<institution>School</institution></institution-wrap>, Sea",
            "School, Sea",
        ),
        ("School<sup>2</sup>, Sea", "School2, Sea"),
    ],
)
def test_affiliations_are_without_marks_and_ids(affiliation: str, expected: str) -> None:
    author = '<contrib><name><surname>Ebb</surname></name><xref ref-type="aff" rid="a"/></contrib>'
    columns = parse_columns(f'<contrib-group>{author}</contrib-group><aff id="a">{affiliation}</aff>')
    assert columns.authors == (Author("Ebb", None, None, (expected,)),)


def test_group_of_authors_is_named_without_its_members() -> None:
    member = "<contrib><name><surname>Ebb</surname></name></contrib>"
    collab = f"<collab>Tide Group<contrib-group>{member}</contrib-group></collab>"
    columns = parse_columns(f"<contrib-group><contrib>{collab}</contrib></contrib-group>")
    assert columns.authors == (Author("Tide Group", None, None, ()),)


def test_paragraphs_of_other_abstracts_are_apart() -> None:
    sections = "<sec><title>Aim</title><p>One, <italic>two</italic>.</p></sec><p>Three.</p>"
    columns = parse_columns(f'<abstract abstract-type="teaser"><title>Summary</title>{sections}</abstract>')
    assert columns.other_abstracts == (AbstractText("teaser", None, "Summary Aim One, two. Three."),)


def test_grant_of_several_recipients_is_one() -> None:
    award = "<award-group><funding-source>Sea Fund</funding-source>{}</award-group>"
    ids = award.format("<award-id>S1</award-id><award-id>S1</award-id>")
    columns = parse_columns(f"<funding-group>{ids}{award.format('<award-id>S1</award-id>')}</funding-group>")
    assert columns.grants == (Grant("S1", "Sea Fund", None),)


@pytest.mark.parametrize(
    "source",
    [
        'Sea Fund<named-content content-type="funder-id">10.5555/7</named-content>',
        'Sea Fund<named-content content-type="funder-identifier">10.5555/7</named-content>',
        'Sea <named-content content-type="place">Fund</named-content>',
        "<institution>Sea Fund</institution><institution-id>10.5555/7</institution-id>",
        "Sea Fund<institution-id>10.5555/7</institution-id>",
    ],
)
def test_agency_is_named_without_its_id(source: str) -> None:
    award = f"<award-group><funding-source>{source}</funding-source></award-group>"
    assert parse_columns(f"<funding-group>{award}</funding-group>").grants == (Grant(None, "Sea Fund", None),)


def test_references_of_reviews_are_not_the_articles() -> None:
    references = '<back><ref-list><ref><pub-id pub-id-type="pmid">{}</pub-id></ref></ref-list></back>'
    review = f"<sub-article>{references.format(8)}</sub-article><response>{references.format(9)}</response>"
    assert parse_columns("", references.format(7) + review).cited_pmids == (7,)
    assert parse_columns("", review).cited_pmids == ()


@pytest.mark.parametrize("xml", ["<article/>", "<article><front/></article>", "<article><body/></article>"])
def test_article_without_metadata_has_defaults(xml: str) -> None:
    defaults = ArticleMetadata(None, 1, None, None, None, None, None, None, None, False, None, False, False)
    assert parse_xml(xml) == defaults == parse_article_meta()


# Ids


def parse_ids(*pairs: tuple[str, str]) -> ArticleMetadata:
    return parse_article_meta(
        "".join(f'<article-id pub-id-type="{kind}">{value}</article-id>' for kind, value in pairs)
    )


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("pmcid", "PMC12")], ("PMC12", 1)),
        ([("pmcid", "12")], ("PMC12", 1)),
        ([("pmc", " PMC12\n")], ("PMC12", 1)),
        ([("pmc", "pmc12")], ("PMC12", 1)),
        ([("pmc-uid", "12")], ("PMC12", 1)),
        ([("pmcid", "PMC12"), ("pmcid-ver", "PMC12.3")], ("PMC12", 3)),
        ([("pmcid-ver", "PMC12.3")], ("PMC12", 3)),
        ([("pmcid", "PMC12.4")], ("PMC12", 4)),
        ([("pmcid", "nonsense"), ("pmc", "12")], ("PMC12", 1)),
        ([("pmcaid", "12"), ("pmcaiid", "12"), ("publisher-id", "PMC12")], (None, 1)),
        ([("pmcid", "PMC012")], (None, 1)),
        ([("pmcid", "PMC99999999999")], (None, 1)),
        ([("pmcid", "PMC4294967296")], (None, 1)),
        ([("pmcid", "")], (None, 1)),
    ],
)
def test_pmcid_and_version(pairs: list[tuple[str, str]], expected: tuple[str | None, int]) -> None:
    metadata = parse_ids(*pairs)
    assert (metadata.pmcid, metadata.version) == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ('<article-version article-version-type="number">3</article-version>', (3, 0, True)),
        ('<article-version article-version-type="number">1.2</article-version>', (1, 2000, True)),
        ("<article-version>v2.10.7</article-version>", (2, 10007, True)),
        ('<article-version article-version-type="status">2</article-version>', (1, 0, False)),
        ("<article-version>1.2.3.4</article-version>", (1, 0, False)),
        ("<article-version>VoR</article-version>", (1, 0, False)),
    ],
)
def test_version_from_article_version_element(version: str, expected: tuple[int, int, bool]) -> None:
    several = f"<article-version>VoR</article-version>{version}"
    for xml in (version, f"<article-version-alternatives>{several}</article-version-alternatives>"):
        metadata = parse_article_meta(xml)
        assert (metadata.version, metadata.minor_version, metadata.has_version_number) == expected
    assert parse_article_meta("").has_version_number


@pytest.mark.parametrize(
    ("text", "expected"),
    [("12", 12), (" 12 ", 12), ("PMID12", None), ("0", None), ("²", None), ("9" * 10, None)],
)
def test_pmid(text: str, expected: int | None) -> None:
    assert parse_ids(("pmid", text)).pmid == expected


def test_first_valid_doi_is_used() -> None:
    assert parse_ids(("doi", "to come"), ("doi", "10.1234/a"), ("doi", "10.1234/b")).doi == "10.1234/a"


def test_ids_of_other_articles_are_ignored() -> None:
    others = (
        '<related-article related-article-type="companion">'
        '<article-id pub-id-type="doi">10.9999/a</article-id>'
        '<pub-id pub-id-type="pmid">9</pub-id></related-article>'
        '<related-object><article-id pub-id-type="pmid">8</article-id></related-object>'
    )
    rest = (
        '<back><ref-list><ref><pub-id pub-id-type="doi">10.9999/b</pub-id></ref></ref-list></back>'
        '<sub-article><front-stub><article-id pub-id-type="pmcid">PMC9</article-id>'
        f'<permissions><license xlink:href="{BY}"/></permissions></front-stub></sub-article>'
        '<response><front><article-meta><article-id pub-id-type="doi">10.9999/c</article-id></article-meta>'
        "</front></response>"
    )
    assert parse_article_meta(others, rest=rest) == parse_article_meta()


# Year


def parse_year(*pairs: tuple[str, str]) -> int | None:
    return parse_article_meta(
        "".join(f"<pub-date {attributes}><year>{year}</year></pub-date>" for attributes, year in pairs)
    ).year


PRINT, ELECTRONIC = (
    'date-type="pub" publication-format="print"',
    'date-type="pub" publication-format="electronic"',
)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([('pub-type="epub"', "2017"), ('pub-type="ppub"', "2018")], 2017),
        ([('pub-type="epub"', "2017"), ('pub-type="collection"', "2018")], 2017),
        ([('pub-type="epub"', "2017"), ('pub-type="collection"', "2016")], 2016),
        ([('pub-type="epub"', "2017"), ('pub-type="pmc-release"', "2018")], 2017),
        ([('pub-type="epreprint"', "2016"), ('pub-type="epub"', "2017")], 2017),
        ([('pub-type="epub-ppub"', "2018"), ('pub-type="epub"', "2017")], 2017),
        ([('pub-type="pmc-release"', "2018")], 2018),
        ([('pub-type="nihms-submitted"', "2018"), ('pub-type="ecorrected"', "2019")], None),
        ([(ELECTRONIC, "2017"), (PRINT, "2018")], 2017),
        ([(ELECTRONIC, "2017"), ('date-type="collection" publication-format="electronic"', "2018")], 2017),
        ([('date-type="publication"', "2017"), ('date-type="update"', "2019")], 2017),
        ([("", "2017")], 2017),
        ([('pub-type="ppub"', "in press"), ('pub-type="epub"', "2017")], 2017),
        ([('pub-type="ppub"', " 2018 ")], 2018),
        ([('pub-type="ppub"', "0218")], None),
        ([('pub-type="ppub"', "20188")], None),
        ([('pub-type="ppub"', "3018")], None),
        ([], None),
    ],
)
def test_year_is_that_of_the_earliest_publication(pairs: list[tuple[str, str]], expected: int | None) -> None:
    assert parse_year(*pairs) == expected
    assert parse_year(*reversed(pairs)) == expected


@pytest.mark.parametrize(
    "date",
    [
        '<pub-date iso-8601-date="2018-03-02"/>',
        "<pub-date><string-date>the 2nd of March, 2018</string-date></pub-date>",
        "<pub-date><string-date><day>2</day>.<month>3</month>.<year>2018</year></string-date></pub-date>",
        '<pub-date iso-8601-date="2018"><year/></pub-date>',
        "<pub-date><season>Spring</season><year>2018</year></pub-date>",
    ],
)
def test_year_in_other_date_formats(date: str) -> None:
    release = "<pub-history><event><date><year>2016</year></date></event></pub-history>"
    assert parse_article_meta(date + release).year == 2018


# Journal, language, type and flags


def test_journal_is_the_first_title_without_markup() -> None:
    group = "<journal-title-group><journal-title> A\n&amp; <sc>B</sc> </journal-title></journal-title-group>"
    assert parse_article_meta(journal=group).journal == "A & B"
    assert (
        parse_article_meta(
            journal="<journal-title>First</journal-title><journal-title>2</journal-title>"
        ).journal
        == "First"
    )
    assert parse_article_meta(journal="<journal-title/>").journal is None


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ("", None),
        ('xml:lang=""', None),
        ('xml:lang=" "', None),
        ('xml:lang="und"', None),
        ("xml:lang='EN'", "eng"),
        ('xml:lang="de-CH"', "ger"),
        ('xml:lang="fra"', "fre"),
    ],
)
def test_language_is_a_marc_code(attributes: str, expected: str | None) -> None:
    assert parse_article_meta(attributes=attributes).language == expected


@pytest.mark.parametrize(
    ("kind", "expected"), [*NOTICE_TYPES.items(), ("Expression of concern", "expression-of-concern")]
)
def test_article_types_of_notices(kind: str, expected: str) -> None:
    metadata = parse_article_meta(attributes=f'article-type=" {kind}"')
    assert (metadata.article_type, metadata.notice) == (kind.lower(), expected)


def is_retracted(title: str, related: str = "", attributes: str = "") -> bool:
    return parse_article_meta(
        f"<title-group><article-title>{title}</article-title></title-group>"
        + (f'<related-article related-article-type="{related}"/>' if related else ""),
        attributes,
    ).retracted


@pytest.mark.parametrize(
    "title",
    [
        "RETRACTED: Tides",
        "Retracted Article: Tides",
        "<bold>Retracted</bold>: Tides",
        "[RETRACTED] Tides",
        "WITHDRAWN: Tides",
        "Tides [Retracted]",
        "Tides (Retracted Article).",
    ],
)
def test_retracted_by_title(title: str) -> None:
    assert is_retracted(title)
    assert not is_retracted(title, "retracted-article")
    assert not is_retracted(title, attributes='article-type="retraction"')


@pytest.mark.parametrize("related", ["retraction-forward", "retraction-in", "Retraction-Forward"])
def test_retracted_by_related_article(related: str) -> None:
    assert is_retracted("Tides", related)
    assert not is_retracted("Tides", related, 'article-type="retraction"')


@pytest.mark.parametrize(
    ("title", "related"),
    [
        ("Tides", ""),
        ("Tides", "corrected-article"),
        ("Tides", "companion"),
        ("Retraction: Tides", ""),
        ("Retracted papers: a survey", ""),
        ("How retracted: tides", ""),
        ("Why articles are withdrawn", ""),
    ],
)
def test_not_retracted(title: str, related: str) -> None:
    assert not is_retracted(title, related)


def test_retraction_of_a_sub_article_is_ignored() -> None:
    rest = (
        "<sub-article><front-stub><title-group><article-title>Retracted: x</article-title></title-group>"
        '<related-article related-article-type="retraction-forward"/></front-stub></sub-article>'
    )
    assert not parse_article_meta(rest=rest).retracted


def build_custom_meta(name: str, value: str, group: str = "custom-meta-group") -> str:
    item = f"<custom-meta><meta-name>{name}</meta-name><meta-value>{value}</meta-value></custom-meta>"
    return f"<{group}>{item}</{group}>"


@pytest.mark.parametrize("group", ["custom-meta-group", "custom-meta-wrap"])
@pytest.mark.parametrize("name", ["pmc-prop-manuscript", "is-manuscript"])
def test_manuscript_flag(group: str, name: str) -> None:
    old = '<article-id pub-id-type="manuscript">NIHMS1</article-id>'
    assert parse_article_meta(build_custom_meta(name, "yes", group)).manuscript
    assert parse_article_meta(old).manuscript
    assert not parse_article_meta(old + build_custom_meta(name, "no", group)).manuscript
    assert not parse_article_meta(build_custom_meta("pmc-prop-open-access", "yes", group)).manuscript
    of_the_journal = build_custom_meta(name, "yes", group)
    assert not parse_article_meta(build_custom_meta(name, "no", group), journal=of_the_journal).manuscript


def test_ocr_flag() -> None:
    page = '<preformat preformat-type="pmc-ocr-text">Words of a page</preformat>'
    assert parse_article_meta(rest=f"<body>{page}{page}</body>").ocr
    assert parse_article_meta(build_custom_meta("pmc-prop-is-scanned-article", "yes")).ocr
    assert not parse_article_meta(build_custom_meta("pmc-prop-is-scanned-article", "no")).ocr
    assert not parse_article_meta(rest="<body><preformat>code</preformat></body>").ocr


# Licence


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        (f"<license><ali:license_ref>\n{BY}\n</ali:license_ref></license>", "CC-BY"),
        (f"<ali:license_ref>{BY}</ali:license_ref>", "CC-BY"),
        ('<license><ali:license_ref content-type="ccbysalicense"/></license>', "CC-BY-SA"),
        (f'<license xlink:href="{BY_NC}"/>', "CC-BY-NC"),
        ('<license license-type="CC BY-ND"/>', "CC-BY-ND"),
        (
            f'<license><license-p>See <ext-link xlink:href="{BY}">this</ext-link>.</license-p></license>',
            "CC-BY",
        ),
        (f'<license><p>See <uri xlink:href="{BY_NC}">this</uri>.</p></license>', "CC-BY-NC"),
        (f"<license><p>See <uri>{BY_NC}</uri>.</p></license>", "CC-BY-NC"),
        ("<license><license-p>Free under <bold>CC BY</bold>.</license-p></license>", "CC-BY"),
        ("<license><license-p>Free under CC BY-<bold>NC</bold>.</license-p></license>", "CC-BY-NC"),
        ("<copyright-statement>© A. Free under CC BY.</copyright-statement>", "CC-BY"),
        ('<license license-type="open-access"><license-p>Open access.</license-p></license>', None),
        ("<copyright-statement>© A. All rights reserved.</copyright-statement>", None),
        ("", None),
    ],
)
def test_licence_from_each_element(inside: str, expected: str | None) -> None:
    assert parse_licence(inside) == expected
    assert parse_article_meta(inside).licence == expected


def test_licence_from_pmc_license_ref() -> None:
    assert parse_article_meta(build_custom_meta("pmc-license-ref", "CC BY-NC-SA")).licence == "CC-BY-NC-SA"
    assert parse_article_meta(build_custom_meta("pmc-license-ref", "TDM")).licence == "TDM"
    assert parse_article_meta(build_custom_meta("licence", "CC BY")).licence is None


def test_strictest_of_several_licences_wins() -> None:
    assert parse_licence(f'<license xlink:href="{BY}"/><license xlink:href="{BY_NC}"/>') == "CC-BY-NC"
    words = "<license-p>Under the Creative Commons Attribution Non-Commercial License.</license-p>"
    assert parse_licence(f'<license xlink:href="{BY}">{words}</license>') == "CC-BY-NC"
    link = f'<ext-link xlink:href="{BY_NC}">{BY}</ext-link>'
    assert parse_licence(f"<license><license-p>Under {link}.</license-p></license>") == "CC-BY-NC"
    assert (
        parse_article_meta(
            f'<license xlink:href="{BY}"/>{build_custom_meta("pmc-license-ref", "CC BY-ND")}'
        ).licence
        == "CC-BY-ND"
    )


def test_waiver_for_data_is_not_the_licence_of_the_article() -> None:
    waiver = f'The waiver (<uri xlink:href="{ZERO}">{ZERO}</uri>) applies to the data made available here.'
    assert parse_licence(f"<license><license-p>{waiver}</license-p></license>") is None
    assert parse_licence(f"<license><license-p>Free under CC BY. {waiver}</license-p></license>") == "CC-BY"
    assert parse_licence(f'<license xlink:href="{ZERO}"/>') == "CC0"


# Real articles


@needs_data
def test_metadata_of_real_articles_is_plausible() -> None:
    licences: collections.Counter[str | None] = collections.Counter()
    articles = collections.Counter[str]()
    for path in sorted(Path(str(DATA), "jats").rglob("*")):
        if not path.name.endswith((".xml", ".nxml", ".gz")):
            continue
        data = path.read_bytes()
        root = etree.fromstring(gzip.decompress(data) if path.suffix == ".gz" else data, PARSER)
        pmcid_in_path = re.search(r"PMC[1-9][0-9]+(?=/fulltext|\.n?xml)", str(path))
        if root.tag != "article" or pmcid_in_path is None:
            continue
        metadata = parse_metadata(root)
        articles[metadata.language or "none declared"] += 1
        licences[metadata.licence] += 1
        # One folder of the collection holds the article of another id.
        assert metadata.pmcid == pmcid_in_path[0] or pmcid_in_path[0] == "PMC3167654", path
        assert 1800 <= (metadata.year or 0) <= 2026, path
        assert metadata.journal, path
        assert metadata.pmid or metadata.doi, path
        if metadata.licence is None:
            meta = root.find("front/article-meta")
            assert meta is not None
            statements = [part.itertext() for part in meta.iter("license", "copyright-statement")]
            statement = " ".join(map(str, itertools.chain.from_iterable(statements)))
            assert not re.search(r"creative ?commons|\bCC.?BY\b", statement, re.IGNORECASE), path
    assert set(articles) == {"eng", "none declared"}
    assert articles.total() > 2000
    assert licences["CC-BY"] > 0.97 * articles.total()
    assert licences[None] < 0.01 * articles.total()
