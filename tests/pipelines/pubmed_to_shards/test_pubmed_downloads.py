"""Tests of ``pubmed_to_shards --input pubmed:`` with a fake server that injects faults.

The output must equal that of local files, and the limits of connections and requests must hold.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bioshards.corpus.download import http_client
from bioshards.corpus.download.sources import SOURCES
from bioshards.corpus.errors import UsageError
from bioshards.corpus.storage.retry import RetryPolicy
from bioshards.corpus.storage.storage_protocol import PARTIAL_PREFIX
from bioshards.pipelines import cli
from bioshards.pipelines.inputs import downloads
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.fork_server import kill_when, run_beam, start_beam
from tests.support.outputs import load_manifest, published_digests
from tests.support.paths import PUBMED_SAMPLE
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_faults import (
    ConnectionReset,
    CorruptByte,
    EndlessBody,
    Fault,
    FixedBody,
    FunctionCall,
    HtmlPage,
    NoResponse,
    NotFound,
    RangeIgnored,
    ServiceUnavailable,
    SlowBody,
    Stall,
    TruncatedBody,
)
from tests.support.servers.server_pages import create_pubmed_server, publish_file

pytestmark = pytest.mark.thorough  # this file takes minutes

Run = Callable[..., int]
FIRST = "pubmed/baseline/pubmed26n0001.xml.gz"
SECOND = "pubmed/baseline/pubmed26n0002.xml.gz"
UPDATE = "pubmed/updatefiles/pubmed26n0003.xml.gz"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeServer]:
    """A fake of NLM's server with the sample as baseline and update files."""
    xml = {f"{path.name}.gz": path.read_bytes() for path in sorted(PUBMED_SAMPLE.glob("*.xml"))}
    first, second, update = xml
    create_pubmed_server(tmp_path / "nlm", {first: xml[first], second: xml[second]}, {update: xml[update]})
    with FakeServer(tmp_path / "nlm") as server:
        yield server


@pytest.fixture(autouse=True)
def shorten_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten time-outs and backoff for runs in this process."""
    retry_policy = RetryPolicy(read_timeout=1, initial_backoff=0.05, max_backoff=0.2, max_attempts=10)
    monkeypatch.setattr(http_client.Server.__init__, "__defaults__", (retry_policy, None))
    monkeypatch.setattr(downloads, "INTERACTIVE_RETRY_POLICY", retry_policy)


def make_arguments(server: FakeServer, output: Path, *others: object) -> list[object]:
    return ["--input", "pubmed:", "--pubmed-url", f"{server.url}pubmed/", "--output", output, *others]


def digest_without_manifest(output: Path) -> dict[str, str]:
    """Return the digests of published files except the manifest, which records where inputs came from."""
    digests = published_digests(output)
    del digests["manifest.json"]
    return digests


def run_locally(server: FakeServer, output: Path) -> dict[str, str]:
    """Run on the server's folder as local input, and return the digests."""
    arguments = ["--workers", 1, "--input", server.root, "--output", output]
    assert cli.main(["run", "pubmed_to_shards", *map(str, arguments)]) == 0
    return digest_without_manifest(output)


FAULTS: list[tuple[str, Fault]] = [
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
    (SECOND, Stall(2000, 60)),
    (UPDATE, NoResponse()),
    (UPDATE, HtmlPage("<html>An error, with the status of success</html>")),
    (UPDATE, SlowBody(500)),
    (f"{UPDATE}.md5", ServiceUnavailable(status=500)),
]


def test_run_from_a_server_with_all_faults_equals_a_local_one(
    server: FakeServer, tmp_path: Path, run: Run
) -> None:
    faults = random.Random(1).sample(FAULTS, len(FAULTS))
    for path, fault in faults:
        server.schedule_fault(path, fault)
    assert run(*make_arguments(server, tmp_path / "out", "--contact", "lab@example.org")) == 0
    assert len(server.pending_faults) <= 3, "a file that has come whole is not asked for again"
    assert digest_without_manifest(tmp_path / "out") == run_locally(server, tmp_path / "local")
    assert server.max_open_connections <= SOURCES["pubmed"].max_connections
    assert server.max_requests_per_second() <= SOURCES["pubmed"].requests_per_second + 1
    for request in server.requests:
        assert re.fullmatch(r"bioshards/[\d.]+ \(lab@example\.org\)", request.headers["user-agent"])
    manifest, local_manifest = load_manifest(tmp_path / "out"), load_manifest(tmp_path / "local")
    assert manifest["funnel"] == local_manifest["funnel"]
    assert [item["md5"] for item in manifest["inputs"]] == [item["md5"] for item in local_manifest["inputs"]]
    assert manifest["newest_file"] == "pubmed26n0003.xml.gz"
    assert "National Library of Medicine" in manifest["notice"]
    retrieved = manifest["run"]["retrieved_at"]
    assert set(retrieved["files"]) == {f"pubmed26n000{n}.xml.gz" for n in (1, 2, 3)}
    for date in (manifest["run"]["listed_at"], retrieved["first"], retrieved["last"]):
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", date)


def publish_baseline(folder: Path, count: int, records: int = 30) -> None:
    """Publish a baseline of ``count`` files with distinct citations."""
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


def test_connection_and_request_limits_hold_for_any_number_of_workers(tmp_path: Path) -> None:
    publish_baseline(tmp_path / "nlm", 16)
    with FakeServer(tmp_path / "nlm") as server:
        server.latency = 0.05
        completed = run_beam(
            "run", "pubmed_to_shards", "--workers", 5, *make_arguments(server, tmp_path / "out")
        )
        assert completed.returncode == 0, completed.stderr
        assert server.max_open_connections <= SOURCES["pubmed"].max_connections
        assert server.max_requests_per_second() <= SOURCES["pubmed"].requests_per_second + 1
        # Connections are reused: 16 files and their checksums are 32 requests.
        assert len(server.requests_for("*.gz*")) == 32
        assert server.connections < 16


def test_files_are_fetched_while_others_are_processed(tmp_path: Path) -> None:
    publish_baseline(tmp_path / "nlm", 6)
    with FakeServer(tmp_path / "nlm") as server:
        server.latency = 0.3
        process = start_beam(
            "run", "pubmed_to_shards", "--workers", 1, *make_arguments(server, tmp_path / "out")
        )
        staged_when_fetched = []
        while process.is_alive():
            fetched = len(list((tmp_path / "mirror").rglob("*.xml.gz")))
            staged = len(list((tmp_path / "out").rglob("staged/*.json")))
            staged_when_fetched.append((fetched, staged))
            time.sleep(0.02)
        assert process.exitcode == 0
        assert any(staged > 0 and fetched < 6 for fetched, staged in staged_when_fetched)


def has_new_file_and_large_partial_file(mirror: Path, previous_count: int) -> bool:
    """Return True if the mirror has a new file and more than 100 kB of another."""
    for partial_file in mirror.rglob(f"{PARTIAL_PREFIX}*"):
        with contextlib.suppress(FileNotFoundError):  # renamed to its final name meanwhile
            if partial_file.stat().st_size > 100_000:
                return len(list(mirror.rglob("pubmed*.gz"))) > previous_count
    return False


def test_resumed_run_fetches_no_verified_file_again(tmp_path: Path) -> None:
    publish_baseline(tmp_path / "nlm", 8, records=400)
    mirror = tmp_path / "mirror"
    with FakeServer(tmp_path / "nlm") as server:
        server.bytes_per_second = 400_000
        for _ in range(2):
            mirrored = {path.name for path in mirror.rglob("pubmed*.gz")}
            before = len(server.requests)
            process = start_beam(
                "run", "pubmed_to_shards", "--workers", 2, *make_arguments(server, tmp_path / "out")
            )
            kill_when(process, functools.partial(has_new_file_and_large_partial_file, mirror, len(mirrored)))
            refetched = [
                request.path
                for request in server.requests[before:]
                if request.path.rpartition("/")[2] in mirrored
            ]
            assert refetched == []
        server.bytes_per_second = None
        completed = run_beam("run", "pubmed_to_shards", *make_arguments(server, tmp_path / "out"))
        assert completed.returncode == 0, completed.stderr
        assert any(request.range for request in server.requests_for("*.gz")), "parts are gone on with"
        assert digest_without_manifest(tmp_path / "out") == run_locally(server, tmp_path / "local")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (CorruptByte(3000), "(read 3 times)"),
        (NotFound(), "is not there"),
        (HtmlPage("<html>Come back later</html>"), "It is a web page: open the address"),
    ],
)
def test_file_that_cannot_be_fetched_is_reported_and_the_rest_is_processed(
    server: FakeServer,
    tmp_path: Path,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    fault: Fault,
    message: str,
) -> None:
    server.schedule_fault(SECOND, fault, times=None)
    assert run(*make_arguments(server, tmp_path / "out")) == 3
    error = capsys.readouterr().err
    assert "pubmed26n0002.xml.gz" in error
    assert message in error
    assert not list((tmp_path / "mirror").rglob("pubmed26n0002*"))
    assert not (tmp_path / "out/manifest.json").exists()
    assert len(list((tmp_path / "out/.bioshards/staged").glob("*.json"))) == 2
    # Without the fault, the same command fetches only that file and succeeds.
    before = len(server.requests)
    server.clear_faults()
    assert run(*make_arguments(server, tmp_path / "out")) == 0
    assert {request.path for request in server.requests[before:] if request.path.endswith(".gz")} == {SECOND}
    assert digest_without_manifest(tmp_path / "out") == run_locally(server, tmp_path / "local")


def test_refused_files_do_not_hold_up_the_others(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """The server refuses the first five of eight files, again in the second run, and not in the third."""
    publish_baseline(tmp_path / "nlm", 8)
    with FakeServer(tmp_path / "nlm") as server:
        server.schedule_fault("pubmed/baseline/*000[1-5].xml.gz", ServiceUnavailable(status=403), times=None)
        for _ in range(2):
            assert run(*make_arguments(server, tmp_path / "out")) == 3
            assert "5 of 8 files could not be fetched" in capsys.readouterr().err
            assert len(list((tmp_path / "out/.bioshards/staged").glob("*.json"))) == 3
        assert len(server.requests_for("pubmed/baseline/*000[678].xml.gz")) == 3
        server.clear_faults()
        assert run(*make_arguments(server, tmp_path / "out")) == 0
        assert digest_without_manifest(tmp_path / "out") == run_locally(server, tmp_path / "local")


def test_server_that_refuses_everything_ends_the_run(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_baseline(tmp_path / "nlm", 20)
    with FakeServer(tmp_path / "nlm") as server:
        server.schedule_fault("pubmed/baseline/*.gz", ServiceUnavailable(status=403), times=None)
        assert run(*make_arguments(server, tmp_path / "out")) == 1
        error = capsys.readouterr().err
        assert "8 downloads failed in a row; the last one: " in error
        assert "is refused: the server answers 403" in error
        assert f"open {server.url}pubmed/ in a browser" in error
        assert len(server.requests_for("*.xml.gz")) < 13


BLOCK_PAGE = "<html><body>Your access to the files has been temporarily blocked.</body></html>"


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (
            ServiceUnavailable("3600"),
            r"asks to wait 3,600 seconds, until [\d-]+ [\d:]+ UTC. Run the same command again",
        ),
        (
            HtmlPage(BLOCK_PAGE),
            "the server blocks this network. Its page says: 'Your access.*Start no other download",
        ),
    ],
)
def test_server_that_asks_for_a_long_pause_or_blocks_the_network_ends_the_run(
    server: FakeServer,
    tmp_path: Path,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    fault: Fault,
    message: str,
) -> None:
    server.schedule_fault(SECOND, fault, times=None)
    assert run(*make_arguments(server, tmp_path / "out")) == 1
    error = capsys.readouterr().err
    assert re.search(message, error)
    assert "check the network" not in error
    assert len(server.requests_for(SECOND)) == 1


def test_wait_for_the_server_is_shown(server: FakeServer, tmp_path: Path) -> None:
    server.schedule_fault(SECOND, ServiceUnavailable("6"))
    completed = run_beam("run", "pubmed_to_shards", "--workers", 2, *make_arguments(server, tmp_path / "out"))
    assert completed.returncode == 0, completed.stderr
    assert (
        f"waiting: {server.url}{SECOND}: the server answers 503 Service Unavailable; attempt 2 of 10 in 6 "
        "seconds" in completed.stderr
    )


def test_damaged_file_of_the_mirror_is_fetched_again(
    server: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """A bit has flipped on the disk; the first reader finds it, and the next run mends it."""
    assert run(*make_arguments(server, tmp_path / "out")) == 0
    path = tmp_path / "mirror" / SECOND
    info, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    before = len(server.requests)
    assert run(*make_arguments(server, tmp_path / "other")) == 3
    assert "rerun the command, which downloads it again" in capsys.readouterr().err
    assert run(*make_arguments(server, tmp_path / "other")) == 0
    assert {request.path for request in server.requests[before:] if request.path.endswith(".gz")} == {SECOND}
    assert digest_without_manifest(tmp_path / "other") == digest_without_manifest(tmp_path / "out")


def test_file_added_during_a_run_is_used_by_the_next_run(
    server: FakeServer, tmp_path: Path, run: Run
) -> None:
    def publish_update() -> None:
        publish_file(
            server.root / "pubmed/updatefiles/pubmed26n0004.xml.gz", pubmed_set_xml(citation_xml(1)), md5=True
        )

    server.schedule_fault(FIRST, FunctionCall(publish_update))
    assert run(*make_arguments(server, tmp_path / "out")) == 0
    assert load_manifest(tmp_path / "out")["newest_file"] == "pubmed26n0003.xml.gz"
    assert run(*make_arguments(server, tmp_path / "out")) == 0
    assert load_manifest(tmp_path / "out")["newest_file"] == "pubmed26n0004.xml.gz"


def test_files_missing_from_the_listing_are_kept_from_the_mirror(
    server: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*make_arguments(server, tmp_path / "out")) == 0
    before = digest_without_manifest(tmp_path / "out")
    for name in (UPDATE, f"{UPDATE}.md5"):
        (server.root / name).rename(tmp_path / Path(name).name)
    capsys.readouterr()
    assert run(*make_arguments(server, tmp_path / "out")) == 0
    assert digest_without_manifest(tmp_path / "out") == before
    assert "The listing has no pubmed26n0003.xml.gz, which the mirror holds" in capsys.readouterr().err


def test_selection_ignores_other_files_of_the_mirror(
    server: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*make_arguments(server, tmp_path / "out")) == 0
    arguments = ["--pubmed-url", f"{server.url}pubmed/", "--mirror", tmp_path / "mirror", "--output"]
    capsys.readouterr()
    assert run("--input", "pubmed:updates", *arguments, tmp_path / "updates") == 0
    assert [item["file"] for item in load_manifest(tmp_path / "updates")["inputs"]] == [
        "pubmed26n0003.xml.gz"
    ]
    assert run("--input", "pubmed:baseline", *arguments, tmp_path / "baseline") == 0
    assert len(load_manifest(tmp_path / "baseline")["inputs"]) == 2
    before = len(server.requests)
    shutil.rmtree(tmp_path / "mirror")
    assert run("--input", "pubmed:[-2:]", *arguments, tmp_path / "last") == 0
    fetched = {request.path for request in server.requests[before:] if request.path.endswith(".gz")}
    assert fetched == {SECOND, UPDATE}
    assert "notice" not in capsys.readouterr().err


def test_republished_file_is_fetched_again_and_read_also_from_the_mirror(
    server: FakeServer, tmp_path: Path, run: Run
) -> None:
    assert run(*make_arguments(server, tmp_path / "out")) == 0
    publish_file(
        server.root / UPDATE, pubmed_set_xml(citation_xml(90000001, "Said anew. In two sentences.")), md5=True
    )
    before = len(server.requests)
    assert run("--input", tmp_path / "mirror/pubmed", *make_arguments(server, tmp_path / "out")) == 0
    assert [request.path for request in server.requests[before:] if request.path.endswith(".gz")] == [UPDATE]
    assert digest_without_manifest(tmp_path / "out") == run_locally(server, tmp_path / "local")


def test_new_baseline_replaces_the_old_one_once_it_is_announced(
    server: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*make_arguments(server, tmp_path / "out")) == 0
    before = published_digests(tmp_path / "out")
    for path in (server.root / "pubmed").rglob("pubmed26*"):
        path.unlink()
    create_pubmed_server(
        server.root, {"pubmed27n0001.xml.gz": pubmed_set_xml(citation_xml(5), citation_xml(6))}, {}
    )
    readme = (server.root / "pubmed/baseline/README.txt").rename(tmp_path / "README.txt")
    assert run(*make_arguments(server, tmp_path / "out")) == 1
    error = capsys.readouterr().err
    assert "would replace the 2 files of pubmed26 that the mirror has in pubmed/baseline/" in error
    assert published_digests(tmp_path / "out") == before
    dry_run = make_arguments(server, tmp_path / "other", "--mirror", tmp_path / "mirror", "--dry-run")
    assert run(*dry_run, "--allow-removals") == 0
    readme.rename(server.root / "pubmed/baseline/README.txt")
    assert run(*make_arguments(server, tmp_path / "out")) == 0
    assert "The new baseline pubmed27 replaces pubmed26" in capsys.readouterr().err
    assert load_manifest(tmp_path / "out")["counts"]["records"] == 2
    assert digest_without_manifest(tmp_path / "out") == run_locally(server, tmp_path / "local")


def test_refused_readme_is_reported(
    server: FakeServer, tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    server.schedule_fault("pubmed/baseline/README.txt", ServiceUnavailable(status=403), times=None)
    assert run(*make_arguments(server, tmp_path / "out")) == 0
    error = capsys.readouterr().err
    assert "notice: " in error
    assert "README.txt is refused: the server answers 403" in error


HOSTILE_PAGE = """<html><body><h1>Index of /pubmed/baseline</h1><pre><a href="/pubmed/">Parent Directory</a>
<a href="../../../etc/pubmed26n0001.xml.gz">x</a> <a href="https://example.org/pubmed26n0002.xml.gz">x</a>
<a href="//example.org/pubmed26n0004.xml.gz">x</a> <a href="pubmed26n0005.xml.gz?to=../x">x</a>
<a href="file:///pubmed26n0006.xml.gz">x</a> <a href="pubmed26n0001.xml.gz">x</a></pre></body></html>"""


def test_hostile_links_of_a_listing_are_ignored(server: FakeServer, tmp_path: Path, run: Run) -> None:
    server.schedule_fault("pubmed/baseline/", FixedBody(HOSTILE_PAGE.encode()), times=None)
    arguments = [
        "--pubmed-url",
        f"{server.url}pubmed/",
        "--output",
        tmp_path / "out",
        "--mirror",
        tmp_path / "m",
    ]
    assert run("--input", "pubmed:baseline[1-9]", *arguments) == 0
    assert {request.path for request in server.requests_for("*.gz")} == {FIRST}
    assert [path.name for path in (tmp_path / "m").rglob("*.gz")] == ["pubmed26n0001.xml.gz"]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (EndlessBody(b'<a href="pubmed26n0001.xml.gz">x</a>\n'), "more than"),
        (HtmlPage("<html>Down for maintenance</html>"), "Down for maintenance"),
        (NoResponse(), "cannot be read"),
        (
            FixedBody(HOSTILE_PAGE[: HOSTILE_PAGE.rindex("<a ")].encode()),
            "ends in the middle of its listing",
        ),
    ],
)
def test_unreadable_listing_stops_the_run_before_writing(
    server: FakeServer,
    tmp_path: Path,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    fault: Fault,
    message: str,
) -> None:
    server.schedule_fault("pubmed/baseline/", fault, times=None)
    assert run(*make_arguments(server, tmp_path / "out")) == 1
    error = capsys.readouterr().err
    assert message in error
    assert f"{server.url}pubmed/baseline/" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "pmc:"], "is not what this pipeline reads"),
        (["--input", "pubmed:", "--pubmed-url", "http://example.org/"], "not encrypted"),
        (["--input", "pubmed:", "--contact", "a b\nX: y"], "no mail or web address"),
    ],
)
def test_a_wrong_command_line_is_explained(
    tmp_path: Path, run: Run, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(*arguments, "--output", tmp_path / "out") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_output_at_the_root_of_a_bucket_needs_a_mirror_option() -> None:
    with pytest.raises(UsageError, match="--mirror DIR is missing"):
        downloads.resolve_mirror_folder(None, "gs://bucket")
    assert downloads.resolve_mirror_folder(None, "gs://bucket/shards") == "gs://bucket/mirror"


def test_mirror_equal_to_the_output_is_refused(server: FakeServer, tmp_path: Path, run: Run) -> None:
    assert run(*make_arguments(server, tmp_path / "out", "--mirror", tmp_path / "out")) == 2
