"""Example recipes: refused values, and the numbers of the papers."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bioshards.train.presets import PRETRAINING_SETS
from bioshards.train.recipe import DEFAULT_FAMILIES, FAMILIES, LABELLED_OBJECTIVES
from bioshards.vocab.pretraining.example_recipes import (
    DEFAULTS,
    OBJECTIVES,
    PRESETS,
    ExampleRecipe,
)
from bioshards.vocab.pretraining.objectives import BUILDERS


def test_unknown_objective_is_refused() -> None:
    wrong: Any = "roberta"
    with pytest.raises(ValueError, match="--objective roberta is not one of electra, bert, albert, plain"):
        ExampleRecipe(wrong)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_row_has_5_to_65535_tokens(objective: Any) -> None:
    assert [ExampleRecipe(objective, length).max_seq_length for length in (5, 65_535)] == [5, 65_535]
    for length in (4, 3, 0, -1):
        with pytest.raises(ValueError, match=rf"--max-seq-length {length} is below 5: .* no room for a pair"):
            ExampleRecipe(objective, length)
    with pytest.raises(
        ValueError, match="--max-seq-length 65,536 is above 65,535: positions in a row are 16 bits"
    ):
        ExampleRecipe(objective, 65_536)


@pytest.mark.parametrize("name", ["short_seq_prob", "single_segment_prob"])
@pytest.mark.parametrize("value", [-0.1, 1.01, float("nan"), float("inf"), 5])
def test_probabilities_are_between_0_and_1(name: str, value: float) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=rf"--{name.replace('_', '-')} {value} is not between 0 and 1"):
        ExampleRecipe("electra", **options)
    for fine in (0, 1, 0.5):
        options[name] = fine
        ExampleRecipe("electra", **options)


@pytest.mark.parametrize("passes", [0, -3])
def test_dupe_factor_is_at_least_1(passes: int) -> None:
    with pytest.raises(ValueError, match=f"--dupe-factor {passes} is below 1"):
        ExampleRecipe(dupe_factor=passes)


NOT_APPLICABLE = {
    "short_seq_prob": (0.1, {"plain"}),
    "single_segment_prob": (0.1, {"bert", "albert", "plain"}),
    "keep_overflow": (True, {"bert", "albert", "plain"}),
    "as_published": (True, {"electra", "bert", "plain"}),
}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", NOT_APPLICABLE)
def test_an_option_that_does_not_apply_to_the_objective_is_refused(name: str, objective: Any) -> None:
    value, excluded_objectives = NOT_APPLICABLE[name]
    options: dict[str, Any] = {name: value}
    if objective in excluded_objectives:
        option = "--" + name.replace("_", "-")
        fitting = " and ".join(other for other in OBJECTIVES if other not in excluded_objectives)
        with pytest.raises(
            ValueError, match=f"^{option} does not apply to --objective {objective}, only to {fitting}$"
        ):
            ExampleRecipe(objective, **options)
    else:
        assert getattr(ExampleRecipe(objective, **options), name) == value


# Recipes of the papers and of the reference code


def get_changed_fields(recipe: ExampleRecipe) -> dict[str, Any]:
    """Return the fields that differ from those of a recipe with the same objective and defaults."""
    plain = dataclasses.asdict(ExampleRecipe(recipe.objective))
    return {name: value for name, value in dataclasses.asdict(recipe).items() if value != plain[name]}


def test_default_recipes_are_those_of_the_reference_code() -> None:
    assert {
        name: (recipe.max_seq_length, get_changed_fields(recipe)) for name, recipe in DEFAULTS.items()
    } == {
        "electra": (128, {"short_seq_prob": 0.05, "single_segment_prob": 0.1}),
        "bert": (128, {"short_seq_prob": 0.1}),
        "albert": (512, {"max_seq_length": 512, "short_seq_prob": 0.1}),
        "plain": (512, {"max_seq_length": 512}),
    }
    assert list(DEFAULTS) == [*BUILDERS, "plain"] == list(OBJECTIVES)
    assert all(recipe.objective == name for name, recipe in DEFAULTS.items())


def test_preset_recipes_are_those_of_the_papers() -> None:
    pairs = {"max_seq_length": 512, "short_seq_prob": 0.1}
    segments = {"short_seq_prob": 0.05, "single_segment_prob": 0.1}
    assert {name: (recipe.objective, get_changed_fields(recipe)) for name, recipe in PRESETS.items()} == {
        "bio-electra": ("electra", {"max_seq_length": 256, **segments}),
        "bio-electra-pp": ("electra", {"max_seq_length": 256, **segments}),
        "electramed": ("electra", {"max_seq_length": 512, **segments}),
        "bioalbert": ("albert", {**pairs, "dupe_factor": 5}),
        "pubmedbert": ("bert", {**pairs, "dupe_factor": 5}),
    }


def test_trainer_knows_the_objectives_and_the_sets_of_its_presets() -> None:
    """A paper has one name in all commands, and one objective and length."""
    labelled = {name for name, recipe in OBJECTIVES.items() if recipe.has_labels}
    assert labelled == LABELLED_OBJECTIVES == {"bert", "albert"}
    assert sorted(DEFAULT_FAMILIES) == sorted(OBJECTIVES)
    assert {name for family in FAMILIES.values() for name in family.data_objectives} <= set(OBJECTIVES)
    known = {name: (recipe.objective, recipe.max_seq_length) for name, recipe in PRESETS.items()}
    assert known.keys() <= PRETRAINING_SETS.keys()
    for name, paper in PRETRAINING_SETS.items():
        stem = name.removesuffix("-100k").removesuffix("-pmc").removesuffix("-large")
        if stem in known:
            assert paper == known[stem], name
