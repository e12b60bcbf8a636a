"""Plan the rows of a block of documents."""

from __future__ import annotations

from itertools import islice
from typing import Final

from bioshards.vocab.pretraining.objectives.document_rng import derive_document_key
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives.objective_registry import OBJECTIVES
from bioshards.vocab.pretraining.row_plan import RowPlan
from bioshards.vocab.pretraining.token_block import TokenBlock

_CHUNK_ROWS: Final = 4096
"""Rows added to a plan at a time; a row takes about 1 kB until then."""


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
