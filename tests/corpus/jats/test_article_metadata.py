"""Front matter of every vintage: our own articles, what may be confused with it, and the real ones."""

from __future__ import annotations

import collections
import gzip
import itertools
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from bioshards.corpus.jats.article_metadata import NOTICE_TYPES, ArticleMetadata, parse_metadata
from tests.support.real_data import DATA, needs_data

PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
)
NAMESPACES = 'xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:ali="http://www.niso.org/schemas/ali/1.0/"'
BY = "http://creativecommons.org/licenses/by/4.0/"
BY_NC = "http://creativecommons.org/licenses/by-nc/4.0/"
ZERO = "http://creativecommons.org/publicdomain/zero/1.0/"


def read(xml: str) -> ArticleMetadata:
    return parse_metadata(etree.fromstring(xml, PARSER))


def article(meta: str = "", attributes: str = "", rest: str = "", journal: str = "") -> ArticleMetadata:
    """The front of an article with this in its article-meta."""
    return read(
        f"<article {NAMESPACES} {attributes}><front><journal-meta>{journal}</journal-meta>"
        f"<article-meta>{meta}</article-meta></front>{rest}</article>"
    )


def permissions(inside: str) -> str | None:
    return article(f"<permissions>{inside}</permissions>").licence


NLM_2 = f"""
<article {NAMESPACES} article-type="Research-Article" xml:lang="EN">
 <front>
  <journal-meta><journal-id journal-id-type="nlm-ta">Ann Tides</journal-id>
   <journal-title>Annals
     of <italic>Tides</italic></journal-title></journal-meta>
  <article-meta>
   <article-id pub-id-type="pmc">1234567</article-id><article-id pub-id-type="pmid">7654321</article-id>
   <article-id pub-id-type="doi">10.1234/tide(1)</article-id>
   <title-group><article-title>Tides and cells</article-title></title-group>
   <pub-date pub-type="ppub"><month>1</month><year>2005</year></pub-date>
   <pub-date pub-type="epub"><day>2</day><month>12</month><year>2004</year></pub-date>
   <copyright-statement>Copyright 2005, A. Tidewater</copyright-statement>
   <license license-type="open-access"><p>Shared under the Creative Commons Attribution License
    (<ext-link xlink:href="{BY}"/>).</p></license>
  </article-meta>
 </front>
 <body><p>Words.</p></body>
</article>"""

JATS_1_4 = f"""
<article {NAMESPACES} article-type="review-article" xml:lang="pt" dtd-version="1.4">
 <processing-meta><restricted-by>pmc</restricted-by></processing-meta>
 <front>
  <journal-meta><journal-title-group><journal-title>Annals of Tides</journal-title></journal-title-group>
   <custom-meta-group><custom-meta><meta-name>pmc-prop-manuscript</meta-name><meta-value>yes</meta-value>
   </custom-meta></custom-meta-group></journal-meta>
  <article-meta>
   <article-id pub-id-type="pmcid">PMC12345678</article-id>
   <article-id pub-id-type="pmcid-ver">PMC12345678.2</article-id>
   <article-id pub-id-type="pmcaid">999</article-id><article-id pub-id-type="pmcaiid">888</article-id>
   <article-id pub-id-type="pmid">7654321</article-id><article-id pub-id-type="doi">10.1234/tide</article-id>
   <title-group><article-title>Tides</article-title></title-group>
   <pub-date pub-type="collection"><year>2025</year></pub-date>
   <pub-date pub-type="epub"><year>2024</year></pub-date>
   <pub-history><event event-type="pmc-release"><date><year>2026</year></date></event></pub-history>
   <permissions><copyright-statement>© A. Tidewater</copyright-statement>
    <license><ali:license_ref content-type="ccbyncndlicense">{BY_NC.replace("nc", "nc-nd")}</ali:license_ref>
     <license-p>Open access.</license-p></license></permissions>
   <custom-meta-group>
    <custom-meta><meta-name>pmc-license-ref</meta-name><meta-value>CC BY-NC-ND</meta-value></custom-meta>
    <custom-meta><meta-name>pmc-prop-manuscript</meta-name><meta-value>no</meta-value></custom-meta>
    <custom-meta><meta-name>pmc-prop-is-scanned-article</meta-name><meta-value>no</meta-value></custom-meta>
   </custom-meta-group>
  </article-meta>
 </front>
 <body><sec><title>One</title><p>Words.</p></sec></body>
</article>"""


def test_nlm_2_without_permissions_and_title_group() -> None:
    assert read(NLM_2) == ArticleMetadata(
        pmcid="PMC1234567",
        version=1,
        pmid=7654321,
        doi="10.1234/tide(1)",
        year=2005,
        journal="Annals of Tides",
        article_type="research-article",
        language="eng",
        licence="CC-BY",
        retracted=False,
        notice=None,
        manuscript=False,
        ocr=False,
    )


def test_jats_1_4_of_pmc() -> None:
    assert read(JATS_1_4) == ArticleMetadata(
        pmcid="PMC12345678",
        version=2,
        pmid=7654321,
        doi="10.1234/tide",
        year=2025,
        journal="Annals of Tides",
        article_type="review-article",
        language="por",
        licence="CC-BY-NC-ND",
        retracted=False,
        notice=None,
        manuscript=False,
        ocr=False,
    )


@pytest.mark.parametrize("xml", ["<article/>", "<article><front/></article>", "<article><body/></article>"])
def test_an_article_that_says_nothing(xml: str) -> None:
    nothing = ArticleMetadata(None, 1, None, None, None, None, None, "eng", None, False, None, False, False)
    assert read(xml) == nothing == article()


# Ids


def ids(*pairs: tuple[str, str]) -> ArticleMetadata:
    return article("".join(f'<article-id pub-id-type="{kind}">{value}</article-id>' for kind, value in pairs))


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
def test_the_pmcid_and_its_version(pairs: list[tuple[str, str]], expected: tuple[str | None, int]) -> None:
    found = ids(*pairs)
    assert (found.pmcid, found.version) == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ('<article-version article-version-type="number">3</article-version>', 3),
        ('<article-version article-version-type="number">1.1</article-version>', 1),
        ('<article-version article-version-type="status">2</article-version>', 1),
        ("<article-version>2</article-version>", 1),
    ],
)
def test_the_version_of_jats_1_2_and_later(version: str, expected: int) -> None:
    assert article(version).version == expected
    several = f"<article-version>VoR</article-version>{version}"
    assert (
        article(f"<article-version-alternatives>{several}</article-version-alternatives>").version == expected
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [("12", 12), (" 12 ", 12), ("PMID12", None), ("0", None), ("²", None), ("9" * 10, None)],
)
def test_the_pmid(written: str, expected: int | None) -> None:
    assert ids(("pmid", written)).pmid == expected


@given(
    st.from_regex(r"10\.[1-9][0-9]{3,8}(\.[1-9][0-9]?)?/[A-Za-z0-9();:._/-]{1,40}", fullmatch=True),
    st.sampled_from(
        ["", "doi:", "DOI: ", "https://doi.org/", "http://dx.doi.org/", "HTTPS://DOI.ORG/", "info:doi/"]
    ),
    st.sampled_from(["", " ", "\n\t"]),
)
def test_a_doi_in_any_spelling(doi: str, before: str, around: str) -> None:
    assert ids(("doi", f"{around}{before}{doi}{around}")).doi == doi


@pytest.mark.parametrize(
    "written",
    ["", "10.1234", "10.12/x", "11.1234/x", "10.1234/ x", "none", "10.1234/" + "x" * 2000, "10.1234/x\u200f"],
)
def test_what_is_no_doi_is_none(written: str) -> None:
    assert ids(("doi", written)).doi is None


def test_the_first_doi_that_is_one_is_taken() -> None:
    assert ids(("doi", "to come"), ("doi", "10.1234/a"), ("doi", "10.1234/b")).doi == "10.1234/a"


def test_ids_of_other_articles_are_not_its_own() -> None:
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
    assert article(others, rest=rest) == article()


# Year


def dates(*pairs: tuple[str, str]) -> int | None:
    return article(
        "".join(f"<pub-date {attributes}><year>{year}</year></pub-date>" for attributes, year in pairs)
    ).year


PRINT, ELECTRONIC = (
    'date-type="pub" publication-format="print"',
    'date-type="pub" publication-format="electronic"',
)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([('pub-type="epub"', "2017"), ('pub-type="ppub"', "2018")], 2018),
        ([('pub-type="epub"', "2017"), ('pub-type="collection"', "2018")], 2018),
        ([('pub-type="epub"', "2017"), ('pub-type="collection"', "2016")], 2016),
        ([('pub-type="epub"', "2017"), ('pub-type="pmc-release"', "2018")], 2017),
        ([('pub-type="epreprint"', "2016"), ('pub-type="epub"', "2017")], 2017),
        ([('pub-type="epub-ppub"', "2018"), ('pub-type="epub"', "2017")], 2018),
        ([('pub-type="pmc-release"', "2018")], 2018),
        ([('pub-type="nihms-submitted"', "2018"), ('pub-type="ecorrected"', "2019")], None),
        ([(ELECTRONIC, "2017"), (PRINT, "2018")], 2018),
        ([(ELECTRONIC, "2017"), ('date-type="collection" publication-format="electronic"', "2018")], 2018),
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
def test_the_year_is_that_of_the_issue(pairs: list[tuple[str, str]], expected: int | None) -> None:
    assert dates(*pairs) == expected
    assert dates(*reversed(pairs)) == expected


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
def test_a_year_that_is_written_otherwise(date: str) -> None:
    assert article(date).year == 2018


# What it is


def test_the_journal_has_its_printed_title() -> None:
    group = "<journal-title-group><journal-title> A\n&amp; <sc>B</sc> </journal-title></journal-title-group>"
    assert article(journal=group).journal == "A & B"
    assert (
        article(journal="<journal-title>First</journal-title><journal-title>2</journal-title>").journal
        == "First"
    )
    assert article(journal="<journal-title/>").journal is None


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [("", "eng"), ('xml:lang=""', "eng"), ('xml:lang="de-CH"', "ger"), ('xml:lang="fra"', "fra")],
)
def test_the_language(attributes: str, expected: str) -> None:
    assert article(attributes=attributes).language == expected


@pytest.mark.parametrize(
    ("kind", "expected"), [*NOTICE_TYPES.items(), ("Expression of concern", "expression-of-concern")]
)
def test_notices(kind: str, expected: str) -> None:
    found = article(attributes=f'article-type=" {kind}"')
    assert (found.article_type, found.notice) == (kind.lower(), expected)


def title(words: str, related: str = "", attributes: str = "") -> bool:
    return article(
        f"<title-group><article-title>{words}</article-title></title-group>"
        + (f'<related-article related-article-type="{related}"/>' if related else ""),
        attributes,
    ).retracted


@pytest.mark.parametrize(
    "words",
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
def test_a_title_that_says_retracted(words: str) -> None:
    assert title(words)
    assert not title(words, "retracted-article")
    assert not title(words, attributes='article-type="retraction"')


@pytest.mark.parametrize("related", ["retraction-forward", "retraction-in", "Retraction-Forward"])
def test_an_article_that_points_to_its_retraction(related: str) -> None:
    assert title("Tides", related)
    assert not title("Tides", related, 'article-type="retraction"')


@pytest.mark.parametrize(
    ("words", "related"),
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
def test_what_is_not_retracted(words: str, related: str) -> None:
    assert not title(words, related)


def test_a_retraction_of_a_sub_article_is_not_its_own() -> None:
    rest = (
        "<sub-article><front-stub><title-group><article-title>Retracted: x</article-title></title-group>"
        '<related-article related-article-type="retraction-forward"/></front-stub></sub-article>'
    )
    assert not article(rest=rest).retracted


def custom(name: str, value: str, group: str = "custom-meta-group") -> str:
    item = f"<custom-meta><meta-name>{name}</meta-name><meta-value>{value}</meta-value></custom-meta>"
    return f"<{group}>{item}</{group}>"


@pytest.mark.parametrize("group", ["custom-meta-group", "custom-meta-wrap"])
@pytest.mark.parametrize("name", ["pmc-prop-manuscript", "is-manuscript"])
def test_manuscripts(group: str, name: str) -> None:
    old = '<article-id pub-id-type="manuscript">NIHMS1</article-id>'
    assert article(custom(name, "yes", group)).manuscript
    assert article(old).manuscript
    assert not article(old + custom(name, "no", group)).manuscript
    assert not article(custom("pmc-prop-open-access", "yes", group)).manuscript


def test_scanned_pages() -> None:
    page = '<preformat preformat-type="pmc-ocr-text">Words of a page</preformat>'
    assert article(rest=f"<body>{page}{page}</body>").ocr
    assert article(custom("pmc-prop-is-scanned-article", "yes")).ocr
    assert not article(custom("pmc-prop-is-scanned-article", "no")).ocr
    assert not article(rest="<body><preformat>code</preformat></body>").ocr


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
def test_each_place_of_a_licence(inside: str, expected: str | None) -> None:
    assert permissions(inside) == expected
    assert article(inside).licence == expected


def test_pmcs_own_licence_reference() -> None:
    assert article(custom("pmc-license-ref", "CC BY-NC-SA")).licence == "CC-BY-NC-SA"
    assert article(custom("pmc-license-ref", "TDM")).licence == "TDM"
    assert article(custom("licence", "CC BY")).licence is None


def test_of_two_places_that_disagree_the_stricter_wins() -> None:
    assert permissions(f'<license xlink:href="{BY}"/><license xlink:href="{BY_NC}"/>') == "CC-BY-NC"
    words = "<license-p>Under the Creative Commons Attribution Non-Commercial License.</license-p>"
    assert permissions(f'<license xlink:href="{BY}">{words}</license>') == "CC-BY-NC"
    link = f'<ext-link xlink:href="{BY_NC}">{BY}</ext-link>'
    assert permissions(f"<license><license-p>Under {link}.</license-p></license>") == "CC-BY-NC"
    assert (
        article(f'<license xlink:href="{BY}"/>{custom("pmc-license-ref", "CC BY-ND")}').licence == "CC-BY-ND"
    )


def test_the_waiver_for_data_does_not_free_the_article() -> None:
    waiver = f'The waiver (<uri xlink:href="{ZERO}">{ZERO}</uri>) applies to the data made available here.'
    assert permissions(f"<license><license-p>{waiver}</license-p></license>") is None
    assert permissions(f"<license><license-p>Free under CC BY. {waiver}</license-p></license>") == "CC-BY"
    assert permissions(f'<license xlink:href="{ZERO}"/>') == "CC0"


# The real ones


@needs_data
def test_real_articles_say_sane_things() -> None:
    licences: collections.Counter[str | None] = collections.Counter()
    articles = collections.Counter[str]()
    for path in sorted(Path(str(DATA), "jats").rglob("*")):
        if not path.name.endswith((".xml", ".nxml", ".gz")):
            continue
        data = path.read_bytes()
        root = etree.fromstring(gzip.decompress(data) if path.suffix == ".gz" else data, PARSER)
        own = re.search(r"PMC[1-9][0-9]+(?=/fulltext|\.n?xml)", str(path))
        if root.tag != "article" or own is None:
            continue
        found = parse_metadata(root)
        articles[found.language] += 1
        licences[found.licence] += 1
        # One folder of the collection holds the article of another id.
        assert found.pmcid == own[0] or own[0] == "PMC3167654", path
        assert 1800 <= (found.year or 0) <= 2026, path
        assert found.journal, path
        assert found.pmid or found.doi, path
        if found.licence is None:
            meta = root.find("front/article-meta")
            assert meta is not None
            said = [part.itertext() for part in meta.iter("license", "copyright-statement")]
            statement = " ".join(map(str, itertools.chain.from_iterable(said)))
            assert not re.search(r"creative ?commons|\bCC.?BY\b", statement, re.IGNORECASE), path
    assert articles == {"eng": articles.total()}
    assert articles.total() > 2000
    assert licences["CC-BY"] > 0.97 * articles.total()
    assert licences[None] < 0.01 * articles.total()
