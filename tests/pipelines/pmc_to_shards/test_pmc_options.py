"""Tests of the options of ``beam run pmc_to_shards``."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bioshards.corpus.jats.filters import DEFAULT_ARTICLE_PARTS
from bioshards.pipelines import cli
from tests.support.corpus.jats_articles import article_xml, write_files
from tests.support.fork_server import run_beam
from tests.support.outputs import load_documents, load_manifest, published_digests
from tests.support.paths import PMC_SAMPLE

pytestmark = pytest.mark.thorough  # this file takes minutes

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def build_documents(tmp_path: Path, run_pmc: Run) -> Callable[..., dict[str, dict[str, Any]]]:
    """Run with options on a folder, by default the sample, and return the documents."""

    def call(*options: object, folder: Path = PMC_SAMPLE) -> dict[str, dict[str, Any]]:
        output = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        assert run_pmc("--input", folder, "--output", output, *options) == 0
        return load_documents(output)

    return call


BuildDocuments = Callable[..., dict[str, dict[str, Any]]]


def find_sample_numbers(documents: dict[str, Any]) -> set[int]:
    """Return the last two digits of the ids of documents of the sample."""
    return {int(id_.removeprefix("pmc:PMC99900").split(".")[0]) for id_ in documents}


DEFAULT_NUMBERS = {1, 2, 4, 5, 6, 8, 9, 10, 12, 14, 15, 16, 19}


def list_parts_but(*names: str) -> str:
    return ",".join(part for part in DEFAULT_ARTICLE_PARTS if part not in names)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), DEFAULT_NUMBERS),
        (("--languages", ""), DEFAULT_NUMBERS | {13}),
        (("--licences", "all", "--keep-ocr"), DEFAULT_NUMBERS | {3, 7, 11, 17}),
        (("--keep-abstract-only",), DEFAULT_NUMBERS | {18}),
        (("--drop-retracted",), DEFAULT_NUMBERS - {16}),
        (("--preset", "bio-electra-pp", "--languages", "eng", "--licences", "CC0"), {5}),
        (("--preset", "pubmedbert"), DEFAULT_NUMBERS | {3, 7, 11, 13}),
    ],
)
def test_articles_kept_by_the_options(
    build_documents: BuildDocuments, options: tuple[object, ...], expected: set[int]
) -> None:
    assert find_sample_numbers(build_documents(*options)) == expected


ARTICLE_WITH_ALL_PARTS = article_xml(
    1,
    abstract="<p>The abstract is short.</p>",
    body=(
        '<sec><title>Results</title><p>It was seen (<xref ref-type="bibr" rid="b1">Ode, 2011</xref>) '
        'and again [<xref ref-type="bibr" rid="b1">1</xref>].</p>'
        "<p>So we have<disp-formula><mml:math><mml:mi>x</mml:mi></mml:math></disp-formula>as was said.</p>"
        "<fig><caption><p>What a figure shows.</p></caption></fig></sec>"
        "<sec><title>Competing interests</title><p>None are declared.</p></sec>"
    ),
    back=(
        "<back><ack><p>We thank nobody.</p></ack><ref-list><ref id='b1'><mixed-citation>Ode O. On nothing at "
        "all. 2011.</mixed-citation></ref></ref-list></back>"
        "<sub-article><front-stub/><body><p>A referee says so.</p></body></sub-article>"
    ),
)


@pytest.fixture
def parts_folder(tmp_path: Path) -> Path:
    return write_files(tmp_path / "parts", {"PMC1.xml": ARTICLE_WITH_ALL_PARTS})


def get_only_sentences(documents: dict[str, dict[str, Any]]) -> list[str]:
    [row] = documents.values()
    lines: list[str] = row["sentences"]
    return lines


def test_article_parts_selected_by_the_options(build_documents: BuildDocuments, parts_folder: Path) -> None:
    title, abstract, *body = (
        "Of nothing",
        "The abstract is short.",
        "It was seen (Ode, 2011) and again.",
        "So we have [FORMULA] as was said.",
    )
    caption, boilerplate, thanks = "What a figure shows.", "None are declared.", "We thank nobody."
    every = [title, abstract, *body, caption, boilerplate, thanks]
    for options, expected in (
        ((), every),
        (("--include-parts", "body"), [title, *body]),
        (("--include-parts", "all", "--no-titles"), [*every[1:], "A referee says so."]),
        (
            ("--include-parts", list_parts_but("boilerplate", "caption")),
            [title, abstract, *body, thanks],
        ),
    ):
        assert get_only_sentences(build_documents(*options, folder=parts_folder)) == expected


def test_how_citations_formulas_and_headings_are_written(
    build_documents: BuildDocuments, parts_folder: Path
) -> None:
    options = ("--no-author-year-citations", "--formula", "[formula]", "--section-labels")
    lines = get_only_sentences(build_documents(*options, folder=parts_folder))
    start = lines.index("Results")
    assert lines[start + 1 : start + 3] == ["It was seen and again.", "So we have [formula] as was said."]


def test_excluded_parts_are_counted(tmp_path: Path, run_pmc: Run, parts_folder: Path) -> None:
    options = ("--include-parts", list_parts_but("boilerplate"))
    assert run_pmc("--input", parts_folder, "--output", tmp_path / "out", *options) == 0
    dropped = load_manifest(tmp_path / "out")["dropped_parts"]
    assert dropped["boilerplate"] == {"documents": 1, "characters": len("None are declared.")}
    assert dropped["sub-article"] == {"documents": 1, "characters": len("A referee says so.")}


def test_of_duplicate_articles_the_lowest_pmcid_is_kept(tmp_path: Path, run_pmc: Run) -> None:
    write_files(tmp_path / "in", {f"PMC{n}.xml": article_xml(n) for n in (10_012, 12, 13)})
    write_files(tmp_path / "in", {"PMC14.xml": article_xml(14, title="Of something else")})
    write_files(tmp_path / "in", {"PMC15.xml": article_xml(15, "NOTHING was measured; nothing was found")})
    output = tmp_path / "out"
    assert run_pmc("--input", tmp_path / "in", "--dedup", "exact", "--output", output) == 0
    assert list(load_documents(output)) == ["pmc:PMC12.1", "pmc:PMC14.1"]
    pairs = (output / "duplicates.tsv").read_text().splitlines()
    assert pairs[1:] == [f"pmc:PMC{n}.1\tpmc:PMC12.1" for n in (13, 15, 10_012)]


def test_number_of_workers_changes_no_byte_with_many_options(
    reference: Path, tmp_path: Path, run_pmc: Run
) -> None:
    options = (
        *("--preset", "bio-electra-pp", "--keep-ocr", "--keep-abstract-only", "--include-parts", "all"),
        *("--section-labels", "--no-author-year-citations", "--formula", "FORMULA", "--dedup", "exact"),
        *("--lower-case", "--treebank", "--min-line-characters", 9, "--keep-dropped", "--columns", "all"),
        *("--tables", "text", "--published", "1990:", "--drop-journals", "Pond practice"),
        *("--drop-languages", "fr"),
        *("--drop-article-types", "letter", "--min-words", 80, "--max-words", 400),
        *("--include-ids", tmp_path / "ids.txt"),
    )
    (tmp_path / "ids.txt").write_text("".join(f"PMC99900{number:02d}\n" for number in range(1, 16)))
    assert run_pmc(*options, "--find-overlap-with", reference, "--output", tmp_path / "1") == 0
    inputs = [argument for path in sorted(PMC_SAMPLE.iterdir())[::-1] for argument in ("--input", path)]
    command = ("run", "pmc_to_shards", "--workers", 2, *inputs, *options)
    overlap = ("--find-overlap-with", f"{os.path.relpath(reference)}/")
    completed = run_beam(*command, *overlap, "--output", tmp_path / "2")
    assert completed.returncode == 0, completed.stderr
    assert published_digests(tmp_path / "1") == published_digests(tmp_path / "2")
    assert list(load_manifest(tmp_path / "1")["funnel"].items()) == [
        *(("records", 20), ("dropped: superseded", 1), ("dropped: language", 1), ("dropped: year", 1)),
        *(("dropped: journal", 1), ("dropped: article-type", 1), ("dropped: short", 1), ("dropped: long", 1)),
        *(("dropped: not-included", 1), ("kept", 12)),
    ]


def test_preprints_are_compared_by_version_or_by_date(tmp_path: Path, run_pmc: Run) -> None:
    def preprint(doi: str, version: str, year: int, text: str) -> str:
        xml = article_xml(None, f"{text} was seen.", doi=doi).replace("<year>2024", f"<year>{year}")
        return xml.replace("</title-group>", f"</title-group><article-version>{version}</article-version>")

    folder = write_files(
        tmp_path / "in",
        {
            "1.xml": preprint("10.5555/a", "2.10", 2024, "Kept"),
            "2.xml": preprint("10.5555/a", "2.9", 2025, "Low"),
            "3.xml": preprint("10.5555/b", "VoR", 2025, "Late"),
            "4.xml": preprint("10.5555/b", "3", 2024, "Early"),
        },
    )
    assert run_pmc("--input", folder, "--output", tmp_path / "out") == 0
    sentences = [row["sentences"][-1] for row in load_documents(tmp_path / "out").values()]
    assert sorted(sentences) == ["Kept was seen.", "Late was seen."]
    assert load_manifest(tmp_path / "out")["funnel"] == {
        "records": 4,
        "dropped: superseded": 1,
        "dropped: superseded-by-date": 1,
        "kept": 2,
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--include-parts", "bodi"], "unknown name bodi (did you mean body?)"),
        (["--licences", "CC-BYE"], "did you mean CC-BY?"),
        (["--licences", "none"], "none selects nothing"),
        (["--licenses", "CC0"], "did you mean --licences?"),
        (["--input", "pubmed:"], "pmc: and europepmc: and files"),
        (["--input", "pmc:since=2026-11-01"], "has no need of since="),
        (["--find-overlap-with", "nowhere"], "--find-overlap-with: nowhere"),
    ],
)
def test_a_wrong_command_line_is_explained(
    options: list[str], message: str, tmp_path: Path, run_pmc: Run, capsys: Capture
) -> None:
    assert run_pmc("--output", tmp_path / "out", *options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "mirror").exists()


def test_run_without_any_text_fails(tmp_path: Path, run_pmc: Run, capsys: Capture) -> None:
    assert run_pmc("--output", tmp_path / "out", "--include-parts", "none") == 3
    assert "no document was kept (records: 20, " in capsys.readouterr().err


def test_help_shows_the_defaults_of_rules(capsys: Capture) -> None:
    assert cli.main(["run", "pmc_to_shards", "--help"]) == 0
    stdout = " ".join(capsys.readouterr().out.split())
    assert "read from scanned pages (default: no)" in stdout
    assert "(default: CC-BY,CC-BY-SA,CC0, which permit" in stdout


def test_articles_in_the_words_of_another_language_are_dropped(
    tmp_path: Path, run_pmc: Run, capsys: Capture
) -> None:
    french = (
        "Les souris ont dormi dans des cages pendant la nuit et le sommeil a été mesuré par une caméra. "
        "Dans le groupe sans sucre, la durée du sommeil est plus courte que celle des autres souris."
    )
    articles = {"PMC1.xml": article_xml(1, french, language=""), "PMC2.xml": article_xml(2, french)}
    articles["PMC3.xml"] = article_xml(3, language="")
    folder = write_files(tmp_path / "in", articles)
    assert run_pmc("--input", folder, "--output", tmp_path / "out", "--keep-dropped") == 0
    assert "2  dropped: language-of-text" in capsys.readouterr().out
    assert list(load_documents(tmp_path / "out")) == ["pmc:PMC3.1"]
    manifest = load_manifest(tmp_path / "out")
    assert manifest["funnel"] == {"records": 3, "dropped: language-of-text": 2, "kept": 1}
    assert manifest["languages"] == {"eng": 1}
    dropped = pq.read_table(tmp_path / "out" / "dropped").to_pylist()
    assert [(row["id"], row["reason"], row["language"]) for row in dropped] == [
        ("pmc:PMC1.1", "language-of-text", "fre"),
        ("pmc:PMC2.1", "language-of-text", "fre"),
    ]
    assert run_pmc("--input", folder, "--output", tmp_path / "all", "--languages", "") == 0
    assert load_manifest(tmp_path / "all")["languages"] == {"eng": 1, "fre": 2}
