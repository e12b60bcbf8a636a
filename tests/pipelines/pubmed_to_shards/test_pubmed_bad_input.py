"""Tests of ``beam run pubmed_to_shards`` on bad input and options: messages, exit codes, recovery."""

from __future__ import annotations

import base64
import errno
import gzip
import hashlib
import io
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import pytest

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import shards
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml, write_pubmed_files
from tests.support.fork_server import run_beam
from tests.support.outputs import load_documents, load_manifest, published_digests

pytestmark = pytest.mark.thorough  # this file takes minutes

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]

GOOD = pubmed_set_xml(citation_xml(1), citation_xml(2))
ENTITY_BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE PubmedArticleSet [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
""" + GOOD.split(b"\n", 1)[1].replace(b"One", b"&b;")
EXTERNAL_ENTITY = ENTITY_BOMB.replace(b'"aaaaaaaaaa"', b'SYSTEM "file:///etc/passwd"')

BAD_FILES = {
    "not-xml": (b"PMID- 1\nTI  - not XML\n", "does not begin as XML does"),
    "not-xml-html": (b"<!DOCTYPE html>\n<html><body>503</body></html>", "its root is <html>"),
    "truncated-gzip": (gzip.compress(GOOD)[:-12], "ends before its end mark"),
    "corrupt-gzip": (gzip.compress(GOOD)[:-6] + b"\0\1\2\3\4\5", "damaged"),
    "truncated-xml": (GOOD[:-30], "ends before </PubmedArticleSet>"),
    "wrong-root": (b"<articles><article/></articles>", "its root is <articles>"),
    "entity-bomb": (ENTITY_BOMB, "declarations of its own"),
    "external-entity": (EXTERNAL_ENTITY, "declarations of its own"),
    "empty": (b"", "has no bytes"),
    "text-between-records": (GOOD.replace(b"<PubmedArticle>", b"stray<PubmedArticle>", 1), "text between"),
}


def test_bad_files_are_named_and_fail_the_run_at_its_end(tmp_path: Path, run: Run, capsys: Capture) -> None:
    inputs, output = tmp_path / "in", tmp_path / "out"
    write_pubmed_files(inputs, GOOD, *(data for data, _ in BAD_FILES.values()))
    messages = {
        str(inputs / f"pubmed26n{number:04d}.xml"): message
        for number, (_, message) in enumerate(BAD_FILES.values(), 2)
    }
    first = min(messages)
    assert run("--input", inputs, "--output", output) == 3
    stderr = capsys.readouterr().err
    assert first in stderr
    assert "--max-bad-files" in stderr
    assert not (output / "manifest.json").exists()
    entries = (output / "rejected" / "files.jsonl").read_text()
    details = {entry["file"]: entry["detail"] for entry in map(json.loads, entries.splitlines())}
    assert details.keys() == messages.keys()
    assert [path for path, message in messages.items() if message not in details[path]] == []
    assert "root:" not in stderr + entries  # no content of /etc/passwd

    # --max-rejected is for records: it allows no bad file.
    assert run("--input", inputs, "--output", output, "--max-rejected", 1) == 3
    # With a higher --max-bad-files the run succeeds and lists the bad files.
    capsys.readouterr()
    assert run("--input", inputs, "--output", output, "--max-bad-files", 1) == 0
    stderr = capsys.readouterr().err
    assert f"bad file: {first}: {details[first]}" in stderr
    assert set(load_documents(output)) == {"pubmed:1", "pubmed:2"}
    assert [entry["path"] for entry in load_manifest(output)["bad_files"]] == sorted(messages)

    # With the files repaired, the same command gives the output of a run from scratch.
    for number, path in enumerate(messages, 3):
        Path(path).write_bytes(pubmed_set_xml(citation_xml(number)))
    assert run("--input", inputs, "--output", output) == 0
    assert run("--input", inputs, "--output", tmp_path / "fresh") == 0
    assert published_digests(output) == published_digests(tmp_path / "fresh")


def test_a_bad_file_is_the_message_if_there_is_no_other(tmp_path: Path, run: Run, capsys: Capture) -> None:
    bad_path = tmp_path / "pubmed26n0001.xml"
    bad_path.write_bytes(GOOD[:-30])
    assert run("--input", tmp_path, "--output", tmp_path / "out", "--max-bad-files", 1) == 3
    stderr = capsys.readouterr().err
    assert f"beam: the only file cannot be used ({bad_path}: ends before </PubmedArticleSet>" in stderr
    assert "no document was kept" not in stderr

    (tmp_path / "pubmed26n0002.xml").write_bytes(pubmed_set_xml(deleted=(1,)))
    assert run("--input", tmp_path, "--output", tmp_path / "out", "--max-bad-files", 1) == 3
    stderr = capsys.readouterr().err
    assert f"1 of 2 files cannot be used ({bad_path}: ends before </PubmedArticleSet>" in stderr
    assert "no document was kept" in stderr


def test_limits_of_bad_files_and_bad_records_are_separate(tmp_path: Path, run: Run, capsys: Capture) -> None:
    bad_record = b"<Surprise>text</Surprise></PubmedArticleSet>"
    write_pubmed_files(tmp_path, GOOD[:-30], GOOD.replace(b"</PubmedArticleSet>", bad_record))
    arguments = ("--input", tmp_path, "--output", tmp_path / "out")
    assert run(*arguments, "--max-bad-files", 0.5, "--max-rejected", 0) == 3
    stderr = capsys.readouterr().err
    assert "1 of 3 records were rejected (unexpected-element: 1) and are kept in" in stderr
    assert "More than --max-rejected 0 allows" in stderr
    assert f"bad file: {tmp_path}/pubmed26n0001.xml: ends before" in stderr
    assert run(*arguments, "--max-rejected", 0.5) == 3
    assert "1 of 2 files cannot be used" in capsys.readouterr().err
    assert run(*arguments, "--max-rejected", 0.5, "--max-bad-files", 0.5) == 0


@pytest.mark.parametrize(("bad", "good", "exit_code"), [(5, 2, 0), (6, 2, 3), (6, 5994, 0)])
def test_up_to_five_rejected_records_do_not_end_a_run(
    bad: int, good: int, exit_code: int, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    records = [citation_xml(number) for number in range(1, good + 1)] + ["<Surprise/>"] * bad
    source, output = tmp_path / "pubmed26n0001.xml", tmp_path / "out"
    source.write_bytes(pubmed_set_xml(*records))
    assert run("--input", source, "--output", output) == exit_code
    stderr = capsys.readouterr().err
    [path] = (output / "rejected").iterdir()
    first = f"({source.name}, record {good}: "
    assert f"{bad} of {bad + good:,} records were rejected (unexpected-element: {bad})" in stderr
    assert f"and are kept in {path} {first}" in stderr


def test_names_of_bad_files_are_printed_on_one_line(tmp_path: Path, run: Run, capsys: Capture) -> None:
    (tmp_path / "pubmed26n0001.xml").write_bytes(GOOD)
    (tmp_path / "a\nb\x1b[31m.xml").write_bytes(b"")
    arguments = ("--input", tmp_path, "--output", tmp_path / "out", "--max-bad-files", 0.5)
    assert run(*arguments) == 0
    assert f"bad file: {tmp_path}/a\\nb\\x1b[31m.xml: the file has no bytes\n" in capsys.readouterr().err


def test_notices_on_the_inputs_come_before_the_work(tmp_path: Path, run: Run, capsys: Capture) -> None:
    inputs, output = tmp_path / "in", tmp_path / "out"
    write_pubmed_files(inputs, *(pubmed_set_xml(citation_xml(number)) for number in (1, 2, 3, 4)))
    assert run("--input", inputs, "--output", output) == 0
    assert "notice" not in capsys.readouterr().err
    (inputs / "pubmed26n0002.xml").unlink()
    (inputs / "pubmed26n0004.xml").unlink()
    (inputs / "pubmed26n0004.xml.part").write_bytes(b"")
    (inputs / "pubmed26n0005.xml").write_bytes(pubmed_set_xml(citation_xml(5)))
    assert run("--input", inputs, "--output", output, "--dry-run") == 0
    notices = [line for line in capsys.readouterr().out.splitlines() if line.startswith("notice: ")]
    assert [notice.partition(": ")[2].partition(":")[0] for notice in notices] == [
        "--input " + str(inputs),
        "The inputs have no pubmed26n0002, pubmed26n0004",
        f"2 files that an earlier run into {output} has read are not among the inputs",
    ]
    before = published_digests(output)
    assert run("--input", inputs, "--output", output) == 2
    assert "beam: 2 files that an earlier run" in (stderr := capsys.readouterr().err)
    assert "Give all inputs, choose another --output, or add --allow-fewer-inputs" in stderr
    assert published_digests(output) == before
    (output / "manifest.json").write_bytes(b"damaged")
    assert run("--input", inputs, "--output", output) == 2
    assert "beam: 2 files that an earlier run" in capsys.readouterr().err
    assert run("--input", inputs, "--output", output, "--allow-fewer-inputs") == 0
    assert capsys.readouterr().err.splitlines()[: len(notices)] == notices
    assert load_manifest(output)["run"]["notices"] == [notice.removeprefix("notice: ") for notice in notices]
    assert set(load_documents(output)) == {"pubmed:1", "pubmed:3", "pubmed:5"}


JOURNAL_MESSAGE = "--journals letters on nothin matches no record (did you mean Letters on Nothing?)"


@pytest.mark.parametrize(
    ("options", "exit_code", "messages"),
    [
        (("--journals", "Letters on Nothin;Letters on Nothing"), 0, [JOURNAL_MESSAGE]),
        (("--journals", "Letters on Nothing;Gulls"), 0, ["--journals gulls matches no record"]),
        (("--mesh", "Hemels"), 3, ["--mesh hemels matches no record (did you mean Humans?)"]),
        (("--journals", "Letters on Nothing", "--mesh", "Humans"), 0, []),
    ],
)
def test_names_of_filters_that_match_no_record_are_named_with_the_nearest(
    options: tuple[str, ...], exit_code: int, messages: list[str], tmp_path: Path, run: Run, capsys: Capture
) -> None:
    humans = "<MeshHeadingList><MeshHeading><DescriptorName>Humans</DescriptorName></MeshHeading>"
    record = citation_xml(1).replace("</Article>", f"</Article>{humans}</MeshHeadingList>")
    record = record.replace("</Journal>", "<Title>Letters on Nothing</Title></Journal>")
    # A name is to match in one of the files.
    write_pubmed_files(tmp_path, pubmed_set_xml(record), pubmed_set_xml(citation_xml(2)))
    assert run("--input", tmp_path, "--output", tmp_path / "out", *options) == exit_code
    stderr = capsys.readouterr().err
    assert [message for message in messages if message not in stderr] == []
    assert ("matches no record" in stderr) == bool(messages)


def test_full_text_as_input_is_refused_before_the_work(tmp_path: Path, run: Run, capsys: Capture) -> None:
    (tmp_path / "a.xml").write_text('<?xml version="1.0"?><article/>')
    assert run("--input", tmp_path, "--output", tmp_path / "out") == 2
    message = f"{tmp_path}/a.xml has the root <article>; this is full text, JATS XML: beam run pmc_to_shards"
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


BAD_RECORDS = {
    "no-pmid": citation_xml(7).replace('<PMID Version="1">7</PMID>', ""),
    "bad-pmid": citation_xml(7).replace(">7<", ">7-a<"),
    "invalid-utf-8": citation_xml(7).replace("Another", "An\udcfftwo"),
    "malformed-xml": citation_xml(7).replace("</ArticleTitle>", ""),
    "unknown-entity": citation_xml(7, "Rates of &alfa;-helix. Another."),
    "unexpected-element": "<Surprise>text</Surprise>",
}


def test_bad_records_are_rejected_and_the_others_are_used(tmp_path: Path, run: Run, capsys: Capture) -> None:
    raw_records = {name: xml.encode("utf-8", "surrogateescape") for name, xml in BAD_RECORDS.items()}
    source = tmp_path / "pubmed26n0001.xml"
    end = b"</PubmedArticleSet>"
    source.write_bytes(GOOD.replace(end, b"".join(raw_records.values()) + end))
    assert run("--input", source, "--output", tmp_path / "out", "--max-rejected", 0) == 3
    stderr = capsys.readouterr().err
    assert "6 of 8 records were rejected (" in stderr
    assert all(f"{case}: 1" in stderr for case in BAD_RECORDS)
    assert run("--input", source, "--output", tmp_path / "out", "--max-rejected", 1) == 0
    assert set(load_documents(tmp_path / "out")) == {"pubmed:1", "pubmed:2"}
    funnel = load_manifest(tmp_path / "out")["funnel"]
    assert {f"rejected: {case}": 1 for case in BAD_RECORDS}.items() <= funnel.items()
    [rejects_path] = (tmp_path / "out" / "rejected").glob("*.jsonl")
    entries = [json.loads(line) for line in rejects_path.read_text().splitlines()]
    assert [(entry["file"], entry["position"], entry["reason"]) for entry in entries] == [
        (source.name, position, case) for position, case in enumerate(BAD_RECORDS, 2)
    ]
    for entry in entries:
        raw = base64.b64decode(entry["raw_base64"]) if "raw_base64" in entry else entry["raw"].encode()
        assert raw == raw_records[entry["reason"]]


def test_md5_mismatch_is_reported_with_the_file(tmp_path: Path, run: Run, capsys: Capture) -> None:
    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(GOOD)
    sidecar = tmp_path / "pubmed26n0001.xml.md5"
    sidecar.write_text("MD5(pubmed26n0001.xml)= 00000000000000000000000000000000\n")
    assert run("--input", source, "--output", tmp_path / "out") == 3
    assert "download it again" in capsys.readouterr().err
    sidecar.write_text(f"MD5(pubmed26n0001.xml)= {hashlib.md5(GOOD).hexdigest()}\n")
    assert run("--input", source, "--output", tmp_path / "out") == 0


@pytest.mark.parametrize(
    ("input_name", "message"),
    [
        ("nowhere", "names no file"),
        ("no*where.xml", "names no file"),
        ("empty-folder", "has no *.xml or *.xml.gz file"),
    ],
)
def test_missing_input_is_refused(
    input_name: str, message: str, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    (tmp_path / "empty-folder").mkdir()
    (tmp_path / "empty-folder" / "README.txt").write_text("no XML here")
    assert run("--input", tmp_path / input_name, "--output", tmp_path / "out") == 2
    stderr = capsys.readouterr().err
    assert message in stderr
    assert input_name in stderr
    assert not (tmp_path / "out").exists()


class FailingFile(io.BytesIO):
    """A file on a disk that fails."""

    def read(self, size: int | None = -1) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))


@pytest.mark.parametrize("message", ["Permission denied", "Input/output error"])
def test_file_that_cannot_be_read_is_reported(
    message: str, tmp_path: Path, run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(GOOD)
    original_open = LocalStorage.open

    def open_or_fail(self: LocalStorage, path: str) -> BinaryIO:
        if path != str(source):
            return original_open(self, path)
        if message == "Permission denied":
            raise PermissionError(errno.EACCES, message, path)
        return FailingFile()

    monkeypatch.setattr(LocalStorage, "open", open_or_fail)
    assert run("--input", source, "--output", tmp_path / "out") == 3
    stderr = capsys.readouterr().err
    assert str(source) in stderr
    assert message in stderr


def test_output_of_another_format_version_is_refused(
    tmp_path: Path, run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("--output", tmp_path / "out") == 0
    monkeypatch.setattr(shards, "FORMAT", 999)
    assert run("--output", tmp_path / "out", "--languages", "eng") == 2
    stderr = capsys.readouterr().err
    assert "was written by another version of bioshards" in stderr
    assert "this is 999" in stderr
    assert "languages" not in stderr


def test_run_that_keeps_no_document_fails(tmp_path: Path, run: Run, capsys: Capture) -> None:
    assert run("--output", tmp_path / "out", "--min-pmid", 2_000_000_000) == 3
    assert "no document was kept (records: 112, " in capsys.readouterr().err
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--output", "x", "--tmp_location=y"], "did you mean --temp_location?"),
        (["--output", "x", "--max-rejected", "5"], "5 is not between 0 and 1"),
        (["--output", "x", "stray"], "stray is no option"),
        (["--output", "x", "--keep-title-only", "--no-titles"], "titles are left out"),
        (["--output", "x", "--dry-run", "--languages", "germn"], "did you mean ger (German)?"),
        (
            ["--output", "x", "--mesh", "branch:Sleep"],
            "branch:sleep needs the tree of MeSH: --mesh-tree FILE",
        ),
        (["--output", "x", "--mesh-tree", "tree"], "--mesh-tree tree: there is no such file"),
        (["--output", "x", "--mesh-tree", "ids"], "--mesh-tree: ids, line 1 is no line of a MeSH tree"),
        (
            ["--output", "x", "--drop-mesh", "branch:Slepe", "--mesh-tree", "mtrees.bin"],
            "--mesh-tree mtrees.bin: slepe is neither a descriptor nor a number of the tree of MeSH (did you "
            "mean Sleep?)",
        ),
        ([], "--output DIR is missing"),
    ],
)
def test_wrong_command_line_is_refused(
    arguments: list[str],
    message: str,
    run: Run,
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ids").write_text("1\n")
    (tmp_path / "mtrees.bin").write_text("Sleep;F02\n")
    assert run(*arguments) == 2
    assert message in capsys.readouterr().err
    assert {path.name for path in tmp_path.iterdir()} == {"ids", "mtrees.bin"}


def test_values_of_any_spelling_are_one_configuration(tmp_path: Path, run: Run, capsys: Capture) -> None:
    output = ("--output", tmp_path / "out")
    types = "published erratum,Clinical Trial, Phase I,Erratum"
    assert run(*output, "--languages", "EN,ger", "--drop-publication-types", types, "--dry-run") == 0
    assert "notice: --drop-publication-types: Erratum is no publication type" in capsys.readouterr().out
    assert run(*output, "--languages", "EN,ger", "--drop-publication-types", types) == 0
    assert "notice: --drop-publication-types: Erratum is no publication type" in capsys.readouterr().err
    config = load_manifest(tmp_path / "out")["config"]["document_config"]
    assert config["languages"] == ["eng", "ger"]
    assert config["drop_publication_types"] == ["Clinical Trial, Phase I", "Erratum", "Published Erratum"]
    types = "Erratum,PUBLISHED ERRATUM,clinical trial,phase i"
    assert run(*output, "--languages", "deu,eng", "--drop-publication-types", types) == 0
    assert "nothing to do" in capsys.readouterr().out


@pytest.mark.parametrize("path", ["gs:/bucket/out", "gs:bucket/out", "s3:/bucket/out"])
def test_bucket_url_with_a_missing_slash_is_refused(
    path: str, run: Run, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("--output", path) == 2
    assert f"a bucket is {path[:2]}://BUCKET/FOLDER" in capsys.readouterr().err
    assert run("--output", "out", "--input", path) == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("has_log", [True, False])
def test_worker_failure_is_reported_in_one_line(has_log: bool, tmp_path: Path, run: Run) -> None:
    """The folder of staged files is replaced by a file; without a log, the disk of the log is full."""
    work_folder = tmp_path / "out" / ".bioshards"
    assert run("--output", work_folder.parent) == 0
    (work_folder.parent / "manifest.json").unlink()
    if not has_log:
        (work_folder / "workers.log").symlink_to("/dev/full")
    shutil.rmtree(work_folder / "staged")
    (work_folder / "staged").write_text("in the way")
    completed = run_beam("run", "pubmed_to_shards", "--workers", 2, "--output", work_folder.parent)
    assert completed.returncode == 1
    if has_log:
        (error,) = [line for line in completed.stderr.splitlines() if not line.startswith("staging")]
        assert error.startswith("beam: the run failed: ")
    assert "the run failed: " in completed.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--s3_endpoint_url=https://user:hunter2@store.example.org",),
        ("--input", "HTTPS://user:hunter2@example.org/files"),
        ("--output=gs://:hunter2@bucket/out",),
        ("--pubmed-url", "http://user:hunter2@example.org/"),
    ],
)
def test_password_in_an_address_is_refused(
    run: Run, tmp_path: Path, capsys: Capture, words: tuple[str, ...]
) -> None:
    assert run("--output", tmp_path / "out", *words) == 2
    error = capsys.readouterr().err
    assert "has an address with a user's name or password, which manifests and reports would show" in error
    assert "--s3_secret_access_key, the environment or ~/.aws/credentials" in error
    assert "hunter2" not in error
    assert not (tmp_path / "out").exists()
