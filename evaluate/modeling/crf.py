"""A linear-chain conditional random field: a sentence's tags are chosen together, not each for itself.

PubMedBERT's paper names it beside the linear layer and the LSTM as what may stand on the encoder for
tagging (section 2.4.2).  It is the model of Lafferty, McCallum and Pereira 2001 (ICML) with scores of
words from a network: the score of a path is the sum of its words' scores and of its transitions', and its
probability e to that over the sum for all paths.  Transitions can be forbidden: an ``I-`` after an ``O``
is neither predicted nor given any probability.
"""

from __future__ import annotations

from typing import Final

import torch
from torch import Tensor, nn

from bioshards.corpus.errors import InvalidValueError

FORBIDDEN_SCORE: Final = -1e4
"""Of a transition, in the loss: e to this is 0 in float32, but unlike -inf it keeps gradients finite."""


class CRF(nn.Module):
    """Scores of transitions between L labels, all 0 at first.

    Whatever dtype the words' scores have, sums are in float32.  Everywhere, ``mask`` [B, W] says which
    words there are: a row's words come first, then padding, whose scores and labels are not read.
    """

    transitions: Tensor
    allowed: Tensor

    def __init__(self, allowed: Tensor) -> None:
        """Every transition that is allowed can be learned.

        Args:
            allowed: bool[L + 1, L + 1]: may the label of the column follow that of the row?  The last
                row is for the start of a sentence, the last column for its end.

        Raises:
            ValueError: no label, as ``O`` does, can fill sentences of every length.
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
        """The negative log-likelihood of the gold labels per word, as cross-entropy without a CRF is.

        Gold labels that are forbidden are no error: they cost 10,000 a transition and teach it nothing,
        while the scores of words are still learned from them.

        Args:
            scores: [B, W, L]: of each label for each word.
            gold: int64[B, W]
            mask: bool[B, W]; a row without words counts for nothing.
        """
        scores, gold = scores.float(), gold.where(mask, 0)
        transition_scores = self.transitions.masked_fill(~self.allowed, FORBIDDEN_SCORE)
        negative_log_likelihood = _log_partition(scores, mask, transition_scores) - _path_score(
            scores, gold, mask, transition_scores
        )
        return negative_log_likelihood.where(mask[:, 0], 0).sum() / mask.sum().clamp(min=1)

    @torch.no_grad()
    def decode(self, scores: Tensor, mask: Tensor) -> Tensor:
        """The labels of the path of the highest score (Viterbi), int64[B, W]; 0 where no word is."""
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
    """The logarithm of the sum over all paths of e to their scores, [B]: the forward algorithm."""
    state = transition_scores[-1, :-1] + scores[:, 0]
    for word in range(1, scores.shape[1]):
        next_state = (state[:, :, None] + transition_scores[:-1, :-1]).logsumexp(1) + scores[:, word]
        state = next_state.where(mask[:, word, None], state)
    return (state + transition_scores[:-1, -1]).logsumexp(1)


def _path_score(scores: Tensor, gold: Tensor, mask: Tensor, transition_scores: Tensor) -> Tensor:
    """The scores of the gold paths, [B]."""
    emission_score = scores.gather(2, gold[:, :, None]).squeeze(2).where(mask, 0).sum(1)
    transition_score = transition_scores[gold[:, :-1], gold[:, 1:]].where(mask[:, 1:], 0).sum(1)
    last_label = gold.gather(1, (mask.sum(1, keepdim=True) - 1).clamp(min=0)).squeeze(1)
    return (
        transition_scores[-1, gold[:, 0]]
        + emission_score
        + transition_score
        + transition_scores[last_label, -1]
    )
