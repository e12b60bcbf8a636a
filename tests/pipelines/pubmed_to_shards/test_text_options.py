"""What the options of text do: cleaning, the papers' lines, what is counted of them, the presets.

A recipe in the wrong order (tokens before lower case, lines counted before they are shaped) gives another
corpus than the paper's without a word; so each step is looked at alone, and then all in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.document import Document
from bioshards.corpus.pubmed.citation import AbstractSection, Citation
from bioshards.corpus.pubmed.document_builder import CitationDocumentBuilder
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.text.cleaning import CLEANING_RULES
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.fork_server import run_beam
from tests.support.outputs import load_documents, load_manifest, published_digests
from tests.support.paths import PUBMED_SAMPLE

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


def shaped(title: str, *abstract: str | tuple[str, str], **rules: Any) -> tuple[str | None, Document]:
    """(reason to drop it, document) of these texts; a pair is a label and its text."""
    sections = [
        AbstractSection(*part) if isinstance(part, tuple) else AbstractSection(None, part)
        for part in abstract
    ]
    of = Citation(1, 1, title, tuple(sections), 2020, ("eng",), (), False, None, None)
    return CitationDocumentBuilder(PubMedConfig(**rules)).build_document(of, "a.xml", 0)


def lines(*abstract: str, **rules: Any) -> list[str]:
    return shaped("", *abstract, **rules)[1].sentences


# Each option alone


@pytest.mark.parametrize(
    ("rules", "text", "expected"),
    [
        ({"lower_case": True}, "The ALT rose. Was Δ seen?", ["the alt rose.", "was δ seen?"]),
        ({"ascii_only": True}, "The αβ–γ cells. 3 ± 1 µg.", ["The cells.", "3 1 g."]),
        ({"ascii_only": True}, "Naïve «cells» grew.", ["Na ve cells grew."]),
        ({"treebank": True}, "It can't (p<0.05). Ok.", ["It ca n't ( p < 0.05 ) .", "Ok ."]),
        ({"treebank": True}, 'The cell\'s "wall".', ["The cell's `` wall '' ."]),
        ({"treebank": True}, "The cells' walls, i.e. 3.5%.", ["The cells ' walls , i.e. 3.5 % ."]),
        ({"min_line_characters": 6}, "Short. It is not.", ["Short.", "It is not."]),
        ({"min_line_characters": 7}, "Short. It is not.", ["It is not."]),
        ({"splitter": "none"}, "One. Two.", ["One. Two."]),
        ({"splitter": "scispacy"}, "One. Two.", ["One.", "Two."]),
    ],
)
def test_each_option_does_one_thing(rules: dict[str, Any], text: str, expected: list[str]) -> None:
    assert lines(text, **rules) == expected


def test_sentences_are_found_first_and_shaped_in_the_papers_order() -> None:
    text = "It was «The cell's» fate. WE DIDN'T KNOW – see Fig. 2."
    recipe = {"lower_case": True, "ascii_only": True, "treebank": True}
    assert lines(text, **recipe) == ["it was the cell's fate .", "we did n't know see fig. 2 ."]
    assert lines(text, **recipe, min_line_characters=25) == ["we did n't know see fig. 2 ."]


def test_the_title_column_is_cleaned_and_not_shaped() -> None:
    found = shaped("The NA\u00adME of α.", "It was.", lower_case=True, ascii_only=True)[1]
    assert found.title == "The NAME of α."
    assert found.sentences == ["the name of .", "it was."]


# What vanishes


def test_sections_point_at_their_first_line_when_lines_vanish() -> None:
    abstract = (("AIM", "Not. We asked them."), ("METHODS", "Few."), ("RESULTS", "Yes. They answered."))
    why, found = shaped("It. Is a title.", *abstract, min_line_characters=5)
    assert why is None
    assert found.sentences == ["Is a title.", "We asked them.", "They answered."]
    assert found.sections == [("Abstract > AIM", 1), ("Abstract > RESULTS", 2)]
    assert (found.num_words, found.num_characters) == (8, 11 + 14 + 14)


@pytest.mark.parametrize(
    ("rules", "text"), [({"min_line_characters": 20}, "Too short. Too."), ({"ascii_only": True}, "αβγ")]
)
def test_an_abstract_without_lines_is_no_abstract(rules: dict[str, Any], text: str) -> None:
    why, found = shaped("A title that is rather long.", text, **rules)
    assert why == "no-abstract"
    assert found.sections == []
    assert found.sentences == ["A title that is rather long."]


def test_an_abstract_emptied_by_cleaning_is_no_abstract() -> None:
    assert shaped("A title.", "\u00ad \u00ad")[0] == "no-abstract"
    assert shaped("A title.", "\u00ad \u00ad", keep_title_only=True)[0] is None
    assert shaped("\u00ad", "\u00ad")[0] == "no-text"


def test_an_abstract_that_says_that_there_is_none_is_a_stub() -> None:
    for stub in ("Abstract not available.", "[This corrects the article DOI: 10.0000/mice.]."):
        assert shaped("A title.", stub)[0] == "stub"
        assert shaped("A title.", stub, cleaning=())[0] is None
        why, title_alone = shaped("A title.", stub, keep_title_only=True)
        assert why is None
        assert title_alone.removed_characters == {"stubs": len(stub)}


def test_a_title_alone_whose_lines_vanish_is_no_text() -> None:
    assert shaped("Short.", keep_title_only=True, min_line_characters=9)[0] == "no-text"
    assert shaped("Short.", min_line_characters=9)[0] == "no-abstract"


def test_abstract_words_are_counted_cleaned_and_not_shaped() -> None:
    text = "Well. We can't sleep \u00ad at 5 ± 1 °C."
    for more in ({}, {"treebank": True, "ascii_only": True, "min_line_characters": 10}):
        assert shaped("A title.", text, min_abstract_words=9, **more)[0] is None
        assert shaped("A title.", text, min_abstract_words=10, **more)[0] == "short-abstract"


def test_words_and_characters_are_of_what_is_written() -> None:
    found = shaped("A (long) title.", "It isn't. No.", treebank=True, min_line_characters=5)[1]
    assert found.sentences == ["A ( long ) title .", "It is n't ."]
    assert (found.num_words, found.num_characters) == (6 + 4, 18 + 11)


# Counts


def test_what_is_taken_away_is_counted_by_name() -> None:
    found = shaped(
        "So\u00adme ti\u00adtles.", "Na\u00adïve αβ cells. No.", ascii_only=True, min_line_characters=4
    )[1]
    assert found.sentences == ["Some titles.", "Na ve cells."]
    assert found.removed_characters == {"soft-hyphens": 3, "ascii-only": 3, "short-lines": 3}
    assert shaped("Some titles.", "Cells.", ascii_only=True, lower_case=True)[1].removed_characters == {}


def test_the_manifest_counts_over_the_documents_kept(tmp_path: Path, run: Run) -> None:
    odd = "So\u00adme α text. No."
    first = pubmed_set_xml(
        citation_xml(1, odd), citation_xml(2, odd), citation_xml(3), citation_xml(4, "", title="\u00ad No")
    )
    second = pubmed_set_xml(
        citation_xml(2, "Now all is plain."), citation_xml(5, odd + odd), citation_xml(6, odd), deleted=(6,)
    )
    for number, data in enumerate((first, second), start=1):
        (tmp_path / f"pubmed26n000{number}.xml").write_bytes(data)
    options = (
        "--ascii-only",
        "--min-line-characters",
        5,
        "--enable-cleaning",
        "soft-hyphens,truncation-notes",
    )
    for workers in (1, 2):
        output = tmp_path / f"out{workers}"
        words = ("--input", tmp_path, *options, "--output", output, "--workers", workers)
        assert run_beam("run", "pubmed_to_shards", *words).returncode == 0
        assert load_manifest(output)["cleaning"] == {
            "soft-hyphens": {"documents": 2, "characters": 3},
            "truncation-notes": {"documents": 0, "characters": 0},
            "ascii-only": {"documents": 2, "characters": 3},
            "short-lines": {"documents": 2, "characters": 6},
        }
    assert set(load_documents(tmp_path / "out1")) == {"pubmed:1", "pubmed:2", "pubmed:3", "pubmed:5"}
    # An update that supersedes one of them takes its counts back.
    (tmp_path / "pubmed26n0003.xml").write_bytes(pubmed_set_xml(citation_xml(5)))
    assert run("--input", tmp_path, *options, "--output", tmp_path / "out1") == 0
    assert load_manifest(tmp_path / "out1")["cleaning"]["soft-hyphens"] == {"documents": 1, "characters": 1}


def test_the_rules_that_are_on_are_those_counted(tmp_path: Path, run: Run) -> None:
    def counted(*options: str) -> set[str]:
        output = tmp_path / "-".join(["out", *options])
        assert run("--input", PUBMED_SAMPLE / "pubmed26n0003.xml", *options, "--output", output) == 0
        return set(load_manifest(output)["cleaning"])

    assert counted() == counted("--enable-cleaning", "all") == set(CLEANING_RULES)
    assert counted("--enable-cleaning", "none") == set()
    assert counted("--enable-cleaning", "soft-hyphens") == {"soft-hyphens"}
    assert counted("--disable-cleaning", "soft-hyphens") == set(CLEANING_RULES) - {"soft-hyphens"}
    assert counted("--preset", "bioalbert") == {"short-lines"}
    assert counted(
        "--preset", "bioalbert", "--enable-cleaning", "soft-hyphens", "--min-line-characters", "0"
    ) == {"soft-hyphens"}


def test_cleaning_can_be_left_out(tmp_path: Path, run: Run) -> None:
    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(pubmed_set_xml(citation_xml(1, "So\u00adme text. (ABSTRACT TRUNCATED AT 250 WORDS)")))
    for options, expected in (
        ((), "Some text."),
        (("--enable-cleaning", "none"), "So\u00adme text. (ABSTRACT TRUNCATED AT 250 WORDS)"),
        (("--disable-cleaning", "soft-hyphens"), "So\u00adme text."),
        (("--enable-cleaning", "soft-hyphens"), "Some text. (ABSTRACT TRUNCATED AT 250 WORDS)"),
    ):
        output = tmp_path / "-".join(["out", *options])
        assert run("--input", source, "--output", output, *options) == 0
        assert " ".join(load_documents(output)["pubmed:1"]["sentences"]) == f"A title. {expected}"


# The papers


def test_electramed_is_lower_case_ascii_treebank(tmp_path: Path, run: Run) -> None:
    assert run("--preset", "electramed", "--output", tmp_path) == 0
    found = {id_: row["sentences"] for id_, row in load_documents(tmp_path).items()}
    assert found["pubmed:90000001"][:5] == [
        "a second promoter rescues lactose growth in e. coli k-12 after loss of the first .",
        "bacteria rarely keep a spare copy of anything , so a redundant promoter is worth explaining .",
        "we deleted the primary lactose promoter from e. coli k-12 and watched for recovery on minimal "
        "plates .",
        "within 9 days , 14 of 96 lineages grew again .",
        "sequencing placed the responsible changes 212 bp upstream , in a stretch that had been annotated as "
        "silent ( fig. 2 ) .",
    ]
    every = [line for sentences in found.values() for line in sentences]
    assert "`` you learn to knock with your voice , '' said a healthcare assistant ." in every
    assert "-klotho is made mainly by the distal tubule ." in every
    assert all(line.isascii() and line == line.lower() == " ".join(line.split()) for line in every)
    facts = load_manifest(tmp_path)
    assert facts["counts"]["words"] == sum(len(line.split()) for line in every)
    assert list(facts["cleaning"]) == ["ascii-only"]
    assert facts["config"]["library_versions"].keys() == {"nltk"}


def test_bioalbert_has_no_line_below_20_characters(tmp_path: Path, run: Run) -> None:
    assert run("--preset", "bioalbert", "--output", tmp_path / "a") == 0
    assert run("--enable-cleaning", "none", "--output", tmp_path / "b") == 0
    whole = load_documents(tmp_path / "b")
    short = 0
    for id_, row in load_documents(tmp_path / "a").items():
        every = whole[id_]["sentences"]
        assert row["sentences"] == [line for line in every if len(line) >= 20]
        short += sum(len(line) for line in every if len(line) < 20)
    counts = load_manifest(tmp_path / "a")["cleaning"]["short-lines"]
    assert counts["characters"] == short > 0


def test_what_is_said_beside_a_preset_wins_over_it(tmp_path: Path, run: Run) -> None:
    options = ("--preset", "electramed", "--no-lower-case", "--no-treebank", "--no-ascii-only")
    assert run(*options, "--output", tmp_path / "a") == 0
    assert run("--enable-cleaning", "none", "--output", tmp_path / "b") == 0
    assert load_documents(tmp_path / "a") == load_documents(tmp_path / "b")


# The whole


def test_the_number_of_workers_changes_no_byte_with_every_option_on(tmp_path: Path, run: Run) -> None:
    options = (
        *("--splitter", "scispacy", "--lower-case", "--ascii-only", "--treebank", "--section-labels"),
        *("--min-line-characters", 20, "--keep-dropped", "--keep-title-only"),
    )
    assert run(*options, "--output", tmp_path / "1") == 0
    done = run_beam("run", "pubmed_to_shards", "--workers", 2, *options, "--output", tmp_path / "2")
    assert done.returncode == 0, done.stderr
    assert published_digests(tmp_path / "1") == published_digests(tmp_path / "2")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--enable-cleaning", "soft-hyphen"], "unknown name soft-hyphen (did you mean soft-hyphens?)"),
        (
            ["--disable-cleaning", "truncation,soft-hyphens"],
            "unknown name truncation (did you mean truncation-notes?)",
        ),
        (["--enable-cleaning", "qqq"], f"unknown name qqq; the names are {', '.join(CLEANING_RULES)}"),
        (["--enable-cleaning", ","], "no name is given"),
        (
            ["--enable-cleaning", CLEANING_RULES[0], "--disable-cleaning", CLEANING_RULES[0]],
            "not allowed with argument --enable-cleaning",
        ),
        (["--splitter", "scispac"], "invalid choice: 'scispac'"),
        (["--min-line-characters", "-1"], "-1 is below 0"),
        (["--lowercase"], "did you mean --lower-case?"),
        (["--ascii"], "unknown option --ascii (did you mean --ascii-only?)"),
    ],
)
def test_a_wrong_option_is_explained(
    options: list[str], said: str, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    assert run("--output", tmp_path / "out", *options) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
