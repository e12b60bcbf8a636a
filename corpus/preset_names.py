"""Names of presets: one set for all commands, and why a command has none of a name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_PAPER_OF_MODEL: Final[Mapping[str, str]] = {
    "bioalbert-large": "bioalbert",
    "bioalbert-pmc": "bioalbert",
    "bioalbert-large-pmc": "bioalbert",
    "pubmedbert-pmc": "pubmedbert",
    "pubmedbert-pmc-100k": "pubmedbert",
}
"""Models of a paper that differ only in training, or in the folders that they are trained on."""
_TRAIN_ONLY: Final = ("tiny", "electra-small", "electra-base")


def explain_absent_presets(reasons: Mapping[str, str] = MappingProxyType({})) -> dict[str, str]:
    """Return why a command other than train lacks presets that train has, by name.

    Args:
        reasons: why the command has nothing of a paper, by the paper's name.
    """
    return {
        **dict.fromkeys(_TRAIN_ONLY, "a recipe of train alone, of no biomedical paper"),
        **{model: f"a model of {paper}: give that" for model, paper in _PAPER_OF_MODEL.items()},
        **reasons,
    }
