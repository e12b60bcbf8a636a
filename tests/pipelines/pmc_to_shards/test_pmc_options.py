"""The options of ``beam run pmc_to_shards``: each does what ``--help`` says of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bioshards.pipelines import cli
from tests.support.corpus.jats_articles import article_xml, write_files
from tests.support.fork_server import run_beam
from tests.support.outputs import load_documents, load_manifest, published_digests
from tests.support.paths import PMC_SAMPLE

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def made(tmp_path: Path, run_pmc: Run) -> Callable[..., dict[str, dict[str, Any]]]:
    """The documents that a run of these options makes of a folder; by default the sample."""

    def call(*options: object, of: Path = PMC_SAMPLE) -> dict[str, dict[str, Any]]:
        output = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        assert run_pmc("--input", of, "--output", output, *options) == 0
        return load_documents(output)

    return call


Made = Callable[..., dict[str, dict[str, Any]]]


def numbers(found: dict[str, Any]) -> set[int]:
    """The last two digits of the sample's articles among the documents."""
    return {int(id_.removeprefix("pmc:PMC99900").split(".")[0]) for id_ in found}


DEFAULT = {1, 2, 4, 5, 6, 8, 9, 10, 12, 14, 15, 16, 19}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), DEFAULT),
        (("--licences", "all"), DEFAULT | {3, 7, 11}),
        (("--licences", "CC0"), {5}),
        (("--languages", ""), DEFAULT | {13}),
        (("--languages", "fre"), {13}),
        (("--licences", "all", "--keep-ocr"), DEFAULT | {3, 7, 11, 17}),
        (("--keep-abstract-only",), DEFAULT | {18}),
        (("--drop-retracted",), DEFAULT - {16}),
        (("--drop-article-types", "correction,letter"), DEFAULT - {15, 19}),
        (("--min-words", 150), DEFAULT - {14, 15, 16, 19}),
        (("--preset", "bio-electra-pp"), DEFAULT | {3, 7, 11, 13}),
        (("--preset", "bio-electra-pp", "--languages", "eng", "--licences", "CC0"), {5}),
    ],
)
def test_which_articles_are_kept(made: Made, options: tuple[object, ...], expected: set[int]) -> None:
    assert numbers(made(*options)) == expected


PARTS = article_xml(
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
def parts(tmp_path: Path) -> Path:
    return write_files(tmp_path / "parts", {"PMC1.xml": PARTS})


def text_of(found: dict[str, dict[str, Any]]) -> list[str]:
    [row] = found.values()
    lines: list[str] = row["sentences"]
    return lines


def test_which_parts_are_text(made: Made, parts: Path) -> None:
    whole = [
        *(
            "Of nothing",
            "The abstract is short.",
            "It was seen (Ode, 2011) and again.",
            "So we have as was said.",
        ),
        *("What a figure shows.", "None are declared.", "We thank nobody."),
    ]
    assert text_of(made(of=parts)) == whole
    assert text_of(made("--include-parts", "body", of=parts)) == [whole[0], *whole[2:4]]
    assert text_of(made("--include-parts", "all", of=parts)) == [*whole, "A referee says so."]
    assert text_of(made("--exclude-parts", "boilerplate,caption", of=parts)) == [*whole[:4], whole[6]]
    assert text_of(made("--no-titles", of=parts)) == whole[1:]


def test_how_citations_formulas_and_headings_are_written(made: Made, parts: Path) -> None:
    assert "It was seen and again." in text_of(made("--no-author-year-citations", of=parts))
    assert "So we have [formula] as was said." in text_of(
        made("--formula-placeholder", "[formula]", of=parts)
    )
    lines = text_of(made("--section-labels", of=parts))
    assert lines[lines.index("Results") + 1].startswith("It was seen")


def test_what_is_left_out_is_counted(tmp_path: Path, run_pmc: Run, parts: Path) -> None:
    assert run_pmc("--input", parts, "--output", tmp_path / "out", "--exclude-parts", "boilerplate") == 0
    dropped = load_manifest(tmp_path / "out")["dropped_parts"]
    assert dropped["boilerplate"] == {"documents": 1, "characters": len("None are declared.")}
    assert dropped["sub-article"] == {"documents": 1, "characters": len("A referee says so.")}


def test_of_articles_that_say_the_same_the_lowest_pmcid_stays(tmp_path: Path, run_pmc: Run) -> None:
    write_files(tmp_path / "in", {f"PMC{n}.xml": article_xml(n) for n in (10_012, 12, 13)})
    write_files(tmp_path / "in", {"PMC14.xml": article_xml(14, title="Of something else")})
    write_files(tmp_path / "in", {"PMC15.xml": article_xml(15, "NOTHING was measured; nothing was found")})
    output = tmp_path / "out"
    assert run_pmc("--input", tmp_path / "in", "--dedup", "exact", "--output", output) == 0
    assert list(load_documents(output)) == ["pmc:PMC12.1", "pmc:PMC14.1"]
    pairs = (output / "duplicates.tsv").read_text().splitlines()
    assert pairs[1:] == [f"pmc:PMC{n}.1\tpmc:PMC12.1" for n in (13, 15, 10_012)]


def test_the_shape_of_lines_is_as_for_abstracts(made: Made, parts: Path) -> None:
    lines = text_of(made("--lower-case", "--ascii-only", "--min-line-characters", 12, of=parts))
    assert lines == [
        *("the abstract is short.", "it was seen (ode, 2011) and again."),
        *("so we have as was said.", "what a figure shows.", "none are declared.", "we thank nobody."),
    ]
    assert text_of(made("--splitter", "none", of=parts))[1] == "The abstract is short."


def test_every_option_on_the_number_of_workers_changes_no_byte(tmp_path: Path, run_pmc: Run) -> None:
    options = (
        *("--preset", "bio-electra-pp", "--keep-ocr", "--keep-abstract-only", "--include-parts", "all"),
        *(
            "--section-labels",
            "--no-author-year-citations",
            "--formula-placeholder",
            "FORMULA",
            "--dedup",
            "exact",
        ),
        *("--lower-case", "--treebank", "--min-line-characters", 9, "--keep-dropped"),
    )
    assert run_pmc(*options, "--output", tmp_path / "1") == 0
    done = run_beam("run", "pmc_to_shards", "--workers", 2, *options, "--output", tmp_path / "2")
    assert done.returncode == 0, done.stderr
    assert published_digests(tmp_path / "1") == published_digests(tmp_path / "2")
    assert load_manifest(tmp_path / "1")["counts"]["documents"] == 19


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--include-parts", "bodi"], "unknown name bodi (did you mean body?)"),
        (["--include-parts", "references"], "unknown name references; the names are abstract"),
        (["--include-parts", ""], "no name is given"),
        (
            ["--include-parts", "body", "--exclude-parts", "caption"],
            "not allowed with argument --include-parts",
        ),
        (["--exclude-parts", "sub-article"], "unknown name sub-article"),
        (["--licences", "CC-BYE"], "did you mean CC-BY?"),
        (["--licences", "none"], "none selects nothing"),
        (["--min-words", "-1"], "-1 is below 0"),
        (["--include-part", "body"], "unknown option --include-part (did you mean --include-parts?)"),
        (["--licenses", "CC0"], "did you mean --licences?"),
        (["--min-abstract-words", "5"], "unknown option --min-abstract-words"),
        (["--preset", "pubmedbert"], "invalid choice: 'pubmedbert'"),
        (["--input", "pubmed:"], "pmc: and europepmc: and files"),
        (["--input", "pmc:since=2026-11-01"], "has no need of since="),
        (["--input", "pmc:[-3:]"], "no newest ones"),
        (["--find-overlap-with", "nowhere"], "--find-overlap-with: nowhere"),
    ],
)
def test_a_wrong_command_line_is_explained(
    options: list[str], said: str, tmp_path: Path, run_pmc: Run, capsys: Capture
) -> None:
    assert run_pmc("--output", tmp_path / "out", *options) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "mirror").exists()


def test_nothing_as_the_text_is_no_success(tmp_path: Path, run_pmc: Run, capsys: Capture) -> None:
    assert run_pmc("--output", tmp_path / "out", "--include-parts", "none") == 3
    assert "no document was kept (records: 20, " in capsys.readouterr().err


def test_help_names_every_rule(capsys: Capture) -> None:
    assert cli.main(["run", "pmc_to_shards", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "read from scanned pages (default: no)" in said
    assert "(default: CC-BY,CC-BY-SA,CC0, which permit" in said
