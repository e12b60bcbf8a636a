"""Tests of ``pmc_to_shards --find-overlap-with``: the abstracts whose full text is in the output."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.corpus.jats_articles import write_files
from tests.support.corpus.overlap_sources import (
    EXPECTED_OVERLAP,
    OVERLAP_ARTICLES,
    OVERLAP_CITATIONS,
    citation_with_ids,
)
from tests.support.corpus.pubmed_xml import pubmed_set_xml
from tests.support.outputs import load_manifest, published_digests

pytestmark = pytest.mark.thorough  # this file takes minutes

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def abstracts(tmp_path: Path, run: Run) -> Path:
    """A finished directory of abstracts."""
    write_files(tmp_path / "pubmed", {"pubmed26n0001.xml": pubmed_set_xml(*OVERLAP_CITATIONS)})
    assert run("--input", tmp_path / "pubmed", "--output", tmp_path / "abstracts") == 0
    return tmp_path / "abstracts"


def read_overlap(output: Path) -> list[tuple[str, str, str]]:
    table = pa.ipc.open_stream(pa.memory_map(str(output / "overlap.arrow"))).read_all()
    return [(row["id"], row["full_text_id"], row["matched_by"]) for row in table.to_pylist()]


def make_export_command(abstracts: Path, full_text: Path) -> list[str]:
    """Return the command that exports abstracts without full text."""
    arguments = ("export", abstracts, "--exclude-overlap-with", full_text)
    return [sys.executable, "-m", "bioshards.corpus", *map(str, arguments)]


def test_abstracts_are_found_by_pmid_pmcid_and_doi(
    abstracts: Path, tmp_path: Path, run_pmc: Run, capsys: Capture
) -> None:
    articles = write_files(tmp_path / "in", OVERLAP_ARTICLES)
    before = published_digests(abstracts)
    assert run_pmc("--input", articles, "--find-overlap-with", abstracts, "--output", tmp_path / "out") == 0
    assert f"3  abstracts of {abstracts} are here in full: overlap.arrow" in capsys.readouterr().out
    assert read_overlap(tmp_path / "out") == EXPECTED_OVERLAP
    [entry] = load_manifest(tmp_path / "out")["overlap"]
    assert (entry["file"], entry["rows"], entry["abstracts_path"]) == ("overlap.arrow", 3, str(abstracts))
    assert published_digests(abstracts) == before
    (tmp_path / "ids.txt").write_text("2\npmc:PMC11.1\n")  # no article has PMID 2
    arguments = ("--input", articles, "--exclude-ids", tmp_path / "ids.txt", "--output", tmp_path / "less")
    assert run_pmc(*arguments, "--find-overlap-with", abstracts) == 0
    assert read_overlap(tmp_path / "less") == EXPECTED_OVERLAP[1:]  # an excluded article matches nothing

    # The export leaves out abstracts with full text.
    command = make_export_command(abstracts, tmp_path / "out")
    exported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line for line in exported.splitlines() if line.startswith("Abstract")] == [
        "Abstract 4 is here.",
        "Abstract 5 is here.",
    ]


def test_updated_abstracts_are_matched_again(
    abstracts: Path, tmp_path: Path, run: Run, run_pmc: Run, capsys: Capture
) -> None:
    arguments = (
        "--input",
        write_files(tmp_path / "in", OVERLAP_ARTICLES),
        "--find-overlap-with",
        abstracts,
        "--output",
        tmp_path / "out",
    )
    assert run_pmc(*arguments) == 0
    modified = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("data/*")}
    capsys.readouterr()
    assert run_pmc(*arguments) == 0
    assert "nothing to do" in capsys.readouterr().out

    write_files(
        tmp_path / "pubmed",
        {"pubmed26n0002.xml": pubmed_set_xml(citation_with_ids(6, pmc="PMC11"), deleted=(1,))},
    )
    assert run("--input", tmp_path / "pubmed", "--output", abstracts) == 0
    command = make_export_command(abstracts, tmp_path / "out")
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 2
    assert "run pmc_to_shards again" in completed.stderr
    assert run_pmc(*arguments) == 0
    assert read_overlap(tmp_path / "out") == [*EXPECTED_OVERLAP[1:], ("pubmed:6", "pmc:PMC11.1", "pmcid")]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("data/*")} == modified

    # A missing list is written again; without the option it is removed.
    (tmp_path / "out/overlap.arrow").unlink()
    assert run_pmc(*arguments) == 0
    assert len(read_overlap(tmp_path / "out")) == 3
    assert run_pmc(*arguments[:2], *arguments[4:]) == 0
    assert not (tmp_path / "out/overlap.arrow").exists()
    assert load_manifest(tmp_path / "out")["overlap"] == []
    assert run_pmc(*arguments[:2], "--output", tmp_path / "fresh") == 0
    assert published_digests(tmp_path / "out") == published_digests(tmp_path / "fresh")
