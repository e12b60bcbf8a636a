"""Recipes of rows: invalid values, and every figure of the papers."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.errors import UsageError
from bioshards.pipelines import shards_to_pretraining
from bioshards.vocab.pretraining.objectives import example_recipes
from bioshards.vocab.pretraining.objectives.example_recipes import (
    DEFAULTS,
    PRESETS,
    ExampleRecipe,
)
from bioshards.vocab.pretraining.objectives.objective_registry import OBJECTIVES


def test_an_objective_nobody_knows_is_refused() -> None:
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
def test_shares_are_between_0_and_1(name: str, value: float) -> None:
    given_: dict[str, Any] = {name: value}
    with pytest.raises(ValueError, match=rf"--{name.replace('_', '-')} {value} is not between 0 and 1"):
        ExampleRecipe("electra", **given_)
    for fine in (0, 1, 0.5):
        given_[name] = fine
        ExampleRecipe("electra", **given_)


@pytest.mark.parametrize("passes", [0, -3])
def test_there_is_one_pass_at_least(passes: int) -> None:
    with pytest.raises(ValueError, match=f"--dupe-factor {passes} is below 1"):
        ExampleRecipe(dupe_factor=passes)


@pytest.mark.parametrize("objective", ["bert", "albert"])
def test_predictions_may_be_any_number_as_the_trainers_features_may(objective: Any) -> None:
    assert ExampleRecipe(objective, 16, max_predictions_per_seq=20).max_predictions_per_seq == 20
    with pytest.raises(ValueError, match="--max-predictions-per-seq -1 is below 0"):
        ExampleRecipe(objective, max_predictions_per_seq=-1)


NOT_APPLICABLE = {
    "short_seq_prob": (0.1, {"plain"}),
    "single_segment_prob": (0.1, {"bert", "albert", "plain"}),
    "keep_overflow": (True, {"bert", "albert", "plain"}),
    "as_published": (True, {"electra", "bert", "plain"}),
    "max_predictions_per_seq": (9, {"electra", "plain"}),
}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", NOT_APPLICABLE)
def test_an_option_that_does_not_apply_to_the_objective_is_refused(name: str, objective: Any) -> None:
    value, refused = NOT_APPLICABLE[name]
    given_: dict[str, Any] = {name: value}
    if objective in refused:
        option = "--" + name.replace("_", "-")
        with pytest.raises(
            ValueError, match=rf"^{option} does not apply to --objective {objective}, only to"
        ):
            ExampleRecipe(objective, **given_)
    else:
        assert getattr(ExampleRecipe(objective, **given_), name) == value


def test_the_message_names_the_objectives_that_an_option_is_for() -> None:
    with pytest.raises(ValueError, match=r"only to electra and bert and albert$"):
        ExampleRecipe("plain", short_seq_prob=0.1)
    with pytest.raises(ValueError, match=r"only to albert$"):
        ExampleRecipe("bert", as_published=True)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_only_pairs_have_labels(objective: Any) -> None:
    assert ExampleRecipe(objective).has_labels == (objective in ("bert", "albert"))


# The papers' and the reference code's


def fields(recipe: ExampleRecipe) -> dict[str, Any]:
    """What differs from a recipe of nothing but its objective."""
    plain = ExampleRecipe(recipe.objective).to_dict()
    return {name: value for name, value in recipe.to_dict().items() if value != plain[name]}


def test_the_reference_codes_recipes() -> None:
    assert {name: (recipe.max_seq_length, fields(recipe)) for name, recipe in DEFAULTS.items()} == {
        "electra": (128, {"short_seq_prob": 0.05, "single_segment_prob": 0.1}),
        "bert": (128, {"short_seq_prob": 0.1}),
        "albert": (
            512,
            {
                "max_seq_length": 512,
                "short_seq_prob": 0.1,
                "whole_words": True,
                "max_predictions_per_seq": 20,
            },
        ),
        "plain": (512, {"max_seq_length": 512}),
    }
    assert list(DEFAULTS) == list(OBJECTIVES)
    assert all(recipe.objective == name for name, recipe in DEFAULTS.items())


def test_the_papers_recipes() -> None:
    assert {name: (recipe.objective, fields(recipe)) for name, recipe in PRESETS.items()} == {
        "bio-electra": (
            "electra",
            {"max_seq_length": 256, "short_seq_prob": 0.05, "single_segment_prob": 0.1},
        ),
        "bio-electra-pp": (
            "electra",
            {"max_seq_length": 256, "short_seq_prob": 0.05, "single_segment_prob": 0.1},
        ),
        "electramed": (
            "electra",
            {"max_seq_length": 512, "short_seq_prob": 0.05, "single_segment_prob": 0.1},
        ),
        "bioalbert": (
            "albert",
            {
                "max_seq_length": 512,
                "short_seq_prob": 0.1,
                "dupe_factor": 5,
                "whole_words": True,
                "max_predictions_per_seq": 20,
            },
        ),
        "pubmedbert": (
            "bert",
            {
                "max_seq_length": 512,
                "short_seq_prob": 0.1,
                "dupe_factor": 5,
                "whole_words": True,
                "max_predictions_per_seq": 80,
            },
        ),
    }


def test_the_command_line_offers_what_there_is() -> None:
    parser = shards_to_pretraining.make_parser()
    for option, names in (("--preset", PRESETS), ("--objective", OBJECTIVES)):
        for name in names:
            assert name in vars(parser.parse_args([option, name])).values()
        with pytest.raises(UsageError):
            parser.parse_args([option, "another"])


@pytest.mark.parametrize("recipe", [*DEFAULTS.values(), *PRESETS.values()])
@given(length=st.integers(5, example_recipes.MAX_SEQ_LENGTH))
@settings(deadline=None)
def test_every_recipe_can_be_had_at_any_length(recipe: ExampleRecipe, length: int) -> None:
    assert dataclasses.replace(recipe, max_seq_length=length).max_seq_length == length


@pytest.mark.parametrize("recipe", [*DEFAULTS.values(), *PRESETS.values()])
def test_a_recipe_is_plain_data_and_comes_back_from_it(recipe: ExampleRecipe) -> None:
    assert ExampleRecipe(**json.loads(json.dumps(recipe.to_dict()))) == recipe
