"""Random keys, shard groups and buckets: the place of a row depends on its document only."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards.arrow_io import Shard
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.shards.pretraining_schema import BATCH_ROWS, metadata_from_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import global_shuffle, pretraining_dir
from bioshards.vocab.pretraining.build import BuildConfig, build_group
from bioshards.vocab.pretraining.objectives.document_rng import (
    DocumentRng,
    derive_document_key,
)
from bioshards.vocab.pretraining.row_keys import KeyArray, derive_row_keys
from bioshards.vocab.pretraining.row_plan import RowPlan
from bioshards.vocab.pretraining.shard_groups import MIN_GROUP_BYTES, ShardGroup, group_shards
from tests.support.full_disk import FullDiskStorage
from tests.support.vocab.block_factories import (
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

# Chances, which are the same for ever: a change of these numbers is a change of every pretraining set


def test_keys_are_the_same_for_ever() -> None:
    assert derive_document_key(0, 0, "pubmed:1") == 12694863430520147266
    assert derive_document_key(1, 0, "pubmed:1") == 8009952532861615875
    assert derive_document_key(0, 1, "pubmed:1") == 121508114598860686
    assert derive_document_key(12, 4, "pmc:PMC123.1") == 14046595584137044750
    assert derive_document_key(0, 0, "pubmed:β 😀") == 6316054852265378481


@given(st.integers(0, 10**6), st.integers(0, 99), st.text(st.characters(exclude_categories=["Cs"])))
@settings(deadline=None)
def test_a_key_is_eight_bytes_of_blake2b(seed: int, number: int, document: str) -> None:
    digest = hashlib.blake2b(f"{seed} {number} {document}".encode(), digest_size=8)
    assert derive_document_key(seed, number, document) == int(digest.hexdigest(), 16)


def test_chances_are_the_same_for_ever() -> None:
    chances = DocumentRng().reseed(derive_document_key(0, 0, "pubmed:1"))
    assert [chances.random().hex() for _ in range(2)] == ["0x1.7fc6c619fb604p-3", "0x1.c10bc77bc8a35p-1"]
    assert [chances.randint(5, 256) for _ in range(6)] == [154, 71, 126, 108, 104, 197]
    assert [DocumentRng().reseed(state).random() for state in (0, (1 << 64) - 1)] == [
        0.8444218515250481,
        0.021825695401270107,
    ]


def test_row_keys_are_the_same_for_ever() -> None:
    keys = np.array([0, 0, derive_document_key(0, 0, "pubmed:1"), (1 << 64) - 1], np.uint64)
    assert derive_row_keys(keys, np.array([0, 1, 0, 7])).tolist() == [
        16294208416658607535,
        7960286522194355700,
        8688541940849963489,
        4638043754431676516,
    ]


@given(st.lists(st.tuples(WORDS, WORDS), max_size=20))
@settings(deadline=None)
def test_row_keys_are_split_mix_of_plain_integers(drawn: list[tuple[int, int]]) -> None:
    keys, numbers = (np.array([pair[which] for pair in drawn], np.uint64) for which in (0, 1))
    assert derive_row_keys(keys, numbers).tolist() == [splitmix64(*pair) for pair in drawn]


@given(WORDS)
@settings(deadline=None)
def test_the_rows_of_a_document_have_keys_of_their_own(state: int) -> None:
    found = derive_row_keys(np.full(2_000, state, np.uint64), np.arange(2_000))
    assert len(set(found.tolist())) == 2_000


def test_keys_and_row_keys_have_all_bits_as_often_set_as_not() -> None:
    """For each of 64 bits, in 20,000 keys, within five standard deviations of a half."""
    documents = np.array(
        [derive_document_key(3, 0, f"pubmed:{number}") for number in range(20_000)], np.uint64
    )
    for found in (documents, derive_row_keys(documents, np.zeros(20_000, np.uint64))):
        for bit in range(64):
            share = float(((found >> np.uint64(bit)) & np.uint64(1)).mean())
            assert abs(share - 0.5) < 5 * 0.5 / math.sqrt(20_000)


class Always(DocumentRng):
    """Draws the same number always."""

    def __init__(self, drawn: float) -> None:
        super().__init__()
        self.random = lambda: drawn


HIGHEST = 1 - 2**-53
"""The highest number that ``random()`` gives (Python's documentation of random: multiples of 2**-53)."""


@given(st.integers(-(10**6), 10**6), st.integers(0, 1 << 52))
@settings(deadline=None)
def test_whole_numbers_are_within_their_bounds_whatever_is_drawn(a: int, wider: int) -> None:
    assert Always(0.0).randint(a, a + wider) == a
    assert Always(HIGHEST).randint(a, a + wider) == a + wider


def test_whole_numbers_are_as_often_one_as_another() -> None:
    """Each of 252 within five standard deviations, of 100,000 draws over many documents."""
    chances = DocumentRng()
    found: Counter[int] = Counter()
    for number in range(1_000):
        chances.reseed(derive_document_key(0, 0, f"pubmed:{number}"))
        found.update(chances.randint(5, 256) for _ in range(100))
    assert set(found) == set(range(5, 257))
    share = 1 / 252
    deviation = math.sqrt(100_000 * share * (1 - share))
    assert all(abs(times - 100_000 * share) < 5 * deviation for times in found.values())


def test_a_source_is_the_documents_whatever_was_drawn_before() -> None:
    chances = DocumentRng()
    first = [chances.reseed(5).random(), chances.randint(0, 99)]
    for _ in range(700):
        chances.random()
    assert [chances.reseed(5).random(), chances.randint(0, 99)] == first


# Portions


def directory(folder: str, *sizes: int) -> DocumentsInput:
    """A directory of shards of these sizes, which are nowhere."""
    listed = [
        Shard(f"data-{n}-00000.arrow", 5, size, hashlib.sha256(f"{folder} {n} {size}".encode()).hexdigest())
        for n, size in enumerate(sizes)
    ]
    return DocumentsInput(folder, "pubmed_to_shards", tuple(listed))


def of(*several: DocumentsInput, seed: int = 0, **lists: dict[str, str]) -> list[ShardGroup]:
    return list(group_shards(several, seed, lists))


SIZES = st.lists(st.integers(1, MIN_GROUP_BYTES * 3 // 2), max_size=12)


@given(st.lists(SIZES, max_size=3))
@settings(deadline=None)
def test_shards_that_follow_one_another_are_taken_together_until_they_are_enough(
    several: list[list[int]],
) -> None:
    inputs = [directory(f"folder{number}", *sizes) for number, sizes in enumerate(several)]
    found = of(*inputs)
    for documents in inputs:
        of_folder = [group for group in found if group.folder == documents.folder]
        assert tuple(chain.from_iterable(group.shards for group in of_folder)) == documents.shards
        for group in of_folder:
            sizes = [shard.bytes for shard in group.shards]
            if group is not of_folder[-1]:
                assert sum(sizes[:-1]) < MIN_GROUP_BYTES <= sum(sizes)
            elif len(of_folder) > 1:
                assert sum(sizes) >= MIN_GROUP_BYTES // 2
    assert len({group.name for group in found}) == len(found)
    assert sum(len(group.shards) for group in found) == sum(map(len, several))


def test_a_groups_name_depends_on_what_is_read_and_on_the_seed() -> None:
    here = directory("here", 10, 20)
    (group,) = of(here)
    assert len(group.name) == 16
    text = " ".join(["0", *(shard.sha256 for shard in here.shards)])
    assert group.name == hashlib.sha256(text.encode()).hexdigest()[:16]
    (elsewhere,) = of(DocumentsInput("gs://elsewhere/again", here.pipeline, here.shards))
    assert elsewhere.name == group.name
    renamed = tuple(replace(shard, file=f"other-{n}") for n, shard in enumerate(here.shards))
    (of_other_names,) = of(DocumentsInput("here", here.pipeline, renamed))
    assert of_other_names.name == group.name
    others = [
        of(here, seed=1),
        of(DocumentsInput("here", here.pipeline, here.shards[::-1])),
        of(DocumentsInput("here", here.pipeline, here.shards[:1])),
        of(here, here={"full": "a1"}),
        of(here, here={"full": "b2"}),
        of(here, here={"full": "a1", "other": "b2"}),
    ]
    names = [one[0].name for one in others]
    assert len({group.name, *names}) == 1 + len(others)


def test_a_groups_name_does_not_depend_on_where_its_lists_are() -> None:
    here = directory("here", 10)
    (one,) = of(here, here={"full": "a1", "more": "b2"})
    (other,) = of(here, here={"elsewhere": "b2", "moved": "a1"})
    assert one.name == other.name
    assert one.overlap_lists == (("full", "a1"), ("more", "b2"))


def test_lists_are_those_of_the_groups_own_directory() -> None:
    found = of(directory("abstracts", 10), directory("full", 10), abstracts={"full": "a1"})
    assert [group.overlap_lists for group in found] == [(("full", "a1"),), ()]


@given(st.lists(st.integers(MIN_GROUP_BYTES, 3 * MIN_GROUP_BYTES), min_size=1, max_size=8), st.data())
@settings(deadline=None)
def test_of_large_shards_a_changed_one_changes_its_own_group_alone(
    sizes: list[int], data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(sizes) - 1))
    before = of(directory("here", *sizes))
    now = of(directory("here", *sizes[:at], sizes[at] + 1, *sizes[at + 1 :]))
    changed = [n for n, (one, other) in enumerate(zip(before, now, strict=True)) if one.name != other.name]
    assert changed == [at]


@given(SIZES.filter(bool), st.data())
@settings(deadline=None)
def test_a_changed_shard_changes_its_groups_name(sizes: list[int], data: st.DataObject) -> None:
    """Of small shards those that come after it may change too; before it only one that a rest joins."""
    at = data.draw(st.integers(0, len(sizes) - 1))
    before = of(directory("here", *sizes))
    now = of(directory("here", *sizes[:at], sizes[at] + 1, *sizes[at + 1 :]))
    whole = next(n for n in range(len(before)) if sum(len(group.shards) for group in before[: n + 1]) > at)
    same = min(whole, len(before) - 1, len(now) - 1)
    assert [group.name for group in before[:same]] == [group.name for group in now[:same]]
    assert before[whole].name not in {group.name for group in now}


def test_groups_are_named_in_another_order_than_their_shards() -> None:
    names = [group.name for group in of(directory("here", *[MIN_GROUP_BYTES] * 30))]
    assert sorted(names) != names
    again = [group.name for group in of(directory("here", *[MIN_GROUP_BYTES] * 30), seed=9)]
    assert np.argsort(names).tolist() != np.argsort(again).tolist()


def test_a_small_rest_joins_the_group_before_it() -> None:
    """BERT's pairs of two held-out documents would all be with each other."""
    half = MIN_GROUP_BYTES // 2
    for rest, together in ((half - 1, [2]), (half, [1, 1])):
        assert [len(group.shards) for group in of(directory("here", MIN_GROUP_BYTES, rest))] == together
    assert len(of(directory("here", 1))) == 1


def test_a_directory_without_shards_has_no_group() -> None:
    assert of(directory("here")) == []


# Buckets


def plan_of(rows: Sequence[tuple[int, int]], first: int = 0) -> RowPlan:
    """A plan of rows of one token each, by their keys and numbers; tokens tell rows apart."""
    plan = RowPlan(make_block({f"pubmed:{first}": [first + len(rows) + 1]}))
    for at, (its_key, number) in enumerate(rows):
        plan.add(make_single_segment_row(0, 2 + first + at, 3 + first + at), its_key, number)
    return plan


def dealt(folder: Path, plans: Sequence[RowPlan], buckets: int) -> list[str]:
    paths = [str(folder / f"dealt-{number}") for number in range(len(plans))]
    for path, plan in zip(paths, plans, strict=True):
        global_shuffle.spill_rows(FILES, path, plan, *plan.sort_by_key(), make_schema(), buckets)
    return paths


def in_order(paths: list[str], number: int) -> tuple[pa.RecordBatch, KeyArray]:
    """A bucket's rows, and their keys."""
    found = global_shuffle.read_bucket(FILES, paths, number)
    return found.rows.take(found.order), found.keys


KEYS = st.one_of(st.integers(0, 3), WORDS)
ROWS = st.lists(st.tuples(KEYS, st.integers(0, 2)), max_size=12)


@given(several=st.lists(ROWS, min_size=1, max_size=4), buckets=st.one_of(st.integers(1, 12), st.just(70)))
@settings(max_examples=40, deadline=None)
def test_the_buckets_in_a_row_are_all_rows_in_the_order_of_their_keys(
    several: list[list[tuple[int, int]]], buckets: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Rows of equal keys stay in the order of the files, and within them in that of the plan."""
    starts = np.cumsum([0, *map(len, several)]).tolist()
    plans = [plan_of(rows, first) for rows, first in zip(several, starts, strict=False)]
    paths = dealt(tmp_path_factory.mktemp("dealt"), plans, buckets)
    joined: list[tuple[int, list[int], str]] = []
    for number in range(buckets):
        rows, keys = in_order(paths, number)
        rows.validate(full=True)
        assert rows.schema.equals(make_schema(), check_metadata=True)
        assert keys.dtype == np.uint64
        assert all((its_key >> 32) * buckets >> 32 == number for its_key in keys.tolist())
        found = zip(keys.tolist(), rows.to_pylist(), strict=True)
        joined += [(its_key, row["input_ids"], row["spans"][0]["document"]) for its_key, row in found]
    expected = [
        (splitmix64(*one), row["input_ids"], row["spans"][0]["document"])
        for plan, rows in zip(plans, several, strict=True)
        for one, row in zip(
            sorted(rows, key=lambda one: splitmix64(*one)), plan_rows(plan, make_schema()), strict=True
        )
    ]
    assert joined == sorted(expected, key=lambda row: row[0])


@pytest.mark.parametrize("buckets", [1, 2, 7, 64, 1000])
def test_a_file_has_a_record_batch_for_each_bucket_and_keys_beside_the_rows(
    buckets: int, tmp_path: Path
) -> None:
    plan = plan_of([(number * 7919, 0) for number in range(50)])
    (path,) = dealt(tmp_path, [plan], buckets)
    with pa.ipc.open_file(path) as reader:
        assert reader.num_record_batches == buckets
        assert reader.schema.names == [*make_schema().names, "key"]
        assert reader.schema.field("key").type == pa.uint64()
        assert sum(len(reader.get_batch(number)) for number in range(buckets)) == 50


def test_keys_at_the_bounds_of_buckets_are_in_the_right_one(tmp_path: Path) -> None:
    """The lowest and the highest key of each of three buckets, as row keys that a plan might have."""
    plan = plan_of([(number, 0) for number in range(6)])
    bounds = [-(-(number << 32) // 3) << 32 for number in range(4)]
    keys = np.array([edge for low, high in pairwise(bounds) for edge in (low, high - 1)], np.uint64)
    path = str(tmp_path / "dealt")
    global_shuffle.spill_rows(FILES, path, plan, np.arange(6), keys, make_schema(), 3)
    found = [in_order([path], number)[1].tolist() for number in range(3)]
    assert found == [keys[start : start + 2].tolist() for start in (0, 2, 4)]


def test_a_bucket_of_a_labelled_and_wide_set_keeps_its_columns(tmp_path: Path) -> None:
    columns = make_schema(70_000, labelled=True)
    plan = RowPlan(make_block({"pubmed:1": [3]}, make_fake_encoder(70_000)))
    plan.add(make_single_segment_row(0, 2, 4, label=-100), 1, 0)
    path = str(tmp_path / "dealt")
    global_shuffle.spill_rows(FILES, path, plan, *plan.sort_by_key(), columns, 2)
    found = [in_order([path], number)[0] for number in range(2)]
    assert [rows.schema.equals(columns) for rows in found] == [True, True]
    assert [row["label"] for rows in found for row in rows.to_pylist()] == [-100]


def test_a_shards_record_batches_are_of_2048_rows(tmp_path: Path) -> None:
    plan = plan_of([(number, 0) for number in range(2 * BATCH_ROWS + 3)])
    rows = global_shuffle.read_bucket(FILES, dealt(tmp_path, [plan], 1), 0)
    facts = make_schema().with_metadata({"whose": "the shard's"})
    batches = list(global_shuffle.iter_batches(rows, facts))
    assert list(map(len, batches)) == [BATCH_ROWS, BATCH_ROWS, 3]
    assert all(batch.schema.equals(facts, check_metadata=True) for batch in batches)
    assert [row for batch in batches for row in batch.to_pylist()] == plan_rows(plan)


def test_a_disk_that_is_full_leaves_no_dealt_file(tmp_path: Path) -> None:
    plan = plan_of([(number, 0) for number in range(50)])
    files = FullDiskStorage("dealt", 2_000)
    with pytest.raises(OSError, match="No space left"):
        global_shuffle.spill_rows(
            files, str(tmp_path / "dealt"), plan, *plan.sort_by_key(), make_schema(), 10
        )
    assert list_files(tmp_path) == set()


# Merging


def inputs_of(folder: Path) -> list[ShardGroup]:
    """Two directories of abstracts as a group each."""
    several = [
        write_documents(folder / "one", {"a": make_abstracts(1, 40), "b": make_abstracts(40, 60)}),
        write_documents(folder / "two", {"c": make_abstracts(60, 90)}),
    ]
    return [make_single_group(documents) for documents in several]


def dealt_out(out: Path, several: Sequence[ShardGroup], how: BuildConfig, split: str = "train") -> list[str]:
    made = [build_group(FILES, OutputDir(str(out)), group, how) for group in several]
    return [name for one in made for name in one.spill_files[split]]


def merged(out: Path, how: BuildConfig, names: Sequence[str], split: str = "train") -> list[Shard]:
    output_dir = OutputDir(str(out))
    buckets = range(how.num_buckets[split])
    return [
        one
        for n in buckets
        for one in pretraining_dir.merge_bucket(FILES, output_dir, how, names, split, n).outputs
    ]


def test_merged_buckets_hold_the_rows_that_shards_of_groups_would(tmp_path: Path, encoder: Encoder) -> None:
    several = inputs_of(tmp_path)
    shuffled = make_build_config(encoder, num_buckets={"train": 3, "validation": 1})
    for split in ("train", "validation"):
        names = dealt_out(tmp_path / "global", several, shuffled, split)
        listed = merged(tmp_path / "global", shuffled, names, split)
        rows = read_listed_rows(tmp_path / "global", listed)
        output_dir = OutputDir(str(tmp_path / "shard"))
        made = [build_group(FILES, output_dir, group, make_build_config(encoder)) for group in several]
        of_groups = [one for group in made for one in group.outputs if one.file.startswith(split)]
        expected = read_listed_rows(tmp_path / "shard", of_groups)
        assert sorted(map(repr, rows)) == sorted(map(repr, expected))
        assert rows != expected
        assert [one.rows for one in listed] == [
            len(read_listed_rows(tmp_path / "global", [one])) for one in listed
        ]


def test_merged_shards_are_named_by_bucket_and_say_what_they_hold(tmp_path: Path, encoder: Encoder) -> None:
    how = make_build_config(encoder, num_buckets={"train": 2, "validation": 1})
    listed = merged(tmp_path / "out", how, dealt_out(tmp_path / "out", inputs_of(tmp_path), how))
    assert [one.file for one in listed] == [
        "train/data-00000-of-00002.arrow",
        "train/data-00001-of-00002.arrow",
    ]
    for one in listed:
        path = tmp_path / "out" / one.file
        assert one.bytes == path.stat().st_size
        assert one.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        with pa.ipc.open_stream(path) as stream:
            facts = metadata_from_schema(stream.schema)
            rows = stream.read_all()
        assert (facts["split"], facts["rows"]) == ("train", one.rows)
        assert facts["tokens"] == len(rows["input_ids"].combine_chunks().flatten())


def test_the_order_in_which_portions_were_made_changes_no_byte(tmp_path: Path, encoder: Encoder) -> None:
    """Of documents that two groups have too, whose rows have the same keys."""
    how = make_build_config(encoder, num_buckets={"train": 3, "validation": 1})
    texts = make_abstracts(30, 60)
    others = [one._replace(id=f"pubmed:{n}", pmid=n) for n, one in enumerate(texts, 20)]
    several = [
        make_single_group(write_documents(tmp_path / name, {"a": of}))
        for name, of in (("one", texts), ("other", others))
    ]
    names = dealt_out(tmp_path / "one", several, how)
    backwards = dealt_out(tmp_path / "other", several[::-1], how)[::-1]
    assert sorted(names) == sorted(backwards)
    assert merged(tmp_path / "one", how, names) == merged(tmp_path / "other", how, backwards[::-1])


def written(out: Path) -> dict[str, int]:
    """Each shard's file by its number in the file system, which is another one when it is written again."""
    return {path.name: path.stat().st_ino for path in (out / "train").iterdir()}


def test_a_bucket_is_made_again_only_when_other_files_are_dealt_out(tmp_path: Path, encoder: Encoder) -> None:
    how = make_build_config(encoder, num_buckets={"train": 2, "validation": 1})
    out, several = tmp_path / "out", inputs_of(tmp_path)
    names = dealt_out(out, several, how)
    first = merged(out, how, names)
    before = written(out)
    assert merged(out, how, names[::-1]) == first
    assert written(out) == before
    fewer = merged(out, how, names[:1])
    assert fewer != first
    assert not set(written(out).values()) & set(before.values())
    assert merged(out, how, names) == first


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-1])])
def test_a_bucket_whose_shard_is_gone_or_cut_short_is_made_again(
    damage: Any, tmp_path: Path, encoder: Encoder
) -> None:
    how = make_build_config(encoder, num_buckets={"train": 2, "validation": 1})
    out = tmp_path / "out"
    names = dealt_out(out, inputs_of(tmp_path), how)
    first = merged(out, how, names)
    before = written(out)
    damage(out / first[1].file)
    assert merged(out, how, names) == first
    now = written(out)
    assert now["data-00000-of-00002.arrow"] == before["data-00000-of-00002.arrow"]
    data = (out / first[1].file).read_bytes()
    assert hashlib.sha256(data).hexdigest() == first[1].sha256


@pytest.mark.parametrize(("first", "then"), [(3, 2), (2, 3), (1, 5)])
def test_rows_dealt_out_to_another_number_of_buckets_are_dealt_out_again(
    first: int, then: int, tmp_path: Path, encoder: Encoder
) -> None:
    """As after a run that did not publish, when an input has grown: how many there are is by their size."""
    several = inputs_of(tmp_path)
    now = make_build_config(encoder, num_buckets={"train": then, "validation": 1})
    dealt_out(
        tmp_path / "out", several, make_build_config(encoder, num_buckets={"train": first, "validation": 1})
    )
    found = merged(tmp_path / "out", now, dealt_out(tmp_path / "out", several, now))
    fresh = merged(tmp_path / "fresh", now, dealt_out(tmp_path / "fresh", several, now))
    assert found == fresh


def test_a_bucket_merged_of_another_number_of_them_is_merged_again(tmp_path: Path, encoder: Encoder) -> None:
    several = inputs_of(tmp_path)
    for number in (3, 2):
        how = make_build_config(encoder, num_buckets={"train": number, "validation": 1})
        listed = merged(tmp_path / "out", how, dealt_out(tmp_path / "out", several, how))
        assert [one.file for one in listed] == [
            f"train/data-{n:05d}-of-{number:05d}.arrow" for n in range(number)
        ]


def test_a_bucket_without_rows_has_no_shard(tmp_path: Path, encoder: Encoder) -> None:
    """``datasets`` raises on a shard without a record batch."""
    how = make_build_config(encoder, num_buckets={"train": 500, "validation": 1})
    group = make_single_group(write_documents(tmp_path / "one", {"a": make_abstracts(1, 12)}))
    names = dealt_out(tmp_path / "out", [group], how)
    listed = merged(tmp_path / "out", how, names)
    assert 0 < len(listed) < 500
    assert all(one.rows for one in listed)
    assert len(list_files(tmp_path / "out" / "train")) == len(listed)
    assert merged(tmp_path / "out", how, names) == listed


def test_a_bucket_that_cannot_be_written_has_no_report(tmp_path: Path, encoder: Encoder) -> None:
    how = make_build_config(encoder, num_buckets={"train": 1, "validation": 1})
    names = dealt_out(tmp_path, inputs_of(tmp_path / "in"), how)
    with pytest.raises(OSError, match="No space left"):
        pretraining_dir.merge_bucket(
            FullDiskStorage("/train/", 5_000), OutputDir(str(tmp_path)), how, names, "train", 0
        )
    assert list_files(tmp_path / "train") == set()
    assert list_files(tmp_path / ".bioshards" / "merged_buckets") == set()
    assert merged(tmp_path, how, names)
