"""The pretraining objectives: one entry each.

To add an objective, write its builder next to this file and add an entry to :data:`OBJECTIVES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bioshards.vocab.pretraining.objectives import electra_segments, plain_packing, sentence_pairs
from bioshards.vocab.pretraining.objectives.document_rng import DocumentRng, RandomSource
from bioshards.vocab.pretraining.objectives.rows import DocumentEdges, ExampleRow

if TYPE_CHECKING:
    from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe

RowBuilder = Callable[[DocumentEdges, Sequence[int], "ExampleRecipe"], Iterator[ExampleRow]]
"""Build the rows of one pass over documents, given the edges and the key of each document.

The rows that start with one document follow one another.
"""
DocumentRowBuilder = Callable[[int, DocumentEdges, RandomSource, "ExampleRecipe"], Iterator[ExampleRow]]
"""Build the rows of one document, given its index, the edges of all documents, and its random numbers."""


@dataclass(frozen=True, slots=True)
class BuildCost:
    """Measured speed of one core, on abstracts of 1,920 bytes in document shards.

    tests/bench/tables/cost_table.py measures it.

    Attributes:
        megabytes_per_second: input of one pass, as stored.
        extra_pass_seconds_per_megabyte: seconds of every further pass.
    """

    megabytes_per_second: float
    extra_pass_seconds_per_megabyte: float

    def estimate_core_seconds(self, size: float, num_passes: int) -> float:
        """Return the seconds of one core for ``size`` bytes of document shards."""
        extra_seconds_per_megabyte = (num_passes - 1) * self.extra_pass_seconds_per_megabyte
        return size / 1e6 / self.megabytes_per_second + extra_seconds_per_megabyte * size / 1e6


@dataclass(frozen=True, slots=True)
class RecipeDefaults:
    """Default recipe of an objective, as in its reference code.

    Attributes: as in :class:`ExampleRecipe`.
    """

    max_seq_length: int
    short_seq_prob: float = 0.0
    single_segment_prob: float = 0.0


@dataclass(frozen=True, slots=True)
class PretrainingObjective:
    """Entry of an objective: its builder and its properties.

    Attributes:
        build_rows: builder of one pass over a block of documents.
        defaults: default recipe.
        has_labels: True if rows have a ``label``.
        loss_reason: reason for which tokens are in no row, as in the manifest; None if none are lost.
        cost: speed of the builder, for ``--dry-run``.
        options: options of ``shards_to_pretraining`` that apply to some objectives only, and to this one.
    """

    build_rows: RowBuilder
    defaults: RecipeDefaults
    has_labels: bool
    loss_reason: str | None
    cost: BuildCost
    options: frozenset[str]


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


OBJECTIVES: Final[dict[str, PretrainingObjective]] = {
    "electra": PretrainingObjective(
        build_rows=_for_each_document(_build_electra_rows),
        # google-research/electra, build_pretraining_dataset.py: --max-seq-length 128; 0.05 and 0.1 in the
        # code.
        defaults=RecipeDefaults(128, short_seq_prob=0.05, single_segment_prob=0.1),
        has_labels=False,
        loss_reason="overflow",
        cost=BuildCost(12.3, extra_pass_seconds_per_megabyte=0.0181),
        options=frozenset({"--short-seq-prob", "--single-segment-prob", "--keep-overflow"}),
    ),
    "bert": PretrainingObjective(
        build_rows=_for_each_document(sentence_pairs.build_rows),
        # google-research/bert, create_pretraining_data.py: max_seq_length 128, short_seq_prob 0.1.  Its
        # dupe_factor of 10 gives other masks, which our trainer draws for every epoch; so one pass.
        defaults=RecipeDefaults(128, short_seq_prob=0.1),
        has_labels=True,
        loss_reason="truncated",
        cost=BuildCost(12.9, extra_pass_seconds_per_megabyte=0.0212),
        options=frozenset({"--short-seq-prob"}),
    ),
    "albert": PretrainingObjective(
        build_rows=_for_each_document(sentence_pairs.build_rows),
        # google-research/albert, create_pretraining_data.py: max_seq_length 512, short_seq_prob 0.1.  Its
        # dupe_factor is 40, as for bert.
        defaults=RecipeDefaults(512, short_seq_prob=0.1),
        has_labels=True,
        loss_reason="truncated",
        cost=BuildCost(13.4, extra_pass_seconds_per_megabyte=0.0138),
        options=frozenset({"--short-seq-prob", "--as-published"}),
    ),
    "plain": PretrainingObjective(
        build_rows=_pack_in_key_order,
        defaults=RecipeDefaults(512),  # no reference: the length that BERT's positions have
        has_labels=False,
        loss_reason=None,
        cost=BuildCost(12.6, extra_pass_seconds_per_megabyte=0.0039),
        options=frozenset(),
    ),
}
"""Objectives by the value of ``--objective``."""
