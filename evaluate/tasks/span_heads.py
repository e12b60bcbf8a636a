"""Heads of questions: first and last token of an answer in a passage."""

from __future__ import annotations

from typing import Final, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bioshards.evaluate.tasks.layers import make_linear


class AnswerSpan(NamedTuple):
    """Answer from token ``start`` to token ``end``, inclusive.

    The score is the sum of both logits, or of both log-probabilities (:class:`JointSpanHead`).
    """

    start: int
    end: int
    score: float


class SpanHead(nn.Module):
    """Head for the start and the end of an answer, as BERT's for SQuAD (run_squad.py), without dropout."""

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.linear = make_linear(hidden_size, 2)

    def forward(self, vectors: Tensor, answer_mask: Tensor) -> Tensor:
        """Return the logits of the first and the last token of the answer.

        Args:
            vectors: [B, T, H].
            answer_mask: bool[B, T], tokens that an answer may start or end with; in training also [CLS], the
                target of windows without an answer.

        Returns:
            float32[B, T, 2]; the lowest finite value outside ``answer_mask``.
        """
        return _mask_logits(self.linear(vectors).float(), answer_mask[:, :, None])

    def loss(self, vectors: Tensor, answer_mask: Tensor, targets: Tensor) -> Tensor:
        """Return the mean of both cross-entropies; ``targets`` is int64[B, 2], first and last token."""
        return F.cross_entropy(self(vectors, answer_mask), targets)

    @torch.no_grad()
    def find_answers(
        self, vectors: Tensor, start_mask: Tensor, end_mask: Tensor, max_length: int, n: int
    ) -> list[list[AnswerSpan]]:
        """Return the ``n`` best answers of each row (:func:`find_best_spans`).

        Args:
            vectors: [B, T, H].
            start_mask: bool[B, T], tokens that an answer may start with, all of them in ``end_mask``.
            end_mask: bool[B, T], tokens that an answer may end with.
            max_length: maximum tokens of an answer.
        """
        logits, start_mask, end_mask = self(vectors, end_mask).cpu(), start_mask.cpu(), end_mask.cpu()
        start_logits = logits[:, :, 0].masked_fill(~start_mask, -torch.inf)
        return [
            find_best_spans(start, end, row_mask, max_length, n)
            for start, end, row_mask in zip(start_logits, logits[:, :, 1], end_mask, strict=True)
        ]


class JointSpanHead(nn.Module):
    """Head for the start of an answer, and for its end given the start, as ELECTRA's for SQuAD.

    The end is scored from each token's vector beside that of the start: the marked one in training, each of
    the best starts in prediction (a beam).

    SOURCE: google-research/electra, ``joint_prediction`` in finetune/qa/qa_tasks.py and qa_metrics.py. Its
    classifier of unanswerable questions is left out: in SQuAD 1.1 and BioASQ all are answerable.
    """

    BEAM_SIZE: Final = 20
    """Starts, and ends of each (``beam_size`` of configure_finetuning.py)."""
    _END_WIDTH: Final = 512

    def __init__(self, hidden_size: int) -> None:
        super().__init__()
        self.start = _make_glorot_linear(hidden_size, 1)
        self.end_hidden = _make_glorot_linear(2 * hidden_size, self._END_WIDTH)
        self.end = _make_glorot_linear(self._END_WIDTH, 1)

    def start_logits(self, vectors: Tensor, answer_mask: Tensor) -> Tensor:
        """Return float32[B, T] from [B, T, H]; the lowest finite value outside ``answer_mask``."""
        return _mask_logits(self.start(vectors).squeeze(2).float(), answer_mask)

    def end_logits(self, vectors: Tensor, starts: Tensor, answer_mask: Tensor) -> Tensor:
        """Return the logits of the last token given each of the starts.

        Args:
            vectors: [B, T, H].
            starts: int64[B, S].
            answer_mask: bool[B, T].

        Returns:
            float32[B, S, T]; the lowest finite value outside ``answer_mask``.
        """
        width, weights = vectors.shape[2], self.end_hidden.weight
        start_vectors = vectors.gather(1, starts[:, :, None].expand(-1, -1, width))
        # The layer of both vectors, one behind the other, as a sum: [B, S, T, 2H] would not fit into memory.
        hidden = F.linear(start_vectors, weights[:, :width])[:, :, None] + F.linear(
            vectors, weights[:, width:], self.end_hidden.bias
        ).unsqueeze(1)
        logits = self.end(F.gelu(hidden)).squeeze(3).float()
        return _mask_logits(logits, answer_mask[:, None])

    def loss(self, vectors: Tensor, answer_mask: Tensor, targets: Tensor) -> Tensor:
        """Return the mean of both cross-entropies; ``targets`` is int64[B, 2], first and last token."""
        start_loss = F.cross_entropy(self.start_logits(vectors, answer_mask), targets[:, 0])
        end_logits = self.end_logits(vectors, targets[:, :1], answer_mask).squeeze(1)
        return (start_loss + F.cross_entropy(end_logits, targets[:, 1])) / 2

    @torch.no_grad()
    def find_answers(
        self, vectors: Tensor, start_mask: Tensor, end_mask: Tensor, max_length: int, n: int
    ) -> list[list[AnswerSpan]]:
        """Return the ``n`` best answers of each row, as :meth:`SpanHead.find_answers`.

        Starts and ends are drawn from all that they are trained on, [CLS] included, so that their
        probabilities are those of training; what is no answer is dropped then.
        """
        answer_mask = end_mask.clone()
        answer_mask[:, 0] = True
        beam_size = min(self.BEAM_SIZE, vectors.shape[1])
        start_scores, starts = self.start_logits(vectors, answer_mask).log_softmax(1).topk(beam_size)
        end_logits = torch.cat(
            [
                self.end_logits(*row)  # row by row: [S, T, 512] at a time
                for row in zip(*(torch.split(one, 1) for one in (vectors, starts, answer_mask)), strict=True)
            ]
        )
        end_scores, ends = end_logits.log_softmax(2).topk(beam_size)
        scores = start_scores[:, :, None] + end_scores
        is_answer = (
            start_mask.gather(1, starts)[:, :, None]
            & end_mask[:, None].expand(-1, beam_size, -1).gather(2, ends)
            & (ends >= starts[:, :, None])
            & (ends - starts[:, :, None] < max_length)
        )
        return [
            _sort_spans(*row, n)
            for row in zip(starts.cpu(), ends.cpu(), scores.cpu(), is_answer.cpu(), strict=True)
        ]


def _sort_spans(starts: Tensor, ends: Tensor, scores: Tensor, is_answer: Tensor, n: int) -> list[AnswerSpan]:
    """Return the ``n`` best answers of a beam; int64[S], then int64, float32 and bool of [S, E]."""
    spans = [
        AnswerSpan(int(starts[row]), int(ends[row, column]), float(scores[row, column]))
        for row, column in is_answer.nonzero().tolist()
    ]
    return sorted(spans, key=lambda span: (-span.score, span.start, span.end))[:n]


def _mask_logits(logits: Tensor, mask: Tensor) -> Tensor:
    return logits.masked_fill(~mask, torch.finfo(logits.dtype).min)


def find_best_spans(
    start: Tensor, end: Tensor, answer_mask: Tensor, max_length: int = 30, n: int = 20
) -> list[AnswerSpan]:
    """Return the ``n`` best answers, best first; ties by earlier start, then by shorter length.

    All pairs are searched; google-research/bert's run_squad.py combines the 20 best starts and ends. Both
    defaults are its ``max_answer_length`` and ``n_best_size``.

    Args:
        start: float[T], start logits.
        end: float[T], end logits.
        answer_mask: bool[T], allowed tokens.
        max_length: maximum tokens of an answer.
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


def _make_glorot_linear(in_features: int, out_features: int) -> nn.Linear:
    """Return a linear layer with the weights of TensorFlow's ``tf.layers.dense``."""
    layer = nn.Linear(in_features, out_features)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
