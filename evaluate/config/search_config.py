"""Grids and methods of the hyperparameter search, without slow imports: ``--help`` answers at once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe, override_recipe

SearchMethod = Literal["grid", "tpe"]
"""Every combination once, in random order; or optuna's TPE sampler (Bio-ELECTRA used hyperopt's)."""
ParamValue = int | float | str | bool
Params = dict[str, ParamValue]
"""Values of recipe fields by name."""
Grid = Mapping[str, Sequence[ParamValue]]
GRIDS: Final[Mapping[str, Grid]] = {
    # PubMedBERT (arXiv:2007.15779, section 4.2); of epochs it says 2 to 60.
    "pubmedbert": {
        "learning_rate": (1e-5, 3e-5, 5e-5),
        "batch_size": (16, 32),
        "epochs": (2, 5, 10, 20, 40, 60),
    },
    # SciCrunch/bio_electra, run_finetuning_opt.py: 25 trials by hyperopt's TPE.
    "bio-electra": {
        "learning_rate": (1e-5, 5e-5, 1e-4, 5e-4),
        "batch_size": (12, 24, 32, 64),
        "epochs": (3, 5, 10, 15, 20),
    },
}


def load_grid(name: str) -> Grid:
    """Return a paper's grid by name, or the grid of a TOML file with lines ``learning_rate = [1e-5, 5e-5]``.

    Raises:
        InvalidValueError: the name or file is unknown, or a value is invalid.
    """
    if name in GRIDS:
        return GRIDS[name]
    try:
        with open(name, "rb") as file:
            grid_values = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValueError(
            f"--grid {name} is neither of {', '.join(GRIDS)} nor a file that can be read ({error}): "
            "write lines such as learning_rate = [1e-5, 5e-5]"
        ) from error
    if not grid_values:
        raise InvalidValueError(f"{name} has no lines such as learning_rate = [1e-5, 5e-5]")
    for field, values in grid_values.items():
        if not isinstance(values, list) or not values:
            raise InvalidValueError(f"{name}: {field} is no list of values, such as [1e-5, 5e-5]")
        for value in values:
            try:
                override_recipe(FineTuneRecipe(), {field: value})
            except TypeError as error:
                raise InvalidValueError(f"{name}: unknown field {field}") from error
    return grid_values


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """Options of a search.

    Attributes:
        max_trials: maximum number of trials.
        seed: seed of the order and of every model.
    """

    grid: Grid
    method: SearchMethod
    max_trials: int
    seed: int
