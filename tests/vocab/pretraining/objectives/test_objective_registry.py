"""The registry of objectives agrees with the tables that other packages read."""

from __future__ import annotations

from bioshards.corpus.shards.pretraining_schema import LABELLED_OBJECTIVES
from bioshards.vocab.pretraining.objectives.example_recipes import DEFAULTS
from bioshards.vocab.pretraining.objectives.objective_registry import OBJECTIVES


def test_every_objective_has_a_default_recipe() -> None:
    assert list(DEFAULTS) == list(OBJECTIVES)


def test_labels_are_those_of_the_shard_schema() -> None:
    labelled = {name for name, objective in OBJECTIVES.items() if objective.has_labels}
    assert labelled == set(LABELLED_OBJECTIVES)
