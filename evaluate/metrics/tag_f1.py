"""Metrics of tagged words: F1 of entities, and of words by class (PICO)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.metrics import class_counts
from bioshards.evaluate.metrics.metric import Metric, Numbers, align, make_stats_array, precision_recall_f1
from bioshards.evaluate.metrics.tag_schemes import extract_spans, extract_strict_spans

Tags = Sequence[str]


def entity_f1() -> Metric:
    """Return precision, recall and F1 of entities with exact boundaries and type, micro-averaged over types.

    Gold and predicted are BIO tags of *all* words of a sentence. Scores follow conlleval's rule, ``strict``
    scores that of IOB2 (tag_schemes.py).
    """
    count_names = ("correct", "predicted", "gold")
    stat_names = (*count_names, *(f"strict {name}" for name in count_names))

    def compute_stats(gold: Sequence[Tags], predicted: Sequence[Tags]) -> Numbers:
        return make_stats_array(
            (_count_entities(*tags) for tags in align_sentences(gold, predicted)), stat_names
        )

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        strict = precision_recall_f1(totals[..., 3], totals[..., 4], totals[..., 5])
        return {
            **precision_recall_f1(totals[..., 0], totals[..., 1], totals[..., 2]),
            **{f"strict {name}": values for name, values in strict.items()},
        }

    return Metric("entity F1 (conlleval)", "F1", stat_names, compute_stats, scores_from_totals)


def _count_entities(gold: Tags, predicted: Tags) -> tuple[int, ...]:
    stats = []
    for extract in (extract_spans, extract_strict_spans):
        gold_spans, predicted_spans = set(extract(gold)), set(extract(predicted))
        stats += [len(gold_spans & predicted_spans), len(predicted_spans), len(gold_spans)]
    return tuple(stats)


def word_f1(types: Sequence[str]) -> Metric:
    """Return the F1 of the words of each type, and its mean over types (EBM PICO: ``PAR``, ``INT``, ``OUT``).

    Gold and predicted are tags of any scheme; the class of a word follows the hyphen. The score excludes
    ``O``, as in BLURB (arXiv:2007.15779). ``F1 with O`` is SciBERT's mean over all labels (``avg_f1`` in
    scibert/models/pico_crf_tagger.py).
    """
    classes = (*types, "O")

    def compute_stats(gold: Sequence[Tags], predicted: Sequence[Tags]) -> Numbers:
        return class_counts.count_labels(
            classes, [_compare_words(*tags) for tags in align_sentences(gold, predicted)]
        )

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        class_f1 = class_counts.scores_by_class(totals)["F1"]
        return {
            **class_counts.macro_average(totals[..., : 3 * len(types)]),
            **{f"{name} F1": class_f1[..., index] for index, name in enumerate(types)},
            "F1 with O": class_f1.mean(axis=-1),
        }

    return Metric(
        "word F1 (macro)", "F1", class_counts.stat_names(classes), compute_stats, scores_from_totals
    )


def _compare_words(gold: Tags, predicted: Tags) -> tuple[list[str], list[str], list[str]]:
    gold_classes, predicted_classes = (
        [tag.partition("-")[2] or tag for tag in tags] for tags in (gold, predicted)
    )
    return class_counts.matching_labels(gold_classes, predicted_classes), predicted_classes, gold_classes


def align_sentences(gold: Sequence[Tags], predicted: Sequence[Tags]) -> list[tuple[Tags, Tags]]:
    """Pair gold and predicted tags of each sentence.

    Raises:
        InvalidValueError: the number of sentences or of words in one differs.
    """
    pairs = align(gold, predicted)
    for index, (gold_tags, predicted_tags) in enumerate(pairs):
        if len(gold_tags) != len(predicted_tags):
            raise InvalidValueError(
                f"sentence {index} has {len(gold_tags)} words, but {len(predicted_tags)} are tagged"
            )
    return pairs
