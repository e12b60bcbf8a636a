"""Plan the rows of a block of documents."""

from __future__ import annotations

from bioshards.vocab.pretraining.objectives.document_rng import derive_document_key
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives.objective_registry import OBJECTIVES

from .row_plan import RowPlan
from .token_block import TokenBlock


def plan_rows(block: TokenBlock, recipe: ExampleRecipe, seed: int, num_passes: int) -> RowPlan:
    """Return the rows of all passes over a block.

    The rows that start with one document are numbered from 0 in each pass.
    """
    build_rows = OBJECTIVES[recipe.objective].build_rows
    row_plan = RowPlan(block)
    document_ids = block.get_document_ids().to_pylist()
    for pass_number in range(num_passes):
        document_keys = [derive_document_key(seed, pass_number, name) for name in document_ids]
        document, row_number = -1, 0
        for row in build_rows(block, document_keys, recipe):
            row_number = row_number + 1 if row.spans[0].document == document else 0
            document = row.spans[0].document
            row_plan.add(row, document_keys[document], row_number)
    return row_plan
