"""Cleaning rules: what is removed, what stays, and the counts of removed characters."""

from __future__ import annotations

import itertools
import re
import sys
import time
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bioshards.corpus.text import cleaning
from bioshards.corpus.text.cleaning import CLEANING_RULES, Cleaner, LabelledText
from bioshards.corpus.text.labels import SECTION_NAME
from tests.support.hypothesis_profiles import examples

ALL_RULES = Cleaner()
SENTENCES = "Mice slept in cages. Their sleep was short."


def omit_rule(name: str) -> Cleaner:
    """Return a cleaner with every rule but one."""
    return Cleaner(rule for rule in CLEANING_RULES if rule != name)


def count_characters(sections: list[LabelledText]) -> int:
    return sum(len(label or "") + len(text) for label, text in sections)


# Character rules

CHARACTER_RULES = {
    "mojibake": [
        ("the cafÃ© is naÃ¯ve, 5 Ã— 3", "the café is naïve, 5 × 3"),
        ("5 Âµg at â‰¥ 3 Â°C â€“ the mouseâ€™s â€œsleep", "5 µg at ≥ 3 °C – the mouse’s “sleep"),
        ("TNF-Î± and Ï€, Å¡ and Ä‡", "TNF-α and π, š and ć"),
        ("encoded twice: cafÃƒÂ©", "encoded twice: café"),
    ],
    "controls": [
        ("a dose of 5\x9610 mg", "a dose of 5 10 mg"),
        ("mice\x7f slept", "mice slept"),
        ("\x85first", "first"),
        ("the β\u200e-blocker \u202aslept\u202c", "the β-blocker slept"),
        ("f\u2061(x) and a\u2062b", "f(x) and ab"),
    ],
    "private-use": [
        ("5\uf0b110 mg", "5 10 mg"),
        ("the \uf062 chain", "the  chain"),
        ("a \U000f0041\U00100000b", "a b"),
        ("slept\ue000", "slept"),
    ],
    "soft-hyphens": [
        ("phar\xadma\xadcology", "pharmacology"),
        ("IL\xad6 and 10\xad20 mice", "IL-6 and 10-20 mice"),
        ("of \xad6.02 (\xad7) kcal", "of -6.02 (-7) kcal"),
        ("the charges \xadR and +R of \xadproteins", "the charges -R and +R of proteins"),
        ("p53\xaddependent, sleep\xad", "p53-dependent, sleep"),
    ],
    "spaces": [
        ("5\xa0mg, p\u2009<\u202f0.05", "5 mg, p < 0.05"),
        ("眠り\u3000mice\u2028slept", "眠り mice slept"),
        ("\ufeffmice\u200b slept in\u2060vain\u200d", "mice slept invain"),
        ("می\u200cخواهم క\u200dష a\u200cb", "می\u200cخواهم క\u200dష ab"),
    ],
    "ligatures": [
        ("a speciﬁc ﬂow", "a specific flow"),
        ("the eﬃcient oﬀ-switch, waﬄe", "the efficient off-switch, waffle"),
        ("faﬅ and laﬆ", "fast and last"),
    ],
    "nfc": [
        ("cafe\u0301", "café"),
        ("5 \u212b at 3 k\u2126 and 4 \u212a", "5 Å at 3 kΩ and 4 K"),
        ("\u1112\u1161\u11ab", "한"),
        ("x\u0301 a\u0323\u0302", "x\u0301 ậ"),
    ],
}


@pytest.mark.parametrize(
    ("name", "before", "after"), [(name, *pair) for name, pairs in CHARACTER_RULES.items() for pair in pairs]
)
def test_character_rules(name: str, before: str, after: str) -> None:
    for cleaner in (Cleaner([name]), ALL_RULES):
        removed: dict[str, int] = {}
        assert cleaner.clean_text(before, removed) == after
        assert removed == {name: len(before) - len(after)}
    removed = {}
    assert ALL_RULES.clean_abstract([("AIM", before)], removed) == [("AIM", after)]
    assert ALL_RULES.clean_abstract([(before, SENTENCES)], removed) == [(after, SENTENCES)]
    assert removed == {name: 2 * (len(before) - len(after))}
    removed = {}
    assert omit_rule(name).clean_text(before, removed) == before
    assert removed == {}


def test_mojibake_is_mended_before_its_control_characters_are_removed() -> None:
    removed: dict[str, int] = {}
    before, after = "the mouseâ\x80\x99s â€œsleepâ€\x9d, Ä\x8d", "the mouse’s “sleep”, č"
    assert ALL_RULES.clean_text(before, removed) == after
    assert removed == {"mojibake": len(before) - len(after)}


# Title rules

TITLE_RULES = {
    "translated-titles": [
        ("[Sleep of mice].", "Sleep of mice."),
        ("\n [Do mice sleep?].\n", "Do mice sleep?"),
        ("[Sleep of mice. A trial.]", "Sleep of mice. A trial."),
        ("[[3H]thymidine in sleeping mice].", "[3H]thymidine in sleeping mice."),
        ("[Mice in [13C]urea]", "Mice in [13C]urea"),
        ("[[Sleep of mice].", "Sleep of mice."),
        ("[[Sleep of mice.", "Sleep of mice."),
        ("[[3H]Thymidine in mice.", "[3H]Thymidine in mice."),
        ("[ [Do mice sleep?].", "Do mice sleep?"),
    ],
    "author-translation": [
        ("Sleep of mice (author's transl).", "Sleep of mice."),
        ("Sleep of mice (authors’ transl.)", "Sleep of mice"),
        ("Sleep of mice\n (Author's transl.)", "Sleep of mice"),
    ],
    "in-process": [
        ("Sleep of mice [In Process Citation].", "Sleep of mice."),
        ("Sleep of mice. [In Process Citation]", "Sleep of mice."),
        ("Sleep of mice[in process citation]", "Sleep of mice"),
    ],
    "stubs": [
        ("Not available.", ""),
        ("No title available", ""),
        ("Untitled.", ""),
    ],
}


@pytest.mark.parametrize(
    ("name", "before", "after"), [(name, *pair) for name, pairs in TITLE_RULES.items() for pair in pairs]
)
def test_title_rules(name: str, before: str, after: str) -> None:
    for cleaner in (Cleaner([name]), ALL_RULES):
        removed: dict[str, int] = {}
        assert cleaner.clean_title(before, removed) == after
        assert removed == {name: len(before) - len(after)}
    assert omit_rule(name).clean_title(before, {}) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[Sleep of mice (author's transl)].", "Sleep of mice."),
        ("[Sleep of mice] (author's transl).", "Sleep of mice."),
        ("[Sleep of mice (author's transl].", "Sleep of mice."),
        ("[Sleep of mice [In Process Citation]].", "Sleep of mice."),
        ("[Not Available].", ""),
    ],
)
def test_titles_with_more_than_one_note(before: str, after: str) -> None:
    removed: dict[str, int] = {}
    assert ALL_RULES.clean_title(before, removed) == after
    assert len(removed) == 2
    assert sum(removed.values()) == len(before) - len(after)


# Abstract rules

END_NOTES = {
    "copyright": [
        " © 2019 Wiley Periodicals, Inc.",
        " © 2019 The Authors. Sleep of Mice published by Wiley on behalf of the Society of Mice (SOM).",
        " Copyright © 2001 S. Karger AG, Basel",
        " Copyright (c) 1999 Mouse Press.",
        " Copyright 1998 Academic Press.",
        " Crown Copyright © 2012. Published by Elsevier B.V. All rights reserved.",
        "Copyright © 2020, Mouse et al.; licensee Cheese.",
        " (c) 2000 American Institute of Mice",
        " Published by Elsevier Ltd.",
        " All rights reserved.",
        " This article is protected by copyright. All rights reserved.",
        " This is an open access article under the CC BY license (http://mice.example/by/4.0/).",
        " © 2018 by the authors. Licensee MDPI, Basel, Switzerland.",
        " © The Author(s) 2020. Published by Oxford University Press on behalf of Mice. All rights reserved."
        " For permissions, please e-mail: mouse@mice.example.",
        " (PsycINFO Database Record (c) 2018 APA, all rights reserved).",
        " Georg Thieme Verlag KG Stuttgart · New York.",
        " Schattauer GmbH Stuttgart.",
    ],
    "truncation-notes": [
        "(ABSTRACT TRUNCATED AT 250 WORDS)",
        " (ABSTRACT TRUNCATED)",
        " (abstract truncated at 400 words).",
        "[ABSTRACT TRUNCATED AT 250 WORDS]",
        " (ABSTRACT TRUNCATED AT 250 WORDS",
        " ABSTRACT TRUNCATED AT 250 WORDS)",
    ],
    "author-translation": [" (author's transl)", "(author's transl.).", " (Author’s transl)"],
    "in-process": [" [In Process Citation]", "[In Process Citation].", "\n[in process citation]"],
    "journal-notes": [
        " Mouse Cancer Res; 16(2); 286-95.",
        " Mouse Cancer Ther; 1-11.",
        " Hum Mouse 18:251, 2001.",
        " J Am Mouse Soc 67:2568-2573, 2019.",
        " J. Comp. Neurol. 2018.",
        " J Comp Neurol, 2018.",
        " Am. J. Mouse Genet. Part A 170A: 12–20, 2016.",
        " Mouse Defects Research 109:000-000, 2017.",
        " (Sleepology 2017;65:123-130).",
        " Muscle of Mice, 2017; 12: e123.",
        " (Arq Mouse Cardiol. 2020; [online].ahead print, PP.0-0)",
        " Cite this article: Bone Mouse J 2017;99-B:1–5.",
        " Laryngoscope, 130:12-20, 2020.",
        " Antisleep. Mouse Signal. 27, 913-930.",
        "-Ito, E., van der Lin, A. M. S., O'Kwan, J.-K. Sleep of mice, rats and others.",
        "-Ito, E. Sleep.",
        " https://doi.org/10.0000/MOUSE4849.",
        "See related commentary by Mouse, p. 123.",
        " See related articles by Mouse et al., p. 12 and Rat, p. 34.",
        " This article is highlighted in the In This Issue feature, p. 1.",
        " This article is categorized under: Mice > Sleep Rats > Sleep and Food.",
        " This article is part of the theme issue ‘Sleep of mice’.",
        " This article is part of a discussion meeting issue 'Mice'.",
        " This article has an associated First Mouse interview with the author.",
        "[Mice; sleep of rats; phylogenetics; Tree of Sleep.].",
        " Visual Overview- An online visual overview is available for this article.",
        " Sleep Mice 2019, 8:12-34. doi: 10.0000/mice.12 For further resources related to this article,"
        " please visit the MICE website.",
        " Open Science: This manuscript was awarded with the Open Materials Badge For more information see:"
        " https://mice.example/badges.",
    ],
    "empty-labels": [" CONCLUSIONS:", "\nRESULTS AND DISCUSSION: ", " MATERIALS & METHODS :"],
}


@pytest.mark.parametrize(
    ("name", "note"), [(name, note) for name, ends in END_NOTES.items() for note in ends]
)
def test_end_notes_of_abstracts(name: str, note: str) -> None:
    for cleaner in (Cleaner([name]), ALL_RULES):
        removed: dict[str, int] = {}
        assert cleaner.clean_abstract([("AIM", SENTENCES), ("END", SENTENCES + note + "\n")], removed) == [
            ("AIM", SENTENCES),
            ("END", SENTENCES),
        ]
        assert removed == {name: len(note) + 1}
    assert omit_rule(name).clean_abstract([(None, SENTENCES + note)], {}) == [(None, SENTENCES + note)]
    note_before_the_end = [(None, SENTENCES + note), ("END", SENTENCES)]
    assert ALL_RULES.clean_abstract(note_before_the_end, {}) == note_before_the_end
    if name != "empty-labels":
        assert ALL_RULES.clean_abstract([(None, f"{SENTENCES}{note} The mice woke.")], {}) == [
            (None, f"{SENTENCES}{note} The mice woke.")
        ]


LABEL_CASES: list[tuple[list[LabelledText], list[LabelledText]]] = [
    ([("AIM", ""), ("RESULTS", SENTENCES)], [("RESULTS", SENTENCES)]),
    ([("AIM", " -. "), ("RESULTS", SENTENCES), ("END", "END:")], [("RESULTS", SENTENCES)]),
    ([("METHODS", "Methods.")], []),
    ([("METHODS", f"METHODS: {SENTENCES}")], [("METHODS", SENTENCES)]),
    ([("Methods", f"\n METHODS : Methods:{SENTENCES}")], [("Methods", SENTENCES)]),
    ([(None, f"BACKGROUND: METHODS: {SENTENCES}")], [(None, f"METHODS: {SENTENCES}")]),
    (
        [(None, f"AIM: {SENTENCES} MATERIALS AND METHODS:RESULTS: {SENTENCES}")],
        [(None, f"AIM: {SENTENCES} RESULTS: {SENTENCES}")],
    ),
]


@pytest.mark.parametrize(("before", "after"), LABEL_CASES)
def test_labels_without_text(before: list[LabelledText], after: list[LabelledText]) -> None:
    cleaners = [Cleaner(["empty-labels"]), omit_rule("run-in-labels")]
    for cleaner in cleaners:
        removed: dict[str, int] = {}
        assert cleaner.clean_abstract(before, removed) == after
        assert removed == {"empty-labels": count_characters(before) - count_characters(after)}
    without = Cleaner(set(CLEANING_RULES) - {"empty-labels", "run-in-labels"})
    assert without.clean_abstract(before, {}) == before


def split_marked(marked: str) -> tuple[str, list[LabelledText]]:
    """Return a text whose labels are marked, as in "{Aim:} To see. {Results:} Good.", and its sections."""
    before, *parts = re.split("[{}]", marked)
    labels = [None, *(re.sub(r"\A[(\[]?\d[)\].] ", "", label).strip(" .:-—[]") for label in parts[::2])]
    texts = [text.strip() for text in (before, *parts[1::2])]
    return re.sub("[{}]", "", marked), [section for section in zip(labels, texts, strict=True) if section[1]]


RUN_IN_CASES = [
    split_marked(marked.replace("S.", SENTENCES))
    for marked in (
        "{Methods:} S.",
        "{AIM:} S. {RESULTS:} S.",
        "S. {Materials and methods :} S.",
        "{Background:} to sleep.{Study Design:} S.",
        "{Aims & Objectives:} S. (See below.) {Main Outcome Measure(s):} Sleep.",
        "{SEARCH STRATEGY:} S. {DATA COLLECTION AND ANALYSIS:} None. {AUTHORS' CONCLUSIONS:} Sleep.",
        "{Background and Purpose-} S. {Methods -} S. {RESULTS—}12 mice slept.",
        "{METHODS:} {RESULTS:} S.",
        "{METHODS:}{RESULTS:} S.",
        "{Results:} {Results:} S.",
        "{Aim:} To see.{Methods:} We looked.",
        "{Objective} To see (it). {Patients and Methods} We looked (twice.) {Results} 12 mice slept.",
        "{BACKGROUND} Mice sleep. {CASE REPORT} A mouse. {RESULTS} It slept. Results were good.",
        "{Purpose/Objective:} To see. {Research Method/Design:} We looked. {Results:} They sleep.",
        "{Purpose.} To see. {Methods.} We looked. {Conclusions.} They sleep.",
        "{Objective.}To see mice.{Approach.}We looked (twice).{Main results.}They sleep."
        "{Significance.}It is new.",
        "{BACKGROUND AND RATIONALE FOR THE STUDY} Mice. {METHODS} We look. {RESULTS} None.",
        "{BACKGROUND AND RATIONALE FOR THE STUDY:} Mice. {METHODS:} We look.",
        "{Study Design} Case report. {Objective} We see. {Methods} A 5-day-old mouse. {Results} It slept.",
        "{Study Design}Case report.{Objective}To see mice.{Methods}A mouse sat.{Results}X-rays (two)."
        "{Conclusion}Good.",
        "{Objective.} X-rays of mice.{Approach.} We looked.{Significance.} It is new.",
        "Mice sleep.{IMPORTANCE} S.",
        "Do (mice) sleep? {IMPORTANCE} S.",
        # with labels that have a mark, the word is part of a section; a name after another colon is no label
        "{METHODS:} We look. IMPORTANCE S.",
        "{METHODS:} As follows: Results: S.",
        "{(1) Background:} S. {(2) Methods:} We look; {(3) Results:} They sleep.",
        "{1. Background:} S. {2. Methods:} We look at (3). {3. Results:} They sleep.",
        "{Background:} S. {Methods:} We look at mouse 2. {Results:} They sleep.",
        "{[Purpose]} To see. {[Subjects and Methods]} 12 [old] mice. {[Results]} They slept.",
    )
]


NEXT: LabelledText = ("A", "B.")


STUBS = [
    "Abstract not available.",
    "[No abstract available]",
    "N/A",
    "None.",
    "not available",
    ".",
    "(Not applicable.)",
    "Abstract available from the publisher.",
    "[This corrects the article DOI: 10.0000/mice.2001.].",
    "[This retracts the article on p. 12 in vol. 3, PMID: 90000001.]",
]


SECTION_CASES: list[tuple[str, list[Any], list[Any]]] = [
    *(("run-in-labels", [(None, text)], after) for text, after in RUN_IN_CASES),
    # Labels within sections that have labels: with a blank, of main parts alone.
    *(
        ("run-in-labels", [(label, text), NEXT], [(name or label, part) for name, part in sections] + [NEXT])
        for label, (text, sections) in (
            ("Aim", split_marked("{Aim:} to see. {Results:} " + SENTENCES)),
            # A sentence that is only a name.
            (
                "Aim",
                split_marked(
                    "To see. {Methods.} We look. {Results and Discussion.} 12 mice (19%). It Results. None."
                ),
            ),
            ("DESIGN", split_marked("A study (MRI) {OBJECTIVE.:} To see. A MICE.: of methods.: Two.")),
            ("DESIGN", split_marked("Mice sleep.{Methods and Results:}We looked.")),
            ("DESIGN", split_marked("Mice Study{PARTICIPANTS:}12 mice.")),
            ("DESIGN", split_marked("Do (mice){AIM:}to see. {Results:}none.")),
            ("DESIGN", split_marked("To see. {Methods:} We look. Setting: A house. {Main Results:} None.")),
        )
    ),
    *(
        ("run-in-labels", [(None, f"{label} The mice."), NEXT], [(label, "The mice."), NEXT])
        for label in ("RATIONALE", "AIMS AND METHODS")
    ),
    *(
        ("stray-marks", [("AIM", before), (None, SENTENCES)], [("AIM", after), (None, SENTENCES)])
        for before, after in (
            (". Mice slept.", "Mice slept."),
            ("; , Mice slept.", "Mice slept."),
            ("Mice slept. (", "Mice slept."),
            (": Mice slept [ ", "Mice slept"),
        )
    ),
    *(
        ("reference-numbers", [(None, before)], [(None, after)])
        for before, after in (
            ("They live in a workplace.1 They sleep.", "They live in a workplace. They sleep."),
            ("Mice sleep well.2,3 They drink.4–6", "Mice sleep well. They drink."),
            ("It was shown previously3-5.", "It was shown previously."),
            ("As reported1,2, mice sleep, in a cancer3–5 too.", "As reported, mice sleep, in a cancer too."),
            ("The risk of arthritis12,13 (gout) rose.", "The risk of arthritis (gout) rose."),
            ("Gulls sleep in nests [1, 2] or boats [3], [4].", "Gulls sleep in nests or boats."),
            ("They were counted by Ode et al. [12].", "They were counted by Ode et al."),
            ("They sleep (Ode, 2031) [1]; they sing.[3-5]", "They sleep (Ode, 2031); they sing."),
        )
    ),
    *(("stubs", [(None, stub), (None, "")], []) for stub in STUBS),
]


@pytest.mark.parametrize(("colons", "sections"), [(999, 2), (1000, 1)])
def test_labels_are_looked_for_after_a_thousand_colons_at_most(colons: int, sections: int) -> None:
    text = f"{'a:b ' * colons}end. Results:{SENTENCES}"
    assert len(ALL_RULES.clean_abstract([("Aim", text)], {})) == sections


@pytest.mark.parametrize(("name", "before", "after"), SECTION_CASES)
def test_rules_of_sections(name: str, before: list[LabelledText], after: list[LabelledText]) -> None:
    for cleaner in (Cleaner([name]), ALL_RULES):
        removed: dict[str, int] = {}
        assert cleaner.clean_abstract(before, removed) == after
        assert removed == {name: count_characters(before) - count_characters(after)}
    without = omit_rule(name).clean_abstract(before, {})
    assert without != after
    assert name == "run-in-labels" or without[0] == before[0]


@pytest.mark.parametrize(
    ("names", "sections"),
    [
        # Stubs of one section among others, and texts that begin like stubs.
        *(
            (CLEANING_RULES, [("SETTING" if stub != "." else None, stub), ("RESULTS", SENTENCES)])
            for stub in STUBS
        ),
        (CLEANING_RULES, [(None, "[This corrects the article DOI: 10.0000/mice.] Mice were counted anew.")]),
        (CLEANING_RULES, [(None, "This corrects the count.")]),
        # Words and colons that are no labels.
        *(
            (CLEANING_RULES, [("DESIGN", text), NEXT])
            for text in (
                "Mice sleep at a ratio:1 of methods:1.",
                "See http://example.org/methods:1 and Methods: they sleep.",
                "PARTICIPANTS mice sleep.",
            )
        ),
        *(
            (CLEANING_RULES, [(None, text), ("METHODS", SENTENCES)])
            for text in ("RATIONALE of mice.", "Rationale The mice.", "DNA The mice.")
        ),
        (CLEANING_RULES, [(None, "AIMS Two."), (None, SENTENCES)]),
        (
            CLEANING_RULES,
            [("RESULTS", "Results of mice: good."), ("Time", "Times."), ("INTERVENTION(S)", "None.")],
        ),
        *(
            (["run-in-labels"], [(None, text)])
            for text in (
                "They had three aims: to sleep, to eat, and to sleep.",
                "The mice had these Results: sleep.",
                "Ratio of methods: 12:1. Cells: 12.",
                "We asked for the following. Methods:sleep",
                "Patients:12 mice.",
                "Patients- and mice-related data. Methods-based sleep. Results - good ones - were few.",
                "The Results- Section was read.",
                "Sleep is good. Methods were these: sleep and food.",
                "Background: ",
                "Objective Mice sleep. Methods Were used. They sleep.",
                "Mice sleep. Methods We looked. Results They sleep. Conclusion Good.",
                "BACKGROUND Mice sleep. Methods We looked. Results They sleep.",
                "Background noise was low. Methods were used. Results were good.",
                "The IMPORTANCE OF mice. (IMPORTANCE Sleep) of IMPORTANCE They.",
                "Studies of mice. ResultsMice sleep. ConclusionGood.",
                "Study DesignStudio. Objectives were two. Methods were these.",
            )
        ),
        *(
            (["stray-marks"], [("AIM", text), (None, SENTENCES)])
            for text in (".05 is the limit.", "... and mice slept.", "(Mice) slept", ".", "( .")
        ),
        *(
            (["markup"], [(None, text)])
            for text in (
                "p<0.05 and a>b, <a> and <c+a> slip, <p> alone",
                "the elements <contrib> and </contrib>, <sup> and x</y",
                "<r.m.s. deviation>bb",
            )
        ),
    ],
)
def test_sections_that_are_kept(names: list[str], sections: list[LabelledText]) -> None:
    removed: dict[str, int] = {}
    assert Cleaner(names).clean_abstract(sections, removed) == sections
    assert removed == {}


def test_a_label_before_run_in_labels_stays() -> None:
    for text, sections in RUN_IN_CASES:
        if sections[0][0] and text[1] not in "1.":  # a label begins the text
            assert ALL_RULES.clean_abstract([("FINDINGS", text)], {}) == [("FINDINGS", text)]


@settings(max_examples=examples(2000))
@given(st.from_regex(re.compile(SECTION_NAME, re.VERBOSE | re.ASCII), fullmatch=True))
def test_every_section_name_is_a_run_in_label(name: str) -> None:
    for label in (name, name.upper(), name.capitalize()):
        assert Cleaner(["run-in-labels"]).clean_abstract([(None, f"{label}: {SENTENCES}")], {}) == [
            (label, SENTENCES)
        ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            [(None, f"{SENTENCES} © 2001 Mice. All rights reserved. (ABSTRACT TRUNCATED)")],
            [(None, SENTENCES)],
        ),
        ([(None, f"{SENTENCES} (ABSTRACT TRUNCATED). Copyright 1999 Mouse Press.")], [(None, SENTENCES)]),
        (
            [
                ("END", f"{SENTENCES} © 2001 Mice."),
                (None, "All rights reserved."),
                ("COPYRIGHT", "© 2001 Mice"),
            ],
            [("END", SENTENCES)],
        ),
        ([(None, SENTENCES), ("END", "END: © 2001 Mice.")], [(None, SENTENCES)]),
        ([(None, "No abstract available. © 2001 Mice.")], []),
        ([(None, "© 2001 Mice.")], []),
        (
            [(None, f"{SENTENCES} © 2001 Mice. CONCLUSION:"), (None, " \n")],
            [(None, SENTENCES), (None, " \n")],
        ),
    ],
)
def test_consecutive_notes(before: list[LabelledText], after: list[LabelledText]) -> None:
    removed: dict[str, int] = {}
    assert ALL_RULES.clean_abstract(before, removed) == after
    assert sum(removed.values()) == count_characters(before) - count_characters(after)


# Scientific text

SCIENTIFIC_TEXTS = [
    # Letters that mojibake is made of.
    "150 Å² at 3 Å–4 Å, “3 Å”, 2 Å… and 5 Å³",
    "São Paulo, Île-de-France, Ångström, Âge, “À la carte”, ÎLE, Çatalhöyük, Ærø",
    "the patient said “Ã”, Â = 5 and Ï = 3, 5 € a day, â‰ and Ã",
    "“…” ± µ · ² ½ ¿",
    "α-, β- and Δ9-THC; 5 µM, 37 °C, 10⁻³ and 10² m², ½ × 3 ± 0.2 ≤ 5 ≥ −4 ≈ ∞ Å",
    "5′-AMP and 3″ primes, ⟨x⟩, ∑∫√ ∂, 𝑝 < 0.05, CO₂, Ca²⁺ → Na⁺, naïve Müller œdema, „so“ – ‘it’ — was… ①",
    "N-[(2S)-2-methylpropanoyl] amide, 2,3-dihydroxy[1]benzopyran, [Ru(bpy)3]2+",
    "V̇O2 rose; a character was lost: G\ufffd 6976.",
    "The Copyright Act 1988 was amended. Authors know little of copyright law.",
    "We asked who owns the copyright. Copyright laws differ by 1998 cases.",
    "Data were analysed with SPSS© software.",
    "The tool is free. It is available under the MIT license.",
    "The data are published by the health ministry in 1998 reports.",
    "The first report was long ago. Published by Edward Jenner in 1798, it described 23 cases.",
    "He wrote a treatise. Published by John Snow in 1855.",
    "All rights reserved to patients in law were respected.",
    "This article is about the copyright of mice.",
    "We drew maps. An online visual overview is available for this article and for its data.",
    "Badges help. This manuscript was awarded with one and asks why.",
    "This work is licensed in three states; nurses were licensed in two.",
    "Three groups were formed. (c) 1999 patients were treated.",
    "© 2019 Wiley. The mice slept.",
    "The trial was registered. © 2019 Mice. NCT01234567.",
    "It was good. © 2019 Mice. LEVEL OF EVIDENCE: 4.",
    "The protein was truncated at 250 residues.",
    "In many journals we found the abstract truncated.",
    "Truncated at 250 words, the letters were sent to Elsevier",
    "They slept well (Sleep of Mice 1999;12:34-56).",
    "A phrase of Kant's (author's translation) is the motto of this paper.",
    "The sirtuin1-7 and arrestin1,2 genes, groups1-3, days1,3 and Mcm2-7.",
    "Median [IQR] age, 64 [53-75] years, 6 months [4-17] vs 70% [50-83], range [3-9], cucurbit[7]uril.",
    "Pyrimido [1, 2]benzimidazole in t[51] = 0.09; see [4], as shown by [5] and described in [6].",
    "Cells were grown at approx.5 The rest at temp.37 C. Info.3 was used, version.2 was not.",
    "We used p53.2 Then cells were seen in Table.2 as in Fig.1 The rest was lost",
    "It was made in Osaka, Japan, 2018.",
    "Last search: September 2000. Data were read from January to October 2014.",
    "See Table 2: 10-12",
    "The ratio was high. Level of evidence: 4.",
    "Mice slept in Phase 2: 10-12.",
    "Registered. ISRCTN 63718836.",
    'This corrects the article "Sleep of mice" (doi: 10.0000/mice.12).',
    "It sleeps (M. Mouse, J. Leah, and J. Virol, J. Virol. 65:12-34, 1991).",
    "It sleeps, as Singh and Mouse say, J. Biol. Chem. 12:3-4, 1995.",
    "See related work by Ito, who slept on p. 12.",
    "Three questions remain: WHO AIMS: what, and where",
    "None of the mice slept.",
    "No abstract theory is available.",
]


@pytest.mark.parametrize("text", SCIENTIFIC_TEXTS)
def test_scientific_text_is_unchanged(text: str) -> None:
    removed: dict[str, int] = {}
    assert ALL_RULES.clean_text(text, removed) is text
    assert ALL_RULES.clean_title(text, removed) is text
    for label in (None, "FINDINGS", "Not"):
        assert ALL_RULES.clean_abstract([(label, SENTENCES), (label, text)], removed) == [
            (label, SENTENCES),
            (label, text),
        ]
    assert removed == {}


@pytest.mark.parametrize(
    "title",
    [
        "[3H]Thymidine and [14C]uridine",
        "[3H]Thymidine uptake [In mice].",
        "[60]Fullerene",
        "[Sleep of mice].  A comment.",
        "[Sleep of mice",
        "Sleep of mice].",
        "[[Sleep of mice]].",
        "[[3H]Thymidine] in mice.",
        "[IGFBP7]·[TIMP2] in mice",
        "Translational sleep (transl. by hand)",
        "Sleep[In Process Citation]of mice",
        "None",
    ],
)
def test_brackets_within_titles_are_kept(title: str) -> None:
    assert ALL_RULES.clean_title(title, {}) == title


# Properties

ALL_END_NOTES = [note for notes in END_NOTES.values() for note in notes]
CHARACTERS = " \n[]()5aéαب©\x85\x96\xa0\xad\u0301\u0323\u1161\u200b\u200c\u202a\u2126\uf0b1\ufb01"
PARTS = st.sampled_from(
    [
        SENTENCES,
        ". ",
        ": ",
        "AIM",
        "AIM:",
        "METHODS: ",
        "Results: ",
        "Hum Mutat 18:251, 2001. ",
        "well.2,3 They",
        "reported1,2",
        "].",
        "None.",
        "N/A",
        " © 2001 Mice.",
        "Not Available",
    ]
) | st.sampled_from(CHARACTERS)
TEXTS = st.lists(PARTS | st.sampled_from(ALL_END_NOTES) | st.text(max_size=3), max_size=8).map("".join)
SECTIONS = st.lists(
    st.tuples(st.none() | st.sampled_from(["AIM", "Methods", "e\u0301 \xa0"]), TEXTS), max_size=4
)
CLEANERS = st.one_of(st.just(ALL_RULES), st.sets(st.sampled_from(CLEANING_RULES)).map(Cleaner))


@settings(max_examples=examples(1500))
@given(CLEANERS, TEXTS, SECTIONS)
@example(ALL_RULES, "", [(None, "reported1,2.(author's transl.).")])
@example(Cleaner({"run-in-labels"}), "", [("AIM", "Mice slept in cages.METHODS: METHODS: They did.")])
@example(ALL_RULES, "", [(None, ": METHODS: Mice slept in cages.")])
@example(Cleaner({"run-in-labels"}), "", [("Methods", "METHODS: Mice slept.METHODS: They did.")])
def test_cleaning_is_idempotent_and_counts_add_up(
    cleaner: Cleaner, title: str, sections: list[LabelledText]
) -> None:
    removed: dict[str, int] = {}
    removed_again: dict[str, int] = {}
    cleaned_title = cleaner.clean_title(title, removed)
    cleaned = cleaner.clean_abstract(sections, removed)
    assert sum(removed.values()) == len(title) + count_characters(sections) - len(
        cleaned_title
    ) - count_characters(cleaned)
    assert cleaner.clean_abstract(cleaned, removed_again) == cleaned
    assert cleaner.clean_title(cleaned_title, removed_again) == cleaned_title
    assert removed_again == {}


@settings(max_examples=examples(500))
@given(st.text())
def test_cleaned_text_is_composed_and_visible(text: str) -> None:
    removed: dict[str, int] = {}
    cleaned = ALL_RULES.clean_text(text, removed)
    assert unicodedata.is_normalized("NFC", cleaned)
    assert not [c for c in cleaned if unicodedata.category(c) in ("Co", "Zl", "Zp") or "\x7f" <= c <= "\x9f"]
    assert "\xad" not in cleaned
    assert "\xa0" not in cleaned
    assert ALL_RULES.clean_text(cleaned, {}) is cleaned
    assert sum(removed.values()) == len(text) - len(cleaned)


ALPHABET = "aZ09 .,;:()[]±×÷·°µαβΔΩ²³¹½⁻⁺₂≤≥≈≠∞→√∑′″−–—‘’“”…ßéüñøåœ€™®𝑝ℓ眠"


@settings(max_examples=examples(300))
@given(st.text(ALPHABET))
def test_letters_and_signs_of_science_are_unchanged(text: str) -> None:
    assert ALL_RULES.clean_text(text, {}) is text


@pytest.mark.thorough
def test_every_composing_character_is_normalised() -> None:
    cleaner = Cleaner(["nfc"])
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) == "Cs":
            continue
        pair = unicodedata.normalize("NFD", character)
        for text in (f"a{character}", f"a{pair}", f"({pair[:1]}b{pair[1:]})"):
            assert cleaner.clean_text(text, {}) == unicodedata.normalize("NFC", text)


HOSTILE_PARTS = [
    "\xad",
    "\u200b",
    "a\u0323\u0301",
    "\ue000a",
    "\x96",
    " ",
    " (",
    "[",
    "]",
    "[a]",
    "AIM:",
    "AIM : ",
    "METHODS AND ",
    "x. Methods: y. ",
    "Mice slept in cages. Cancer Res; 1(1); 1-2. ",
    "well.1,",
    "reported1,2 ",
    ". ( ",
    "(ABSTRACT TRUNCATED)",
    "(abstract truncated ",
    " (author's transl)",
    "[In Process Citation] ",
    "© 2001 Mice. ",
    "© mice. ",
    "All rights reserved. ",
    "Published by ",
    "This article ",
    "© 2001 Mice. (ABSTRACT TRUNCATED) ",
    "N/A ",
    "\n",
]


@pytest.mark.thorough
@pytest.mark.parametrize("part", HOSTILE_PARTS)
def test_hostile_text_is_cleaned_in_seconds(part: str) -> None:
    text = part * (250_000 // len(part))
    started = time.process_time()
    for hostile in (text, "[" + text + "].", "A" + text + "x", "AIM: " + text, text + "© 2001 Mice."):
        ALL_RULES.clean_title(hostile, {})
        ALL_RULES.clean_abstract([("AIM", hostile), (None, hostile)], {})
    assert time.process_time() - started < 20


# Citations at the start


def test_citation_of_the_article_at_the_start_is_removed() -> None:
    citation = "Ito, E, O'Kwan, RS, and Lin, A. Sleep? A study. J Strength Cond Res XX(X): 000-000, 2019-"
    removed: dict[str, int] = {}
    assert Cleaner(["journal-notes"]).clean_abstract([(None, citation + SENTENCES)], removed) == [
        (None, SENTENCES)
    ]
    assert removed == {"journal-notes": len(citation)}
    assert (
        omit_rule("journal-notes").clean_abstract([(None, citation + SENTENCES)], {})[0][1].startswith("Ito")
    )
    for text in (
        f"{SENTENCES} See J Strength Cond Res 3(2): 1-9, 2019-2020.",
        "Ito, E. J Strength Cond Res",
        f"{SENTENCES} Mice slept [Ito; Lin; Roth].",
        f"{SENTENCES} See Fig. 27, 13-30.",
        f"{SENTENCES}-Mice, rats, and E. coli slept.",
        f"{SENTENCES} Mice of Prof. Ito et al. 27, 13-30.",
        f"{SENTENCES}[Mice; rats].",
        f"{SENTENCES}[n = 2; P = 3; Q].",
    ):
        assert Cleaner(["journal-notes"]).clean_abstract([(None, text)], {}) == [(None, text)]


# Escaped markup


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("10<sup>6</sup> <i>E. coli</i> in 5 mm<PRE>3</PRE>", "10^6 E. coli in 5 mm3"),
        ("<p>Mice sleep.</p>. We asked<br/>why.", "Mice sleep. We asked why."),
        ("<ul><li>mice,</li><li class='x'>rats</li></ul>", "mice, rats"),
        ('as <link rid="b1">2011</link; Ode 2012)', "as 2011; Ode 2012)"),
    ],
)
def test_escaped_tags_are_removed(before: str, after: str) -> None:
    removed: dict[str, int] = {}
    assert Cleaner(["markup"]).clean_abstract([("AIM", before)], removed) == [("AIM", after)]
    assert removed == {"markup": len(before) - len(after)}
    assert Cleaner(["markup"]).clean_title(before, {}) == after
    assert omit_rule("markup").clean_abstract([("AIM", before)], {}) == [("AIM", before)]


# Names


def test_unknown_rule_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match=r"unknown cleaning rule 'ligature' \(did you mean ligatures"):
        Cleaner(["nfc", "ligature"])
    with pytest.raises(ValueError, match="rules: mojibake, controls"):
        Cleaner("xyz")


def test_every_sequence_of_mojibake_is_valid_utf_8() -> None:
    characters = {
        code.decode(encoding, "ignore")
        for code in map(bytes, zip(range(0x80, 0x100), strict=True))
        for encoding in ("latin-1", "windows-1252")
    } - {""}
    sequences = [
        "".join(letters)
        for length in (2, 3)
        for letters in itertools.product(sorted(characters), repeat=length)
        if cleaning.MOJIBAKE.fullmatch("".join(letters))
    ]
    assert len(sequences) == 2320
    for sequence in sequences:
        assert len(cleaning.mend_mojibake(sequence)) in (1, len(sequence))
