"""Building the rows of a group: counts, and what a fault leaves behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import build as module
from bioshards.vocab.pretraining.build import BuildResult, ShardGroup
from bioshards.vocab.pretraining.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.row_plan import RowPlan
from tests.support.full_disk import FullDiskStorage
from tests.support.vocab.block_factories import (
    NO_TOKENS,
    build_from_group,
    list_files,
    make_build_config,
    make_sentences_document,
    make_single_group,
    read_listed_rows,
    read_result_files,
    write_documents,
)

FILES = LocalStorage()


def test_article_is_in_the_split_of_its_abstract(out: Path, tmp_path: Path, encoder: Encoder) -> None:
    articles = [make_sentences_document(f"pmc:PMC{n}.1", "w1 w2 w3", pmid=n) for n in range(1, 60)]
    documents = write_documents(tmp_path / "full", {"a": articles}, "pmc_to_shards")
    result = build_from_group(out, make_single_group(documents), make_build_config(encoder))
    counting = CountConfig(validation_fraction=0.25, seed=0)
    num_validation = sum(counting.is_validation(f"pubmed:{n}", n) for n in range(1, 60))
    assert result.split_counts["validation"]["documents"] == num_validation > 5


def test_counts_of_documents_and_tokens(out: Path, tmp_path: Path, encoder: Encoder) -> None:
    documents = [
        make_sentences_document("pubmed:1", "w1 w2", "mice w3", year=1999),
        make_sentences_document("pubmed:2", NO_TOKENS, ""),
        make_sentences_document("pubmed:3", "w4", year=None),
        make_sentences_document("pubmed:4"),
        make_sentences_document("pmc:PMC5.1", "w5 w6 mice", year=1999),
        make_sentences_document("pmc:PMC6.1", "w7 w8", year=2001),
    ]
    result = build_from_group(
        out,
        make_single_group(write_documents(tmp_path / "in", {"a": documents})),
        make_build_config(encoder, validation_fraction=0),
    )
    assert result.documents == 6
    assert result.dropped == {"no-tokens": 2, "overlap": 0}
    assert result.rejected == {}
    assert result.tokens_by_year == {"pubmed": {"1999": 4, "unknown": 1}, "pmc": {"1999": 3, "2001": 2}}
    train = result.split_counts["train"]
    assert train == {
        "documents": 4,
        "unlabelled_rows": 0,
        "unknown_tokens": 2,
        "rows": 4,
        "tokens": 10 + 2 * 4,
        "special_tokens": 2 * 4,
        "other_document_tokens": 0,
        "lost_tokens": 0,
        "input_tokens": 10,
    }
    assert result.split_counts["validation"] == {}


def test_only_the_too_long_document_is_rejected(
    out: Path, tmp_path: Path, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_DOCUMENT_TOKENS", 1_000)
    documents = [
        make_sentences_document("pubmed:1", "w1 w2"),
        make_sentences_document("pubmed:2", "w3 " * 600, "w4 " * 401),
        make_sentences_document("pubmed:3", "w3 " * 600, "w4 " * 400),
        make_sentences_document("pubmed:4", NO_TOKENS),
    ]
    group = make_single_group(write_documents(tmp_path / "in", {"a": documents}))
    result = build_from_group(out, group, make_build_config(encoder, validation_fraction=0))
    assert (result.documents, result.dropped["no-tokens"], result.rejected) == (4, 1, {"too-long": 1})
    assert result.split_counts["train"]["input_tokens"] == 1_002
    lines = (out / "rejected" / f"{group.name}.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "file": "data/data-a-00000.parquet",
            "id": "pubmed:2",
            "reason": "too-long",
            "detail": "1,001 tokens, more than 1,000",
        }
    ]


def test_group_without_usable_documents_has_no_shard(out: Path, tmp_path: Path, encoder: Encoder) -> None:
    group = make_single_group(
        write_documents(
            tmp_path / "in",
            {"a": [make_sentences_document("pubmed:1"), make_sentences_document("pubmed:2", "\x07")]},
        )
    )
    result = build_from_group(out, group, make_build_config(encoder))
    assert (result.documents, result.outputs, result.dropped["no-tokens"]) == (2, [], 2)
    assert build_from_group(out, group, make_build_config(encoder)) == result


def test_shards_are_split_at_the_maximum_size(
    out: Path, shard_group: ShardGroup, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard ends with a record batch of documents. Every pass counts towards its size."""
    monkeypatch.setattr(document_shards, "BATCH_ROWS", 10)
    single_shard = build_from_group(
        out / "one", shard_group, make_build_config(encoder, validation_fraction=0)
    )
    many_shards = build_from_group(
        out / "several", shard_group, make_build_config(encoder, validation_fraction=0, max_shard_bytes=1)
    )
    assert [len(result.outputs) for result in (single_shard, many_shards)] == [1, 8]
    assert [listed.file.rpartition("-")[2] for listed in many_shards.outputs] == [
        f"{n:05d}.arrow" for n in range(8)
    ]
    rows = [
        read_listed_rows(out / name, result.outputs)
        for name, result in (("one", single_shard), ("several", many_shards))
    ]
    assert sorted(map(repr, rows[0])) == sorted(map(repr, rows[1]))
    size = 2 * single_shard.split_counts["train"]["input_tokens"]
    for passes, shards in ((1, 1), (2, 2)):
        config = make_build_config(
            encoder,
            ExampleRecipe("bert", 16, dupe_factor=passes),
            validation_fraction=0,
            max_shard_bytes=size + 1,
        )
        assert len(build_from_group(out / str(passes), shard_group, config).outputs) == shards


# Repeated builds


def read_inodes(out: Path, result: BuildResult) -> dict[str, int]:
    """Return the inode of each file; a rewritten file has another one."""
    return {name: Path(name).stat().st_ino for name in read_result_files(out, result)}


def test_complete_group_is_not_rebuilt(out: Path, shard_group: ShardGroup, encoder: Encoder) -> None:
    config = make_build_config(encoder)
    first = build_from_group(out, shard_group, config)
    before = read_inodes(out, first)
    again = build_from_group(out, shard_group, config)
    assert again == first
    assert read_inodes(out, first) == before


def test_damaged_input_shard_is_a_failure_without_report(
    out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    path = Path(shard_group.folder) / shard_group.shards[1].file
    original = path.read_bytes()
    for data, message in (
        (original[:-1], f"it has {len(original) - 1:,} bytes, and its manifest lists {len(original):,}"),
        (original[:-1] + b"x", "its SHA-256 is not the one that its manifest lists"),
        (None, "No such file or directory"),
    ):
        path.write_bytes(data) if data else path.unlink()
        result = build_from_group(out, shard_group, make_build_config(encoder))
        assert result == BuildResult(shard_group.name, failures=[f"{path}: {message}"])
        assert list_files(out) == set()
    path.write_bytes(original)
    assert build_from_group(out, shard_group, make_build_config(encoder)).failures == []


@pytest.mark.parametrize(
    ("failing_path", "bytes_before_failure"),
    [
        ("/train/", 0),
        ("/train/", 1_000),
        ("/validation/", 500),
        ("/rejected/", 10),
        ("/build_reports/", 100),
    ],
)
def test_full_disk_leaves_only_whole_files_and_no_report(
    failing_path: str,
    bytes_before_failure: int,
    out: Path,
    shard_group: ShardGroup,
    encoder: Encoder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_DOCUMENT_TOKENS", 20)
    config = make_build_config(encoder)
    fresh = build_from_group(out / "fresh", shard_group, config)
    assert fresh.rejected["too-long"]
    with pytest.raises(OSError, match="No space left"):
        build_from_group(
            out / "full", shard_group, config, FullDiskStorage(failing_path, bytes_before_failure)
        )
    remaining = list_files(out / "full")
    assert not [
        name
        for name in remaining
        if failing_path in f"/{name}" or "/build_reports/" in name or TEMPORARY_PREFIX in name
    ]
    for name in remaining:
        assert (out / "full" / name).read_bytes() == (out / "fresh" / name).read_bytes()
    assert build_from_group(out / "full", shard_group, config) == fresh
    assert list_files(out / "full") == list_files(out / "fresh")
    for name in list_files(out / "fresh") - {f".bioshards/build_reports/{shard_group.name}.json"}:
        assert (out / "full" / name).read_bytes() == (out / "fresh" / name).read_bytes()


def test_failure_between_two_shards_is_repaired_by_the_next_build(
    out: Path, shard_group: ShardGroup, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Complete shards of the failed build are written again under the same names."""
    monkeypatch.setattr(document_shards, "BATCH_ROWS", 10)
    config = make_build_config(encoder, max_shard_bytes=1)
    fresh = build_from_group(out / "fresh", shard_group, config)
    sizes = [shard.bytes for shard in fresh.outputs if shard.file.startswith("train")]
    with pytest.raises(OSError, match="No space left"):
        build_from_group(out / "full", shard_group, config, FullDiskStorage("/train/", sum(sizes[:2]) + 10))
    train_shards = [name for name in list_files(out / "full") if name.startswith("train")]
    assert len(train_shards) == 2
    assert build_from_group(out / "full", shard_group, config) == fresh


@pytest.mark.parametrize("error", [ValueError("no rows"), KeyboardInterrupt()])
def test_failing_row_source_leaves_no_file(
    error: BaseException,
    out: Path,
    shard_group: ShardGroup,
    encoder: Encoder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    iter_batches = RowPlan.iter_batches

    def fail_after_a_batch(plan: RowPlan, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        yield next(iter_batches(plan, schema))
        raise error

    monkeypatch.setattr(RowPlan, "iter_batches", fail_after_a_batch)
    with pytest.raises(type(error)):
        build_from_group(out, shard_group, make_build_config(encoder))
    assert list_files(out) == set()
