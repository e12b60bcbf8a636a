"""Row plans written as record batches: token counts, and documents of the tokens."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, pairwise
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.shards.pretraining_schema import make_schema
from bioshards.vocab.encode import EncodedBatch, Encoder
from bioshards.vocab.pretraining.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives import derive_document_key
from bioshards.vocab.pretraining.row_plan import TokenBlock, plan_rows

CLS, SEP = 101, 102
_SIZE = 1 << 20
_DOCUMENT = 10_000
"""Token t of document d has the id (d + 1) * 10,000 + t, so that it shows where it comes from."""


def format_id(document: int) -> str:
    return f"pubmed:{document}"


def make_block(documents: dict[int, list[int]]) -> TokenBlock:
    """Make a block of documents, given by number with the token counts of their sentences."""
    block = TokenBlock(cast(Encoder, SimpleNamespace(size=_SIZE, special_ids={"[CLS]": CLS, "[SEP]": SEP})))
    for document, sentences in documents.items():
        ids = (document + 1) * _DOCUMENT + np.arange(sum(sentences), dtype=np.uint32)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sentences, dtype=np.int64)])
        block.add(pa.array([format_id(document)]), np.array([len(sentences)]), EncodedBatch(ids, offsets))
    return block


def build_rows(
    documents: dict[int, list[int]], recipe: ExampleRecipe, seed: int, passes: int
) -> tuple[Any, list[Any]]:
    """Return the plan of these documents, and its rows as dicts."""
    plan = plan_rows(make_block(documents), recipe, seed, passes)
    columns = make_schema(_SIZE, True, {})
    batches = list(plan.iter_batches(columns, batch_rows=3))
    assert all(batch.num_rows == 3 for batch in batches[:-1])
    return plan, pa.Table.from_batches(batches, columns).to_pylist()


DOCUMENTS = st.dictionaries(
    st.integers(0, 50),
    st.lists(st.one_of(st.just(0), st.integers(0, 40)), min_size=1, max_size=12).filter(any),
    min_size=1,
    max_size=6,
)
LENGTH = st.integers(5, 40)
CHANCE = st.sampled_from([0.0, 0.1, 1.0])
RECIPES = st.one_of(
    st.builds(ExampleRecipe, st.just("electra"), LENGTH, CHANCE, CHANCE, keep_overflow=st.booleans()),
    st.builds(ExampleRecipe, st.just("bert"), LENGTH, CHANCE),
    st.builds(ExampleRecipe, st.just("albert"), LENGTH, CHANCE, as_published=st.booleans()),
    st.builds(ExampleRecipe, st.just("plain"), LENGTH),
)
PASSES = st.integers(1, 3)


@given(DOCUMENTS, RECIPES, st.integers(0, 9), PASSES)
def test_every_input_token_is_written_lost_or_counted_as_borrowed(
    documents: dict[int, list[int]], recipe: ExampleRecipe, seed: int, passes: int
) -> None:
    plan, rows = build_rows(documents, recipe, seed, passes)
    token_counts = Counter(token for row in rows for token in row["input_ids"])
    assert plan.tokens == token_counts.total()
    assert plan.special_tokens == token_counts.pop(CLS) + token_counts.pop(SEP)
    num_input_tokens = passes * sum(map(sum, documents.values()))
    assert (
        num_input_tokens == plan.tokens - plan.special_tokens - plan.other_document_tokens + plan.lost_tokens
    )
    all_tokens = {
        (document + 1) * _DOCUMENT + token
        for document, sentences in documents.items()
        for token in range(sum(sentences))
    }
    assert set(token_counts) <= all_tokens
    if recipe.objective != "bert" and not recipe.as_published:  # which borrow from other documents
        assert max(token_counts.values(), default=0) <= passes
    if recipe.objective == "plain" or recipe.keep_overflow:
        assert token_counts == dict.fromkeys(all_tokens, passes)


@given(DOCUMENTS, RECIPES, st.integers(0, 9), PASSES)
def test_each_segment_is_a_part_of_one_document(
    documents: dict[int, list[int]], recipe: ExampleRecipe, seed: int, passes: int
) -> None:
    for row in build_rows(documents, recipe, seed, passes)[1]:
        ids, split = row["input_ids"], row["split"]
        assert (ids[0], ids[-1]) == (CLS, SEP)
        assert ids.count(CLS) == 1
        assert len(ids) <= recipe.max_seq_length
        assert split == 0 or (ids[split - 1] == SEP and 2 < split < len(ids) - 1)
        assert (ids.count(SEP) == (2 if split else 1)) or recipe.objective == "plain"
        for part in split_documents(row):
            assert len({token // _DOCUMENT for token in part}) == 1
            assert part == sorted(part)
            assert recipe.objective == "electra" or part[-1] - part[0] == len(part) - 1


def split_documents(row: dict[str, Any]) -> list[list[int]]:
    """Return the tokens between the special tokens of a row."""
    is_special = {CLS, SEP}.__contains__
    return [list(part) for special, part in groupby(row["input_ids"], is_special) if not special]


def list_documents(row: dict[str, Any]) -> list[int]:
    """Return the number of the document of each part of a row."""
    return [part[0] // _DOCUMENT - 1 for part in split_documents(row)]


@given(DOCUMENTS, RECIPES.filter(lambda recipe: recipe.objective != "bert"), st.integers(0, 9))
def test_rows_are_independent_of_document_order(
    documents: dict[int, list[int]], recipe: ExampleRecipe, seed: int
) -> None:
    if recipe.as_published:
        return
    backwards = dict(reversed(documents.items()))
    assert build_rows(documents, recipe, seed, 2)[1] == build_rows(backwards, recipe, seed, 2)[1]


@given(DOCUMENTS, RECIPES.filter(lambda recipe: recipe.objective in ("electra", "albert")))
def test_rows_are_independent_of_other_documents(
    documents: dict[int, list[int]], recipe: ExampleRecipe
) -> None:
    if recipe.as_published:
        return
    _, together = build_rows(documents, recipe, 3, 2)
    for document, sentences in documents.items():
        _, alone = build_rows({document: sentences}, recipe, 3, 2)
        assert [row for row in together if list_documents(row)[0] == document] == alone


def test_plain_rows_are_in_document_key_order() -> None:
    documents = {number: [20] for number in range(30)}
    by_key = sorted(documents, key=lambda number: derive_document_key(5, 0, format_id(number)))
    orders = [list_documents(row) for row in build_rows(documents, ExampleRecipe("plain", 16), 5, 1)[1]]
    assert {document for order in orders for document in order} == documents.keys()
    neighbours = {pair for order in orders for pair in pairwise(order)}
    assert neighbours
    assert neighbours <= set(pairwise(by_key))


def test_no_documents_give_no_rows() -> None:
    plan = plan_rows(make_block({}), ExampleRecipe("electra"), 0, 1)
    assert (len(plan), plan.tokens, plan.special_tokens) == (0, 0, 0)
    assert list(plan.iter_batches(make_schema(_SIZE, True, {}))) == []
