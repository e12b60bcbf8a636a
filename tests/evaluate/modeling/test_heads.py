"""evaluate/modeling/heads.py: shapes, losses written out, padding that changes nothing, spans equal to all
pairs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bioshards.evaluate.modeling.crf import CRF
from bioshards.evaluate.modeling.heads import (
    AnswerSpan,
    BiLSTM,
    PooledHead,
    RelationFeature,
    SpanHead,
    TokenClassificationHead,
    binary_cross_entropy,
    extract_relation_features,
    find_best_spans,
    mean_squared_error,
    weighted_cross_entropy,
)
from tests.support.train.trainer_runs import use_torch_threads

WORDS = torch.tensor([[1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]], dtype=torch.bool)
GOLD = torch.tensor([[0, 1, 2, 0], [1, -100, -100, -100], [0, 0, -100, -100]])
BIO = torch.tensor([[1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 1]], dtype=torch.bool)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    torch.manual_seed(3)
    with use_torch_threads(1):
        yield


def tagger(bilstm: bool, crf: bool) -> TokenClassificationHead:
    return TokenClassificationHead(8, 3, has_bilstm=bilstm, crf=CRF(BIO) if crf else None).eval()


KINDS = pytest.mark.parametrize(("bilstm", "crf"), list(itertools.product([False, True], repeat=2)))


def test_new_weights_are_those_of_bert() -> None:
    weights = PooledHead(400, 100).linear.weight.detach()
    assert float(weights.std()) == pytest.approx(0.02 * 0.88, rel=0.02)  # of a normal cut at 2
    assert float(weights.abs().max()) <= 0.04
    assert not PooledHead(4, 2).linear.bias.any()


def test_a_vector_gives_outputs_in_float32() -> None:
    head = PooledHead(8, 5).eval()
    vectors = torch.randn(3, 8)
    assert torch.equal(head(vectors), vectors @ head.linear.weight.T + head.linear.bias)
    assert head.bfloat16()(vectors.bfloat16()).dtype == torch.float32


def test_there_is_dropout_in_training_alone() -> None:
    head = PooledHead(8, 5, dropout=0.5)
    vectors = torch.randn(3, 8)
    assert not torch.equal(head(vectors), head(vectors))
    assert torch.equal(head.eval()(vectors), head(vectors))


@KINDS
def test_padding_changes_no_tag_and_no_loss(bilstm: bool, crf: bool) -> None:
    head = tagger(bilstm, crf)
    vectors = torch.randn(3, 4, 8)
    found, loss = head.decode(vectors, WORDS), head.loss(vectors, WORDS, GOLD)
    assert found.dtype == torch.int64
    assert not found[~WORDS].any()
    vectors[~WORDS] = 100.0
    assert torch.equal(head.decode(vectors, WORDS), found)
    assert torch.equal(head.loss(vectors, WORDS, GOLD), loss)
    by_row = []
    for row, length in enumerate(WORDS.sum(1).tolist()):
        alone = vectors[row : row + 1, :length], WORDS[row : row + 1, :length]
        assert torch.equal(head.decode(*alone)[0], found[row, :length])
        by_row.append(length * float(head.loss(*alone, GOLD[row : row + 1, :length]).detach()))
    assert float(loss.detach()) == pytest.approx(sum(by_row) / 7, rel=1e-5)  # per word


@KINDS
def test_every_weight_is_learned(bilstm: bool, crf: bool) -> None:
    head = tagger(bilstm, crf)
    head.loss(torch.randn(3, 4, 8), WORDS, GOLD).backward()  # type: ignore[no-untyped-call]
    for name, weight in head.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.isfinite().all(), name
        assert weight.grad.any(), name


@pytest.mark.parametrize("crf", [False, True])
def test_a_tagger_learns_its_sentences(crf: bool) -> None:
    head = tagger(bilstm=True, crf=crf)
    vectors, optimiser = torch.randn(3, 4, 8), torch.optim.Adam(head.parameters(), lr=0.05)
    for _ in range(60):
        optimiser.zero_grad()
        head.loss(vectors, WORDS, GOLD).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    assert torch.equal(head.decode(vectors, WORDS), GOLD.clamp(min=0))


def test_only_a_crf_keeps_to_what_is_allowed() -> None:
    vectors, mask = torch.randn(64, 5, 8), torch.ones(64, 5, dtype=torch.bool)
    for crf in (False, True):
        head = tagger(bilstm=False, crf=crf)
        with torch.no_grad():
            head.linear.weight.mul_(100)
        found = head.decode(vectors, mask)
        orphans = (found[:, 1:] == 2) & (found[:, :-1] == 0)
        assert bool(orphans.any()) is not crf


def test_a_bilstm_reads_both_ways_and_as_wide() -> None:
    layer = BiLSTM(8)
    vectors = torch.randn(1, 4, 8)
    before = layer(vectors, WORDS[:1])
    assert before.shape == (1, 4, 8)
    vectors[0, 1] += 1
    changed = layer(vectors, WORDS[:1])[0] != before[0]
    assert [changed[word, :4].any().item() for word in range(4)] == [False, True, True, True]
    assert [changed[word, 4:].any().item() for word in range(4)] == [True, True, False, False]


def test_a_bilstm_refuses_sentences_without_words() -> None:
    with pytest.raises(RuntimeError, match="greater than 0"):
        BiLSTM(8)(torch.randn(1, 4, 8), torch.zeros(1, 4, dtype=torch.bool))


def test_the_loss_of_spans_is_the_mean_of_both_cross_entropies() -> None:
    head = SpanHead(8)
    vectors = torch.randn(2, 5, 8)
    allowed = torch.tensor([[1, 0, 1, 1, 1], [1, 0, 0, 1, 0]], dtype=torch.bool)
    gold = torch.tensor([[2, 4], [0, 0]])
    logits = head(vectors, allowed)
    assert logits.shape == (2, 5, 2)
    expected = 0.0
    for row, which in itertools.product(range(2), range(2)):
        scores = head.linear(vectors)[row, :, which].tolist()
        among = math.fsum(math.exp(scores[place]) for place in range(5) if allowed[row, place])
        expected += (math.log(among) - scores[int(gold[row, which])]) / 4
    assert float(head.loss(vectors, allowed, gold).detach()) == pytest.approx(expected, rel=1e-5)


def test_no_gradient_comes_from_where_no_answer_may_be() -> None:
    vectors = torch.randn(1, 4, 8, requires_grad=True)
    allowed = torch.tensor([[True, False, True, False]])
    (gradient,) = torch.autograd.grad(SpanHead(8).loss(vectors, allowed, torch.tensor([[0, 2]])), vectors)
    assert gradient.isfinite().all()
    assert gradient.any(2).tolist() == [[True, False, True, False]]


def all_spans(start: Tensor, end: Tensor, allowed: Tensor, longest: int) -> list[tuple[float, int, int]]:
    """Every pair, from the best on, by three rules written out."""
    places = [place for place in range(len(start)) if allowed[place]]
    return sorted(
        (-float(start[first] + end[last]), first, last)
        for first, last in itertools.product(places, places)
        if first <= last < first + longest
    )


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3), st.booleans()), min_size=1, max_size=12),
    st.integers(1, 15),
    st.integers(1, 30),
)
@settings(max_examples=150, deadline=None)
def test_the_best_spans_are_those_of_all_pairs(
    pieces: list[tuple[int, int, bool]], longest: int, n: int
) -> None:
    starts, ends, places = zip(*pieces, strict=True)
    start, end = torch.tensor(starts, dtype=torch.float32), torch.tensor(ends, dtype=torch.float32)
    allowed = torch.tensor(places)
    found = find_best_spans(start, end, allowed, longest, n)
    expected = all_spans(start, end, allowed, longest)[:n]
    assert found == [AnswerSpan(first, last, -score) for score, first, last in expected]


def test_best_spans_by_hand() -> None:
    start, end = torch.tensor([5.0, 1.0, 0.0, 0.0]), torch.tensor([0.0, 0.0, 2.0, 9.0])
    everywhere = torch.ones(4, dtype=torch.bool)
    assert find_best_spans(start, end, everywhere, n=2) == [AnswerSpan(0, 3, 14.0), AnswerSpan(1, 3, 10.0)]
    assert find_best_spans(start, end, everywhere, max_length=3, n=1) == [AnswerSpan(1, 3, 10.0)]
    without_cls = torch.tensor([False, True, True, True])
    assert find_best_spans(start, end, without_cls, max_length=2, n=2) == [
        AnswerSpan(2, 3, 9.0),
        AnswerSpan(3, 3, 9.0),
    ]
    assert find_best_spans(start, end, torch.zeros(4, dtype=torch.bool)) == []


HIDDEN = torch.tensor([[[1.0, -1.0], [5.0, -9.0], [2.0, 4.0], [3.0, 0.0]], [[-7.0, 7.0]] * 4])
FIRST, SECOND = torch.tensor([[1, 3], [0, 1]]), torch.tensor([[3, 4], [2, 2]])  # the last was cut off


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("cls", [[1, -1], [-7, 7]]),
        ("mention", [[5, 4, 3, 0], [-7, 7, 0, 0]]),
        ("start", [[5, -9, 3, 0], [-7, 7, 0, 0]]),
    ],
)
def test_features_of_relations(kind: RelationFeature, expected: list[list[float]]) -> None:
    assert extract_relation_features(HIDDEN, FIRST, SECOND, kind).tolist() == expected


@pytest.mark.parametrize("kind", ["mention", "start"])
def test_features_have_finite_gradients_from_entities_alone(kind: RelationFeature) -> None:
    hidden = HIDDEN.clone().requires_grad_()
    features = extract_relation_features(hidden, FIRST, SECOND, kind)
    (gradient,) = torch.autograd.grad(features.sum(), hidden)
    of_pieces = gradient.sum(2).tolist()
    assert of_pieces == [[0, 1, 1, 2] if kind == "mention" else [0, 2, 0, 2], [2, 0, 0, 0]]


def test_cross_entropy_is_weighted_by_class_and_divided_by_texts() -> None:
    logits, gold = torch.tensor([[0.0, 0.0], [0.0, math.log(3)]]), torch.tensor([1, 0])
    assert float(weighted_cross_entropy(logits, gold)) == pytest.approx((math.log(2) + math.log(4)) / 2)
    weighted = weighted_cross_entropy(logits, gold, torch.tensor([1.0, 99.0]))
    assert float(weighted) == pytest.approx((99 * math.log(2) + math.log(4)) / 2)


def test_squared_error_is_of_each_text() -> None:
    assert float(mean_squared_error(torch.tensor([[1.0], [2.0]]), torch.tensor([3.0, 2.5]))) == pytest.approx(
        2.125
    )


def test_binary_cross_entropy_is_of_each_class() -> None:
    found = binary_cross_entropy(torch.tensor([[0.0, math.log(3)]]), torch.tensor([[True, False]]))
    assert float(found) == pytest.approx((math.log(2) + math.log(4)) / 2)
