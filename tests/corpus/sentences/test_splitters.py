"""The choice of splitter: what each does to text, and what is said where its library is missing.

scispaCy and NLTK are the real ones here.  What they do may differ in another version; that nothing of a
text is lost, and that a run without them ends before it begins, may not.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus import sentences
from bioshards.corpus.errors import MissingExtraError
from bioshards.corpus.sentences import splitters
from bioshards.corpus.sentences.splitters import (
    Splitter,
    find_library_versions,
    load_splitter,
    load_treebank_tokenizer,
)
from tests.support.outputs import load_manifest

Run = Callable[..., int]
PROFILE = settings(derandomize=True, deadline=None, database=None)


@functools.cache
def scispacy() -> Splitter:
    return load_splitter("scispacy")


def test_the_default_is_our_own_and_none_keeps_paragraphs() -> None:
    assert load_splitter("rules") is sentences.split_line
    assert load_splitter("none")("It was. So it was.") == ["It was. So it was."]
    assert load_splitter("none")("") == []
    assert find_library_versions("rules", False) == find_library_versions("none", False) == {}


@pytest.mark.parametrize(
    "expected",
    [
        ["Mice grew (cf. Fig. 2).", "They slept."],
        ["E. coli grew.", "S. aureus did not.", "Was it so?", "Yes."],
        ["We gave 5 mg/kg i.p. twice.", "α-Klotho rose."],
        ["No blank was left.Then it rose.", "It fell."],  # a boundary inside a word is none
        ["x"],
        ["."],
        [],
    ],
)
def test_scispacy_finds_sentences(expected: list[str]) -> None:
    assert scispacy()(" ".join(expected)) == expected


ODD = [
    *(
        "We ",
        "saw. ",
        "Fig. 2 ",
        "1. ",
        "i. ",
        "a) ",
        "(a) ",
        "... ",
        "!? ",
        "U.S. ",
        "No. ",
        "'s ",
        "p<.05 ",
    ),
    *"()[]{}\\*+?$^|&/-–;:“”\"'’αé☉∯ȸ♟☝∬ﬁ\u00ad\u200b\x07\U0001f600",
    "&ᓰ&",
    "http://x.y/z ",
]
"""Among them the signs by which pySBD marks places in a text."""


@settings(PROFILE, max_examples=300)
@given(st.lists(st.sampled_from(ODD) | st.text(max_size=4), max_size=40).map("".join))
def test_scispacy_loses_changes_and_moves_nothing(text: str) -> None:
    line = " ".join(text.split())
    found = scispacy()(line)
    assert " ".join(found) == line
    assert all(sentence == sentence.strip() != "" for sentence in found)


def test_a_text_on_which_pysbd_fails_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> None:
        raise IndexError("list index out of range")

    assert scispacy()("One. Two.") == ["One.", "Two."]
    monkeypatch.setattr("pysbd.Segmenter.segment", failing)
    assert scispacy()("One. Two.") == ["One. Two."]


def test_a_text_that_would_take_pysbd_minutes_is_one_sentence() -> None:
    text = "It is so. " * (splitters.MAX_SCISPACY_LENGTH // 10) + "Yes."
    assert scispacy()(text) == [text]


def test_the_users_model_finds_the_sentences_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    """A stand-in for the model, installed as one is: its sentences end at every blank."""
    (tmp_path / "en_core_sci_sm").mkdir()
    (tmp_path / "en_core_sci_sm" / "__init__.py").write_text(
        "import spacy\n"
        "from spacy.language import Language\n"
        "@Language.component('every_word')\n"
        "def every_word(doc):\n"
        "    for token in doc:\n"
        "        token.is_sent_start = True\n"
        "    return doc\n"
        "def load(**options):\n"
        "    model = spacy.blank('en')\n"
        "    model.add_pipe('every_word')\n"
        "    return model\n"
    )
    information = tmp_path / "en_core_sci_sm-0.5.4.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: en_core_sci_sm\nVersion: 0.5.4\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_splitter("scispacy")("One is. (Two.) 3.") == ["One", "is.", "(Two.)", "3."]
    assert run("--splitter", "scispacy", "--output", tmp_path / "out") == 0
    used = load_manifest(tmp_path / "out")["config"]["library_versions"]
    assert used["en_core_sci_sm"] == "0.5.4"
    assert set(used) == {"en_core_sci_sm", "spacy"}


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("We can't say.", "We ca n't say ."),
        ("It fell (p<0.05).", "It fell ( p < 0.05 ) ."),
        ('The "old" mice.', "The `` old '' mice ."),
        ("Cells, e.g. T cells, at 3.5%;", "Cells , e.g. T cells , at 3.5 % ;"),
        ("The cell's wall.", "The cell 's wall ."),
        ("", ""),
    ],
)
def test_treebank_tokens(sentence: str, tokens: str) -> None:
    assert load_treebank_tokenizer()(sentence) == tokens.split()


def _hide(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    for name in [library, *(name for name in sys.modules if name.startswith(f"{library}."))]:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize(
    ("library", "options", "said"),
    [
        ("spacy", ["--splitter", "scispacy"], "pip install 'bioshards[scispacy]'"),
        ("scispacy", ["--splitter", "scispacy"], "pip install 'bioshards[scispacy]'"),
        ("nltk", ["--treebank"], "pip install 'bioshards[treebank]'"),
        ("nltk", ["--preset", "electramed"], "pip install 'bioshards[treebank]'"),
    ],
)
def test_a_missing_extra_is_named_before_anything_is_written(
    library: str,
    options: list[str],
    said: str,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    _hide(monkeypatch, library)
    assert run(*options, "--output", tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert said in error
    assert options[0] in error
    assert not (tmp_path / "out").exists()


def test_without_the_extras_all_else_runs(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("spacy", "scispacy", "nltk"):
        _hide(monkeypatch, library)
    with pytest.raises(MissingExtraError):
        load_splitter("scispacy")
    assert run("--splitter", "none", "--lower-case", "--output", tmp_path / "out") == 0


def test_another_version_of_a_library_is_another_configuration(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--treebank", "--output", tmp_path) == 0
    monkeypatch.setattr("bioshards.corpus.sentences.splitters._installed_version", lambda library: "99.0")
    assert run("--treebank", "--output", tmp_path) == 2
    assert "nltk was" in capsys.readouterr().err
