"""Registry of the model families that can be pretrained, one entry each.

To add a family, write its :class:`~bioshards.train.models.objective.Objective` in a module of
``train/models`` and add its name to :data:`FamilyName` and its entry to :data:`FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

FamilyName = Literal["electra", "bert", "albert"]


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """How one family of models is built and pretrained.

    Attributes:
        objective_class: ``module:class`` of its objective, which builds the models and counts their FLOPs.
            The class is imported when a model is built: recipes and ``--help`` work without torch.
        mask_token_fraction, random_token_fraction: fractions of the selected tokens that become [MASK], and a
            random token; the others are kept.
        data_objectives: objectives of pretraining sets that it can be trained on.
        default_for: objectives of pretraining sets for which ``--family auto`` chooses it.
        has_generator: True if a smaller generator is trained with the model.
        has_factorized_embedding: True if embeddings may be narrower than the model.
    """

    objective_class: str
    mask_token_fraction: float
    random_token_fraction: float
    data_objectives: frozenset[str]
    default_for: frozenset[str]
    has_generator: bool = False
    has_factorized_embedding: bool = True


FAMILIES: Final[Mapping[FamilyName, ModelFamily]] = {
    # 85 % [MASK], 15 % kept: google-research/electra, pretrain/pretrain_helpers.py.
    "electra": ModelFamily(
        objective_class="bioshards.train.models.electra_objective:ElectraObjective",
        mask_token_fraction=0.85,
        random_token_fraction=0.0,
        data_objectives=frozenset({"electra", "bert", "albert", "plain"}),
        default_for=frozenset({"electra"}),
        has_generator=True,
    ),
    # 80 % [MASK], 10 % random, 10 % kept: google-research/bert, create_pretraining_data.py.
    "bert": ModelFamily(
        objective_class="bioshards.train.models.mlm_objective:BertObjective",
        mask_token_fraction=0.8,
        random_token_fraction=0.1,
        data_objectives=frozenset({"electra", "bert", "plain"}),  # labels of albert mean sentence order
        default_for=frozenset({"bert", "plain"}),
        has_factorized_embedding=False,
    ),
    # As bert: google-research/albert, create_pretraining_data.py.
    "albert": ModelFamily(
        objective_class="bioshards.train.models.mlm_objective:AlbertObjective",
        mask_token_fraction=0.8,
        random_token_fraction=0.1,
        data_objectives=frozenset({"electra", "albert", "plain"}),  # labels of bert mean next sentence
        default_for=frozenset({"albert"}),
    ),
}


LABELLED_OBJECTIVES: Final = frozenset({"bert", "albert"})
"""Objectives of pretraining sets whose rows have a label."""


def get_default_family(data_objective: str) -> FamilyName:
    """Return the family that ``--family auto`` chooses for a pretraining set.

    Raises:
        KeyError: no family is the default of this objective.
    """
    for name, family in FAMILIES.items():
        if data_objective in family.default_for:
            return name
    raise KeyError(data_objective)
