"""The CRF layer against enumeration of all paths, for any lengths and forbidden transitions."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bioshards.evaluate.tasks.head_layers import CRF
from tests.support.hypothesis_profiles import examples

BIO = torch.tensor(  # of O, B, I and the end, by O, B, I and the start
    [[1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 1]], dtype=torch.bool
)


pytestmark = pytest.mark.usefixtures("use_one_thread")


class Case(NamedTuple):
    crf: CRF
    scores: Tensor
    gold: Tensor
    mask: Tensor


def make_case(allowed: Tensor, lengths: list[int], seed: int) -> Case:
    """Draw random weights and scores, and allowed gold labels."""
    draw = torch.Generator().manual_seed(seed)
    crf = CRF(allowed)
    labels = len(allowed) - 1
    with torch.no_grad():
        crf.transitions.copy_(2 * torch.randn(crf.transitions.shape, generator=draw))
    scores = 2 * torch.randn(len(lengths), max(lengths), labels, generator=draw)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    gold = torch.full(mask.shape, -100)  # the label of padding
    for row, length in enumerate(lengths):
        paths = [path for path in list_paths(labels, length) if is_allowed(allowed, path)]
        path = paths[int(torch.randint(len(paths), (), generator=draw))]
        gold[row, :length] = torch.tensor(path, dtype=torch.int64)
    return Case(crf, scores, gold, mask)


@st.composite
def draw_case(draw: st.DrawFn) -> Case:
    labels = draw(st.integers(1, 3))
    allowed = torch.tensor(
        draw(st.lists(st.booleans(), min_size=(labels + 1) ** 2, max_size=(labels + 1) ** 2))
    )
    allowed = allowed.reshape(labels + 1, labels + 1)
    outside = draw(st.integers(0, labels - 1))
    allowed[[outside, outside, -1], [outside, -1, outside]] = True
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    return make_case(allowed, lengths, draw(st.integers(0, 2**32)))


def list_paths(labels: int, length: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(labels), repeat=length))


def is_allowed(allowed: Tensor, path: tuple[int, ...]) -> bool:
    return all(bool(allowed[before, after]) for before, after in itertools.pairwise((-1, *path, -1)))


def compute_path_score(crf: CRF, scores: Tensor, path: tuple[int, ...]) -> float:
    """Compute the score of a path over ``scores`` [words, labels] in float64."""
    words = [float(scores[word, label]) for word, label in enumerate(path)]
    transitions = crf.transitions.detach()
    steps = [float(transitions[before, after]) for before, after in itertools.pairwise((-1, *path, -1))]
    return math.fsum(words + steps)


@given(draw_case())
@settings(max_examples=examples(40))
def test_loss_equals_enumeration_of_all_paths(case: Case) -> None:
    crf, scores, gold, mask = case
    expected = 0.0
    for row, length in enumerate(mask.sum(1).tolist()):
        paths = [path for path in list_paths(scores.shape[2], length) if is_allowed(crf.allowed, path)]
        log_partition = math.log(
            math.fsum(math.exp(compute_path_score(crf, scores[row], path)) for path in paths)
        )
        expected += log_partition - compute_path_score(crf, scores[row], tuple(gold[row, :length].tolist()))
    assert float(crf.loss(scores, gold, mask).detach()) == pytest.approx(expected / int(mask.sum()), abs=1e-4)


@given(draw_case())
@settings(max_examples=examples(40))
def test_decode_finds_the_best_path(case: Case) -> None:
    crf, scores, _, mask = case
    decoded = crf.decode(scores, mask)
    assert decoded.dtype == torch.int64
    assert not decoded[~mask].any()
    for row, length in enumerate(mask.sum(1).tolist()):
        paths = [path for path in list_paths(scores.shape[2], length) if is_allowed(crf.allowed, path)]
        best = tuple(decoded[row, :length].tolist())
        assert best in paths
        highest = max(compute_path_score(crf, scores[row], path) for path in paths)
        assert compute_path_score(crf, scores[row], best) == pytest.approx(highest, abs=1e-4)


@given(draw_case())
@settings(max_examples=examples(20))
def test_gradients_are_finite_and_zero_for_forbidden_transitions(case: Case) -> None:
    crf, scores, gold, mask = case
    scores.requires_grad_()
    score_gradients, transition_gradients = torch.autograd.grad(
        crf.loss(scores, gold, mask), (scores, crf.transitions)
    )
    assert score_gradients.isfinite().all()
    assert transition_gradients.isfinite().all()
    assert not score_gradients[~mask].any()
    assert not transition_gradients[~crf.allowed].any()


def test_rows_without_words_have_no_effect() -> None:
    crf, scores, gold, mask = make_case(BIO, [3, 2], 11)
    loss = crf.loss(scores, gold, mask)
    mask = torch.cat([mask, torch.zeros(1, 3, dtype=torch.bool)])
    scores, gold = torch.cat([scores, scores[:1]]).requires_grad_(), torch.cat([gold, gold[:1]])
    loss_with_empty_row = crf.loss(scores, gold, mask)
    assert torch.equal(loss_with_empty_row, loss)
    assert crf.decode(scores, mask)[2].tolist() == [0, 0, 0]
    assert float(crf.loss(scores, gold, torch.zeros_like(mask)).detach()) == 0


def test_forbidden_transition_is_not_decoded_at_any_score() -> None:
    scores = torch.zeros(1, 3, 3)
    scores[:, :, 2] = 1e9  # I, which may not begin
    assert CRF(BIO).decode(scores, torch.ones(1, 3, dtype=torch.bool)).tolist() == [[1, 2, 2]]


def test_forbidden_gold_path_has_high_loss_and_no_transition_gradient() -> None:
    crf = CRF(BIO)
    scores = torch.zeros(1, 2, 3, requires_grad=True)
    loss = crf.loss(scores, torch.tensor([[0, 2]]), torch.ones(1, 2, dtype=torch.bool))
    score_gradients, transition_gradients = torch.autograd.grad(loss, (scores, crf.transitions))
    assert float(loss.detach()) == pytest.approx(1e4 / 2, abs=10)
    assert float(score_gradients[0, 1, 2]) < -0.1
    assert float(transition_gradients[0, 2]) == 0


def test_half_precision_scores_are_summed_in_float32() -> None:
    crf, scores, gold, mask = make_case(BIO, [4, 2], 13)
    exact = scores.bfloat16().float()
    assert torch.equal(crf.loss(scores.bfloat16(), gold, mask), crf.loss(exact, gold, mask))
    assert torch.equal(crf.decode(scores.bfloat16(), mask), crf.decode(exact, mask))


def test_transitions_without_an_outside_label_are_refused() -> None:
    allowed = BIO.clone()
    allowed[0, 0] = allowed[1, 1] = False
    with pytest.raises(ValueError, match="no label may begin a sentence, follow itself and end one"):
        CRF(allowed)


def test_state_dict_has_only_the_transitions() -> None:
    assert list(CRF(BIO).state_dict()) == ["transitions"]
