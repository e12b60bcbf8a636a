"""Linear-chain conditional random field over the tags of a sentence.

Lafferty, McCallum and Pereira 2001 (ICML), with emission scores from a network: the score of a path is the
sum of its emission and transition scores. PubMedBERT's paper names it as a tagging head (section 2.4.2).
Invalid transitions, such as ``O`` to ``I-``, are masked in loss and decoding.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from bioshards.corpus.errors import InvalidValueError

FORBIDDEN_SCORE: Final = -1e4
"""Score of a masked transition in the loss: its exponential is 0 in float32, and gradients stay finite."""


class CRF(nn.Module):
    """Transition scores between L labels, initialised with 0.

    Sums are computed in float32. ``mask`` [B, W] marks the words of a row, which come before its padding.
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
