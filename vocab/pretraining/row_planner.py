"""Plan the rows of a block of documents by the builder of their objective."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from bioshards.vocab.pretraining.objectives import electra_segments, plain_packing, sentence_pairs
from bioshards.vocab.pretraining.objectives.document_rng import (
    DocumentRng,
    RandomSource,
    derive_document_key,
)
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives.rows import DocumentEdges, ExampleRow
from bioshards.vocab.pretraining.row_plan import RowPlan
from bioshards.vocab.pretraining.token_block import TokenBlock

_CHUNK_ROWS: Final = 4096
"""Rows added to a plan at a time; a row takes about 1 kB until then."""

RowBuilder = Callable[[DocumentEdges, Sequence[int], ExampleRecipe], Iterator[ExampleRow]]
"""Build the rows of one pass over documents, given the edges and the key of each document.

The rows that start with one document follow one another.
"""
DocumentRowBuilder = Callable[[int, DocumentEdges, RandomSource, ExampleRecipe], Iterator[ExampleRow]]
"""Build the rows of one document, given its index, the edges of all documents, and its random numbers."""


def _for_each_document(build_document: DocumentRowBuilder) -> RowBuilder:
    """Return a builder that takes the documents in order, each with random numbers of its own."""

    def build_rows(
        documents: DocumentEdges, document_keys: Sequence[int], recipe: ExampleRecipe
    ) -> Iterator[ExampleRow]:
        rng = DocumentRng()
        for document, document_key in enumerate(document_keys):
            yield from build_document(document, documents, rng.reseed(document_key), recipe)

    return build_rows


def _build_electra_rows(
    document: int, documents: DocumentEdges, rng: RandomSource, recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    return electra_segments.build_rows(document, documents[document], rng, recipe)


def _pack_in_key_order(
    documents: DocumentEdges, document_keys: Sequence[int], recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    order = sorted(range(len(document_keys)), key=document_keys.__getitem__)
    return plain_packing.build_rows(order, documents, recipe)


BUILDERS: Final[dict[str, RowBuilder]] = {
    "electra": _for_each_document(_build_electra_rows),
    "bert": _for_each_document(sentence_pairs.build_rows),
    "albert": _for_each_document(sentence_pairs.build_rows),
    "plain": _pack_in_key_order,
}
"""Builders by objective."""


def plan_rows(block: TokenBlock, recipe: ExampleRecipe, seed: int, num_passes: int) -> RowPlan:
    """Return the rows of all passes over a block.

    The rows that start with one document are numbered from 0 in each pass.
    """
    build_rows = BUILDERS[recipe.objective]
    row_plan = RowPlan(block)
    document_ids = block.get_document_ids().to_pylist()
    for pass_number in range(num_passes):
        document_keys = [derive_document_key(seed, pass_number, name) for name in document_ids]
        document, row_number = -1, 0
        rows = build_rows(block, document_keys, recipe)
        while chunk := list(islice(rows, _CHUNK_ROWS)):
            documents = [row.spans[0].document for row in chunk]
            row_numbers: list[int] = []
            for next_document in documents:
                row_number = row_number + 1 if next_document == document else 0
                document = next_document
                row_numbers.append(row_number)
            row_plan.add_rows(chunk, [document_keys[document] for document in documents], row_numbers)
    return row_plan
