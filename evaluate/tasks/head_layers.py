"""Layers that heads have on request: a bidirectional LSTM, and a linear-chain conditional random field.

PubMedBERT's paper compares heads with and without them (section 2.4.2 and table 12).
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from bioshards.corpus.errors import InvalidValueError

FORBIDDEN_SCORE: Final = -1e4
"""Score of a masked transition in the loss: its exponential is 0 in float32, and gradients stay finite."""


class BiLSTM(nn.Module):
    """One bidirectional layer between encoder and head, half of the width in each direction.

    The paper gives neither its width nor the vector that relations are classified by; both are choices.
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
        packed = pack_padded_sequence(vectors, mask.sum(1).cpu(), batch_first=True, enforce_sorted=False)
        output, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, total_length=vectors.shape[1])
        return output


class CRF(nn.Module):
    """Linear-chain conditional random field over the L labels of the words of a sentence.

    Lafferty, McCallum and Pereira 2001 (ICML), with emission scores from a network: the score of a path is
    the sum of its emission and transition scores, of which the latter begin with 0. Invalid transitions, such
    as ``O`` to ``I-``, are masked in loss and decoding. Sums are computed in float32. ``mask`` [B, W] marks
    the words of a row, which come before its padding.
    """

    transitions: Tensor
    allowed: Tensor

    def __init__(self, allowed: Tensor) -> None:
        """Create the transition parameters.

        Args:
            allowed: bool[L + 1, L + 1]; True if the label of the column may follow that of the row. The last
                row is the start of a sentence, the last column its end.

        Raises:
            InvalidValueError: no single label can fill sentences of every length.
        """
        super().__init__()
        can_stand_alone = allowed[-1, :-1] & allowed[:-1, :-1].diagonal() & allowed[:-1, -1]
        if not can_stand_alone.any():
            raise InvalidValueError(
                "no label may begin a sentence, follow itself and end one, so some may have none"
            )
        self.transitions = nn.Parameter(torch.zeros(allowed.shape))
        self.register_buffer("allowed", allowed, persistent=False)

    def loss(self, scores: Tensor, gold: Tensor, mask: Tensor) -> Tensor:
        """Return the negative log-likelihood of the gold labels per word.

        A gold path with a masked transition costs 10,000 for it; emission scores still receive gradients.

        Args:
            scores: float[B, W, L], emission scores.
            gold: int64[B, W].
            mask: bool[B, W]; rows without words count for nothing.
        """
        scores, gold = scores.float(), gold.where(mask, 0)
        transition_scores = self.transitions.masked_fill(~self.allowed, FORBIDDEN_SCORE)
        negative_log_likelihood = _log_partition(scores, mask, transition_scores) - _path_score(
            scores, gold, mask, transition_scores
        )
        return negative_log_likelihood.where(mask[:, 0], 0).sum() / mask.sum().clamp(min=1)

    @torch.no_grad()
    def decode(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Return the labels of the best path (Viterbi), int64[B, W]; 0 in padding."""
        transition_scores = self.transitions.masked_fill(~self.allowed, -torch.inf)
        label_transitions = transition_scores[:-1, :-1]
        label_indices = torch.arange(len(label_transitions), device=scores.device)
        state = transition_scores[-1, :-1] + scores[:, 0].float()
        backpointers = []  # by word and label, the label from which the best path comes; in padding, itself
        for word in range(1, scores.shape[1]):
            best, label = (state[:, :, None] + label_transitions).max(1)
            is_word = mask[:, word, None]
            backpointers.append(label.where(is_word, label_indices))
            state = (best + scores[:, word].float()).where(is_word, state)
        path = [(state + transition_scores[:-1, -1]).argmax(1)]
        for label in reversed(backpointers):
            path.append(label.gather(1, path[-1][:, None]).squeeze(1))
        return torch.stack(path[::-1], 1).where(mask, 0)


def _log_partition(scores: Tensor, mask: Tensor, transition_scores: Tensor) -> Tensor:
    """Return the log of the partition function by the forward algorithm, [B]."""
    state = transition_scores[-1, :-1] + scores[:, 0]
    for word in range(1, scores.shape[1]):
        next_state = (state[:, :, None] + transition_scores[:-1, :-1]).logsumexp(1) + scores[:, word]
        state = next_state.where(mask[:, word, None], state)
    return (state + transition_scores[:-1, -1]).logsumexp(1)


def _path_score(scores: Tensor, gold: Tensor, mask: Tensor, transition_scores: Tensor) -> Tensor:
    """Return the score of each gold path, [B]."""
    emission_score = scores.gather(2, gold[:, :, None]).squeeze(2).where(mask, 0).sum(1)
    transition_score = transition_scores[gold[:, :-1], gold[:, 1:]].where(mask[:, 1:], 0).sum(1)
    last_label = gold.gather(1, (mask.sum(1, keepdim=True) - 1).clamp(min=0)).squeeze(1)
    return (
        transition_scores[-1, gold[:, 0]]
        + emission_score
        + transition_score
        + transition_scores[last_label, -1]
    )
