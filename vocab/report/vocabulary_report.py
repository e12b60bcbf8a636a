"""The data of a vocabulary's report: content of report.json, which vocabulary_page.py renders.

The same vocabulary and words give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tokenizers import Tokenizer

from bioshards.corpus.errors import InvalidValueError
from bioshards.vocab.report import vocabulary_metrics
from bioshards.vocab.report.benchmark_texts import PUBLISHED_LENGTHS, BenchmarkTexts, ModelInput
from bioshards.vocab.tokenizer.pieces import Pieces

DEFAULT_NAME: Final = "this vocabulary"
"""Name of a vocabulary in its own report, unless ``about`` has one."""
MAX_INPUT_LENGTH: Final = 512
"""Number of positions of BERT, ELECTRA and ALBERT in pieces; longer input is truncated."""
PROBE_WORDS: Final = (
    "diabetes",
    "leukemia",
    "lithium",
    "insulin",
    "DNA",
    "promoter",
    "hypertension",
    "nephropathy",
    "lymphoma",
    "lidocaine",
    "oropharyngeal",
    "cardiomyocyte",
    "chloramphenicol",
    "RecA",
    "acetyltransferase",
    "clonidine",
    "naloxone",
)
"""Words that general vocabularies split.  SOURCES: Gu et al. 2020 (arXiv 2007.15779), table 1."""


def build_report(
    tokenizer: Tokenizer,
    words: Mapping[str, int],
    validation_words: Mapping[str, int] | None,
    curve: Sequence[Mapping[str, Any]] | None,
    baselines: Mapping[str, Tokenizer],
    benchmark_texts: Sequence[BenchmarkTexts] | None,
    about: Mapping[str, Any],
    pretokenizer: str = "bert",
) -> dict[str, Any]:
    """Measure a vocabulary and its baselines, and return the data of report.json.

    Args:
        words: occurrences of the training words, as written.
        validation_words: occurrences of the words of the validation split; if there are any, they are
            measured.
        curve: points of ``measure_curve`` on the measured words; None leaves the curve out.
        baselines: other vocabularies by name.
        benchmark_texts: evaluation sets; None leaves their lengths out.
        about: JSON about the vocabulary and its corpus, shown first; ``name`` is the vocabulary's name.  A
            folder's name is an argument of ``vocabulary_page.render_page`` instead.
        pretokenizer: definition of a word, one of ``word_counts.PRETOKENIZERS``.

    Raises:
        ValueError: a baseline has the vocabulary's name.
    """
    name = str(about.get("name", DEFAULT_NAME))
    if name in baselines:
        raise InvalidValueError(f"Two vocabularies are named {name!r}. Give the other one another name.")
    measured_words = validation_words or words
    pieces_by_name = {name: Pieces(tokenizer)} | {
        baseline_name: Pieces(baseline_tokenizer) for baseline_name, baseline_tokenizer in baselines.items()
    }
    vocabularies = [
        _describe_vocabulary(label, pieces, measured_words) for label, pieces in pieces_by_name.items()
    ]
    return {
        "name": name,
        "about": dict(about),
        "words": _describe_words(words, validation_words, pretokenizer),
        "vocabularies": vocabularies,
        "curve": None if curve is None else _describe_curve(curve, vocabularies),
        "probes": [
            {"word": word, "pieces": [pieces.tokenize(word) for pieces in pieces_by_name.values()]}
            for word in PROBE_WORDS
        ],
        "evaluation": None
        if benchmark_texts is None
        else _describe_benchmarks(benchmark_texts, list(pieces_by_name.values())),
        "overlap": [
            {"name": baseline_name} | vocabulary_metrics.measure_overlap(pieces_by_name[name], pieces)
            for baseline_name, pieces in pieces_by_name.items()
            if baseline_name != name
        ],
    }


def _describe_words(
    words: Mapping[str, int], validation_words: Mapping[str, int] | None, pretokenizer: str
) -> dict[str, Any]:
    measured_words = validation_words or words
    total = sum(measured_words.values())
    unseen_total = sum(count for word, count in measured_words.items() if word not in words)
    return {
        "kind": pretokenizer,
        "held_out": bool(validation_words),
        "occurrences": total,
        "distinct": len(measured_words),
        "not_in_training": vocabulary_metrics.rounded_ratio(unseen_total, total),
    }


def _describe_vocabulary(name: str, pieces: Pieces, words: Mapping[str, int]) -> dict[str, Any]:
    casing = pieces.infer_casing()
    return {
        "name": name,
        "model": pieces.model_type,
        "lower_case": casing.lower_case,
        "strip_accents": casing.strip_accents,
        "size": pieces.size,
        "pieces": len(pieces.ids),
        "unknown": pieces.unknown_token,
        "ids_without_piece": pieces.num_missing_ids,
        "on_words": vocabulary_metrics.measure_words(pieces, words),
        "unreachable": vocabulary_metrics.measure_unreachable(pieces),
        "alphabet": vocabulary_metrics.measure_alphabet(pieces, words),
        "longest": vocabulary_metrics.find_longest_pieces(pieces),
    }


def _describe_curve(
    points: Sequence[Mapping[str, Any]], vocabularies: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "points": [dict(point) for point in points],
        "vocabularies": [
            {
                "name": vocabulary["name"],
                "size": vocabulary["size"],
                "fertility": vocabulary["on_words"]["fertility"],
            }
            for vocabulary in vocabularies
        ],
    }


def _describe_benchmarks(
    benchmark_texts: Sequence[BenchmarkTexts], vocabularies: list[Pieces]
) -> dict[str, Any]:
    """Measure the lengths of the evaluation sets' inputs.

    BERT's tokenizers never look across a blank, so that each distinct chunk is encoded once.
    """
    distinct_chunks = sorted(
        {
            chunk
            for benchmark in benchmark_texts
            for texts in benchmark.inputs
            for chunk in _split_chunks(texts)
        }
    )
    chunk_lengths_by_vocabulary = [
        dict(zip(distinct_chunks, pieces.encode(distinct_chunks)[1].tolist(), strict=True))
        for pieces in vocabularies
    ]
    return {
        "sets": [
            _describe_benchmark(
                benchmark,
                [
                    _input_lengths(benchmark.inputs, chunk_lengths)
                    for chunk_lengths in chunk_lengths_by_vocabulary
                ],
            )
            for benchmark in benchmark_texts
        ],
    }


def _split_chunks(texts: ModelInput) -> list[str]:
    return [chunk for text in texts for chunk in text.split(" ") if chunk]


def _input_lengths(inputs: Sequence[ModelInput], chunk_lengths: Mapping[str, int]) -> list[int]:
    """Return the pieces of each input, with [CLS] and one [SEP] per text."""
    return [1 + len(texts) + sum(chunk_lengths[chunk] for chunk in _split_chunks(texts)) for texts in inputs]


def _describe_benchmark(benchmark_texts: BenchmarkTexts, lengths: list[list[int]]) -> dict[str, Any]:
    published = PUBLISHED_LENGTHS.get(benchmark_texts.name)
    return {
        "name": benchmark_texts.name,
        "inputs": len(benchmark_texts.inputs),
        "lengths": [
            vocabulary_metrics.rounded_ratio(sum(input_lengths), len(input_lengths))
            for input_lengths in lengths
        ],
        "too_long": [
            vocabulary_metrics.rounded_ratio(
                sum(length > MAX_INPUT_LENGTH for length in input_lengths), len(input_lengths)
            )
            for input_lengths in lengths
        ],
        "published": published and {"bert": published.bert, "pubmedbert": published.pubmedbert},
    }
