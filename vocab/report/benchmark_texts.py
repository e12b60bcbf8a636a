"""Input texts of evaluation sets, as ``python -m bioshards.evaluate texts`` writes them.

PubMedBERT's table 8 compares vocabularies by their length: input beyond a model's 512 pieces is truncated,
and shorter input is faster.
"""

from __future__ import annotations

import glob
import json
import os
from dataclasses import dataclass
from typing import Final

from bioshards.corpus.errors import InputNotFoundError, InvalidValueError

ModelInput = tuple[str, ...]
"""Input of a model: one text, or two (question and context, two sentences)."""


@dataclass(frozen=True, slots=True)
class PublishedLengths:
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


@dataclass(frozen=True, slots=True)
class BenchmarkTexts:
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
            f"--benchmark-texts {folder} has no texts: python -m bioshards.evaluate texts BENCHMARKS "
            f"--output {folder} writes them"
        )
    return [_read_texts(path) for path in paths]


def _read_texts(path: str) -> BenchmarkTexts:
    inputs: list[ModelInput] = []
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            try:
                texts = json.loads(line)
            except ValueError as error:
                raise InvalidValueError(f"{path}, line {number} is no JSON: {error}") from error
            if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
                raise InvalidValueError(f'{path}, line {number} is no list of texts such as ["A text."]')
            inputs.append(tuple(texts))
    if not inputs:
        raise InvalidValueError(f"{path} is empty: take it away, or write it again")
    return BenchmarkTexts(os.path.basename(path).removesuffix(".jsonl"), inputs)
