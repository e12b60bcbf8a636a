"""Tests of ``--dry-run`` of each pipeline, on local and remote runners."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bioshards.pipelines import cli, dry_run
from bioshards.pipelines.storage.remote_storage import RemoteStorage
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.servers.fake_pmc_bucket import FakeArticle, create_bucket
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_pages import create_pubmed_server
from tests.support.vocab.tiny_tokenizers import save_character_vocabulary

Capture = pytest.CaptureFixture[str]
DATAFLOW_OPTIONS = (
    "--runner=DataflowRunner",
    "--project=some-project",
    "--region=us-central1",
    "--temp_location=gs://some-bucket/tmp",
)


# Dry runs


@pytest.fixture
def refuse_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(storage: RemoteStorage, path: str) -> None:
        raise PermissionError("gs:// needs credentials")

    monkeypatch.setattr(RemoteStorage, "probe", probe)


def run_dry(*arguments: object) -> int:
    return cli.main(["run", *map(str, arguments), "--dry-run"])


def list_modification_times(folder: Path) -> dict[Path, int]:
    """Return the modification times of everything in a folder."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_dry_run_of_words_and_pretraining_sets(reference: Path, tmp_path: Path, capsys: Capture) -> None:
    """Completed items are not done again, and nothing is written."""
    word_arguments = ("--input", reference, "--output", tmp_path / "words")
    assert run_dry("shards_to_words", *word_arguments) == 0
    stdout = capsys.readouterr().out
    assert "77 documents in 3 shards" in stdout
    assert "0 shards before, 3 to do" in stdout
    assert cli.main(["run", "shards_to_words", "--workers", "1", *map(str, word_arguments)]) == 0
    pretraining_arguments = (
        "--input",
        reference,
        "--vocab",
        save_character_vocabulary(tmp_path / "v"),
        "--output",
        tmp_path / "set",
    )
    capsys.readouterr()
    before = list_modification_times(tmp_path)
    assert run_dry("shards_to_words", *word_arguments) == 0
    stdout = capsys.readouterr().out
    assert "3 shards before, 0 to do" in stdout
    assert "to do, 0 bytes" in stdout
    assert run_dry("shards_to_pretraining", *pretraining_arguments, "--preset", "pubmedbert") == 0
    stdout = capsys.readouterr().out
    assert "bert, 512 tokens a row at most, 5 passes" in stdout
    assert "built:     0 shards before, 3 to do" in stdout
    assert list_modification_times(tmp_path) == before


def test_a_notice_forges_no_line(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def probe(storage: RemoteStorage, path: str) -> None:
        raise PermissionError("denied\noutput:      gs://elsewhere\x1b[31m")

    monkeypatch.setattr(RemoteStorage, "probe", probe)
    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(pubmed_set_xml(citation_xml(1)))
    assert run_dry("pubmed_to_shards", "--input", source, "--output", "gs://some-bucket/out") == 0
    stdout = capsys.readouterr().out
    assert "denied\\noutput:      gs://elsewhere\\x1b[31m" in stdout
    assert "\noutput:      gs://some-bucket/out\n" in stdout


@pytest.mark.usefixtures("refuse_credentials")
def test_dry_run_on_dataflow_without_credentials(reference: Path, tmp_path: Path, capsys: Capture) -> None:
    """Every pipeline shows the graph; inputs are local, the output is unreadable."""
    root, mirror = tmp_path / "servers", ("--mirror", "gs://some-bucket/mirror")
    create_pubmed_server(root, {"pubmed26n0001.xml.gz": pubmed_set_xml(citation_xml(1))}, {})
    create_bucket(root / "bucket", [FakeArticle(1200001)], "2026-11-01")
    output = ("--output", "gs://some-bucket/out")
    documents = ("--input", reference, *output)
    with FakeServer(root) as server:
        pubmed_arguments = ("--input", "pubmed:", "--pubmed-url", f"{server.url}pubmed/", *mirror)
        pmc_arguments = ("--input", "pmc:", "--pmc-url", f"{server.url}bucket/", *mirror)
        arguments_by_pipeline: dict[str, tuple[object, ...]] = {
            "fetch": (*pubmed_arguments, *pmc_arguments),
            "pubmed_to_shards": (*pubmed_arguments, *output),
            "pmc_to_shards": output,
            "text_to_shards": output,
            "shards_to_words": documents,
            "shards_to_pretraining": (*documents, "--vocab", save_character_vocabulary(tmp_path / "v")),
        }
        before = list_modification_times(tmp_path)
        for pipeline, arguments in arguments_by_pipeline.items():
            assert run_dry(pipeline, *arguments, *DATAFLOW_OPTIONS) == 0
            stdout = capsys.readouterr().out
            assert re.search(r"job graph:   \d\d steps, 0\.\d\d MB", stdout)
            assert "needs credentials. Planned as if nothing were there" in stdout
            assert ("is local; Dataflow's workers need gs://" in stdout) is (
                pipeline not in ("fetch", "pubmed_to_shards")
            )
        assert list_modification_times(tmp_path) == before
    assert run_dry("shards_to_words", "--input", "gs://some-bucket/in", *output, *DATAFLOW_OPTIONS) == 2
    assert "needs credentials" in capsys.readouterr().err


def test_dry_run_on_another_runner(reference: Path, tmp_path: Path, capsys: Capture) -> None:
    portable = ("--runner=PortableRunner", "--job_endpoint=localhost:1")
    assert run_dry("shards_to_words", "--input", reference, "--output", tmp_path / "out", *portable) == 0
    stdout = capsys.readouterr().out
    assert re.search(r"job graph:   \d\d steps", stdout)
    assert not (tmp_path / "out").exists()


def test_too_large_job_graph_is_reported(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dry_run, "MAX_GRAPH_MB", 0.01)
    assert run_dry("pubmed_to_shards", "--output", tmp_path / "out", *DATAFLOW_OPTIONS) == 0
    stdout = capsys.readouterr().out
    assert "Dataflow takes 0.01 MB at most" in stdout
