"""Tests of ``beam run pmc_to_shards`` on bad input and outputs: messages, exit codes, recovery."""

from __future__ import annotations

import gzip
import io
import json
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.corpus.jats_articles import (
    article_xml,
    europepmc_package_xml,
    tar_articles,
    write_files,
    zip_articles,
)
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.outputs import load_documents, load_manifest, published_digests

pytestmark = pytest.mark.thorough  # this file takes minutes

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]

GOOD_ARTICLES = {"PMC11.xml": article_xml(11), "PMC12.xml": article_xml(12)}
PACKAGE = gzip.compress(europepmc_package_xml([article_xml(31), article_xml(32)]).encode(), mtime=0)
ARCHIVE_MEMBERS = {"PMC31.xml": article_xml(31), "PMC32.xml": article_xml(32)}

BAD_CONTAINERS = {
    "PMC31_PMC40.xml.gz": (PACKAGE[:-20], "ends before its end mark"),
    "PMC31_PMC40.xml": (europepmc_package_xml([article_xml(31)])[:-4].encode(), "ends before </articles>"),
    "a.zip": (zip_articles(ARCHIVE_MEMBERS)[:-30], "directory, at its end, is missing"),
    "a.tar.gz": (tar_articles(ARCHIVE_MEMBERS)[:-40], "ends before"),
    "b.zip": (b"<html>Not found</html>", "does not begin as a zip archive does"),
}


def test_bad_containers_are_named_and_nothing_of_them_is_used(
    tmp_path: Path, run_pmc: Run, capsys: Capture
) -> None:
    files = {name: data for name, (data, _) in BAD_CONTAINERS.items()}
    inputs, output = write_files(tmp_path / "in", {**GOOD_ARTICLES, **files}), tmp_path / "out"
    assert run_pmc("--input", inputs, "--output", output) == 3
    stderr = capsys.readouterr().err
    assert "5 of 6 files cannot be used (" in stderr
    assert "--max-bad-files" in stderr
    assert not (output / "manifest.json").exists()
    entries = [json.loads(line) for line in (output / "rejected/files.jsonl").read_text().splitlines()]
    details = {entry["file"]: entry["detail"] for entry in entries}
    assert details.keys() == {str(inputs / name) for name in BAD_CONTAINERS}
    assert all(message in details[str(inputs / name)] for name, (_, message) in BAD_CONTAINERS.items())
    assert run_pmc("--input", inputs, "--output", output, "--max-bad-files", 1) == 0
    assert f"bad file: {inputs / 'a.zip'}: " in capsys.readouterr().err
    assert list(load_documents(output)) == ["pmc:PMC11.1", "pmc:PMC12.1"]
    assert {entry["path"] for entry in load_manifest(output)["bad_files"]} == details.keys()


def test_files_that_declare_a_wrong_encoding_are_counted(
    tmp_path: Path, run_pmc: Run, capsys: Capture
) -> None:
    article = '<?xml version="1.0" encoding="ISO-8859-1"?>' + article_xml(13, "Naïve α-cells sleep.")
    inputs = write_files(tmp_path / "in", {**GOOD_ARTICLES, "PMC13.xml": article})
    assert run_pmc("--input", inputs, "--output", tmp_path / "out") == 0
    warning = (
        "1 files declare a single-byte encoding, but are in UTF-8, and were read as UTF-8: in PMC0000xxxx"
    )
    assert warning in capsys.readouterr().err
    assert load_manifest(tmp_path / "out")["warnings"] == [warning]
    assert "Naïve α-cells sleep." in load_documents(tmp_path / "out")["pmc:PMC13.1"]["sentences"]


BAD_ARTICLES: dict[str, tuple[str, str | bytes]] = {
    "PMC13.xml": ("malformed-xml", article_xml(13, "<i>One.")[:-9] + "</article>"),
    "PMC14.xml": ("truncated-xml", article_xml(14)[:-30]),
    "PMC15.xml": ("unknown-entity", article_xml(15, "One &nosuch; two.")),
    "PMC16.xml": ("no-id", article_xml(None)),
    "PMC17.xml": ("not-xml", b"PMC17\n"),
    "PMC18.xml": ("wrong-root", pubmed_set_xml(citation_xml(1))),
}


def test_bad_articles_are_rejected_and_the_others_are_used(
    tmp_path: Path, run_pmc: Run, capsys: Capture
) -> None:
    files = {name: xml for name, (_, xml) in BAD_ARTICLES.items()}
    inputs = write_files(tmp_path / "in", {**GOOD_ARTICLES, **files})
    assert run_pmc("--input", inputs, "--output", tmp_path / "out", "--max-rejected", 0) == 3
    stderr = capsys.readouterr().err
    assert "6 of 8 records were rejected (" in stderr
    assert "PMC13.xml, record 2: " in stderr
    assert run_pmc("--input", inputs, "--output", tmp_path / "out", "--max-rejected", 1) == 0
    assert list(load_documents(tmp_path / "out")) == ["pmc:PMC11.1", "pmc:PMC12.1"]
    funnel = load_manifest(tmp_path / "out")["funnel"]
    assert {f"rejected: {case}": 1 for case, _ in BAD_ARTICLES.values()}.items() <= funnel.items()
    [rejects_path] = (tmp_path / "out/rejected").glob("*.jsonl")
    entries = [json.loads(line) for line in rejects_path.read_text().splitlines()]
    reasons = {Path(entry["file"]).name: entry["reason"] for entry in entries}
    assert reasons == {name: case for name, (case, _) in BAD_ARTICLES.items()}
    # With the articles repaired, the same command gives the output of a run from scratch.
    write_files(inputs, {f"PMC{number}.xml": article_xml(number) for number in range(13, 19)})
    assert run_pmc("--input", inputs, "--output", tmp_path / "out") == 0
    assert run_pmc("--input", inputs, "--output", tmp_path / "fresh") == 0
    assert published_digests(tmp_path / "out") == published_digests(tmp_path / "fresh")


def test_pubmed_files_as_input_are_refused(tmp_path: Path, run_pmc: Run, capsys: Capture) -> None:
    inputs = write_files(
        tmp_path / "in", {"pubmed26n0001.xml.gz": gzip.compress(pubmed_set_xml(citation_xml(1)))}
    )
    assert run_pmc("--input", inputs, "--output", tmp_path / "out") == 2
    assert "PubMed's files are read by pubmed_to_shards" in capsys.readouterr().err
    (inputs / "pubmed26n0001.xml.gz").rename(inputs / "abstracts.xml.gz")
    assert run_pmc("--input", inputs, "--output", tmp_path / "out") == 2
    message = "has the root <PubmedArticleSet>; this is PubMed XML: beam run pubmed_to_shards reads it"
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_hostile_archive_members_are_rejected(tmp_path: Path, run_pmc: Run, capsys: Capture) -> None:
    hostile = {
        "../../PMC31.xml": article_xml(31),
        "/etc/PMC32.xml": article_xml(32),
        "PMC33.xml": article_xml(33),
    }
    external = article_xml(34).replace("Nothing was measured.", "&x;")
    hostile["PMC34.xml"] = f'<!DOCTYPE article [<!ENTITY x SYSTEM "file:///etc/passwd">]>{external}'
    inputs = write_files(tmp_path / "in", {"a.tar.gz": tar_articles(hostile)})
    before = sorted(tmp_path.rglob("*"))
    assert run_pmc("--input", inputs, "--output", tmp_path / "out", "--max-rejected", 0.9) == 0
    assert list(load_documents(tmp_path / "out")) == ["pmc:PMC33.1"]
    funnel = load_manifest(tmp_path / "out")["funnel"]
    assert funnel["rejected: hostile-name"] == 2
    assert [
        path for path in sorted(tmp_path.rglob("*")) if tmp_path / "out" not in (path, *path.parents)
    ] == before
    for path in (tmp_path / "out").rglob("*"):
        assert not path.is_file() or b"root:" not in path.read_bytes()


def test_decompression_bomb_is_refused(tmp_path: Path, run_pmc: Run, capsys: Capture) -> None:
    data = gzip.compress(b"<articles>" + b" " * (300 << 20), 1)
    inputs = write_files(tmp_path / "in", {"PMC1_PMC20.xml.gz": data})
    assert run_pmc("--input", inputs, "--output", tmp_path / "out") == 3
    assert str(inputs / "PMC1_PMC20.xml.gz") in capsys.readouterr().err


@pytest.mark.parametrize(
    ("input_name", "message"),
    [
        ("nowhere", "names no full text"),
        ("no*where.xml", "names no full text"),
        ("empty-folder", "has no article, package or archive"),
    ],
)
def test_missing_input_is_refused(
    input_name: str, message: str, tmp_path: Path, run_pmc: Run, capsys: Capture
) -> None:
    write_files(tmp_path / "empty-folder", {"README.txt": "no XML here"})
    assert run_pmc("--input", tmp_path / input_name, "--output", tmp_path / "out") == 2
    stderr = capsys.readouterr().err
    assert message in stderr
    assert input_name in stderr
    assert "Give a folder, a file or a quoted glob" in stderr
    assert not (tmp_path / "out").exists()


def make_page(number: int, token: str) -> str:
    """Return an answer of OAI-PMH with one article."""
    record = f"<record><header/><metadata>{article_xml(number)}</metadata></record>"
    return f"<OAI-PMH><ListRecords>{record}<resumptionToken>{token}</resumptionToken></ListRecords></OAI-PMH>"


def test_a_page_of_a_longer_list_is_said_and_counted(tmp_path: Path, run_pmc: Run, capsys: Capture) -> None:
    pages = {"page1.xml": make_page(11, "a"), "page2.xml": make_page(12, "b"), "page3.xml": make_page(13, "")}
    inputs = write_files(tmp_path / "in", pages)
    (inputs / "pages.tar").write_bytes(
        tar_articles({"x.xml": make_page(14, "c"), "y.xml": make_page(15, "d")}, "w")
    )
    output = tmp_path / "out"
    assert run_pmc("--input", inputs, "--output", output) == 0
    [warning] = load_manifest(output)["warnings"]
    assert warning.startswith("4 files are pages of a longer list (OAI-PMH")
    assert warning.endswith(": in/page1.xml, in/page2.xml, pages.tar/x.xml, pages.tar/y.xml")
    assert f"warning: {warning}" in capsys.readouterr().err
    assert len(load_documents(output)) == 5


def write_tar(path: Path, members: dict[str, bytes], links: dict[str, bytes], folder: str) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for name, kind in {**links, folder: tarfile.DIRTYPE}.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "PMC11.nxml"
            archive.addfile(info)


def write_zip(path: Path, members: dict[str, bytes], links: dict[str, bytes], folder: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{folder}/", b"")
        for name, data in members.items():
            archive.writestr(name, data)
        for name in links:
            info = zipfile.ZipInfo(name)
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, b"PMC11.nxml")


@pytest.mark.parametrize(("name", "write"), [("a.tar.gz", write_tar), ("a.zip", write_zip)])
def test_every_entry_of_an_archive_has_a_row_in_the_funnel(
    name: str,
    write: Callable[[Path, dict[str, bytes], dict[str, bytes], str], None],
    tmp_path: Path,
    run_pmc: Run,
    capsys: Capture,
) -> None:
    answers = '<error id="1">not available</error><Reply Id="2" error="not available"/>'
    members = {
        "PMC11.nxml": article_xml(11).encode(),
        "PMC12.xml.gz": gzip.compress(article_xml(12).encode()),
        "PMC11.1/PMC11.nxml": article_xml(11).encode(),  # superseded
        "PMC13.nxml": article_xml(13, body="").encode(),  # dropped
        "answers.xml": f"<pmc-articleset>{article_xml(14)}{answers}</pmc-articleset>".encode(),
        "withdrawn.xml": b"<OAI-PMH><GetRecord><record><header status='deleted'><identifier>1</identifier>"
        b"</header></record></GetRecord></OAI-PMH>",
        "none.xml": b"<articles/>",
        "page.xml": b"<html/>",  # another file
        "empty.nxml": b"",
        "nested.tar.gz": b"any",
        "nested.zip": b"any",
        "paper.pdf": b"%PDF",
        "figure.jpg": b"any",
        "README": b"",
        "._PMC11.nxml": b"any",
        ".hidden.zip": b"any",
    }
    links = {"PMC15.nxml": tarfile.SYMTYPE, "PMC16.nxml": tarfile.LNKTYPE, "figure.png": tarfile.SYMTYPE}
    inputs = tmp_path / "in"
    inputs.mkdir()
    write(inputs / name, members, links, "folder")
    assert run_pmc("--input", inputs, "--output", tmp_path / "out", "--max-rejected", 1) == 0
    funnel = load_manifest(tmp_path / "out")["funnel"]
    rejected = {"not-available": 3, "no-article": 1, "empty-file": 1}
    rejected |= {"nested-archive": 1, "not-an-archive": 1, "not-a-file": 2}
    skipped = {"directory": 1, "hidden file": 2, "link": 1, "other file": 4}
    assert funnel == {
        "records": 14,
        **{f"rejected: {reason}": count for reason, count in sorted(rejected.items())},
        "dropped: superseded": 1,
        "dropped: no-body": 1,
        "kept": 3,
        **{f"not read: {kind} of an archive": count for kind, count in skipped.items()},
    }
    answers_in_one_member = 2
    entries = len(members) + len(links) + 1
    assert sum(funnel.values()) - funnel["records"] == entries + answers_in_one_member
    output = capsys.readouterr().out
    assert all(reason in output for reason in funnel)
