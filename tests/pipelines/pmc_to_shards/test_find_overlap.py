"""``--find-overlap-with``: which abstracts the articles hold in full, and what is left without them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.corpus.jats_articles import article_xml, write_files
from tests.support.corpus.overlap_sources import (
    EXPECTED_OVERLAP,
    OVERLAP_ARTICLES,
    OVERLAP_CITATIONS,
    citation_with_ids,
)
from tests.support.corpus.pubmed_xml import pubmed_set_xml
from tests.support.fork_server import run_beam
from tests.support.outputs import load_documents, load_manifest, published_digests

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def abstracts(tmp_path: Path, run: Run) -> Path:
    """A finished directory of abstracts."""
    write_files(tmp_path / "pubmed", {"pubmed26n0001.xml": pubmed_set_xml(*OVERLAP_CITATIONS)})
    assert run("--input", tmp_path / "pubmed", "--output", tmp_path / "abstracts") == 0
    return tmp_path / "abstracts"


def listed(output: Path) -> list[tuple[str, str, str]]:
    table = pa.ipc.open_stream(pa.memory_map(str(output / "overlap.arrow"))).read_all()
    return [(row["id"], row["full_text_id"], row["matched_by"]) for row in table.to_pylist()]


def keyed(*folders: Path, of: Path) -> bool:
    """Are there the keys of these directories' shards, and no others?"""
    wanted = {f"{shard['sha256']}.arrow" for folder in folders for shard in load_manifest(folder)["outputs"]}
    return {path.name for path in (of / ".bioshards" / "shard_keys").glob("*")} == wanted


def exporting(abstracts: Path, full_text: Path) -> list[str]:
    """The command that prints the abstracts that are not there in full."""
    words = ("export", abstracts, "--exclude-overlap-with", full_text)
    return [sys.executable, "-m", "bioshards.corpus", *map(str, words)]


def test_abstracts_are_found_by_pmid_pmcid_and_doi(
    abstracts: Path, tmp_path: Path, run_pmc: Run, capsys: Capture
) -> None:
    articles = write_files(tmp_path / "in", OVERLAP_ARTICLES)
    before = published_digests(abstracts)
    assert run_pmc("--input", articles, "--find-overlap-with", abstracts, "--output", tmp_path / "out") == 0
    assert f"3  abstracts of {abstracts} are here in full: overlap.arrow" in capsys.readouterr().out
    assert listed(tmp_path / "out") == EXPECTED_OVERLAP
    [entry] = load_manifest(tmp_path / "out")["overlap"]
    assert (entry["file"], entry["rows"], entry["abstracts_path"]) == ("overlap.arrow", 3, str(abstracts))
    assert published_digests(abstracts) == before

    # Exported together, nothing is read twice.
    command = exporting(abstracts, tmp_path / "out")
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert [line for line in text.splitlines() if line.startswith("Abstract")] == [
        "Abstract 4 is here.",
        "Abstract 5 is here.",
    ]


def test_abstracts_that_were_updated_are_looked_for_anew(
    abstracts: Path, tmp_path: Path, run: Run, run_pmc: Run, capsys: Capture
) -> None:
    words = (
        "--input",
        write_files(tmp_path / "in", OVERLAP_ARTICLES),
        "--find-overlap-with",
        abstracts,
        "--output",
        tmp_path / "out",
    )
    assert run_pmc(*words) == 0
    shards = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("data-*")}
    assert keyed(abstracts, tmp_path / "out", of=tmp_path / "out")
    capsys.readouterr()
    assert run_pmc(*words) == 0
    assert "nothing to do" in capsys.readouterr().out

    write_files(
        tmp_path / "pubmed",
        {"pubmed26n0002.xml": pubmed_set_xml(citation_with_ids(6, pmc="PMC11"), deleted=(1,))},
    )
    assert run("--input", tmp_path / "pubmed", "--output", abstracts) == 0
    command = exporting(abstracts, tmp_path / "out")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "run pmc_to_shards again" in done.stderr
    assert run_pmc(*words) == 0
    assert listed(tmp_path / "out") == [*EXPECTED_OVERLAP[1:], ("pubmed:6", "pmc:PMC11.1", "pmcid")]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("data-*")} == shards
    assert keyed(abstracts, tmp_path / "out", of=tmp_path / "out")

    # A lost list is made again; without the option it goes.
    (tmp_path / "out/overlap.arrow").unlink()
    assert run_pmc(*words) == 0
    assert len(listed(tmp_path / "out")) == 3
    assert run_pmc(*words[:2], *words[4:]) == 0
    assert not (tmp_path / "out/overlap.arrow").exists()
    assert load_manifest(tmp_path / "out")["overlap"] == []
    assert keyed(of=tmp_path / "out")
    assert run_pmc(*words[:2], "--output", tmp_path / "fresh") == 0
    assert published_digests(tmp_path / "out") == published_digests(tmp_path / "fresh")


def test_the_number_of_workers_and_the_spelling_of_the_folder_change_no_byte(
    abstracts: Path, tmp_path: Path, run_pmc: Run
) -> None:
    (tmp_path / "ids.txt").write_text("2\npmc:PMC11.1\n")  # the first is no article's PMID
    words = ("--input", write_files(tmp_path / "in", OVERLAP_ARTICLES), "--exclude-ids", tmp_path / "ids.txt")
    assert run_pmc(*words, "--find-overlap-with", abstracts, "--output", tmp_path / "one") == 0
    assert listed(tmp_path / "one") == EXPECTED_OVERLAP[1:]  # an article that is left out holds nothing
    there = f"{os.path.relpath(abstracts)}/"
    two = ("--workers", 2, *words, "--find-overlap-with", there, "--output", tmp_path / "two")
    done = run_beam("run", "pmc_to_shards", *two)
    assert done.returncode == 0, done.stderr
    assert published_digests(tmp_path / "one") == published_digests(tmp_path / "two")


def test_articles_that_hold_none_list_none(abstracts: Path, tmp_path: Path, run_pmc: Run) -> None:
    articles = write_files(tmp_path / "in", {"PMC77.xml": article_xml(77)})
    assert run_pmc("--input", articles, "--find-overlap-with", abstracts, "--output", tmp_path / "out") == 0
    assert listed(tmp_path / "out") == []
    command = exporting(abstracts, tmp_path / "out")
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert text.count("Abstract ") == len(load_documents(abstracts)) == 5


def test_a_folder_that_has_no_abstracts_is_explained(
    abstracts: Path, tmp_path: Path, run_pmc: Run, capsys: Capture
) -> None:
    articles = write_files(tmp_path / "in", OVERLAP_ARTICLES)
    assert run_pmc("--input", articles, "--output", tmp_path / "full") == 0
    (tmp_path / "empty").mkdir()
    (abstracts / "manifest.json").unlink()
    for folder, said in (
        (tmp_path / "full", "it was made by pmc_to_shards. Give the --output of beam run pubmed_to_shards"),
        (tmp_path / "empty", "no manifest.json"),
        (tmp_path / "nowhere", "no manifest.json"),
        (abstracts, "no manifest.json"),
    ):
        capsys.readouterr()
        assert run_pmc("--input", articles, "--find-overlap-with", folder, "--output", tmp_path / "out") == 2
        error = capsys.readouterr().err
        assert f"--find-overlap-with: {folder}" in error
        assert ".. See" not in error
        assert said in error
        assert not (tmp_path / "out").exists()
