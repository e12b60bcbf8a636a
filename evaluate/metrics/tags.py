"""Tags of words: the schemes BIO, BIOUL and IO, the entities that tags mark, and F1 scores of both.

PubMedBERT's authors compare the three schemes and find little difference (arXiv:2007.15779). BIO is IOB2:
every entity begins with ``B-``. BIOUL (BILOU, BIOES) also marks the last word (L) and single-word entities
(U). IO marks inside and outside only, so adjacent entities of a type merge. A tag is ``O`` or ``B-Type``;
untyped files have ``B``.

Scores are F1 of entities, of words by class (PICO), and those of published code. The latter are legacy modes,
off by default. Bio-ELECTRA used ELECTRA's tagging code, which lower-cases words for cased vocabularies,
truncates sentences too early, and scores only the words that are left (google-research/electra, issue 99).
BioBERT's code reports an F1 of tags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final, Literal, get_args

import numpy
from numpy.typing import NDArray

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

Tags = Sequence[str]
TagScheme = Literal["BIO", "BIOUL", "IO"]
TAG_SCHEMES: Final[tuple[TagScheme, ...]] = get_args(TagScheme)
EntitySpan = tuple[int, int, str]
"""First word, end word (exclusive) and type of an entity."""

_PREFIXES: Final = {"BIO": "BI", "BIOUL": "BIUL", "IO": "I"}


def extract_spans(tags: Sequence[str]) -> list[EntitySpan]:
    """Return the entities of BIO tags by conlleval's rule.

    ``B-``, and ``I-`` after ``O`` or another type, begin an entity (``startOfChunk`` and ``endOfChunk`` of
    conlleval.pl, 2004-01-26; seqeval's default), so IOB1 and IO are accepted too.

    Raises:
        InvalidValueError: a tag is not ``O``, ``B`` or ``I``, with or without a type.
    """
    entities: list[EntitySpan] = []
    previous_type = None
    for index, tag in enumerate(tags):
        prefix, entity_type = _split_tag(tag)
        if prefix == "B" or (prefix == "I" and entity_type != previous_type):
            entities.append((index, index + 1, entity_type))
        elif prefix == "I":
            entities[-1] = (entities[-1][0], index + 1, entity_type)
        previous_type = None if prefix == "O" else entity_type
    return entities


def extract_strict_spans(tags: Sequence[str]) -> list[EntitySpan]:
    """Return the entities of BIO tags that begin with ``B-`` (seqeval's ``mode="strict", scheme=IOB2``)."""
    return [span for span in extract_spans(tags) if tags[span[0]].startswith("B")]


def convert_from_bio(scheme: TagScheme, tags: Sequence[str]) -> tuple[str, ...]:
    """Convert BIO tags to a scheme; IOB1 and IO input to ``BIO`` becomes valid BIO."""
    converted = ["O"] * len(tags)
    for start, end, entity_type in extract_spans(tags):
        inside = end - start - 1
        prefixes = {
            "BIO": "B" + "I" * inside,
            "BIOUL": "B" + "I" * (inside - 1) + "L" if inside else "U",
            "IO": "I" * (inside + 1),
        }[scheme]
        converted[start:end] = [_make_tag(prefix, entity_type) for prefix in prefixes]
    return tuple(converted)


def convert_to_bio(scheme: TagScheme, tags: Sequence[str]) -> tuple[str, ...]:
    """Convert predicted tags of a scheme, which may be ill-formed, to BIO.

    BIO is unchanged, so that lenient and strict metrics see the prediction. In BIOUL, U becomes B and L
    becomes I; an I or L of the same type after U or L begins another entity and becomes B. Entities without B
    keep their I: lenient metrics count them, strict ones do not. In IO each run of a type is an entity that
    begins with B.
    """
    if scheme == "IO":
        return convert_from_bio("BIO", tags)
    if scheme == "BIO":
        return tuple(tags)
    converted = []
    for previous, tag in zip(("O", *tags), tags, strict=False):
        is_after_end = previous[0] in "UL" and previous[1:] == tag[1:]
        prefix = {"U": "B", "L": "I"}.get(tag[0], tag[0])
        converted.append(("B" if prefix == "I" and is_after_end else prefix) + tag[1:])
    return tuple(converted)


def list_labels(scheme: TagScheme, entity_types: Iterable[str]) -> tuple[str, ...]:
    """Return all tags of a scheme: ``O``, then those of each type."""
    return ("O", *(_make_tag(prefix, name) for name in entity_types for prefix in _PREFIXES[scheme]))


def allowed_transitions(scheme: TagScheme, labels: Sequence[str]) -> NDArray[numpy.bool_]:
    """Return which tag may follow which, bool[L + 1, L + 1].

    ``[i, j]``: label j may follow label i; ``[-1, j]``: j may start a sentence; ``[i, -1]``: i may end one.
    Sentence edges behave like ``O``.
    """
    tags = (*labels, "O")
    return numpy.array([[_may_follow(scheme, tag, previous) for tag in tags] for previous in tags])


def _may_follow(scheme: TagScheme, tag: str, previous: str) -> bool:
    is_same_type, is_open = tag[1:] == previous[1:], previous[0] in "BI"
    if scheme == "BIO":
        return tag[0] != "I" or (is_open and is_same_type)
    return scheme == "IO" or ((tag[0] in "IL") == is_open and (is_same_type or not is_open))


def _make_tag(prefix: str, entity_type: str) -> str:
    return f"{prefix}-{entity_type}" if entity_type else prefix


@cache
def _split_tag(tag: str) -> tuple[str, str]:
    prefix, _, entity_type = tag.partition("-")
    if prefix not in ("B", "I") and tag != "O":
        raise InvalidValueError(f"{tag!r} is no BIO tag: neither O, nor B or I with a type")
    return prefix, entity_type


# Scores


def entity_f1() -> Metric:
    """Return precision, recall and F1 of entities with exact boundaries and type, micro-averaged over types.

    Gold and predicted are BIO tags of *all* words of a sentence. Scores follow conlleval's rule, ``strict``
    scores that of IOB2 (:func:`extract_strict_spans`).
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
