"""Entity F1 against conlleval, and word F1 against scikit-learn."""

from __future__ import annotations

import random

import pytest

from bioshards.evaluate.metrics.tags import entity_f1, extract_strict_spans, word_f1
from tests.support.evaluate.metric_oracles import conlleval, one_hot, random_classifications, scores_by_class

BIO = ("O", "B-Gene", "I-Gene", "B-Drug", "I-Drug")
PICO = ("I-PAR", "I-INT", "I-OUT", "O")


def draw_tags(rng: random.Random) -> tuple[list[list[str]], list[list[str]]]:
    """Draw up to four sentences of gold tags, and predictions that keep about half of the tags."""
    gold = [rng.choices(BIO, k=rng.randint(1, 8)) for _ in range(rng.randint(0, 4))]
    predicted = [[tag if rng.random() < 0.5 else rng.choice(BIO) for tag in sentence] for sentence in gold]
    return gold, predicted


def test_entity_f1_golden_case() -> None:
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


def test_entity_f1_equals_conlleval_and_strict_spans() -> None:
    rng = random.Random(1)
    metric = entity_f1()
    for _ in range(2000):
        gold, predicted = draw_tags(rng)
        sums = metric.compute_stats(gold, predicted).sum(axis=0)
        assert tuple(sums[:3]) == conlleval(gold, predicted)
        span_sets = [
            {(index, *span) for index, tags in enumerate(side) for span in extract_strict_spans(tags)}
            for side in (gold, predicted)
        ]
        assert tuple(sums[3:]) == (len(span_sets[0] & span_sets[1]), len(span_sets[1]), len(span_sets[0]))
        correct_count, predicted_count, gold_count = sums[:3]
        precision, recall = (correct_count / total if total else 0 for total in (predicted_count, gold_count))
        f1 = 2 * precision * recall / (precision + recall) if correct_count else 0
        scores = metric.scores_from_stats(sums[None])
        assert (scores["precision"], scores["recall"]) == (precision, recall)
        assert scores["F1"] == pytest.approx(f1)


def test_word_f1_equals_scikit_learn() -> None:
    """Each case is two sentences of seven words; the classes are the types and ``O``."""
    gold, predicted = random_classifications(2, len(PICO), (1000, 14))
    scores = scores_by_class(one_hot(gold, 4), one_hot(predicted, 4))
    metric = word_f1(("PAR", "INT", "OUT"))
    for index, (gold_codes, predicted_codes) in enumerate(zip(gold, predicted, strict=True)):
        sides = (
            [[PICO[code] for code in half] for half in (side[:7], side[7:])]
            for side in (gold_codes, predicted_codes)
        )
        word_scores = metric.compute_scores(*sides)
        means = scores[:, index, :3].mean(axis=-1)
        assert [word_scores["precision"], word_scores["recall"], word_scores["F1"]] == pytest.approx(means)
        assert [word_scores[f"{name} F1"] for name in ("PAR", "INT", "OUT")] == pytest.approx(
            scores[2, index, :3]
        )
        assert word_scores["F1 with O"] == pytest.approx(scores[2, index].mean())


def test_word_f1_does_not_depend_on_the_tag_scheme() -> None:
    metric = word_f1(("PAR", "INT"))
    gold = [["I-PAR", "I-PAR", "O", "I-INT"]]
    assert metric.compute_scores(gold, [["B-PAR", "L-PAR", "O", "U-INT"]])["F1 with O"] == 1


def test_scores_without_sentences_or_entities_are_0() -> None:
    for metric in (entity_f1(), word_f1(("PAR",))):
        assert metric.compute_stats([], []).shape == (0, len(metric.stat_names))
        for gold in ([], [["O", "O"]]):
            scores = metric.compute_scores(gold, gold)
            assert scores[metric.main_score] == scores["precision"] == scores["recall"] == 0


def test_unequal_numbers_of_sentences_or_words_are_refused() -> None:
    with pytest.raises(ValueError, match="1 are predicted, but there are 2"):
        entity_f1().compute_scores([["O"], ["O"]], [["O"]])
    with pytest.raises(ValueError, match="sentence 1 has 2 words, but 1 are tagged"):
        word_f1(("PAR",)).compute_scores([["O"], ["O", "O"]], [["O"], ["O"]])
