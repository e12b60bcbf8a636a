"""Measures of tagged words: F1 of entities, and of words by class (PICO)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.tags import spans, strict_spans

from . import counts
from .metric import Metric, Numbers, aligned, f1, table

Tags = Sequence[str]


def entity_f1() -> Metric:
    """Precision, recall and F1 of entities, exact in first word, last word and type; micro over types.

    Gold and predicted are BIO tags, one a word of the *whole* sentence: what a model did not read it has
    to have tagged ``O``.  The score is by conlleval's rule, ``strict F1`` by that of IOB2 (tags.py).
    """
    names = ("correct", "predicted", "gold")
    statistics = (*names, *(f"strict {name}" for name in names))

    def units(gold: Sequence[Tags], predicted: Sequence[Tags]) -> Numbers:
        return table((_entities(*tags) for tags in sentences(gold, predicted)), statistics)

    def figures(sums: Numbers) -> Mapping[str, Numbers]:
        strict = f1(sums[..., 3], sums[..., 4], sums[..., 5])
        return {
            **f1(sums[..., 0], sums[..., 1], sums[..., 2]),
            **{f"strict {name}": figure for name, figure in strict.items()},
        }

    return Metric("entity F1 (conlleval)", "F1", statistics, units, figures)


def _entities(gold: Tags, predicted: Tags) -> tuple[int, ...]:
    found = []
    for rule in (spans, strict_spans):
        right, guessed = set(rule(gold)), set(rule(predicted))
        found += [len(right & guessed), len(guessed), len(right)]
    return tuple(found)


def word_f1(types: Sequence[str]) -> Metric:
    """F1 of the words of each type, and the mean over types (EBM PICO: ``PAR``, ``INT``, ``OUT``).

    Gold and predicted are tags, one a word, in any scheme: a word's class is what its tag says after the
    hyphen.  The score leaves ``O`` out, as BLURB's does (PubMedBERT, arXiv:2007.15779).  ``F1 with O`` is
    the mean that SciBERT reports, over all labels (``avg_f1`` in its scibert/models/pico_crf_tagger.py).
    """
    classes = (*types, "O")

    def units(gold: Sequence[Tags], predicted: Sequence[Tags]) -> Numbers:
        return counts.counts(classes, [_words(*tags) for tags in sentences(gold, predicted)])

    def figures(sums: Numbers) -> Mapping[str, Numbers]:
        each = counts.by_class(sums)["F1"]
        return {
            **counts.macro(sums[..., : 3 * len(types)]),
            **{f"{name} F1": each[..., place] for place, name in enumerate(types)},
            "F1 with O": each.mean(axis=-1),
        }

    return Metric("word F1 (macro)", "F1", counts.statistics(classes), units, figures)


def _words(gold: Tags, predicted: Tags) -> tuple[list[str], list[str], list[str]]:
    right, guessed = ([tag.partition("-")[2] or tag for tag in tags] for tags in (gold, predicted))
    return counts.same(right, guessed), guessed, right


def sentences(gold: Sequence[Tags], predicted: Sequence[Tags]) -> list[tuple[Tags, Tags]]:
    """Gold and predicted tags of each sentence, side by side.

    Raises:
        ValueError: not as many sentences, or words of one, are tagged as there are.
    """
    pairs = aligned(gold, predicted)
    for place, (right, guessed) in enumerate(pairs):
        if len(right) != len(guessed):
            raise InvalidValueError(f"sentence {place} has {len(right)} words, but {len(guessed)} are tagged")
    return pairs
