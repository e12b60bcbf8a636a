"""Parameters of masking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from bioshards.corpus.errors import InvalidValueError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

MaskUnit = Literal["token", "word", "ngram"]
_MASK_RATE_STAGES: Final = 5


@dataclass(frozen=True, slots=True)
class MaskingConfig:
    """Which tokens of a row are selected for prediction, and what replaces them.

    Attributes:
        unit: unit that is masked as a whole.
        rate: fraction of a row's tokens, special tokens included, that are selected.
        mask_token_fraction: fraction of the selected tokens that become [MASK]: 0.85 in ELECTRA, 0.8 in BERT
            and ALBERT.
        random_token_fraction: fraction of the selected tokens that become a random token: 0 in ELECTRA, 0.1
            in BERT and ALBERT.  All other selected tokens are kept.
        max_predictions: maximum number of selected tokens in a row.  0: ELECTRA's limit, (rate + 0.005) times
            the maximum row length (google-research/electra, configure_pretraining.py).
    """

    unit: MaskUnit = "token"
    rate: float = 0.15
    mask_token_fraction: float = 0.85
    random_token_fraction: float = 0.0
    max_predictions: int = 0

    def __post_init__(self) -> None:
        if self.unit not in get_args(MaskUnit):
            raise InvalidValueError(
                f"unknown masking unit {self.unit!r}; choose from {', '.join(get_args(MaskUnit))}"
            )
        if not 0 < self.rate < 1:
            raise InvalidValueError(f"masking rate {self.rate} is not between 0 and 1")
        if (
            self.mask_token_fraction < 0
            or self.random_token_fraction < 0
            or self.mask_token_fraction + self.random_token_fraction > 1 + 1e-9
        ):
            raise InvalidValueError(
                f"mask_token_fraction {self.mask_token_fraction} and random_token_fraction "
                f"{self.random_token_fraction} must be at least 0 and add up to at most 1"
            )
        if self.max_predictions < 0:
            raise InvalidValueError(f"max_predictions {self.max_predictions} is below 0")

    def compute_budgets(self, tokens: npt.NDArray[np.int64], max_seq_length: int) -> npt.NDArray[np.int64]:
        """Return the maximum number of selected tokens of each row.

        Args:
            tokens: int64[R], tokens of each row, special tokens included.
            max_seq_length: maximum row length in tokens.

        Returns:
            int64[R], at least 1.
        """
        limit = self.max_predictions or int((self.rate + 0.005) * max_seq_length)
        budgets: npt.NDArray[np.int64] = (tokens * self.rate).round().astype("int64")
        return budgets.clip(1, max(1, limit), out=budgets)


def mask_rate(step: int, steps: int, initial_rate: float, final_rate: float) -> float:
    """Return the masking rate of a step: five equal stages from ``initial_rate`` to ``final_rate``.

    PubMedBERT raises it from 5 % to 25 %, by 5 % for every 20 % of the steps (arXiv:2007.15779, section
    2.1.3).

    Raises:
        InvalidValueError: ``step`` is below 0, or ``steps`` below 1.
    """
    if steps < 1 or step < 0:
        raise InvalidValueError(f"step {step} of {steps}")
    stage = min(_MASK_RATE_STAGES - 1, _MASK_RATE_STAGES * step // steps)
    return initial_rate + (final_rate - initial_rate) * stage / (_MASK_RATE_STAGES - 1)
