"""How some papers count where they differ, so that a published figure can be compared with its like.

Off unless asked for.  Bio-ELECTRA was tuned by ELECTRA's code for tagging, which lower-cases words also
for a cased vocabulary, cuts sentences too early, and counts only what is left (google-research/electra
issue 99): the gold entities then are as many as in the result files of its authors.  BioBERT's code prints
an F1 of tags, not of entities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from . import class_counts
from .metric import Metric, Numbers
from .tag_f1 import Tags, align_sentences


def count_words_read(words: Sequence[str], count_tokens: Callable[[str], int], max_seq_length: int) -> int:
    """How many words of a sentence ELECTRA reads; only their tags are gold or predicted to it.

    A word is read if the pieces before it and *the number of all words* fit into ``length``, where the
    number of its own pieces was meant: ``len(words_to_tokens)`` for ``len(word_tokens)`` in ``featurize``
    of google-research/electra, finetune/tagging/tagging_tasks.py, to which ``[CLS]`` and ``[SEP]`` are
    words too.  An entity in which the cut falls ends there.

    Args:
        count_tokens: how many pieces a word has; to Bio-ELECTRA, the ``lowered`` word.
        length: of an input, in pieces (``max_seq_length``).
    """
    tokens_used = 1
    for index, word in enumerate(words):
        if len(words) + 2 + tokens_used + 1 > max_seq_length:
            return index
        tokens_used += count_tokens(word)
    return len(words)


def merge_entity_types(metric: Metric) -> Metric:
    """A measure of tags to which all types are one, as in ELECTRAMed's BC5CDR and BLURB's JNLPBA.

    Entities of two types side by side stay two where the second begins with ``B-``.
    """

    def compute_stats(gold: Sequence[Tags], predicted: Sequence[Tags]) -> Numbers:
        return metric.compute_stats(*([_strip_types(tags) for tags in side] for side in (gold, predicted)))

    return replace(metric, name=f"{metric.name}, types merged", compute_stats=compute_stats)


def biobert_tag_f1() -> Metric:
    """The F1 that BioBERT's ``run_ner.py`` prints: the mean of that of all tags B and that of all tags I.

    Gold and predicted are BIO tags, one a word, whose types are ignored; ``micro F1`` is that of both
    tags together.  The code (``metric_fn`` of dmis-lab/biobert, run_ner.py) counts pieces: the first of a
    word has its tag, the others X.  So a B or I that it predicts at an X lowers its precision, which is
    not seen here.  The README's 89.72 for NCBI-disease is this, of the development set (``do_eval``); the
    87.70 below it is of the entities of the test set.
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
