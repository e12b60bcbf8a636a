"""Tests that ``pmc_to_shards`` gives the same bytes with any workers, order, interruptions and updates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.corpus.jats_articles import article_xml, europepmc_package_xml, write_files, zip_articles
from tests.support.fork_server import interrupt_when, kill_when, run_beam, start_beam
from tests.support.outputs import load_documents, load_manifest, published_digests

pytestmark = pytest.mark.thorough  # this file takes minutes

Run = Callable[..., int]


def test_update_rewrites_only_the_affected_shards(
    tmp_path: Path, run_pmc: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    first = {
        f"PMC{n}.1.xml": article_xml(n, f"This is {n}. It is old.") for n in (11, 12, 10_011, 20_011, 30_011)
    }
    inputs = write_files(tmp_path / "in", first)
    assert run_pmc("--input", inputs, "--output", tmp_path / "grown") == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "grown").glob("data/*.parquet")}
    assert len(before) == 4

    # One article is added, one has a newer version, one is removed; one range is unchanged.
    write_files(
        inputs, {"PMC13.1.xml": article_xml(13), "PMC10011.2.xml": article_xml(10_011, "It is new. Yes.", 2)}
    )
    (inputs / "PMC20011.1.xml").unlink()
    (inputs / "PMC10011.1.xml").unlink()
    assert run_pmc("--input", inputs, "--output", tmp_path / "grown") == 2
    assert "1 article that an earlier run" in (stderr := capsys.readouterr().err)
    assert "PMC20011.1.xml. " in stderr
    assert run_pmc("--input", inputs, "--output", tmp_path / "grown", "--allow-fewer-inputs") == 0
    assert run_pmc("--input", inputs, "--output", tmp_path / "whole") == 0
    assert published_digests(tmp_path / "grown") == published_digests(tmp_path / "whole")
    unchanged_names = {
        f"data/{path.name}"
        for path, modified in before.items()
        if path.exists() and path.stat().st_mtime_ns == modified
    }
    [unchanged_input] = (
        item for item in load_manifest(tmp_path / "grown")["inputs"] if item["file"] == "PMC0003xxxx"
    )
    assert unchanged_names == set(unchanged_input["shards"])
    assert list(load_documents(tmp_path / "grown")) == [
        *("pmc:PMC11.1", "pmc:PMC12.1", "pmc:PMC13.1", "pmc:PMC10011.2", "pmc:PMC30011.1")
    ]

    # Changed content under the same name replaces the article.
    write_files(inputs, {"PMC30011.1.xml": article_xml(30_011, "It was mended. Yes.")})
    assert run_pmc("--input", inputs, "--output", tmp_path / "grown") == 0
    assert "It was mended." in load_documents(tmp_path / "grown")["pmc:PMC30011.1"]["sentences"]


def _write_large_input(folder: Path) -> Path:
    """Write ranges, a package and an archive of articles; many texts occur twice."""
    text = "".join(f"<p>Sentence {n} of it is here. Another one is there.</p>" for n in range(40))
    for group in range(5):
        numbers = range(group * 10_000 + 1, group * 10_000 + 61)
        write_files(
            folder, {f"PMC{n}.1.xml": article_xml(n, title=f"Part {n % 10_000}", body=text) for n in numbers}
        )
    numbers = range(900_001, 900_201)
    write_files(
        folder,
        {
            "PMC900000_PMC900999.xml.gz": europepmc_package_xml(
                article_xml(n, f"This is {n}. Yes.") for n in numbers
            )
        },
    )
    write_files(
        folder,
        {
            "a.zip": zip_articles(
                {f"{n}.xml": article_xml(n, "New. Text.", 2) for n in range(900_150, 900_180)}
            )
        },
    )
    return folder


@pytest.mark.timeout(600)
def test_stopped_and_resumed_run_gives_the_same_bytes(tmp_path: Path) -> None:
    """Compare one worker, three, and two that are stopped by Ctrl-C and twice by SIGKILL."""
    command = [
        "run",
        "pmc_to_shards",
        "--input",
        str(_write_large_input(tmp_path / "in")),
        "--dedup",
        "exact",
    ]
    assert run_beam(*command, "--workers", 1, "--output", tmp_path / "one").returncode == 0
    funnel = load_manifest(tmp_path / "one")["funnel"]
    assert (funnel["dropped: superseded"], funnel["dropped: duplicate"]) == (30, 4 * 60 + 29)
    assert run_beam(*command, "--workers", 3, "--output", tmp_path / "three").returncode == 0
    assert published_digests(tmp_path / "three") == published_digests(tmp_path / "one")

    output, stderr_path = tmp_path / "stopped", tmp_path / "said"
    command += ["--workers", "2", "--output", str(output)]

    def has_files(pattern: str, count: int = 1) -> Callable[[], bool]:
        return lambda: len(list(output.glob(pattern))) >= count

    process = start_beam(*command, stderr_path=stderr_path)
    interrupt_when(process, has_files(".bioshards/staged/*.arrow"))
    stderr = stderr_path.read_text()
    assert process.exitcode == 130
    assert "run the same command again to continue" in stderr
    assert "Traceback" not in stderr
    assert not (output / "manifest.json").exists()
    kill_when(start_beam(*command), has_files(".bioshards/staged/*.arrow", 4))
    kill_when(start_beam(*command), has_files("data/*.parquet"))
    assert not (output / "manifest.json").exists()
    completed = run_beam(*command)
    assert completed.returncode == 0, completed.stderr
    assert published_digests(tmp_path / "stopped") == published_digests(tmp_path / "one")
    assert list((tmp_path / "stopped").rglob(".tmp-*")) == []
