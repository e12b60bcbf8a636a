"""The ``bioshards`` command starts every other command, and ``bioshards doctor`` says what is missing."""

from __future__ import annotations

import contextlib
import email.message
import http.client
import os
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections import namedtuple
from importlib import metadata
from pathlib import Path

import pytest

import bioshards
from bioshards.__main__ import main
from bioshards.corpus.errors import describe_install
from tests.support.vocab.synthetic_corpora import write_abstracts

pytestmark = pytest.mark.thorough  # this file takes minutes

Capture = pytest.CaptureFixture[str]
DiskUsage = namedtuple("DiskUsage", "total used free")


def test_help_and_version(capsys: Capture) -> None:
    assert main(["--help"]) == 0
    assert "run PIPELINE" in capsys.readouterr().out
    assert main([]) == 2
    capsys.readouterr()
    for words in (["--version"], ["--version", "train"]):
        assert main(words) == 0
        assert capsys.readouterr().out == f"bioshards {bioshards.__version__}\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["list"], "pubmed_to_shards"),
        (["run", "--help"], "beam run PIPELINE"),
        (["run", "fetch", "--help"], "--mirror"),
        (["fetch", "--help"], "--mirror"),
        (["vocab", "build", "--help"], "--size"),
        (["evaluate", "report", "--help"], "RESULTS"),
        (["show", "--help"], "--with-source"),
        (["doctor", "--help"], "usage: bioshards doctor"),
    ],
)
def test_commands_are_reached(capsys: Capture, words: list[str], expected: str) -> None:
    with contextlib.suppress(SystemExit):
        assert main(words) == 0
    assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("list", 0),
        ("", 2),
        ("run fetch --help", 0),
        ("train --help", 0),
        ("corpus export {documents}", 0),
        ("corpus verify {missing}", 2),
        ("show {documents} --first 3", 0),
        ("run shards_to_words --input {documents} --output {new} --dry-run", 0),
    ],
)
def test_closed_pipe_changes_neither_the_exit_status_nor_standard_error(
    words: str, code: int, tmp_path: Path
) -> None:
    documents = write_abstracts(tmp_path / "documents", one=range(1, 400))
    places = {"documents": documents, "missing": tmp_path / "missing", "new": tmp_path / "new"}
    command = [sys.executable, "-m", "bioshards", *words.format(**places).split()]
    open_end = subprocess.run(command, capture_output=True, text=True, check=False)
    read_end, write_end = os.pipe()
    os.close(read_end)
    with open(write_end, "wb") as pipe:
        closed = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, text=True, check=False)
    assert (closed.returncode, closed.stderr) == (open_end.returncode, open_end.stderr)
    assert closed.returncode == code


def test_beam_warns_of_no_library_that_the_core_does_not_need(tmp_path: Path) -> None:
    documents = write_abstracts(tmp_path / "documents", one=range(1, 4))
    command = ["run", "shards_to_words", "--input", str(documents), "--output", str(tmp_path / "words")]
    script = (
        "import sys; sys.modules['apitools'] = None; from bioshards.__main__ import main; "
        f"code = main({[*command, '--workers', '1']}); "
        "assert 'apache_beam.io.gcp.internal.clients.bigquery' in sys.modules; sys.exit(code)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert "WARNING" not in run.stderr


def test_doctor_names_what_is_missing(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """The suite bans the network, so that the servers are among it."""
    monkeypatch.setenv("AWS_PROFILE", "lab")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(0, 0, 5e9))
    assert main(["doctor", "run"]) == 0
    states = {line[9:32].strip(): line.split()[0] for line in capsys.readouterr().out.splitlines()}
    assert [states[name] for name in ("python", "core", "cores, memory", "s3:// access")] == ["ok"] * 4
    assert [states[name] for name in ("disk", "PubMed", "PMC", "Europe PMC")] == ["missing"] * 4


@pytest.mark.parametrize(
    ("library", "extra", "stopped"),
    [
        ("lxml", "", ("run", "vocab", "train", "evaluate")),
        ("sentencepiece", "vocab", ("vocab",)),
        ("torch", "train", ("train", "evaluate")),
    ],
)
def test_doctor_fails_for_the_commands_that_lack_a_library(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, library: str, extra: str, stopped: tuple[str, ...]
) -> None:
    find_all = metadata.distributions
    monkeypatch.setattr(
        metadata, "distributions", lambda name: [] if name == library else find_all(name=name)
    )
    for command in ("run", "vocab", "train", "evaluate"):
        assert (command, main(["doctor", command])) == (command, int(command in stopped))
    assert main(["doctor"]) == 1
    output = capsys.readouterr().out
    assert f"missing {library}: {describe_install(extra)}" in output
    for command in stopped:
        assert f"missing  bioshards {command} " in output


@pytest.mark.parametrize(
    ("script", "found", "code"),
    [
        ("from bioshards.pipelines.cli import main", "ok       beam run               {}", 0),
        ("from beam_client import main", "{} is of another package, such as beam-client", 1),
        ("", "there is none on the path: type bioshards run NAME instead", 1),
    ],
)
def test_doctor_tells_our_beam_from_another(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, script: str, found: str, code: int
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    if script:
        (tmp_path / "beam").write_text(f"#!/opt/bioshards/bin/python\n{script}\n")
        (tmp_path / "beam").chmod(0o755)
    assert main(["doctor", "beam"]) == code
    assert found.format(tmp_path / "beam") in capsys.readouterr().out
    assert main(["doctor", "run"]) == 0


def test_doctor_quotes_what_servers_answer(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(request: urllib.request.Request, timeout: float) -> None:
        assert request.get_header("User-agent") == "bioshards doctor"
        if "pubmed" in request.full_url:
            raise urllib.error.HTTPError(request.full_url, 500, "\x1b[2J", email.message.Message(), None)
        raise http.client.BadStatusLine("\x1b[2J\n" + "x" * 1000)

    monkeypatch.setattr(urllib.request, "urlopen", answer)
    assert main(["doctor", "run"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-3].endswith("ftp.ncbi.nlm.nih.gov/pubmed/: HTTP Error 500: \\x1b[2J")
    assert lines[-2].startswith("missing  PMC ")
    assert len(lines[-2]) < 400
    assert not any("\x1b" in line for line in lines)


def test_doctor_tells_a_failing_gpu_from_none(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    details = []
    for script in ("", "echo GPU 0; echo GPU 1", "echo no driver; exit 9"):
        if script:
            (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
            (tmp_path / "nvidia-smi").chmod(0o755)
        assert main(["doctor", "run"]) == 0
        details += [line[32:] for line in capsys.readouterr().out.splitlines() if line[9:12] == "gpu"]
    assert details == ["none: training runs on the CPU", "GPU 0; GPU 1", "nvidia-smi failed: no driver"]


@pytest.mark.parametrize(
    ("number", "words", "module", "message"),
    [
        (
            signal.SIGINT,
            ["vocab", "build"],
            "bioshards.vocab.__main__",
            "stopped: run the same command again to continue",
        ),
        (
            signal.SIGTERM,
            ["run", "pubmed_to_shards", "--output", "out"],
            "bioshards.corpus.pubmed.filters",
            "bioshards: stopped. Completed work is kept: run the same command again to continue",
        ),
    ],
)
def test_stop_while_a_command_is_imported_is_one_line(
    number: signal.Signals, words: list[str], module: str, message: str
) -> None:
    """The command stops itself when it looks for a module of its own."""
    script = f"""
import os, sys
class StopAtImport:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, StopAtImport())
from bioshards.__main__ import main
sys.exit(main({words}))
"""
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert completed.stderr.strip() == message
    assert completed.returncode == 130
