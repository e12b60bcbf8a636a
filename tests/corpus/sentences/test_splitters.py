"""The choice of splitter and tokenizer: their results, and the errors if an extra is missing.

scispaCy and NLTK are the real libraries.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

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
from tests.support.hypothesis_profiles import examples
from tests.support.outputs import load_manifest

Run = Callable[..., int]


@functools.cache
def load_scispacy() -> Splitter:
    return load_splitter("scispacy")


def test_rules_is_the_builtin_splitter_and_none_keeps_paragraphs() -> None:
    assert load_splitter("rules") is sentences.split_line
    assert load_splitter("none")("It was. So it was.") == ["It was. So it was."]
    assert load_splitter("none")("") == []
    assert find_library_versions("rules", False) == find_library_versions("none", False) == {}


def test_pieces_of_scispacy_end_at_blanks_up_to_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library is a stand-in that begins sentences at three characters, so that this runs without it."""

    def find_sentences(text: str) -> SimpleNamespace:
        starts = [start for start in (0, 5, 9) if start < len(text)]
        return SimpleNamespace(sents=[SimpleNamespace(start_char=start) for start in starts])

    monkeypatch.setattr(splitters, "_load_scispacy_pipeline", lambda: find_sentences)
    split, longest = load_splitter("scispacy"), "One. Two.3" + "." * 49_990
    assert split("One. Two.3.") == ["One.", "Two.3."]
    assert split("") == []
    assert split(longest) == ["One.", longest[5:]]
    assert split(longest + ".") == [longest + "."]
    monkeypatch.setattr(
        splitters, "_installed_version", lambda library: None if library == "en_core_sci_sm" else "1"
    )
    assert find_library_versions("scispacy", False) == {"scispacy": "1", "spacy": "1", "pysbd": "1"}


@pytest.mark.scispacy
@pytest.mark.parametrize(
    "expected",
    [
        ["Mice grew (cf. Fig. 2).", "They slept."],
        ["E. coli grew.", "S. aureus did not.", "Was it so?", "Yes."],
        ["We gave 5 mg/kg i.p. twice.", "α-Klotho rose."],
        ["No blank was left.Then it rose.", "It fell."],  # a boundary inside a word is ignored
        ["x"],
        ["."],
        [],
    ],
)
def test_scispacy_splits_sentences(expected: list[str]) -> None:
    assert load_scispacy()(" ".join(expected)) == expected


FRAGMENTS = [
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
    *"()[]{}\\*+?$^|&/-–;:“”\"'’αé☉∯ȸ♟☝∬ﬁ\u00ad\u200b\x07\U0001f600",
    "&ᓰ&",
    "http://x.y/z ",
]
"""They include the characters that pySBD inserts as placeholders."""


@pytest.mark.scispacy
@settings(max_examples=examples(300))
@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=40).map("".join))
def test_scispacy_splits_generated_text_without_loss(text: str) -> None:
    line = " ".join(text.split())
    sentences_found = load_scispacy()(line)
    assert " ".join(sentences_found) == line
    assert all(sentence == sentence.strip() != "" for sentence in sentences_found)


@pytest.mark.scispacy
def test_text_is_one_sentence_if_pysbd_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_index_error(*_: object) -> None:
        raise IndexError("list index out of range")

    assert load_scispacy()("One. Two.") == ["One.", "Two."]
    monkeypatch.setattr("pysbd.Segmenter.segment", raise_index_error)
    assert load_scispacy()("One. Two.") == ["One. Two."]


@pytest.mark.scispacy
def test_text_above_the_scispacy_limit_is_one_sentence() -> None:
    text = "It is so. " * (splitters.MAX_SCISPACY_LENGTH // 10) + "Yes."
    assert load_scispacy()(text) == [text]


@pytest.mark.scispacy
def test_installed_scispacy_model_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """A stub of the model is installed; its sentences end at every blank."""
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
    dist_info = tmp_path / "en_core_sci_sm-0.5.4.dist-info"
    dist_info.mkdir()
    (dist_info / "METADATA").write_text("Metadata-Version: 2.1\nName: en_core_sci_sm\nVersion: 0.5.4\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert load_splitter("scispacy")("One is. (Two.) 3.") == ["One", "is.", "(Two.)", "3."]
    assert run("--splitter", "scispacy", "--output", tmp_path / "out") == 0
    versions = load_manifest(tmp_path / "out")["config"]["library_versions"]
    assert versions["en_core_sci_sm"] == "0.5.4"
    assert set(versions) == {"en_core_sci_sm", "spacy"}


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


def hide_library(monkeypatch: pytest.MonkeyPatch, library: str) -> None:
    for name in [library, *(name for name in sys.modules if name.startswith(f"{library}."))]:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize(
    ("library", "options", "message"),
    [
        ("spacy", ["--splitter", "scispacy"], "pip install '.[scispacy]'"),
        ("scispacy", ["--splitter", "scispacy"], "pip install '.[scispacy]'"),
        ("nltk", ["--treebank"], "pip install '.[treebank]'"),
        ("nltk", ["--preset", "electramed"], "pip install '.[treebank]'"),
    ],
)
def test_missing_extra_is_reported_before_anything_is_written(
    library: str,
    options: list[str],
    message: str,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hide_library(monkeypatch, library)
    assert run(*options, "--output", tmp_path / "out") == 2
    stderr = capsys.readouterr().err
    assert message in stderr
    assert options[0] in stderr
    assert not (tmp_path / "out").exists()


def test_pipeline_runs_without_the_extras(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("spacy", "scispacy", "nltk"):
        hide_library(monkeypatch, library)
    with pytest.raises(MissingExtraError):
        load_splitter("scispacy")
    assert run("--splitter", "none", "--lower-case", "--output", tmp_path / "out") == 0


def test_library_version_is_part_of_the_config(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--treebank", "--output", tmp_path) == 0
    monkeypatch.setattr("bioshards.corpus.sentences.splitters._installed_version", lambda library: "99.0")
    assert run("--treebank", "--output", tmp_path) == 2
    assert "nltk was" in capsys.readouterr().err
