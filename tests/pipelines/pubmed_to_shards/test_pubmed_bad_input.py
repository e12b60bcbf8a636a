"""What goes wrong for people: each case a clear message, the right exit code, and nothing lost."""

from __future__ import annotations

import errno
import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli
from bioshards.pipelines.drivers import shards_driver
from bioshards.pipelines.execution import executor
from bioshards.pipelines.registry import PIPELINES
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.fork_server import run_beam
from tests.support.outputs import load_documents, load_manifest, published_digests

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]

GOOD = pubmed_set_xml(citation_xml(1), citation_xml(2))
BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE PubmedArticleSet [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
""" + GOOD.split(b"\n", 1)[1].replace(b"One", b"&b;")
EXTERNAL = BOMB.replace(b'"aaaaaaaaaa"', b'SYSTEM "file:///etc/passwd"')

BAD_FILES = {
    "not-xml": (b"PMID- 1\nTI  - not XML\n", "does not begin as XML does"),
    "not-xml-html": (b"<!DOCTYPE html>\n<html><body>503</body></html>", "its root is <html>"),
    "truncated-gzip": (gzip.compress(GOOD)[:-12], "ends before its end mark"),
    "corrupt-gzip": (gzip.compress(GOOD)[:-6] + b"\0\1\2\3\4\5", "damaged"),
    "truncated-xml": (GOOD[:-30], "ends before </PubmedArticleSet>"),
    "wrong-root": (b"<articles><article/></articles>", "its root is <articles>"),
    "entity-bomb": (BOMB, "declarations of its own"),
    "external-entity": (EXTERNAL, "declarations of its own"),
    "empty": (b"", "has no bytes"),
    "text-between-records": (GOOD.replace(b"<PubmedArticle>", b"stray<PubmedArticle>", 1), "text between"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_named_and_fails_the_run_at_its_end(
    case: str, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    data, message = BAD_FILES[case]
    (tmp_path / "pubmed26n0001.xml").write_bytes(GOOD)
    bad = tmp_path / "pubmed26n0002.xml"
    bad.write_bytes(data)
    output = tmp_path / "out"
    assert run("--input", tmp_path, "--output", output) == 3
    said = capsys.readouterr().err
    assert str(bad) in said
    assert message in said
    assert "--max-rejected" in said
    assert not (output / "manifest.json").exists()
    [entry] = map(json.loads, (output / "rejected" / "files.jsonl").read_text().splitlines())
    assert entry["file"] == str(bad)
    assert message in entry["detail"]
    assert "root:" not in said + (output / "rejected" / "files.jsonl").read_text()  # of /etc/passwd

    # Allowed by hand, the run ends, and says what it left out.
    assert run("--input", tmp_path, "--output", output, "--max-rejected", 0.5) == 0
    assert set(load_documents(output)) == {"pubmed:1", "pubmed:2"}
    assert load_manifest(output)["bad_files"][0]["path"] == str(bad)

    # Mended, the same command goes on and ends as if the file had never been bad.
    bad.write_bytes(pubmed_set_xml(citation_xml(3)))
    assert run("--input", tmp_path, "--output", output) == 0
    fresh = tmp_path / "fresh"
    assert run("--input", tmp_path / "pubmed26n0001.xml", "--input", bad, "--output", fresh) == 0
    assert published_digests(output) == published_digests(fresh)


BAD_RECORDS = {
    "no-pmid": citation_xml(7).replace('<PMID Version="1">7</PMID>', ""),
    "bad-pmid": citation_xml(7).replace(">7<", ">7-a<"),
    "invalid-utf-8": citation_xml(7).replace("Another", "An\udcfftwo"),
    "malformed-xml": citation_xml(7).replace("</ArticleTitle>", ""),
    "undefined-entity": citation_xml(7, "Rates of &alpha;-helix. Another."),
    "unexpected-element": "<Surprise>text</Surprise>",
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_a_bad_record_is_kept_aside_and_stops_nothing(
    case: str, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    reason = "malformed-xml" if case == "undefined-entity" else case
    raw = BAD_RECORDS[case].encode("utf-8", "surrogateescape")
    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(GOOD.replace(b"</PubmedArticleSet>", raw + b"</PubmedArticleSet>"))
    assert run("--input", source, "--output", tmp_path / "out") == 3
    assert f"1 of 3 records were rejected ({reason}: 1)" in capsys.readouterr().err
    assert run("--input", source, "--output", tmp_path / "out", "--max-rejected", 0.4) == 0
    assert set(load_documents(tmp_path / "out")) == {"pubmed:1", "pubmed:2"}
    assert load_manifest(tmp_path / "out")["funnel"][f"rejected: {reason}"] == 1
    [kept] = (tmp_path / "out" / "rejected").glob("*.jsonl")
    entry = json.loads(kept.read_text())
    assert (entry["file"], entry["position"], entry["reason"]) == ("pubmed26n0001.xml", 2, reason)
    if case == "invalid-utf-8":
        import base64

        assert base64.b64decode(entry["raw_base64"]) == raw
    else:
        assert entry["raw"].encode() == raw


def test_an_md5_file_that_disagrees_names_the_file(tmp_path: Path, run: Run, capsys: Capture) -> None:
    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(GOOD)
    sidecar = tmp_path / "pubmed26n0001.xml.md5"
    sidecar.write_text("MD5(pubmed26n0001.xml)= 00000000000000000000000000000000\n")
    assert run("--input", source, "--output", tmp_path / "out") == 3
    assert "download it again" in capsys.readouterr().err
    import hashlib

    sidecar.write_text(f"MD5(pubmed26n0001.xml)= {hashlib.md5(GOOD).hexdigest()}\n")
    assert run("--input", source, "--output", tmp_path / "out") == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("nowhere", "names no file"),
        ("no*where.xml", "names no file"),
        ("empty-folder", "has no *.xml or *.xml.gz file"),
    ],
)
def test_an_input_that_is_not_there(
    given: str, message: str, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    (tmp_path / "empty-folder").mkdir()
    (tmp_path / "empty-folder" / "README.txt").write_text("no XML here")
    assert run("--input", tmp_path / given, "--output", tmp_path / "out") == 2
    said = capsys.readouterr().err
    assert message in said
    assert given in said
    assert not (tmp_path / "out").exists()


def test_an_unreadable_file(
    tmp_path: Path, run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(GOOD)
    opened = LocalStorage.open

    def refuse(self: LocalStorage, path: str) -> BinaryIO:
        if path == str(source):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return opened(self, path)

    monkeypatch.setattr(LocalStorage, "open", refuse)
    assert run("--input", source, "--output", tmp_path / "out") == 3
    said = capsys.readouterr().err
    assert str(source) in said
    assert "Permission denied" in said


def test_a_disk_that_fails_while_reading(
    tmp_path: Path, run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(GOOD)

    class Failing:
        def __enter__(self) -> Failing:
            return self

        def __exit__(self, *_: object) -> None: ...

        def read(self, size: int) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    opened = LocalStorage.open
    monkeypatch.setattr(
        LocalStorage, "open", lambda self, path: Failing() if path == str(source) else opened(self, path)
    )
    assert run("--input", source, "--output", tmp_path / "out") == 3
    assert "Input/output error" in capsys.readouterr().err


def test_a_full_disk_loses_nothing(
    tmp_path: Path, run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full at each of the run's first writes in turn; each time the run continues."""
    import contextlib

    whole = LocalStorage.write
    left = [0]

    @contextlib.contextmanager
    def failing(self: LocalStorage, path: str) -> Iterator[Any]:
        with whole(self, path) as file:
            left[0] -= 1
            if left[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            yield file

    with monkeypatch.context() as full:
        full.setattr(LocalStorage, "write", failing)
        for room in range(12):
            left[0] = room
            code = run("--output", tmp_path / "out")
            if code == 0:
                break
            said = capsys.readouterr().err
            assert "No space left" in said or "the disk is full" in said
            assert not (tmp_path / "out" / "manifest.json").exists()
    assert run("--output", tmp_path / "out") == 0
    assert run("--output", tmp_path / "fresh") == 0
    assert published_digests(tmp_path / "out") == published_digests(tmp_path / "fresh")


def test_an_output_of_another_configuration(tmp_path: Path, run: Run, capsys: Capture) -> None:
    assert run("--output", tmp_path / "out") == 0
    before = published_digests(tmp_path / "out")
    assert run("--output", tmp_path / "out", "--min-abstract-words", 50) == 2
    said = capsys.readouterr().err
    assert "min_abstract_words was 0, now 50" in said
    assert "Choose another --output" in said
    assert published_digests(tmp_path / "out") == before


def test_an_output_of_another_version_of_the_tool(
    tmp_path: Path, run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--output", tmp_path / "out") == 0
    monkeypatch.setattr(shards_driver, "FORMAT", 999)
    assert run("--output", tmp_path / "out", "--languages", "eng") == 2
    said = capsys.readouterr().err
    assert "was written by another version of bioshards" in said
    assert "this is 999" in said
    assert "languages" not in said


def test_an_output_that_is_somebody_elses(tmp_path: Path, run: Run, capsys: Capture) -> None:
    (tmp_path / "thesis.tex").write_text("dear to its author")
    assert run("--output", tmp_path) == 2
    assert "thesis.tex" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_an_output_that_cannot_be_written(tmp_path: Path, run: Run, capsys: Capture) -> None:
    (tmp_path / "file").write_text("")
    assert run("--output", tmp_path / "file" / "out") == 2
    assert "cannot be written" in capsys.readouterr().err


def test_nothing_kept_is_no_success(tmp_path: Path, run: Run, capsys: Capture) -> None:
    assert run("--output", tmp_path / "out", "--min-pmid", 2_000_000_000) == 3
    assert "no document was kept (records: 112, " in capsys.readouterr().err
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--outptu", "x"], "unknown option --outptu (did you mean --output?)"),
        (["--output", "x", "--min-words", "5"], "did you mean --min-abstract-words?"),
        (["--output", "x", "--tmp_location=y"], "did you mean --temp_location?"),
        (["--output", "x", "--workers", "0"], "0 is below 1"),
        (["--output", "x", "--max-rejected", "5"], "5 is not between 0 and 1"),
        (["--output", "x", "--preset", "bert"], "invalid choice: 'bert'"),
        (["--output", "x", "stray"], "stray is no option"),
        (["--output", "x", "--out", "y"], "unknown option --out "),
        (["--output", "x", "--keep-title-only", "--no-titles"], "titles are left out"),
        ([], "--output DIR is missing"),
    ],
)
def test_a_wrong_command_line(
    words: list[str], message: str, run: Run, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*words) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_command_itself(capsys: Capture) -> None:
    assert cli.main(["list"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        "fetch",
        "pubmed_to_shards",
        "pmc_to_shards",
        "shards_to_words",
        "shards_to_pretraining",
    ]
    assert cli.main([]) == 2
    assert cli.main(["rum"]) == 2
    assert "did you mean run?" in capsys.readouterr().err
    assert cli.main(["run", "pubmed_shards"]) == 2
    assert "did you mean pubmed_to_shards?" in capsys.readouterr().err
    assert cli.main(["run", "pubmed_to_shards", "--help"]) == 0
    assert "--min-abstract-words WORDS" in capsys.readouterr().out


def test_list_and_help_wait_for_neither_beam_nor_extras() -> None:
    import subprocess
    import sys

    commands = [["list"], *(["run", name, "--help"] for name in PIPELINES)]
    code = (
        "import sys; from bioshards.pipelines import cli\n"
        f"for words in {commands!r}:\n"
        "    assert cli.main(words) == 0\n"
        "    assert not {'apache_beam', 'tokenizers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_job_service_that_is_not_there_is_named(
    run: Run, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import grpc

    from bioshards.pipelines import pubmed_to_shards

    def unanswered(*_: object) -> None:
        raise grpc.FutureTimeoutError

    monkeypatch.setattr(pubmed_to_shards, "build", unanswered)
    assert run("--output", tmp_path) == 1
    assert "Look at --job_endpoint" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "needs --job_endpoint=HOST:PORT"),
        (["--job_endpoint=localhost:1"], 1, "job service does not answer. Look at --job_endpoint"),
    ],
)
def test_a_job_service_is_looked_for_before_anything_begins(
    words: list[str],
    code: int,
    said: str,
    run: Run,
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(executor, "JOB_SERVICE_TIMEOUT_SECONDS", 1)
    assert run("--output", tmp_path / "out", "--runner=PortableRunner", *words) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("path", ["gs:/bucket/out", "gs:bucket/out", "s3:/bucket/out"])
def test_a_bucket_without_both_of_its_slashes_is_no_folder_of_this_machine(
    path: str, run: Run, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("--output", path) == 2
    assert f"a bucket is {path[:2]}://BUCKET/FOLDER" in capsys.readouterr().err
    assert run("--output", "out", "--input", path) == 2
    assert cli.main(["copy", "out", path]) == 2
    assert not list(tmp_path.iterdir())


def test_a_failure_in_a_worker_process_is_told_in_a_line(tmp_path: Path, run: Run) -> None:
    """Not Beam's pages of traceback: the folder of the staged files is a file, so writing fails."""
    output = tmp_path / "out"
    assert run("--output", output) == 0
    (output / "manifest.json").unlink()
    shutil.rmtree(output / ".bioshards" / "staged")
    (output / ".bioshards" / "staged").write_text("in the way")
    done = run_beam("run", "pubmed_to_shards", "--workers", 2, "--output", output)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "the run failed: " in done.stderr


def test_a_failure_is_told_where_its_log_cannot_be_written(tmp_path: Path, run: Run) -> None:
    """The disk is full: a worker that cannot say what it failed of to its log must still end the run."""
    work = tmp_path / "out" / ".bioshards"
    assert run("--output", work.parent) == 0
    (work.parent / "manifest.json").unlink()
    (work / "error.log").symlink_to("/dev/full")
    shutil.rmtree(work / "staged")
    (work / "staged").write_text("in the way")
    done = run_beam("run", "pubmed_to_shards", "--workers", 2, "--output", work.parent)
    assert done.returncode == 1
    assert "the run failed: " in done.stderr
