"""The keys of a shard's documents: taken once, right whatever becomes of the shard, found where none are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from bioshards.corpus.document import DOCUMENT_SCHEMA, Document
from bioshards.corpus.lifecycle import full_text_overlap, shard_keys
from bioshards.corpus.lifecycle.full_text_overlap import MATCH_KEY_SCHEMA
from bioshards.corpus.manifest import Shard
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.identified_documents import (
    SAMPLE_ABSTRACTS,
    SAMPLE_ARTICLES,
    IdRow,
    make_identified_document,
    write_finished_dir,
)

FILES = LocalStorage()


@pytest.fixture
def output_dir(tmp_path: Path) -> OutputDir:
    return OutputDir(str(tmp_path / "out"))


def made(folder: Path, documents: list[Document], size: int = 3) -> list[Shard]:
    """Shards of these documents, as a manifest lists them."""
    batches = [
        arrow_io.record_batch_from_documents(documents[at : at + size])
        for at in range(0, len(documents), size)
    ]
    return arrow_io.write_shards(FILES, str(folder), "a", batches, DOCUMENT_SCHEMA, 1)


def rows(batches: Iterator[pa.RecordBatch]) -> list[IdRow]:
    found = list(batches)
    assert all(batch.schema == MATCH_KEY_SCHEMA for batch in found)
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


def written(output_dir: OutputDir) -> dict[str, int]:
    return {
        path.name: path.stat().st_mtime_ns for path in Path(output_dir.work_folder, "shard_keys").iterdir()
    }


def test_keys_are_taken_once_and_read_in_the_order_of_the_shards(
    tmp_path: Path, output_dir: OutputDir
) -> None:
    folder = write_finished_dir(tmp_path / "abstracts", "pubmed_to_shards", SAMPLE_ABSTRACTS)
    listed = full_text_overlap.list_abstract_shards(FILES, folder)
    assert len(listed) == 4
    for shard in listed:
        shard_keys.extract_keys(FILES, output_dir, folder, shard)
    before = written(output_dir)
    assert set(before) == {f"{shard.sha256}.arrow" for shard in listed}
    for shard in listed:
        shard_keys.extract_keys(FILES, output_dir, folder, shard)
    assert rows(shard_keys.read_keys(FILES, output_dir, folder, listed)) == SAMPLE_ABSTRACTS
    assert rows(shard_keys.read_keys(FILES, output_dir, folder, listed[::-1])) == [
        *(SAMPLE_ABSTRACTS[9:]),
        *(SAMPLE_ABSTRACTS[6:9]),
        *(SAMPLE_ABSTRACTS[3:6]),
        *(SAMPLE_ABSTRACTS[:3]),
    ]
    assert written(output_dir) == before


def test_what_is_not_there_is_taken_when_it_is_read(tmp_path: Path, output_dir: OutputDir) -> None:
    folder = write_finished_dir(tmp_path / "full", "pmc_to_shards", SAMPLE_ARTICLES)
    listed = arrow_io.read_documents_manifest(FILES, folder).outputs
    assert rows(shard_keys.read_keys(FILES, output_dir, folder, listed)) == SAMPLE_ARTICLES
    assert len(written(output_dir)) == 2


def test_shards_that_are_taken_are_not_read_again(tmp_path: Path, output_dir: OutputDir) -> None:
    """On a store a shard is read whole for its keys: once, however often these are looked at."""
    folder = write_finished_dir(tmp_path / "abstracts", "pubmed_to_shards", SAMPLE_ABSTRACTS)
    listed = full_text_overlap.list_abstract_shards(FILES, folder)
    for shard in listed:
        shard_keys.extract_keys(FILES, output_dir, folder, shard)
        Path(folder, shard.file).unlink()
    for _ in range(2):
        assert rows(shard_keys.read_keys(FILES, output_dir, folder, listed)) == SAMPLE_ABSTRACTS


def test_articles_without_a_text_hold_nothing(tmp_path: Path, output_dir: OutputDir) -> None:
    articles = [make_identified_document(*row) for row in SAMPLE_ARTICLES]
    articles[1] = articles[1]._replace(flags=["manuscript", "no-body"])
    articles[2] = articles[2]._replace(flags=["ocr"])
    listed = made(tmp_path / "full", articles)
    keys = rows(shard_keys.read_keys(FILES, output_dir, str(tmp_path / "full"), listed))
    assert keys == [SAMPLE_ARTICLES[0], *SAMPLE_ARTICLES[2:]]


def test_other_shards_keys_are_swept(tmp_path: Path, output_dir: OutputDir) -> None:
    folder = write_finished_dir(tmp_path / "abstracts", "pubmed_to_shards", SAMPLE_ABSTRACTS)
    listed = full_text_overlap.list_abstract_shards(FILES, folder)
    for shard in listed:
        shard_keys.extract_keys(FILES, output_dir, folder, shard)
    shard_keys.sweep(FILES, output_dir, listed[1:3])
    assert set(written(output_dir)) == {f"{shard.sha256}.arrow" for shard in listed[1:3]}
    shard_keys.sweep(FILES, output_dir, [])
    assert not written(output_dir)


def test_a_shard_that_breaks_off_leaves_no_keys(tmp_path: Path, output_dir: OutputDir) -> None:
    folder = write_finished_dir(tmp_path / "abstracts", "pubmed_to_shards", SAMPLE_ABSTRACTS)
    shard = full_text_overlap.list_abstract_shards(FILES, folder)[0]
    path = Path(folder, shard.file)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises((OSError, pa.ArrowInvalid)):
        shard_keys.extract_keys(FILES, output_dir, folder, shard)
    assert not FILES.exists(output_dir.shard_keys_path(shard.sha256))
    assert not list(Path(output_dir.work_folder).rglob("*.arrow"))
