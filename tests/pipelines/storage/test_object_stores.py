"""Tests of ``RoutedStorage`` on gs://, s3:// and other Beam file systems: calls, range reads, failures.

The tests of gs:// and s3:// run against emulators behind an ``ObjectStoreProxy``, which injects faults and
counts requests.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, ClassVar

import pyarrow as pa
import pytest
from apache_beam.io.filesystem import FileMetadata, FileSystem
from apache_beam.options.pipeline_options import PipelineOptions
from botocore.exceptions import ClientError
from google.api_core.exceptions import NotFound
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, RefreshError
from google.cloud.storage import Blob
from google.cloud.storage.retry import DEFAULT_RETRY

from bioshards.corpus.errors import BadFileError, CredentialsError, TransientStorageError
from bioshards.corpus.output import lock
from bioshards.corpus.storage import checksums
from bioshards.corpus.storage import retry as retry_module
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.corpus.storage.retry import RetryPolicy, retry
from bioshards.corpus.storage.source_file import open_source
from bioshards.pipelines import cli
from bioshards.pipelines.storage import gcs, object_store, s3
from bioshards.pipelines.storage import routed as routed
from bioshards.pipelines.storage.probe import check_access
from bioshards.pipelines.storage.routed import RoutedStorage
from tests.support.cloud import store_emulators
from tests.support.cloud.object_store_proxy import (
    ChecksumsUnsupported,
    LostResponse,
    MissingUpload,
    ObjectStoreProxy,
    StoreFault,
    UploadReset,
)
from tests.support.paths import PUBMED_SAMPLE
from tests.support.servers.server_faults import ConnectionReset, ServiceUnavailable, Stall, TruncatedBody

FILES = RoutedStorage()
UNPAUSED = RetryPolicy(max_attempts=4, initial_backoff=0)
DATA = random.Random(3).randbytes(300_000)


@pytest.fixture(scope="module", params=["gcs", "s3"])
def store_proxy(request: pytest.FixtureRequest) -> Iterator[ObjectStoreProxy]:
    with (
        getattr(store_emulators, f"run_{request.param}")() as emulated_store,
        ObjectStoreProxy(emulated_store) as proxy,
    ):
        yield proxy


@pytest.fixture
def proxy(store_proxy: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch) -> ObjectStoreProxy:
    """A store proxy, with short retries and small range reads in the clients."""
    for name, value in store_proxy.store.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(gcs, "DEFAULT_RETRY", DEFAULT_RETRY.with_delay(initial=0.01))
    monkeypatch.setattr(gcs, "GCS_RETRY_SECONDS", 1.0)
    monkeypatch.setattr(s3, "S3_MAX_ATTEMPTS", 2)
    monkeypatch.setattr(object_store, "FIRST_READ_BYTES", 1 << 14)
    monkeypatch.setattr(object_store, "MAX_READ_BYTES", 1 << 16)
    monkeypatch.setattr(retry_module, "STEP_RETRY_POLICY", UNPAUSED)
    routed.configure_stores(PipelineOptions(store_proxy.store.options))
    store_proxy.reset()
    return store_proxy


@pytest.fixture
def shorten_read_timeout(proxy: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time out reads after half a second; more attempts allow for a busy machine."""
    monkeypatch.setattr(gcs, "GCS_RETRY_SECONDS", 5.0)
    monkeypatch.setattr(s3, "S3_MAX_ATTEMPTS", 4)
    for module in (gcs, s3):
        monkeypatch.setattr(module, "STORE_READ_TIMEOUT_SECONDS", 0.5)
    routed.configure_stores(PipelineOptions(proxy.store.options))


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


def test_folders_are_derived_from_object_names(folder: str) -> None:
    for name in ("b.txt", "a.txt", "deep/c.txt", ".hidden/d.txt", "deep/.e", "deeper/f/g.txt"):
        write_object(f"{folder}/{name}", name.encode())
    write_object(f"{folder}-other/h.txt", b"")
    write_object(f"{folder}/empty/", b"")  # a folder marker, as some tools write it
    for name in (folder, f"{folder}/"):
        assert FILES.list_names(name) == ["a.txt", "b.txt"]
        found = [item.path.removeprefix(f"{folder}/") for item in FILES.walk(name)]
        assert found == ["a.txt", "b.txt", "deep/c.txt", "deeper/f/g.txt"]
        with_hidden = {item.path for item in FILES.walk(name, with_hidden_files=True)}
        assert with_hidden - {item.path for item in FILES.walk(name)} == {f"{folder}/deep/.e"}
        assert FILES.is_folder(name)
    assert not FILES.list_names(f"{folder}/none")
    assert not FILES.walk(f"{folder}/none")
    assert not FILES.is_folder(f"{folder}/a.txt")
    assert not FILES.is_folder(f"{folder}/a")
    assert FILES.exists(f"{folder}/a.txt")
    assert not FILES.exists(f"{folder}/a")
    assert not FILES.exists(folder)


def test_names_with_repeated_slashes(folder: str) -> None:
    """Scripts that join paths carelessly make such names."""
    for name in ("a.txt", "/b.txt", "deep//c.txt"):
        write_object(f"{folder}/{name}", b"")
    for name in (folder, f"{folder}/", f"{folder}//"):
        found = [item.path.removeprefix(f"{folder}/") for item in FILES.walk(name)]
        assert found == ["/b.txt", "a.txt", "deep//c.txt"]
        assert FILES.list_names(name) == ["a.txt"]


def test_patterns_are_those_of_local_files(folder: str) -> None:
    names = ("a.xml", "b.xml", "b.txt", "in/c.xml", "in/it/d.xml", "in[1]/e.xml", "in[1]/f*.xml", "1*/g.xml")
    for name in names:
        write_object(f"{folder}/{name}", name.encode())

    def glob_names(pattern: str) -> list[str]:
        return [item.path.removeprefix(f"{folder}/") for item in FILES.glob(f"{folder}/{pattern}")]

    assert glob_names("*.xml") == ["a.xml", "b.xml"]
    assert glob_names("[ab].*") == ["a.xml", "b.txt", "b.xml"]
    assert glob_names("?.txt") == ["b.txt"]
    assert glob_names("i*/*.xml") == ["in/c.xml", "in[1]/e.xml", "in[1]/f*.xml"]
    assert glob_names("**/d.xml") == ["in/it/d.xml"]
    # An object whose name equals the pattern matches literally.
    assert glob_names("in[1]/e.xml") == ["in[1]/e.xml"]
    assert glob_names("in[1]/f*.xml") == ["in[1]/f*.xml"]
    assert glob_names("none.xml") == glob_names("none/*.xml") == []
    assert FILES.list_names(f"{folder}/in[1]") == ["e.xml", "f*.xml"]
    assert [item.size for item in FILES.walk(f"{folder}/1*")] == [8]


def test_a_pattern_matches_as_on_a_local_disk(folder: str, tmp_path: Path) -> None:
    """``**`` also matches no folder; hidden names match only explicit patterns."""
    for name in ("a.xml", "in/b.xml", "in/it/d.xml", ".h.xml", ".hidden/c.xml", "in/.records/b.xml"):
        write_object(f"{folder}/{name}", b"")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def glob_names(storage: LocalStorage, root: str, pattern: str) -> list[str]:
        return [item.path.removeprefix(f"{root}/") for item in storage.glob(f"{root}/{pattern}")]

    for pattern in (
        "**/*.xml",
        "**",
        "*",
        "in/**",
        "**.xml",
        "*/*.xml",
        "**/b.xml",
        "[!x]*",
        ".h*/*",
        "**/in/**/*",
    ):
        expected = glob_names(LocalStorage(), str(tmp_path), pattern)
        assert expected
        assert glob_names(FILES, folder, pattern) == expected


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


@pytest.mark.parametrize("size", [0, 1, 16_383, 16_384, 16_385, 16_384 + 65_536, 300_000])
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


def test_store_that_ignores_ranges_is_refused() -> None:
    """Every response would be the whole object, so records would be read repeatedly."""
    data = bytes(object_store.FIRST_READ_BYTES + 1)
    with pytest.raises(TransientStorageError, match="more than the range"):
        object_store.open_ranged(lambda start, count: data, lambda: len(data))


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
    monkeypatch.setattr(object_store, "SEEK_READ_BYTES", 1 << 14)
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
    assert proxy.count_requests()["PUT"] == 0  # no upload was started


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
    folder: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new connection for each call costs two round trips and logs a warning."""
    monkeypatch.setattr(
        retry_module, "STEP_RETRY_POLICY", RetryPolicy(max_attempts=6, initial_backoff=0.4, max_backoff=0.4)
    )  # the emulator refuses some of so many connections
    parallel_for_each(FILES, lambda number: retry(lambda: write_object(f"{folder}/{number}", b"")), range(60))
    assert len(FILES.list_names(folder)) == 60
    assert "Connection pool is full" not in caplog.text


TRANSIENT_FAULTS = {
    "busy": ServiceUnavailable(),
    "too many": ServiceUnavailable(status=429),
    "reset while it answers": ConnectionReset(after_bytes=1000),
    "ended too soon": TruncatedBody(after_bytes=1000),
}
STALLS = {"silent": Stall(0, 0.8), "silent in the middle": Stall(1000, 0.8)}
READ_REQUESTS = ("GET", "*reading*")
WRITE_REQUESTS = {"gs": ("POST", "/upload/*"), "s3": ("PUT", "*ing")}


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
    path = f"{folder}/reading"
    proxy.schedule_fault(*WRITE_REQUESTS[folder[:2]], STALLS["silent"])
    write_object(path)
    proxy.schedule_fault(*READ_REQUESTS, fault)
    assert read_object(path) == DATA
    assert proxy.pending_fault_count() == 0


def test_seek_to_the_end_of_a_replaced_object_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The client is patched, because the emulator has no generations."""

    def answer_first_read(blob: Blob, **_: object) -> bytes:
        blob._properties["generation"] = "1"
        return bytes(object_store.FIRST_READ_BYTES)

    def raise_not_found(*_: object, **__: object) -> None:
        raise NotFound("no such generation")  # type: ignore[no-untyped-call]

    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    monkeypatch.setattr(Blob, "download_as_bytes", answer_first_read)
    monkeypatch.setattr(Blob, "reload", raise_not_found)
    routed.configure_stores(PipelineOptions(["--no_auth"]))
    with FILES.open("gs://bucket/a") as file, pytest.raises(TransientStorageError, match="replaced or lost"):
        file.seek(0, io.SEEK_END)


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


def test_denied_access_is_not_retried(proxy: ObjectStoreProxy, folder: str) -> None:
    path = write_object(f"{folder}/reading")
    proxy.schedule_fault(*READ_REQUESTS, ServiceUnavailable(status=403), times=None)
    with pytest.raises(PermissionError, match=proxy.store.url):
        FILES.open(path)
    assert proxy.count_requests()["GET"] == 1
    with pytest.raises(BadFileError), open_source(FILES, path):
        pass


def test_rejected_credentials_make_no_bad_file(proxy: ObjectStoreProxy, folder: str) -> None:
    """The credentials may have expired; the object may be valid."""
    path = write_object(f"{folder}/reading")
    proxy.schedule_fault(*READ_REQUESTS, ServiceUnavailable(status=401), times=None)
    with pytest.raises(PermissionError, match="credentials"):
        FILES.open(path)
    with pytest.raises(TransientStorageError), open_source(FILES, path):
        pass


@pytest.mark.parametrize("code", ["ExpiredToken", "RequestTimeTooSkewed", "TokenRefreshRequired"])
def test_s3_credential_error_codes_make_no_bad_file(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token may expire or a clock drift during a run; all files would be reported as bad."""

    def raise_client_error(*_: object, **__: object) -> None:
        response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 403}}
        raise ClientError(response, "GetObject")

    store = s3.S3Store(PipelineOptions(["--s3_access_key_id=x", "--s3_secret_access_key=y"]))
    monkeypatch.setattr(store._client, "get_object", raise_client_error)
    with pytest.raises(CredentialsError, match=code):
        store.open("s3://bucket/a")


@pytest.mark.parametrize("error", [RefreshError, DefaultCredentialsError])
def test_failed_credential_refresh_makes_no_bad_file(
    error: type[GoogleAuthError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error(*_: object, **__: object) -> None:
        raise error("no answer")

    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setattr("google.auth.default", raise_error)
    monkeypatch.setattr(Blob, "download_as_bytes", raise_error)
    routed.configure_stores(PipelineOptions(["--no_auth"] if error is RefreshError else []))
    with (
        pytest.raises(TransientStorageError, match="gcloud auth"),
        open_source(FILES, "gs://bucket/file"),
    ):
        pass


def test_two_versions_of_an_object_are_never_read_as_one(
    folder: str, proxy: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proxy, "emulate_generations", True)
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
    proxy.schedule_fault(*WRITE_REQUESTS[folder[:2]], fault)
    path = write_object(f"{folder}/writing")
    assert proxy.pending_fault_count() == 0
    assert read_object(path) == DATA


def test_lasting_write_failure_leaves_the_old_object(proxy: ObjectStoreProxy, folder: str) -> None:
    path = write_object(f"{folder}/writing", b"before")
    proxy.schedule_fault(*WRITE_REQUESTS[folder[:2]], UploadReset(10_000), times=None)
    with pytest.raises(TransientStorageError, match="writing"):
        write_object(path)
    proxy.reset()
    assert read_object(path) == b"before"
    assert FILES.list_names(folder) == ["writing"]


def count_pending_uploads(proxy: ObjectStoreProxy) -> int:
    """Count multipart uploads that were neither completed nor aborted; S3 bills for their parts."""
    store = routed.get_store(proxy.store.url)
    if not isinstance(store, s3.S3Store):
        return 0
    bucket = object_store.split_path(proxy.store.url)[0]
    return len(store._client.list_multipart_uploads(Bucket=bucket).get("Uploads", ()))


@pytest.fixture
def multipart_data(proxy: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Data of more than one upload part (S3) or chunk (GCS)."""
    for module in (gcs, s3):
        monkeypatch.setattr(module, "UPLOAD_PART_BYTES", 5 << 20)
    return random.Random(4).randbytes((9 if proxy.store.url.startswith("gs:") else 6) << 20)


def test_lost_multipart_upload_is_restarted(
    proxy: ObjectStoreProxy, folder: str, multipart_data: bytes
) -> None:
    upload_request = ("PUT", "/upload/*upload_id*") if folder.startswith("gs") else ("POST", "*uploadId*")
    for times in (1, 2):
        proxy.schedule_fault(*upload_request, MissingUpload(), times)
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
    # S3's parts are sent at the same time, with one retry each: the faults are in different parts.
    faults: tuple[StoreFault, ...] = (UploadReset(1 << 20), ServiceUnavailable())
    for part, fault in enumerate(faults, 1):
        proxy.schedule_fault("PUT", f"*partNumber={part}*" if folder.startswith("s3") else "/upload/*", fault)
    assert read_object(write_object(f"{folder}/large", multipart_data)) == multipart_data
    assert proxy.pending_fault_count() == 0


@pytest.mark.parametrize("store_proxy", ["s3"], indirect=True)
def test_server_without_new_checksums_works_with_the_documented_setting(
    proxy: ObjectStoreProxy, folder: str, multipart_data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the setting of README the first write fails and is not retried."""
    for method in ("PUT", "POST"):
        proxy.schedule_fault(method, "*", ChecksumsUnsupported(), None)
    with pytest.raises(OSError, match=r"the store refuses .*: .*not implemented") as raised:
        write_object(f"{folder}/a")
    assert not isinstance(raised.value, TransientStorageError)
    assert proxy.count_requests()["PUT"] == 1
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
    routed.configure_stores(PipelineOptions(proxy.store.options))
    for data in (b"", DATA, multipart_data):
        assert read_object(write_object(f"{folder}/{len(data)}", data)) == data


def test_pending_uploads_of_killed_runs_are_removed(proxy: ObjectStoreProxy, folder: str) -> None:
    store = routed.get_store(folder)
    if isinstance(store, s3.S3Store):
        bucket, name = object_store.split_path(f"{folder}/large")
        store._client.create_multipart_upload(Bucket=bucket, Key=name)
        store._client.create_multipart_upload(Bucket=bucket, Key=f"{name}-elsewhere/large")
        assert count_pending_uploads(proxy) == 2
    FILES.remove_temporaries(folder)
    assert count_pending_uploads(proxy) == (1 if isinstance(store, s3.S3Store) else 0)
    FILES.remove_temporaries(f"{folder}/large-elsewhere")
    assert count_pending_uploads(proxy) == 0


def test_listing_and_removing_are_retried(proxy: ObjectStoreProxy, folder: str) -> None:
    path = write_object(f"{folder}/a")
    for method in ("GET", "HEAD", "DELETE"):
        proxy.schedule_fault(method, "*", ServiceUnavailable())
    assert FILES.list_names(folder) == ["a"]
    assert FILES.exists(path)
    FILES.remove(path)
    assert FILES.list_names(folder) == []
    proxy.schedule_fault("GET", "*", ServiceUnavailable(), times=None)
    with pytest.raises(TransientStorageError):
        FILES.list_names(folder)


def test_only_transient_storage_errors_are_retried() -> None:
    calls: list[int] = []

    def fail_first_calls(failures: int, error: OSError) -> int:
        calls.append(len(calls))
        if len(calls) <= failures:
            raise error
        return len(calls)

    retry_module.STEP_RETRY_POLICY, before = UNPAUSED, retry_module.STEP_RETRY_POLICY
    try:
        assert retry(lambda: fail_first_calls(3, TransientStorageError("busy"))) == 4
        calls.clear()
        with pytest.raises(TransientStorageError):
            retry(lambda: fail_first_calls(4, TransientStorageError("busy")))
        assert len(calls) == 4
        calls.clear()
        with pytest.raises(PermissionError):
            retry(lambda: fail_first_calls(1, PermissionError("no")))
        assert len(calls) == 1
    finally:
        retry_module.STEP_RETRY_POLICY = before


def test_local_temporary_files_are_removed(tmp_path: object) -> None:
    storage = LocalStorage()
    with storage.write(f"{tmp_path}/.tmp-1") as file:
        file.write(b"half")
    with storage.write(f"{tmp_path}/a") as file:
        file.write(b"whole")
    storage.remove_temporaries(str(tmp_path))
    assert storage.list_names(str(tmp_path)) == ["a"]


# Other stores, by Beam's file systems


class _MemoryFile(io.BytesIO):
    """A file that becomes visible when it is closed, as in Beam's object stores."""

    def __init__(self, objects: dict[str, bytes], path: str) -> None:
        super().__init__()
        self._there, self._path = objects, path

    def close(self) -> None:
        if not self.closed:
            self._there[self._path] = self.getvalue()
        super().close()


class MemoryFileSystem(FileSystem):  # type: ignore[misc]  # Beam has no types
    """The memory:// file system, which has no folders."""

    objects: ClassVar[dict[str, bytes]] = {}
    before_and_after: ClassVar[Callable[[], None]] = lambda: None

    @classmethod
    def scheme(cls) -> str:
        return "memory"

    def has_dirs(self) -> bool:
        return False

    def _list(self, prefix: str) -> Iterator[FileMetadata]:
        yield from (
            FileMetadata(path, len(data), 1.0)
            for path, data in self.objects.items()
            if path.startswith(prefix)
        )

    def create(self, path: str, *_: object, **__: object) -> BinaryIO:
        return _MemoryFile(self.objects, path)

    def open(self, path: str, *_: object, **__: object) -> BinaryIO:
        return io.BytesIO(self.objects[path])

    def rename(self, old: list[str], new: list[str]) -> None:
        with self._changing():
            self.objects.update(
                {new_path: self.objects.pop(old_path) for old_path, new_path in zip(old, new, strict=True)}
            )

    def exists(self, path: str) -> bool:
        return path in self.objects

    def delete(self, paths: list[str]) -> None:
        with self._changing():
            for path in paths:
                del self.objects[path]

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        MemoryFileSystem.before_and_after()
        yield
        MemoryFileSystem.before_and_after()

    checksum = copy = join = last_updated = metadata = mkdirs = size = split = None


def test_storage_calls_on_another_beam_file_system() -> None:
    folder = "memory://bucket/out"
    check_access([folder])
    for name in ("a b.txt", "a b.txt", "b*.txt", "in/c.txt", "in/.hidden/d.txt", "in.txt"):
        write_object(f"{folder}/{name}", name.encode())
    MemoryFileSystem.objects[f"{folder}/.tmp-killed"] = b""
    assert FILES.list_names(f"{folder}/") == [".tmp-killed", "a b.txt", "b*.txt", "in.txt"]
    FILES.remove_temporaries(folder)
    assert [item.path.removeprefix(f"{folder}/") for item in FILES.walk(folder)] == [
        "a b.txt",
        "b*.txt",
        "in.txt",
        "in/c.txt",
    ]
    assert [item.path for item in FILES.glob(f"{folder}/a b.txt")] == [f"{folder}/a b.txt"]
    assert read_object(f"{folder}/b*.txt") == b"b*.txt"
    with pytest.raises(ZeroDivisionError), FILES.write(f"{folder}/b*.txt") as file:
        file.write(bytes(1 // 0))
    with pytest.raises(FileNotFoundError):
        FILES.open(f"{folder}/b")
    FILES.remove(f"{folder}/b*.txt")
    FILES.remove(f"{folder}/b*.txt")
    assert FILES.exists(f"{folder}/in.txt")
    assert FILES.is_folder(f"{folder}/in")
    assert not FILES.exists(f"{folder}/in")
    assert sorted(MemoryFileSystem.objects) == [
        f"{folder}/{name}" for name in ("a b.txt", "in.txt", "in/.hidden/d.txt", "in/c.txt")
    ]


def test_run_stopped_at_any_write_resumes_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every write, an existing manifest lists only files with the recorded SHA-256."""
    out = "memory://bucket/stopped"
    source = Path(shutil.copytree(PUBMED_SAMPLE, tmp_path / "source"))
    update_path = (source / "pubmed26n0003.xml").rename(tmp_path / "later.xml")
    monkeypatch.setattr(lock, "LEASE_RENEWAL_SECONDS", 3600)
    monkeypatch.setattr(retry_module, "STEP_RETRY_POLICY", RetryPolicy(max_attempts=1))
    monkeypatch.setattr(MemoryFileSystem, "objects", {})

    def run_pipeline() -> int:
        arguments = ("--keep-dropped", "--dedup", "exact", "--input", str(source), "--output", out)
        return cli.main(["run", "pubmed_to_shards", "--workers", "1", *arguments])

    def read_published_objects() -> dict[str, object]:
        contents: dict[str, object] = {
            path: data for path, data in MemoryFileSystem.objects.items() if "/.bioshards/" not in path
        }
        manifest = json.loads(MemoryFileSystem.objects[f"{out}/manifest.json"])
        return {**contents, f"{out}/manifest.json": {**manifest, "run": None}}

    assert run_pipeline() == 0
    before = dict(MemoryFileSystem.objects)
    update_path.rename(source / "pubmed26n0003.xml")
    write_numbers = itertools.count()
    stop_at = -1

    def check_and_maybe_stop() -> None:
        number = next(write_numbers)
        if 0 <= stop_at <= number:
            raise RuntimeError("stopped")
        if manifest := MemoryFileSystem.objects.get(f"{out}/manifest.json"):
            entries = json.loads(manifest)
            for entry in entries["outputs"] + entries["dropped"] + entries["duplicates"]:
                data = MemoryFileSystem.objects[f"{out}/{entry['file']}"]
                assert hashlib.sha256(data).hexdigest() == entry["sha256"]

    monkeypatch.setattr(MemoryFileSystem, "before_and_after", check_and_maybe_stop)
    assert run_pipeline() == 0
    expected, write_count = read_published_objects(), next(write_numbers)
    assert write_count > 50
    for stop_at in range(1, write_count, 11):
        MemoryFileSystem.objects = dict(before)
        write_numbers = itertools.count()
        assert run_pipeline() == 1
        stop_at = -1
        assert run_pipeline() == 0
        assert read_published_objects() == expected
