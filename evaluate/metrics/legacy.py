"""Metrics and truncation of published code that differ from ours, for comparison with published scores.

Off by default. Bio-ELECTRA used ELECTRA's tagging code, which lower-cases words for cased vocabularies,
truncates sentences too early, and scores only the words that are left (google-research/electra, issue 99).
BioBERT's code reports an F1 of tags.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from bioshards.evaluate.metrics import class_counts
from bioshards.evaluate.metrics.metric import Metric, Numbers
from bioshards.evaluate.metrics.tag_f1 import Tags, align_sentences


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
        return metric.compute_stats(*([_strip_types(tags) for tags in side] for side in (gold, predicted)))

    return replace(metric, name=f"{metric.name}, types merged", compute_stats=compute_stats)


def biobert_tag_f1() -> Metric:
    """Return the metric of BioBERT's run_ner.py: mean F1 of tags B and I, ignoring types.

    Labels are BIO tags by word; ``micro F1`` counts both tags together. SOURCE: ``metric_fn`` in run_ner.py
    of dmis-lab/biobert, which counts word pieces: continuation pieces have the tag X, so its precision can be
    lower than here. The README's 89.72 for NCBI-disease is this score on dev; 87.70 is the entity F1 on test.
    """
    classes = ("B", "I")

    def compute_stats(gold: Sequence[Tags], predicted: Sequence[Tags]) -> Numbers:
        pairs = ([_strip_types(tags) for tags in pair] for pair in align_sentences(gold, predicted))
        return class_counts.count_labels(
            classes, [(class_counts.matching_labels(*pair), pair[1], pair[0]) for pair in pairs]
        )

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        return {**class_counts.macro_average(totals), "micro F1": class_counts.micro_average(totals)["F1"]}

    return Metric(
        "tag F1 (BioBERT)", "F1", class_counts.stat_names(classes), compute_stats, scores_from_totals
    )


def _strip_types(tags: Tags) -> list[str]:
    return [tag.partition("-")[0] for tag in tags]
