"""Heads of the models: output shapes, losses written out, padding, and the best answer spans."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bioshards.evaluate.encoder import EncodedBatch, Example, ModelTokenizer
from bioshards.evaluate.recipes import FineTuneRecipe, RelationFeature
from bioshards.evaluate.tasks.classification import (
    Classification,
    ClassificationHead,
    ClassificationType,
    extract_relation_features,
)
from bioshards.evaluate.tasks.head_layers import CRF, BiLSTM
from bioshards.evaluate.tasks.question_answering import AnswerSpan, JointSpanHead, SpanHead, find_best_spans
from bioshards.evaluate.tasks.tagging import TaggingHead
from tests.support.hypothesis_profiles import examples

WORDS = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]], dtype=torch.bool)
GOLD = torch.tensor([[0, 1, 2, 0], [1, -100, -100, -100], [0, 0, -100, -100]])
BIO = torch.tensor([[1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 1]], dtype=torch.bool)


pytestmark = pytest.mark.usefixtures("use_one_thread")


@pytest.fixture(autouse=True)
def seed_torch() -> None:
    torch.manual_seed(3)


def make_tagger(bilstm: bool, crf: bool) -> TaggingHead:
    return TaggingHead(8, 3, has_bilstm=bilstm, crf=CRF(BIO) if crf else None).eval()


EACH_KIND = pytest.mark.parametrize(("bilstm", "crf"), list(itertools.product([False, True], repeat=2)))


def test_weights_are_initialized_as_in_bert() -> None:
    weights = ClassificationHead(400, 100).linear.weight.detach()
    assert float(weights.std()) == pytest.approx(0.02 * 0.88, rel=0.02)  # truncated at two deviations
    assert float(weights.abs().max()) <= 0.04
    assert not ClassificationHead(4, 2).linear.bias.any()


def test_outputs_are_float32() -> None:
    head = ClassificationHead(8, 5).eval()
    vectors = torch.randn(3, 8)
    assert torch.equal(head(vectors), vectors @ head.linear.weight.T + head.linear.bias)
    assert head.bfloat16()(vectors.bfloat16()).dtype == torch.float32


def test_dropout_is_applied_in_training_only() -> None:
    head = ClassificationHead(8, 5, dropout=0.5)
    vectors = torch.randn(3, 8)
    assert not torch.equal(head(vectors), head(vectors))
    assert torch.equal(head.eval()(vectors), head(vectors))


@EACH_KIND
def test_padding_has_no_effect_on_tags_and_loss(bilstm: bool, crf: bool) -> None:
    head = make_tagger(bilstm, crf)
    vectors = torch.randn(3, 4, 8)
    decoded, loss = head.decode(vectors, WORDS), head.loss(vectors, WORDS, GOLD)
    assert decoded.dtype == torch.int64
    assert not decoded[~WORDS].any()
    vectors[~WORDS] = 100.0
    assert torch.equal(head.decode(vectors, WORDS), decoded)
    assert torch.equal(head.loss(vectors, WORDS, GOLD), loss)
    row_losses = []
    for row, length in enumerate(WORDS.sum(1).tolist()):
        row_inputs = vectors[row : row + 1, :length], WORDS[row : row + 1, :length]
        assert torch.equal(head.decode(*row_inputs)[0], decoded[row, :length])
        row_losses.append(length * float(head.loss(*row_inputs, GOLD[row : row + 1, :length]).detach()))
    assert float(loss.detach()) == pytest.approx(sum(row_losses) / 7, rel=1e-5)  # per word


def test_only_a_crf_avoids_forbidden_transitions() -> None:
    vectors, mask = torch.randn(64, 5, 8), torch.ones(64, 5, dtype=torch.bool)
    for crf in (False, True):
        head = make_tagger(bilstm=False, crf=crf)
        with torch.no_grad():
            head.linear.weight.mul_(100)
        decoded = head.decode(vectors, mask)
        is_orphan = (decoded[:, 1:] == 2) & (decoded[:, :-1] == 0)
        assert bool(is_orphan.any()) is not crf


def test_bilstm_reads_both_directions_and_keeps_the_width() -> None:
    layer = BiLSTM(8)
    vectors = torch.randn(1, 4, 8)
    before = layer(vectors, WORDS[:1])
    assert before.shape == (1, 4, 8)
    vectors[0, 1] += 1
    is_changed = layer(vectors, WORDS[:1])[0] != before[0]
    assert [is_changed[word, :4].any().item() for word in range(4)] == [False, True, True, True]
    assert [is_changed[word, 4:].any().item() for word in range(4)] == [True, True, False, False]


def test_span_loss_is_the_mean_of_both_cross_entropies() -> None:
    head = SpanHead(8)
    vectors = torch.randn(2, 5, 8)
    allowed = torch.tensor([[1, 0, 1, 1, 1], [1, 0, 0, 1, 0]], dtype=torch.bool)
    gold = torch.tensor([[2, 4], [0, 0]])
    logits = head(vectors, allowed)
    assert logits.shape == (2, 5, 2)
    expected = 0.0
    for row, side in itertools.product(range(2), range(2)):
        scores = head.linear(vectors)[row, :, side].tolist()
        partition = math.fsum(math.exp(scores[position]) for position in range(5) if allowed[row, position])
        expected += (math.log(partition) - scores[int(gold[row, side])]) / 4
    assert float(head.loss(vectors, allowed, gold).detach()) == pytest.approx(expected, rel=1e-5)


def enumerate_spans(
    start: Tensor, end: Tensor, allowed: Tensor, longest: int
) -> list[tuple[float, int, int]]:
    """Enumerate all spans of at most ``longest`` allowed tokens, the best first."""
    positions = [position for position in range(len(start)) if allowed[position]]
    return sorted(
        (-float(start[first] + end[last]), first, last)
        for first, last in itertools.product(positions, positions)
        if first <= last < first + longest
    )


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.booleans()), min_size=1, max_size=12),
    st.integers(1, 15),
    st.integers(1, 30),
)
@settings(max_examples=examples(150))
def test_best_spans_equal_enumeration(pieces: list[tuple[int, int, bool]], longest: int, n: int) -> None:
    starts, ends, is_allowed = zip(*pieces, strict=True)
    start, end = torch.tensor(starts, dtype=torch.float32), torch.tensor(ends, dtype=torch.float32)
    allowed = torch.tensor(is_allowed)
    spans = find_best_spans(start, end, allowed, longest, n)
    expected = enumerate_spans(start, end, allowed, longest)[:n]
    assert spans == [AnswerSpan(first, last, -score) for score, first, last in expected]


@torch.no_grad()
def score_jointly(head: JointSpanHead, vectors: Tensor, allowed: Tensor, start: int, end: int) -> float:
    """Return the log-probability of an answer, written out from ELECTRA's qa_tasks.py."""
    positions = [position for position in range(len(vectors)) if allowed[position]]
    start_logits = head.start(vectors)[:, 0].tolist()
    end_logits = [
        float(head.end(torch.nn.functional.gelu(head.end_hidden(torch.cat([vectors[start], vector])))))
        for vector in vectors
    ]
    return math.fsum(
        logits[chosen] - math.log(math.fsum(math.exp(logits[position]) for position in positions))
        for logits, chosen in ((start_logits, start), (end_logits, end))
    )


def test_joint_span_loss_scores_the_end_given_the_marked_start() -> None:
    head, vectors = JointSpanHead(8), torch.randn(2, 5, 8)
    allowed = torch.tensor([[1, 0, 1, 1, 1], [1, 0, 0, 1, 0]], dtype=torch.bool)
    gold = torch.tensor([[2, 4], [0, 0]])
    expected = [-score_jointly(head, vectors[row], allowed[row], *gold[row].tolist()) / 2 for row in (0, 1)]
    assert float(head.loss(vectors, allowed, gold).detach()) == pytest.approx(sum(expected) / 2, rel=1e-4)


@pytest.mark.parametrize("longest", [1, 2, 30])
def test_joint_answers_equal_enumeration(longest: int) -> None:
    head, vectors = JointSpanHead(8), torch.randn(2, 6, 8)
    ends = torch.tensor([[0, 0, 1, 1, 1, 1], [0, 1, 1, 0, 0, 0]], dtype=torch.bool)
    starts = ends & torch.tensor([True, True, True, True, False, False])  # others have more context elsewhere
    allowed = ends | torch.tensor([True, False, False, False, False, False])  # [CLS]
    answers = head.find_answers(vectors, starts, ends, longest, n=4)
    for row in (0, 1):
        expected = sorted(
            (-score_jointly(head, vectors[row], allowed[row], start, end), start, end)
            for start, end in itertools.product(range(6), range(6))
            if starts[row, start] and ends[row, end] and start <= end < start + longest
        )[:4]
        assert [answer[:2] for answer in answers[row]] == [(start, end) for _, start, end in expected]
        assert [answer.score for answer in answers[row]] == pytest.approx([-one for one, *_ in expected])


def test_joint_answers_come_from_the_beam_of_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    head, vectors = JointSpanHead(8), torch.randn(1, 6, 8)
    allowed = torch.tensor([[False, True, True, True, True, True]])
    monkeypatch.setattr(JointSpanHead, "BEAM_SIZE", 2)
    best_starts = head.start_logits(vectors, allowed | torch.eye(6, dtype=torch.bool)[0]).topk(2).indices[0]
    [answers] = head.find_answers(vectors, allowed, allowed, 30, n=20)
    assert {answer.start for answer in answers} <= set(best_starts.tolist())
    assert len(answers) <= 4


HIDDEN = torch.tensor([[[1.0, -1.0], [5.0, -9.0], [2.0, 4.0], [3.0, 0.0]], [[-7.0, 7.0]] * 4])
FIRST, SECOND = (
    torch.tensor([[1, 3], [0, 1]]),
    torch.tensor([[3, 4], [2, 2]]),
)  # the last range exceeds the input


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("cls", [[1, -1], [-7, 7]]),
        ("mention", [[5, 4, 3, 0], [-7, 7, 0, 0]]),
        ("start", [[5, -9, 3, 0], [-7, 7, 0, 0]]),
    ],
)
def test_relation_features(kind: RelationFeature, expected: list[list[float]]) -> None:
    assert extract_relation_features(HIDDEN, FIRST, SECOND, kind).tolist() == expected


def compute_loss(
    problem_type: ClassificationType, outputs: Tensor, targets: list[Any], weights: Tensor | None = None
) -> float:
    """Return the loss of a classification whose head gives these outputs."""
    adapter = Classification(ModelTokenizer(None, 64), FineTuneRecipe(), problem_type, (), weights)
    head = ClassificationHead(outputs.shape[1], outputs.shape[1]).eval()
    with torch.no_grad():
        head.linear.weight.copy_(torch.eye(outputs.shape[1]))
    batch_examples = [Example(index, [], [], target=target) for index, target in enumerate(targets)]
    mask = torch.ones(len(targets), 1, dtype=torch.bool)
    return float(adapter.loss(head, EncodedBatch(batch_examples, outputs[:, None], outputs, mask)).detach())


def test_cross_entropy_is_weighted_by_class_and_averaged_over_texts() -> None:
    logits = torch.tensor([[0.0, 0.0], [0.0, math.log(3)]])
    plain = compute_loss("single_label", logits, [1, 0])
    assert plain == pytest.approx((math.log(2) + math.log(4)) / 2)
    weighted = compute_loss("ranking", logits, [1, 0], torch.tensor([1.0, 99.0]))
    assert weighted == pytest.approx((99 * math.log(2) + math.log(4)) / 2)


def test_squared_error_is_averaged_over_texts() -> None:
    assert compute_loss("regression", torch.tensor([[1.0], [2.0]]), [3.0, 2.5]) == pytest.approx(2.125)


def test_binary_cross_entropy_is_averaged_over_classes() -> None:
    loss = compute_loss("multi_label", torch.tensor([[0.0, math.log(3)]]), [[1.0, 0.0]])
    assert loss == pytest.approx((math.log(2) + math.log(4)) / 2)
