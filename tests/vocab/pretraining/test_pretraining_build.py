"""Building the rows of a group: counts, and what a fault leaves behind."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from bioshards.corpus.shards.pretraining_schema import metadata_from_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import build as module
from bioshards.vocab.pretraining.build_result import BuildResult
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.row_plan import RowPlan
from bioshards.vocab.pretraining.shard_groups import ShardGroup
from bioshards.vocab.pretraining.shard_writer import ShardWriter, has_all_outputs
from bioshards.vocab.pretraining.tfrecord.record_encoder import make_record_encoder
from tests.support.full_disk import FullDiskStorage
from tests.support.vocab.block_factories import (
    NO_TOKENS,
    build_from_group,
    list_files,
    make_abstracts,
    make_block,
    make_build_config,
    make_schema,
    make_sentences_document,
    make_single_group,
    make_single_segment_row,
    read_listed_rows,
    read_result_files,
    write_documents,
)

FILES = LocalStorage()


def test_a_group_is_a_shard_for_each_split(out: Path, shard_group: ShardGroup, encoder: Encoder) -> None:
    made = build_from_group(out, shard_group, make_build_config(encoder))
    assert [one.file for one in made.outputs] == [
        f"train/data-{shard_group.name}-00000.arrow",
        f"validation/data-{shard_group.name}-00000.arrow",
    ]
    for one in made.outputs:
        data = (out / one.file).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (one.bytes, one.sha256)
        assert len(read_listed_rows(out, [one])) == one.rows
    report = out / ".bioshards" / "build_reports" / f"{shard_group.name}.json"
    assert list_files(out) == {*(one.file for one in made.outputs), str(report.relative_to(out))}
    said = json.loads(report.read_text())
    assert said["file"] == "data-a-00000.arrow and 1 more"
    assert (made.failures, made.spill_files) == ([], {"train": [], "validation": []})


def test_a_document_is_held_out_as_where_words_are_counted(
    out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    made = build_from_group(out, shard_group, make_build_config(encoder, validation_fraction=0.3, seed=4))
    counting = CountConfig(validation_fraction=0.3, seed=4)
    for split, held_out in (("train", False), ("validation", True)):
        rows = read_listed_rows(out, [one for one in made.outputs if one.file.startswith(split)])
        found = {span["document"] for row in rows for span in row["spans"]}
        assert found == {
            one.id for one in make_abstracts(1, 80) if counting.is_validation(one.id, one.pmid) == held_out
        }


def test_an_article_and_its_abstract_are_on_one_side(out: Path, tmp_path: Path, encoder: Encoder) -> None:
    articles = [make_sentences_document(f"pmc:PMC{n}.1", "w1 w2 w3", pmid=n) for n in range(1, 60)]
    documents = write_documents(tmp_path / "full", {"a": articles}, "pmc_to_shards")
    made = build_from_group(out, make_single_group(documents), make_build_config(encoder))
    counting = CountConfig(validation_fraction=0.25, seed=0)
    held = sum(counting.is_validation(f"pubmed:{n}", n) for n in range(1, 60))
    assert made.split_counts["validation"]["documents"] == held > 5


def test_counts_are_those_of_the_documents(out: Path, tmp_path: Path, encoder: Encoder) -> None:
    documents = [
        make_sentences_document("pubmed:1", "w1 w2", "mice w3", year=1999),
        make_sentences_document("pubmed:2", NO_TOKENS, ""),
        make_sentences_document("pubmed:3", "w4", year=None),
        make_sentences_document("pubmed:4"),
        make_sentences_document("pmc:PMC5.1", "w5 w6 mice", year=1999),
        make_sentences_document("pmc:PMC6.1", "w7 w8", year=2001),
    ]
    made = build_from_group(
        out,
        make_single_group(write_documents(tmp_path / "in", {"a": documents})),
        make_build_config(encoder, validation_fraction=0),
    )
    assert made.documents == 6
    assert made.dropped == {"no-tokens": 2, "overlap": 0}
    assert made.rejected == {}
    assert made.tokens_by_year == {"pubmed": {"1999": 4, "unknown": 1}, "pmc": {"1999": 3, "2001": 2}}
    train = made.split_counts["train"]
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
    assert made.split_counts["validation"] == {}


@pytest.mark.parametrize(
    "recipe",
    [
        ExampleRecipe("electra", 16, 0.1, 0.1),
        ExampleRecipe("electra", 16, 0.1, 0.1, keep_overflow=True),
        ExampleRecipe("bert", 16, 0.1, dupe_factor=3),
        ExampleRecipe("albert", 16, 0.1, dupe_factor=2),
        ExampleRecipe("albert", 16, 0.1, as_published=True),
        ExampleRecipe("plain", 16, dupe_factor=2),
    ],
)
def test_what_is_read_is_in_rows_or_lost(
    recipe: ExampleRecipe, out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    made = build_from_group(out, shard_group, make_build_config(encoder, recipe))
    for split, counts in made.split_counts.items():
        of_split = [one for one in made.outputs if one.file.startswith(split)]
        rows = read_listed_rows(out, of_split)
        ids = Counter(number for row in rows for number in row["input_ids"])
        assert counts["rows"] == len(rows) == sum(one.rows for one in of_split)
        assert counts["tokens"] == ids.total()
        assert (
            counts["special_tokens"] == ids[encoder.special_ids["[CLS]"]] + ids[encoder.special_ids["[SEP]"]]
        )
        assert (
            counts["input_tokens"]
            == counts["tokens"]
            - counts["special_tokens"]
            - counts["other_document_tokens"]
            + counts["lost_tokens"]
        )
        tokens = {one.id: sum(len(s.split()) for s in one.sentences) for one in make_abstracts(1, 80)}
        passes = recipe.dupe_factor if split == "train" else 1
        found = {span["document"] for row in rows for span in row["spans"]}
        assert counts["input_tokens"] == passes * sum(tokens[id_] for id_ in found)


def test_a_shards_schema_says_what_its_rows_are(out: Path, shard_group: ShardGroup, encoder: Encoder) -> None:
    made = build_from_group(out, shard_group, make_build_config(encoder, ExampleRecipe("bert", 32)))
    for one in made.outputs:
        with pa.ipc.open_stream(out / one.file) as stream:
            columns, rows = stream.schema, stream.read_all()
        split = one.file.partition("/")[0]
        assert columns.names == ["input_ids", "split", "label", "spans"]
        assert metadata_from_schema(columns) == {
            "objective": "bert",
            "length": 32,
            "vocabulary_sha256": "0123",
            "vocabulary_size": encoder.size,
            "special": encoder.special_ids,
            "split": split,
            "rows": one.rows,
            "tokens": len(rows["input_ids"].combine_chunks().flatten()),
        }


def test_a_document_longer_than_any_is_rejected_and_the_others_are_not(
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
    made = build_from_group(out, group, make_build_config(encoder, validation_fraction=0))
    assert (made.documents, made.dropped["no-tokens"], made.rejected) == (4, 1, {"too-long": 1})
    assert made.split_counts["train"]["input_tokens"] == 1_002
    lines = (out / "rejected" / f"{group.name}.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "file": "data-a-00000.arrow",
            "id": "pubmed:2",
            "reason": "too-long",
            "detail": "1,001 tokens, more than 1,000",
        }
    ]


def test_a_group_of_bad_documents_alone_has_no_shard(out: Path, tmp_path: Path, encoder: Encoder) -> None:
    group = make_single_group(
        write_documents(
            tmp_path / "in",
            {"a": [make_sentences_document("pubmed:1"), make_sentences_document("pubmed:2", "\x07")]},
        )
    )
    made = build_from_group(out, group, make_build_config(encoder))
    assert (made.documents, made.outputs, made.dropped["no-tokens"]) == (2, [], 2)
    assert build_from_group(out, group, make_build_config(encoder)) == made


def test_a_shard_ends_where_it_is_large_enough(out: Path, shard_group: ShardGroup, encoder: Encoder) -> None:
    """At the next record batch of documents; each pass counts."""
    one = build_from_group(out / "one", shard_group, make_build_config(encoder, validation_fraction=0))
    several = build_from_group(
        out / "several", shard_group, make_build_config(encoder, validation_fraction=0, max_shard_bytes=1)
    )
    assert [len(made.outputs) for made in (one, several)] == [1, 4]
    assert [listed.file.rpartition("-")[2] for listed in several.outputs] == [
        f"{n:05d}.arrow" for n in range(4)
    ]
    rows = [read_listed_rows(out / name, made.outputs) for name, made in (("one", one), ("several", several))]
    assert sorted(map(repr, rows[0])) == sorted(map(repr, rows[1]))
    size = 2 * one.split_counts["train"]["input_tokens"]
    for passes, shards in ((1, 1), (2, 2)):
        how = make_build_config(
            encoder,
            ExampleRecipe("bert", 16, dupe_factor=passes),
            validation_fraction=0,
            max_shard_bytes=size + 1,
        )
        assert len(build_from_group(out / str(passes), shard_group, how).outputs) == shards


def test_rows_are_the_same_wherever_the_documents_lie_and_whatever_they_are_made_with(
    out: Path, tmp_path: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    shutil.copytree(tmp_path / "abstracts", tmp_path / "moved")
    moved = replace(shard_group, folder=str(tmp_path / "moved"))
    first = build_from_group(out / "1", shard_group, make_build_config(encoder))
    again = build_from_group(out / "2", moved, make_build_config(encoder))
    assert first == again
    assert [*read_result_files(out / "1", first).values()] == [*read_result_files(out / "2", again).values()]


# Again


def marks(out: Path, made: BuildResult) -> dict[str, int]:
    """Each file by its number in the file system, which is another one when it is written again."""
    return {name: Path(name).stat().st_ino for name in read_result_files(out, made)}


DEALT = {"train": 3, "validation": 2}


@pytest.mark.parametrize("buckets", [{}, DEALT])
def test_what_is_made_is_not_made_again(
    buckets: dict[str, int], out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    how = make_build_config(encoder, num_buckets=buckets)
    first = build_from_group(out, shard_group, how)
    before = marks(out, first)
    again = build_from_group(out, shard_group, how)
    assert again == first
    assert {
        type(counts)
        for counts in (again.dropped, *again.split_counts.values(), *again.tokens_by_year.values())
    } == {Counter}
    assert marks(out, first) == before


def _gone(path: Path) -> None:
    path.unlink()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize(("buckets", "damage"), [({}, _gone), ({}, _cut), (DEALT, _gone)])
@pytest.mark.parametrize("which", [0, 1])
def test_a_report_whose_files_are_not_as_it_says_is_made_again(
    buckets: dict[str, int],
    damage: Callable[[Path], None],
    which: int,
    out: Path,
    shard_group: ShardGroup,
    encoder: Encoder,
) -> None:
    how = make_build_config(encoder, num_buckets=buckets)
    first = build_from_group(out, shard_group, how)
    before = read_result_files(out, first)
    damage(Path(list(before)[which]))
    assert build_from_group(out, shard_group, how) == first
    assert read_result_files(out, first) == before


def test_a_shard_of_documents_that_is_not_as_listed_is_bad_and_has_no_report(
    out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    path = Path(shard_group.folder) / shard_group.shards[1].file
    whole = path.read_bytes()
    for data, said in (
        (whole[:-1], f"it has {len(whole) - 1:,} bytes, and its manifest lists {len(whole):,}"),
        (whole[:-1] + b"x", "its SHA-256 is not the one that its manifest lists"),
        (None, "No such file or directory"),
    ):
        path.write_bytes(data) if data else path.unlink()
        made = build_from_group(out, shard_group, make_build_config(encoder))
        assert made == BuildResult(shard_group.name, failures=[f"{path}: {said}"])
        assert list_files(out) == set()
    path.write_bytes(whole)
    assert build_from_group(out, shard_group, make_build_config(encoder)).failures == []


@pytest.mark.parametrize(
    ("part", "after", "buckets"),
    [
        ("/train/", 0, {}),
        ("/train/", 3_000, {}),
        ("/validation/", 500, {}),
        ("/pretrain_tfrecords/", 2_000, {}),
        ("/shuffle_spill/", 3_000, DEALT),
        ("/rejected/", 10, {}),
        ("/build_reports/", 100, {}),
    ],
)
def test_a_disk_that_is_full_leaves_no_file_half_written_and_no_report(
    part: str,
    after: int,
    buckets: dict[str, int],
    out: Path,
    shard_group: ShardGroup,
    encoder: Encoder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MAX_DOCUMENT_TOKENS", 20)
    recipe = ExampleRecipe("electra", 16)
    writer = ShardWriter(make_record_encoder(encoder, recipe))
    how = make_build_config(encoder, recipe, num_buckets=buckets, writer=writer)
    fresh = build_from_group(out / "fresh", shard_group, how)
    assert fresh.rejected["too-long"]
    with pytest.raises(OSError, match="No space left"):
        build_from_group(out / "full", shard_group, how, FullDiskStorage(part, after))
    left = list_files(out / "full")
    assert not [
        name for name in left if part in f"/{name}" or "/build_reports/" in name or TEMPORARY_PREFIX in name
    ]
    for name in left:
        assert (out / "full" / name).read_bytes() == (out / "fresh" / name).read_bytes()
    assert build_from_group(out / "full", shard_group, how) == fresh
    assert list_files(out / "full") == list_files(out / "fresh")
    for name in list_files(out / "fresh") - {f".bioshards/build_reports/{shard_group.name}.json"}:
        assert (out / "full" / name).read_bytes() == (out / "fresh" / name).read_bytes()


def test_a_fault_between_two_shards_of_a_group_is_made_good(
    out: Path, shard_group: ShardGroup, encoder: Encoder
) -> None:
    """Shards that were whole by then are written again, under the same names."""
    how = make_build_config(encoder, max_shard_bytes=1)
    fresh = build_from_group(out / "fresh", shard_group, how)
    sizes = [one.bytes for one in fresh.outputs if one.file.startswith("train")]
    with pytest.raises(OSError, match="No space left"):
        build_from_group(out / "full", shard_group, how, FullDiskStorage("/train/", sum(sizes[:2]) + 10))
    trained = [name for name in list_files(out / "full") if name.startswith("train")]
    assert len(trained) == 2
    assert build_from_group(out / "full", shard_group, how) == fresh


def test_an_encoder_that_fails_leaves_nothing(
    out: Path, shard_group: ShardGroup, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Encoder, "encode_all", failing)
    with pytest.raises(MemoryError):
        build_from_group(out, shard_group, make_build_config(encoder))
    assert list_files(out) == set()


# Writing


def _batches(error: Exception | None = None) -> Iterator[pa.RecordBatch]:
    plan = RowPlan(make_block({"pubmed:1": [9]}))
    for number in range(4):
        plan.add(make_single_segment_row(0, 2 + number, 4 + number), number, 0)
    yield from plan.iter_batches(plan.sort_by_key()[0], make_schema(), 3)
    if error:
        raise error


def test_a_written_shard_is_listed_as_it_is(out: Path, encoder: Encoder) -> None:
    writer = ShardWriter(make_record_encoder(encoder, ExampleRecipe("electra", 8)))
    keys = np.arange(4, dtype=np.uint64)
    listed = writer.write(FILES, str(out), "validation", "data-x", make_schema(), _batches(), keys)
    assert [one.file for one in listed] == [
        "validation/data-x.arrow",
        "validation_tfrecords/pretrain_data.tfrecord-x",
    ]
    for one in listed:
        data = (out / one.file).read_bytes()
        assert one.rows == 4
        assert (one.bytes, one.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert has_all_outputs(FILES, str(out), listed)
    assert has_all_outputs(FILES, str(out), [])
    (out / listed[1].file).write_bytes(b"")
    assert not has_all_outputs(FILES, str(out), listed)


@pytest.mark.parametrize("error", [ValueError("no rows"), KeyboardInterrupt()])
def test_rows_that_fail_leave_no_file(error: Exception, out: Path, encoder: Encoder) -> None:
    writer = ShardWriter(make_record_encoder(encoder, ExampleRecipe("electra", 8)))
    keys = np.arange(4, dtype=np.uint64)
    with pytest.raises(type(error)):
        writer.write(FILES, str(out), "train", "data-x", make_schema(), _batches(error), keys)
    assert list_files(out) == set()
