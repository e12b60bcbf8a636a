"""Random keys, shard groups and buckets: the place of a row depends on its document only."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.manifest import Shard
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.shards.pretraining_schema import BATCH_ROWS, metadata_from_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import global_shuffle, pretraining_dir
from bioshards.vocab.pretraining.build import BuildResult, build_group
from bioshards.vocab.pretraining.objectives.document_rng import (
    DocumentRng,
    derive_document_key,
)
from bioshards.vocab.pretraining.row_plan import KeyArray, RowPlan, derive_row_keys
from bioshards.vocab.pretraining.shard_groups import MIN_GROUP_BYTES, ShardGroup, group_shards
from tests.support.full_disk import FullDiskStorage
from tests.support.hypothesis_profiles import examples
from tests.support.vocab.block_factories import (
    MakeJob,
    list_files,
    make_abstracts,
    make_block,
    make_build_config,
    make_fake_encoder,
    make_schema,
    make_single_group,
    make_single_segment_row,
    plan_rows,
    read_listed_rows,
    splitmix64,
    write_documents,
)

FILES = LocalStorage()
WORDS = st.integers(0, (1 << 64) - 1)

# Recorded random numbers. A change of these values changes every pretraining set.


def test_document_keys_equal_recorded_values() -> None:
    assert derive_document_key(0, 0, "pubmed:1") == 12694863430520147266
    assert derive_document_key(1, 0, "pubmed:1") == 8009952532861615875
    assert derive_document_key(0, 1, "pubmed:1") == 121508114598860686
    assert derive_document_key(12, 4, "pmc:PMC123.1") == 14046595584137044750
    assert derive_document_key(0, 0, "pubmed:β 😀") == 6316054852265378481


@given(st.integers(0, 10**6), st.integers(0, 99), st.text(st.characters(exclude_categories=["Cs"])))
def test_document_key_is_eight_bytes_of_blake2b(seed: int, number: int, document: str) -> None:
    digest = hashlib.blake2b(f"{seed} {number} {document}".encode(), digest_size=8)
    assert derive_document_key(seed, number, document) == int(digest.hexdigest(), 16)


def test_random_numbers_equal_recorded_values() -> None:
    rng = DocumentRng().reseed(derive_document_key(0, 0, "pubmed:1"))
    assert [rng.random().hex() for _ in range(2)] == ["0x1.7fc6c619fb604p-3", "0x1.c10bc77bc8a35p-1"]
    assert [rng.randint(5, 256) for _ in range(6)] == [154, 71, 126, 108, 104, 197]
    assert [DocumentRng().reseed(state).random() for state in (0, (1 << 64) - 1)] == [
        0.8444218515250481,
        0.021825695401270107,
    ]


def test_row_keys_equal_recorded_values() -> None:
    keys = np.array([0, 0, derive_document_key(0, 0, "pubmed:1"), (1 << 64) - 1], np.uint64)
    assert derive_row_keys(keys, np.array([0, 1, 0, 7])).tolist() == [
        16294208416658607535,
        7960286522194355700,
        8688541940849963489,
        4638043754431676516,
    ]


@given(st.lists(st.tuples(WORDS, WORDS), max_size=20))
def test_row_keys_are_splitmix64(pairs: list[tuple[int, int]]) -> None:
    keys, numbers = (np.array([pair[which] for pair in pairs], np.uint64) for which in (0, 1))
    assert derive_row_keys(keys, numbers).tolist() == [splitmix64(*pair) for pair in pairs]


@given(WORDS)
def test_rows_of_a_document_have_distinct_keys(state: int) -> None:
    found = derive_row_keys(np.full(2_000, state, np.uint64), np.arange(2_000))
    assert len(set(found.tolist())) == 2_000


def test_key_bits_are_set_half_of_the_time() -> None:
    """Each of 64 bits, in 20,000 keys, is within five standard deviations of one half."""
    documents = np.array(
        [derive_document_key(3, 0, f"pubmed:{number}") for number in range(20_000)], np.uint64
    )
    for keys in (documents, derive_row_keys(documents, np.zeros(20_000, np.uint64))):
        for bit in range(64):
            share = float(((keys >> np.uint64(bit)) & np.uint64(1)).mean())
            assert abs(share - 0.5) < 5 * 0.5 / math.sqrt(20_000)


class ConstantRng(DocumentRng):
    """Generator that always draws the same number."""

    def __init__(self, drawn: float) -> None:
        super().__init__()
        self.random = lambda: drawn


HIGHEST = 1 - 2**-53
"""The highest number that ``random()`` gives (Python's documentation of random: multiples of 2**-53)."""


@given(st.integers(-(10**6), 10**6), st.integers(0, 1 << 52))
def test_integers_stay_within_their_bounds(low: int, width: int) -> None:
    assert ConstantRng(0.0).randint(low, low + width) == low
    assert ConstantRng(HIGHEST).randint(low, low + width) == low + width


def test_integers_are_uniform() -> None:
    """Each of 252 values is within five standard deviations, in 100,000 draws over many documents."""
    rng = DocumentRng()
    counts: Counter[int] = Counter()
    for number in range(1_000):
        rng.reseed(derive_document_key(0, 0, f"pubmed:{number}"))
        counts.update(rng.randint(5, 256) for _ in range(100))
    assert set(counts) == set(range(5, 257))
    share = 1 / 252
    deviation = math.sqrt(100_000 * share * (1 - share))
    assert all(abs(times - 100_000 * share) < 5 * deviation for times in counts.values())


def test_reseeding_ignores_earlier_draws() -> None:
    rng = DocumentRng()
    first = [rng.reseed(5).random(), rng.randint(0, 99)]
    for _ in range(700):
        rng.random()
    assert [rng.reseed(5).random(), rng.randint(0, 99)] == first


# Shard groups


def make_input(folder: str, *sizes: int) -> DocumentsInput:
    """Return an input whose shards have these sizes; no file exists."""
    listed = [
        Shard(f"data-{n}-00000.arrow", 5, size, hashlib.sha256(f"{folder} {n} {size}".encode()).hexdigest())
        for n, size in enumerate(sizes)
    ]
    return DocumentsInput(folder, "pubmed_to_shards", tuple(listed))


def group_documents(
    *inputs: DocumentsInput, seed: int = 0, **overlap_lists: dict[str, str]
) -> list[ShardGroup]:
    return list(group_shards(inputs, seed, overlap_lists))


SIZES = st.lists(st.integers(1, MIN_GROUP_BYTES * 3 // 2), max_size=12)


@given(st.lists(SIZES, max_size=3))
def test_consecutive_shards_are_grouped_up_to_the_minimum_size(
    sizes_by_folder: list[list[int]],
) -> None:
    inputs = [make_input(f"folder{number}", *sizes) for number, sizes in enumerate(sizes_by_folder)]
    groups = group_documents(*inputs)
    for documents in inputs:
        folder_groups = [group for group in groups if group.folder == documents.folder]
        assert tuple(chain.from_iterable(group.shards for group in folder_groups)) == documents.shards
        for group in folder_groups:
            sizes = [shard.bytes for shard in group.shards]
            if group is not folder_groups[-1]:
                assert sum(sizes[:-1]) < MIN_GROUP_BYTES <= sum(sizes)
            elif len(folder_groups) > 1:
                assert sum(sizes) >= MIN_GROUP_BYTES // 2
    assert len({group.name for group in groups}) == len(groups)
    assert sum(len(group.shards) for group in groups) == sum(map(len, sizes_by_folder))


def test_group_name_depends_on_content_and_seed() -> None:
    here = make_input("here", 10, 20)
    (group,) = group_documents(here)
    assert len(group.name) == 16
    text = " ".join(["0", *(shard.sha256 for shard in here.shards)])
    assert group.name == hashlib.sha256(text.encode()).hexdigest()[:16]
    (elsewhere,) = group_documents(DocumentsInput("gs://elsewhere/again", here.pipeline, here.shards))
    assert elsewhere.name == group.name
    renamed = tuple(msgspec.structs.replace(shard, file=f"other-{n}") for n, shard in enumerate(here.shards))
    (renamed_group,) = group_documents(DocumentsInput("here", here.pipeline, renamed))
    assert renamed_group.name == group.name
    others = [
        group_documents(here, seed=1),
        group_documents(DocumentsInput("here", here.pipeline, here.shards[::-1])),
        group_documents(DocumentsInput("here", here.pipeline, here.shards[:1])),
        group_documents(here, here={"full": "a1"}),
        group_documents(here, here={"full": "b2"}),
        group_documents(here, here={"full": "a1", "other": "b2"}),
    ]
    names = [groups[0].name for groups in others]
    assert len({group.name, *names}) == 1 + len(others)


def test_group_name_is_independent_of_the_location_of_overlap_lists() -> None:
    here = make_input("here", 10)
    (one,) = group_documents(here, here={"full": "a1", "more": "b2"})
    (other,) = group_documents(here, here={"elsewhere": "b2", "moved": "a1"})
    assert one.name == other.name
    assert one.overlap_lists == (("full", "a1"), ("more", "b2"))


def test_group_has_the_overlap_lists_of_its_directory() -> None:
    groups = group_documents(make_input("abstracts", 10), make_input("full", 10), abstracts={"full": "a1"})
    assert [group.overlap_lists for group in groups] == [(("full", "a1"),), ()]


@given(st.lists(st.integers(MIN_GROUP_BYTES, 3 * MIN_GROUP_BYTES), min_size=1, max_size=8), st.data())
def test_changed_large_shard_renames_only_its_group(sizes: list[int], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(sizes) - 1))
    before = group_documents(make_input("here", *sizes))
    after = group_documents(make_input("here", *sizes[:index], sizes[index] + 1, *sizes[index + 1 :]))
    changed = [
        n
        for n, (group, changed_group) in enumerate(zip(before, after, strict=True))
        if group.name != changed_group.name
    ]
    assert changed == [index]


@given(SIZES.filter(bool), st.data())
def test_changed_shard_renames_its_group(sizes: list[int], data: st.DataObject) -> None:
    """Groups of later small shards may change too. Of earlier groups, only the one before may change."""
    index = data.draw(st.integers(0, len(sizes) - 1))
    before = group_documents(make_input("here", *sizes))
    after = group_documents(make_input("here", *sizes[:index], sizes[index] + 1, *sizes[index + 1 :]))
    changed_group = next(
        n for n in range(len(before)) if sum(len(group.shards) for group in before[: n + 1]) > index
    )
    num_unchanged = min(changed_group, len(before) - 1, len(after) - 1)
    assert [group.name for group in before[:num_unchanged]] == [group.name for group in after[:num_unchanged]]
    assert before[changed_group].name not in {group.name for group in after}


def test_order_of_group_names_differs_from_shard_order() -> None:
    names = [group.name for group in group_documents(make_input("here", *[MIN_GROUP_BYTES] * 30))]
    assert sorted(names) != names
    again = [group.name for group in group_documents(make_input("here", *[MIN_GROUP_BYTES] * 30), seed=9)]
    assert np.argsort(names).tolist() != np.argsort(again).tolist()


def test_small_remainder_joins_the_previous_group() -> None:
    """A group of two validation documents would pair them only with each other in BERT's rows."""
    half = MIN_GROUP_BYTES // 2
    for last_size, expected in ((half - 1, [2]), (half, [1, 1])):
        assert [
            len(group.shards) for group in group_documents(make_input("here", MIN_GROUP_BYTES, last_size))
        ] == expected
    assert len(group_documents(make_input("here", 1))) == 1


def test_a_directory_without_shards_has_no_group() -> None:
    assert group_documents(make_input("here")) == []


# Buckets


def make_plan(rows: Sequence[tuple[int, int]], first: int = 0) -> RowPlan:
    """Plan one-token rows with these document keys and row numbers; each row has its own token."""
    plan = RowPlan(make_block({f"pubmed:{first}": [first + len(rows) + 1]}))
    for index, (document_key, number) in enumerate(rows):
        row = make_single_segment_row(0, 2 + first + index, 3 + first + index)
        plan.add_rows([row], [document_key], [number])
    return plan


def spill_plans(folder: Path, plans: Sequence[RowPlan], buckets: int) -> list[str]:
    paths = [str(folder / f"dealt-{number}") for number in range(len(plans))]
    for path, plan in zip(paths, plans, strict=True):
        global_shuffle.spill_rows(FILES, path, plan, *plan.sort_by_key(), make_schema(), buckets)
    return paths


def read_bucket_in_order(paths: list[str], number: int) -> tuple[pa.RecordBatch, KeyArray]:
    """Return the sorted rows of a bucket, and their keys."""
    bucket = global_shuffle.read_bucket(FILES, paths, number)
    return bucket.rows.take(bucket.order), bucket.keys


KEYS = st.one_of(st.integers(0, 3), WORDS)
ROWS = st.lists(st.tuples(KEYS, st.integers(0, 2)), max_size=12)


@given(
    rows_by_file=st.lists(ROWS, min_size=1, max_size=4), buckets=st.one_of(st.integers(1, 12), st.just(70))
)
@settings(max_examples=examples(40))
def test_concatenated_buckets_have_all_rows_in_key_order(
    rows_by_file: list[list[tuple[int, int]]], buckets: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Rows with equal keys keep the order of the files, and within a file that of the plan."""
    starts = np.cumsum([0, *map(len, rows_by_file)]).tolist()
    plans = [make_plan(rows, first) for rows, first in zip(rows_by_file, starts, strict=False)]
    paths = spill_plans(tmp_path_factory.mktemp("dealt"), plans, buckets)
    joined: list[tuple[int, list[int], str]] = []
    for number in range(buckets):
        rows, keys = read_bucket_in_order(paths, number)
        rows.validate(full=True)
        assert rows.schema.equals(make_schema(), check_metadata=True)
        assert keys.dtype == np.uint64
        assert all((row_key >> 32) * buckets >> 32 == number for row_key in keys.tolist())
        found = zip(keys.tolist(), rows.to_pylist(), strict=True)
        joined += [(row_key, row["input_ids"], row["spans"][0]["document"]) for row_key, row in found]
    expected = [
        (splitmix64(*key_and_number), row["input_ids"], row["spans"][0]["document"])
        for plan, rows in zip(plans, rows_by_file, strict=True)
        for key_and_number, row in zip(
            sorted(rows, key=lambda key_and_number: splitmix64(*key_and_number)),
            plan_rows(plan, make_schema()),
            strict=True,
        )
    ]
    assert joined == sorted(expected, key=lambda row: row[0])


@pytest.mark.parametrize("buckets", [1, 2, 7, 64, 1000])
def test_spill_file_has_a_record_batch_per_bucket_and_a_key_column(buckets: int, tmp_path: Path) -> None:
    plan = make_plan([(number * 7919, 0) for number in range(50)])
    (path,) = spill_plans(tmp_path, [plan], buckets)
    with pa.ipc.open_file(path) as reader:
        assert reader.num_record_batches == buckets
        assert reader.schema.names == [*make_schema().names, "key"]
        assert reader.schema.field("key").type == pa.uint64()
        assert sum(len(reader.get_batch(number)) for number in range(buckets)) == 50


def test_keys_at_bucket_bounds_are_in_the_right_bucket(tmp_path: Path) -> None:
    """The lowest and the highest key of each of three buckets."""
    plan = make_plan([(number, 0) for number in range(6)])
    bounds = [-(-(number << 32) // 3) << 32 for number in range(4)]
    keys = np.array([edge for low, high in pairwise(bounds) for edge in (low, high - 1)], np.uint64)
    path = str(tmp_path / "dealt")
    global_shuffle.spill_rows(FILES, path, plan, np.arange(6), keys, make_schema(), 3)
    found = [read_bucket_in_order([path], number)[1].tolist() for number in range(3)]
    assert found == [keys[start : start + 2].tolist() for start in (0, 2, 4)]


def test_bucket_keeps_label_column_and_32_bit_ids(tmp_path: Path) -> None:
    columns = make_schema(70_000, labelled=True)
    plan = RowPlan(make_block({"pubmed:1": [3]}, make_fake_encoder(70_000)))
    plan.add_rows([make_single_segment_row(0, 2, 4, label=-100)], [1], [0])
    path = str(tmp_path / "dealt")
    global_shuffle.spill_rows(FILES, path, plan, *plan.sort_by_key(), columns, 2)
    found = [read_bucket_in_order([path], number)[0] for number in range(2)]
    assert [rows.schema.equals(columns) for rows in found] == [True, True]
    assert [row["label"] for rows in found for row in rows.to_pylist()] == [-100]


def test_record_batches_have_2048_rows(tmp_path: Path) -> None:
    plan = make_plan([(number, 0) for number in range(2 * BATCH_ROWS + 3)])
    rows = global_shuffle.read_bucket(FILES, spill_plans(tmp_path, [plan], 1), 0)
    schema = make_schema().with_metadata({"whose": "the shard's"})
    batches = list(global_shuffle.iter_batches(rows, schema))
    assert list(map(len, batches)) == [BATCH_ROWS, BATCH_ROWS, 3]
    assert all(batch.schema.equals(schema, check_metadata=True) for batch in batches)
    assert [row for batch in batches for row in batch.to_pylist()] == plan_rows(plan)


def test_full_disk_leaves_no_spill_file(tmp_path: Path) -> None:
    plan = make_plan([(number, 0) for number in range(50)])
    files = FullDiskStorage("dealt", 2_000)
    with pytest.raises(OSError, match="No space left"):
        global_shuffle.spill_rows(
            files, str(tmp_path / "dealt"), plan, *plan.sort_by_key(), make_schema(), 10
        )
    assert list_files(tmp_path) == set()


# Merging


def make_shard_groups(folder: Path) -> list[ShardGroup]:
    """Write two directories of abstracts, and return each as one shard group."""
    inputs = [
        write_documents(folder / "one", {"a": make_abstracts(1, 40), "b": make_abstracts(40, 60)}),
        write_documents(folder / "two", {"c": make_abstracts(60, 90)}),
    ]
    return [make_single_group(documents) for documents in inputs]


def build_and_spill(
    out: Path, shard_groups: Sequence[ShardGroup], config: MakeJob, split: str = "train"
) -> list[str]:
    results = [build_group(config(out), group) for group in shard_groups]
    return [name for result in results for name in result.spill_files[split]]


def merge_buckets(out: Path, config: MakeJob, names: Sequence[str], split: str = "train") -> list[Shard]:
    job = config(out)
    built = [BuildResult("group", spill_files={split: list(names)})]
    buckets = [(split, n) for n in range(job.num_buckets[split])]
    return [shard for bucket in buckets for shard in pretraining_dir.merge_bucket(job, bucket, built).outputs]


def test_merged_buckets_have_the_same_rows_as_group_shards(tmp_path: Path, encoder: Encoder) -> None:
    shard_groups = make_shard_groups(tmp_path)
    shuffled = make_build_config(encoder, num_buckets={"train": 3, "validation": 1})
    for split in ("train", "validation"):
        names = build_and_spill(tmp_path / "global", shard_groups, shuffled, split)
        listed = merge_buckets(tmp_path / "global", shuffled, names, split)
        rows = read_listed_rows(tmp_path / "global", listed)
        job = make_build_config(encoder)(tmp_path / "shard")
        results = [build_group(job, group) for group in shard_groups]
        shards = [shard for group in results for shard in group.outputs if shard.file.startswith(split)]
        expected = read_listed_rows(tmp_path / "shard", shards)
        assert sorted(map(repr, rows)) == sorted(map(repr, expected))
        assert rows != expected
        assert [shard.rows for shard in listed] == [
            len(read_listed_rows(tmp_path / "global", [shard])) for shard in listed
        ]


def test_merged_shards_have_names_checksums_and_metadata(tmp_path: Path, encoder: Encoder) -> None:
    config = make_build_config(encoder, num_buckets={"train": 2, "validation": 1})
    listed = merge_buckets(
        tmp_path / "out", config, build_and_spill(tmp_path / "out", make_shard_groups(tmp_path), config)
    )
    assert [shard.file for shard in listed] == [
        "train/data-00000-of-00002.arrow",
        "train/data-00001-of-00002.arrow",
    ]
    for shard in listed:
        path = tmp_path / "out" / shard.file
        assert shard.bytes == path.stat().st_size
        assert shard.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        with pa.ipc.open_stream(path) as stream:
            metadata = metadata_from_schema(stream.schema)
            rows = stream.read_all()
        assert (metadata["split"], metadata["rows"]) == ("train", shard.rows)
        assert metadata["tokens"] == len(rows["input_ids"].combine_chunks().flatten())


def test_merged_shards_are_independent_of_group_order(tmp_path: Path, encoder: Encoder) -> None:
    """Both groups contain the same documents, so that rows have equal keys."""
    config = make_build_config(encoder, num_buckets={"train": 3, "validation": 1})
    texts = make_abstracts(30, 60)
    others = [document._replace(id=f"pubmed:{n}", pmid=n) for n, document in enumerate(texts, 20)]
    shard_groups = [
        make_single_group(write_documents(tmp_path / name, {"a": documents}))
        for name, documents in (("one", texts), ("other", others))
    ]
    names = build_and_spill(tmp_path / "one", shard_groups, config)
    backwards = build_and_spill(tmp_path / "other", shard_groups[::-1], config)[::-1]
    assert sorted(names) == sorted(backwards)
    assert merge_buckets(tmp_path / "one", config, names) == merge_buckets(
        tmp_path / "other", config, backwards[::-1]
    )


def read_inodes(out: Path) -> dict[str, tuple[int, int]]:
    """Return inode and time of each shard: a rewritten file may get the inode of a removed one."""
    states = {path.name: path.stat() for path in (out / "train").iterdir()}
    return {name: (state.st_ino, state.st_mtime_ns) for name, state in states.items()}


def test_bucket_is_rebuilt_only_for_other_spill_files(tmp_path: Path, encoder: Encoder) -> None:
    config = make_build_config(encoder, num_buckets={"train": 2, "validation": 1})
    out, shard_groups = tmp_path / "out", make_shard_groups(tmp_path)
    names = build_and_spill(out, shard_groups, config)
    first = merge_buckets(out, config, names)
    before = read_inodes(out)
    assert merge_buckets(out, config, names[::-1]) == first
    assert read_inodes(out) == before
    fewer = merge_buckets(out, config, names[:1])
    assert fewer != first
    assert not set(read_inodes(out).values()) & set(before.values())
    assert merge_buckets(out, config, names) == first


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1])])
def test_bucket_with_missing_or_truncated_shard_is_rebuilt(
    damage: Any, tmp_path: Path, encoder: Encoder
) -> None:
    config = make_build_config(encoder, num_buckets={"train": 2, "validation": 1})
    out = tmp_path / "out"
    names = build_and_spill(out, make_shard_groups(tmp_path), config)
    first = merge_buckets(out, config, names)
    before = read_inodes(out)
    damage(out / first[1].file)
    assert merge_buckets(out, config, names) == first
    now = read_inodes(out)
    assert now["data-00000-of-00002.arrow"] == before["data-00000-of-00002.arrow"]
    data = (out / first[1].file).read_bytes()
    assert hashlib.sha256(data).hexdigest() == first[1].sha256


@pytest.mark.parametrize(("first", "then"), [(3, 2), (2, 3), (1, 5)])
def test_rows_are_spilled_again_for_another_number_of_buckets(
    first: int, then: int, tmp_path: Path, encoder: Encoder
) -> None:
    """The number of buckets changes when an input grows between an interrupted run and the next."""
    shard_groups = make_shard_groups(tmp_path)
    now = make_build_config(encoder, num_buckets={"train": then, "validation": 1})
    build_and_spill(
        tmp_path / "out",
        shard_groups,
        make_build_config(encoder, num_buckets={"train": first, "validation": 1}),
    )
    merged_again = merge_buckets(tmp_path / "out", now, build_and_spill(tmp_path / "out", shard_groups, now))
    fresh = merge_buckets(tmp_path / "fresh", now, build_and_spill(tmp_path / "fresh", shard_groups, now))
    assert merged_again == fresh


def test_buckets_are_merged_again_for_another_number_of_buckets(tmp_path: Path, encoder: Encoder) -> None:
    shard_groups = make_shard_groups(tmp_path)
    for number in (3, 2):
        config = make_build_config(encoder, num_buckets={"train": number, "validation": 1})
        listed = merge_buckets(
            tmp_path / "out", config, build_and_spill(tmp_path / "out", shard_groups, config)
        )
        assert [shard.file for shard in listed] == [
            f"train/data-{n:05d}-of-{number:05d}.arrow" for n in range(number)
        ]


def test_empty_bucket_has_no_shard(tmp_path: Path, encoder: Encoder) -> None:
    """``datasets`` raises on a shard without a record batch."""
    config = make_build_config(encoder, num_buckets={"train": 500, "validation": 1})
    group = make_single_group(write_documents(tmp_path / "one", {"a": make_abstracts(1, 12)}))
    names = build_and_spill(tmp_path / "out", [group], config)
    listed = merge_buckets(tmp_path / "out", config, names)
    assert 0 < len(listed) < 500
    assert all(shard.rows for shard in listed)
    assert len(list_files(tmp_path / "out" / "train")) == len(listed)
    assert merge_buckets(tmp_path / "out", config, names) == listed


def test_failed_bucket_has_no_report(tmp_path: Path, encoder: Encoder) -> None:
    config = make_build_config(encoder, num_buckets={"train": 1, "validation": 1})
    names = build_and_spill(tmp_path, make_shard_groups(tmp_path / "in"), config)
    job = config(tmp_path, FullDiskStorage("/train/", 5_000))
    built = [BuildResult("group", spill_files={"train": names})]
    with pytest.raises(OSError, match="No space left"):
        pretraining_dir.merge_bucket(job, ("train", 0), built)
    assert list_files(tmp_path / "train") == set()
    assert list_files(tmp_path / ".bioshards" / "merged_buckets") == set()
    assert merge_buckets(tmp_path, config, names)
