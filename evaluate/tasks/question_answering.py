"""Extractive question answering: first and last token of the answer in a passage.

Long passages are read in overlapping windows, as in run_squad.py of google-research/bert and qa_tasks.py of
electra. In training a window without the answer has [CLS] as its target. In prediction an answer is taken
from the window with most context around its first token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bioshards.evaluate.benchmarks.records import Question
from bioshards.evaluate.encoder import EncodedBatch, Example, ModelTokenizer, Offsets, make_linear, pad_rows
from bioshards.evaluate.metrics.text_metrics import FACTOID_ANSWERS
from bioshards.evaluate.recipes import FineTuneRecipe

_MAX_QUESTION_TOKENS: Final = 64
"""Maximum tokens of a question (google-research/bert and electra, max_query_length)."""
_N_BEST: Final = 20
"""Answers that are kept per window and passage (n_best_size there)."""
_MAX_ANSWER_TOKENS: Final = 30
"""Maximum tokens of an answer (max_answer_length there)."""
_MAX_ANSWER_CHARACTERS: Final = 100

Candidate = tuple[str, float]
"""Text and probability of an answer."""


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
        rows = zip(start_logits, logits[:, :, 1], end_mask, strict=True)
        return [find_best_spans(*row, max_length, n) for row in rows]


def find_best_spans(
    start: Tensor, end: Tensor, answer_mask: Tensor, max_length: int, n: int
) -> list[AnswerSpan]:
    """Return the ``n`` best answers, best first; ties by earlier start, then by shorter length.

    All pairs are searched; google-research/bert's run_squad.py combines the 20 best starts and ends.

    Args:
        start: float[T], start logits.
        end: float[T], end logits.
        answer_mask: bool[T], allowed tokens.
        max_length: maximum tokens of an answer.
    """
    start, end = (logits.float().masked_fill(~answer_mask, -torch.inf) for logits in (start, end))
    span_scores = start[:, None] + F.pad(end, (0, max_length - 1), value=-torch.inf).unfold(0, max_length, 1)
    flat_scores = span_scores.flatten()
    lowest_finite = torch.finfo(flat_scores.dtype).min
    threshold = flat_scores.topk(min(n, len(flat_scores))).values[-1].clamp(min=lowest_finite)
    (positions,) = (flat_scores >= threshold).nonzero(as_tuple=True)
    scores, order = flat_scores[positions].sort(descending=True, stable=True)
    return [
        AnswerSpan(position // max_length, position // max_length + position % max_length, score)
        for position, score in zip(positions[order][:n].tolist(), scores[:n].tolist(), strict=True)
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
        of_start = F.linear(start_vectors, weights[:, :width])
        of_end = F.linear(vectors, weights[:, width:], self.end_hidden.bias)
        hidden = of_start[:, :, None] + of_end[:, None]
        return _mask_logits(self.end(F.gelu(hidden)).squeeze(3).float(), answer_mask[:, None])

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
        rows = zip(*(torch.split(tensor, 1) for tensor in (vectors, starts, answer_mask)), strict=True)
        end_logits = torch.cat([self.end_logits(*row) for row in rows])  # row by row: [S, T, 512] at a time
        end_scores, ends = end_logits.log_softmax(2).topk(beam_size)
        lengths = ends - starts[:, :, None] + 1
        is_answer = (
            start_mask.gather(1, starts)[:, :, None]
            & end_mask[:, None].expand(-1, beam_size, -1).gather(2, ends)
            & (lengths >= 1)
            & (lengths <= max_length)
        )
        start_rows, end_rows = starts.tolist(), ends.tolist()
        score_rows = (start_scores[:, :, None] + end_scores).tolist()
        answers: list[list[AnswerSpan]] = [[] for _ in score_rows]
        for row, beam, place in is_answer.nonzero().tolist():
            tokens = start_rows[row][beam], end_rows[row][beam][place]
            answers[row].append(AnswerSpan(*tokens, score_rows[row][beam][place]))
        return [sorted(spans, key=lambda span: (-span.score, span.start, span.end))[:n] for spans in answers]


def _mask_logits(logits: Tensor, mask: Tensor) -> Tensor:
    return logits.masked_fill(~mask, torch.finfo(logits.dtype).min)


def _make_glorot_linear(in_features: int, out_features: int) -> nn.Linear:
    """Return a linear layer with the weights of TensorFlow's ``tf.layers.dense``."""
    layer = nn.Linear(in_features, out_features)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


@dataclass(frozen=True, slots=True)
class QuestionAnswering:
    """Task adapter for extractive question answering.

    Attributes:
        is_per_question: True to predict five ranked answers per question over all of its passages (BioASQ),
            False for the best answer of each passage (SQuAD).
    """

    tokenizer: ModelTokenizer
    recipe: FineTuneRecipe
    is_per_question: bool

    def make_examples(self, records: Sequence[Question], is_training: bool) -> list[Example]:
        """Return the windows of all passages; in training, of passages with a marked answer."""
        encoded_questions = self.tokenizer.encode_texts([record.question for record in records])
        encoded_passages = self.tokenizer.encode_texts([record.context for record in records])
        examples = []
        for index, record in enumerate(records):
            question_ids = encoded_questions[index][0][:_MAX_QUESTION_TOKENS]
            windows = self._make_windows(index, question_ids, *encoded_passages[index])
            if not is_training:
                examples += windows
            elif record.answers and (answer := record.answers[0]).start >= 0:
                span = answer.start, answer.start + len(answer.text)
                examples += [replace(window, target=_find_span_target(window, *span)) for window in windows]
        return examples

    def _make_windows(
        self, record_index: int, question_ids: list[int], passage_ids: list[int], offsets: Offsets
    ) -> list[Example]:
        max_tokens = self.tokenizer.count_text_tokens(self.recipe.max_seq_length, is_pair=True)
        question_ids = question_ids[: max(1, max_tokens // 2)]
        max_tokens -= len(question_ids)
        stride = min(self.recipe.stride, max_tokens)
        window_starts = [0, *range(stride, stride + max(0, len(passage_ids) - max_tokens), stride)]
        windows = [(start, min(start + max_tokens, len(passage_ids))) for start in window_starts]
        best_windows = [find_max_context_window(windows, token) for token in range(len(passage_ids))]
        examples = []
        for start, end in windows:
            model_input = self.tokenizer.build_input(question_ids, passage_ids[start:end])
            before = model_input.second_start
            after = len(model_input.input_ids) - before - (end - start)
            scored_tokens = [token for token in range(start, end) if best_windows[token] == (start, end)]
            positions = tuple(before + token - start for token in scored_tokens)
            window_offsets = ((0, 0),) * before + tuple(offsets[start:end]) + ((0, 0),) * after
            examples.append(Example(record_index, *model_input[:2], positions, offsets=window_offsets))
        return examples

    def build_head(self, hidden_size: int) -> nn.Module:
        """Return the head that the recipe names."""
        return JointSpanHead(hidden_size) if self.recipe.answer_head == "joint" else SpanHead(hidden_size)

    def loss(self, head: Any, batch: EncodedBatch) -> Tensor:
        """Return the loss of first and last answer token over [CLS] and the passage."""
        answer_mask = _make_passage_mask(batch)
        answer_mask[:, 0] = True
        loss: Tensor = head.loss(batch.hidden, answer_mask, batch.stack_targets())
        return loss

    def predict(self, head: Any, batch: EncodedBatch) -> list[Any]:
        """Return the best spans of each window: start character, end character (exclusive) and score."""
        passage_mask = _make_passage_mask(batch)
        start_mask = torch.zeros_like(passage_mask)
        for row, example in enumerate(batch.examples):
            start_mask[row, list(example.positions)] = True
        answers = head.find_answers(batch.hidden, start_mask, passage_mask, _MAX_ANSWER_TOKENS, _N_BEST)
        return [
            [(example.offsets[start][0], example.offsets[end][1], score) for start, end, score in spans]
            for example, spans in zip(batch.examples, answers, strict=True)
        ]

    def merge_predictions(
        self, records: Sequence[Question], examples: Sequence[Example], predictions: Sequence[Any]
    ) -> list[Any]:
        """Return the best answer of each passage, or the five best of each question."""
        spans_by_passage: list[list[tuple[int, int, float]]] = [[] for _ in records]
        for example, spans in zip(examples, predictions, strict=True):
            spans_by_passage[example.record_index] += spans
        answers_by_passage = [
            rank_passage_answers(record.context, spans)
            for record, spans in zip(records, spans_by_passage, strict=True)
        ]
        if not self.is_per_question:
            return [answers[0][0] if answers else "" for answers in answers_by_passage]
        return [
            [
                text
                for text, _ in pool_answers(each for index in members for each in answers_by_passage[index])
            ]
            for members in group_by_question(records).values()
        ]

    def gold_labels(self, records: Sequence[Question]) -> list[Any]:
        """Return the marked answers of each passage, or the accepted answers of each question."""
        if not self.is_per_question:
            return [[answer.text for answer in record.answers] for record in records]
        return [records[members[0]].accepted_answers for members in group_by_question(records).values()]

    def predict_majority(self, train_gold: Sequence[Any], test_gold: Sequence[Any]) -> list[Any]:
        """Return no answer for every passage, or no answers for every question."""
        return [[] if self.is_per_question else "" for _ in test_gold]


def group_by_question(questions: Sequence[Question]) -> dict[str, list[int]]:
    """Return the indices of the passages of each question."""
    groups: dict[str, list[int]] = {}
    for index, question in enumerate(questions):
        groups.setdefault(question.group_id, []).append(index)
    return groups


def find_max_context_window(windows: Sequence[tuple[int, int]], token_index: int) -> tuple[int, int]:
    """Return the window with most context around a token (``_check_is_max_context``).

    The context is that of the shorter side; ties by longer window, then by order.
    """

    def measure_context(window: tuple[int, int]) -> float:
        start, end = window
        return min(token_index - start, end - 1 - token_index) + 0.01 * (end - start)

    return max((one for one in windows if one[0] <= token_index < one[1]), key=measure_context)


def _find_span_target(window: Example, start: int, end: int) -> tuple[int, int]:
    """Return first and last token of an answer if the window contains both, else (0, 0) for [CLS]."""
    answer_tokens = [
        index for index, (low, high) in enumerate(window.offsets) if high > start and low < end and high > low
    ]
    if not answer_tokens:
        return 0, 0
    first, last = answer_tokens[0], answer_tokens[-1]
    is_whole = window.offsets[first][0] <= start and window.offsets[last][1] >= end
    return (first, last) if is_whole else (0, 0)


def _make_passage_mask(batch: EncodedBatch) -> Tensor:
    """Return which tokens belong to the passage, bool[B, T]."""
    rows = [[end > 0 for _, end in example.offsets] for example in batch.examples]
    return pad_rows(rows, batch.mask.shape[1]).bool().to(batch.mask.device)


def rank_passage_answers(context: str, spans: Sequence[tuple[int, int, float]]) -> list[Candidate]:
    """Return the best answers of a passage, each text once, with softmax probabilities.

    Texts are stripped: a SentencePiece token includes the blank before its word.
    """
    best_scores: dict[str, float] = {}
    for start, end, score in sorted(spans, key=lambda span: -span[2]):
        if text := context[start:end].strip():
            best_scores.setdefault(text, score)
    texts = list(best_scores)[:_N_BEST]
    scores = torch.tensor([best_scores[text] for text in texts], dtype=torch.float64)
    return list(zip(texts, scores.softmax(0).tolist(), strict=True))


def pool_answers(candidates: Iterable[Candidate], n_best: int = FACTOID_ANSWERS) -> list[Candidate]:
    """Return the best answers to a question from the candidates of all its passages.

    BioASQ wants answers to a question; a SQuAD model gives n-best lists for passages. Texts are trimmed;
    empty texts and those above 100 characters are dropped. Probabilities of texts that differ only in case
    are added, and the most probable spelling is kept; ties keep their order.

    SOURCE: biocodes/transform_n2b_factoid.py of dmis-lab/bioasq-biobert, which ELECTRAMed used. It sorts
    unstably and reads candidates in an arbitrary order (it uses row labels as ``iloc`` positions), so it may
    choose another spelling or order of equally probable answers.
    """
    spellings: dict[str, str] = {}
    totals: dict[str, float] = {}
    for raw_text, probability in sorted(candidates, key=lambda candidate: -candidate[1]):
        text = trim_answer(raw_text)
        if text and len(text) <= _MAX_ANSWER_CHARACTERS:
            key = text.lower()
            spellings.setdefault(key, text)
            totals[key] = totals.get(key, 0.0) + probability
    ranked = sorted(totals, key=lambda key: -totals[key])
    return [(spellings[key], totals[key]) for key in ranked[:n_best]]


def trim_answer(text: str) -> str:
    """Remove a final comma, full stop or blank, or else the parentheses around a text.

    At most one character or one pair is removed. A text with unbalanced parentheses becomes empty, unless its
    last character was removed (``textrip`` of the script).
    """
    if text.endswith((",", ".", " ")):
        return text[:-1]
    if len(text) > 2 and text[0] == "(" and text[-1] == ")" and text.count("(") == text.count(")") == 1:
        return text[1:-1]
    return text if ("(" in text) == (")" in text) else ""
