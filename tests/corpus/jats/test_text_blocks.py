"""The text blocks of an article: their text, order, headings and parts."""

from __future__ import annotations

import dataclasses

import pytest
from lxml import etree

from bioshards.corpus.jats import text_blocks, xml_tree
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.jats.text_blocks import TextBlock
from tests.support.corpus.small_articles import DROP_CITATIONS

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
    return [text for _, _, text in extract_body(inside, formula)]


FIGURE = "<fig><label>Fig. 1</label><caption><title>Gulls.</title><p>At sea.</p></caption><graphic/></fig>"


# Sections


def test_headings_of_nested_sections() -> None:
    assert extract_body(
        "<p>0</p><sec><title>A</title><p>1</p><sec><title>B</title><p>2</p><sec><title>C</title><p>3</p></sec></sec>"
        "<p>4</p></sec><sec><p>5</p></sec>"
    ) == [
        ("body", "", "0"),
        ("body", "A", "1"),
        ("body", "A > B", "2"),
        ("body", "A > B > C", "3"),
        ("body", "A", "4"),
        ("body", "", "5"),
    ]


def test_labels_of_sections_are_ignored() -> None:
    assert extract_body(
        "<sec><label>1.</label><title>A<xref ref-type='bibr'>1</xref></title><p>x</p></sec>"
    ) == [("body", "A", "x")]


def test_unknown_elements_are_searched_for_paragraphs() -> None:
    assert extract_texts(
        "<disp-quote><p>Quoted.</p><attrib>Ode</attrib></disp-quote><new><p>New.</p></new>"
    ) == [
        "Quoted.",
        "New.",
    ]


def test_paragraph_of_punctuation_is_skipped() -> None:
    assert extract_texts("<p><ext-link xlink:href='a'/>.</p><p>5</p><p> </p>") == ["5"]


# Figures and tables


def test_captions_follow_the_paragraphs_of_their_section() -> None:
    assert extract_body(
        f"<sec><title>A</title><p>1{FIGURE}</p>{FIGURE}<p>2</p><sec><title>B</title><p>3</p></sec></sec>"
    ) == [
        ("body", "A", "1"),
        ("body", "A", "2"),
        *[("caption", "A > Fig. 1", "Gulls."), ("caption", "A > Fig. 1", "At sea.")] * 2,
        ("body", "A > B", "3"),
    ]


def test_quotations_and_alternatives_are_blocks_of_their_own() -> None:
    assert extract_texts("<p>Ode<disp-quote><p>Gulls.</p><attrib>O.</attrib></disp-quote>said</p>") == [
        *("Ode", "Gulls.", "said"),
    ]
    alternatives = "<block-alternatives><graphic/><p>Gulls.</p><p>Mouettes.</p></block-alternatives>"
    assert extract_texts(f"{alternatives}<p>a{alternatives}b</p>") == ["Gulls.", "a", "Gulls.", "b"]


@pytest.mark.parametrize(
    "references",
    [
        "<sec><title>6. References</title><p>Ode A. Gulls. 2011.</p><p>Roe B. Terns. In press.</p></sec>",
        "<sec><title>REFERENCES</title><list><list-item><p>Ode A. Gulls. 2011a.</p></list-item></list></sec>",
        "<list><title>Literature cited</title><list-item><p>Ode A. Gulls. 1999.</p></list-item></list>",
        "<app><title>Bibliografía</title><p>Ode A. Gulls. 1999.</p></app>",
        "<p>&lt;h3&gt;References&lt;/h3&gt; &lt;ol&gt;&lt;li&gt;Ode A. Gulls.&lt;/li&gt;&lt;/ol&gt;</p>",
    ],
)
def test_references_without_a_ref_list_are_dropped(references: str) -> None:
    assert extract_texts(f"<p>Gulls nest.</p>{references}") == ["Gulls nest."]


@pytest.mark.parametrize(
    "section",
    [
        "<sec><title>References</title><p>All references are in one list.</p></sec>",
        "<sec><title>Results</title><p>In 2011, gulls nested.</p></sec>",
        "<sec><title>Reference genome</title><p>That of 2011.</p></sec>",
        "<p>&lt;b&gt;References&lt;/b&gt; are cited.</p>",
    ],
)
def test_text_about_references_is_kept(section: str) -> None:
    assert len(extract_texts(section)) == 1


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


def test_figure_leaves_no_gap_in_its_sentence() -> None:
    assert extract_texts(f"<p>Gulls {FIGURE} nest.</p>")[0] == "Gulls nest."


def test_captions_of_the_floats_group_have_no_section() -> None:
    blocks = extract_blocks(parse_article(f"<body><p>x</p></body><floats-group>{FIGURE}</floats-group>"))
    assert blocks[1:] == [("caption", "Fig. 1", "Gulls."), ("caption", "Fig. 1", "At sea.")]


def test_captions_and_footnotes_of_tables_without_cells() -> None:
    table = (
        "<table-wrap><label>Table 1</label><caption><p>Counts.</p></caption>"
        "<table><tr><td>5</td></tr></table>"
        "<table-wrap-foot><fn><label>a</label><p>Only adults.</p></fn></table-wrap-foot></table-wrap>"
    )
    assert extract_body(table) == [("caption", "Table 1", "Counts."), ("caption", "Table 1", "Only adults.")]


def test_captions_of_figure_groups_are_nested() -> None:
    group = f"<fig-group><label>Figs 1, 2</label><caption><p>Both.</p></caption>{FIGURE}</fig-group>"
    assert extract_body(group)[:2] == [
        ("caption", "Figs 1, 2", "Both."),
        ("caption", "Figs 1, 2 > Fig. 1", "Gulls."),
    ]


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("Click here for additional data file.", []),
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
        ("mbird.01-s0001.docx", []),
        ("Gulls-2.dta.", []),
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


@pytest.mark.parametrize(
    "text", ["The rate (PDF).", "A gene (9 kb)", "See the 12 Mb (of 3 Gb) region.", "(TIF)"]
)
def test_words_of_paragraphs_that_could_be_notes_about_files_are_kept(text: str) -> None:
    assert extract_texts(f"<p>{text}</p>") == [text]


@pytest.mark.parametrize(
    "note",
    [
        "[Color figure can be viewed at wileyonlinelibrary.com]",
        "[Colour figure can be viewed in the online issue, which is available at wileyonlinelibrary.com.]",
        "(Color figure online)",
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
        ("<p>Figures 1 and 2. Gulls.</p>", [("caption", "Figures 1 and 2", "Gulls.")]),
        ("<p>Figure 2 shows gulls.</p>", [("caption", "", "Figure 2 shows gulls.")]),
        ("<p>Table S1.</p>", [("caption", "", "Table S1.")]),
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
    ],
)
def test_labels_of_supplements_without_a_number_are_no_paragraphs(label: str) -> None:
    note = f"<fn-group><fn><p><bold>{label}</bold></p></fn></fn-group>"
    assert extract_texts(f"<p>Gulls.</p><supplementary-material><p>{label}</p></supplementary-material>") == [
        "Gulls."
    ]
    assert extract_texts(f"<p>Gulls.</p>{note}") == ["Gulls."]


@pytest.mark.parametrize("text", ["Supplementary feeding", "Raw data.", "Source of gulls", "Reporting gulls"])
def test_captions_like_labels_of_supplements_are_kept(text: str) -> None:
    assert extract_texts(f"<p>Gulls.</p><p>{text}</p>") == ["Gulls.", text]


def test_labels_are_no_paragraphs_unless_there_is_no_other_text() -> None:
    labels = "<p>Fig. 7</p><fig><label>Fig. 7</label><caption><p>Figure 7.</p></caption></fig>"
    assert extract_texts(f"<p>Gulls.</p>{labels}") == ["Gulls."]
    assert extract_texts(labels) == ["Fig. 7", "Figure 7."]
    title = "<title-group><article-title>Figure 7</article-title></title-group>"
    assert len(extract_blocks(parse_article(f"{build_front(title)}<body>{labels}</body>"))) == 3


@pytest.mark.parametrize(
    "note",
    [
        "DOI: http://dx.doi.org/10.5555/gulls.016",
        "https://example.org/gulls?term=1",
        "The online version of this article (doi:10.5555/1) contains supplementary material, which is there.",
        "The Supplementary Material for this article can be found online at: https://example.org/gulls#s",
        "Supplementary Information accompanies this paper at 10.5555/s41598-018-1.",
        "Supplementary data are available at Gulls online.",
        "Below is the link to the electronic supplementary material.",
        "The following is the supplementary data related to this article:",
        "Supplementary material file. DOI: 10.5555/S16005368/vm2Isup3.cml",
        "gulls.example.ac.uk/nests?year=1",
        "www.gulls-example.org",
        "Transparency data associated with this article can be found in the online version at doi:10.5555/1.",
        "The following supporting information is available in the online version of this article—",
        "Additional supporting information may be found in the online version of this article:",
        # The editor and the dates of the article
        "Academic Editor: Ola Q. Ode, University of Gulls",
        "Edited by O Ode",
        "Communicating editor: O.-Q. Ode",
        "Accepted for Publication: October 19, 2018.",
        "Published online: 3 Jan. 2019. doi:10.5555/gulls.1",
        "Received 3 May 2018; Accepted 5 June 2018",
        "2/4/2019",
        # The citation of the article
        "Citation de la Ode A-B, Roe BC. 2011. Gulls of islands. Birds 3:e00015-18. https://doi.org/10.5555/1.",
        "Citation: Ode A, Roe B (2005) Gulls of islands. Birds 1(2): e11.",
        "How to cite this article: Ode, A. et al. Gulls. Birds 5, 11; doi: 10.5555/srep1 (2015).",
    ],
)
def test_paragraphs_of_links_are_dropped(note: str) -> None:
    assert extract_texts(f"<p>Gulls.</p><sec><title>Electronic notes</title><p>{note}</p></sec>") == [
        "Gulls."
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The data are available online at https://example.org/gulls.",
        "See https://example.org/gulls for the counts.",
        "Supplementary material of gulls. It is available online.",
        "Supplementary files are found at http://example.org/19/s1. The gulls were counted.",
        "Supplementary feeding of gulls is available online.",
        "Larus sp.",
        "L.canus",
        "Below is the link to the island.",
        "Citation of gulls grew after 2011.",
        "Citation analysis A, in 2011.",
        "Transparency data on gulls are available.",
        "Edited by hand. The gulls were counted.",
        "Editorial gulls",
        "Received gulls: 3 May 2018 was warm",
        "3 May 2018: gulls",
    ],
)
def test_sentences_with_links_are_kept(text: str) -> None:
    assert extract_texts(f"<p>Gulls.</p><p>{text}</p>") == ["Gulls.", text]


def test_related_article_in_a_sentence_is_part_of_it() -> None:
    article = "<related-article xlink:href='10.5555/1'>Ode et al. (2018)</related-article>"
    assert extract_texts(f"<p>{article} count gulls. doi: {article}</p>{article}") == [
        "Ode et al. (2018) count gulls. doi: Ode et al. (2018)"
    ]


def test_signs_of_links_are_removed() -> None:
    year = "<xref ref-type='bibr'>2001</xref>"
    sign = "<xref ref-type='bibr'> ▶</xref>"
    assert extract_texts(f"<p>Ode ({year}{sign}); Roe ({year}{sign}, a). Press ▶ (▶).</p>") == [
        "Ode (2001); Roe (2001, a). Press ▶ (▶)."
    ]
    assert extract_texts("<p>▸ Gulls (Ode, 2001 ▸; Fig. 4 ▸<italic>a</italic>).</p>") == [
        "Gulls (Ode, 2001; Fig. 4a)."
    ]


def test_label_that_its_caption_repeats_is_one_heading() -> None:
    caption = "<fig><label>Fig. 1</label><caption><p>Fig. 1. Gulls.</p></caption></fig>"
    assert extract_body(caption) == [("caption", "Fig. 1", "Gulls.")]


# Boxes, lists and other content of paragraphs


def test_boxed_text_is_a_section_of_the_body() -> None:
    box = (
        "<boxed-text><caption><title>Box 1</title></caption><p>1</p>"
        "<sec><title>A</title><p>2</p></sec></boxed-text>"
    )
    boxed = [("body", "Box 1", "1"), ("body", "Box 1 > A", "2")]
    assert extract_body(box) == boxed
    assert extract_blocks(parse_article(f"<floats-group>{box}</floats-group>")) == boxed


def test_list_items_are_blocks_without_labels() -> None:
    assert extract_texts(
        "<list><list-item><label>1</label><p>One</p>"
        "<list><list-item><p>in it</p></list-item></list></list-item>"
        "<list-item><p>two</p></list-item></list>"
    ) == ["One", "in it", "two"]


def test_list_splits_its_paragraph() -> None:
    assert extract_texts("<p>Both: <list><list-item><p>one</p></list-item></list> and on.</p>") == [
        "Both:",
        "one",
        "and on.",
    ]


def test_definitions_have_term_and_meaning() -> None:
    assert extract_texts(
        "<def-list><def-item><term>GUL:</term><def><p>a gull</p></def></def-item>"
        "<def-item><term>TRN</term></def-item></def-list>"
    ) == ["GUL: a gull", "TRN"]


def test_verses_and_speeches_are_one_line() -> None:
    assert extract_texts(
        "<verse-group><verse-line>Sea,</verse-line><verse-line>and sky</verse-line></verse-group>"
    ) == ["Sea, and sky"]
    assert extract_texts("<speech><speaker>Ode</speaker><p>Gulls.</p><p>Terns.</p></speech>") == [
        "Ode: Gulls. Terns."
    ]


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (
            "<def-list><def-item><term>GUL</term><def><p>a</p><p/><p>gull</p></def></def-item></def-list>",
            "GUL: a gull",
        ),
        (
            "<verse-group><verse-line>Sea</verse-line><verse-line/><verse-line>sky</verse-line></verse-group>",
            "Sea sky",
        ),
        ("<speech><speaker>Ode</speaker><p>Gulls.</p><p/><p>Terns.</p></speech>", "Ode: Gulls. Terns."),
        ("<fig><caption><p>(XLSX 12 kb) Gulls.</p></caption></fig>", "Gulls."),
    ],
)
def test_parts_without_text_leave_no_second_blank(element: str, text: str) -> None:
    assert extract_texts(element) == [text]


def test_title_of_a_statement_is_a_heading() -> None:
    assert extract_body("<statement><label>1</label><title>Lemma</title><p>So.</p></statement>") == [
        ("body", "Lemma", "So.")
    ]


def test_displayed_formulas_become_a_blank_or_the_placeholder() -> None:
    inside = "<p>where <disp-formula><tex-math>$x$</tex-math></disp-formula> holds.</p>"
    assert extract_texts(inside) == ["where holds."]
    assert extract_texts(inside, formula="[formula]") == ["where [formula] holds."]
    between = "<disp-formula><label>1</label></disp-formula>"
    assert extract_texts(between, formula="[formula]") == ["[formula]"]
    assert extract_texts(between) == []


def test_capital_after_a_displayed_formula_begins_a_sentence() -> None:
    formula = "<disp-formula><tex-math>$x$</tex-math></disp-formula>"
    inside = f"<p>Gulls are counted by {formula}{formula} The terns are counted since{formula} they nest.</p>"
    assert extract_texts(inside) == ["Gulls are counted by", "The terns are counted since they nest."]
    for italic in ("<italic>N</italic>", "<italic toggle='no'>N</italic>"):  # flattened, and not
        assert extract_texts(f"<p>Gulls are {formula} {italic} is it.</p>") == ["Gulls are", "N is it."]


def test_tags_that_are_text_are_removed() -> None:
    inside = (
        "<p>a <![CDATA[<b>gull</b><br>at 10<sup>3</sup> m]]>, &lt;i&gt;Larus&lt;/i&gt; and &lt;sec&gt;</p>"
    )
    assert extract_texts(inside) == ["a gull at 10^3 m, Larus and <sec>"]


def test_first_panel_of_a_caption_begins_a_sentence() -> None:
    def extract_caption(text: str) -> list[str]:
        return extract_texts(f"<fig><caption><p>{text}</p></caption></fig>")

    assert extract_caption("Map of OsG2. <bold>a</bold> Gulls. <bold>b</bold> Terns (P &lt; 0.05).") == [
        "Map of OsG2.",
        "a Gulls. b Terns (P < 0.05).",
    ]
    assert extract_caption("Map (of OsG2). a, Gulls; b, terns") == ["Map (of OsG2).", "a, Gulls; b, terns"]
    for text in ("Map of cv. a gull. b gulls", "Map of OsG2. a Gulls were alone.", "a Gulls. b Terns"):
        assert extract_caption(text) == [text]


def test_run_in_heading_is_no_sentence() -> None:
    assert extract_body("<p><bold>Funding.</bold> None. Gulls. </p><p>Methods. <xref/>We saw.</p>") == [
        ("body", "Funding", "None. Gulls."),
        ("body", "Methods", "We saw."),
    ]
    assert extract_texts("<p>Gulls. Terns.</p><p>Results.Terns</p>") == ["Gulls. Terns.", "Results.Terns"]


def test_paragraph_that_is_only_a_heading_is_that_of_the_next() -> None:
    notes = "<p>Notes:</p><p>Gulls.</p><p>Terns.</p>"
    assert extract_body(f"<sec><p>Auks.</p>{notes}<p>Competing interests</p><p>None.</p></sec>") == [
        ("body", "", "Auks."),
        ("body", "Notes", "Gulls."),
        ("body", "Notes", "Terns."),
        ("body", "Competing interests", "None."),
    ]
    group = "<fn-group><fn><p>Author contributions</p><p>OO wrote.</p></fn></fn-group>"
    assert extract_blocks(parse_article(f"<back>{group}</back>")) == [
        ("boilerplate", "Footnotes > Author contributions", "OO wrote.")
    ]
    assert extract_texts("<p>Gulls.</p><p>Competing interests</p>") == ["Gulls.", "Competing interests"]
    assert extract_texts("<p>Consent</p><p>Methods we saw.</p>") == ["Consent", "Methods we saw."]


# Footnotes


def test_footnotes_follow_their_paragraph() -> None:
    assert extract_body("<p>Gulls<fn><label>1</label><p>Birds.</p></fn> nest.</p>") == [
        ("body", "", "Gulls nest."),
        ("footnote", "", "Birds."),
    ]


def test_footnotes_of_an_article_are_footnotes_or_boilerplate() -> None:
    notes = "".join(
        f"<fn {kind}><p>{text}</p></fn>"
        for kind, text in (
            ("", "Gulls are birds."),
            ("fn-type='con'", "OO wrote."),
            ("", "Conflict of interest: none."),
        )
    )
    assert extract_blocks(parse_article(f"<back><fn-group>{notes}</fn-group></back>")) == [
        ("footnote", "Footnotes", "Gulls are birds."),
        ("boilerplate", "Footnotes", "OO wrote."),
        ("boilerplate", "Footnotes", "Conflict of interest: none."),
    ]


def test_author_notes_keep_only_boilerplate_about_the_work() -> None:
    notes = (
        "<author-notes><corresp>ode@example.org</corresp><fn fn-type='present-address'><p>Oslo</p></fn>"
        "<fn fn-type='conflict'><p>None.</p></fn></author-notes>"
    )
    assert extract_blocks(parse_article(f"<front><article-meta>{notes}</article-meta></front>")) == [
        ("boilerplate", "Footnotes", "None.")
    ]


# Front and back


def build_front(inside: str) -> str:
    return f"<front><article-meta>{inside}</article-meta></front>"


def test_title_and_subtitle_are_one_line() -> None:
    group = "<title-group><article-title>Gulls</article-title><subtitle>A life</subtitle></title-group>"
    assert extract_blocks(parse_article(build_front(group))) == [("title", "", "Gulls: A life")]


def test_parts_of_several_abstracts() -> None:
    abstracts = (
        "<abstract><sec><title>Aim</title><p>1</p></sec></abstract>"
        "<abstract abstract-type='graphical'><p>2</p></abstract>"
        "<abstract><p>3</p></abstract><abstract abstract-type='plain-language-summary'><p>4</p></abstract>"
        "<trans-abstract><p>5</p></trans-abstract>"
    )
    assert extract_blocks(parse_article(build_front(abstracts))) == [
        ("abstract", "Abstract > Aim", "1"),
        ("other-abstract", "Graphical", "2"),
        ("other-abstract", "", "3"),
        ("summary", "Plain language summary", "4"),
        ("translated-abstract", "Abstract", "5"),
    ]


def test_parts_of_back_matter() -> None:
    back = (
        "<ack><p>We thank.</p></ack><app-group><app><title>More</title><p>1</p></app></app-group>"
        "<glossary><def-list><def-item><term>GUL</term><def><p>gull</p></def></def-item></def-list></glossary>"
        "<sec><title>Funding</title><p>None.</p></sec><notes><title>Note</title><p>2</p></notes>"
        "<ref-list><ref><mixed-citation>Ode, 2011</mixed-citation></ref></ref-list>"
        "<bio><p>Ode lives.</p></bio>"
    )
    assert extract_blocks(parse_article(f"<back>{back}</back>")) == [
        ("acknowledgements", "Acknowledgements", "We thank."),
        ("appendix", "More", "1"),
        ("glossary", "Glossary", "GUL: gull"),
        ("boilerplate", "Funding", "None."),
        ("body", "Note", "2"),
    ]


def test_reviews_and_replies_are_sub_articles() -> None:
    reply = (
        "<sub-article><front-stub><title-group><article-title>Reply</article-title></title-group></front-stub>"
        "<body><sec><title>A</title><p>1</p></sec></body></sub-article><response><body><p>2</p></body></response>"
    )
    assert extract_blocks(parse_article(f"<body><p>0</p></body>{reply}"))[1:] == [
        ("sub-article", "Reply", "Reply"),
        ("sub-article", "Reply > A", "1"),
        ("sub-article", "", "2"),
    ]


def test_author_year_citations_can_be_removed() -> None:
    tree = parse_article("<body><p>Gulls (<xref ref-type='bibr'>Ode, 2011</xref>) nest.</p></body>")
    assert text_blocks.extract_blocks(tree, PmcConfig(author_year_citations=False, citations="drop")) == [
        TextBlock("body", (), "Gulls nest.")
    ]


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


def test_words_that_introduce_citations_are_removed_with_them() -> None:
    inside = "<p>Gulls (reviewed in [<xref ref-type='bibr'>1</xref>]) nest.</p>"
    assert extract_texts(inside) == ["Gulls nest."]


def test_acknowledgements_and_contributions_are_distinguished_by_title() -> None:
    back = (
        "<ack><title>Authors' contributions</title><p>OO wrote.</p>"
        "<sec><title>Acknowledgements</title><p>We thank.</p>"
        "</sec></ack><sec><title>6. Acknowledgments</title><p>We thank.</p></sec>"
    )
    assert [part for part, _, _ in extract_blocks(parse_article(f"<back>{back}</back>"))] == [
        "boilerplate",
        "acknowledgements",
        "acknowledgements",
    ]


def test_captions_of_supplements_inside_inline_elements_are_kept() -> None:
    supplement = "<supplementary-material><caption><p>Gulls.</p></caption></supplementary-material>"
    assert extract_texts(f"<p>Terns <named-content>sleep {supplement}</named-content> here.</p>") == [
        "Terns sleep here.",
        "Gulls.",
    ]
