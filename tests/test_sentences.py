"""Splitting text into sentences: every word is kept, and full stops of abbreviations end nothing.

Whatever the splitter decides, the text must come back from it whole: a corpus may have a sentence
cut in two, but never one with a word lost.  So that is tested for any text, hostile ones included,
and the decisions by cases.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.sentences import ABBREVIATIONS, split, split_clean

PROFILE = settings(derandomize=True, deadline=None, database=None)

PARTS = st.sampled_from(
    [". ", "? ", "! ", ".", ".) ", '." ', " (", "[", "]", "The", "a", "E. coli", "Fig. ", "p < 0.05"]
) | st.sampled_from(
    [
        "\n",
        "\u2028",
        "\u00a0",
        "\u3000",
        "\x1c",
        "\x85",
        "e.g. ",
        "“",
        "”",
        "ω",
        "Ω",
        "1",
        "i.v. ",
        "...",
        "\x00",
    ]
)


@settings(PROFILE, max_examples=400)
@given(st.text() | st.lists(PARTS | st.text(max_size=4), max_size=40).map("".join))
def test_no_word_is_lost_changed_or_moved(text: str) -> None:
    assert " ".join(split(text)).split() == text.split()


@settings(PROFILE, max_examples=400)
@given(st.lists(PARTS | st.text(max_size=4), max_size=40).map("".join))
def test_every_sentence_is_one_line_with_words_in_it(text: str) -> None:
    for sentence in split(text):
        assert sentence
        assert sentence == " ".join(sentence.split())


@settings(PROFILE, max_examples=200)
@given(st.lists(PARTS, max_size=40).map("".join))
def test_clean_text_is_split_the_same_by_either_function(text: str) -> None:
    clean = " ".join(text.split())
    assert split_clean(clean) == split(text)
    assert " ".join(split_clean(clean)) == clean


SPLIT = {
    "two sentences": ["Cells were grown.", "They died."],
    "a question and a shout": ["Does it work?", "It does!", "We think so."],
    "a number begins a sentence": ["It was repeated.", "12 mice were used."],
    "a bracket begins a sentence": ["It was repeated.", "(See below.)", "Then it ended."],
    "a quotation ends a sentence": ['He called it "a cure."', "Nobody agreed."],
    "round quotation marks": ["He called it “a cure.”", "“Nobody,” she said, agreed."],
    "citations in brackets": ["As shown before [12].", "Others disagree (13).", "We do not."],
    "Greek begins a sentence": ["It was blocked.", "Ω was constant."],
    "a gene at the end": ["It binds p53.", "Loss is common."],
    "a decimal number": ["The mean was 3.14 mg.", "The range was 1.2 to 5.0."],
    "a unit at the end": ["It weighed 5 mg.", "Then it grew."],
    "a small letter follows": ["It was stained with approx. five dyes, i.e. dyes of vol. two."],
    "a comparison follows": ["Survival rose markedly. < 5 died."],
    "an ellipsis": ["It went on ... and on.", "Then it stopped."],
    "figures": ["See Fig. 2 and Figs. 3 and 4.", "Nothing else."],
    "e.g. and i.e.": ["Some cells, e.g. Jurkat, died, i.e. Lysed.", "Others lived."],
    "species": ["We grew E. Coli and S. Aureus.", "Both grew."],
    "initials": ["J. K. Smith et al. Reported this.", "We did not."],
    "a doctor": ["Dr. Miller and Prof. Jones agreed.", "So did we."],
    "doses": ["It was given i.v. Before the meal.", "Then not."],
    "an abbreviation in brackets": ["It was shown (cf. Table 2) before.", "It was not (Fig. 3).", "Yes."],
    "an initial, then a clear beginning": ["They had vitamin B.", "We had vitamin C.", "The rest had none."],
    "a lone small letter": ["It was group b.", "Next came c."],
    "a month": ["It began on 3 Jan. 1999 in Paris.", "It ended soon."],
}


@pytest.mark.parametrize("what", SPLIT)
def test_sentences_end_where_a_reader_ends_them(what: str) -> None:
    assert split(" ".join(SPLIT[what])) == SPLIT[what]
    assert split("\n  ".join(SPLIT[what]) + "\t") == SPLIT[what]


@pytest.mark.parametrize("word", sorted(ABBREVIATIONS))
def test_no_abbreviation_of_the_table_ends_a_sentence(word: str) -> None:
    text = f"As said ({word}. Nine) and {word}. Nine of them."
    assert split(text) == [text]


@pytest.mark.parametrize("word", sorted(ABBREVIATIONS))
def test_an_abbreviation_is_no_excuse_for_a_question_mark(word: str) -> None:
    assert split(f"Was it {word}? Nine did.") == [f"Was it {word}?", "Nine did."]


@pytest.mark.parametrize("nothing", ["", " ", "\n\t\r\n", "\u3000\u2028\u00a0"])
def test_nothing_has_no_sentences(nothing: str) -> None:
    assert split(nothing) == []


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
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_text_comes_back_whole(what: str) -> None:
    text = HOSTILE[what]
    found = split(text)
    assert " ".join(found) == " ".join(text.split())
    assert all(found)
