"""The keys of a shard's documents: taken once, right whatever becomes of the shard, found where none are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from bioshards.corpus import overlap, shard_keys, shards
from bioshards.corpus.document import SCHEMA, Document
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import Shard
from bioshards.corpus.overlap import KEYS
from bioshards.corpus.workspace import Workspace
from tests.test_overlap import ABSTRACTS, FULL, Row, document, finished

FILES = LocalFiles()


@pytest.fixture
def work(tmp_path: Path) -> Workspace:
    return Workspace(str(tmp_path / "out"))


def made(folder: Path, documents: list[Document], size: int = 3) -> list[Shard]:
    """Shards of these documents, as a manifest lists them."""
    batches = [shards.batch(documents[at : at + size]) for at in range(0, len(documents), size)]
    return shards.write(FILES, str(folder), "a", batches, SCHEMA, 1)


def rows(batches: Iterator[pa.RecordBatch]) -> list[Row]:
    found = list(batches)
    assert all(batch.schema == KEYS for batch in found)
    return [tuple(row.values()) for batch in found for row in batch.to_pylist()]


def written(work: Workspace) -> dict[str, int]:
    return {path.name: path.stat().st_mtime_ns for path in Path(work.folder, "keys").iterdir()}


def test_keys_are_taken_once_and_read_in_the_order_of_the_shards(tmp_path: Path, work: Workspace) -> None:
    folder = finished(tmp_path / "abstracts", "pubmed_to_shards", ABSTRACTS)
    listed = overlap.of_abstracts(FILES, folder)
    assert len(listed) == 4
    for shard in listed:
        shard_keys.take(FILES, work, folder, shard)
    before = written(work)
    assert set(before) == {f"{shard.sha256}.arrow" for shard in listed}
    for shard in listed:
        shard_keys.take(FILES, work, folder, shard)
    assert rows(shard_keys.read(FILES, work, folder, listed)) == ABSTRACTS
    assert rows(shard_keys.read(FILES, work, folder, listed[::-1])) == [
        *(ABSTRACTS[9:]),
        *(ABSTRACTS[6:9]),
        *(ABSTRACTS[3:6]),
        *(ABSTRACTS[:3]),
    ]
    assert written(work) == before


def test_what_is_not_there_is_taken_when_it_is_read(tmp_path: Path, work: Workspace) -> None:
    folder = finished(tmp_path / "full", "pmc_to_shards", FULL)
    listed = shards.documents_manifest(FILES, folder).outputs
    assert rows(shard_keys.read(FILES, work, folder, listed)) == FULL
    assert len(written(work)) == 2


def test_shards_that_are_taken_are_not_read_again(tmp_path: Path, work: Workspace) -> None:
    """On a store a shard is read whole for its keys: once, however often these are looked at."""
    folder = finished(tmp_path / "abstracts", "pubmed_to_shards", ABSTRACTS)
    listed = overlap.of_abstracts(FILES, folder)
    for shard in listed:
        shard_keys.take(FILES, work, folder, shard)
        Path(folder, shard.file).unlink()
    for _ in range(2):
        assert rows(shard_keys.read(FILES, work, folder, listed)) == ABSTRACTS


def test_articles_without_a_text_hold_nothing(tmp_path: Path, work: Workspace) -> None:
    articles = [document(*row) for row in FULL]
    articles[1] = articles[1]._replace(flags=["manuscript", "no-body"])
    articles[2] = articles[2]._replace(flags=["ocr"])
    listed = made(tmp_path / "full", articles)
    keys = rows(shard_keys.read(FILES, work, str(tmp_path / "full"), listed))
    assert keys == [FULL[0], *FULL[2:]]


def test_other_shards_keys_are_swept(tmp_path: Path, work: Workspace) -> None:
    folder = finished(tmp_path / "abstracts", "pubmed_to_shards", ABSTRACTS)
    listed = overlap.of_abstracts(FILES, folder)
    for shard in listed:
        shard_keys.take(FILES, work, folder, shard)
    shard_keys.sweep(FILES, work, listed[1:3])
    assert set(written(work)) == {f"{shard.sha256}.arrow" for shard in listed[1:3]}
    shard_keys.sweep(FILES, work, [])
    assert not written(work)


def test_a_shard_that_breaks_off_leaves_no_keys(tmp_path: Path, work: Workspace) -> None:
    folder = finished(tmp_path / "abstracts", "pubmed_to_shards", ABSTRACTS)
    shard = overlap.of_abstracts(FILES, folder)[0]
    path = Path(folder, shard.file)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises((OSError, pa.ArrowInvalid)):
        shard_keys.take(FILES, work, folder, shard)
    assert not FILES.exists(work.keys(shard.sha256))
    assert not list(Path(work.folder).rglob("*.arrow"))
