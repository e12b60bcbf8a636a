"""Splitting text into sentences: no word is lost, and sentences end at the expected places.

Properties are tested for generated and hostile text.  Boundaries are compared with golden/sentences.txt and,
if the real data is available, with the annotated corpora.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from importlib import resources
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.sentences import boundary_model, spans, split, split_line
from bioshards.corpus.sentences.boundary_model import (
    CLASS_AFTER_STOP,
    CLASS_BEFORE_STOP,
    CLASS_OF_SECOND_WORD_AFTER,
    CLASS_OF_SECOND_WORD_BEFORE,
    MAX_CACHED,
    SCORES_OF_WORDS,
    WORD_FAMILIES,
    score_context,
)
from tests.bench.fit_sentences import fit_on_corpora, iter_read_marks
from tests.bench.harness.sentence_gold import (
    Paragraph,
    is_held_out,
    load_craft,
    load_genia,
    load_own_paragraphs,
    score_splitter,
    sentence_ends,
)
from tests.support.hypothesis_profiles import examples
from tests.support.paths import GOLDEN
from tests.support.real_data import DATA, needs_data

PARTS = st.sampled_from(
    [". ", "? ", "! ", ".", ".) ", '." ', " (", "[", "]", "The", "a", "E. coli", "Fig. ", "p < 0.05"]
) | st.sampled_from(["e.g. ", "i.v. ", "...", *"\n\u2028\u00a0\u3000\x1c\x85“”ωΩ1\x00"])


@settings(max_examples=examples(400))
@given(st.text() | st.lists(PARTS | st.text(max_size=4), max_size=40).map("".join))
def test_no_word_is_lost_changed_or_moved(text: str) -> None:
    assert " ".join(split(text)).split() == text.split()


@settings(max_examples=examples(200))
@given(st.lists(PARTS, max_size=40).map("".join))
def test_split_functions_agree_on_clean_text(text: str) -> None:
    clean = " ".join(text.split())
    assert split_line(clean) == split(clean) == [clean[start:end] for start, end in spans(clean)]
    assert " ".join(split_line(clean)) == clean


@settings(max_examples=examples(400))
@given(st.lists(PARTS | st.text(max_size=4), max_size=40).map("".join))
def test_spans_cover_all_text_but_white_space(text: str) -> None:
    sentence_spans = spans(text)
    assert [" ".join(text[start:end].split()) for start, end in sentence_spans] == split(text)
    assert all(split(text))
    edges = [0, *[edge for span in sentence_spans for edge in span], len(text)]
    assert edges == sorted(edges)
    assert not "".join(text[end:start] for end, start in zip(edges[::2], edges[1::2], strict=True)).strip()


@pytest.mark.parametrize(
    "paragraph", load_own_paragraphs(GOLDEN / "sentences.txt"), ids=lambda p: p.text[:40]
)
def test_boundaries_equal_the_golden_file(paragraph: Paragraph) -> None:
    assert sentence_ends(split(paragraph.text)) == paragraph.ends
    assert sentence_ends(split(paragraph.text.replace(" ", "\n  ") + "\t")) == paragraph.ends


def test_blank_line_ends_a_sentence_and_line_break_does_not() -> None:
    assert split("A title without a stop\n\nThe text\nof it. Ends here") == [
        "A title without a stop",
        "The text of it.",
        "Ends here",
    ]
    assert split("One\r\n \t\r\ntwo\n\n\n\nthree") == ["One", "two", "three"]


NON_FINAL_FAMILIES = ("title", "latin", "journal", "reference")


@pytest.mark.parametrize("family", NON_FINAL_FAMILIES)
def test_abbreviation_before_a_name_does_not_end_a_sentence(family: str) -> None:
    for word in WORD_FAMILIES[family]:
        text = f"It was said ({word}. Fisher) and {word}. Fisher agreed."
        assert split(text) == [text], word


@pytest.mark.parametrize("family", WORD_FAMILIES)
def test_question_mark_after_an_abbreviation_ends_a_sentence(family: str) -> None:
    for word in WORD_FAMILIES[family]:
        assert split(f"Was it the {word}? Then it was.") == [f"Was it the {word}?", "Then it was."], word


def test_word_families_are_disjoint() -> None:
    words = [word for family in WORD_FAMILIES.values() for word in family]
    assert len(words) == len(set(words))
    assert all(len(word) > 1 or word in "vp" for word in words)


@needs_data
@pytest.mark.parametrize(
    ("load_corpus", "min_f1"), [(load_craft, 0.993), (load_genia, 0.994)], ids=["CRAFT", "GENIA"]
)
def test_f1_on_held_out_annotated_texts(
    load_corpus: Callable[[Path], list[Paragraph]], min_f1: float
) -> None:
    paragraphs = [
        paragraph
        for paragraph in load_corpus(Path(str(DATA)) / "sentences")
        if is_held_out(paragraph.document)
    ]
    scores = score_splitter(paragraphs, split)
    assert scores.correct > 2000
    assert scores.f1 >= min_f1


@needs_data
def test_weights_are_reproduced_by_fitting() -> None:
    """The tolerance allows for rounding differences between processors."""
    fitted = dict(fit_on_corpora(Path(str(DATA))))
    file = resources.files("bioshards.corpus.sentences") / "boundary_weights.tsv"
    rows = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[1:]]
    stored = {feature: float(weight) for weight, feature in rows}
    for feature in fitted.keys() | stored.keys():
        assert fitted.get(feature, 0) == pytest.approx(stored.get(feature, 0), abs=0.15), feature


def test_white_space_of_every_kind_becomes_a_blank() -> None:
    for space in filter(str.isspace, map(chr, range(sys.maxunicode + 1))):
        assert split(f"One{space}two") == ["One two"], ascii(space)


def test_up_to_31_marks_are_no_sentence() -> None:
    for marks, sentences in ((31, 1), (32, 2)):
        assert len(split("It is so. " + "§" * marks)) == sentences
        assert len(split("§" * marks + ". It is so.")) == sentences


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n", "\u3000\u2028\u00a0"])
def test_empty_text_has_no_sentences(text: str) -> None:
    assert split(text) == []


HOSTILE = {
    "no full stop": "word " * 200_000,
    "no blank": "x" * 1_000_000,
    "full stops": "." * 100_000,
    "full stops and blanks": ". " * 100_000,
    "opening brackets": "(" * 100_000,
    "closing brackets": ")" * 100_000,
    "a full stop and brackets": "." + ")" * 100_000 + " " + "(" * 100_000 + " A",
    "brackets with blanks": ". ( " * 50_000,
    "quotation marks": '." ' * 50_000 + '"' * 50_000,
    "initials": "A. " * 100_000,
    "abbreviations": "Fig. " * 100_000,
    "abbreviations without blanks": "e.g." * 100_000 + " X",
    "control characters": "".join(map(chr, range(32))) * 3000 + ". \x00. \x01 \x7f",
    "private and unassigned characters": "\ue000. \U0010fffd. \ufffe! \u0378? A" * 5000,
    "lone surrogates": "\ud800. \udc00. A" * 1000,
    "right to left": "\u05d0\u05d1\u05d2 \u0627\u0644. \u202e\u05d3\u05d4! (\u05d5) " * 30_000,
    "lists": "1. 2. a) (b) iv. " * 60_000,
    "citations": ". [1, 2 " * 60_000 + "x.1,2,3" * 60_000,
    "a long citation": "x. [" + "1, " * 300_000,
    "a long superscript": "x." + "1," * 300_000 + " A",
    "one bracket never closed": "(" + "A. B. " * 100_000,
    "different words": " ".join(f"x{number}. y{number}" for number in range(100_000)),
    "line breaks": "\n" * 100_000 + "\n x" * 100_000,
    "long words before each mark": ("x" * 1000 + ". y ") * 1000,
}


@pytest.mark.thorough
@pytest.mark.timeout(60)  # each case takes a second or less, and hours in quadratic time
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_text_is_split_without_loss(case: str) -> None:
    text = HOSTILE[case]
    sentences = split(text)
    assert " ".join(sentences) == " ".join(text.split())
    assert all(sentences)
    assert len(spans(text)) == len(sentences)


CLASSES_BEFORE = {*boundary_model.WORD_FAMILIES, *boundary_model._PATTERNS_BEFORE_STOP, "other"}
CLASSES_AFTER = {
    "Opener",
    "Opener,",
    "common",
    "Figure",
    "author",
    "strain",
    "other",
    *boundary_model._PATTERNS_AFTER_STOP,
}


SECOND_CLASSES_BEFORE = {
    *("none", "dots", "and", "letter and", "panel,", "ex", "person", "in", "common", "lettered"),
    *("supplement", "(", "small", "number", "number:", "Name", "other"),
    *(f"{name}{mark}" for name in ("Name", "") for mark in ",;:."),
}
SECOND_CLASSES_AFTER = {"none", "initial", "Name", "Name,", "small", "number", "other"}
MARKS = {f"{mark}{closing}" for mark in ".?" for closing in ("", "1", ")")}
POSITIONS = {"first", "alone", "inside", "closed", "unopened", ""}


def test_marks_that_were_read_have_classes_of_today() -> None:
    classes = (
        SECOND_CLASSES_BEFORE,
        CLASSES_BEFORE | {"asked"},
        MARKS,
        CLASSES_AFTER,
        SECOND_CLASSES_AFTER,
        POSITIONS,
    )
    contexts = {candidate.context for candidate, _ in iter_read_marks(GOLDEN / "boundary_marks.tsv")}
    assert len(contexts) > 3000
    for context in contexts:
        for word_class, known_classes in zip(context, classes, strict=True):
            assert word_class in known_classes, context


@pytest.mark.thorough
def test_caches_are_bounded() -> None:
    for number in range(200_000):
        split(f"v{number} w{number}x. y{number}z u{number}")
    caches: list[Collection[str]] = [CLASS_BEFORE_STOP, CLASS_AFTER_STOP, *SCORES_OF_WORDS]
    caches += [CLASS_OF_SECOND_WORD_BEFORE, CLASS_OF_SECOND_WORD_AFTER]
    assert max(score_context.cache_info().currsize, *map(len, caches)) <= MAX_CACHED
    split("y" * 1_000_000 + " " + "x" * 1_000_000 + ". The " + "z" * 1_000_000)
    for cache in caches:
        assert max(map(len, cache)) <= 40


@pytest.mark.parametrize(
    "marked",
    [
        "Potassium was 2 cmol, and Exc. Magnesium 3 cmol.| Exch. Acidity was low.",
        "It is Genus minor s.l.| The others were not.| In Genus major s.s.| However, few were seen.",
        "We caught An. minor s.s. (Table 1) and An. major s.l. females.",
        "Gulls were read by Kwan, Inc.| Candidate genes were chosen.| It was paid by M. Ltd.| Funders left.",
        "She is a consultant to Kwan, Inc.| Dr. Lin works for Brandt Optics, Ltd.| Drs. Ode and Roe agreed.",
        "She works for Kwan Optics, Inc.| J.D., K.R. and A.C. do not.",
        "We saw “Ca. Genus minor” and Ca.| The rest was Mg.",
        "It is a monophasic S. Typhimurium or virulent S. Dublin.| They grew.",
        "We drew n = 1, 2, B.| Figure 12 shows one.",
        "You see it often.| … Obviously, you do.",
        "It is Genus minor-t. and Genus major-t. (Fig. 2).",
        "He said... ‘yes, I am’... and left.| Then...| The end.| ¿Es así la acción?| ¡Y qué tonto!",
        "It is in Genus minor L. (a-c) and Genus major L. (d-f) by GenBank Access. Nos. and names.",
        "It cost Rs. 4.02 and Rs. 3 a day.| We used Cd+O. minor oil.",
        "It was paid by grant 0905/Z/09/Z.| D. J. W. was not.| It is so for any i.| However, it is rare.",
        "It was seen in Genus minor Ard. (Ito 2003).| Es ist hoch bzw. Anders (Br. mycol. Soc. 84: 4).",
        "It was cut (Kwan Inc. Osaka) and bought from Brandt Inc. La Playa, Spain.| It was so.",
        "Roots were short in S5B–S5F Fig.| Complementation followed (S2 Fig).| It is in S4 Fig.| It grew.",
        "It was told in Birds 2018. Vol 31: 2-3.| It is in Birds 5:e13479. doi: 10.5555/b.13479.",
        "It is the ratio of A to Z.| Furthermore, B grew by X.Y.| However, C did not (see A. Here, p. 2).",
        "Are books free? – A review.| How can this be? - A place you may miss.",
        "She said “we call it ‘p53’.”| 5mg was given to each.",
        "Songs of gulls.| III. Their nests.| Gulls: II. Eggs.| Gulls--IV. Wings.| It is type IV.| We left.",
        "Level of evidence: II.| We left.| *p<0.05.| **p<0.01.| #: P < 0.05 vs. Sham.| ##: P < 0.01.",
        "Genus sp. Strain A-1.| Gulls nest. (Ode et al., 2031; Roe, 2032)| Terns do not.| (See Ode.)",
        "Gulls nest. (Ode and Roe 2031).| Terns do not. (Roe, 2032).",
        "Gulls eat Genus minor ex G. Don and Genus major Roxb. ex T. Hill.| We thank Sz. Kwan and Zs. Ito.",
        "Gulls (Y.-j. Roth et al. 2031) nest.| Genus minor Linn. (Poaceae) or Genus alba (Rchb.) Urb. is so.",
        "It is nothosp. Minor of subg. Ruber, stat. nov.| It is Genus minor conv. major (sym. Genus alter).",
        "It is in Secs. III and IV (cp. Table 2, engl. The Auk) off Hwy. 12 (abstr. A-8).| Frs. A and B.",
        "See (Stud. Mycol. 79: 2; Trans. Brit. Mycol. Soc. 35: 2; Canad. J. Bot. 2: 1; Akad. Wiss. 3: 2).",
        "Eggs of Ae. Aegypti and Ae. Albopictus lay by those of An. Gambiae.| It is high An.| Taken so.",
        "Auks eat Genus minor (DC.) Urb. and Genus ruber (DC.) Stapf on the cliff.",
        "Auks eat Genus minor L. (flu), Genus albus Labill. (flu) and Genus ruber Kunth (ills).",
        "We name Genus minor gen. et sp. nov.| Genus minor is grey.| Red dots are Genus alba sp. nov.",
        "Eggs are in Figure. S1 and File. S7A, by Equation. (2).| Equation. (3) is in Version. 2.2.",
        "The gulls came from New Haven, Conn.| Diagnoses were made by hand.| Auks of Mass. General Store.",
        "Nests held 3 fg. g-1 of gold and 5 cfu. mL−1 of yeast.| They fell at the 0. 01 level (p<0. 05).",
        "Eggs of panel B are cold.| *P < 0.05.| Bars are s.e.m.| * p < 0.01.| It is by 21 C.F.R. § 12.",
        "Bars: the auk and CTRL.| d, e As before.| Bar = 5 mm.| c, d Nests (n = 7).| See Figs. a, b and c.",
        "Guano (New edn. Geneva: Auk; 2009) is good (Harbour (E). Gull town; Coast).| It smells.",
        "It rose (R2 0.16. p < 0.05) at (Auk House, Honolulu. HI), by (1. co = sea, 2. cl = cliff).",
        "(When gulls nest, it is 0 to 1.| A value of 0.5 is a nest.)| It is (dots are auks.| Terns are red).",
        "It flowed at 3 mL/min. (210°C), nests at 250°C.| (1), (2) are eggs of G. minor-G. major lines.",
        "Gulls nest, one said. (Interview 6)",
        "Gulls nest on cliffs.| (All of them do.)",
        "Gulls nest on cliffs.| (ABSTRACT TRUNCATED AT 250 WORDS)",
        "“Where do gulls nest?” 4-2.",
        "These are tales of Nest 1.| 2. AUK tales: how auks came.| (a). Map of a nest.| (b). Map of a cliff.",
        "How?| Expand nests of gulls.| Why?| The reason is an auk.| Really!| The nest was gone.",
        "It maps one nest to N.| Y_i^x is a gull by S.T.| Q_j is none.",
        "Gull-R: 5’-acacttcagctg-3’.| Total RNA was kept.| It is by ‘(ns)’.| Table 2 has gulls.",
        "It is in Birds, pl. 12, figs 3–4, tab. IV and pag. 7 of Gull Hist. Soc. 9: 2 (ed. 2, pls 5).",
        "Lima: Dpto. Norte, Mpio. Costa, Sta. Rosa, Fca. Alta, Roe s.n. (K), Leg. Ode; Roe det. 1920.",
        "We name Genus minor nom. n. of sg. Alter.| It has Genus alba Mart. (Poaceae) by Red Riv. Bridge.",
        "It is of eqn. (1) and so on.| They nest in the Grey Mts.| They do not.| By Def. 3 and Prop. B, yes.",
        "It is Genus minor sp. nov.| Moreover, it is paid by Auk and Teva.| K.W. Ode reports fees.",
        "It is Genus alba, syn. n., in Repert. Spec. Nov. 15: 222.| Its hairs are on Abd. IV.",
        "1b. Gulls nest.| 103. Auks (Syn. Genus alba) nest.| Q1. Do they?| It is in 103.| So.",
        "2.1. Gulls nest.| 29.2. For terns, a nest is a hole.| It is 2.5.| The rest is 3.",
        "Step 1. Count the gulls.| Step 2. Count the eggs.| Repeat Step 1.| Then rest.",
        "Ode holds stock in Auk, Inc.| GN declared no interests.| It is by Ode et-al. (2010) of Auk Co.",
        "We saw 3 males, 8 juv. (ASU), site 12; 1 fragm. (ASU), site 15.| Thanks go to P.L. Ode.",
        "Eggs are in Q.| Correspondingly, let r be one.| It was thought by J. Kelly, who nests.",
        "Genus minor auct. non L., Syn. Fil. 128, 328. 1806; Genus alba Griff. species are small herbs.",
        "Genus alba Ode, Fl. Boem. 2: 96. 1793.| It nests (Ex. 5 nm, Em. 6 nm).",
        "It is by K.U. McRoe (2002), drawn from D.S. Penn 2302 (CAS) of Genus minor Eschsch. (both nest).",
        "It was computed in R.| CCA reduces it.",
        "E-mail: ode@example.edu.| Pravas R. Roe is there.",
        "They lie on Genus minor Tern. (Fabaceae) and Genus alba Roe. (Larinae, Laridae).| It is so.",
        "They lay: 1. eggs (26%), 2. more eggs (2%); and 3. others (10%).| For terns it is so.",
    ],
)
def test_boundaries_that_annotated_texts_do_not_teach(marked: str) -> None:
    assert split(marked.replace("|", "")) == marked.split("| ")


@pytest.mark.parametrize(
    "line",
    [
        "海鸥在悬崖上筑巢。|它们吃鱼！|这是为什么？！|我们不知道",
        "カモメは崖に巣を作る。|「魚を食べる。」|値は３．５であった．|これで終わり｡",
        "समुद्री पक्षी घोंसला बनाते हैं।| वे मछली खाते हैं॥",
        "النورس يعشش على الصخور.| هل يأكل السمك؟| نعم۔",
        "ጎጆ ይሠራሉ።| Թռչուններ։| ငှက်များ။",
        "海鸥。.|Gulls nest.| Terns, e.g. young ones, too.",
    ],
)
def test_stops_of_other_scripts_end_a_sentence(line: str) -> None:
    text = line.replace("|", "")
    sentences = [sentence.strip() for sentence in line.split("|")]
    assert split(text) == sentences
    assert [text[start:end] for start, end in spans(text)] == sentences
    assert [f"  {text}\n"[start:end] for start, end in spans(f"  {text}\n")] == sentences
