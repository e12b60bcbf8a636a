"""Tests of ``RemoteStorage`` on gs://, s3:// and az://: calls, range reads, failures.

They run against emulators behind an ``ObjectStoreProxy``, which injects faults and counts requests.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import random
import shutil
import urllib.request
from collections.abc import Callable
from pathlib import Path

import google.auth
import obstore
import pyarrow as pa
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError, RefreshError

from bioshards.corpus.errors import BadFileError, CredentialsError, TransientStorageError
from bioshards.corpus.storage import checksums
from bioshards.corpus.storage import retry as retry_module
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.corpus.storage.retry import RetryPolicy, retry
from bioshards.corpus.storage.source_file import open_source
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines import cli
from bioshards.pipelines.storage import remote_storage, store_options
from bioshards.pipelines.storage.remote_storage import RemoteStorage
from bioshards.pipelines.storage.store_options import StoreOptions
from tests.support.cloud.memory_store import MEMORY_OBJECTS
from tests.support.cloud.object_store_proxy import (
    ChecksumsUnsupported,
    ErrorCode,
    LostResponse,
    MissingUpload,
    ObjectStoreProxy,
    RangesIgnored,
    StoreFault,
    UploadReset,
)
from tests.support.cloud.store_emulators import BUCKET, request_object
from tests.support.outputs import remove_run_facts
from tests.support.paths import PUBMED_SAMPLE
from tests.support.servers.server_faults import ConnectionReset, ServiceUnavailable, Stall, TruncatedBody

pytestmark = pytest.mark.thorough  # this file takes minutes

FILES = RemoteStorage(StoreOptions())
UNPAUSED = RetryPolicy(max_attempts=4, initial_backoff=0)
DATA = random.Random(3).randbytes(300_000)


@pytest.fixture
def proxy(store_proxy: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch) -> ObjectStoreProxy:
    """A store proxy, with short retries and small range reads in the clients."""
    for name, value in store_proxy.store.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(store_options, "STORE_INITIAL_BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(store_options, "STORE_MAX_RETRIES", 2)
    monkeypatch.setattr(remote_storage, "FIRST_READ_BYTES", 1 << 14)
    monkeypatch.setattr(remote_storage, "MAX_READ_BYTES", 1 << 16)
    monkeypatch.setattr(retry_module, "STEP_RETRY_POLICY", UNPAUSED)
    store_options.open_store.cache_clear()
    options = StoreOptions.from_beam(PipelineOptions(store_proxy.store.options))
    monkeypatch.setattr(FILES, "_options", options)
    store_proxy.reset()
    return store_proxy


@pytest.fixture
def shorten_read_timeout(proxy: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time out reads after 0.8 seconds; more attempts allow for a busy machine."""
    monkeypatch.setattr(store_options, "STORE_MAX_RETRIES", 4)
    for name in ("STORE_READ_TIMEOUT_SECONDS", "STORE_UPLOAD_TIMEOUT_SECONDS"):
        monkeypatch.setattr(store_options, name, 0.8)
    store_options.open_store.cache_clear()


@pytest.fixture
def folder(proxy: ObjectStoreProxy, request: pytest.FixtureRequest) -> str:
    """The URL of a folder that only this test uses."""
    return f"{proxy.store.url}/{request.node.originalname}"


def write_object(path: str, data: bytes = DATA) -> str:
    with FILES.write(path) as file:
        file.write(data)
    return path


def read_object(path: str) -> bytes:
    with FILES.open(path) as file:
        return file.read()


def test_folders_are_derived_from_object_names(proxy: ObjectStoreProxy, folder: str) -> None:
    for name in ("b.txt", "a.txt", "deep/c.txt", ".hidden/d.txt", "deep/.e", "deeper/f/g.txt"):
        write_object(f"{folder}/{name}", name.encode())
    write_object(f"{folder}-other/h.txt", b"")
    for marked in ("", "/empty", "/deep"):  # folder markers, as some tools write them
        request_object(proxy.store, "PUT", f"{folder.removeprefix(proxy.store.url + '/')}{marked}/")
    for name in (folder, f"{folder}/"):
        assert FILES.list_names(name) == ["a.txt", "b.txt"]
        found = [item.path.removeprefix(f"{folder}/") for item in FILES.walk(name)]
        assert found == ["a.txt", "b.txt", "deep/c.txt", "deeper/f/g.txt"]
        with_hidden = {item.path for item in FILES.walk(name, with_hidden_files=True)}
        assert with_hidden - {item.path for item in FILES.walk(name)} == {f"{folder}/deep/.e"}
        assert FILES.is_folder(name)
    assert [item.path for item in FILES.glob(f"{folder}/**/d*")] == []
    assert not FILES.list_names(f"{folder}/none")
    assert not FILES.walk(f"{folder}/none")
    assert not FILES.is_folder(f"{folder}/a.txt")
    assert not FILES.is_folder(f"{folder}/a")
    assert FILES.exists(f"{folder}/a.txt")
    assert not FILES.exists(f"{folder}/a")
    assert not FILES.exists(folder)


def test_names_with_an_empty_part_are_refused(proxy: ObjectStoreProxy, folder: str) -> None:
    """Scripts that join paths carelessly make such names, which no client takes."""
    write_object(f"{folder}/a.txt", b"")
    name = f"{folder.removeprefix(proxy.store.url + '/')}/deep//c.txt"
    request_object(proxy.store, "PUT", name)
    assert FILES.list_names(folder) == ["a.txt"]
    for list_folder in (FILES.walk, lambda url: FILES.glob(f"{url}/**/*.txt")):
        with pytest.raises(OSError, match=r"empty part.*Rename what is there"):
            list_folder(folder)
    with pytest.raises(BadFileError, match="Rename"), open_source(FILES, f"{folder}/deep//c.txt"):
        pass
    request_object(proxy.store, "DELETE", name)


def test_a_pattern_matches_as_on_a_local_disk(folder: str, tmp_path: Path) -> None:
    """``**`` also matches no folder; hidden names match only explicit patterns; a name matches itself."""
    for name in (
        *("a.xml", "b.xml", "b.txt", "in/b.xml", "in/it/d.xml", "in[1]/e.xml", "in[1]/f*.xml", "1*/g.xml"),
        *(".h.xml", ".hidden/c.xml", "in/.records/b.xml"),
    ):
        write_object(f"{folder}/{name}", name.encode())
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)

    def glob_names(storage: Storage, root: str, pattern: str) -> list[str]:
        return [item.path.removeprefix(f"{root}/") for item in storage.glob(f"{root}/{pattern}")]

    for pattern in (
        *("*", "**", "in/**", "**.xml", "*.xml", "*/*.xml", "**/*.xml", "**/b.xml", "**/in/**/*"),
        *("[ab].*", "[!x]*", "?.txt", "i*/*.xml", ".h*/*", "in[1]/e.xml", "in[1]/f*.xml"),
    ):
        expected = glob_names(LocalStorage(), str(tmp_path), pattern)
        assert expected
        assert glob_names(FILES, folder, pattern) == expected
    assert glob_names(FILES, folder, "none/*.xml") == []
    assert FILES.list_names(f"{folder}/in[1]") == ["e.xml", "f*.xml"]
    assert [item.size for item in FILES.walk(f"{folder}/1*")] == [8]


def test_a_bucket_is_a_folder(proxy: ObjectStoreProxy) -> None:
    write_object(f"{proxy.store.url}/at-the-top.txt")
    for url in (proxy.store.url, f"{proxy.store.url}/"):
        assert FILES.is_folder(url)
        assert "at-the-top.txt" in FILES.list_names(url)
        assert f"{proxy.store.url}/at-the-top.txt" in [item.path for item in FILES.walk(url)]
    assert not FILES.exists(proxy.store.url)
    assert [item.size for item in FILES.glob(f"{proxy.store.url}/at-*.txt")] == [len(DATA)]


def test_a_stamp_changes_when_an_object_is_written_anew(folder: str) -> None:
    path = write_object(f"{folder}/a", b"old")
    [before] = FILES.glob(path)
    write_object(path, b"new")
    [after] = FILES.glob(path)
    assert before.size == after.size == 3
    assert before.stamp != after.stamp
    assert FILES.walk(folder) == [after]
    assert read_object(path) == b"new"
    FILES.remove(path)
    FILES.remove(path)
    assert not FILES.exists(path)


@pytest.mark.parametrize("size", [0, 16_384, 16_385, 16_384 + 65_536, 300_000])
def test_an_object_is_read_to_its_end_and_no_further(proxy: ObjectStoreProxy, folder: str, size: int) -> None:
    path = write_object(f"{folder}/{size}", DATA[:size])
    proxy.reset()
    assert read_object(path) == DATA[:size]
    assert proxy.count_requests().total() <= 2 + size / 65_536
    with FILES.open(path) as file:
        assert b"".join(iter(lambda: file.read(1000), b"")) == DATA[:size]
        assert file.read(1) == b""
        assert file.seek(-min(size, 5), io.SEEK_END) == max(0, size - 5)
        assert file.read() == DATA[:size][-5:]
        assert file.seek(size + 10) == size + 10
        assert file.read() == b""
    with FILES.open(path) as file:  # a seek beyond the end
        assert file.seek(size + 20_000) == size + 20_000
        assert file.read() == file.read() == b""
        assert file.seek(0, io.SEEK_END) == size


@pytest.mark.parametrize("store_proxy", ["gcs", "s3"], indirect=True)  # Azure's requests sign their range
def test_store_that_ignores_ranges_is_refused(proxy: ObjectStoreProxy, folder: str) -> None:
    """Every response would be the whole object, so records would be read repeatedly."""
    path = write_object(f"{folder}/a")
    proxy.schedule_fault("GET", "*", RangesIgnored(), times=None)
    with pytest.raises(TransientStorageError, match="range"):
        FILES.open(path)


def test_seek_and_read_at_random_offsets(proxy: ObjectStoreProxy, folder: str) -> None:
    path = write_object(f"{folder}/a")
    rng = random.Random(5)
    with FILES.open(path) as file, io.BytesIO(DATA) as expected_file:
        for _ in range(60):
            offset, whence = rng.choice([(rng.randrange(300_100), 0), (-rng.randrange(9_000), 2)])
            assert file.seek(offset, whence) == expected_file.seek(offset, whence) == file.tell()
            count = rng.choice([1, 10, 5_000, 100_000])
            assert file.read(count) == expected_file.read(count)


def test_arrow_reads_one_batch_of_many_without_the_others(
    proxy: ObjectStoreProxy, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_storage, "SEEK_READ_BYTES", 1 << 14)
    batches = [pa.record_batch([pa.array([number] * 2000)], names=["n"]) for number in range(100)]
    path = f"{folder}/batches.arrow"
    with FILES.write(path) as out, pa.ipc.new_file(pa.PythonFile(out, "w"), batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    proxy.reset()
    with FILES.open(path) as file, pa.ipc.open_file(file) as reader:
        assert reader.get_batch(70) == batches[70]
    assert proxy.count_requests()["GET"] <= 4
    assert proxy.bytes_read < 100_000 < FILES.glob(path)[0].size


def test_opening_a_missing_object_fails(folder: str) -> None:
    with pytest.raises(FileNotFoundError, match="none"):
        FILES.open(f"{folder}/none")
    with pytest.raises(FileNotFoundError):
        FILES.list_names(f"{folder.partition('://')[0]}://no-such-bucket/none")


def test_incomplete_writes_create_no_object(proxy: ObjectStoreProxy, folder: str) -> None:
    def write_and_fail() -> None:
        with FILES.write(f"{folder}/a") as file:
            file.write(DATA)
            raise OSError("a reader has failed")

    with pytest.raises(OSError, match="a reader has failed"):
        write_and_fail()
    with FILES.open_resumable(f"{folder}/b", "v1") as part:
        part.write(DATA)
    assert FILES.list_names(folder) == []
    assert proxy.count_requests().keys() <= {"LIST"}  # no upload was started


def test_one_small_object_costs_one_request(proxy: ObjectStoreProxy, folder: str) -> None:
    path = write_object(f"{folder}/a", b"small")
    assert read_object(path) == b"small"
    assert proxy.count_requests() == {"PUT": 1, "GET": 1}
    proxy.reset()
    FILES.exists(path)
    FILES.list_names(folder)
    FILES.remove(path)
    assert proxy.count_requests() == {"HEAD": 1, "LIST": 1, "DELETE": 1}


def test_connections_are_reused_by_all_threads(
    folder: str, proxy: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new connection for each call costs two round trips."""
    monkeypatch.setattr(
        retry_module, "STEP_RETRY_POLICY", RetryPolicy(max_attempts=6, initial_backoff=0.4, max_backoff=0.4)
    )  # the emulator refuses some of so many connections
    parallel_for_each(FILES, lambda number: retry(lambda: write_object(f"{folder}/{number}", b"")), range(60))
    assert len(FILES.list_names(folder)) == 60
    assert len(proxy.requests) > 60
    assert proxy.num_connections < 40


TRANSIENT_FAULTS = {
    "busy": ServiceUnavailable(),
    "too many": ServiceUnavailable(status=429),
    "reset while it answers": ConnectionReset(after_bytes=1000),
    "ended too soon": TruncatedBody(after_bytes=1000),
}
STALLS = {"silent": Stall(0, 60), "silent in the middle": Stall(1000, 60)}
READ_REQUESTS = ("GET", "*reading*")
WRITE_REQUESTS = ("PUT", "*ing")


@pytest.mark.parametrize("fault", TRANSIENT_FAULTS.values(), ids=list(TRANSIENT_FAULTS))
def test_reads_are_retried_after_transient_faults(
    proxy: ObjectStoreProxy, folder: str, fault: StoreFault
) -> None:
    path = write_object(f"{folder}/reading")
    proxy.schedule_fault(*READ_REQUESTS, fault)
    assert read_object(path) == DATA
    assert proxy.pending_fault_count() == 0


@pytest.mark.usefixtures("shorten_read_timeout")
@pytest.mark.parametrize("fault", STALLS.values(), ids=list(STALLS))
def test_stalled_requests_are_retried(proxy: ObjectStoreProxy, folder: str, fault: StoreFault) -> None:
    path = write_object(f"{folder}/reading")
    proxy.schedule_fault(*WRITE_REQUESTS, STALLS["silent"])
    write_object(f"{folder}/writing")
    proxy.schedule_fault(*READ_REQUESTS, fault)
    assert read_object(path) == DATA
    assert proxy.pending_fault_count() == 0


def test_reading_an_object_that_was_removed_meanwhile_fails(folder: str) -> None:
    path = write_object(f"{folder}/a")
    with FILES.open(path) as file:
        FILES.remove(path)
        with pytest.raises(TransientStorageError, match="replaced or lost"):
            file.read()


@pytest.mark.parametrize("fault", [ServiceUnavailable(), TruncatedBody(1000)], ids=["busy", "short"])
def test_lasting_failure_is_a_transient_storage_error(
    proxy: ObjectStoreProxy, folder: str, fault: StoreFault
) -> None:
    """Also in the middle of a file; the file is never reported as bad."""
    path = write_object(f"{folder}/reading")
    with FILES.open(path) as file:
        proxy.schedule_fault(*READ_REQUESTS, fault, times=None)
        with pytest.raises(TransientStorageError, match="reading"):
            file.read()
    with pytest.raises(TransientStorageError), open_source(FILES, path) as file:
        checksums.md5_of_file(file)


def test_arrow_propagates_the_storage_error(proxy: ObjectStoreProxy, folder: str) -> None:
    table = pa.table({"n": list(range(100_000))})
    path = f"{folder}/reading"
    with FILES.write(path) as out, pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table, max_chunksize=1000)
    with FILES.open(path) as file:
        proxy.schedule_fault(*READ_REQUESTS, ServiceUnavailable(), times=None)
        with pytest.raises(TransientStorageError), pa.ipc.open_stream(file) as reader:
            reader.read_all()


@pytest.mark.parametrize(
    ("status", "message", "error"),
    [(403, "", BadFileError), (401, "credentials", TransientStorageError)],
    ids=["denied", "rejected credentials"],
)
def test_refused_reads_are_not_retried(
    proxy: ObjectStoreProxy, folder: str, status: int, message: str, error: type[Exception]
) -> None:
    """Where the credentials may have expired, the object may be valid: it is no bad file."""
    path = write_object(f"{folder}/reading")
    proxy.schedule_fault(*READ_REQUESTS, ServiceUnavailable(status=status), times=None)
    with pytest.raises(PermissionError, match=message or proxy.store.url):
        FILES.open(path)
    assert proxy.count_requests()["GET"] == 1
    with pytest.raises(error), open_source(FILES, path):
        pass


@pytest.mark.parametrize("code", ["ExpiredToken", "RequestTimeTooSkewed", "TokenRefreshRequired"])
@pytest.mark.parametrize("store_proxy", ["s3"], indirect=True)
def test_s3_credential_error_codes_make_no_bad_file(proxy: ObjectStoreProxy, folder: str, code: str) -> None:
    """A token may expire or a clock drift during a run; all files would be reported as bad."""
    path = write_object(f"{folder}/reading")
    proxy.schedule_fault(*READ_REQUESTS, ErrorCode(403, code))
    with pytest.raises(CredentialsError, match=code):
        FILES.open(path)


@pytest.mark.parametrize("error", [RefreshError, DefaultCredentialsError])
def test_failed_credential_refresh_makes_no_bad_file(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error(*_: object, **__: object) -> None:
        raise error("no answer")

    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setattr(AnonymousCredentials, "refresh", raise_error)
    if error is DefaultCredentialsError:
        monkeypatch.setattr(google.auth, "default", raise_error)
    else:
        credentials = AnonymousCredentials()  # type: ignore[no-untyped-call]
        monkeypatch.setattr(google.auth, "default", lambda **_: (credentials, "project"))
    store_options.open_store.cache_clear()
    with (
        pytest.raises(TransientStorageError, match="gcloud auth"),
        open_source(RemoteStorage(StoreOptions()), "gs://bucket/file"),
    ):
        pass


def test_two_versions_of_an_object_are_never_read_as_one(folder: str) -> None:
    path = write_object(f"{folder}/a")
    with FILES.open(path) as file:
        first_bytes = file.read(10)
        write_object(path, bytes(300_000))
        with pytest.raises(TransientStorageError):
            file.read()
    assert first_bytes == DATA[:10]
    with FILES.open(path) as file:
        assert file.read() == bytes(300_000)


UPLOAD_FAULTS = {
    "busy": ServiceUnavailable(),
    "broken off": UploadReset(after_bytes=10_000),
    "done but not said": LostResponse(),
}


@pytest.mark.parametrize("fault", UPLOAD_FAULTS.values(), ids=list(UPLOAD_FAULTS))
def test_failed_writes_are_retried(proxy: ObjectStoreProxy, folder: str, fault: StoreFault) -> None:
    proxy.schedule_fault(*WRITE_REQUESTS, fault)
    path = write_object(f"{folder}/writing")
    assert proxy.pending_fault_count() == 0
    assert read_object(path) == DATA


def test_lasting_write_failure_leaves_the_old_object(proxy: ObjectStoreProxy, folder: str) -> None:
    path = write_object(f"{folder}/writing", b"before")
    proxy.schedule_fault(*WRITE_REQUESTS, UploadReset(10_000), times=None)
    with pytest.raises(TransientStorageError, match="writing"):
        write_object(path)
    proxy.reset()
    assert read_object(path) == b"before"
    assert FILES.list_names(folder) == ["writing"]


def count_pending_uploads(proxy: ObjectStoreProxy) -> int:
    """Count multipart uploads that were neither completed nor aborted; their parts are billed."""
    if proxy.store.url.startswith("az:"):
        return 0  # they expire
    with urllib.request.urlopen(f"{proxy.upstream.endpoint}/{BUCKET}?uploads") as response:
        return int(response.read().count(b"<Upload>"))


@pytest.fixture
def multipart_data(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Data of more than one upload part."""
    monkeypatch.setattr(remote_storage, "UPLOAD_PART_BYTES", 5 << 20)
    return random.Random(4).randbytes(6 << 20)


def test_lost_multipart_upload_is_restarted(
    proxy: ObjectStoreProxy, folder: str, multipart_data: bytes
) -> None:
    last_request = ("PUT", "*comp=blocklist*") if folder.startswith("az") else ("POST", "*uploadId*")
    for times in (1, 2):
        proxy.schedule_fault(*last_request, MissingUpload(), times)
        with pytest.raises(TransientStorageError) if times == 1 else contextlib.nullcontext():
            if times == 1:
                write_object(f"{folder}/large", multipart_data)
            else:
                retry(lambda: write_object(f"{folder}/large", multipart_data))
        assert proxy.pending_fault_count() == 0
        assert FILES.exists(f"{folder}/large") is (times == 2)
        assert count_pending_uploads(proxy) == 0
    assert read_object(f"{folder}/large") == multipart_data


def test_failed_upload_part_is_sent_again(
    proxy: ObjectStoreProxy, folder: str, multipart_data: bytes
) -> None:
    # Parts are sent at the same time, with two retries each: the faults may hit one of them, or both.
    faults: tuple[StoreFault, ...] = (UploadReset(1 << 20), ServiceUnavailable())
    for fault in faults:
        proxy.schedule_fault("PUT", "*comp=block&*" if folder.startswith("az") else "*partNumber=*", fault)
    assert read_object(write_object(f"{folder}/large", multipart_data)) == multipart_data
    assert proxy.pending_fault_count() == 0


@pytest.mark.parametrize("store_proxy", ["s3"], indirect=True)
def test_server_without_new_checksums_works(
    proxy: ObjectStoreProxy, folder: str, multipart_data: bytes
) -> None:
    """Servers of the S3 protocol from before 2025 refuse the checksums that Amazon's client sends."""
    for method in ("PUT", "POST"):
        proxy.schedule_fault(method, "*", ChecksumsUnsupported(), None)
    for data in (b"", DATA, multipart_data):
        assert read_object(write_object(f"{folder}/{len(data)}", data)) == data


@pytest.mark.parametrize("fault", [ServiceUnavailable(), ConnectionReset(0)], ids=["busy", "reset"])
def test_listing_and_removing_are_retried(proxy: ObjectStoreProxy, folder: str, fault: StoreFault) -> None:
    path = write_object(f"{folder}/a")
    for method in ("GET", "HEAD", "POST" if folder.startswith("az") else "DELETE"):
        proxy.schedule_fault(method, "*", fault)
    assert FILES.list_names(folder) == ["a"]
    assert FILES.exists(path)
    FILES.remove(path)
    assert FILES.list_names(folder) == []
    write_object(path)
    for list_folder in (FILES.list_names, FILES.walk, FILES.is_folder, lambda url: FILES.glob(f"{url}/**")):
        proxy.schedule_fault("GET", "*", TruncatedBody(10))
        assert list_folder(folder)
    proxy.schedule_fault("GET", "*", fault, times=None)
    with pytest.raises(TransientStorageError):
        FILES.list_names(folder)


def test_run_stopped_at_any_write_resumes_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every write, an existing manifest lists only files with the recorded SHA-256."""
    out = "mem://bucket/stopped"
    source = Path(shutil.copytree(PUBMED_SAMPLE, tmp_path / "source"))
    update_path = (source / "pubmed26n0003.xml").rename(tmp_path / "later.xml")
    monkeypatch.setattr(retry_module, "STEP_RETRY_POLICY", RetryPolicy(max_attempts=1))
    MEMORY_OBJECTS.clear()

    def run_pipeline(*options: str) -> int:
        arguments = ("--keep-dropped", "--dedup", "exact", "--input", str(source), "--output", out)
        return cli.main(["run", "pubmed_to_shards", "--workers", "1", *arguments, *options])

    def read_published_objects() -> dict[str, bytes]:
        return {
            path: remove_run_facts(path.removeprefix(f"{out}/"), data)
            for path, data in MEMORY_OBJECTS.items()
            if "/.bioshards/" not in path
        }

    assert run_pipeline() == 0
    before = dict(MEMORY_OBJECTS)
    update_path.rename(source / "pubmed26n0003.xml")
    write_numbers = itertools.count()
    stop_at = -1

    def check_and_maybe_stop() -> None:
        number = next(write_numbers)
        if 0 <= stop_at <= number:
            raise RuntimeError("stopped")
        if manifest := MEMORY_OBJECTS.get(f"{out}/manifest.json"):
            entries = json.loads(manifest)
            for entry in entries["outputs"] + entries["dropped"] + entries["duplicates"]:
                data = MEMORY_OBJECTS[f"{out}/{entry['file']}"]
                assert hashlib.sha256(data).hexdigest() == entry["sha256"]

    def checked(function: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            check_and_maybe_stop()
            result = function(*arguments, **options)
            check_and_maybe_stop()
            return result

        return call

    for name in ("put", "delete"):
        monkeypatch.setattr(obstore, name, checked(getattr(obstore, name)))
    assert run_pipeline() == 0
    expected, write_count = read_published_objects(), next(write_numbers)
    assert write_count > 50
    for stop_at in range(1, write_count, 11):
        MEMORY_OBJECTS.clear()
        MEMORY_OBJECTS.update(before)
        write_numbers = itertools.count()
        assert run_pipeline() == 1
        stop_at = -1
        assert run_pipeline("--force") == 0
        assert read_published_objects() == expected
