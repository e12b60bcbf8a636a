"""Token blocks and row plans, compared with rows put together in plain Python."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.vocab.encode import EncodedBatch
from bioshards.vocab.pretraining.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives import SEP_RANGE as SEP_RANGE
from bioshards.vocab.pretraining.objectives import ExampleRow, TokenRange
from bioshards.vocab.pretraining.row_plan import RowPlan, TokenBlock
from bioshards.vocab.pretraining.row_plan import plan_rows as built
from tests.support.hypothesis_profiles import examples
from tests.support.vocab.block_factories import (
    CLS,
    NO_TOKENS,
    SEP,
    make_block,
    make_fake_encoder,
    make_schema,
    make_word_encoder,
    plan_rows,
    splitmix64,
)

# Blocks


def test_a_sentence_of_control_characters_has_no_tokens(tmp_path: Path) -> None:
    """BERT's normalizer removes control characters."""
    encoder = make_word_encoder(tmp_path)
    sentences = ["w1 w2", NO_TOKENS, "", "w3", "\x00 \x1f"]
    block = TokenBlock(encoder)
    block.add(pa.array(["pubmed:1", "pubmed:2"]), np.array([2, 3]), encoder.encode_all(sentences))
    assert [list(block[number]) for number in range(2)] == [[2, 4], [4, 5]]
    assert block.get_token_ids().tolist() == [
        CLS,
        SEP,
        *(encoder.get_vocab()[word] for word in ("w1", "w2", "w3")),
    ]


SENTENCES = st.lists(st.one_of(st.just(0), st.integers(0, 7)), max_size=8)
SEVERAL = st.lists(SENTENCES, max_size=9).map(
    lambda documents: {f"pubmed:{number}": sentences for number, sentences in enumerate(documents)}
)


@given(SEVERAL, st.integers(1, 9))
def test_block_is_independent_of_batching(documents: dict[str, list[int]], chunk_size: int) -> None:
    single_batch, many_batches = (
        make_block(documents, chunk_size=len(documents) or 1),
        make_block(documents, chunk_size=chunk_size),
    )
    assert len(many_batches) == len(documents)
    assert many_batches.tokens == sum(map(sum, documents.values()))
    assert [single_batch[number] for number in range(len(single_batch))] == [
        many_batches[number] for number in range(len(many_batches))
    ]
    assert single_batch.get_token_ids().tolist() == many_batches.get_token_ids().tolist()
    assert single_batch.get_document_ids() == many_batches.get_document_ids()
    first_token = 2
    for number, sentences in enumerate(documents.values()):
        kept = [place for place, size in enumerate(sentences) if size]
        edges = [first_token + sum(sentences[:place]) for place in kept] + [first_token + sum(sentences)]
        assert list(many_batches[number]) == edges
        first_token += sum(sentences)


def test_block_can_be_read_between_additions() -> None:
    block = make_block({"pubmed:1": [2]})
    assert list(block[0]) == [2, 4]
    more = make_block({"pubmed:1": [2], "pubmed:2": [0, 3]})
    encoded = more.get_token_ids()[4:]
    block.add(pa.array(["pubmed:2"]), np.array([2]), EncodedBatch(encoded, np.array([0, 0, 3])))
    assert [list(block[number]) for number in range(2)] == [list(more[number]) for number in range(2)]


@pytest.mark.parametrize(("size", "kind"), [(65_536, np.uint16), (65_537, np.uint32)])
def test_ids_are_16_bits_for_small_vocabularies(size: int, kind: type) -> None:
    ids = make_block({"pubmed:1": [3]}, make_fake_encoder(size)).get_token_ids()
    assert ids.dtype == kind
    assert ids.tolist() == [CLS, SEP, 10, 11, 12]


# Plans


DOCUMENTS = st.lists(
    st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any), min_size=1, max_size=5
).map(lambda documents: {f"pmc:PMC{number}.1": sentences for number, sentences in enumerate(documents)})


@st.composite
def draw_plans(draw: st.DrawFn) -> tuple[dict[str, list[int]], list[tuple[ExampleRow, int, int]]]:
    """Draw documents, and rows of arbitrary parts of them, each with a document key and a row number."""
    documents = draw(DOCUMENTS)
    block = make_block(documents)
    end = 2 + block.tokens

    def draw_ranges(min_ranges: int, with_sep: bool) -> list[TokenRange]:
        found: list[TokenRange] = []
        for _ in range(draw(st.integers(min_ranges, 3))):
            start = draw(st.integers(2, end - 1))
            found.append((start, draw(st.integers(start + 1, end))))
            if with_sep and draw(st.booleans()):
                found.append(SEP_RANGE)
        return found

    rows = []
    for _ in range(draw(st.integers(0, 7))):
        plain = draw(st.booleans())
        first, second = draw_ranges(1, plain), [] if plain else draw_ranges(0, False)
        label = draw(st.sampled_from([0, 1, NO_LABEL]))
        row = ExampleRow(first, second, 0, label, draw(st.integers(0, 9)), draw(st.integers(0, 9)))
        number = st.one_of(st.integers(0, 3), st.integers(0, (1 << 64) - 1))
        rows.append((row, draw(number), draw(number)))
    return documents, rows


def add_in_chunks(plan: RowPlan, rows: Sequence[tuple[ExampleRow, int, int]], chunk_rows: int) -> None:
    """Add rows, each with its key and number, some at a time."""
    for start in range(0, len(rows), chunk_rows):
        chunk = rows[start : start + chunk_rows]
        plan.add_rows([row for row, _, _ in chunk], [key for _, key, _ in chunk], [no for _, _, no in chunk])


def compute_expected_row(documents: dict[str, list[int]], row: ExampleRow) -> dict[str, Any]:
    """Build the row as a dict, token by token."""
    block = make_block(documents)
    ids = block.get_token_ids().tolist()

    def expand_ranges(ranges: Sequence[TokenRange]) -> list[int]:
        return [ids[at] for start, stop in ranges for at in range(start, stop)]

    second = [*expand_ranges(row.segment_b), SEP] if row.segment_b else []
    first = [CLS, *expand_ranges(row.segment_a), SEP]
    return {
        "input_ids": first + second,
        "split": len(first) if second else 0,
        "label": row.label,
    }


@given(draw_plans(), st.sampled_from([60_000, 65_537]), st.booleans(), st.integers(1, 8))
@settings(max_examples=examples(150))
def test_batches_have_the_rows_in_key_order(
    documents_and_rows: tuple[dict[str, list[int]], list[tuple[ExampleRow, int, int]]],
    size: int,
    labelled: bool,
    batch_rows: int,
) -> None:
    documents, rows = documents_and_rows
    plan = RowPlan(make_block(documents, make_fake_encoder(size)))
    add_in_chunks(plan, rows, batch_rows)
    expected = sorted(
        rows, key=lambda item: splitmix64(item[1], item[2])
    )  # stable: equals stay in their order
    columns = make_schema(size, labelled)
    batches = list(plan.iter_batches(columns, batch_rows))
    assert [len(batch) for batch in batches] == [
        min(batch_rows, len(rows) - start) for start in range(0, len(rows), batch_rows)
    ]
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(columns, check_metadata=True)
    found = [row for batch in batches for row in batch.to_pylist()]
    expected_rows = [compute_expected_row(documents, row) for row, _, _ in expected]
    assert found == (
        expected_rows
        if labelled
        else [{k: v for k, v in row.items() if k != "label"} for row in expected_rows]
    )
    ids = [number for row in expected_rows for number in row["input_ids"]]
    assert plan.tokens == len(ids)
    assert plan.special_tokens == sum(number in (CLS, SEP) for number in ids)
    assert plan.lost_tokens == sum(row.lost_tokens for row, _, _ in rows)
    assert plan.other_document_tokens == sum(row.other_document_tokens for row, _, _ in rows)
    assert len(plan) == len(rows)


@pytest.mark.parametrize("size", [65_536, 65_537])
def test_largest_row_length_fits(size: int) -> None:
    block = make_block({"pubmed:1": [1] * 70_000}, make_fake_encoder(size))
    plan = RowPlan(block)
    first, second = [(2, 65_000)], [(65_000, 65_534)]
    plan.add_rows([ExampleRow(first, second, 0)], [0], [0])
    (row,) = plan_rows(plan, make_schema(size))
    assert len(row["input_ids"]) == 65_535
    assert row["split"] == 65_000
    assert row["input_ids"][1] == 10
    if size > 65_536:
        assert row["input_ids"][-2] == 10 + 65_534 - 3


# Planned rows


OBJECTIVES = {
    "electra": ExampleRecipe("electra", 16, 0.2, 0.2),
    "electra, overflow": ExampleRecipe("electra", 16, 0.2, 0.2, keep_overflow=True),
    "bert": ExampleRecipe("bert", 16, 0.2),
    "albert": ExampleRecipe("albert", 16, 0.2),
    "albert, as published": ExampleRecipe("albert", 16, 0.2, as_published=True),
    "plain": ExampleRecipe("plain", 16),
}


def test_seed_and_pass_change_the_rows() -> None:
    documents = {f"pubmed:{number}": [4, 3, 6, 2, 5, 7] * 4 for number in range(8)}
    block = make_block(documents)
    recipe = OBJECTIVES["electra"]
    one, same, other = (plan_rows(built(block, recipe, seed, 1)) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    both = plan_rows(built(block, recipe, 1, 2))
    assert len(both) > len(one)
    counted = [both.count(row) for row in one]
    assert all(counted)  # the first pass is the same with a second
    assert sum(times > 1 for times in counted) < len(one) / 2


def test_rows_of_one_document_have_distinct_keys() -> None:
    documents = {"pubmed:1": [5] * 200, "pubmed:2": [5] * 200}
    for recipe in OBJECTIVES.values():
        plan = built(make_block(documents), recipe, 0, 3)
        assert len({*zip(plan._keys, plan._row_numbers, strict=True)}) == len(plan) > 100
