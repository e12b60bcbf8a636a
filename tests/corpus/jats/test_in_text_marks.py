"""Removal of in-text citations and of the marks of notes: examples, and properties of generated text."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.jats import in_text_marks, text_blocks, xml_tree
from bioshards.corpus.jats.in_text_marks import CITATION_MARK, REMOVAL_MARK
from tests.support.corpus.small_articles import DROP_CITATIONS


def insert_marks(text: str) -> str:
    """Replace ¶ by the mark of a citation, and ◊ by the mark of another removed element."""
    return text.replace("¶", CITATION_MARK).replace("◊", REMOVAL_MARK)


def remove_citations(text: str) -> str:
    return in_text_marks.remove_marks(insert_marks(text))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        # Superscripts: only the number is removed.
        ("Gulls nest on cliffs.¶ Terns do not.", "Gulls nest on cliffs. Terns do not."),
        ("Gulls nest on cliffs¶. Terns do not.", "Gulls nest on cliffs. Terns do not."),
        ("Gulls nest on cliffs.¶,¶ Terns do not.", "Gulls nest on cliffs. Terns do not."),
        ("Gulls nest on cliffs.¶–¶,¶ Terns do not.", "Gulls nest on cliffs. Terns do not."),
        ("gulls¶ and terns¶, but no auks¶", "gulls and terns, but no auks"),
        ("gulls¶and terns", "gulls and terns"),
        ("gulls,¶ terns", "gulls, terns"),
        ("(gulls¶)", "(gulls)"),
        ("“gulls¶” and ‘terns¶’", "“gulls” and ‘terns’"),
        ("gulls¶—not terns", "gulls—not terns"),
        ("gulls¶(and terns)", "gulls (and terns)"),
        ("gull¶-like", "gull-like"),
        # Brackets are removed with their content and the blank before them.
        ("Gulls nest on cliffs [¶]. Terns do not.", "Gulls nest on cliffs. Terns do not."),
        ("Gulls nest on cliffs[¶]. Terns do not.", "Gulls nest on cliffs. Terns do not."),
        ("Gulls nest on cliffs. [¶] Terns do not.", "Gulls nest on cliffs. Terns do not."),
        ("gulls [¶, ¶–¶; ¶] nest", "gulls nest"),
        ("gulls (¶ and ¶) nest", "gulls nest"),
        ("gulls [¶]–[¶] nest", "gulls nest"),
        ("gulls [¶], [¶] and [¶] nest", "gulls nest"),
        ("gulls [¶–12] nest", "gulls nest"),  # only the first number of the range is marked up
        ("gulls [¶]; terns [¶]", "gulls; terns"),
        ("gulls ([¶]) nest", "gulls nest"),
        ("gulls [[¶], [¶]] nest", "gulls nest"),
        ("gulls \n[\n¶\n,\n¶\n]\n nest", "gulls nest"),
        ("gulls (¶)(¶) nest", "gulls nest"),
        ("gulls (¶, pp. 4–5) nest", "gulls (pp. 4–5) nest"),
        # A bracket with other text is kept; separators are removed.
        ("gulls (an old idea [¶]) nest", "gulls (an old idea) nest"),
        ("gulls (Table 1; [¶]) nest", "gulls (Table 1) nest"),
        ("gulls ([¶]; but not on Skye) nest", "gulls (but not on Skye) nest"),
        ("gulls ([¶]; Table 1 (top)) nest", "gulls (Table 1 (top)) nest"),
        ("gulls (Table 1 (top), [¶]) nest", "gulls (Table 1 (top)) nest"),
        ("gulls [¶, and unpublished notes] nest", "gulls [and unpublished notes] nest"),
        ("gulls (Ode, 2011; ¶) nest", "gulls (Ode, 2011) nest"),
        # The words that introduce the citations go with them.
        ("gulls (as in Table 1 and others, e.g.¶) nest", "gulls (as in Table 1 and others) nest"),
        ("gulls [Table 1; see also ¶, ¶] nest", "gulls [Table 1] nest"),
        ("gulls (Table 1, cf. [¶]) nest", "gulls (Table 1) nest"),
        ("gulls (terns, for example¶) nest", "gulls (terns, for example) nest"),
        # A bracket with only introductory words is removed.
        ("gulls (see [¶]) nest", "gulls nest"),
        ("gulls (reviewed in ¶, ¶).", "gulls."),
        ("gulls (AUK; references ¶ and ¶) nest", "gulls (AUK) nest"),
        ("gulls (see, e.g., [¶]) nest", "gulls nest"),
        ("gulls [for a recent review, see ¶] nest", "gulls nest"),
        ("gulls (ref. ¶) nest", "gulls nest"),
        ("gulls (OR) nest [¶]", "gulls (OR) nest"),
        # Punctuation around a removed citation.
        ("as shown by Ode et al. [¶].", "as shown by Ode et al."),
        ("as shown by Ode et al., [¶].", "as shown by Ode et al."),
        ("as shown by Ode et al. [¶], who", "as shown by Ode et al., who"),
        ("as shown by Ode et al. [¶]。Terns", "as shown by Ode et al.。Terns"),
        ("“They nest.” [¶]. Terns", "“They nest.” Terns"),
        ("gulls, [¶], nest", "gulls, nest"),
        ("as shown, [¶]. Terns", "as shown. Terns"),
        ("as shown: [¶].", "as shown."),
        ("gulls [¶]: terns", "gulls: terns"),
        ("gulls [¶]—as terns [¶] — nest", "gulls—as terns — nest"),
        ("Do gulls nest [¶]?", "Do gulls nest?"),
        ("gulls [¶]", "gulls"),
        # Commas and stops behind it, and a sentence that begins right after it.
        ("gulls [¶, ¶],. Terns", "gulls. Terns"),
        ("gulls, [¶], , terns", "gulls, terns"),
        ("gulls [¶],... and", "gulls,... and"),
        ("gulls nest [¶].The terns", "gulls nest. The terns"),
        ("gulls nest [¶–¶].A tern", "gulls nest. A tern"),
        ("gulls nest by Ode et al. [¶].Terns", "gulls nest by Ode et al. Terns"),
        ("gulls [¶].5 and", "gulls.5 and"),
        # Numbers without a link beside it.
        ("gulls [45] [¶] nest", "gulls nest"),
        ("gulls [¶] [45], [46] nest", "gulls, [46] nest"),
        ("gulls [1990] [¶] nest", "gulls [1990] nest"),
        # A bracket without its other half
        ("gulls nest.¶)-(¶ Terns", "gulls nest. Terns"),
        ("gulls (¶),(¶) nest", "gulls nest"),
        ("all gulls.[¶", "all gulls."),
        ("gulls [¶. Terns", "gulls. Terns"),
        ("gulls ([¶. Terns)", "gulls ([. Terns)"),
        ("¶ Gulls", "Gulls"),
        ("gulls [¶] (Table 1)", "gulls (Table 1)"),
        ("5%¶ of gulls", "5% of gulls"),
        # Pictures and empty links.
        ("gulls (◊), terns (◊)", "gulls, terns"),
        ("where ◊ is the rate", "where is the rate"),
        ("the rate ◊, with ◊.", "the rate, with."),
        ("the programme ◊.", "the programme."),
        ("the same gull. ◊, ◊ nesting terns", "the same gull. nesting terns"),
        ("of gulls. ◊, Nests; ◊, eggs.", "of gulls. Nests; eggs."),
        ("nothing to see [5] (a, b)", "nothing to see [5] (a, b)"),
        ("¶", ""),
        ("", ""),
    ],
)
def test_citations_are_removed_with_their_punctuation(before: str, after: str) -> None:
    assert " ".join(remove_citations(before).split()) == after


@pytest.mark.parametrize(
    ("before", "masked"),
    [
        ("As shown in [¶], gulls nest.", "As shown in _, gulls nest."),
        ("as shown by ¶ and others", "as shown by _ and others"),
        ("as described in [¶, ¶–¶]. Terns", "as described in _. Terns"),
        ("according to¶ gulls", "according to _ gulls"),
        ("gulls (counted as in [¶]) nest", "gulls (counted as in _) nest"),
        ("Reference [¶] and ref. [¶]", "Reference _ and ref. _"),
        ("[¶] showed that gulls nest.", "_ showed that gulls nest."),
        ("Ode et al. (2031, ¶) and Roe (2032a; [¶])", "Ode et al. (2031) and Roe (2032a)"),
        ("gulls nest, while [¶] described terns", "gulls nest, while _ described terns"),
        ("they nest all the while [¶], and terns fly", "they nest all the while, and terns fly"),
        ("see, e.g., [¶] for terns", "see, e.g., _ for terns"),
        ("as described\nin\n[¶]. Terns", "as described\nin _. Terns"),
        ("gulls (see [¶]) nest", "gulls nest"),
        ("gulls nest [¶]. Terns¶ do not.", "gulls nest. Terns do not."),
        ("gulls, terns and so on [¶].", "gulls, terns and so on."),
        ("as in ◊, gulls", "as in, gulls"),
        ("In [¶], an increase is seen.", "In _, an increase is seen."),
        ("Gulls nest. Following [¶], we count.", "Gulls nest. Following _, we count."),
        ("See ref [¶] for details.", "See ref _ for details."),
        ("We used ref. [¶], as said.", "We used ref. _, as said."),
        ("See Text 1 and [¶].", "See Text 1 and _."),
        ("authors like [¶] have shown this", "authors like _ have shown this"),
        ("tools such as [¶], which work", "tools such as _, which work"),
        ("e.g., [¶]–[¶] select gulls", "e.g., _ select gulls"),
        ("on the coast, e.g., [¶], and", "on the coast, e.g., _, and"),
        ("of wasps; cf. [¶].", "of wasps; cf. _."),
        (
            "[¶] showed that gulls nest. [¶, ¶] have also done so.",
            "_ showed that gulls nest. _ have also done so.",
        ),
        ("by [¶] and [¶] in Italy", "by _ in Italy"),
        ("Counts are available at [¶]. Terns", "Counts are available at _. Terns"),
        ("found via [¶] and", "found via _ and"),
        ("As [¶], we count gulls.", "As _, we count gulls."),
        ("In comparison, [¶,¶] counted terns.", "In comparison, _ counted terns."),
        ("the “gulls“ [¶] of cliffs", "the “gulls“ of cliffs"),
        ("the “[¶] gulls”", "the “gulls”"),
        ("Nests of gulls: [¶, ¶] suggest a count.", "Nests of gulls: _ suggest a count."),
        ("made by gulls: [¶] planned nests are rare.", "made by gulls: planned nests are rare."),
        ("Gulls nest. As [¶], we count.", "Gulls nest. As _, we count."),
        # These are no nouns.
        ("the cliff that gulls nest at [¶].", "the cliff that gulls nest at."),
        ("of metals such as Cd and As [¶] is", "of metals such as Cd and As is"),
        ("Miller et al. [¶] report that", "Miller et al. report that"),
        ("T. aestivum L. [¶] has genes", "T. aestivum L. has genes"),
        ("with Ga and In [¶].", "with Ga and In."),
        ("wet season in between [¶].", "wet season in between."),
        ("was computed as [¶]:", "was computed as:"),
        ("support; and [¶] symptom problem", "support; and symptom problem"),
        ("bread and¶ butter", "bread and butter"),
        ("Gulls nest. [¶] Terns do.", "Gulls nest. Terns do."),
    ],
)
def test_citations_that_are_nouns_are_masked_or_dropped(before: str, masked: str) -> None:
    text = remove_citations(before)
    assert in_text_marks.fill_gaps(text, "_") == masked
    dropped = masked.replace(" _", "").removeprefix("_ ")
    assert in_text_marks.fill_gaps(text, "") == dropped


@pytest.mark.parametrize(
    "number",
    [
        "1",
        "12",
        "[12]",
        "(3)",
        "3–5",
        "1, 2",
        "12,13",
        "S7",
        "4a",
        "Ref. 5",
        "12••",
        "*",
        "",
        "1012",
        "7.",
        "[1-3]",
    ],
)
def test_numeric_citations(number: str) -> None:
    assert in_text_marks.is_numeric_citation(number)


@pytest.mark.parametrize("text", ["2011", "Ode, 2011", "Ode et al. [3]", "1998a", "p. 4", "Table 1", "and"])
def test_years_and_names_are_not_numeric_citations(text: str) -> None:
    assert not in_text_marks.is_numeric_citation(text)


def test_trailing_number_of_a_name_is_removed() -> None:
    assert (
        remove_citations(in_text_marks.mark_trailing_number("Ode et al. [12]") + " say") == "Ode et al. say"
    )
    assert remove_citations(in_text_marks.mark_trailing_number("Ode, 2011") + " say") == "Ode, 2011 say"


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("¶,5–¶", True),
        ("¶ and ¶", True),
        ("¶(p7)", True),
        ("¶, 12", True),
        ("¶ mm", False),
        ("2+¶", False),
        ("¶)", True),
        ("[¶", True),
    ],
)
def test_superscript_with_only_citations(text: str, only: bool) -> None:
    assert in_text_marks.has_only_citations(insert_marks(text)) is only


TEXT = st.text(alphabet="ab Z1.,;:()[]–“”¶◊\n", max_size=40)
GOVERNED_TEXT = st.lists(
    st.sampled_from([*"ab Z1.,;:()[]–¶◊\n", " in ", " by ", "see ", " of", " ref. "])
).map("".join)


@given(TEXT)
def test_no_mark_remains(text: str) -> None:
    cleaned = remove_citations(text)
    assert CITATION_MARK not in cleaned
    assert REMOVAL_MARK not in cleaned


@given(GOVERNED_TEXT)
def test_gaps_have_one_blank_before_them_and_leave_none(text: str) -> None:
    cleaned = remove_citations(text)
    assert cleaned.count(f" {in_text_marks.GAP_MARK}") == cleaned.count(in_text_marks.GAP_MARK)
    assert in_text_marks.GAP_MARK not in in_text_marks.fill_gaps(cleaned, "")


@given(TEXT.filter(lambda text: "¶" not in text and "◊" not in text))
def test_text_without_marks_is_unchanged(text: str) -> None:
    assert remove_citations(text) == text


@given(TEXT)
def test_no_letter_is_lost(text: str) -> None:
    outside = text.replace("(", "").replace("[", "")
    assert re.sub("[^abZ1]", "", remove_citations(outside)) == re.sub("[^abZ1]", "", outside)


@given(st.lists(st.sampled_from(["gulls", "nest", "on", "cliffs"]), min_size=1), st.data())
def test_citations_between_words_leave_no_gap(words: list[str], data: st.DataObject) -> None:
    citation = st.sampled_from(["", "¶", " [¶]", " (¶, ¶)", "¶,¶"])
    text = " ".join(word + data.draw(citation) for word in words) + data.draw(citation) + "."
    assert remove_citations(text) == " ".join(words) + "."


@pytest.mark.parametrize(
    "text", ["¶" + " " * 20_000 + "a", "(" * 20_000 + "¶", "(¶" * 5000, "¶" + ",;" * 10_000]
)
def test_time_limit_on_hostile_text(text: str) -> None:
    start = time.process_time()
    remove_citations(text)
    in_text_marks.is_numeric_citation(text)
    in_text_marks.mark_trailing_number(text)
    assert time.process_time() - start < 20


# The letters and numbers that the notes of a table begin with, and the superscripts that are none

XREF = '<xref ref-type="bibr" rid="b1">1</xref>'


def extract_text(paragraph: str, flatten: bool) -> str:
    xml = f"<article><body>{paragraph}</body></article>".encode()
    return " | ".join(
        block.text
        for block in text_blocks.extract_blocks(xml_tree.parse_article(xml, flatten=flatten), DROP_CITATIONS)
    )


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<p><sup>t</sup>Percentage of gulls</p>", "Percentage of gulls"),
        ('<p id="n1">\n  <sup>a</sup>\n  Gulls of 2019</p>', "Gulls of 2019"),
        ("<p><sup>a </sup><italic>n</italic> = 35</p>", "n = 35"),
        ("<p><bold><sup>(6)</sup></bold> Ratio of terns</p>", "Ratio of terns"),
        ("<p><sup>a,b</sup>Means with other letters differ</p>", "Means with other letters differ"),
        ("<p><sup>xxvii</sup>All gulls</p>", "All gulls"),
        ("<p><sup>2</sup>In all colonies</p>", "In all colonies"),
        ("<p><sup>1</sup>Hôtel des Mouettes</p>", "Hôtel des Mouettes"),
        (f"<p><sup>a</sup>[{XREF}]</p><p>Terns</p>", "Terns"),
        ("<p><sup>a</sup>By age. <sup>b</sup>By sex; <sup>c</sup> n = 5.</p>", "By age. By sex; n = 5."),
        ("<p><sup>a</sup>n = 2, <sup>b</sup>n = 3</p>", "n = 2, n = 3"),
        ("<p><sup>a</sup>% of gulls. <sup>b</sup> % of terns.</p>", "% of gulls. % of terns."),
        ("<p>Counts of gulls. <sup>a</sup>Adjusted for rain.</p>", "Counts of gulls. Adjusted for rain."),
        ("<p>Note: <sup>1</sup>Five gulls.</p>", "Note: Five gulls."),
        ("<p>Gulls at week 4. <sup>a</sup></p>", "Gulls at week 4."),
        # Marks that are the subject of their sentence.
        ("<p><sup>a</sup>≤9 eggs</p>", "≤9 eggs"),
        ("<p><sup>a</sup> = mean; <sup>b</sup> = median</p>", "a = mean; b = median"),
        ("<p><sup>a</sup>: Mean of gulls</p>", "a: Mean of gulls"),
        ("<p><sup>a</sup>indicates gulls</p>", "a indicates gulls"),
        ("<p><sup>ns</sup>not significant</p>", "ns not significant"),
        ("<p><sup>*</sup>p &lt; 0.05</p>", "*p < 0.05"),
    ],
)
def test_notes_begin_without_their_marks(xml: str, text: str, flatten: bool) -> None:
    assert extract_text(xml, flatten) == text


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<p><sup>13</sup>C NMR. <sup>1</sup>H NMR</p>", "13C NMR. 1H NMR"),
        ("<p><sup>1</sup>HNMR; <sup>15</sup>NH<sub>4</sub></p>", "1HNMR; 15NH4"),
        ("<p>ions (<sup>9</sup>Be, <sup>66</sup>Zn; <sup>238</sup>U)</p>", "ions (9Be, 66Zn; 238U)"),
        ("<p><sup>t</sup>BuOH was added; <sup>i</sup>PrOH too</p>", "tBuOH was added; iPrOH too"),
        ("<p>sites. <sup>m</sup>CpG and <sup>m6</sup>A</p>", "sites. mCpG and m6A"),
        ("<p>at 8 <sup>o</sup>C, -70<sup>0</sup> C or 9<sup>o</sup>F</p>", "at 8 °C, -70° C or 9°F"),
        ("<p>of 10<sup>0</sup> to 9<sup>0</sup>CH and 9 <sup>o</sup>Cu</p>", "of 10^0 to 90CH and 9 oCu"),
        ("<p>mice. <sup>GFP</sup>Ode and lines</p>", "mice. GFPOde and lines"),
        ("<p>the 10, <sup>a</sup> and <sup>b</sup></p>", "the 10, a and b"),
        ("<p><xref><sup>1</sup>Terns</xref></p>", "1Terns"),
    ],
)
def test_other_superscripts_stay(xml: str, text: str, flatten: bool) -> None:
    assert extract_text(xml, flatten) == text


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<p>Mean weight<sup>a</sup> or median<sup><italic>b</italic></sup>.</p>", "Mean weight or median."),
        ("<p>Weight of gulls <sup>1</sup>.</p>", "Weight of gulls."),
        ("<p>Gulls in winter <sup>1, 2</sup>.</p>", "Gulls in winter."),
        ("<p>gulls <sup>1</sup> in <sup>2</sup>.</p><p>per m <sup>2</sup>.</p>", "gulls 1 in 2. | per m 2."),
        ("<p>mm<sup>a</sup>, NaCl<sup>b</sup>, weight<sup>n</sup></p>", "mma, NaClb, weightn"),
    ],
)
def test_words_in_tables_do_not_have_the_marks_of_notes(xml: str, text: str, flatten: bool) -> None:
    for table in (f"<table-wrap-foot>{xml}</table-wrap-foot>", f"<caption>{xml}</caption>"):
        assert extract_text(f"<table-wrap>{table}</table-wrap>", flatten) == text


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<p>nests of gulls<sup>a</sup> and terns.<sup>b</sup> Eggs</p>", "nests of gulls and terns. Eggs"),
        ("<p>Gulls of type <sup>1</sup>.</p>", "Gulls of type 1."),
        ("<p>Gulls nest.[qv: 6a,15&#x2013;17] Terns do[qv: 2].</p>", "Gulls nest. Terns do."),
        ("<p>by e<sup>−kt</sup> or 2.5<italic>e</italic><sup>−x</sup></p>", "by e^−kt or 2.5e^−x"),
        ("<p>of 2 × 10 <sup>9</sup>/L or 10 <sup>−3</sup></p>", "of 2 × 10^9/L or 10^−3"),
        ("<p>10 <sup>5</sup> cells of&#160;10 <sup>13</sup>C</p>", "10^5 cells of 10 13C"),
        ("<p>of box 10 <sup>13</sup>C and 2&#xd7;10 <sup>9</sup></p>", "of box 10 13C and 2×10^9"),
        ("<p>an e<sup>−</sup> of 10<sup>−n</sup>, the<sup>-a</sup></p>", "an e− of 10^−n, the-a"),
    ],
)
def test_marks_and_exponents_of_text(xml: str, text: str, flatten: bool) -> None:
    assert extract_text(xml, flatten) == text
