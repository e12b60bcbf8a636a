"""The report of a vocabulary: the data of report.json, and one HTML page without scripts or external files.

The same vocabulary and words give the same bytes.  PubMedBERT's table 8 compares vocabularies by the length
of their input on evaluation sets: input beyond a model's 512 pieces is truncated, and shorter input is
faster.  ``bioshards evaluate texts`` writes these inputs.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec
from tokenizers import Tokenizer

from bioshards.corpus.errors import InputNotFoundError, InvalidValueError
from bioshards.corpus.ui.html_page import format_percent, spell_out_invisible
from bioshards.corpus.ui.html_page import render_page as render_template
from bioshards.vocab.report import vocabulary_metrics
from bioshards.vocab.report.vocabulary_metrics import Pieces, rounded_ratio
from bioshards.vocab.tokenizer.hugging_face import MODEL_MAX_LENGTH, encode_words, measure_casing
from bioshards.vocab.tokenizer.wordpiece import (
    CONTINUATION_PREFIX,
    MAX_WORD_LENGTH,
    SENTENCEPIECE_SPACE,
    UNK,
)

OWN_NAME: Final = "this vocabulary"
"""Name of a vocabulary in its own report."""
PROBE_WORDS: Final = (
    *("diabetes", "leukemia", "lithium", "insulin", "DNA", "promoter", "hypertension", "nephropathy"),
    *("lymphoma", "lidocaine", "oropharyngeal", "cardiomyocyte", "chloramphenicol", "RecA"),
    *("acetyltransferase", "clonidine", "naloxone"),
)
"""Words that general vocabularies split.  SOURCES: Gu et al. 2020 (arXiv 2007.15779), table 1."""
ModelInput = tuple[str, ...]
"""Input of a model: one text, or two (question and context, two sentences)."""


class PublishedLengths(NamedTuple):
    """Mean input length in pieces, SOURCES: Gu et al. 2020 (arXiv 2007.15779), table 8."""

    bert: float
    pubmedbert: float


PUBLISHED_LENGTHS: Final = {
    "bc5-chem": PublishedLengths(35.9, 28.0),
    "bc5-disease": PublishedLengths(35.9, 28.0),
    "ncbi-disease": PublishedLengths(34.2, 27.4),
    "bc2gm": PublishedLengths(38.5, 30.5),
    "jnlpba": PublishedLengths(33.7, 26.0),
    "ebm-pico": PublishedLengths(30.7, 25.1),
    "chemprot": PublishedLengths(75.4, 55.5),
    "chemprot-blue": PublishedLengths(75.4, 55.5),
    "ddi": PublishedLengths(106.0, 75.9),
    "gad": PublishedLengths(47.0, 35.7),
    "biosses": PublishedLengths(80.7, 61.6),
    "pubmedqa": PublishedLengths(343.1, 293.0),
    "bioasq-yesno": PublishedLengths(702.4, 541.4),
}
"""Lengths by the name of the set.  HoC's, 40.6 and 31.0, are of sentences; its inputs are abstracts."""


class BenchmarkTexts(NamedTuple):
    """Inputs of an evaluation set."""

    name: str
    inputs: list[ModelInput]


def load_benchmark_texts(folder: str) -> list[BenchmarkTexts]:
    """Return the inputs of all evaluation sets; run before training, because a damaged file is an error.

    Raises:
        FileNotFoundError: the folder is missing, or has no sets.
        ValueError: a file has another format, or no input.
    """
    paths = sorted(glob.glob(os.path.join(glob.escape(folder), "*.jsonl")))
    if not paths:
        raise InputNotFoundError(
            f"--benchmark-texts {folder} has no texts: bioshards evaluate texts BENCHMARKS "
            f"--output {folder} writes them"
        )
    return [_read_texts(path) for path in paths]


def _read_texts(path: str) -> BenchmarkTexts:
    decoder = msgspec.json.Decoder(Annotated[ModelInput, msgspec.Meta(min_length=1)])
    inputs: list[ModelInput] = []
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                inputs.append(decoder.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InvalidValueError(
                    f'{path}, line {number} is no list of texts such as ["A text."]: {error}'
                ) from error
    if not inputs:
        raise InvalidValueError(f"{path} is empty: take it away, or write it again")
    return BenchmarkTexts(os.path.basename(path).removesuffix(".jsonl"), inputs)


# The data


def build_report(
    tokenizer: Tokenizer,
    words: Mapping[str, int],
    validation_words: Mapping[str, int] | None,
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
        baselines: other vocabularies by name, none of which is :data:`OWN_NAME`.
        benchmark_texts: evaluation sets; None leaves their lengths out.
        about: JSON about the vocabulary and its corpus.
        pretokenizer: definition of a word, one of ``word_counts.PRETOKENIZERS``.
    """
    measured_words = validation_words or words
    total = sum(measured_words.values())
    unseen_total = sum(count for word, count in measured_words.items() if word not in words)
    tokenizers = {OWN_NAME: tokenizer, **baselines}
    pieces_by_name = {label: Pieces(tokenizer) for label, tokenizer in tokenizers.items()}
    all_pieces = list(pieces_by_name.values())
    return {
        "about": dict(about),
        "words": {
            "kind": pretokenizer,
            "held_out": bool(validation_words),
            "occurrences": total,
            "distinct": len(measured_words),
            "not_in_training": rounded_ratio(unseen_total, total),
        },
        "vocabularies": [
            _describe_vocabulary(label, pieces, measured_words) for label, pieces in pieces_by_name.items()
        ],
        "probes": [
            {"word": word, "pieces": [pieces.tokenize(word) for pieces in all_pieces]} for word in PROBE_WORDS
        ],
        "evaluation": None
        if benchmark_texts is None
        else {"sets": _describe_benchmarks(benchmark_texts, all_pieces)},
    }


def _describe_vocabulary(name: str, pieces: Pieces, words: Mapping[str, int]) -> dict[str, Any]:
    casing = measure_casing(pieces.tokenizer)
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
    }


def _describe_benchmarks(
    benchmark_texts: Sequence[BenchmarkTexts], vocabularies: Sequence[Pieces]
) -> list[dict[str, Any]]:
    """Measure the lengths of the evaluation sets' inputs, with [CLS] and one [SEP] per text.

    BERT's tokenizers never look across a blank, so that each distinct chunk is encoded once.
    """
    chunks_by_set = [
        [[chunk for text in texts for chunk in text.split(" ") if chunk] for texts in benchmark.inputs]
        for benchmark in benchmark_texts
    ]
    distinct = sorted({chunk for inputs in chunks_by_set for chunks in inputs for chunk in chunks})
    lengths_of_chunks = [
        dict(zip(distinct, encode_words(pieces.tokenizer, distinct)[1].tolist(), strict=True))
        for pieces in vocabularies
    ]
    described = []
    for benchmark, inputs in zip(benchmark_texts, chunks_by_set, strict=True):
        lengths = [
            [
                1 + len(texts) + sum(chunk_lengths[chunk] for chunk in chunks)
                for texts, chunks in zip(benchmark.inputs, inputs, strict=True)
            ]
            for chunk_lengths in lengths_of_chunks
        ]
        published = PUBLISHED_LENGTHS.get(benchmark.name)
        described.append(
            {
                "name": benchmark.name,
                "inputs": len(inputs),
                "lengths": [rounded_ratio(sum(each), len(each)) for each in lengths],
                "too_long": [
                    rounded_ratio(sum(length > MODEL_MAX_LENGTH for length in each), len(each))
                    for each in lengths
                ],
                "published": published and published._asdict(),
            }
        )
    return described


# The page


def render_page(report: Mapping[str, Any]) -> str:
    """Return the page of a report."""
    own = report["vocabularies"][0]
    unknown = format_percent(own["on_words"]["unknown_words"])
    whole_counts = [
        sum(
            len(probe["pieces"][index]) == 1 and probe["pieces"][index] != [vocabulary["unknown"]]
            for probe in report["probes"]
        )
        for index, vocabulary in enumerate(report["vocabularies"])
    ]
    return render_template(
        __package__,
        "vocabulary_page.html",
        title="Vocabulary report",
        headline=[
            (f"{own['on_words']['fertility']:.4f}", "pieces a word (fertility)"),
            (unknown.replace("\u202f", " "), f"of words with an {UNK}"),
            (f"{own['size']:,}", "entries"),
        ],
        report=report,
        vocabularies=report["vocabularies"],
        names=[vocabulary["name"] for vocabulary in report["vocabularies"]],
        whole_counts=whole_counts,
        split_marks=_split_marks,
        UNK=UNK,
        MAX_WORD_LENGTH=MAX_WORD_LENGTH,
        MAX_INPUT_LENGTH=MODEL_MAX_LENGTH,
    )


def _split_marks(pieces: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the ``##`` or word-start sign of each piece, or an empty string, and its text."""
    for piece in pieces:
        marks = (CONTINUATION_PREFIX, SENTENCEPIECE_SPACE)
        mark = next((mark for mark in marks if piece.startswith(mark) and piece != mark), "")
        yield mark, spell_out_invisible(piece.removeprefix(mark))
