"""MaskingConfig: to be described."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from bioshards.corpus.errors import InvalidValueError


@dataclass(frozen=True, slots=True)
class MaskingConfig:
    """How rows are masked.

    Attributes:
        unit: what is masked as a whole.
        rate: the share of a row's tokens, special ones counted, that are to be predicted.
        masked, random: the share of those that become [MASK], and that become a random token; the rest stays
            as it is.  0.85 and 0 in ELECTRA, 0.8 and 0.1 in BERT and ALBERT.
        most: the most predictions of a row; 0 for what ELECTRA's configuration has
            (``configure_pretraining.py``): 0.005 more than the rate, of the longest row.
    """

    unit: MaskUnit = "token"
    rate: float = 0.15
    mask_token_fraction: float = 0.85
    random_token_fraction: float = 0.0
    max_predictions: int = 0

    def __post_init__(self) -> None:
        if self.unit not in get_args(MaskUnit):
            raise InvalidValueError(f"masking unit {self.unit!r} is none of {', '.join(get_args(MaskUnit))}")
        if not 0 < self.rate < 1:
            raise InvalidValueError(
                f"masking rate {self.rate} is a share of a row's tokens: give one between 0 and 1"
            )
        if (
            self.mask_token_fraction < 0
            or self.random_token_fraction < 0
            or self.mask_token_fraction + self.random_token_fraction > 1 + 1e-9
        ):
            raise InvalidValueError(
                f"masked {self.mask_token_fraction} and random {self.random_token_fraction} are shares of "
                "the tokens to predict: give "
                "numbers that are together at most 1"
            )
        if self.max_predictions < 0:
            raise InvalidValueError(
                f"{self.max_predictions} predictions a row at most: give 1 or more, or 0 for what the rate "
                "gives"
            )

    def compute_budgets(self, tokens: npt.NDArray[np.int64], max_seq_length: int) -> npt.NDArray[np.int64]:
        """How many tokens may be predicted of rows of so many tokens, special ones counted.

        Args:
            max_seq_length: the most tokens that a row may have.
        """
        limit = self.max_predictions or int((self.rate + 0.005) * max_seq_length)
        budgets: npt.NDArray[np.int64] = np.rint(tokens * self.rate).astype(np.int64)
        return budgets.clip(1, max(1, limit), out=budgets)


MaskUnit = Literal["token", "word", "ngram"]


def mask_rate(step: int, steps: int, initial_rate: float, final_rate: float) -> float:
    """The share of tokens to mask at a step: five equal stages that lead evenly from ``initial_rate`` to
    ``final_rate``.

    PubMedBERT (arXiv:2007.15779, section 2.1.3) tells of 5 % to 25 % by 5 % for every 20 % of the training.
    """
    if steps < 1 or step < 0:
        raise InvalidValueError(f"step {step} of {steps}")
    stage = min(_MASK_RATE_STAGES - 1, _MASK_RATE_STAGES * step // steps)
    return initial_rate + (final_rate - initial_rate) * stage / (_MASK_RATE_STAGES - 1)


_MASK_RATE_STAGES: Final = 5
