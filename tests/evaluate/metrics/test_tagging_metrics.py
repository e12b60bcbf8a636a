"""F1 of entities against conlleval's own way of counting, F1 of words against scikit-learn."""

from __future__ import annotations

import random

import pytest

from bioshards.evaluate.metrics.tag_f1 import entity_f1, word_f1
from bioshards.evaluate.metrics.tag_schemes import extract_strict_spans
from tests.support.evaluate.metric_oracles import conlleval, one_hot, random_classifications, scores_by_class

BIO = ("O", "B-Gene", "I-Gene", "B-Drug", "I-Drug")
PICO = ("I-PAR", "I-INT", "I-OUT", "O")


def random_tags(chance: random.Random) -> tuple[list[list[str]], list[list[str]]]:
    """Up to four sentences, and what could have been predicted: half of the words as they are."""
    gold = [chance.choices(BIO, k=chance.randint(1, 8)) for _ in range(chance.randint(0, 4))]
    predicted = [
        [tag if chance.random() < 0.5 else chance.choice(BIO) for tag in sentence] for sentence in gold
    ]
    return gold, predicted


def test_a_golden_case() -> None:
    gold = [["B-Gene", "I-Gene", "O", "B-Drug"], ["O", "B-Gene"]]
    predicted = [["B-Gene", "I-Gene", "O", "B-Gene"], ["O", "I-Gene"]]
    metric = entity_f1()
    assert metric.compute_stats(gold, predicted).tolist() == [[1, 2, 2, 1, 2, 2], [1, 1, 1, 0, 0, 1]]
    assert metric.compute_scores(gold, predicted) == pytest.approx(
        {
            "precision": 2 / 3,
            "recall": 2 / 3,
            "F1": 2 / 3,
            "strict precision": 1 / 2,
            "strict recall": 1 / 3,
            "strict F1": 2 / 5,
        }
    )


def test_entity_f1_is_conllevals_and_iob2s() -> None:
    chance = random.Random(1)
    metric = entity_f1()
    for _ in range(2000):
        gold, predicted = random_tags(chance)
        sums = metric.compute_stats(gold, predicted).sum(axis=0)
        assert tuple(sums[:3]) == conlleval(gold, predicted)
        sets = [
            {(place, *span) for place, tags in enumerate(side) for span in extract_strict_spans(tags)}
            for side in (gold, predicted)
        ]
        assert tuple(sums[3:]) == (len(sets[0] & sets[1]), len(sets[1]), len(sets[0]))
        correct, guessed, right = sums[:3]
        precision, recall = (correct / whole if whole else 0 for whole in (guessed, right))
        f1 = 2 * precision * recall / (precision + recall) if correct else 0
        figures = metric.scores_from_stats(sums[None])
        assert (figures["precision"], figures["recall"]) == (precision, recall)
        assert figures["F1"] == pytest.approx(f1)


def test_word_f1_is_scikit_learns() -> None:
    """Each case is two sentences of seven words; the classes are the types and ``O``."""
    gold, predicted = random_classifications(2, len(PICO), (1000, 14))
    figures = scores_by_class(one_hot(gold, 4), one_hot(predicted, 4))
    metric = word_f1(("PAR", "INT", "OUT"))
    for place, (right, guess) in enumerate(zip(gold, predicted, strict=True)):
        sides = ([[PICO[code] for code in half] for half in (side[:7], side[7:])] for side in (right, guess))
        found = metric.compute_scores(*sides)
        means = figures[:, place, :3].mean(axis=-1)
        assert [found["precision"], found["recall"], found["F1"]] == pytest.approx(means)
        assert [found[f"{name} F1"] for name in ("PAR", "INT", "OUT")] == pytest.approx(figures[2, place, :3])
        assert found["F1 with O"] == pytest.approx(figures[2, place].mean())


def test_words_of_a_type_are_the_same_in_any_scheme() -> None:
    metric = word_f1(("PAR", "INT"))
    gold = [["I-PAR", "I-PAR", "O", "I-INT"]]
    assert metric.compute_scores(gold, [["B-PAR", "L-PAR", "O", "U-INT"]])["F1 with O"] == 1


def test_no_sentence_and_no_entity_score_0() -> None:
    for metric in (entity_f1(), word_f1(("PAR",))):
        assert metric.compute_stats([], []).shape == (0, len(metric.stat_names))
        for gold in ([], [["O", "O"]]):
            figures = metric.compute_scores(gold, gold)
            assert figures[metric.main_score] == figures["precision"] == figures["recall"] == 0


def test_sentences_and_words_have_to_be_as_many() -> None:
    with pytest.raises(ValueError, match="1 are predicted, but there are 2"):
        entity_f1().compute_scores([["O"], ["O"]], [["O"]])
    with pytest.raises(ValueError, match="sentence 1 has 2 words, but 1 are tagged"):
        word_f1(("PAR",)).compute_scores([["O"], ["O", "O"]], [["O"], ["O"]])
