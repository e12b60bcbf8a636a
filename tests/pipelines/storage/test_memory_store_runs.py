"""Tests of pipelines and storage on mem://, an object store in this process' memory."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bioshards.pipelines.storage.remote_storage import RemoteStorage
from bioshards.pipelines.storage.store_options import StoreOptions
from tests.support.cloud.memory_store import MEMORY_OBJECTS
from tests.support.corpus.jats_articles import article_xml, write_files
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.outputs import load_manifest
from tests.support.paths import PUBMED_SAMPLE

pytestmark = pytest.mark.thorough  # this file takes minutes


@pytest.fixture(autouse=True)
def clear_memory_store() -> None:
    MEMORY_OBJECTS.clear()


def test_pubmed_to_shards_from_and_to_an_object_store(
    tmp_path: Path, run: Callable[..., int], run_pmc: Callable[..., int]
) -> None:
    source = tmp_path / "in"
    shutil.copytree(PUBMED_SAMPLE, source)
    (source / "pubmed26n0004.xml").write_bytes(
        pubmed_set_xml(citation_xml(7), citation_xml(8), deleted=(90000041,))
    )
    for path in source.glob("*.xml"):
        MEMORY_OBJECTS[f"mem://bucket/in/{path.name}"] = path.read_bytes()
    MEMORY_OBJECTS["mem://bucket/ids.txt"] = b"# a benchmark\npubmed:90000001\n"
    (tmp_path / "ids.txt").write_bytes(MEMORY_OBJECTS["mem://bucket/ids.txt"])
    options = ("--keep-dropped", "--dedup", "near", "--exclude-ids")
    store_arguments = ("--input", "mem://bucket/in", "--output", "mem://bucket/out")
    assert run(*store_arguments, *options, "mem://bucket/ids.txt") == 0
    assert run("--input", source, "--output", tmp_path / "out", *options, tmp_path / "ids.txt") == 0
    assert run(*store_arguments, *options, "mem://bucket/nothing.txt") == 2
    manifest = json.loads(MEMORY_OBJECTS["mem://bucket/out/manifest.json"])
    assert manifest["exclusion_list"]["matched"] == manifest["funnel"]["dropped: excluded"] == 1
    for key in ("outputs", "dropped", "duplicates", "funnel", "counts", "exclusion_list"):
        assert manifest[key] == load_manifest(tmp_path / "out")[key]
    for entry in manifest["outputs"] + manifest["dropped"] + manifest["duplicates"]:
        local = tmp_path / "out" / entry["file"]
        assert MEMORY_OBJECTS[f"mem://bucket/out/{entry['file']}"] == local.read_bytes()
    assert MEMORY_OBJECTS["mem://bucket/out/duplicates.tsv"].endswith(b"\npubmed:8\tpubmed:7\t1.000\n")
    assert not [path for path in MEMORY_OBJECTS if ".tmp-" in path]
    articles = write_files(tmp_path / "articles", {"PMC1.xml": article_xml(1, pmid=7)})
    for abstracts, output in (
        ("mem://bucket/out", "mem://bucket/articles"),
        (tmp_path / "out", tmp_path / "a"),
    ):
        find_overlap = ("--find-overlap-with", abstracts, "--output", output)
        assert run_pmc("--input", articles, *find_overlap) == 0
    overlap = (tmp_path / "a/overlap.arrow").read_bytes()
    assert MEMORY_OBJECTS["mem://bucket/articles/overlap.arrow"] == overlap
    assert load_manifest(tmp_path / "a")["overlap"][0]["rows"] == 1


PATH = "mem://bucket/a.xml.gz"


def test_resumable_file_appears_on_commit() -> None:
    with RemoteStorage(StoreOptions()).open_resumable(PATH, "v1") as part:
        assert part.size == 0
        part.write(b"old")
        part.restart()
        assert part.size == 0
        assert list(part.read_blocks()) == []
        part.write(b"some ")
        part.write(b"bytes")
        assert part.size == 10
        assert PATH not in MEMORY_OBJECTS
        part.commit()
        assert MEMORY_OBJECTS == {PATH: b"some bytes"}
    assert MEMORY_OBJECTS == {PATH: b"some bytes"}


def test_interrupted_or_discarded_resumable_file_leaves_nothing() -> None:
    MEMORY_OBJECTS[PATH] = b"the one before"

    def write_and_fail() -> None:
        with RemoteStorage(StoreOptions()).open_resumable(PATH, "v1") as part:
            part.write(b"half")
            raise OSError("connection lost")

    with pytest.raises(OSError, match="connection lost"):
        write_and_fail()
    with RemoteStorage(StoreOptions()).open_resumable(PATH, "v1") as part:
        assert part.size == 0
        part.write(b"wrong")
        part.discard()
    assert MEMORY_OBJECTS == {PATH: b"the one before"}


def test_manifest_contains_no_credentials(run: Callable[..., int], tmp_path: Path) -> None:
    secrets = (
        "--s3_access_key_id=AKIA",
        "--s3_secret_access_key",
        "hunter2",
        "--s3_session_token=tick",
        "--azure_connection_string=AccountKey=tock",
    )
    assert run("--output", tmp_path, *secrets) == 0
    text = (tmp_path / "manifest.json").read_text()
    for word in ("AKIA", "hunter2", "tick", "tock"):
        assert word not in text
    assert "--s3_secret_access_key" in text
    assert str(tmp_path) in text


def test_unknown_scheme_error_names_those_that_are_known(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--input", "hdfs://folder/in", "--output", "hdfs://folder/out") == 2
    stderr = capsys.readouterr().err
    assert "nothing here can open hdfs://folder/" in stderr
    assert "local or mounted, on gs://BUCKET, s3://BUCKET or az://CONTAINER" in stderr


@pytest.mark.parametrize(
    ("scheme", "library"),
    [("gs", "obstore"), ("gs", "google.auth"), ("s3", "botocore.session"), ("az", "obstore.store")],
)
def test_missing_cloud_library_error_names_the_package_to_install(
    scheme: str,
    library: str,
    run: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("remote_storage", "routed", "store_options"):
        if library.startswith("obstore"):
            monkeypatch.delitem(sys.modules, f"bioshards.pipelines.storage.{name}", raising=False)
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setitem(sys.modules, library, None)
    assert run("--output", f"{scheme}://bucket/out") == 2
    stderr = capsys.readouterr().err
    assert f"{scheme}://bucket/out needs a library" in stderr
    assert "pip install '.[cloud]'" in stderr
