"""Layers that the heads of several kinds of tasks have."""

from __future__ import annotations

from typing import Final

from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

_INIT_STD: Final = 0.02
"""Standard deviation of new weights (``initializer_range`` of BERT's configuration)."""
DEFAULT_DROPOUT: Final = 0.1
"""Dropout before the last layer (PubMedBERT, section 2.5; google-research/bert, run_classifier.py)."""


class BiLSTM(nn.Module):
    """One bidirectional layer between encoder and head, half of the width in each direction.

    PubMedBERT, section 2.4.2 and table 12. The paper gives neither its width nor the vector that relations
    are classified by; both are choices.
    """

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(hidden_size, hidden_size // 2, batch_first=True, bidirectional=True)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Map [B, W, H] to [B, W, H]; padding becomes 0.

        Args:
            mask: bool[B, W]; padding comes last.

        Raises:
            RuntimeError: a row is all padding.
        """
        lengths = mask.sum(1).cpu()
        packed_output, _ = self.lstm(
            pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        )
        output, _ = pad_packed_sequence(packed_output, batch_first=True, total_length=vectors.shape[1])
        return output


def make_linear(in_features: int, out_features: int) -> nn.Linear:
    """Return a linear layer with weights from a normal distribution truncated at two standard deviations.

    So BERT's are initialized.
    """
    layer = nn.Linear(in_features, out_features)
    nn.init.trunc_normal_(layer.weight, std=_INIT_STD, a=-2 * _INIT_STD, b=2 * _INIT_STD)
    nn.init.zeros_(layer.bias)
    return layer
