"""The chain of all commands on the bundled sample, each command as a process of its own.

Of ``beam run`` the first of each test starts Python anew.
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from tests.support.corpus.jats_articles import article_xml
from tests.support.fork_server import run_beam
from tests.support.outputs import load_manifest
from tests.support.paths import BENCHMARK_SAMPLE, PUBMED_SAMPLE, TOPIC_SAMPLE
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_pages import create_europepmc_server

BEAM = "bioshards.pipelines.cli"
BENCHMARKS = BENCHMARK_SAMPLE
ONE_PROCESS = ("--workers", 1)
"""For all pipelines but the first, which has worker processes: each of them takes seconds to import Beam."""


def run_module(module: str, *arguments: object) -> str:
    """Run ``python -m module`` in the working directory and return what it printed; it must succeed."""
    completed = subprocess.run(
        [sys.executable, "-m", module, *map(str, arguments)], capture_output=True, text=True
    )
    assert completed.returncode == 0, f"{module} {arguments}\n{completed.stdout}\n{completed.stderr}"
    return completed.stdout


def run_pipeline(*arguments: object) -> None:
    """Run a pipeline in a process of its own that is forked where Beam is imported; it must succeed."""
    completed = run_beam("run", *arguments, *ONE_PROCESS)
    assert completed.returncode == 0, f"{arguments}\n{completed.stdout}\n{completed.stderr}"


@pytest.mark.timeout(1800)
def test_abstracts_to_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    abstracts, articles, texts, words, vocabulary, rows, run, scores = (
        Path(name) for name in ("abstracts", "articles", "texts", "words", "vocab", "rows", "run", "scores")
    )
    Path("topics").mkdir()
    shutil.copy(TOPIC_SAMPLE, "topics")
    citations = ("--input", "topics/pubmed*", "--input", PUBMED_SAMPLE)
    run_module(BEAM, "run", "pubmed_to_shards", *citations, "--output", abstracts, "--workers", 2)
    assert load_manifest(abstracts)["counts"]["documents"] == 577
    assert "577" in run_module("bioshards.corpus", "stats", abstracts)
    assert "pubmed:90000001" in run_module("bioshards", "show", abstracts, "--id", "pubmed:90000001")
    assert run_module("bioshards.corpus", "export", abstracts).count("\n") > 300
    assert "is as its manifest lists it" in run_module("bioshards.corpus", "verify", abstracts)
    run_pipeline("pmc_to_shards", "--output", articles, "--find-overlap-with", abstracts)
    run_pipeline("text_to_shards", "--output", texts)
    shards = ("--input", abstracts, "--input", articles, "--input", texts)
    run_pipeline("shards_to_words", *shards, "--output", words)
    assert load_manifest(words)["counts"]["documents"] > 577
    run_module("bioshards.vocab", "build", words, "--size", 600, "--output", vocabulary)
    assert len((vocabulary / "vocab.txt").read_text().split("\n")) == 601
    options = ("--vocab", vocabulary, "--validation-fraction", 0.1, "--max-seq-length", 64)
    run_pipeline("shards_to_pretraining", *shards, *options, "--output", rows)
    assert load_manifest(rows)["counts"]["train"]["rows"] > 100
    sizes = ("--family", "bert", "--hidden-size", 64, "--intermediate-size", 64, "--num-layers", 1)
    recipe = ("--steps", 400, "--learning-rate", 0.009, "--dropout", 0, "--attention-dropout", 0)
    printed = run_module("bioshards.train", rows, "--vocab", vocabulary, *sizes, *recipe, "--output", run)
    [accuracy, chance] = map(float, re.findall(r"([0-9.]+)%", printed))
    assert accuracy > 1.5 * chance > 5, printed
    assert "<polyline" in (run / "report.html").read_text()
    benchmarks = ("--benchmarks", BENCHMARKS)
    task = ("--tasks", "blurb/ncbi-disease", "--seeds", 1, "--epochs", 1)
    run_module("bioshards.evaluate", "run", run / "step-0000400/hf", *benchmarks, *task, "--output", scores)
    run_module("bioshards.evaluate", "report", scores, "--output", scores)
    assert "NCBI-disease" in (scores / "report.html").read_text()
    contamination = Path("contamination")
    run_module(
        "bioshards.evaluate", "contamination", "--corpus", abstracts, *benchmarks, "--output", contamination
    )
    assert json.loads((contamination / "report.json").read_text())
    assert "topics/pubmed26n0004.xml.gz" in (abstracts / "manifest.json").read_text()
    files = [path for path in Path().rglob("*") if path.is_file() and ".bioshards" not in path.parts]
    assert [path for path in files if str(tmp_path).encode() in read_plain(path)] == []


def read_plain(path: Path) -> bytes:
    """Return the bytes of a file, with what is compressed in them again without compression."""
    data = path.read_bytes()
    if data.startswith(b"\x1f\x8b"):
        data += gzip.decompress(data)
    if data.startswith(b"PAR1"):
        data += str(pyarrow.parquet.read_table(path).to_pylist()).encode()
    return data


def test_source_is_fetched_and_read_from_the_mirror(tmp_path: Path) -> None:
    create_europepmc_server(tmp_path / "server", {"PMC1_PMC20.xml.gz": [article_xml(1), article_xml(2)]})
    mirror, output = tmp_path / "mirror", tmp_path / "articles"
    source = ("--input", "europepmc:", "--mirror", mirror)
    with FakeServer(tmp_path / "server") as server:
        server_url = ("--europepmc-url", f"{server.url}europepmc/")
        run_module(BEAM, "run", "fetch", *source, *server_url, *ONE_PROCESS)
        run_pipeline("pmc_to_shards", *source, *server_url, "--output", output)
        assert len(server.requests_for("*.xml.gz")) == 1
    assert load_manifest(output)["counts"]["documents"] == 2
