"""A block of documents to a plan of their rows: each document with the chances of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bioshards.vocab.pretraining.objectives.document_rng import DocumentRng, derive_document_key
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives.rows import ExampleRow

from .objectives import electra_segments, plain_packing, sentence_pairs
from .row_plan import RowPlan
from .token_block import TokenBlock


def plan_rows(block: TokenBlock, recipe: ExampleRecipe, seed: int, num_passes: int) -> RowPlan:
    """All rows of all passes over a block."""
    row_plan = RowPlan(block)
    document_ids = block.get_document_ids().to_pylist()
    for pass_number in range(num_passes):
        document_keys = [derive_document_key(seed, pass_number, name) for name in document_ids]
        if recipe.objective == "plain":
            order = sorted(range(len(document_keys)), key=document_keys.__getitem__)
            _add_rows(row_plan, plain_packing.build_rows(order, block, recipe), document_keys)
            continue
        rng = DocumentRng()
        for document, document_key in enumerate(document_keys):
            _add_rows(row_plan, _build_rows(document, block, rng.reseed(document_key), recipe), document_keys)
    return row_plan


def _build_rows(
    document: int, block: TokenBlock, rng: DocumentRng, recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    if recipe.objective == "electra":
        return electra_segments.build_rows(document, block[document], rng, recipe)
    return sentence_pairs.build_rows(document, block, rng, recipe)


def _add_rows(row_plan: RowPlan, rows: Iterable[ExampleRow], document_keys: list[int]) -> None:
    """Add rows, those that begin with the same document one after another, numbered within it."""
    document, row_number = -1, 0
    for row in rows:
        row_number = row_number + 1 if row.spans[0].document == document else 0
        document = row.spans[0].document
        row_plan.add(row, document_keys[document], row_number)
