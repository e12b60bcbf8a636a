"""Match keys of shards: extraction, caching, removal and damaged shards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from bioshards.corpus.document import Document
from bioshards.corpus.lifecycle import full_text_overlap
from bioshards.corpus.lifecycle.full_text_overlap import MATCH_KEY_SCHEMA, extract_keys, read_keys, sweep_keys
from bioshards.corpus.lifecycle.job import ShardsJob
from bioshards.corpus.manifest import Shard
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.arrow_io import DOCUMENT_SCHEMA
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX
from tests.support.corpus.identified_documents import (
    SAMPLE_ABSTRACTS,
    SAMPLE_ARTICLES,
    IdRow,
    make_identified_document,
    write_finished_dir,
)
from tests.support.corpus.shard_jobs import make_shards_job

FILES = LocalStorage()


@pytest.fixture
def job(tmp_path: Path) -> ShardsJob:
    return make_shards_job(tmp_path / "out")


def write_shards(folder: Path, documents: list[Document], batch_rows: int = 3) -> list[Shard]:
    """Write shards of these documents and return them as a manifest lists them."""
    batches = [
        arrow_io.record_batch_from_documents(documents[start : start + batch_rows])
        for start in range(0, len(documents), batch_rows)
    ]
    return arrow_io.write_shards(FILES, str(folder), "a", batches, DOCUMENT_SCHEMA, 1)


def collect_rows(batches: Iterator[pa.RecordBatch]) -> list[IdRow]:
    collected = list(batches)
    assert all(batch.schema == MATCH_KEY_SCHEMA for batch in collected)
    return [tuple(row.values()) for batch in collected for row in batch.to_pylist()]


def list_key_files(job: ShardsJob) -> dict[str, int]:
    """Return the names of the key files with their times of modification."""
    return {
        path.name: path.stat().st_mtime_ns for path in Path(job.output.work_folder, "shard_keys").iterdir()
    }


def test_keys_are_extracted_once_and_read_in_shard_order(tmp_path: Path, job: ShardsJob) -> None:
    folder = write_finished_dir(tmp_path / "abstracts", "pubmed_to_shards", SAMPLE_ABSTRACTS)
    shards = full_text_overlap.list_abstract_shards(FILES, folder)
    assert len(shards) == 4
    for shard in shards:
        extract_keys(job, (folder, shard))
    before = list_key_files(job)
    assert set(before) == {f"{shard.sha256}.arrow" for shard in shards}
    for shard in shards:
        extract_keys(job, (folder, shard))
    assert collect_rows(read_keys(job, folder, shards)) == SAMPLE_ABSTRACTS
    assert collect_rows(read_keys(job, folder, shards[::-1])) == [
        *(SAMPLE_ABSTRACTS[9:]),
        *(SAMPLE_ABSTRACTS[6:9]),
        *(SAMPLE_ABSTRACTS[3:6]),
        *(SAMPLE_ABSTRACTS[:3]),
    ]
    assert list_key_files(job) == before


def test_missing_keys_are_extracted_when_read(tmp_path: Path, job: ShardsJob) -> None:
    folder = write_finished_dir(tmp_path / "full", "pmc_to_shards", SAMPLE_ARTICLES)
    shards = arrow_io.read_documents_manifest(FILES, folder).outputs
    assert collect_rows(read_keys(job, folder, shards)) == SAMPLE_ARTICLES
    assert len(list_key_files(job)) == 2


def test_shards_with_keys_are_not_read_again(tmp_path: Path, job: ShardsJob) -> None:
    """On an object store a shard is read as a whole for its keys, once."""
    folder = write_finished_dir(tmp_path / "abstracts", "pubmed_to_shards", SAMPLE_ABSTRACTS)
    shards = full_text_overlap.list_abstract_shards(FILES, folder)
    for shard in shards:
        extract_keys(job, (folder, shard))
        Path(folder, shard.file).unlink()
    for _ in range(2):
        assert collect_rows(read_keys(job, folder, shards)) == SAMPLE_ABSTRACTS


def test_articles_without_text_have_no_keys(tmp_path: Path, job: ShardsJob) -> None:
    articles = [make_identified_document(*row) for row in SAMPLE_ARTICLES]
    articles[1] = articles[1]._replace(flags=["manuscript", "no-body"])
    articles[2] = articles[2]._replace(flags=["ocr"])
    shards = write_shards(tmp_path / "full", articles)
    keys = collect_rows(read_keys(job, str(tmp_path / "full"), shards))
    assert keys == [SAMPLE_ARTICLES[0], *SAMPLE_ARTICLES[2:]]


def test_keys_of_other_shards_are_swept(tmp_path: Path, job: ShardsJob) -> None:
    folder = write_finished_dir(tmp_path / "abstracts", "pubmed_to_shards", SAMPLE_ABSTRACTS)
    shards = full_text_overlap.list_abstract_shards(FILES, folder)
    for shard in shards:
        extract_keys(job, (folder, shard))
    sweep_keys(job, shards[1:3])
    assert set(list_key_files(job)) == {f"{shard.sha256}.arrow" for shard in shards[1:3]}
    sweep_keys(job, [])
    assert not list_key_files(job)


def test_damaged_shard_leaves_no_keys(tmp_path: Path, job: ShardsJob) -> None:
    folder = write_finished_dir(tmp_path / "abstracts", "pubmed_to_shards", SAMPLE_ABSTRACTS)
    shard = full_text_overlap.list_abstract_shards(FILES, folder)[0]
    path = Path(folder, shard.file)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises((OSError, pa.ArrowInvalid)):
        extract_keys(job, (folder, shard))
    assert not FILES.exists(job.output.shard_keys_path(shard.sha256))
    assert not list(Path(job.output.work_folder).rglob("*.arrow"))


def test_what_a_killed_run_was_writing_is_removed(tmp_path: Path) -> None:
    output_dir = OutputDir(str(tmp_path))
    folder = Path(output_dir.shard_keys_path("0")).parent
    folder.mkdir(parents=True)
    (folder / f"{TEMPORARY_PREFIX}0123").touch()
    output_layout.remove_leftovers(LocalStorage(), output_dir)
    assert list(folder.iterdir()) == []
