"""The registry of objectives agrees with the tables that other packages read."""

from __future__ import annotations

from bioshards.train.config.model_families import FAMILIES, LABELLED_OBJECTIVES
from bioshards.vocab.pretraining.objectives.example_recipes import DEFAULTS
from bioshards.vocab.pretraining.objectives.objective_registry import OBJECTIVES


def test_every_objective_has_a_default_recipe() -> None:
    assert list(DEFAULTS) == list(OBJECTIVES)


def test_the_trainer_expects_the_labels_of_the_same_objectives() -> None:
    labelled = {name for name, objective in OBJECTIVES.items() if objective.has_labels}
    assert labelled == LABELLED_OBJECTIVES


def test_the_trainer_has_a_default_family_for_every_objective() -> None:
    defaults = [name for family in FAMILIES.values() for name in family.default_for]
    assert sorted(defaults) == sorted(OBJECTIVES)


def test_the_trainer_knows_no_objective_that_is_not_registered() -> None:
    assert {name for family in FAMILIES.values() for name in family.data_objectives} <= set(OBJECTIVES)
