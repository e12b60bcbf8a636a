"""evaluate/modeling/crf.py: equal to what enumerating every path gives, for any lengths and forbidden
transitions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bioshards.evaluate.modeling.crf import CRF
from tests.support.train.trainer_runs import use_torch_threads

BIO = torch.tensor(  # of O, B, I and the end, by O, B, I and the start
    [[1, 1, 0, 1], [1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 1]], dtype=torch.bool
)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with use_torch_threads(1):
        yield


class Case(NamedTuple):
    crf: CRF
    scores: Tensor
    gold: Tensor
    mask: Tensor


def case(allowed: Tensor, lengths: list[int], seed: int) -> Case:
    """Random weights and scores; gold labels that are allowed."""
    draw = torch.Generator().manual_seed(seed)
    crf = CRF(allowed)
    labels = len(allowed) - 1
    with torch.no_grad():
        crf.transitions.copy_(2 * torch.randn(crf.transitions.shape, generator=draw))
    scores = 2 * torch.randn(len(lengths), max(lengths), labels, generator=draw)
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    gold = torch.full(mask.shape, -100)  # as padding has it
    for row, length in enumerate(lengths):
        paths = [path for path in all_paths(labels, length) if permitted(allowed, path)]
        chosen = paths[int(torch.randint(len(paths), (), generator=draw))]
        gold[row, :length] = torch.tensor(chosen, dtype=torch.int64)
    return Case(crf, scores, gold, mask)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    labels = draw(st.integers(1, 3))
    allowed = torch.tensor(
        draw(st.lists(st.booleans(), min_size=(labels + 1) ** 2, max_size=(labels + 1) ** 2))
    )
    allowed = allowed.reshape(labels + 1, labels + 1)
    outside = draw(st.integers(0, labels - 1))
    allowed[[outside, outside, -1], [outside, -1, outside]] = True
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    return case(allowed, lengths, draw(st.integers(0, 2**32)))


def all_paths(labels: int, length: int) -> list[tuple[int, ...]]:
    return list(itertools.product(range(labels), repeat=length))


def permitted(allowed: Tensor, path: tuple[int, ...]) -> bool:
    return all(bool(allowed[before, after]) for before, after in itertools.pairwise((-1, *path, -1)))


def path_score(crf: CRF, scores: Tensor, path: tuple[int, ...]) -> float:
    """Of a path of all words of ``scores`` [W, L], in Python's float64."""
    words = [float(scores[word, label]) for word, label in enumerate(path)]
    transitions = crf.transitions.detach()
    steps = [float(transitions[before, after]) for before, after in itertools.pairwise((-1, *path, -1))]
    return math.fsum(words + steps)


@given(cases())
@settings(max_examples=40, deadline=None)
def test_the_loss_is_that_of_all_paths(given: Case) -> None:
    crf, scores, gold, mask = given
    expected = 0.0
    for row, length in enumerate(mask.sum(1).tolist()):
        paths = [path for path in all_paths(scores.shape[2], length) if permitted(crf.allowed, path)]
        together = math.log(math.fsum(math.exp(path_score(crf, scores[row], path)) for path in paths))
        expected += together - path_score(crf, scores[row], tuple(gold[row, :length].tolist()))
    assert float(crf.loss(scores, gold, mask).detach()) == pytest.approx(expected / int(mask.sum()), abs=1e-4)


@given(cases())
@settings(max_examples=40, deadline=None)
def test_the_best_of_all_paths_is_found(given: Case) -> None:
    crf, scores, _, mask = given
    found = crf.decode(scores, mask)
    assert found.dtype == torch.int64
    assert not found[~mask].any()
    for row, length in enumerate(mask.sum(1).tolist()):
        paths = [path for path in all_paths(scores.shape[2], length) if permitted(crf.allowed, path)]
        best = tuple(found[row, :length].tolist())
        assert best in paths
        highest = max(path_score(crf, scores[row], path) for path in paths)
        assert path_score(crf, scores[row], best) == pytest.approx(highest, abs=1e-4)


@given(cases())
@settings(max_examples=20, deadline=None)
def test_gradients_are_finite_and_none_reaches_what_is_forbidden(given: Case) -> None:
    crf, scores, gold, mask = given
    scores.requires_grad_()
    of_scores, of_transitions = torch.autograd.grad(crf.loss(scores, gold, mask), (scores, crf.transitions))
    assert of_scores.isfinite().all()
    assert of_transitions.isfinite().all()
    assert not of_scores[~mask].any()
    assert not of_transitions[~crf.allowed].any()


def test_the_gradient_of_a_score_is_its_labels_probability() -> None:
    """Less one for the gold label: so the sums over paths are right in their derivatives too."""
    crf, scores, gold, mask = case(BIO, [3], 5)
    scores.requires_grad_()
    (gradient,) = torch.autograd.grad(3 * crf.loss(scores, gold, mask), scores)
    paths = [path for path in all_paths(3, 3) if permitted(BIO, path)]
    weights = [math.exp(path_score(crf, scores[0].detach(), path)) for path in paths]
    for word, label in itertools.product(range(3), range(3)):
        with_it = sum(weight for path, weight in zip(paths, weights, strict=True) if path[word] == label)
        expected = with_it / sum(weights) - (int(gold[0, word]) == label)
        assert float(gradient[0, word, label]) == pytest.approx(expected, abs=1e-4)


def test_padding_is_not_read() -> None:
    crf, scores, gold, mask = case(BIO, [1, 4, 2], 7)
    loss, found = crf.loss(scores, gold, mask), crf.decode(scores, mask)
    for row, length in enumerate([1, 4, 2]):
        alone = crf.decode(scores[row : row + 1, :length], mask[row : row + 1, :length])
        assert torch.equal(found[row, :length], alone[0])
    scores[~mask] = 1e30
    gold[~mask] = 2
    assert torch.equal(crf.loss(scores, gold, mask), loss)
    assert torch.equal(crf.decode(scores, mask), found)


def test_rows_without_words_count_for_nothing() -> None:
    crf, scores, gold, mask = case(BIO, [3, 2], 11)
    loss = crf.loss(scores, gold, mask)
    mask = torch.cat([mask, torch.zeros(1, 3, dtype=torch.bool)])
    scores, gold = torch.cat([scores, scores[:1]]).requires_grad_(), torch.cat([gold, gold[:1]])
    with_it = crf.loss(scores, gold, mask)
    assert torch.equal(with_it, loss)
    assert crf.decode(scores, mask)[2].tolist() == [0, 0, 0]
    assert float(crf.loss(scores, gold, torch.zeros_like(mask)).detach()) == 0


def test_what_is_forbidden_is_not_chosen_however_high_it_scores() -> None:
    scores = torch.zeros(1, 3, 3)
    scores[:, :, 2] = 1e9  # I, which may not begin
    assert CRF(BIO).decode(scores, torch.ones(1, 3, dtype=torch.bool)).tolist() == [[1, 2, 2]]


def test_forbidden_gold_costs_much_and_teaches_words_alone() -> None:
    crf = CRF(BIO)
    scores = torch.zeros(1, 2, 3, requires_grad=True)
    loss = crf.loss(scores, torch.tensor([[0, 2]]), torch.ones(1, 2, dtype=torch.bool))
    of_scores, of_transitions = torch.autograd.grad(loss, (scores, crf.transitions))
    assert float(loss.detach()) == pytest.approx(1e4 / 2, abs=10)
    assert float(of_scores[0, 1, 2]) < -0.1
    assert float(of_transitions[0, 2]) == 0


def test_half_precision_scores_are_summed_in_float32() -> None:
    crf, scores, gold, mask = case(BIO, [4, 2], 13)
    exact = scores.bfloat16().float()
    assert torch.equal(crf.loss(scores.bfloat16(), gold, mask), crf.loss(exact, gold, mask))
    assert torch.equal(crf.decode(scores.bfloat16(), mask), crf.decode(exact, mask))


def test_transitions_are_learned_from_nothing_else() -> None:
    """Words that all look alike, labels in turn: what follows what is all that there is to learn."""
    crf = CRF(torch.ones(3, 3, dtype=torch.bool))
    scores, mask = torch.zeros(1, 6, 2), torch.ones(1, 6, dtype=torch.bool)
    gold = torch.tensor([[1, 0, 1, 0, 1, 0]])
    optimiser = torch.optim.SGD(crf.parameters(), lr=1.0)
    for _ in range(50):
        (crf.transitions.grad,) = torch.autograd.grad(crf.loss(scores, gold, mask), crf.transitions)
        optimiser.step()
    assert torch.equal(crf.decode(scores, mask), gold)


def test_labels_of_which_none_can_stand_alone_are_refused() -> None:
    allowed = BIO.clone()
    allowed[0, 0] = allowed[1, 1] = False
    with pytest.raises(ValueError, match="no label may begin a sentence, follow itself and end one"):
        CRF(allowed)


def test_a_checkpoint_has_the_weights_alone() -> None:
    assert list(CRF(BIO).state_dict()) == ["transitions"]
