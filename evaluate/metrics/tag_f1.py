"""Metrics of tagged words: F1 of entities, of words by class (PICO), and those of published code.

The latter are legacy modes, off by default. Bio-ELECTRA used ELECTRA's tagging code, which lower-cases words
for cased vocabularies, truncates sentences too early, and scores only the words that are left
(google-research/electra, issue 99). BioBERT's code reports an F1 of tags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.metrics.metric import (
    Metric,
    Numbers,
    align,
    class_metric,
    macro_average,
    make_stats_array,
    micro_average,
    precision_recall_f1,
    scores_by_class,
)
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
        strict = precision_recall_f1(totals[..., 3:])
        return precision_recall_f1(totals[..., :3]) | {f"strict {name}": strict[name] for name in strict}

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

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        class_f1 = scores_by_class(totals)["F1"]
        return {
            **macro_average(totals[..., : 3 * len(types)]),
            **{f"{name} F1": class_f1[..., index] for index, name in enumerate(types)},
            "F1 with O": class_f1.mean(axis=-1),
        }

    return class_metric(
        "word F1 (macro)", "F1", (*types, "O"), partial(_align_tags, _type), scores_from_totals
    )


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


def _align_tags(
    simplify: Callable[[str], str], gold: Sequence[Tags], predicted: Sequence[Tags]
) -> list[tuple[Tags, Tags]]:
    pairs = align_sentences(gold, predicted)
    return [([*map(simplify, gold_tags)], [*map(simplify, tags)]) for gold_tags, tags in pairs]


def count_words_read(words: Sequence[str], count_tokens: Callable[[str], int], max_seq_length: int) -> int:
    """Return the number of words of a sentence that ELECTRA's tagging code reads.

    SOURCE: ``featurize`` in finetune/tagging/tagging_tasks.py of google-research/electra. A word is read if
    the tokens before it plus the number of *all words*, where the tokens of this word were meant
    (``len(words_to_tokens)`` for ``len(word_tokens)``), fit into ``max_seq_length``; ``[CLS]`` and ``[SEP]``
    count as words. An entity that crosses the limit ends there.

    Args:
        count_tokens: number of tokens of a word.
        max_seq_length: maximum tokens of an input.
    """
    tokens_used = 1
    for index, word in enumerate(words):
        if len(words) + 2 + tokens_used + 1 > max_seq_length:
            return index
        tokens_used += count_tokens(word)
    return len(words)


def merge_entity_types(metric: Metric) -> Metric:
    """Return a tagging metric that ignores entity types, as for ELECTRAMed's BC5CDR and BLURB's JNLPBA.

    Adjacent entities stay separate if the second begins with ``B-``.
    """

    def compute_stats(gold: Sequence[Tags], predicted: Sequence[Tags]) -> Numbers:
        return metric.compute_stats(*([[*map(_prefix, tags)] for tags in side] for side in (gold, predicted)))

    return replace(metric, name=f"{metric.name}, types merged", compute_stats=compute_stats)


def biobert_tag_f1() -> Metric:
    """Return the metric of BioBERT's run_ner.py: mean F1 of tags B and I, ignoring types.

    Labels are BIO tags by word; ``micro F1`` counts both tags together. SOURCE: ``metric_fn`` in run_ner.py
    of dmis-lab/biobert, which counts word pieces: continuation pieces have the tag X, so its precision can be
    lower than here. The README's 89.72 for NCBI-disease is this score on dev; 87.70 is the entity F1 on test.
    """

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        return macro_average(totals) | {"micro F1": micro_average(totals)["F1"]}

    return class_metric(
        "tag F1 (BioBERT)", "F1", ("B", "I"), partial(_align_tags, _prefix), scores_from_totals
    )


def _type(tag: str) -> str:
    return tag.partition("-")[2] or tag


def _prefix(tag: str) -> str:
    return tag.partition("-")[0]
