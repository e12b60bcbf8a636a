"""Removal of in-text citations: a table of examples and properties of generated text."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.jats import in_text_citations
from bioshards.corpus.jats.in_text_citations import CITATION_MARK, REMOVAL_MARK


def insert_marks(text: str) -> str:
    """Replace ¶ by the mark of a citation, and ◊ by the mark of another removed element."""
    return text.replace("¶", CITATION_MARK).replace("◊", REMOVAL_MARK)


def remove_citations(text: str, introductions: bool = False) -> str:
    return in_text_citations.remove_marks(insert_marks(text), introductions)


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
        ("gulls (see, e.g., [¶]) nest", "gulls nest"),
        ("gulls [for a recent review, see ¶] nest", "gulls nest"),
        ("gulls (ref. ¶) nest", "gulls nest"),
        ("gulls (OR) nest [¶]", "gulls (OR) nest"),
        # Punctuation around a removed citation.
        ("as shown by Ode et al. [¶].", "as shown by Ode et al."),
        ("as shown by Ode et al., [¶].", "as shown by Ode et al."),
        ("as shown by Ode et al. [¶], who", "as shown by Ode et al., who"),
        ("gulls, [¶], nest", "gulls, nest"),
        ("as shown, [¶]. Terns", "as shown. Terns"),
        ("as shown: [¶].", "as shown."),
        ("gulls [¶]: terns", "gulls: terns"),
        ("Do gulls nest [¶]?", "Do gulls nest?"),
        ("gulls [¶]", "gulls"),
        ("¶ Gulls", "Gulls"),
        ("gulls [¶] (Table 1)", "gulls (Table 1)"),
        ("5%¶ of gulls", "5% of gulls"),
        # Pictures and empty links.
        ("gulls (◊), terns (◊)", "gulls, terns"),
        ("where ◊ is the rate", "where is the rate"),
        ("the rate ◊, with ◊.", "the rate, with."),
        ("the programme ◊.", "the programme."),
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
        ("see, e.g., [¶] for terns", "see, e.g., _ for terns"),
        ("as described\nin\n[¶]. Terns", "as described\nin _. Terns"),
        ("gulls (see [¶]) nest", "gulls nest"),
        ("gulls nest [¶]. Terns¶ do not.", "gulls nest. Terns do not."),
        ("gulls, terns and so on [¶].", "gulls, terns and so on."),
        ("as in ◊, gulls", "as in, gulls"),
    ],
)
def test_citations_that_are_nouns_are_masked_or_dropped(before: str, masked: str) -> None:
    text = remove_citations(before)
    assert in_text_citations.fill_gaps(text, "_") == masked
    dropped = masked.replace(" _", "")
    assert in_text_citations.fill_gaps(text, "") == dropped


def test_introductory_words_can_be_kept() -> None:
    text = remove_citations("gulls (reviewed in [¶]) nest [¶]", True)
    assert in_text_citations.fill_gaps(text, "") == "gulls (reviewed in) nest"


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
    assert in_text_citations.is_numeric_citation(number)


@pytest.mark.parametrize("text", ["2011", "Ode, 2011", "Ode et al. [3]", "1998a", "p. 4", "Table 1", "and"])
def test_years_and_names_are_not_numeric_citations(text: str) -> None:
    assert not in_text_citations.is_numeric_citation(text)


def test_trailing_number_of_a_name_is_removed() -> None:
    assert (
        remove_citations(in_text_citations.mark_trailing_number("Ode et al. [12]") + " say")
        == "Ode et al. say"
    )
    assert remove_citations(in_text_citations.mark_trailing_number("Ode, 2011") + " say") == "Ode, 2011 say"


@pytest.mark.parametrize(
    ("text", "only"),
    [("¶,5–¶", True), ("¶ and ¶", True), ("¶(p7)", True), ("¶, 12", True), ("¶ mm", False), ("2+¶", False)],
)
def test_superscript_with_only_citations(text: str, only: bool) -> None:
    assert in_text_citations.has_only_citations(insert_marks(text)) is only


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
    assert cleaned.count(f" {in_text_citations.GAP_MARK}") == cleaned.count(in_text_citations.GAP_MARK)
    assert in_text_citations.GAP_MARK not in in_text_citations.fill_gaps(cleaned, "")


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
    in_text_citations.is_numeric_citation(text)
    in_text_citations.mark_trailing_number(text)
    assert time.process_time() - start < 20
