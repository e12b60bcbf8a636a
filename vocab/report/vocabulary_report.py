"""The report of a vocabulary: metrics, the data of report.json, and one HTML page without external files.

The same vocabulary and words give the same bytes.  Metrics are computed from counted words: each distinct
word is encoded once and weighted by its count, as if it stood between blanks, which for BERT's tokenizers is
how it is encoded in any text.  Unreachable pieces are those that no text yields, so that their embeddings
stay untrained: the normaliser or the pre-tokenization changes or splits them.

PubMedBERT's table 8 compares vocabularies by the length of their input on evaluation sets: input beyond a
model's 512 pieces is truncated, shorter input is faster.  ``bioshards evaluate texts`` writes the inputs.
"""

from __future__ import annotations

import glob
import heapq
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec
import numpy as np
from tokenizers import Tokenizer

from bioshards.corpus.errors import InputNotFoundError, InvalidValueError
from bioshards.corpus.ui.html_page import format_percent, spell_out_invisible
from bioshards.corpus.ui.html_page import render_page as render_template
from bioshards.vocab.tokenizer.hugging_face import MODEL_MAX_LENGTH, encode_words, measure_casing
from bioshards.vocab.tokenizer.wordpiece import (
    CONTINUATION_PREFIX,
    MAX_WORD_LENGTH,
    SENTENCEPIECE_SPACE,
    SPECIAL_TOKEN_PATTERN,
    UNK,
    count_characters,
    is_reachable,
)

OWN_NAME: Final = "this vocabulary"
"""Name of a vocabulary in its own report."""
PROBE_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("diabetes", "leukemia", "lithium", "insulin", "DNA", "promoter"), ""),
    "hypertension": "hyper-tension",
    "nephropathy": "ne-ph-rop-athy",
    "lymphoma": "l-ym-ph-oma",
    "lidocaine": "lid-oca-ine",
    "oropharyngeal": "oro-pha-ryn-ge-al",
    "cardiomyocyte": "card-iom-yo-cy-te",
    "chloramphenicol": "ch-lor-amp-hen-ico-l",
    "RecA": "Rec-A",
    "acetyltransferase": "ace-ty-lt-ran-sf-eras-e",
    "clonidine": "cl-oni-dine",
    "naloxone": "na-lo-xon-e",
}
"""Biomedical words with the pieces of BERT's general vocabulary, "" for a whole word.

SOURCES: Gu et al. 2020 (arXiv 2007.15779), table 1.
"""
_CUT_WORDS: Final = 20
"""Most frequent words cut in pieces that are listed for each vocabulary."""
MAX_EXAMPLES: Final = 40
"""Maximum number of examples in a list: unreachable pieces, characters without a piece."""
_RATIO_DIGITS: Final = 9
"""Decimal digits of ratios, enough to show one word of a billion."""
ModelInput = tuple[str, ...]
"""Input of a model: one text, or two (question and context, two sentences)."""
BenchmarkTexts = dict[str, list[ModelInput]]
"""Inputs of evaluation sets by name."""
PUBLISHED_LENGTHS: Final = {
    "bc5-chem": {"bert": 35.9, "pubmedbert": 28.0},
    "bc5-disease": {"bert": 35.9, "pubmedbert": 28.0},
    "ncbi-disease": {"bert": 34.2, "pubmedbert": 27.4},
    "bc2gm": {"bert": 38.5, "pubmedbert": 30.5},
    "jnlpba": {"bert": 33.7, "pubmedbert": 26.0},
    "ebm-pico": {"bert": 30.7, "pubmedbert": 25.1},
    "chemprot": {"bert": 75.4, "pubmedbert": 55.5},
    "chemprot-blue": {"bert": 75.4, "pubmedbert": 55.5},
    "ddi": {"bert": 106.0, "pubmedbert": 75.9},
    "gad": {"bert": 47.0, "pubmedbert": 35.7},
    "biosses": {"bert": 80.7, "pubmedbert": 61.6},
    "pubmedqa": {"bert": 343.1, "pubmedbert": 293.0},
    "bioasq-yesno": {"bert": 702.4, "pubmedbert": 541.4},
}
"""Mean input length in pieces by set, SOURCES: Gu et al. 2020 (arXiv 2007.15779), table 8.

HoC's, 40.6 and 31.0, are of sentences; its inputs are abstracts.
"""


def load_benchmark_texts(folder: str) -> BenchmarkTexts:
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
    return {os.path.basename(path).removesuffix(".jsonl"): _read_texts(path) for path in paths}


def _read_texts(path: str) -> list[ModelInput]:
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
    return inputs


# The metrics


class Pieces:
    """Pieces of a tokenizer that text can yield: without special tokens, added tokens and [unusedN].

    Attributes:
        tokenizer: copy of the tokenizer without truncation and padding.
        ids: id of each piece, in the order of ids.
        size: highest id plus one, the number of rows of a model's embedding.
        num_missing_ids: ids below ``size`` without a token, from repeated or blank lines of a vocab.txt.
        unknown_id: id of the unknown token; -1 if there is none.
        unknown_token: its text: [UNK], or ``<unk>`` of SentencePiece.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        text = tokenizer.to_str()
        self.tokenizer = Tokenizer.from_str(text)
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        tokenizer_json: dict[str, Any] = json.loads(text)
        model = tokenizer_json["model"]
        self.model_type: str = model["type"]
        added = {token["content"] for token in tokenizer_json["added_tokens"]}
        model_vocab = tokenizer.get_vocab(with_added_tokens=False)
        self.ids = {
            piece: piece_id
            for piece, piece_id in sorted(model_vocab.items(), key=lambda item: item[1])
            if piece not in added and not SPECIAL_TOKEN_PATTERN.fullmatch(piece)
        }
        all_ids = set(tokenizer.get_vocab(with_added_tokens=True).values())
        self.size = max(all_ids, default=-1) + 1
        self.num_missing_ids = self.size - len(all_ids)
        unknown_id = model.get("unk_id")
        if unknown_id is None and model.get("unk_token") is not None:
            unknown_id = tokenizer.token_to_id(model["unk_token"])
        self.unknown_id: int = -1 if unknown_id is None else unknown_id
        self.unknown_token: str | None = None if unknown_id is None else tokenizer.id_to_token(unknown_id)

    def normalize(self, text: str) -> str:
        """Return the text that the model sees."""
        normalizer = self.tokenizer.normalizer
        return text if normalizer is None else str(normalizer.normalize_str(text))

    def split_words(self, text: str) -> list[str]:
        """Return the words of a text."""
        normalized, pre_tokenizer = self.normalize(text), self.tokenizer.pre_tokenizer
        if pre_tokenizer is None:
            return [normalized]
        return [word for word, _ in pre_tokenizer.pre_tokenize_str(normalized)]

    def tokenize(self, text: str) -> list[str]:
        """Return the pieces of a text, without [CLS] and [SEP].

        The library returns the characters for which SentencePiece's models have no piece; this returns
        ``<unk>``.
        """
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        return [str(self.tokenizer.id_to_token(piece_id)) for piece_id in ids]


def rounded_ratio(numerator: float, denominator: float) -> float:
    """Return a fraction or mean with nine digits; 0 if the denominator is 0."""
    return round(float(numerator) / float(denominator), _RATIO_DIGITS) if denominator else 0.0


def measure_words(pieces: Pieces, words: Mapping[str, int]) -> dict[str, Any]:
    """Measure how a vocabulary splits words.

    Args:
        words: occurrences of each distinct word, as written.

    Returns:
        ``fertility``: pieces per word, [UNK] being one piece; ``per_100_characters``: pieces per 100
        characters; ``cut``: the most frequent words of letters that are two pieces or more; ``whole``:
        fraction of words that are one piece; ``unknown_words`` and ``unknown_characters``: fractions in
        [UNK]; ``used`` and ``unused``: numbers of pieces.
    """
    texts = list(words)
    counts = np.fromiter(words.values(), np.int64, len(texts))
    ids, lengths = encode_words(pieces.tokenizer, texts)
    ends = np.cumsum(lengths)
    unknown_cumulative = np.concatenate([[0], np.cumsum(ids == pieces.unknown_id)])
    unknown_counts = unknown_cumulative[ends] - unknown_cumulative[ends - lengths]
    total, piece_total = int(counts.sum()), int(counts @ lengths)
    character_total = sum(len(word) * count for word, count in words.items())
    unknown_characters = sum(
        int(counts[index]) * _count_unknown_characters(pieces, texts[index])
        for index in np.flatnonzero(unknown_counts)
    )
    cut = (texts[index] for index in np.flatnonzero(lengths > 1) if texts[index].isalpha())
    used = len(set(np.unique(ids).tolist()) & set(pieces.ids.values()))
    return {
        "fertility": rounded_ratio(piece_total, total),
        "per_100_characters": rounded_ratio(100 * piece_total, character_total),
        "cut": heapq.nsmallest(_CUT_WORDS, cut, key=lambda word: (-words[word], word)),
        "whole": rounded_ratio(int(counts[(lengths == 1) & (unknown_counts == 0)].sum()), total),
        "unknown_words": rounded_ratio(int(counts[unknown_counts > 0].sum()), total),
        "unknown_characters": rounded_ratio(unknown_characters, character_total),
        "used": used,
        "unused": len(pieces.ids) - used,
    }


def _count_unknown_characters(pieces: Pieces, word: str) -> int:
    encoding = pieces.tokenizer.encode(word, add_special_tokens=False)
    return sum(
        end - start
        for token_id, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        if token_id == pieces.unknown_id
    )


def measure_alphabet(pieces: Pieces, words: Mapping[str, int]) -> dict[str, Any]:
    """Measure which characters of the words have a piece.

    A character is covered if its normalised form has a piece at the start of a word and, unless it always is
    a word of its own, one within a word.  A word of covered characters is [UNK] only if it has more than 100.

    Returns:
        ``characters``: number of distinct ones; ``covered``: number of covered ones; ``covered_share``: their
        fraction of all occurrences; ``missing``: the most frequent without a piece, with counts.
    """
    counts = count_characters(words)
    missing = sorted(
        (character for character in counts if not _is_covered(pieces, character)),
        key=lambda character: (-counts[character], character),
    )
    num_missing = sum(counts[character] for character in missing)
    return {
        "characters": len(counts),
        "covered": len(counts) - len(missing),
        "covered_share": rounded_ratio(counts.total() - num_missing, counts.total()),
        "missing": [[character, counts[character]] for character in missing[:MAX_EXAMPLES]],
    }


def _is_covered(pieces: Pieces, character: str) -> bool:
    if pieces.model_type != "WordPiece":
        return pieces.unknown_id not in pieces.tokenizer.encode(character, add_special_tokens=False).ids
    return all(
        letter in pieces.ids
        and (CONTINUATION_PREFIX + letter in pieces.ids or len(pieces.split_words(f"a{letter}")) > 1)
        for letter in pieces.normalize(character).strip()
    )


def measure_unreachable(pieces: Pieces) -> dict[str, Any] | None:
    """Count the pieces that no text yields; None for models other than WordPiece.

    Returns:
        ``all``: their number; ``share``: their fraction; ``examples``: some of them, in the order of ids.
    """
    if pieces.model_type != "WordPiece":
        return None
    unreachable_pieces = [piece for piece in pieces.ids if not is_reachable(piece, pieces.split_words)]
    return {
        "all": len(unreachable_pieces),
        "share": rounded_ratio(len(unreachable_pieces), len(pieces.ids)),
        "examples": unreachable_pieces[:: max(1, -(-len(unreachable_pieces) // MAX_EXAMPLES))],
    }


# The data


def build_report(
    tokenizer: Tokenizer,
    words: Mapping[str, int],
    validation_words: Mapping[str, int] | None,
    baselines: Mapping[str, Tokenizer],
    benchmark_texts: BenchmarkTexts | None,
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
    vocabularies = [
        _describe_vocabulary(label, pieces, measured_words) for label, pieces in pieces_by_name.items()
    ]
    cut_words = {word for vocabulary in vocabularies for word in vocabulary["on_words"]["cut"]}
    return {
        "about": dict(about),
        "words": {
            "kind": pretokenizer,
            "held_out": bool(validation_words),
            "occurrences": total,
            "distinct": len(measured_words),
            "not_in_training": rounded_ratio(unseen_total, total),
        },
        "vocabularies": vocabularies,
        "probes": [
            {"word": word, "pieces": [pieces.tokenize(word) for pieces in all_pieces]} for word in PROBE_WORDS
        ],
        "cut_words": [
            {
                "word": word,
                "occurrences": measured_words[word],
                "pieces": [pieces.tokenize(word) for pieces in all_pieces],
            }
            for word in sorted(cut_words, key=lambda word: (-measured_words[word], word))
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
        "on_words": measure_words(pieces, words),
        "unreachable": measure_unreachable(pieces),
        "alphabet": measure_alphabet(pieces, words),
    }


def _describe_benchmarks(
    benchmark_texts: BenchmarkTexts, vocabularies: Sequence[Pieces]
) -> list[dict[str, Any]]:
    """Measure the lengths of the evaluation sets' inputs, with [CLS] and one [SEP] per text.

    BERT's tokenizers never look across a blank, so that each distinct chunk is encoded once.
    """
    every_text = (text for inputs in benchmark_texts.values() for texts in inputs for text in texts)
    chunks = sorted({chunk for text in every_text for chunk in text.split(" ") if chunk})
    lengths_of_chunks = [
        {"": 0, **dict(zip(chunks, encode_words(pieces.tokenizer, chunks)[1].tolist(), strict=True))}
        for pieces in vocabularies
    ]
    described = []
    for name, inputs in benchmark_texts.items():
        lengths = [
            [
                1 + sum(1 + sum(length_of[chunk] for chunk in text.split(" ")) for text in texts)
                for texts in inputs
            ]
            for length_of in lengths_of_chunks
        ]
        described.append(
            {
                "name": name,
                "inputs": len(inputs),
                "lengths": [rounded_ratio(sum(each), len(each)) for each in lengths],
                "too_long": [
                    rounded_ratio(sum(length > MODEL_MAX_LENGTH for length in each), len(each))
                    for each in lengths
                ],
                "published": PUBLISHED_LENGTHS.get(name),
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
        published_pieces={
            word: [CONTINUATION_PREFIX * bool(index) + piece for index, piece in enumerate(cut.split("-"))]
            for word, cut in PROBE_WORDS.items()
            if cut
        },
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
