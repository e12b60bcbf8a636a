"""What fine-tuning puts on an encoder: layers from its vectors to classes, numbers, tags and spans.

Each is as small as the papers have it: a linear layer after dropout, drawn as BERT's is
(ELECTRA's code draws its heads more widely, by Glorot and Bengio 2010).
Below it there may be a BiLSTM, and above it for tagging a CRF (crf.py), the alternatives that the paper of
PubMedBERT names (section 2.4.2).
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from .crf import CRF

INIT_STD: Final = 0.02
"""The standard deviation of new weights (``initializer_range`` in BERT's configuration)."""
DEFAULT_DROPOUT: Final = 0.1
"""Before the last layer: PubMedBERT, section 2.5; run_classifier.py in google-research/bert."""
RelationFeature = Literal["cls", "mention", "start"]


class PooledHead(nn.Module):
    """A vector to ``outputs`` numbers: classes of a text, its classes of many, or one for regression."""

    def __init__(self, num_features: int, num_outputs: int, dropout: float = DEFAULT_DROPOUT) -> None:
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.linear = _make_linear(num_features, num_outputs)

    def forward(self, vectors: Tensor) -> Tensor:
        """[B, features] to float32[B, outputs]."""
        outputs: Tensor = self.linear(self.dropout(vectors))
        return outputs.float()


class BiLSTM(nn.Module):
    """One layer, half of the width each way, between encoder and head (PubMedBERT, table 12).

    Nothing in the paper says how wide it is, nor which of its vectors relations are classified from.
    """

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(hidden_size, hidden_size // 2, batch_first=True, bidirectional=True)

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """[B, W, hidden] to the same; what is not in ``mask`` [B, W] changes nothing and becomes 0.

        Args:
            mask: bool[B, W]: a row's words, or pieces, come first, then padding.

        Raises:
            RuntimeError: a row has nothing in ``mask``.
        """
        lengths = mask.sum(1).cpu()
        packed_output, _ = self.lstm(
            pack_padded_sequence(vectors, lengths, batch_first=True, enforce_sorted=False)
        )
        output, _ = pad_packed_sequence(packed_output, batch_first=True, total_length=vectors.shape[1])
        return output


class TokenClassificationHead(nn.Module):
    """Vectors of words to tags, or of first pieces in their place.

    In each method ``vectors`` are [B, W, hidden]; ``mask`` is bool[B, W]: a row's words, then padding.
    """

    def __init__(
        self,
        hidden_size: int,
        num_labels: int,
        dropout: float = DEFAULT_DROPOUT,
        has_bilstm: bool = False,
        crf: CRF | None = None,
    ) -> None:
        super().__init__()
        self.bilstm = BiLSTM(hidden_size) if has_bilstm else None
        self.dropout = nn.Dropout(dropout)
        self.linear = _make_linear(hidden_size, num_labels)
        self.crf = crf

    def forward(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """Of each word its labels' scores, float32[B, W, labels]."""
        if self.bilstm is not None:
            vectors = self.bilstm(vectors, mask)
        scores: Tensor = self.linear(self.dropout(vectors))
        return scores.float()

    def loss(self, vectors: Tensor, mask: Tensor, gold: Tensor) -> Tensor:
        """The mean over the words of the batch; ``gold`` is int64[B, W]."""
        scores: Tensor = self(vectors, mask)
        if self.crf is not None:
            return self.crf.loss(scores, gold, mask)
        return F.cross_entropy(scores.flatten(0, 1), gold.where(mask, -100).flatten())

    @torch.no_grad()
    def decode(self, vectors: Tensor, mask: Tensor) -> Tensor:
        """The best labels, with a CRF of the sentence, else of each word; int64[B, W], 0 in padding."""
        scores: Tensor = self(vectors, mask)
        if self.crf is not None:
            return self.crf.decode(scores, mask)
        return scores.argmax(2).where(mask, 0)


class SpanHead(nn.Module):
    """Vectors of pieces to where an answer starts and ends, as BERT does for SQuAD (run_squad.py).

    There is no dropout there before the layer, and none here.  ELECTRA's own head, which predicts the
    end from the start, is another one (``joint_prediction`` in google-research/electra, qa_tasks.py).
    """

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.linear = _make_linear(hidden_size, 2)

    def forward(self, vectors: Tensor, answer_mask: Tensor) -> Tensor:
        """Logits of the first and the last piece of the answer.

        Args:
            vectors: [B, T, hidden]
            answer_mask: bool[B, T]: where an answer may be; in training also [CLS], where a text without an
                answer has both.

        Returns:
            float32[B, T, 2]; where the answer may not be, the lowest number that there is.
        """
        logits: Tensor = self.linear(vectors).float()
        return logits.masked_fill(~answer_mask[:, :, None], torch.finfo(logits.dtype).min)

    def loss(self, vectors: Tensor, answer_mask: Tensor, targets: Tensor) -> Tensor:
        """The mean of both cross-entropies; ``gold`` is int64[B, 2]: the first and the last piece."""
        return F.cross_entropy(self(vectors, answer_mask), targets)


class AnswerSpan(NamedTuple):
    """An answer from piece ``start`` to piece ``end``, both in it; the score sums their logits."""

    start: int
    end: int
    score: float


def find_best_spans(
    start: Tensor, end: Tensor, answer_mask: Tensor, max_length: int = 30, n: int = 20
) -> list[AnswerSpan]:
    """The ``n`` best answers of a text, best first; of equals the first to start, then the shortest.

    They are the best of all pairs, where run_squad.py in google-research/bert looks at the 20 best
    starts and ends; both numbers are its defaults (``max_answer_length``, ``n_best_size``).

    Args:
        start: [T]: logits.
        end: [T]: likewise.
        answer_mask: bool[T]: where an answer may start and end.
        longest: how many pieces an answer may have.
    """
    start, end = (logits.float().masked_fill(~answer_mask, -torch.inf) for logits in (start, end))
    span_scores = start[:, None] + F.pad(end, (0, max_length - 1), value=-torch.inf).unfold(0, max_length, 1)
    flat_scores = span_scores.flatten()
    threshold = (
        flat_scores.topk(min(n, len(flat_scores))).values[-1].clamp(min=torch.finfo(flat_scores.dtype).min)
    )  # never -inf
    (positions,) = (flat_scores >= threshold).nonzero(as_tuple=True)
    scores, order = flat_scores[positions].sort(descending=True, stable=True)
    top = zip(positions[order][:n].tolist(), scores[:n].tolist(), strict=True)
    return [
        AnswerSpan(position // max_length, position // max_length + position % max_length, score)
        for position, score in top
    ]


def extract_relation_features(
    hidden: Tensor, first: Tensor, second: Tensor, feature: RelationFeature
) -> Tensor:
    """What the class of a relation is predicted from (PubMedBERT, section 3.3).

    Args:
        hidden: [B, T, H]: the encoder's vectors of pieces.
        first: int64[B, 2]: of the first entity, the first piece and that after the last.
        second: likewise.
        kind: ``cls``: the vector of [CLS]; ``mention``: the largest number in each place of an entity's
            vectors, the two entities concatenated; ``start``: the vectors of both ranges' first pieces
            concatenated, where ranges begin at the entities' tags.

    Returns:
        [B, H], or [B, 2H] for two entities; 0 for one that was cut off, whose range is empty.
    """
    if feature == "cls":
        return hidden[:, 0]
    return torch.cat([_pool_entity(hidden, token_ranges, feature) for token_ranges in (first, second)], 1)


def weighted_cross_entropy(logits: Tensor, gold: Tensor, weights: Tensor | None = None) -> Tensor:
    """The mean over texts of -log p(gold), each times the weight of its class.

    The sum is divided by the number of texts, not by their weights (``WeightedClassificationTask`` in
    electra/finetune/classification/classification_tasks.py of SciCrunch/bio_electra; its reranker's
    weights are 1 and 99).

    Args:
        logits: [B, C]
        gold: int64[B]
        weights: float[C]
    """
    return F.cross_entropy(logits, gold, weights, reduction="sum") / len(gold)


def mean_squared_error(outputs: Tensor, gold: Tensor) -> Tensor:
    """The mean squared error of ``outputs`` [B, 1]; ``gold`` is float[B] (PubMedBERT, section 2.4.1)."""
    return F.mse_loss(outputs.squeeze(1), gold)


def binary_cross_entropy(logits: Tensor, gold: Tensor) -> Tensor:
    """The mean over texts and classes, each on its own: ``logits`` [B, C], ``gold`` bool[B, C]."""
    return F.binary_cross_entropy_with_logits(logits, gold.to(logits.dtype))


def _pool_entity(hidden: Tensor, token_ranges: Tensor, feature: RelationFeature) -> Tensor:
    """The vectors [B, H] of entities."""
    start, end = token_ranges[:, :1], token_ranges[:, 1:]
    positions = torch.arange(hidden.shape[1], device=hidden.device)
    is_inside = (positions >= start) & (
        positions < (end if feature == "mention" else torch.minimum(start + 1, end))
    )
    maximum = hidden.masked_fill(~is_inside[:, :, None], -torch.inf).amax(1)
    return maximum.where(is_inside.any(1, keepdim=True), 0)


def _make_linear(in_features: int, out_features: int) -> nn.Linear:
    """A layer of random weights: normal, cut at two standard deviations, as TensorFlow's are."""
    layer = nn.Linear(in_features, out_features)
    nn.init.trunc_normal_(layer.weight, std=INIT_STD, a=-2 * INIT_STD, b=2 * INIT_STD)
    nn.init.zeros_(layer.bias)
    return layer
