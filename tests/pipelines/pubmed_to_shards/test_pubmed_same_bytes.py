"""Tests that ``pubmed_to_shards`` gives the same bytes with any workers, input order, reruns and updates."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus import text_config
from bioshards.corpus.pubmed import filters
from bioshards.corpus.xml.decoder import ByteStream, DecodingReport
from bioshards.pipelines import steps
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml, write_pubmed_files
from tests.support.outputs import load_documents, load_manifest, published_digests

pytestmark = pytest.mark.thorough  # this file takes minutes

Run = Callable[..., int]


def test_the_largest_files_are_read_first(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pmids = (range(100, 101), range(200, 230), range(300, 302))
    inputs = write_pubmed_files(
        tmp_path / "in", *(pubmed_set_xml(*map(citation_xml, file)) for file in pmids)
    )
    order: list[str] = []
    run_step = steps.run_step

    def run_noted(step: str, function: Callable[..., Any], *arguments: Any) -> Any:
        if step == "stage":
            order.append(f"stage {arguments[1].number}")
        if step == "finalize":
            _, staged = arguments[1]
            order.append(f"finalize {staged.output_name[12]}")
        return run_step(step, function, *arguments)

    monkeypatch.setattr(steps, "run_step", run_noted)
    assert run("--output", tmp_path / "out", "--input", inputs) == 0
    assert order == [f"{step} {number}" for step in ("stage", "finalize") for number in (2, 3, 1)]


def test_update_rewrites_only_the_affected_shards(tmp_path: Path, run: Run) -> None:
    files = [pubmed_set_xml(*map(citation_xml, pmids)) for pmids in ((1, 2), (3, 4), (5,))]
    inputs = write_pubmed_files(tmp_path / "in", *files)
    assert run("--input", inputs, "--output", tmp_path / "grown") == 0
    shards = sorted((tmp_path / "grown").glob("data/*.parquet"))
    before = {f"data/{path.name}": (path.stat().st_mtime_ns, path.read_bytes()) for path in shards}

    (inputs / "pubmed26n0004.xml").write_bytes(pubmed_set_xml(citation_xml(2, "New. Text."), deleted=(5,)))
    assert run("--input", inputs, "--output", tmp_path / "grown") == 0
    assert run("--input", inputs, "--output", tmp_path / "whole") == 0
    assert published_digests(tmp_path / "grown") == published_digests(tmp_path / "whole")
    after = {
        f"data/{path.name}": (path.stat().st_mtime_ns, path.read_bytes()) for path in shards if path.exists()
    }
    by_file = {item["file"]: item["shards"] for item in load_manifest(tmp_path / "grown")["inputs"]}
    assert by_file["pubmed26n0003.xml"] == []  # its only citation was deleted
    [changed], [unchanged] = by_file["pubmed26n0001.xml"], by_file["pubmed26n0002.xml"]
    assert after[unchanged] == before[unchanged]
    assert after[changed] != before[changed]
    assert set(load_documents(tmp_path / "grown")) == {"pubmed:1", "pubmed:2", "pubmed:3", "pubmed:4"}

    # Removing the update restores the replaced documents.
    (inputs / "pubmed26n0004.xml").unlink()
    assert run("--input", inputs, "--output", tmp_path / "grown", "--allow-fewer-inputs") == 0
    assert {f"data/{path.name}": path.read_bytes() for path in (tmp_path / "grown").glob("data/*")} == {
        name: data for name, (_, data) in before.items()
    }


def test_update_of_a_run_of_an_older_version_counts_its_drop_reasons(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reused work files have a reason that this version does not have: no record is missing in the funnel."""
    records = [citation_xml(number) for number in range(1, 6)]
    records[1] = records[1].replace("2020", "1999")
    inputs = write_pubmed_files(tmp_path / "in", pubmed_set_xml(*records[:3]))
    arguments = ("--input", inputs, "--published", "2000:", "--output", tmp_path / "out")
    find_reason = text_config.find_common_drop_reason
    with monkeypatch.context() as patched:
        patched.setattr(filters, "find_common_drop_reason", lambda *given: find_reason(*given) and "older")
        patched.setattr(filters.PubMedConfig, "drop_reasons", ("older",))
        assert run(*arguments) == 0
    (inputs / "pubmed26n0002.xml").write_bytes(pubmed_set_xml(*records[3:]))
    assert run(*arguments) == 0
    assert load_manifest(tmp_path / "out")["funnel"] == {"records": 5, "dropped: older": 1, "kept": 4}


def test_file_that_changes_during_reading_is_a_bad_file(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from bioshards.corpus.pubmed import documents

    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(pubmed_set_xml(citation_xml(1)))

    iter_records = documents.iter_records

    def iter_records_and_change(file: ByteStream, report: DecodingReport) -> Iterator[tuple[str, bytes]]:
        yield from iter_records(file, report)
        source.write_bytes(pubmed_set_xml(citation_xml(1), citation_xml(2)))

    with monkeypatch.context() as patched:
        patched.setattr(documents, "iter_records", iter_records_and_change)
        assert run("--input", source, "--output", tmp_path / "out") == 3
    assert "changed while it was read" in capsys.readouterr().err
    assert run("--input", source, "--output", tmp_path / "out") == 0
    assert len(load_documents(tmp_path / "out")) == 2


def test_file_replaced_with_the_same_size_and_time_is_found_on_request(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    inputs = write_pubmed_files(tmp_path / "in", *(pubmed_set_xml(citation_xml(pmid)) for pmid in (1, 2)))
    replaced = inputs / "pubmed26n0002.xml"
    arguments = ("--input", inputs, "--output", output)
    assert run(*arguments) == 0
    status = replaced.stat()
    replaced.write_bytes(pubmed_set_xml(citation_xml(3)))
    os.utime(replaced, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert replaced.stat().st_size == status.st_size
    assert run(*arguments) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert run(*arguments, "--verify-inputs", "--dry-run") == 0
    assert "  verified:  2 files" in capsys.readouterr().out
    assert run(*arguments, "--verify-inputs") == 0
    assert set(load_documents(output)) == {"pubmed:1", "pubmed:3"}
    assert run("--input", inputs, "--output", tmp_path / "fresh") == 0
    assert published_digests(output) == published_digests(tmp_path / "fresh")
    assert len(list(output.glob(".bioshards/staged/*"))) == 6, "nothing of the replaced content is left"
    shards = [*output.glob("data/*.parquet"), *output.glob(".bioshards/staged/*.arrow")]
    before = {path: path.stat().st_mtime_ns for path in shards}
    digests = {path: path.stat().st_mtime_ns for path in output.glob(".bioshards/input_digests/*.json")}
    assert run(*arguments, "--verify-inputs") == 0
    assert {path: path.stat().st_mtime_ns for path in before} == before, "unchanged files are not parsed"
    assert len(digests) == 2
    assert all(path.stat().st_mtime_ns > time for path, time in digests.items()), "both files are read"


def test_relative_inputs_are_published_as_typed_and_known_from_any_folder(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, output, elsewhere = tmp_path / "in", tmp_path / "out", tmp_path / "elsewhere"
    for folder in (inputs / "more", elsewhere):
        folder.mkdir(parents=True)
    (inputs / "pubmed26n0001.xml").write_bytes(pubmed_set_xml(citation_xml(1)))
    monkeypatch.chdir(tmp_path)
    assert run("--input", "in", "--output", "out") == 0
    assert load_manifest(output)["inputs"][0]["path"] == "in/pubmed26n0001.xml"
    [digest] = output.glob(".bioshards/input_digests/*.json")
    read_at = digest.stat().st_mtime_ns
    monkeypatch.chdir(elsewhere)
    capsys.readouterr()
    assert run("--input", "../in/*.xml", "--output", "../out") == 0
    assert "nothing to do" in capsys.readouterr().out
    shutil.copy(inputs / "pubmed26n0001.xml", inputs / "more")
    (inputs / "pubmed26n0002.xml.gz").write_text("garbage")
    (inputs / "loop").symlink_to(inputs)
    assert run("--input", "../in", "--output", "../out", "--max-bad-files", "1") == 0
    manifest = load_manifest(output)
    assert manifest["bad_files"][0]["path"] == "../in/pubmed26n0002.xml.gz"
    assert (
        "../in/pubmed26n0001.xml is the same file as ../in/more/pubmed26n0001.xml" in manifest["warnings"][0]
    )
    assert digest.stat().st_mtime_ns == read_at, "the file is known from another folder"
    published = [path for path in output.rglob("*") if path.is_file() and path.parent.name != ".bioshards"]
    assert [path for path in published if str(tmp_path).encode() in path.read_bytes()] == []
