"""Random keys and shard groups: the place of a row depends on its document only."""

from __future__ import annotations

import hashlib
from itertools import chain

import msgspec
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.manifest import Shard
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.pretraining.build import (
    MIN_GROUP_BYTES,
    ShardGroup,
    group_shards,
)
from bioshards.vocab.pretraining.objectives import (
    DocumentRng,
    derive_document_key,
)
from bioshards.vocab.pretraining.row_plan import derive_row_keys
from tests.support.vocab.block_factories import (
    splitmix64,
)

FILES = LocalStorage()
WORDS = st.integers(0, (1 << 64) - 1)

# Recorded random numbers. A change of these values changes every pretraining set.


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
    assert len({rng.reseed(1 << bit).random() for bit in range(64)}) == 64


@given(st.lists(st.tuples(WORDS, WORDS), max_size=20))
def test_row_keys_are_splitmix64(pairs: list[tuple[int, int]]) -> None:
    keys, numbers = (np.array([pair[which] for pair in pairs], np.uint64) for which in (0, 1))
    assert derive_row_keys(keys, numbers).tolist() == [splitmix64(*pair) for pair in pairs]


class ConstantRng(DocumentRng):
    """Generator that always draws the same number."""

    def __init__(self, drawn: float) -> None:
        super().__init__()
        self.drawn = drawn

    def random(self) -> float:
        return self.drawn


HIGHEST = 1 - 2**-53
"""The highest number that ``random()`` gives (Python's documentation of random: multiples of 2**-53)."""


@given(st.integers(-(10**6), 10**6), st.integers(0, 1 << 52))
def test_integers_stay_within_their_bounds(low: int, width: int) -> None:
    assert ConstantRng(0.0).randint(low, low + width) == low
    assert ConstantRng(HIGHEST).randint(low, low + width) == low + width


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
        Shard(
            f"data/data-{n}-00000.parquet",
            5,
            size,
            hashlib.sha256(f"{folder} {n} {size}".encode()).hexdigest(),
        )
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
