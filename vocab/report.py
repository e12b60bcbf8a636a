"""The report on a vocabulary as plain data: what report.json holds and report_page.py shows.

Nothing in it depends on time, machine or order of hashing: the same vocabulary and words give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tokenizers import Tokenizer

from bioshards.corpus.errors import InvalidValueError

from . import measure
from .evaluation_texts import Found, Input
from .pieces import Pieces

UNNAMED: Final = "this vocabulary"
"""What a vocabulary is called in its own report, unless ``about`` has a name for it."""
MAX_LENGTH: Final = 512
"""Pieces that BERT, ELECTRA and Albert have positions for; what is longer is cut off."""
PROBES: Final = (
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
"""Words that general vocabularies break up.  SOURCES: Gu et al. 2020 (arXiv 2007.15779), table 1."""


def report(
    tokenizer: Tokenizer,
    words: Mapping[str, int],
    held_out: Mapping[str, int] | None,
    curve: Sequence[Mapping[str, Any]] | None,
    others: Mapping[str, Tokenizer],
    benchmarks: Sequence[Found] | None,
    about: Mapping[str, Any],
    kind: str = "bert",
) -> dict[str, Any]:
    """Everything measured of a vocabulary, beside other vocabularies.

    Args:
        words: the words of the training with their counts, before any change of case.
        held_out: the same of documents that were held out; where it has words, they are what is measured on.
        curve: the points of measure.curve on the words that are measured on; None leaves the curve out.
        others: vocabularies to set beside it, by name (others.load).
        benchmarks: evaluation sets (evaluation_texts.check); None leaves their lengths out.
        about: plain data on the vocabulary and its corpus, to show at the top; ``name`` is used as its name.
            A folder's name does not belong here, but is an argument of report_page.page.

        kind: what a word is, one of ``counts.KINDS``: of BERT's pre-tokenisation, or what stands between
            white space.

    Raises:
        ValueError: another vocabulary has the same name.
    """
    name = str(about.get("name", UNNAMED))
    if name in others:
        raise InvalidValueError(f"Two vocabularies are named {name!r}. Give the other one another name.")
    measured = held_out or words
    views = {name: Pieces(tokenizer)} | {other: Pieces(theirs) for other, theirs in others.items()}
    vocabularies = [_vocabulary(label, pieces, measured) for label, pieces in views.items()]
    return {
        "name": name,
        "about": dict(about),
        "words": _words(words, held_out, kind),
        "vocabularies": vocabularies,
        "curve": None if curve is None else _curve(curve, vocabularies),
        "probes": [
            {"word": word, "pieces": [pieces.tokens(word) for pieces in views.values()]} for word in PROBES
        ],
        "evaluation": None if benchmarks is None else _evaluation(benchmarks, list(views.values())),
        "overlap": [
            {"name": other} | measure.overlap(views[name], pieces)
            for other, pieces in views.items()
            if other != name
        ],
    }


def _words(words: Mapping[str, int], held_out: Mapping[str, int] | None, kind: str) -> dict[str, Any]:
    measured = held_out or words
    total = sum(measured.values())
    new = sum(count for word, count in measured.items() if word not in words)
    return {
        "kind": kind,
        "held_out": bool(held_out),
        "occurrences": total,
        "distinct": len(measured),
        "not_in_training": measure.share(new, total),
    }


def _vocabulary(name: str, pieces: Pieces, words: Mapping[str, int]) -> dict[str, Any]:
    casing = pieces.casing()
    return {
        "name": name,
        "model": pieces.model,
        "lower_case": casing.lower_case,
        "strip_accents": casing.strip_accents,
        "size": pieces.size,
        "pieces": len(pieces.ids),
        "unknown": pieces.unknown_token,
        "ids_without_piece": pieces.holes,
        "on_words": measure.on_words(pieces, words),
        "unreachable": measure.dead_pieces(pieces),
        "alphabet": measure.alphabet(pieces, words),
        "longest": measure.longest(pieces),
    }


def _curve(points: Sequence[Mapping[str, Any]], vocabularies: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "points": [dict(point) for point in points],
        "vocabularies": [
            {"name": one["name"], "size": one["size"], "fertility": one["on_words"]["fertility"]}
            for one in vocabularies
        ],
    }


def _evaluation(found: Sequence[Found], vocabularies: list[Pieces]) -> dict[str, Any]:
    """Lengths of the evaluation sets' inputs.

    No tokenizer of the BERT kind looks across a blank, so what stands between two is encoded once.
    """
    distinct = sorted({chunk for one in found for texts in one.inputs for chunk in _chunks(texts)})
    of_chunks = [
        dict(zip(distinct, pieces.encode(distinct)[1].tolist(), strict=True)) for pieces in vocabularies
    ]
    return {
        "sets": [
            _evaluation_set(one, [_lengths(one.inputs, of_chunk) for of_chunk in of_chunks])
            for one in found
            if one.inputs
        ],
        "missing": [one.set.name for one in found if not one.inputs],
    }


def _chunks(texts: Input) -> list[str]:
    return [chunk for text in texts for chunk in text.split(" ") if chunk]


def _lengths(inputs: Sequence[Input], of_chunk: Mapping[str, int]) -> list[int]:
    """Pieces of each input, [CLS] and one [SEP] a text counted."""
    return [1 + len(texts) + sum(of_chunk[chunk] for chunk in _chunks(texts)) for texts in inputs]


def _evaluation_set(found: Found, lengths: list[list[int]]) -> dict[str, Any]:
    published = found.set.published
    return {
        "name": found.set.name,
        "input": found.set.note,
        "inputs": len(found.inputs),
        "files": len(found.files),
        "of": list(found.set.files),
        "absent": list(found.absent),
        "lengths": [measure.share(sum(each), len(each)) for each in lengths],
        "too_long": [
            measure.share(sum(length > MAX_LENGTH for length in each), len(each)) for each in lengths
        ],
        "published": published and {"bert": published.bert, "pubmedbert": published.pubmedbert},
    }
