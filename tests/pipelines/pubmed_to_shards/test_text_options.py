"""Tests of the text options: cleaning rules, the line formats of papers, their counts, presets.

A wrong order of steps would silently give another corpus than the paper's, so each step is tested alone, and
then all steps in order.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.document import Document
from bioshards.corpus.pubmed.citation import AbstractSection, Citation
from bioshards.corpus.pubmed.documents import CitationDocumentBuilder
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.text.cleaning import CLEANING_RULES
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml, write_pubmed_files
from tests.support.fork_server import run_beam
from tests.support.outputs import load_documents, load_manifest, published_digests
from tests.support.paths import PUBMED_SAMPLE

pytestmark = pytest.mark.thorough  # this file takes minutes

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


def build_document(
    title: str, *abstract: str | tuple[str, str], **settings: Any
) -> tuple[str | None, Document]:
    """Return (drop reason, document) of a title and sections; a pair is a label and its text."""
    sections = [
        AbstractSection(*section) if isinstance(section, tuple) else AbstractSection(None, section)
        for section in abstract
    ]
    citation = Citation(1, 1, title, tuple(sections), 2020, ("eng",), (), False, None, None)
    return CitationDocumentBuilder(PubMedConfig(**settings)).build_document(citation, "a.xml", 0)


def build_lines(*abstract: str, **settings: Any) -> list[str]:
    return build_document("", *abstract, **settings)[1].sentences


# Each option alone


@pytest.mark.parametrize(
    ("settings", "text", "expected"),
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
        pytest.param({"splitter": "scispacy"}, "One. Two.", ["One.", "Two."], marks=pytest.mark.scispacy),
    ],
)
def test_effect_of_each_option_alone(settings: dict[str, Any], text: str, expected: list[str]) -> None:
    assert build_lines(text, **settings) == expected


def test_sentences_are_split_before_the_line_format_is_applied() -> None:
    text = "It was «The cell's» fate. WE DIDN'T KNOW – see Fig. 2."
    recipe = {"lower_case": True, "ascii_only": True, "treebank": True}
    assert build_lines(text, **recipe) == ["it was the cell's fate .", "we did n't know see fig. 2 ."]
    assert build_lines(text, **recipe, min_line_characters=25) == ["we did n't know see fig. 2 ."]


def test_title_column_is_cleaned_without_the_line_format() -> None:
    document = build_document("The NA\u00adME of α.", "It was.", lower_case=True, ascii_only=True)[1]
    assert document.title == "The NAME of α."
    assert document.sentences == ["the name of .", "it was."]


# Lines and documents that are dropped


def test_sections_point_at_their_first_line_after_lines_are_dropped() -> None:
    abstract = (("AIM", "Not. We asked them."), ("METHODS", "Few."), ("RESULTS", "Yes. They answered."))
    reason, document = build_document("It. Is a title.", *abstract, min_line_characters=5)
    assert reason is None
    assert document.sentences == ["Is a title.", "We asked them.", "They answered."]
    assert document.sections == [("Abstract > AIM", 1), ("Abstract > RESULTS", 2)]
    assert (document.num_words, document.num_characters) == (8, 11 + 14 + 14)


STUBS = ("Abstract not available.", "[This corrects the article DOI: 10.0000/mice.].")
WORDS = "Well. We can't sleep \u00ad at 5 ± 1 °C."
"""Nine words, counted after cleaning and before the line format."""
LINE_FORMAT = {"treebank": True, "ascii_only": True, "min_line_characters": 10}


@pytest.mark.parametrize(
    ("title", "abstract", "settings", "expected"),
    [
        ("A title that is rather long.", "Too short. Too.", {"min_line_characters": 20}, "no-abstract"),
        ("A title.", "αβγ", {"ascii_only": True}, "no-abstract"),
        ("A title.", "\u00ad \u00ad", {}, "no-abstract"),
        ("A title.", "\u00ad \u00ad", {"keep_title_only": True}, None),
        ("\u00ad", "\u00ad", {}, "no-text"),
        ("Short.", "", {"min_line_characters": 9}, "no-abstract"),
        ("Short.", "", {"min_line_characters": 9, "keep_title_only": True}, "no-text"),
        *(("A title.", stub, {}, "stub") for stub in STUBS),
        *(("A title.", stub, {"cleaning": ()}, None) for stub in STUBS),
        *(("A title.", stub, {"keep_title_only": True}, None) for stub in STUBS),
        *(("A title.", WORDS, {"min_abstract_words": 9, **others}, None) for others in ({}, LINE_FORMAT)),
        *(
            ("A title.", WORDS, {"min_abstract_words": 10, **others}, "short-abstract")
            for others in ({}, LINE_FORMAT)
        ),
    ],
)
def test_document_without_enough_text_is_dropped(
    title: str, abstract: str, settings: dict[str, Any], expected: str | None
) -> None:
    reason, document = build_document(title, abstract, **settings)
    assert reason == expected
    if reason == "no-abstract":
        assert document.sections == []
    if abstract in STUBS and "keep_title_only" in settings:
        assert document.removed_characters == {"stubs": len(abstract)}


def test_words_and_characters_are_counted_in_the_written_lines() -> None:
    document = build_document("A (long) title.", "It isn't. No.", treebank=True, min_line_characters=5)[1]
    assert document.sentences == ["A ( long ) title .", "It is n't ."]
    assert (document.num_words, document.num_characters) == (6 + 4, 18 + 11)


# Counts


def test_removed_characters_are_counted_by_rule() -> None:
    document = build_document(
        "So\u00adme ti\u00adtles.", "Na\u00adïve αβ cells. No.", ascii_only=True, min_line_characters=4
    )[1]
    assert document.sentences == ["Some titles.", "Na ve cells."]
    assert document.removed_characters == {"soft-hyphens": 3, "ascii-only": 3, "short-lines": 3}
    assert (
        build_document("Some titles.", "Cells.", ascii_only=True, lower_case=True)[1].removed_characters == {}
    )


def test_manifest_counts_removed_characters_of_kept_documents(tmp_path: Path, run: Run) -> None:
    abstract = "So\u00adme α text. No."
    first = pubmed_set_xml(
        citation_xml(1, abstract),
        citation_xml(2, abstract),
        citation_xml(3),
        citation_xml(4, "", title="\u00ad No"),
    )
    second = pubmed_set_xml(
        citation_xml(2, "Now all is plain."),
        citation_xml(5, abstract + abstract),
        citation_xml(6, abstract),
        deleted=(6,),
    )
    write_pubmed_files(tmp_path, first, second)
    disabled = list_rules_but("soft-hyphens", "truncation-notes")
    options = ("--ascii-only", "--min-line-characters", 5, "--disable-cleaning", disabled)
    output = tmp_path / "out"
    arguments = ("--input", tmp_path, *options, "--output", output, "--workers", 2)
    assert run_beam("run", "pubmed_to_shards", *arguments).returncode == 0
    assert load_manifest(output)["cleaning"] == {
        "soft-hyphens": {"documents": 2, "characters": 3},
        "truncation-notes": {"documents": 0, "characters": 0},
        "ascii-only": {"documents": 2, "characters": 3},
        "short-lines": {"documents": 2, "characters": 6},
    }
    assert set(load_documents(output)) == {"pubmed:1", "pubmed:2", "pubmed:3", "pubmed:5"}
    # An update that supersedes one of them takes its counts back.
    (tmp_path / "pubmed26n0003.xml").write_bytes(pubmed_set_xml(citation_xml(5)))
    assert run("--input", tmp_path, *options, "--output", output) == 0
    assert load_manifest(output)["cleaning"]["soft-hyphens"] == {"documents": 1, "characters": 1}


def list_rules_but(*names: str) -> str:
    return ",".join(rule for rule in CLEANING_RULES if rule not in names)


def test_enabled_rules_are_applied_and_listed_in_the_manifest(tmp_path: Path, run: Run) -> None:
    source, note = tmp_path / "pubmed26n0001.xml", "(ABSTRACT TRUNCATED AT 250 WORDS)"
    source.write_bytes(pubmed_set_xml(citation_xml(1, f"So\u00adme text. {note}")))
    every = set(CLEANING_RULES)
    for options, expected, rules in (
        (("--disable-cleaning", "none"), "A title. Some text.", every),
        (("--disable-cleaning", "all"), f"A title. So\u00adme text. {note}", set()),
        (("--disable-cleaning", "soft-hyphens"), "A title. So\u00adme text.", every - {"soft-hyphens"}),
        (("--preset", "bioalbert"), note, {"short-lines"}),
        (
            ("--preset", "bioalbert", "--disable-cleaning", "soft-hyphens", "--min-line-characters", "0"),
            "A title. So\u00adme text.",
            every - {"soft-hyphens"},
        ),
    ):
        output = tmp_path / "-".join(["out", *options])
        assert run("--input", source, "--output", output, *options) == 0
        assert " ".join(load_documents(output)["pubmed:1"]["sentences"]) == expected
        assert set(load_manifest(output)["cleaning"]) == rules


# Presets of papers


def test_preset_electramed_is_lower_case_ascii_treebank(tmp_path: Path, run: Run) -> None:
    assert run("--preset", "electramed", "--output", tmp_path) == 0
    sentences_by_id = {id_: row["sentences"] for id_, row in load_documents(tmp_path).items()}
    assert sentences_by_id["pubmed:90000001"][:5] == [
        "a second promoter rescues lactose growth in e. coli k-12 after loss of the first .",
        "bacteria rarely keep a spare copy of anything , so a redundant promoter is worth explaining .",
        "we deleted the primary lactose promoter from e. coli k-12 and watched for recovery on minimal "
        "plates .",
        "within 9 days , 14 of 96 lineages grew again .",
        "sequencing placed the responsible changes 212 bp upstream , in a stretch that had been annotated as "
        "silent ( fig. 2 ) .",
    ]
    lines = [line for sentences in sentences_by_id.values() for line in sentences]
    assert "`` you learn to knock with your voice , '' said a healthcare assistant ." in lines
    assert "-klotho is made mainly by the distal tubule ." in lines
    assert all(line.isascii() and line == line.lower() == " ".join(line.split()) for line in lines)
    manifest = load_manifest(tmp_path)
    assert manifest["counts"]["words"] == sum(len(line.split()) for line in lines)
    assert list(manifest["cleaning"]) == ["ascii-only"]
    assert manifest["config"]["library_versions"].keys() == {"nltk"}


def test_options_override_a_preset(tmp_path: Path, run: Run) -> None:
    options = ("--preset", "electramed", "--no-lower-case", "--no-treebank", "--no-ascii-only")
    assert run(*options, "--output", tmp_path / "a") == 0
    assert run("--disable-cleaning", "all", "--output", tmp_path / "b") == 0
    assert load_documents(tmp_path / "a") == load_documents(tmp_path / "b")


# Whole runs


@pytest.mark.parametrize("splitter", ["rules", pytest.param("scispacy", marks=pytest.mark.scispacy)])
def test_the_number_of_workers_changes_no_byte_with_every_option_on(
    tmp_path: Path, run: Run, splitter: str
) -> None:
    options = (
        *("--splitter", splitter, "--lower-case", "--ascii-only", "--treebank", "--section-labels"),
        *("--min-line-characters", 20, "--keep-dropped", "--keep-title-only", "--columns", "all"),
        *("--published", "1950:", "--drop-journals", "Sleep ledger", "--drop-languages", "jpn"),
        *("--drop-mesh", "branch:M01; Omentum", "--mesh-tree", tmp_path / "tree.bin"),
        *("--drop-publication-types", "Letter", "--min-words", 5, "--max-words", 150),
        *("--include-ids", tmp_path / "ids.txt"),
    )
    (tmp_path / "tree.bin").write_text("Persons;M01\nChild;M01.060\nKidney;A05.810\n")
    pmids = [
        pmid
        for path in PUBMED_SAMPLE.iterdir()
        for pmid in re.findall(r"<PMID [^>]*>(\d+)", path.read_text())
    ]
    (tmp_path / "ids.txt").write_text("\n".join(pmid for pmid in pmids if not pmid.endswith("7")))
    assert run(*options, "--output", tmp_path / "1") == 0
    paths = sorted(PUBMED_SAMPLE.iterdir(), reverse=True)
    inputs = [argument for path in paths for argument in ("--input", path)]
    command = ("run", "pubmed_to_shards", "--workers", 2, *inputs, *options)
    completed = run_beam(*command, "--output", tmp_path / "2")
    assert completed.returncode == 0, completed.stderr
    assert published_digests(tmp_path / "1") == published_digests(tmp_path / "2")
    assert list(load_manifest(tmp_path / "1")["funnel"].items()) == [
        *(("records", 112), ("dropped: deleted", 5), ("dropped: superseded", 15), ("dropped: book", 1)),
        *(("dropped: year", 1), ("dropped: journal", 2), ("dropped: mesh", 4), ("dropped: language", 1)),
        *(("dropped: publication-type", 3), ("dropped: no-text", 1), ("dropped: short", 1)),
        *(("dropped: long", 6), ("dropped: not-included", 8), ("kept", 64)),
    ]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--disable-cleaning", "soft-hyphen"], "unknown name soft-hyphen (did you mean soft-hyphens?)"),
        (["--disable-cleaning", "qqq"], f"unknown name qqq; the names are {', '.join(CLEANING_RULES)}"),
        (["--lowercase"], "did you mean --lower-case?"),
    ],
)
def test_a_wrong_option_is_explained(
    options: list[str], message: str, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    assert run("--output", tmp_path / "out", *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
