"""From blocks of documents to record batches: nothing is lost between a builder's row and its columns."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.shards.pretraining_schema import make_schema
from bioshards.vocab.encode import EncodedBatch, Encoder
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.row_planner import plan_rows
from bioshards.vocab.pretraining.token_block import TokenBlock

CLS, SEP = 101, 102
_SIZE = 1 << 20
_DOCUMENT = 10_000
"""Token t of document d has the id (d + 1) * 10,000 + t, so that it shows where it comes from."""


def name(document: int) -> str:
    return f"pubmed:{document}"


def block_of(several: dict[int, list[int]]) -> TokenBlock:
    """A block of documents by number, given how many tokens their sentences have; each is added by itself."""
    block = TokenBlock(cast(Encoder, SimpleNamespace(size=_SIZE, special_ids={"[CLS]": CLS, "[SEP]": SEP})))
    for document, sentences in several.items():
        ids = (document + 1) * _DOCUMENT + np.arange(sum(sentences), dtype=np.uint32)
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sentences, dtype=np.int64)])
        block.add(pa.array([name(document)]), np.array([len(sentences)]), EncodedBatch(ids, offsets))
    return block


def table(
    several: dict[int, list[int]], recipe: ExampleRecipe, seed: int, passes: int
) -> tuple[Any, list[Any]]:
    """The plan of these documents' rows, and the rows themselves as they are written."""
    planned = plan_rows(block_of(several), recipe, seed, passes)
    columns = make_schema(_SIZE, True, {})
    order, keys = planned.sort_by_key()
    assert (np.diff(keys) > 0).all()
    batches = list(planned.iter_batches(order, columns, batch_rows=3))
    assert all(batch.num_rows == 3 for batch in batches[:-1])
    return planned, pa.Table.from_batches(batches, columns).to_pylist()


def sentence_of(sentences: list[int], token: int) -> int:
    """The number of the sentence with this token, counting those without tokens."""
    return int(np.searchsorted(np.cumsum(sentences), token, side="right"))


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
def test_what_is_read_is_written_lost_or_borrowed(
    several: dict[int, list[int]], recipe: ExampleRecipe, seed: int, passes: int
) -> None:
    planned, rows = table(several, recipe, seed, passes)
    written = Counter(token for row in rows for token in row["input_ids"])
    assert planned.tokens == written.total()
    assert planned.special_tokens == written.pop(CLS) + written.pop(SEP)
    read = passes * sum(map(sum, several.values()))
    assert (
        read == planned.tokens - planned.special_tokens - planned.other_document_tokens + planned.lost_tokens
    )
    every = {
        (document + 1) * _DOCUMENT + token
        for document, sentences in several.items()
        for token in range(sum(sentences))
    }
    assert set(written) <= every
    if recipe.objective == "plain" or recipe.keep_overflow:
        assert written == dict.fromkeys(every, passes)


@given(DOCUMENTS, RECIPES, st.integers(0, 9), PASSES)
def test_a_row_says_where_its_tokens_are_from(
    several: dict[int, list[int]], recipe: ExampleRecipe, seed: int, passes: int
) -> None:
    for row in table(several, recipe, seed, passes)[1]:
        ids, split, spans = row["input_ids"], row["split"], row["spans"]
        assert (ids[0], ids[-1]) == (CLS, SEP)
        assert ids.count(CLS) == 1
        assert len(ids) <= recipe.max_seq_length
        assert split == 0 or (ids[split - 1] == SEP and 2 < split < len(ids) - 1)
        assert (ids.count(SEP) == (2 if split else 1)) or recipe.objective == "plain"
        starts = [span["start"] for span in spans]
        for span, start, stop in zip(spans, starts, [*starts[1:], len(ids)], strict=True):
            text = [token for token in ids[start:stop] if token != SEP]
            (document,) = {token // _DOCUMENT - 1 for token in text}
            assert span["document"] == name(document)
            found = [sentence_of(several[document], token % _DOCUMENT) for token in text]
            assert (span["first_sentence"], span["end_sentence"]) == (min(found), max(found) + 1)


@given(DOCUMENTS, RECIPES.filter(lambda recipe: recipe.objective != "bert"), st.integers(0, 9))
def test_the_order_of_the_documents_changes_nothing(
    several: dict[int, list[int]], recipe: ExampleRecipe, seed: int
) -> None:
    if recipe.as_published:
        return
    backwards = dict(reversed(several.items()))
    assert table(several, recipe, seed, 2)[1] == table(backwards, recipe, seed, 2)[1]


def test_no_row_is_written_of_no_documents() -> None:
    planned = plan_rows(block_of({}), ExampleRecipe("electra"), 0, 1)
    assert (len(planned), planned.tokens, planned.special_tokens) == (0, 0, 0)
    assert list(planned.iter_batches(planned.sort_by_key()[0], make_schema(_SIZE, True, {}))) == []
