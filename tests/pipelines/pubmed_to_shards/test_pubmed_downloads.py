"""The whole main job from a server: ``--input pubmed:`` through a stand-in that fails in every way it can.

What a run publishes must not depend on where its files came from or on what went wrong meanwhile, and the
server must never be asked for more than was promised.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bioshards.corpus.download import http_client
from bioshards.corpus.download.pubmed import MAX_CONNECTIONS, REQUESTS_PER_SECOND
from bioshards.corpus.errors import UsageError
from bioshards.corpus.storage.resumable_file import PARTIAL_PREFIX
from bioshards.corpus.storage.retry import RetryPolicy
from bioshards.pipelines import cli
from bioshards.pipelines.inputs import downloads
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.fork_server import kill_when, run_beam, start_beam
from tests.support.outputs import load_manifest, published_digests
from tests.support.paths import PUBMED_SAMPLE
from tests.support.real_data import DATA, needs_data
from tests.support.servers.fake_server import (
    ConnectionReset,
    CorruptByte,
    EndlessBody,
    FakeServer,
    FixedBody,
    FunctionCall,
    HtmlPage,
    NoResponse,
    NotFound,
    RangeIgnored,
    Redirect,
    Republication,
    ServiceUnavailable,
    SlowBody,
    Stall,
    TruncatedBody,
)
from tests.support.servers.server_faults import Fault
from tests.support.servers.server_pages import create_pubmed_server, publish_file

Run = Callable[..., int]
FIRST = "pubmed/baseline/pubmed26n0001.xml.gz"
SECOND = "pubmed/baseline/pubmed26n0002.xml.gz"
UPDATE = "pubmed/updatefiles/pubmed26n0003.xml.gz"


@pytest.fixture
def nlm(tmp_path: Path) -> Iterator[FakeServer]:
    """NLM's server with the sample as its baseline and update files."""
    xml = {f"{path.name}.gz": path.read_bytes() for path in sorted(PUBMED_SAMPLE.glob("*.xml"))}
    first, second, update = xml
    create_pubmed_server(tmp_path / "nlm", {first: xml[first], second: xml[second]}, {update: xml[update]})
    with FakeServer(tmp_path / "nlm") as server:
        yield server


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of a tenth of what is waited for a real server, for runs in this process."""
    patience = RetryPolicy(read_timeout=1, initial_backoff=0.1, max_backoff=1, max_attempts=5)
    monkeypatch.setattr(http_client.Server.__init__, "__defaults__", (patience,))
    monkeypatch.setattr(downloads, "INTERACTIVE_RETRY_POLICY", patience)


def options(server: FakeServer, output: Path, *more: object) -> list[object]:
    return ["--input", "pubmed:", "--pubmed-url", f"{server.url}pubmed/", "--output", output, *more]


def published(output: Path) -> dict[str, str]:
    """What a run publishes, but for the manifest, which says where the files came from."""
    found = published_digests(output)
    del found["manifest.json"]
    return found


def local_run(server: FakeServer, output: Path) -> dict[str, str]:
    """What a run on the server's own folder publishes."""
    words = ["--workers", 1, "--input", server.root, "--output", output]
    assert cli.main(["run", "pubmed_to_shards", *map(str, words)]) == 0
    return published(output)


def test_a_run_from_the_server_equals_a_local_one(nlm: FakeServer, tmp_path: Path, run: Run) -> None:
    assert run(*options(nlm, tmp_path / "out")) == 0
    assert published(tmp_path / "out") == local_run(nlm, tmp_path / "local")
    here, there = load_manifest(tmp_path / "out"), load_manifest(tmp_path / "local")
    assert here["funnel"] == there["funnel"]
    assert [item["md5"] for item in here["inputs"]] == [item["md5"] for item in there["inputs"]]


def test_the_manifest_says_when_files_were_fetched_and_which_is_the_newest(
    nlm: FakeServer, tmp_path: Path, run: Run
) -> None:
    assert run(*options(nlm, tmp_path / "out")) == 0
    made = load_manifest(tmp_path / "out")
    assert made["newest_file"] == "pubmed26n0003.xml.gz"
    assert "National Library of Medicine" in made["notice"]
    retrieved = made["run"]["retrieved_at"]
    assert set(retrieved["files"]) == {f"pubmed26n000{n}.xml.gz" for n in (1, 2, 3)}
    for date in (made["run"]["listed_at"], retrieved["first"], retrieved["last"]):
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", date)


ALL_AT_ONCE: list[tuple[str, Fault]] = [
    ("pubmed/baseline/", ServiceUnavailable()),
    ("pubmed/updatefiles/", HtmlPage("<html>We are down for maintenance</html>")),
    ("pubmed/baseline/", TruncatedBody(300)),
    (f"{FIRST}.md5", HtmlPage("<html>Too busy</html>")),
    (FIRST, ServiceUnavailable("1")),
    (FIRST, ConnectionReset(5000)),
    (FIRST, TruncatedBody(20_000)),
    (FIRST, RangeIgnored()),
    (f"{SECOND}.md5", FixedBody(b"MD5(pubmed26n0002.xml.gz)= 00000000000000000000000000000000\n")),
    (SECOND, CorruptByte(3000)),
    (SECOND, Stall(2000, 5)),
    (UPDATE, NoResponse()),
    (UPDATE, HtmlPage("<html>An error, with the status of success</html>")),
    (UPDATE, SlowBody(500)),
    (f"{UPDATE}.md5", ServiceUnavailable(status=500)),
]


@pytest.mark.parametrize("seed", [1, 2])
def test_every_fault_at_once_leaves_the_result_as_it_is(
    nlm: FakeServer, tmp_path: Path, run: Run, seed: int
) -> None:
    faults = random.Random(seed).sample(ALL_AT_ONCE, len(ALL_AT_ONCE))
    for path, fault in faults:
        nlm.schedule_fault(path, fault)
    assert run(*options(nlm, tmp_path / "out")) == 0
    assert len(nlm.pending_faults) <= 3, "a file that has come whole is not asked for again"
    assert published(tmp_path / "out") == local_run(nlm, tmp_path / "local")
    assert nlm.max_open_connections <= MAX_CONNECTIONS
    assert nlm.max_requests_per_second() <= REQUESTS_PER_SECOND + 1


def many_files(folder: Path, count: int, records: int = 30) -> None:
    """A baseline of so many files of distinct citations."""
    create_pubmed_server(
        folder,
        {
            f"pubmed26n{number:04d}.xml.gz": pubmed_set_xml(
                *(
                    citation_xml(1000 * number + n, f"Result {number}-{n} was seen. {os.urandom(400).hex()}.")
                    for n in range(records)
                )
            )
            for number in range(1, count + 1)
        },
        {},
    )


def test_no_more_connections_and_requests_than_promised_whatever_the_workers(tmp_path: Path) -> None:
    many_files(tmp_path / "nlm", 16)
    with FakeServer(tmp_path / "nlm") as server:
        server.latency = 0.05
        done = run_beam("run", "pubmed_to_shards", "--workers", 5, *options(server, tmp_path / "out"))
        assert done.returncode == 0, done.stderr
        assert server.max_open_connections <= MAX_CONNECTIONS
        assert server.max_requests_per_second() <= REQUESTS_PER_SECOND + 1
        # Connections are kept: 16 files and their checksums are 32 requests.
        assert len(server.requests_for("*.gz*")) == 32
        assert server.connections < 16


def test_files_are_fetched_while_others_are_processed(tmp_path: Path) -> None:
    many_files(tmp_path / "nlm", 6)
    with FakeServer(tmp_path / "nlm") as server:
        server.latency = 0.3
        process = start_beam("run", "pubmed_to_shards", "--workers", 1, *options(server, tmp_path / "out"))
        staged_when_fetched = []
        while process.is_alive():
            fetched = len(list((tmp_path / "mirror").rglob("*.xml.gz")))
            staged = len(list((tmp_path / "out").rglob("staged/*.json")))
            staged_when_fetched.append((fetched, staged))
            time.sleep(0.02)
        assert process.exitcode == 0
        assert any(staged > 0 and fetched < 6 for fetched, staged in staged_when_fetched)


def one_more_and_half_of_another(mirror: Path, held: int) -> bool:
    """Has the mirror one file more than it held, and a good part of another?"""
    for part in mirror.rglob(f"{PARTIAL_PREFIX}*"):
        with contextlib.suppress(FileNotFoundError):  # it is whole by now
            if part.stat().st_size > 100_000:
                return len(list(mirror.rglob("pubmed*.gz"))) > held
    return False


def test_killed_and_continued_no_verified_file_is_fetched_again(tmp_path: Path) -> None:
    many_files(tmp_path / "nlm", 8, records=400)
    mirror = tmp_path / "mirror"
    with FakeServer(tmp_path / "nlm") as server:
        server.bytes_per_second = 400_000
        for _ in range(4):
            held = {path.name for path in mirror.rglob("pubmed*.gz")}
            before = len(server.requests)
            process = start_beam(
                "run", "pubmed_to_shards", "--workers", 2, *options(server, tmp_path / "out")
            )
            kill_when(process, functools.partial(one_more_and_half_of_another, mirror, len(held)))
            again = [
                asked.path for asked in server.requests[before:] if asked.path.rpartition("/")[2] in held
            ]
            assert again == []
        server.bytes_per_second = None
        done = run_beam("run", "pubmed_to_shards", *options(server, tmp_path / "out"))
        assert done.returncode == 0, done.stderr
        assert len([asked for asked in server.requests_for("*.gz") if asked.range]) >= 3, (
            "parts are gone on with"
        )
        assert published(tmp_path / "out") == local_run(server, tmp_path / "local")


def test_a_file_that_is_wrong_for_ever_is_named_and_the_rest_is_processed(
    nlm: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    nlm.schedule_fault(SECOND, CorruptByte(3000), times=None)
    assert run(*options(nlm, tmp_path / "out")) == 3
    said = capsys.readouterr().err
    assert "pubmed26n0002.xml.gz" in said
    assert "(read 3 times)" in said
    assert not (tmp_path / "out/manifest.json").exists()
    assert len(list((tmp_path / "out/.bioshards/staged").glob("*.json"))) == 2
    assert not list((tmp_path / "mirror").rglob("*0002*"))
    # Mended, the same command fetches that file only, and ends well.
    before = len(nlm.requests)
    nlm.clear_faults()
    assert run(*options(nlm, tmp_path / "out")) == 0
    assert {asked.path for asked in nlm.requests[before:] if asked.path.endswith(".gz")} == {SECOND}
    assert published(tmp_path / "out") == local_run(nlm, tmp_path / "local")


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (NotFound(), "is not there"),
        (Redirect("https://example.org/pubmed26n0002.xml.gz"), "another host"),
        (HtmlPage("<html>Come back later</html>"), "is not a gzip file"),
        (ServiceUnavailable(status=500), "500"),
    ],
)
def test_whatever_keeps_one_file_from_being_fetched(
    nlm: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str], fault: Fault, said: str
) -> None:
    nlm.schedule_fault(SECOND, fault, times=None)
    assert run(*options(nlm, tmp_path / "out")) == 3
    error = capsys.readouterr().err
    assert "pubmed26n0002.xml.gz" in error
    assert said in error
    assert not list((tmp_path / "mirror/pubmed").rglob("pubmed26n0002*"))
    assert len(list((tmp_path / "out/.bioshards/staged").glob("*.json"))) == 2


def test_a_republished_file_is_fetched_again(nlm: FakeServer, tmp_path: Path, run: Run) -> None:
    assert run(*options(nlm, tmp_path / "out")) == 0
    publish_file(
        nlm.root / UPDATE, pubmed_set_xml(citation_xml(90000001, "Said anew. In two sentences.")), md5=True
    )
    before = len(nlm.requests)
    assert run(*options(nlm, tmp_path / "out")) == 0
    assert [asked.path for asked in nlm.requests[before:] if asked.path.endswith(".gz")] == [UPDATE]
    assert published(tmp_path / "out") == local_run(nlm, tmp_path / "local")


def test_a_file_republished_between_its_checksum_and_its_bytes(
    nlm: FakeServer, tmp_path: Path, run: Run
) -> None:
    new = pubmed_set_xml(citation_xml(90000001, "Said anew. In two sentences."))
    nlm.schedule_fault(f"{UPDATE}.md5", Republication(UPDATE, new, md5=True))
    nlm.schedule_fault(SECOND, Republication(SECOND, new, md5=True))
    assert run(*options(nlm, tmp_path / "out")) == 0
    # The second file was replaced after its old bytes had been sent, and its old checksum fits these.
    assert run(*options(nlm, tmp_path / "out")) == 0
    assert published(tmp_path / "out") == local_run(nlm, tmp_path / "local")


def test_a_file_added_or_lost_while_the_run_goes_on(nlm: FakeServer, tmp_path: Path, run: Run) -> None:
    def change() -> None:
        publish_file(
            nlm.root / "pubmed/updatefiles/pubmed26n0004.xml.gz", pubmed_set_xml(citation_xml(1)), md5=True
        )

    nlm.schedule_fault(FIRST, FunctionCall(change))
    assert run(*options(nlm, tmp_path / "out")) == 0
    assert load_manifest(tmp_path / "out")["newest_file"] == "pubmed26n0003.xml.gz"
    assert run(*options(nlm, tmp_path / "out")) == 0
    assert load_manifest(tmp_path / "out")["newest_file"] == "pubmed26n0004.xml.gz"


def test_a_listing_that_has_lost_files_loses_nothing(
    nlm: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*options(nlm, tmp_path / "out")) == 0
    before = published(tmp_path / "out")
    for name in (UPDATE, f"{UPDATE}.md5"):
        (nlm.root / name).rename(tmp_path / Path(name).name)
    capsys.readouterr()
    assert run(*options(nlm, tmp_path / "out")) == 0
    assert published(tmp_path / "out") == before
    assert "The listing has no pubmed26n0003.xml.gz, which the mirror holds" in capsys.readouterr().err


def test_one_part_of_the_source_does_not_take_in_the_other_that_the_mirror_holds(
    nlm: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*options(nlm, tmp_path / "out")) == 0
    words = ["--pubmed-url", f"{nlm.url}pubmed/", "--mirror", tmp_path / "mirror", "--output"]
    capsys.readouterr()
    assert run("--input", "pubmed:updates", *words, tmp_path / "updates") == 0
    assert [item["file"] for item in load_manifest(tmp_path / "updates")["inputs"]] == [
        "pubmed26n0003.xml.gz"
    ]
    assert run("--input", "pubmed:baseline", *words, tmp_path / "baseline") == 0
    assert len(load_manifest(tmp_path / "baseline")["inputs"]) == 2
    assert "notice" not in capsys.readouterr().err


def test_a_file_of_the_mirror_that_is_an_input_too_and_was_republished_is_read_as_it_is_now(
    nlm: FakeServer, tmp_path: Path, run: Run
) -> None:
    assert run(*options(nlm, tmp_path / "out")) == 0
    publish_file(
        nlm.root / UPDATE, pubmed_set_xml(citation_xml(90000001, "Said anew. In two sentences.")), md5=True
    )
    assert run("--input", tmp_path / "mirror/pubmed", *options(nlm, tmp_path / "out")) == 0
    assert published(tmp_path / "out") == local_run(nlm, tmp_path / "local")


def test_a_baseline_that_is_still_being_posted_replaces_nothing(
    nlm: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*options(nlm, tmp_path / "out")) == 0
    before = published_digests(tmp_path / "out")
    publish_file(
        nlm.root / "pubmed/baseline/pubmed27n0001.xml.gz",
        pubmed_set_xml(citation_xml(5), citation_xml(6)),
        md5=True,
    )
    assert run(*options(nlm, tmp_path / "out")) == 1
    assert "still being posted" in capsys.readouterr().err
    assert published_digests(tmp_path / "out") == before
    words = ["--pubmed-url", f"{nlm.url}pubmed/", "--output", tmp_path / "part"]
    assert run("--input", "pubmed:baseline[1]", *words) == 0


def test_a_new_years_baseline_replaces_the_old_one_and_is_said(
    nlm: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*options(nlm, tmp_path / "out")) == 0
    for path in (nlm.root / "pubmed").rglob("pubmed26*"):
        path.unlink()
    create_pubmed_server(
        nlm.root, {"pubmed27n0001.xml.gz": pubmed_set_xml(citation_xml(5), citation_xml(6))}, {}
    )
    capsys.readouterr()
    assert run(*options(nlm, tmp_path / "out")) == 0
    assert "The new baseline pubmed27 replaces pubmed26" in capsys.readouterr().err
    assert load_manifest(tmp_path / "out")["counts"]["records"] == 2
    assert published(tmp_path / "out") == local_run(nlm, tmp_path / "local")


def test_a_selection_is_fetched_and_no_more(nlm: FakeServer, tmp_path: Path, run: Run) -> None:
    arguments = ["--pubmed-url", f"{nlm.url}pubmed/", "--output", tmp_path / "out"]
    assert run("--input", "pubmed:baseline[2]", *arguments) == 0
    assert {asked.path for asked in nlm.requests_for("*.gz")} == {SECOND}
    assert run("--input", "pubmed:[-2:]", *arguments) == 0
    assert {asked.path for asked in nlm.requests_for("*.gz")} == {SECOND, UPDATE}


def test_a_dry_run_writes_nothing(
    nlm: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert run(*options(nlm, tmp_path / "out", "--dry-run")) == 0
    assert sorted(tmp_path.rglob("*")) == before
    said = capsys.readouterr().out
    assert "to fetch:  3 files" in said
    assert not nlm.requests_for("*.gz")
    assert run(*options(nlm, tmp_path / "out")) == 0
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert run(*options(nlm, tmp_path / "out", "--dry-run")) == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == after
    said = capsys.readouterr().out
    assert "mirrored:  3 files" in said
    assert "3 files before, 0 files to do" in said


def test_a_full_disk_leaves_no_half_file_under_a_final_name(
    nlm: FakeServer,
    tmp_path: Path,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from bioshards.corpus.storage import resumable_file

    def full(self: resumable_file._LocalResumableFile, data: bytes) -> None:
        self._file.write(data[: len(data) // 2])
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(resumable_file._LocalResumableFile, "write", full)
        assert run(*options(nlm, tmp_path / "out")) == 1
    assert "the disk is full" in capsys.readouterr().err
    assert not list((tmp_path / "mirror").rglob("pubmed*.gz"))
    assert list((tmp_path / "mirror").rglob(f"{PARTIAL_PREFIX}*"))
    assert run(*options(nlm, tmp_path / "out")) == 0
    assert published(tmp_path / "out") == local_run(nlm, tmp_path / "local")


HOSTILE = """<html><body><h1>Index of /pubmed/baseline</h1><pre><a href="/pubmed/">Parent Directory</a>
<a href="../../../etc/pubmed26n0001.xml.gz">x</a> <a href="https://example.org/pubmed26n0002.xml.gz">x</a>
<a href="//example.org/pubmed26n0004.xml.gz">x</a> <a href="pubmed26n0005.xml.gz?to=../x">x</a>
<a href="file:///pubmed26n0006.xml.gz">x</a> <a href="pubmed26n0001.xml.gz">x</a></pre></body></html>"""


def test_a_hostile_listing_leads_nowhere_else(nlm: FakeServer, tmp_path: Path, run: Run) -> None:
    nlm.schedule_fault("pubmed/baseline/", FixedBody(HOSTILE.encode()), times=None)
    arguments = [
        "--pubmed-url",
        f"{nlm.url}pubmed/",
        "--output",
        tmp_path / "out",
        "--mirror",
        tmp_path / "m",
    ]
    assert run("--input", "pubmed:baseline[1-9]", *arguments) == 0
    assert {asked.path for asked in nlm.requests_for("*.gz")} == {FIRST}
    assert [path.name for path in (tmp_path / "m").rglob("*.gz")] == ["pubmed26n0001.xml.gz"]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (EndlessBody(b'<a href="pubmed26n0001.xml.gz">x</a>\n'), "more than"),
        (HtmlPage("<html>Down for maintenance</html>"), "Down for maintenance"),
        (Redirect("https://example.org/"), "another host"),
        (ServiceUnavailable(), "503"),
        (NoResponse(), "cannot be read"),
    ],
)
def test_a_listing_that_cannot_be_read_begins_nothing(
    nlm: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str], fault: Fault, said: str
) -> None:
    nlm.schedule_fault("pubmed/baseline/", fault, times=None)
    assert run(*options(nlm, tmp_path / "out")) == 1
    error = capsys.readouterr().err
    assert said in error
    assert f"{nlm.url}pubmed/baseline/" in error
    assert not (tmp_path / "out").exists()


def test_no_network_is_said_soon_and_begins_nothing(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--input", "pubmed:", "--pubmed-url", "http://127.0.0.1:9/", "--output", tmp_path / "out"]
    assert run(*arguments) == 1
    assert "http://127.0.0.1:9/baseline/ cannot be read" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_who_asks_is_said(nlm: FakeServer, tmp_path: Path, run: Run) -> None:
    assert run(*options(nlm, tmp_path / "out", "--contact", "lab@example.org")) == 0
    for asked in nlm.requests:
        assert re.fullmatch(r"bioshards/[\d.]+ \(lab@example\.org\)", asked.headers["user-agent"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "pubmed:basline"], "did you mean baseline"),
        (["--input", "pmc:"], "is not what this pipeline reads"),
        (["--input", "pubmed:baseline[9-1]"], "backwards"),
        (["--input", "pubmed:", "--pubmed-url", "http://example.org/"], "not encrypted"),
        (["--input", "pubmed:", "--pubmed-url", "ftp://example.org/"], "no address"),
        (["--input", "pubmed:", "--pubmed-url", "https://me:secret@example.org/"], "a user's name"),
        (["--input", "pubmed:", "--contact", "a b\nX: y"], "no mail or web address"),
    ],
)
def test_a_wrong_command_line_is_explained(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert run(*arguments, "--output", tmp_path / "out") == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_beside_a_bucket_there_is_no_folder_for_the_mirror() -> None:
    with pytest.raises(UsageError, match="--mirror DIR is missing"):
        downloads.resolve_mirror_folder(None, "gs://bucket")
    assert downloads.resolve_mirror_folder(None, "gs://bucket/shards") == "gs://bucket/mirror"


def test_the_mirror_is_not_the_output(nlm: FakeServer, tmp_path: Path, run: Run) -> None:
    assert run(*options(nlm, tmp_path / "out", "--mirror", tmp_path / "out")) == 2


def test_the_mirror_serves_as_a_plain_folder_without_a_network(
    nlm: FakeServer, tmp_path: Path, run: Run
) -> None:
    assert run(*options(nlm, tmp_path / "out")) == 0
    before = len(nlm.requests)
    assert run("--input", tmp_path / "mirror/pubmed", "--output", tmp_path / "again") == 0
    assert published(tmp_path / "again") == published(tmp_path / "out")
    assert len(nlm.requests) == before


@needs_data
def test_real_files_through_every_fault_equal_a_local_run(tmp_path: Path, run: Run) -> None:
    real = Path(str(DATA)) / "pubmed/hugheylab__pmparser/tests/testthat/data"
    baseline, update = real / "baseline/pubmed20n1015.xml.gz", real / "updatefiles/pubmed20n1016.xml.gz"
    create_pubmed_server(
        tmp_path / "nlm", {baseline.name: baseline.read_bytes()}, {update.name: update.read_bytes()}
    )
    renamed = {FIRST: f"pubmed/baseline/{baseline.name}", UPDATE: f"pubmed/updatefiles/{update.name}"}
    with FakeServer(tmp_path / "nlm") as nlm:
        for path, fault in ALL_AT_ONCE:
            plain, suffix = (path[:-4], ".md5") if path.endswith(".md5") else (path, "")
            nlm.schedule_fault(renamed.get(plain, plain) + suffix, fault)
        assert run(*options(nlm, tmp_path / "out")) == 0
        assert published(tmp_path / "out") == local_run(nlm, tmp_path / "local")
        assert load_manifest(tmp_path / "out")["counts"]["deletions"] == 218
        assert nlm.max_open_connections <= MAX_CONNECTIONS
        assert nlm.max_requests_per_second() <= REQUESTS_PER_SECOND + 1
