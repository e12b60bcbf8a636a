"""gs:// and s3:// as the rest sees them, by the clouds' own clients: calls, ranges, failures of every kind.

Every test here runs against both, with something in between that makes faults and counts requests.
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
from bioshards.corpus.storage import retry as again_module
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.corpus.storage.retry import retry
from bioshards.corpus.storage.source_file import open_source
from bioshards.pipelines import cli
from bioshards.pipelines.storage import gcs, object_store, s3
from bioshards.pipelines.storage import routed as storage
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
DATA = random.Random(3).randbytes(300_000)


@pytest.fixture(scope="module", params=["gcs", "s3"])
def running(request: pytest.FixtureRequest) -> Iterator[ObjectStoreProxy]:
    with getattr(store_emulators, f"run_{request.param}")() as behind, ObjectStoreProxy(behind) as way:
        yield way


@pytest.fixture
def way(running: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch) -> ObjectStoreProxy:
    """A store, its clients' patience cut short."""
    for name, value in running.store.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(gcs, "DEFAULT_RETRY", DEFAULT_RETRY.with_delay(initial=0.01))
    monkeypatch.setattr(gcs, "GCS_RETRY_SECONDS", 1.0)
    monkeypatch.setattr(s3, "S3_MAX_ATTEMPTS", 2)
    monkeypatch.setattr(object_store, "FIRST_READ_BYTES", 1 << 14)
    monkeypatch.setattr(object_store, "MAX_READ_BYTES", 1 << 16)
    monkeypatch.setattr(again_module, "STEP_BACKOFF_SECONDS", (0.0, 0.0, 0.0))
    storage.configure_stores(PipelineOptions(running.store.options))
    running.reset()
    return running


@pytest.fixture
def impatient(way: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half a second of silence is a failure; on a busy machine it may be one of the machine's."""
    monkeypatch.setattr(gcs, "GCS_RETRY_SECONDS", 5.0)
    monkeypatch.setattr(s3, "S3_MAX_ATTEMPTS", 4)
    for module in (gcs, s3):
        monkeypatch.setattr(module, "STORE_READ_TIMEOUT_SECONDS", 0.5)
    storage.configure_stores(PipelineOptions(way.store.options))


@pytest.fixture
def folder(way: ObjectStoreProxy, request: pytest.FixtureRequest) -> str:
    """A folder of a test's own."""
    return f"{way.store.url}/{request.node.originalname}"


def written(path: str, data: bytes = DATA) -> str:
    with FILES.write(path) as file:
        file.write(data)
    return path


def read(path: str) -> bytes:
    with FILES.open(path) as file:
        return file.read()


def test_folders_are_what_names_say(folder: str) -> None:
    for name in ("b.txt", "a.txt", "deep/c.txt", ".hidden/d.txt", "deep/.e", "deeper/f/g.txt"):
        written(f"{folder}/{name}", name.encode())
    written(f"{folder}-other/h.txt", b"")
    written(f"{folder}/empty/", b"")  # as some tools mark a folder
    for name in (folder, f"{folder}/"):
        assert FILES.list_names(name) == ["a.txt", "b.txt"]
        found = [item.path.removeprefix(f"{folder}/") for item in FILES.walk(name)]
        assert found == ["a.txt", "b.txt", "deep/c.txt", "deeper/f/g.txt"]
        assert FILES.is_folder(name)
    assert not FILES.list_names(f"{folder}/none")
    assert not FILES.walk(f"{folder}/none")
    assert not FILES.is_folder(f"{folder}/a.txt")
    assert not FILES.is_folder(f"{folder}/a")
    assert FILES.exists(f"{folder}/a.txt")
    assert not FILES.exists(f"{folder}/a")
    assert not FILES.exists(folder)


def test_a_folder_without_a_name_is_one_too(folder: str) -> None:
    """As scripts make them that put a slash too many between."""
    for name in ("a.txt", "/b.txt", "deep//c.txt"):
        written(f"{folder}/{name}", b"")
    for name in (folder, f"{folder}/", f"{folder}//"):
        found = [item.path.removeprefix(f"{folder}/") for item in FILES.walk(name)]
        assert found == ["/b.txt", "a.txt", "deep//c.txt"]
        assert FILES.list_names(name) == ["a.txt"]


def test_patterns_are_those_of_local_files(folder: str) -> None:
    names = ("a.xml", "b.xml", "b.txt", "in/c.xml", "in/it/d.xml", "in[1]/e.xml", "in[1]/f*.xml", "1*/g.xml")
    for name in names:
        written(f"{folder}/{name}", name.encode())

    def found(pattern: str) -> list[str]:
        return [item.path.removeprefix(f"{folder}/") for item in FILES.glob(f"{folder}/{pattern}")]

    assert found("*.xml") == ["a.xml", "b.xml"]
    assert found("[ab].*") == ["a.xml", "b.txt", "b.xml"]
    assert found("?.txt") == ["b.txt"]
    assert found("i*/*.xml") == ["in/c.xml", "in[1]/e.xml", "in[1]/f*.xml"]
    assert found("**/d.xml") == ["in/it/d.xml"]
    # What is there by its very name is that, whatever marks are in it.
    assert found("in[1]/e.xml") == ["in[1]/e.xml"]
    assert found("in[1]/f*.xml") == ["in[1]/f*.xml"]
    assert found("none.xml") == found("none/*.xml") == []
    assert FILES.list_names(f"{folder}/in[1]") == ["e.xml", "f*.xml"]
    assert [item.size for item in FILES.walk(f"{folder}/1*")] == [8]


def test_a_pattern_finds_what_it_finds_on_a_disk(folder: str, tmp_path: Path) -> None:
    """``**`` is no folder, too, and what is hidden is not found unless it is named."""
    for name in ("a.xml", "in/b.xml", "in/it/d.xml", ".h.xml", ".hidden/c.xml", "in/.records/b.xml"):
        written(f"{folder}/{name}", b"")
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def found(storage: LocalStorage, root: str, pattern: str) -> list[str]:
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
        here = found(LocalStorage(), str(tmp_path), pattern)
        assert here
        assert found(FILES, folder, pattern) == here


def test_a_bucket_is_a_folder(way: ObjectStoreProxy) -> None:
    written(f"{way.store.url}/at-the-top.txt")
    for url in (way.store.url, f"{way.store.url}/"):
        assert FILES.is_folder(url)
        assert "at-the-top.txt" in FILES.list_names(url)
        assert f"{way.store.url}/at-the-top.txt" in [found.path for found in FILES.walk(url)]
    assert not FILES.exists(way.store.url)
    assert [found.size for found in FILES.glob(f"{way.store.url}/at-*.txt")] == [len(DATA)]


def test_a_stamp_changes_when_an_object_is_written_anew(folder: str) -> None:
    path = written(f"{folder}/a", b"old")
    [before] = FILES.glob(path)
    written(path, b"new")
    [after] = FILES.glob(path)
    assert before.size == after.size == 3
    assert before.stamp != after.stamp
    assert FILES.walk(folder) == [after]
    assert read(path) == b"new"
    FILES.remove(path)
    FILES.remove(path)
    assert not FILES.exists(path)


@pytest.mark.parametrize("size", [0, 1, 16_383, 16_384, 16_385, 16_384 + 65_536, 300_000])
def test_an_object_is_read_to_its_end_and_no_further(way: ObjectStoreProxy, folder: str, size: int) -> None:
    path = written(f"{folder}/{size}", DATA[:size])
    way.reset()
    assert read(path) == DATA[:size]
    assert way.count_requests().total() <= 2 + size / 65_536
    with FILES.open(path) as file:
        assert b"".join(iter(lambda: file.read(1000), b"")) == DATA[:size]
        assert file.read(1) == b""
        assert file.seek(-min(size, 5), io.SEEK_END) == max(0, size - 5)
        assert file.read() == DATA[:size][-5:]
        assert file.seek(size + 10) == size + 10
        assert file.read() == b""
    with FILES.open(path) as file:  # nor is the end where nothing is any more
        assert file.seek(size + 20_000) == size + 20_000
        assert file.read() == file.read() == b""
        assert file.seek(0, io.SEEK_END) == size


def test_a_store_that_knows_no_ranges_is_not_read() -> None:
    """Each answer would be the whole object, and of a gzipped file its records would come again and again."""
    data = bytes(object_store.FIRST_READ_BYTES + 1)
    with pytest.raises(TransientStorageError, match="more than the range"):
        object_store.open_ranged(lambda start, count: data, lambda: len(data))


def test_an_object_is_read_anywhere(way: ObjectStoreProxy, folder: str) -> None:
    path = written(f"{folder}/a")
    chance = random.Random(5)
    with FILES.open(path) as file, io.BytesIO(DATA) as other:
        for _ in range(60):
            offset, whence = chance.choice([(chance.randrange(300_100), 0), (-chance.randrange(9_000), 2)])
            assert file.seek(offset, whence) == other.seek(offset, whence) == file.tell()
            count = chance.choice([1, 10, 5_000, 100_000])
            assert file.read(count) == other.read(count)


def test_arrow_reads_one_batch_of_many_without_the_others(
    way: ObjectStoreProxy, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "SEEK_READ_BYTES", 1 << 14)
    batches = [pa.record_batch([pa.array([number] * 2000)], names=["n"]) for number in range(100)]
    path = f"{folder}/batches.arrow"
    with FILES.write(path) as out, pa.ipc.new_file(pa.PythonFile(out, "w"), batches[0].schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
    way.reset()
    with FILES.open(path) as file, pa.ipc.open_file(file) as reader:
        assert reader.get_batch(70) == batches[70]
    assert way.count_requests()["GET"] <= 4
    assert way.bytes_read < 100_000 < FILES.glob(path)[0].size


def test_what_is_not_there_is_said_when_it_is_opened(folder: str) -> None:
    with pytest.raises(FileNotFoundError, match="none"):
        FILES.open(f"{folder}/none")
    with pytest.raises(FileNotFoundError):
        FILES.list_names(f"{folder.partition('://')[0]}://no-such-bucket/none")


def test_nothing_is_seen_of_what_was_not_written_to_its_end(way: ObjectStoreProxy, folder: str) -> None:
    def write() -> None:
        with FILES.write(f"{folder}/a") as file:
            file.write(DATA)
            raise OSError("a reader has failed")

    with pytest.raises(OSError, match="a reader has failed"):
        write()
    with FILES.open_resumable(f"{folder}/b", "v1") as part:
        part.write(DATA)
    assert FILES.list_names(folder) == []
    assert way.count_requests()["PUT"] == 0  # the store has not even heard of it


def test_one_small_object_costs_one_request(way: ObjectStoreProxy, folder: str) -> None:
    path = written(f"{folder}/a", b"small")
    assert read(path) == b"small"
    assert way.count_requests() == {"PUT": 1, "GET": 1}
    way.reset()
    FILES.exists(path)
    FILES.list_names(folder)
    FILES.remove(path)
    assert way.count_requests() == {"HEAD": 1, "LIST": 1, "DELETE": 1}


def test_connections_are_kept_for_all_threads(
    folder: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new one for each call would be two more round trips, and a warning on people's screens."""
    monkeypatch.setattr(
        again_module, "STEP_BACKOFF_SECONDS", (0.2,) * 5
    )  # an emulator lets some of so many wait outside
    parallel_for_each(FILES, lambda number: retry(lambda: written(f"{folder}/{number}", b"")), range(60))
    assert len(FILES.list_names(folder)) == 60
    assert "Connection pool is full" not in caplog.text


MOMENTARY = {
    "busy": ServiceUnavailable(),
    "too many": ServiceUnavailable(status=429),
    "reset while it answers": ConnectionReset(after_bytes=1000),
    "ended too soon": TruncatedBody(after_bytes=1000),
}
SILENT = {"silent": Stall(0, 0.8), "silent in the middle": Stall(1000, 0.8)}
READ = ("GET", "*reading*")
WRITE = {"gs": ("POST", "/upload/*"), "s3": ("PUT", "*ing")}


@pytest.mark.parametrize("fault", MOMENTARY.values(), ids=list(MOMENTARY))
def test_a_reader_does_not_hear_of_a_momentary_failure(
    way: ObjectStoreProxy, folder: str, fault: StoreFault
) -> None:
    path = written(f"{folder}/reading")
    way.schedule_fault(*READ, fault)
    assert read(path) == DATA
    assert way.pending_fault_count() == 0


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("fault", SILENT.values(), ids=list(SILENT))
def test_a_silent_store_is_asked_again(way: ObjectStoreProxy, folder: str, fault: StoreFault) -> None:
    path = f"{folder}/reading"
    way.schedule_fault(*WRITE[folder[:2]], SILENT["silent"])
    written(path)
    way.schedule_fault(*READ, fault)
    assert read(path) == DATA
    assert way.pending_fault_count() == 0


def test_an_object_that_was_replaced_has_no_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Google's store knows a generation no more; the emulator knows none."""

    def first(blob: Blob, **_: object) -> bytes:
        blob._properties["generation"] = "1"
        return bytes(object_store.FIRST_READ_BYTES)

    def gone(*_: object, **__: object) -> None:
        raise NotFound("no such generation")  # type: ignore[no-untyped-call]

    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:1")
    monkeypatch.setattr(Blob, "download_as_bytes", first)
    monkeypatch.setattr(Blob, "reload", gone)
    storage.configure_stores(PipelineOptions(["--no_auth"]))
    with FILES.open("gs://bucket/a") as file, pytest.raises(TransientStorageError, match="replaced or lost"):
        file.seek(0, io.SEEK_END)


@pytest.mark.parametrize("fault", [ServiceUnavailable(), TruncatedBody(1000)], ids=["busy", "short"])
def test_a_lasting_failure_has_a_name_of_its_own(
    way: ObjectStoreProxy, folder: str, fault: StoreFault
) -> None:
    """It is the store's, also in the middle of a file that Arrow or a checksum reads: never a bad file."""
    path = written(f"{folder}/reading")
    with FILES.open(path) as file:
        way.schedule_fault(*READ, fault, times=None)
        with pytest.raises(TransientStorageError, match="reading"):
            file.read()
    with pytest.raises(TransientStorageError), open_source(FILES, path) as file:
        checksums.md5_of_file(file)


def test_arrow_hands_on_the_stores_failure(way: ObjectStoreProxy, folder: str) -> None:
    table = pa.table({"n": list(range(100_000))})
    path = f"{folder}/reading"
    with FILES.write(path) as out, pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table, max_chunksize=1000)
    with FILES.open(path) as file:
        way.schedule_fault(*READ, ServiceUnavailable(), times=None)
        with pytest.raises(TransientStorageError), pa.ipc.open_stream(file) as reader:
            reader.read_all()


def test_what_is_not_allowed_is_no_momentary_failure(way: ObjectStoreProxy, folder: str) -> None:
    path = written(f"{folder}/reading")
    way.schedule_fault(*READ, ServiceUnavailable(status=403), times=None)
    with pytest.raises(PermissionError, match=way.store.url):
        FILES.open(path)
    assert way.count_requests()["GET"] == 1
    with pytest.raises(BadFileError), open_source(FILES, path):
        pass


def test_credentials_that_are_not_taken_make_no_bad_file(way: ObjectStoreProxy, folder: str) -> None:
    """They may have expired; the object may be as it should be."""
    path = written(f"{folder}/reading")
    way.schedule_fault(*READ, ServiceUnavailable(status=401), times=None)
    with pytest.raises(PermissionError, match="credentials"):
        FILES.open(path)
    with pytest.raises(TransientStorageError), open_source(FILES, path):
        pass


@pytest.mark.parametrize("code", ["ExpiredToken", "RequestTimeTooSkewed", "TokenRefreshRequired"])
def test_amazon_names_what_is_wrong_with_credentials_and_it_is_no_bad_file(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token may expire, or a clock go wrong, in the middle of a run: every file would be a bad one."""

    def refused(*_: object, **__: object) -> None:
        answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": 403}}
        raise ClientError(answer, "GetObject")

    store = s3.S3Store(PipelineOptions(["--s3_access_key_id=x", "--s3_secret_access_key=y"]))
    monkeypatch.setattr(store._client, "get_object", refused)
    with pytest.raises(CredentialsError, match=code):
        store.open("s3://bucket/a")


@pytest.mark.parametrize("error", [RefreshError, DefaultCredentialsError])
def test_a_machine_without_an_answer_on_its_credentials_makes_no_bad_file(
    error: type[GoogleAuthError], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object, **__: object) -> None:
        raise error("no answer")

    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setattr("google.auth.default", none)
    monkeypatch.setattr(Blob, "download_as_bytes", none)
    storage.configure_stores(PipelineOptions(["--no_auth"] if error is RefreshError else []))
    with (
        pytest.raises(TransientStorageError, match="gcloud auth"),
        open_source(FILES, "gs://bucket/file"),
    ):
        pass


def test_two_versions_of_an_object_are_never_read_as_one(
    folder: str, way: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way, "emulate_generations", True)
    path = written(f"{folder}/a")
    with FILES.open(path) as file:
        first = file.read(10)
        written(path, bytes(300_000))
        with pytest.raises(TransientStorageError):
            file.read()
    assert first == DATA[:10]
    with FILES.open(path) as file:
        assert file.read() == bytes(300_000)


BROKEN = {
    "busy": ServiceUnavailable(),
    "broken off": UploadReset(after_bytes=10_000),
    "done but not said": LostResponse(),
}


@pytest.mark.parametrize("fault", BROKEN.values(), ids=list(BROKEN))
def test_a_write_that_fails_is_done_again(way: ObjectStoreProxy, folder: str, fault: StoreFault) -> None:
    way.schedule_fault(*WRITE[folder[:2]], fault)
    path = written(f"{folder}/writing")
    assert way.pending_fault_count() == 0
    assert read(path) == DATA


def test_a_write_that_goes_on_failing_leaves_what_was_there(way: ObjectStoreProxy, folder: str) -> None:
    path = written(f"{folder}/writing", b"before")
    way.schedule_fault(*WRITE[folder[:2]], UploadReset(10_000), times=None)
    with pytest.raises(TransientStorageError, match="writing"):
        written(path)
    way.reset()
    assert read(path) == b"before"
    assert FILES.list_names(folder) == ["writing"]


def parts_left(way: ObjectStoreProxy) -> int:
    """Uploads begun and not ended, whose parts S3 has billed ever since."""
    store = storage.get_store(way.store.url)
    if not isinstance(store, s3.S3Store):
        return 0
    bucket = object_store.split_path(way.store.url)[0]
    return len(store._client.list_multipart_uploads(Bucket=bucket).get("Uploads", ()))


@pytest.fixture
def in_parts(way: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """An object that is larger than what is put at once: parts of S3's smallest size, chunks of Google's."""
    for module in (gcs, s3):
        monkeypatch.setattr(module, "UPLOAD_PART_BYTES", 5 << 20)
    return random.Random(4).randbytes((9 if way.store.url.startswith("gs:") else 6) << 20)


def test_a_lost_upload_is_done_again(way: ObjectStoreProxy, folder: str, in_parts: bytes) -> None:
    lost = ("PUT", "/upload/*upload_id*") if folder.startswith("gs") else ("POST", "*uploadId*")
    for times in (1, 2):
        way.schedule_fault(*lost, MissingUpload(), times)
        with pytest.raises(TransientStorageError) if times == 1 else contextlib.nullcontext():
            if times == 1:
                written(f"{folder}/large", in_parts)
            else:
                retry(lambda: written(f"{folder}/large", in_parts))
        assert way.pending_fault_count() == 0
        assert FILES.exists(f"{folder}/large") is (times == 2)
        assert parts_left(way) == 0
    assert read(f"{folder}/large") == in_parts


def test_a_chunk_that_fails_is_sent_again(way: ObjectStoreProxy, folder: str, in_parts: bytes) -> None:
    way.schedule_fault("PUT", "*large*" if folder.startswith("s3") else "/upload/*", UploadReset(1 << 20))
    way.schedule_fault("PUT", "*large*" if folder.startswith("s3") else "/upload/*", ServiceUnavailable())
    assert read(written(f"{folder}/large", in_parts)) == in_parts
    assert way.pending_fault_count() == 0


@pytest.mark.parametrize("running", ["s3"], indirect=True)
def test_a_server_without_the_checksums_of_newer_clients_is_written_to_if_that_is_said(
    way: ObjectStoreProxy, folder: str, in_parts: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As README says it; where it is not said the first write fails, and nothing is asked again in vain."""
    for method in ("PUT", "POST"):
        way.schedule_fault(method, "*", ChecksumsUnsupported(), None)
    with pytest.raises(OSError, match=r"the store refuses .*: .*not implemented") as refused:
        written(f"{folder}/a")
    assert not isinstance(refused.value, TransientStorageError)
    assert way.count_requests()["PUT"] == 1
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
    storage.configure_stores(PipelineOptions(way.store.options))
    for data in (b"", DATA, in_parts):
        assert read(written(f"{folder}/{len(data)}", data)) == data


def test_what_a_killed_upload_has_left_is_swept(way: ObjectStoreProxy, folder: str) -> None:
    store = storage.get_store(folder)
    if isinstance(store, s3.S3Store):
        bucket, name = object_store.split_path(f"{folder}/large")
        store._client.create_multipart_upload(Bucket=bucket, Key=name)
        store._client.create_multipart_upload(Bucket=bucket, Key=f"{name}-elsewhere/large")
        assert parts_left(way) == 2
    FILES.remove_temporaries(folder)
    assert parts_left(way) == (1 if isinstance(store, s3.S3Store) else 0)
    FILES.remove_temporaries(f"{folder}/large-elsewhere")
    assert parts_left(way) == 0


def test_listing_and_removing_are_tried_again(way: ObjectStoreProxy, folder: str) -> None:
    path = written(f"{folder}/a")
    for method in ("GET", "HEAD", "DELETE"):
        way.schedule_fault(method, "*", ServiceUnavailable())
    assert FILES.list_names(folder) == ["a"]
    assert FILES.exists(path)
    FILES.remove(path)
    assert FILES.list_names(folder) == []
    way.schedule_fault("GET", "*", ServiceUnavailable(), times=None)
    with pytest.raises(TransientStorageError):
        FILES.list_names(folder)


def test_work_is_done_again_when_the_store_fails_and_only_then() -> None:
    done: list[int] = []

    def failing(times: int, error: OSError) -> int:
        done.append(len(done))
        if len(done) <= times:
            raise error
        return len(done)

    again_module.STEP_BACKOFF_SECONDS, before = (0.0, 0.0, 0.0), again_module.STEP_BACKOFF_SECONDS
    try:
        assert retry(lambda: failing(3, TransientStorageError("busy"))) == 4
        done.clear()
        with pytest.raises(TransientStorageError):
            retry(lambda: failing(4, TransientStorageError("busy")))
        assert len(done) == 4
        done.clear()
        with pytest.raises(PermissionError):
            retry(lambda: failing(1, PermissionError("no")))
        assert len(done) == 1
    finally:
        again_module.STEP_BACKOFF_SECONDS = before


def test_local_files_are_swept_too(tmp_path: object) -> None:
    storage = LocalStorage()
    with storage.write(f"{tmp_path}/.tmp-1") as file:
        file.write(b"half")
    with storage.write(f"{tmp_path}/a") as file:
        file.write(b"whole")
    storage.remove_temporaries(str(tmp_path))
    assert storage.list_names(str(tmp_path)) == ["a"]


# Stores of other kinds, by Beam's file systems


class _Object(io.BytesIO):
    """An object that is there when it is closed, as Beam's are."""

    def __init__(self, there: dict[str, bytes], path: str) -> None:
        super().__init__()
        self._there, self._path = there, path

    def close(self) -> None:
        if not self.closed:
            self._there[self._path] = self.getvalue()
        super().close()


class Memory(FileSystem):  # type: ignore[misc]  # Beam has no types
    """memory://, as Beam's file systems without folders are."""

    there: ClassVar[dict[str, bytes]] = {}
    before_and_after: ClassVar[Callable[[], None]] = lambda: None

    @classmethod
    def scheme(cls) -> str:
        return "memory"

    def has_dirs(self) -> bool:
        return False

    def _list(self, prefix: str) -> Iterator[FileMetadata]:
        yield from (
            FileMetadata(path, len(data), 1.0) for path, data in self.there.items() if path.startswith(prefix)
        )

    def create(self, path: str, *_: object, **__: object) -> BinaryIO:
        return _Object(self.there, path)

    def open(self, path: str, *_: object, **__: object) -> BinaryIO:
        return io.BytesIO(self.there[path])

    def rename(self, old: list[str], new: list[str]) -> None:
        with self._changing():
            self.there.update({to: self.there.pop(of) for of, to in zip(old, new, strict=True)})

    def exists(self, path: str) -> bool:
        return path in self.there

    def delete(self, paths: list[str]) -> None:
        with self._changing():
            for path in paths:
                del self.there[path]

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        Memory.before_and_after()
        yield
        Memory.before_and_after()

    checksum = copy = join = last_updated = metadata = mkdirs = size = split = None


def test_a_store_of_another_kind_has_the_same_calls() -> None:
    folder = "memory://bucket/out"
    check_access([folder])
    for name in ("a b.txt", "a b.txt", "b*.txt", "in/c.txt", "in/.hidden/d.txt", "in.txt"):
        written(f"{folder}/{name}", name.encode())
    Memory.there[f"{folder}/.tmp-killed"] = b""
    assert FILES.list_names(f"{folder}/") == [".tmp-killed", "a b.txt", "b*.txt", "in.txt"]
    FILES.remove_temporaries(folder)
    assert [found.path.removeprefix(f"{folder}/") for found in FILES.walk(folder)] == [
        "a b.txt",
        "b*.txt",
        "in.txt",
        "in/c.txt",
    ]
    assert [found.path for found in FILES.glob(f"{folder}/a b.txt")] == [f"{folder}/a b.txt"]
    assert read(f"{folder}/b*.txt") == b"b*.txt"
    with pytest.raises(ZeroDivisionError), FILES.write(f"{folder}/b*.txt") as file:
        file.write(bytes(1 // 0))
    with pytest.raises(FileNotFoundError):
        FILES.open(f"{folder}/b")
    FILES.remove(f"{folder}/b*.txt")
    FILES.remove(f"{folder}/b*.txt")
    assert FILES.exists(f"{folder}/in.txt")
    assert FILES.is_folder(f"{folder}/in")
    assert not FILES.exists(f"{folder}/in")
    assert sorted(Memory.there) == [
        f"{folder}/{name}" for name in ("a b.txt", "in.txt", "in/.hidden/d.txt", "in/c.txt")
    ]


def test_stopped_at_any_write_it_goes_on_to_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And whenever there is a manifest, all that it lists is as it lists it: readers may come at any time."""
    out = "memory://bucket/stopped"
    source = Path(shutil.copytree(PUBMED_SAMPLE, tmp_path / "source"))
    later = (source / "pubmed26n0003.xml").rename(tmp_path / "later.xml")
    monkeypatch.setattr(lock, "LEASE_RENEWAL_SECONDS", 3600)
    monkeypatch.setattr(again_module, "STEP_BACKOFF_SECONDS", ())
    monkeypatch.setattr(Memory, "there", {})

    def run() -> int:
        words = ("--keep-dropped", "--dedup", "exact", "--input", str(source), "--output", out)
        return cli.main(["run", "pubmed_to_shards", "--workers", "1", *words])

    def published() -> dict[str, object]:
        found: dict[str, object] = {
            path: data for path, data in Memory.there.items() if "/.bioshards/" not in path
        }
        manifest = json.loads(Memory.there[f"{out}/manifest.json"])
        return {**found, f"{out}/manifest.json": {**manifest, "run": None}}

    assert run() == 0
    before = dict(Memory.there)
    later.rename(source / "pubmed26n0003.xml")
    writes = itertools.count()
    stop_at = -1

    def write() -> None:
        number = next(writes)
        if 0 <= stop_at <= number:
            raise RuntimeError("stopped")
        if manifest := Memory.there.get(f"{out}/manifest.json"):
            of = json.loads(manifest)
            for listed in of["outputs"] + of["dropped"] + of["duplicates"]:
                data = Memory.there[f"{out}/{listed['file']}"]
                assert hashlib.sha256(data).hexdigest() == listed["sha256"]

    monkeypatch.setattr(Memory, "before_and_after", write)
    assert run() == 0
    wanted, most = published(), next(writes)
    assert most > 50
    for stop_at in range(1, most, 11):
        Memory.there = dict(before)
        writes = itertools.count()
        assert run() == 1
        stop_at = -1
        assert run() == 0
        assert published() == wanted
