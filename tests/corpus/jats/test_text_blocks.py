"""The text blocks of an article: their text, order, headings and parts."""

from __future__ import annotations

import dataclasses

import pytest
from lxml import etree

from bioshards.corpus import jats
from bioshards.corpus.jats import text_blocks, xml_tree
from bioshards.corpus.jats.filters import NOTE_PARTS, REFERENCES_PART, PmcConfig
from tests.support.corpus.small_articles import DROP_CITATIONS, small_article

PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
)


def parse_article(inside: str) -> etree._Element:
    return etree.fromstring(f'<article xmlns:xlink="http://www.w3.org/1999/xlink">{inside}</article>', PARSER)


def extract_body(inside: str, formula: str = "") -> list[tuple[str, str, str]]:
    """Return (part, headings, text) of the blocks of a body."""
    return extract_blocks(parse_article(f"<body>{inside}</body>"), formula)


def extract_blocks(tree: etree._Element, formula: str = "") -> list[tuple[str, str, str]]:
    """Return (part, headings, text) of the blocks of an article."""
    blocks = text_blocks.extract_blocks(tree, dataclasses.replace(DROP_CITATIONS, formula=formula))
    return [(block.part, " > ".join(block.headings), block.text) for block in blocks]


def extract_texts(inside: str, formula: str = "") -> list[str]:
    """Return the texts of a body that are neither publisher's notes nor references."""
    left_out = (*NOTE_PARTS, REFERENCES_PART)
    return [text for part, _, text in extract_body(inside, formula) if part not in left_out]


def build_front(inside: str) -> str:
    return f"<front><article-meta>{inside}</article-meta></front>"


FIGURE = "<fig><label>Fig. 1</label><caption><title>Gulls.</title><p>At sea.</p></caption><graphic/></fig>"


BOX_TITLE = "<caption><title>Box 1</title></caption>"
BOX = f"<boxed-text>{BOX_TITLE}<p>1</p><sec><title>A</title><p>2</p></sec></boxed-text>"
BOXED = [("body", "Box 1", "1"), ("body", "Box 1 > A", "2")]
BODIES: dict[str, tuple[str, list[tuple[str, str, str]]]] = {
    "labels cut off": (
        "<p>: Nests of gulls.</p><p>. This counts</p><p>:- no</p><p>.net of gulls</p><p>... and gulls</p>",
        [
            ("body", "", text)
            for text in ("Nests of gulls.", "This counts", ":- no", ".net of gulls", "... and gulls")
        ],
    ),
    "a work cited within a paragraph": (
        "<p>Ode [<mixed-citation>J. Gulls, 2</mixed-citation>] counted.</p>",
        [("body", "", "Ode counted.")],
    ),
    "nested sections": (
        "<p>0</p><sec><title>A</title><p>1</p><sec><title>B</title><p>2</p><sec><title>C</title><p>3</p></sec>"
        "</sec><p>4</p></sec><sec><p>5</p></sec>",
        [
            ("body", "", "0"),
            ("body", "A", "1"),
            ("body", "A > B", "2"),
            ("body", "A > B > C", "3"),
            ("body", "A", "4"),
            ("body", "", "5"),
        ],
    ),
    "a section with a label": (
        "<sec><label>1.</label><title>A<xref ref-type='bibr'>1</xref></title><p>x</p></sec>",
        [("body", "A", "x")],
    ),
    "captions after the paragraphs of their section": (
        f"<sec><title>A</title><p>1{FIGURE}</p>{FIGURE}<p>2</p><sec><title>B</title><p>3</p></sec></sec>",
        [
            ("body", "A", "1"),
            ("body", "A", "2"),
            *[("caption", "A > Fig. 1", "Gulls."), ("caption", "A > Fig. 1", "At sea.")] * 2,
            ("body", "A > B", "3"),
        ],
    ),
    "a table without its cells": (
        "<table-wrap><label>Table 1</label><caption><p>Counts.</p></caption>"
        "<table><tr><td>5</td></tr></table>"
        "<table-wrap-foot><fn><label>a</label><p>Only adults.</p></fn></table-wrap-foot></table-wrap>",
        [("caption", "Table 1", "Counts."), ("caption", "Table 1", "Only adults.")],
    ),
    "a figure of a group": (
        f"<fig-group><label>Figs 1, 2</label><caption><p>Both.</p></caption>{FIGURE}</fig-group>",
        [
            ("caption", "Figs 1, 2", "Both."),
            *[("caption", "Figs 1, 2 > Fig. 1", text) for text in ("Gulls.", "At sea.")],
        ],
    ),
    "a label that its caption repeats": (
        "<fig><label>Fig. 1</label><caption><p>Fig. 1. Gulls.</p></caption></fig>",
        [("caption", "Fig. 1", "Gulls.")],
    ),
    "a boxed text": (BOX, BOXED),
    "the title of a statement": (
        "<statement><label>1</label><title>Lemma</title><p>So.</p></statement>",
        [("body", "Lemma", "So.")],
    ),
    "run-in headings": (
        "<p><bold>Funding.</bold> None. Gulls. </p><p>Methods. <xref/>We saw.</p><p>Results.Terns</p>",
        [("body", "Funding", "None. Gulls."), ("body", "Methods", "We saw."), ("body", "", "Results.Terns")],
    ),
    "paragraphs that are only a heading": (
        "<sec><p>Auks.</p><p>Notes:</p><p>Gulls.</p><p>Terns.</p><p>Competing interests</p><p>No.</p></sec>",
        [
            ("body", "", "Auks."),
            ("body", "Notes", "Gulls."),
            ("body", "Notes", "Terns."),
            ("body", "Competing interests", "No."),
        ],
    ),
    "biographies of authors": (
        "<sec><title>About the authors</title><p>Ode counts gulls.</p></sec><sec sec-type='author-bio'>"
        "<title>Ada Ode</title><p>She nests.</p></sec><sec><title>About auks</title><p>They nest.</p></sec>"
        "<sec><title>Biographical Information</title><p>She wrote.</p></sec>",
        [("body", "About auks", "They nest.")],
    ),
    "a footnote after its paragraph": (
        "<p>Gulls<fn><label>1</label><p>Birds.</p></fn> nest.</p>",
        [("body", "", "Gulls nest."), ("footnote", "", "Birds.")],
    ),
}


@pytest.mark.parametrize("case", BODIES)
def test_blocks_of_a_body(case: str) -> None:
    inside, expected = BODIES[case]
    assert extract_body(inside) == expected


REPLY = (
    "<sub-article><front-stub><title-group><article-title>Reply</article-title></title-group></front-stub>"
    "<body><sec><title>A</title><p>1</p></sec></body></sub-article><response><body><p>2</p></body></response>"
)
ARTICLES: dict[str, tuple[str, list[tuple[str, str, str]]]] = {
    "title and subtitle": (
        build_front(
            "<title-group><article-title>Gulls</article-title><subtitle>A life</subtitle></title-group>"
        ),
        [("title", "", "Gulls: A life")],
    ),
    "several abstracts": (
        build_front(
            "<abstract><sec><title>Aim</title><p>1</p></sec></abstract>"
            "<abstract abstract-type='graphical'><p>2</p></abstract><abstract><p>3</p></abstract>"
            "<abstract abstract-type='plain-language-summary'><p>4</p></abstract>"
            "<trans-abstract><p>5</p></trans-abstract>"
        ),
        [
            ("abstract", "Abstract > Aim", "1"),
            ("other-abstract", "Graphical", "2"),
            ("other-abstract", "", "3"),
            ("summary", "Plain language summary", "4"),
            ("translated-abstract", "Abstract", "5"),
        ],
    ),
    "type of a main abstract": (
        build_front(
            "<abstract abstract-type='toc'><p>1</p></abstract>"
            "<abstract abstract-type='Unstructured'><p>2</p></abstract>"
        ),
        [("other-abstract", "Toc", "1"), ("abstract", "Abstract", "2")],
    ),
    "summary that is the only abstract": (
        build_front(
            "<abstract abstract-type='short'><p>1</p></abstract>"
            "<trans-abstract xml:lang='fr'><p>2</p></trans-abstract>"
        ),
        [("abstract", "Abstract", "1"), ("translated-abstract", "Abstract", "2")],
    ),
    "summary of an article without an abstract of its own type": (
        build_front(
            "<abstract abstract-type='short'><p>1</p></abstract>"
            "<abstract abstract-type='toc'><p>2</p></abstract>"
        ),
        [("summary", "Short", "1"), ("other-abstract", "Toc", "2")],
    ),
    "notes of authors: only boilerplate about the work": (
        build_front(
            "<author-notes><corresp>ode@example.org</corresp><fn fn-type='present-address'><p>Oslo</p></fn>"
            "<fn fn-type='conflict'><p>None.</p></fn></author-notes>"
        ),
        [("boilerplate", "Footnotes", "None.")],
    ),
    "floats": (
        f"<floats-group>{FIGURE}{BOX}</floats-group>",
        [("caption", "Fig. 1", "Gulls."), ("caption", "Fig. 1", "At sea."), *BOXED],
    ),
    "reviews and replies": (
        f"<body><p>0</p></body>{REPLY}",
        [
            ("body", "", "0"),
            ("sub-article", "Reply", "Reply"),
            ("sub-article", "Reply > A", "1"),
            ("sub-article", "", "2"),
        ],
    ),
    "back matter": (
        "<back><ack><p>We thank.</p></ack><app-group><app><title>More</title><p>1</p></app></app-group>"
        "<glossary><def-list><def-item><term>GUL</term><def><p>gull</p></def></def-item></def-list></glossary>"
        "<sec><title>Funding</title><p>None.</p></sec><notes><title>Note</title><p>2</p></notes>"
        "<ref-list><ref><mixed-citation>Ode, 2011</mixed-citation></ref></ref-list>"
        "<bio><p>Ode lives.</p></bio></back>",
        [
            ("acknowledgements", "Acknowledgements", "We thank."),
            ("appendix", "More", "1"),
            ("glossary", "Glossary", "GUL: gull"),
            ("boilerplate", "Funding", "None."),
            ("body", "Note", "2"),
        ],
    ),
    "acknowledgements and contributions by their titles": (
        "<back><ack><title>Authors' contributions</title><p>OO wrote.</p><sec><title>Acknowledgements</title>"
        "<p>We thank.</p></sec></ack><sec><title>6. Acknowledgments</title><p>We thank.</p></sec></back>",
        [
            ("boilerplate", "Authors' contributions", "OO wrote."),
            ("acknowledgements", "Authors' contributions > Acknowledgements", "We thank."),
            ("acknowledgements", "6. Acknowledgments", "We thank."),
        ],
    ),
    "footnotes": (
        "<back><fn-group><fn><p>Gulls are birds.</p></fn><fn fn-type='con'><p>OO wrote.</p></fn>"
        "<fn><p>Conflict of interest: none.</p></fn></fn-group>"
        "<fn-group><fn><p>Author contributions</p><p>AA wrote.</p></fn></fn-group></back>",
        [
            ("footnote", "Footnotes", "Gulls are birds."),
            ("boilerplate", "Footnotes", "OO wrote."),
            ("boilerplate", "Footnotes", "Conflict of interest: none."),
            ("boilerplate", "Footnotes > Author contributions", "AA wrote."),
        ],
    ),
}


@pytest.mark.parametrize("case", ARTICLES)
def test_blocks_of_an_article(case: str) -> None:
    article, expected = ARTICLES[case]
    assert extract_blocks(parse_article(article)) == expected


ALTERNATIVES = "<block-alternatives><graphic/><p>Gulls.</p><p>Mouettes.</p></block-alternatives>"
RELATED = "<related-article xlink:href='10.5555/1'>Ode et al. (2018)</related-article>"
SUPPLEMENT = "<supplementary-material><caption><p>Gulls.</p></caption></supplementary-material>"
YEAR = "<xref ref-type='bibr'>2001</xref>"
SIGN = "<xref ref-type='bibr'> ▶</xref>"
REFERENCES = "".join(
    f"<p>{number}. Ode A, Roe B. Of gulls and terns. Gull Lett. 20{number};{number}(2):3–{number}.</p>"
    for number in range(11, 15)
)


@pytest.mark.parametrize(
    ("inside", "texts"),
    [
        # Elements that are searched, skipped or blocks of their own.
        (
            "<disp-quote><p>Quoted.</p><attrib>O</attrib></disp-quote><new><p>New.</p></new>",
            ["Quoted.", "New."],
        ),
        ("<p><ext-link xlink:href='a'/>.</p><p>5</p><p> </p>", ["5"]),
        ("<p>Ode<disp-quote><p>Gulls.</p></disp-quote>said</p>", ["Ode", "Gulls.", "said"]),
        (ALTERNATIVES, ["Gulls."]),
        (f"<p>a{ALTERNATIVES}b</p>", ["a", "Gulls.", "b"]),
        (f"<p>Gulls {FIGURE} nest.</p>", ["Gulls nest.", "Gulls.", "At sea."]),
        (
            f"<p>Terns <named-content>sleep {SUPPLEMENT}</named-content> here.</p>",
            ["Terns sleep here.", "Gulls."],
        ),
        (
            f"<p>{RELATED} count gulls. doi: {RELATED}</p>{RELATED}",
            ["Ode et al. (2018) count gulls. doi: Ode et al. (2018)"],
        ),
        # Lists, definitions, verses and speeches.
        (
            "<list><list-item><label>1</label><p>One</p><list><list-item><p>in it</p></list-item></list>"
            "</list-item><list-item><p>two</p></list-item></list>",
            ["One", "in it", "two"],
        ),
        ("<p>Both: <list><list-item><p>one</p></list-item></list> and on.</p>", ["Both:", "one", "and on."]),
        (
            "<def-list><def-item><term>GUL:</term><def><p>a</p><p/><p>gull</p></def></def-item>"
            "<def-item><term>TRN</term></def-item></def-list>",
            ["GUL: a gull", "TRN"],
        ),
        (
            "<verse-group><verse-line>Sea,</verse-line><verse-line/><verse-line>and sky</verse-line>"
            "</verse-group>",
            ["Sea, and sky"],
        ),
        ("<speech><speaker>Ode</speaker><p>Gulls.</p><p/><p>Terns.</p></speech>", ["Ode: Gulls. Terns."]),
        ("<speech><speaker>Ode:</speaker><p>Gulls.</p></speech>", ["Ode: Gulls."]),
        ("<fig><caption><p>(XLSX 12 kb) Gulls.</p></caption></fig>", ["Gulls."]),
        # Marks of links, and tags that are text.
        (
            f"<p>Ode ({YEAR}{SIGN}); Roe ({YEAR}{SIGN}, a). On ▶ (▶).</p>",
            ["Ode (2001); Roe (2001, a). On ▶ (▶)."],
        ),
        ("<p>▸ Gulls (Ode, 2001 ▸; Fig. 4 ▸<italic>a</italic>).</p>", ["Gulls (Ode, 2001; Fig. 4a)."]),
        ("<p>Gulls (reviewed in [<xref ref-type='bibr'>1</xref>]) nest.</p>", ["Gulls nest."]),
        (
            "<p>a <![CDATA[<b>gull</b><br>at 10<sup>3</sup> m]]>, &lt;i&gt;Larus&lt;/i&gt; and &lt;x&gt;</p>",
            ["a gull at 10^3 m, Larus and <x>"],
        ),
        # Paragraphs that are headings of others, or not.
        ("<p>Gulls.</p><p>Competing interests</p>", ["Gulls.", "Competing interests"]),
        ("<p>Consent</p><p>Methods we saw.</p>", ["Consent", "Methods we saw."]),
        # References after a paragraph that is their title.
        (f"<p>Gulls.</p><p><bold>REFERENCES</bold></p>{REFERENCES}", ["Gulls."]),
        (
            f"<p>Gulls.</p><p><bold>References</bold></p>{REFERENCES}<p>Terns nest.</p>",
            ["Gulls.", "Terns nest."],
        ),
        (
            "<p>Gulls.</p><p>Literature cited</p><list><list-item><p>Ode, A. B. (2011). Of gulls, pp. 3–9."
            "</p></list-item><list-item><p>Roe, C. (in press). Terns. https://example.org</p></list-item></list>",
            ["Gulls."],
        ),
        (
            "<p>Gulls.</p><p>References 1. Ode A. Of gulls. 2011;3:4-5. 2. Roe B. Terns. 2012.</p>",
            ["Gulls."],
        ),
        (
            "<p>References</p><p>In 2011 we read all that was written of gulls.</p><p>In 2012 of terns.</p>",
            ["References", "In 2011 we read all that was written of gulls.", "In 2012 of terns."],
        ),
        (
            "<sec><title>References</title><p>In 2011 we read of gulls.</p><p>In 2012 of terns.</p></sec>",
            ["In 2011 we read of gulls.", "In 2012 of terns."],
        ),
        (f"<sec><title>References</title>{REFERENCES}</sec><p>Gulls.</p>", ["Gulls."]),
        (
            "<sec><title>References</title><p>All references are in one list.</p></sec>",
            ["All references are in one list."],
        ),
        ("<sec><title>Results</title><p>In 2011, gulls nested.</p></sec>", ["In 2011, gulls nested."]),
        ("<sec><title>Reference genome</title><p>That of 2011.</p></sec>", ["That of 2011."]),
        (
            "<p>Gulls.</p><sec><title>Reference</title><p>Ode (2011), Gull Society (1999).</p></sec>",
            ["Gulls."],
        ),
        ("<p>References to gulls in 2011 are few.</p>", ["References to gulls in 2011 are few."]),
    ],
)
def test_texts_of_a_body(inside: str, texts: list[str]) -> None:
    assert extract_texts(inside) == texts


@pytest.mark.parametrize(
    ("caption", "sentences"),
    [
        (
            "Map of OsG2. <bold>a</bold> Gulls. <bold>b</bold> Terns (P &lt; 0.05).",
            ["Map of OsG2.", "a Gulls. b Terns (P < 0.05)."],
        ),
        ("Map (of OsG2). a, Gulls; b, terns", ["Map (of OsG2).", "a, Gulls; b, terns"]),
        *((text, [text]) for text in ("Map of cv. a gull. b gulls", "Map of OsG2. a Gulls were alone.")),
        ("a Gulls. b Terns", ["a Gulls. b Terns"]),
    ],
)
def test_first_panel_of_a_caption_begins_a_sentence(caption: str, sentences: list[str]) -> None:
    assert extract_texts(f"<fig><caption><p>{caption}</p></caption></fig>") == sentences


DROPPED = [
    # Lists of references without a ref-list.
    "<sec><title>6. References</title><p>Ode A. Gulls. 2011.</p><p>Roe B. Terns. In press.</p></sec>",
    "<sec><title>REFERENCES</title><list><list-item><p>Ode A. Gulls. 2011a.</p></list-item></list></sec>",
    "<list><title>Literature cited</title><list-item><p>Ode A. Gulls. 1999.</p></list-item></list>",
    "<app><title>Bibliografía</title><p>Ode A. Gulls. 1999.</p></app>",
    "<p>&lt;h3&gt;References&lt;/h3&gt; &lt;ol&gt;&lt;li&gt;Ode A. Gulls.&lt;/li&gt;&lt;/ol&gt;</p>",
    *(
        f"<sec><title>Electronic notes</title><p>{note}</p></sec>"
        for note in (
            # Links.
            "DOI: http://dx.doi.org/10.5555/gulls.016",
            "https://example.org/gulls?term=1",
            "The online version of this article (doi:10.5555/1) contains supplementary material, as files.",
            "The Supplementary Material for this article can be found online at: https://example.org/gulls#s",
            "Supplementary Information accompanies this paper at 10.5555/s41598-018-1.",
            "Supplementary data are available at Gulls online.",
            "Below is the link to the electronic supplementary material.",
            "The following is the supplementary data related to this article:",
            "Supplementary material file. DOI: 10.5555/S16005368/vm2Isup3.cml",
            "gulls.example.ac.uk/nests?year=1",
            "www.gulls-example.org",
            "Transparency data associated with this article can be found in the online version at doi:10.5/1",
            "The following supporting information is available in the online version of this article—",
            "Additional supporting information may be found in the online version of this article:",
            # The editor and the dates of the article.
            "Academic Editor: Ola Q. Ode, University of Gulls",
            "Edited by O Ode",
            "Communicating editor: O.-Q. Ode",
            "Accepted for Publication: October 19, 2018.",
            "Published online: 3 Jan. 2019. doi:10.5555/gulls.1",
            "Received 3 May 2018; Accepted 5 June 2018",
            "2/4/2019",
            # The citation of the article.
            "Citation de la Ode A-B, Roe BC. 2011. Gulls of isles. Birds 3:e00015-18. https://doi.org/10.5555/1.",
            "Citation: Ode A, Roe B (2005) Gulls of islands. Birds 1(2): e11.",
            "How to cite this article: Ode, A. et al. Gulls. Birds 5, 11; doi: 10.5555/srep1 (2015).",
        )
    ),
]


@pytest.mark.parametrize("dropped", DROPPED)
def test_references_and_notes_about_the_article_are_dropped(dropped: str) -> None:
    assert extract_texts(f"<p>Gulls.</p>{dropped}") == ["Gulls."]


@pytest.mark.parametrize(
    "text",
    [
        "&lt;b&gt;References&lt;/b&gt; are cited.",
        # Links within sentences.
        "The data are available online at https://example.org/gulls.",
        "See https://example.org/gulls for the counts.",
        "Supplementary material of gulls. It is available online.",
        "Supplementary files are found at http://example.org/19/s1. The gulls were counted.",
        "Supplementary feeding of gulls is available online.",
        "Larus sp.",
        "L.canus",
        "Below is the link to the island.",
        "Transparency data on gulls are available.",
        # Words like those of notes.
        "Citation of gulls grew after 2011.",
        "Citation analysis A, in 2011.",
        "Edited by hand. The gulls were counted.",
        "Editorial gulls",
        "Received gulls: 3 May 2018 was warm",
        "3 May 2018: gulls",
        "Supplementary feeding",
        "Raw data.",
        "Source of gulls",
        "Reporting gulls",
        "The rate (PDF).",
        "A gene (9 kb)",
        "See the 12 Mb (of 3 Gb) region.",
        "(TIF)",
    ],
)
def test_other_paragraphs_are_kept(text: str) -> None:
    expected = text.replace("&lt;b&gt;", "").replace("&lt;/b&gt;", "")
    assert extract_texts(f"<p>Gulls.</p><p>{text}</p>") == ["Gulls.", expected]


@pytest.mark.parametrize("is_wrapped", [True, False])
def test_cells_of_oasis_tables_are_no_text(is_wrapped: bool) -> None:
    table = (
        '<o:table xmlns:o="http://www.niso.org/standards/z39-96/ns/oasis-exchange/table"><o:tgroup><o:row>'
        "<o:entry>cell</o:entry><o:entry><p>cell</p></o:entry></o:row></o:tgroup></o:table>"
    )
    table = f"<table-wrap><caption><p>Counts.</p></caption>{table}</table-wrap>" if is_wrapped else table
    for article in (f"<p>a{table}b</p>", f"<p>a b</p>{table}"):
        tree = xml_tree.parse_article(f"<article><body>{article}</body></article>".encode())
        texts = [block.text for block in text_blocks.extract_blocks(tree, DROP_CITATIONS)]
        assert texts == ["a b", "Counts."][: 1 + is_wrapped]


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("Click here for additional data file.", []),
        ("Of gulls. Download", ["Of gulls."]),
        ("Click here to view.(12K, pdf)", []),
        ("(1.3 MB TIF)", []),
        ("(12 KB XLSX)", []),
        ("(XLSX 12 kb)", []),
        ("(PDF, 1.2 MB)", []),
        ("(DOCX)", []),
        ("PDF file, 1.2 MB", []),
        ("Format: XLSX Size: 12KB Download file", []),
        ("Counts of gulls. Download Table S1, PDF file, 0.1 MB.", ["Counts of gulls."]),
        ("Counts of gulls. (XLSX 12 kb)", ["Counts of gulls."]),
        ("Counts of gulls (XLSX 12 kb).", ["Counts of gulls."]),
        ("Counts of gulls. (PDF 12 kb). Counts of terns. (DOC 3 kb)", ["Counts of gulls. Counts of terns."]),
        ("Counts of gulls. (TIF)", ["Counts of gulls."]),
        ("(RDS)", []),
        ("06 Feb 2031 Reviewed", []),
        ("mbird.01-s0001.docx", []),
        ("Gulls-2.dta.", []),
        ("Vídeo", []),
        ("Data set.", []),
        ("Spreadsheet", []),
        ("References", []),
        ("Document of gulls", ["Document of gulls"]),
        ("Counts of gulls.", ["Counts of gulls."]),
        ("The probability density function (PDF)", ["The probability density function (PDF)"]),
        ("A region of the gull’s genome (9 kb)", ["A region of the gull’s genome (9 kb)"]),
    ],
)
def test_captions_of_supplements_without_notes_about_files(caption: str, expected: list[str]) -> None:
    supplement = f"<supplementary-material><caption><p>{caption}</p></caption></supplementary-material>"
    assert extract_texts(supplement) == expected
    section = f"<sec><title>Supplementary information</title><p>{caption}</p></sec>"
    assert extract_texts(section) == expected
    figure = f"<fig><caption><p>Gulls.</p></caption>{supplement}</fig>"
    assert extract_texts(figure) == ["Gulls.", *expected]


def test_each_label_in_the_caption_of_a_supplement_is_a_heading() -> None:
    caption = (
        "File 1: Table S1. Eggs, see Table S2. Figure S1 Nests of gulls. Fig. S2: Wings. Table 3 has more."
    )
    xml = f"<supplementary-material><caption><p>{caption}</p></caption></supplementary-material>"
    assert extract_body(xml) == [
        ("caption", "File 1: Table S1", "Eggs, see Table S2."),
        ("caption", "Figure S1", "Nests of gulls."),
        ("caption", "Fig. S2", "Wings. Table 3 has more."),
    ]


@pytest.mark.parametrize(
    "note",
    [
        "[Color figure can be viewed at wileyonlinelibrary.com]",
        "[Colour figure can be viewed in the online issue, which is available at wileyonlinelibrary.com.]",
        "(Color figure online)",
        "(Color figure online).",
        "(For interpretation of the references to colour in this legend, see the web version of it.)",
        "For interpretation of the references to color in this figure, see the web version of this article.",
        "Color images available online at www.example.org/gulls",
        "See the online article for the color version of this figure.",
        "To view this figure in color, please see the online version of this journal.",
    ],
)
def test_captions_without_notes_about_colour(note: str) -> None:
    caption = f"<fig><caption><p>The colour of gulls. {note}</p></caption></fig>"
    assert extract_texts(caption) == ["The colour of gulls."]


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("<title>Figure S3.</title><p>Counts.</p>", [("caption", "Figure S3", "Counts.")]),
        ("<p><bold>Table 1.</bold> Counts of gulls.</p>", [("caption", "Table 1", "Counts of gulls.")]),
        ("<p>S1 Fig. A.</p><p>B.</p>", [("caption", "S1 Fig", "A."), ("caption", "S1 Fig", "B.")]),
        ("<p>Additional file 1: Figure S1. A.</p>", [("caption", "Additional file 1: Figure S1", "A.")]),
        ("<p>Figure 1—figure supplement 2. A.</p>", [("caption", "Figure 1—figure supplement 2", "A.")]),
        ("<title>Multimedia component 1</title><p>B.</p>", [("caption", "Multimedia component 1", "B.")]),
        ("<p>Figures 1 and 2. Gulls.</p>", [("caption", "Figures 1 and 2", "Gulls.")]),
        ("<p><bold>Table S7</bold> Counts.</p>", [("caption", "Table S7", "Counts.")]),
        ("<p>Additional file 1. .The gulls.</p>", [("caption", "Additional file 1", "The gulls.")]),
        ("<p>Figure 2 shows gulls.</p>", [("caption", "", "Figure 2 shows gulls.")]),
        ("<p>Table S1.</p>", [("caption", "", "Table S1.")]),
        ("<p><bold>Table SI.</bold> Gulls.</p>", [("caption", "Table SI", "Gulls.")]),
        ("<p>Of MN. a Rise (b) of.</p>", [("caption", "", "Of MN."), ("caption", "", "a Rise (b) of.")]),
    ],
)  # fmt: skip
def test_labels_in_captions_are_headings(caption: str, expected: list[tuple[str, str, str]]) -> None:
    assert extract_body(f"<fig><caption>{caption}</caption></fig>") == expected


@pytest.mark.parametrize(
    "label",
    [
        "Electronic supplementary material",
        "Supplementary Figures and Tables.",
        "SUPPLEMENTARY INFORMATION",
        "Description of Additional Supplementary Files",
        "Source Data for Figure 5",
        "Source Data for Figure S5",
        "Peer Review File",
        "Referees’ reports",
        "Reviewer comments",
        "Author's manuscript",
        "Appendix",
        "Expanded View Figures PDF",
        "Additional file",
        "Reporting Summary",
        "Authors’ original file for figure 7",
        "Additional supplementary materials: crystallographic information; 3D view; checkCIF report",
        "Web appendix: Supplementary material",
        "Supplementary References",
        "First Person interview",
        "Supplementary Text",
        "Texts S1 to S4",
        "Figs. S1 to S16",
        "Figure",
        "Extended.",
        "(continued)",
    ],
)
def test_labels_of_supplements_without_a_number_are_no_paragraphs(label: str) -> None:
    note = f"<fn-group><fn><p><bold>{label}</bold></p></fn></fn-group>"
    assert extract_texts(f"<p>Gulls.</p><supplementary-material><p>{label}</p></supplementary-material>") == [
        "Gulls."
    ]
    assert extract_texts(f"<p>Gulls.</p>{note}") == ["Gulls."]


def test_labels_are_no_paragraphs_unless_there_is_no_other_text() -> None:
    labels = "<p>Fig. 7</p><fig><label>Fig. 7</label><caption><p>Figure 7.</p></caption></fig>"
    assert extract_texts(f"<p>Gulls.</p>{labels}") == ["Gulls."]
    assert extract_texts(labels) == ["Fig. 7", "Figure 7."]
    title = "<title-group><article-title>Figure 7</article-title></title-group>"
    assert len(extract_blocks(parse_article(f"{build_front(title)}<body>{labels}</body>"))) == 3


def test_displayed_formulas_become_a_word_or_the_placeholder() -> None:
    inside = "<p>where <disp-formula><tex-math>$x$</tex-math></disp-formula> holds.</p>"
    assert extract_texts(inside) == ["where [FORMULA] holds."]
    assert extract_texts(inside, formula="[formula]") == ["where [formula] holds."]
    between = "<disp-formula><label>1</label></disp-formula>"
    assert extract_texts(between, formula="[formula]") == ["[formula]"]
    assert extract_texts(between) == []


def test_capital_after_a_displayed_formula_begins_a_sentence() -> None:
    formula = "<disp-formula><tex-math>$x$</tex-math></disp-formula>"
    inside = f"<p>Gulls are counted by {formula}{formula} The terns are counted since{formula} they nest.</p>"
    sentences = ["Gulls are counted by [FORMULA]", "The terns are counted since [FORMULA] they nest."]
    assert extract_texts(inside) == sentences
    for italic in ("<italic>N</italic>", "<italic toggle='no'>N</italic>"):  # flattened, and not
        assert extract_texts(f"<p>Gulls are {formula} {italic} is it.</p>") == [
            "Gulls are [FORMULA]",
            "N is it.",
        ]


@pytest.mark.parametrize(
    ("inside", "texts"),
    [
        ("Counted as: ▣where n is two.", ["Counted as: [FORMULA] where n is two."]),
        ("Counted as ▣, where n is two.", ["Counted as [FORMULA], where n is two."]),
        ("Counted as ▣▣ where n is two.", ["Counted as [FORMULA] where n is two."]),
        ("Counted, i.e. ▣ where n is two.", ["Counted, i.e. [FORMULA] where n is two."]),
        ("Counted as ▣", ["Counted as [FORMULA]"]),
        # Text that needs no word.
        ("Counted as follows: ▣", ["Counted as follows:"]),
        ("Counted as follows: ▣ We know.", ["Counted as follows:", "We know."]),
        ("Gulls are counted (1). ▣ where n is two.", ["Gulls are counted (1).", "where n is two."]),
        ("▣", []),
    ],
)
def test_a_displayed_formula_is_a_word_where_its_sentence_needs_one(inside: str, texts: list[str]) -> None:
    formula = "<disp-formula><tex-math>$x$</tex-math></disp-formula>"
    assert extract_texts(f"<p>{inside.replace('▣', formula)}</p>") == texts


@pytest.mark.parametrize(
    ("inside", "texts"),
    [
        ("<p>Given by</p>▣<p>where n is two.</p>", ["Given by [FORMULA] where n is two."]),
        ("<p>Given by:</p><p>▣ </p><p>where n is two.</p>", ["Given by: [FORMULA] where n is two."]),
        ("<p>Given by ▣</p><p>where n is two.</p>", ["Given by [FORMULA] where n is two."]),
        (
            "<p>As follows: ▣.</p><p>where n is.</p><p>and so.</p>",
            ["As follows: [FORMULA] where n is.", "and so."],
        ),
        ("<p>Given by (1).</p>▣<p>where n is two.</p>", ["Given by (1).", "where n is two."]),
        ("<p>Given by</p>▣<p>Gulls nest.</p>", ["Given by", "Gulls nest."]),
        ("<p>Given by</p><p>where n is two.</p>", ["Given by", "where n is two."]),
        ("▣<p>where n is two.</p>", ["where n is two."]),
        ("<p>Given by</p>▣<sec><title>A</title><p>where n is.</p></sec>", ["Given by", "where n is."]),
    ],
)
def test_a_sentence_goes_on_after_a_formula_in_the_next_paragraph(inside: str, texts: list[str]) -> None:
    assert (
        extract_texts(inside.replace("▣", "<disp-formula><tex-math>$x$</tex-math></disp-formula>")) == texts
    )


NUMBERED = (
    "<p>As in [<xref ref-type='bibr'>1</xref>], gulls nest<sup><xref ref-type='bibr'>2</xref>–"
    "<xref ref-type='bibr'>4</xref></sup>; terns [<xref ref-type='bibr'>5</xref>] too"
    "<xref ref-type='bibr'><sup>6</sup></xref> (<xref ref-type='bibr'>Ode, 2011</xref>) "
    "(<xref rid='b7'>7</xref>).</p>"
)


@pytest.mark.parametrize(
    ("citations", "author_year", "expected"),
    [
        ("mask", True, "As in [CITATION], gulls nest; terns too (Ode, 2011)."),
        ("drop", True, "As in, gulls nest; terns too (Ode, 2011)."),
        ("keep", True, "As in [1], gulls nest [2–4]; terns [5] too [6] (Ode, 2011) (7)."),
        ("mask", False, "As in [CITATION], gulls nest; terns too."),
        ("keep", False, "As in [1], gulls nest [2–4]; terns [5] too [6] (7)."),
    ],
)
def test_numeric_citations_are_masked_dropped_or_kept(
    citations: str, author_year: bool, expected: str
) -> None:
    tree = parse_article(
        f"<body><sec><title>As in <xref ref-type='bibr'>1</xref></title>{NUMBERED}</sec></body>"
    )
    [block] = text_blocks.extract_blocks(
        tree, PmcConfig(author_year_citations=author_year, citations=citations)
    )
    assert block.text == expected
    assert block.headings == ({"mask": "As in [CITATION]", "drop": "As in", "keep": "As in 1"}[citations],)


def test_references_are_counted() -> None:
    body = f"<body><p>Gulls.</p><p><bold>References</bold></p>{REFERENCES}</body>"
    document = jats.document(small_article(8, body=body), PmcConfig(titles=False))
    assert document.sentences == ["Gulls."]
    assert document.removed_characters["left out: references"] > 4 * 50


def test_signs_of_notes_of_tables_stay_with_them() -> None:
    notes = "".join(
        f"<fn><label>{label}</label><p>{text}</p></fn>"
        for label, text in (
            ("*", "Not known."),
            ("a", "At birth."),
            ("†", "† In winter."),
            ("**", "P &lt; 0.01."),
        )
    )
    table = (
        f"<table-wrap><caption><p>Gulls.</p></caption><table-wrap-foot>{notes}</table-wrap-foot></table-wrap>"
    )
    assert extract_texts(table) == ["Gulls.", "* Not known.", "At birth.", "† In winter.", "** P < 0.01."]


def test_footnotes_that_are_references_are_no_text() -> None:
    work = "<p>Ode AB. Of gulls [doctoral thesis]. Auk Town: Gull Faculty; 2031.</p>"
    sources = f"<fn><p><sup>a</sup> [{YEAR}], <sup>b</sup> [{YEAR}].</p></fn>".replace("2001", "42")
    table = (
        f"<table-wrap><caption><p>Gulls.</p></caption><table-wrap-foot><fn>{work}</fn>{sources}"
        "<fn><p><sup>c</sup>% of nests</p></fn></table-wrap-foot></table-wrap>"
    )
    notes = (
        f"<fn-group><fn>{work}</fn><fn fn-type='con'>{work}</fn><fn><p>Gulls nest.</p>{work}</fn></fn-group>"
    )
    own = "<fn-group><fn><p>Citation: Ode AB. Of gulls. Gull Lett. 2031;1:2-3.</p></fn></fn-group>"
    blocks = extract_body(f"{table}<p>Terns<fn>{work}</fn> nest.</p>{notes}{own}")
    assert [text for part, _, text in blocks if part not in (REFERENCES_PART, *NOTE_PARTS)] == [
        "Terns nest.",
        "Gulls nest.",
        "Gulls.",
        "% of nests",
    ]
    parts = [part for part, _, _ in blocks]
    assert (parts.count(REFERENCES_PART), parts.count("citation-note")) == (6, 1)


EN, ES = 'xml:lang="en"', 'xml:lang="es"'
MINE, THEIRS = "<p>Gulls nest.</p>", "<p>Las gaviotas.</p>"
ABSTRACTS = {
    "the second abstract": f"<abstract {ES}>{THEIRS}</abstract><abstract {EN}>{MINE}</abstract>",
    "a translation": f"<abstract {ES}>{THEIRS}</abstract><trans-abstract {EN}>{MINE}</trans-abstract>",
    "the first": f"<abstract>{MINE}</abstract><abstract {ES}>{THEIRS}</abstract>",
}


@pytest.mark.parametrize("case", ABSTRACTS)
def test_the_abstract_is_the_one_in_the_language_of_the_article(case: str) -> None:
    blocks = extract_blocks(parse_article(build_front(ABSTRACTS[case])))
    assert sorted(blocks) == [
        ("abstract", "Abstract", "Gulls nest."),
        ("translated-abstract", "Abstract", "Las gaviotas."),
    ]


def test_an_abstract_in_another_language_is_the_abstract_if_there_is_no_other() -> None:
    blocks = extract_blocks(parse_article(build_front(f'<abstract xml:lang="es">{THEIRS}</abstract>')))
    assert blocks == [("abstract", "Abstract", "Las gaviotas.")]


def test_notes_beside_the_metadata_are_read() -> None:
    metadata = (
        "<article-meta><abstract><p>Gulls.</p></abstract>"
        "<funding-group><funding-statement>The gulls paid.</funding-statement></funding-group>"
        "<custom-meta-group>"
        "<custom-meta><meta-name>Data availability</meta-name>"
        "<meta-value>All here.</meta-value></custom-meta>"
        "<custom-meta><meta-name>Version</meta-name><meta-value>7</meta-value></custom-meta>"
        "</custom-meta-group></article-meta>"
    )
    notes = (
        "<notes><title>Key messages</title><p>Gulls return.</p></notes>"
        "<notes><title>Data Availability</title><p>All here.</p></notes>"
        "<glossary><array><tbody><tr><td>GN</td><td>gull nest</td></tr></tbody></array></glossary>"
        "<ack><p>We thank the terns.</p></ack>"
    )
    dropped: dict[str, int] = {}
    tree = parse_article(f"<front>{metadata}{notes}</front><body><p>Auks.</p></body>")
    blocks = text_blocks.extract_blocks(tree, DROP_CITATIONS, dropped)
    assert [(block.part, " > ".join(block.headings), block.text) for block in blocks] == [
        ("abstract", "Abstract", "Gulls."),
        ("body", "Key messages", "Gulls return."),
        ("body", "", "Auks."),
        ("boilerplate", "Data Availability", "All here."),
        ("glossary", "Glossary", "GN: gull nest"),
        ("acknowledgements", "Acknowledgements", "We thank the terns."),
        ("boilerplate", "Funding", "The gulls paid."),
    ]
    assert dropped == {"custom-meta": len("Version7"), "meta-value": len("All here.")}


def test_notes_of_a_figure_in_its_attribution_are_read_and_its_source_is_counted() -> None:
    dropped: dict[str, int] = {}
    figure = "<fig><attrib><bold>Notes</bold>: (A) Nests.</attrib><attrib>Source: Ode.</attrib></fig>"
    blocks = text_blocks.extract_blocks(parse_article(f"<body>{figure}</body>"), DROP_CITATIONS, dropped)
    assert [block.text for block in blocks] == ["Notes: (A) Nests."]
    assert dropped == {"attrib": len("Source: Ode.")}


def test_words_of_a_pictured_table_are_counted() -> None:
    dropped: dict[str, int] = {}
    table = (
        "<table-wrap><caption><title>Nests</title></caption><search-text>Gull 3 4</search-text></table-wrap>"
    )
    blocks = text_blocks.extract_blocks(parse_article(f"<body>{table}</body>"), DROP_CITATIONS, dropped)
    assert [block.text for block in blocks] == ["Nests"]
    assert dropped == {"unknown element": len("Gull 3 4")}


LISTS = {
    "a list": "<list><title>Birds</title><list-item><title>First</title><p>Gull.</p></list-item></list>",
    "definitions": "<def-list><title>Birds &gt; First</title>"
    "<def-item><term>Gull.</term></def-item></def-list>",
    "verses": "<verse-group><title>Birds &gt; First</title><verse-line>Gull.</verse-line></verse-group>",
    "a quotation": "<disp-quote><title>Birds &gt; First</title><p>Gull.</p></disp-quote>",
}


@pytest.mark.parametrize("case", LISTS)
def test_titles_of_lists_are_headings(case: str) -> None:
    assert extract_body(LISTS[case]) == [("body", "Birds > First", "Gull.")]
