"""Fixtures of all tests, and two rules: no test reaches the network, none leaves its own folder."""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bioshards.pipelines import cli, pubmed_to_shards
from tests import manifests
from tests.forked import run_beam

PUBMED_SAMPLE = Path(pubmed_to_shards.sample_folder())


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection but those to this machine, which go through no proxy."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1,localhost")
    connect = socket.socket.connect

    def guarded(sock: socket.socket, address: Any) -> None:
        if sock.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise AssertionError(f"a test connects to {address}")
        connect(sock, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(scope="session", autouse=True)
def skip_state_inspection() -> None:
    """Beam looks through each function anew for state and timers, 40 % of a small run: ours have none."""
    from apache_beam.transforms import core, userstate

    inspect_dofn = userstate.get_dofn_specs

    def inspect_unless_callable(dofn: Any) -> tuple[set[Any], set[Any]]:
        return (set(), set()) if type(dofn) is core.CallableWrapperDoFn else inspect_dofn(dofn)

    userstate.get_dofn_specs = inspect_unless_callable


@pytest.fixture(scope="session", autouse=True)
def cache_parsed_options() -> None:
    """Beam makes a parser for each look at a run's options, a third of a small run: the same words once."""
    from apache_beam.options.pipeline_options import PipelineOptions

    parse, cache = PipelineOptions.__init__, dict[tuple[Any, ...], dict[str, Any]]()

    def parse_once(self: Any, flags: Any = None, **overrides: Any) -> None:
        if flags is None or overrides:
            parse(self, flags, **overrides)
            return
        cache_key = type(self), *flags
        if cache_key not in cache:
            parse(self, flags)
            cache[cache_key] = copy.deepcopy(self._all_options)
        options = {name: copy.copy(value) for name, value in cache[cache_key].items()}
        self.__dict__.update(
            _flags=flags, _visible_options=argparse.Namespace(**options), _all_options=options
        )

    PipelineOptions.__init__ = parse_once


@pytest.fixture(scope="session", autouse=True)
def every_manifest_is_valid(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Validate all manifests that the tests have left, by whichever process, against the JSON Schema.

    ``write_manifest`` itself refuses what ``read_manifest`` would refuse, in every process.  What is left to
    see is that the schema accepts what that one reads.
    """
    yield
    wrong = {
        str(folder): found
        for folder in manifests.written(tmp_path_factory.getbasetemp())
        if (found := manifests.problems(load_manifest(folder)))
    }
    assert not wrong


@pytest.fixture
def own_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder for this test and its processes alone: places on servers are counted there."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.fixture
def run() -> Callable[..., int]:
    """``beam run pubmed_to_shards`` in this process, one worker unless said otherwise."""

    def call(*arguments: object) -> int:
        return cli.main(["run", "pubmed_to_shards", "--workers", "1", *map(str, arguments)])

    return call


@pytest.fixture
def run_pmc() -> Callable[..., int]:
    """``beam run pmc_to_shards`` in this process, one worker unless said otherwise."""

    def call(*arguments: object) -> int:
        return cli.main(["run", "pmc_to_shards", "--workers", "1", *map(str, arguments)])

    return call


def published_digests(output: Path) -> dict[str, str]:
    """SHA-256 of everything a run publishes; of the manifest, all that is not about this run alone."""
    digests = {}
    for path in sorted(output.rglob("*")):
        name = str(path.relative_to(output))
        if path.is_file() and not name.startswith(".bioshards"):
            data = path.read_bytes()
            if name == "manifest.json":
                manifest = json.loads(data)
                del manifest["run"]
                data = json.dumps(manifest).encode()
            digests[name] = hashlib.sha256(data).hexdigest()
    return digests


def load_manifest(output: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((output / "manifest.json").read_text())
    return loaded


def load_documents(output: Path) -> dict[str, dict[str, Any]]:
    """All documents of a finished directory by id."""
    from bioshards.corpus import shards
    from bioshards.corpus.files import LocalStorage

    return {
        row["id"]: row
        for batch in shards.read_directory(LocalStorage(), str(output))
        for row in batch.to_pylist()
    }


def citation_xml(
    pmid: int, abstract: str = "One sentence. Another one.", version: int = 1, **fields: str
) -> str:
    """A small PubmedArticle; ``fields`` replace the title or the language."""
    return (
        f'<PubmedArticle><MedlineCitation Status="MEDLINE"><PMID Version="{version}">{pmid}</PMID><Article>'
        "<Journal><JournalIssue><PubDate><Year>2020</Year></PubDate></JournalIssue></Journal>"
        f"<ArticleTitle>{fields.get('title', 'A title.')}</ArticleTitle>"
        + (f"<Abstract><AbstractText>{abstract}</AbstractText></Abstract>" if abstract else "")
        + f"<Language>{fields.get('language', 'eng')}</Language></Article></MedlineCitation></PubmedArticle>"
    )


def pubmed_set_xml(*records: str, deleted: tuple[int, ...] = ()) -> bytes:
    """A PubmedArticleSet of these records."""
    deleted_pmids = "".join(f'<PMID Version="1">{pmid}</PMID>' for pmid in deleted)
    deletion_xml = f"<DeleteCitation>{deleted_pmids}</DeleteCitation>" if deleted else ""
    return f'<?xml version="1.0"?>\n<PubmedArticleSet>{"".join(records)}{deletion_xml}</PubmedArticleSet>'.encode()


DATA = os.environ.get("BIOSHARDS_DATA")
needs_data = pytest.mark.skipif(not DATA, reason="BIOSHARDS_DATA is not set: the real records are not here")


@pytest.fixture(scope="session")
def full_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of the sample's articles, dropped ones kept."""
    output = tmp_path_factory.mktemp("full-text") / "out"
    completed = run_beam("run", "pmc_to_shards", "--workers", 1, "--keep-dropped", "--output", output)
    assert completed.returncode == 0, completed.stderr
    return output


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample's output, dropped documents kept: what every other way of running must equal."""
    output = tmp_path_factory.mktemp("reference") / "out"
    completed = run_beam("run", "pubmed_to_shards", "--workers", 1, "--keep-dropped", "--output", output)
    assert completed.returncode == 0, completed.stderr
    return output


@pytest.fixture(scope="session")
def pretraining_sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small pretraining set for each objective, by its name, and under "vocabulary" what they share."""
    from tests.training_runs import build_pretraining_set, write_corpus_and_vocabulary

    folder = tmp_path_factory.mktemp("pretraining-sets")
    documents, vocabulary = write_corpus_and_vocabulary(folder)
    outputs = {
        objective: build_pretraining_set(folder / objective, objective, documents, vocabulary)
        for objective in ("electra", "bert", "albert", "plain")
    }
    return {**outputs, "vocabulary": vocabulary}


@pytest.fixture(scope="session")
def real_abstracts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The documents of all real PubMed records."""
    output = tmp_path_factory.mktemp("real-abstracts") / "out"
    inputs = ("--input", f"{DATA}/pubmed", "--max-rejected", 0.01)
    completed = run_beam("run", "pubmed_to_shards", "--workers", 1, "--output", output, *inputs)
    assert completed.returncode == 0, completed.stderr
    return output
