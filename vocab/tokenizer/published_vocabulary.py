"""Vocabularies as their authors publish them, with the ids of their own tokenizers.

* A list of pieces, one a line, whose line number is the id (BERT's vocab.txt): SciBERT, PubMedBERT,
  Bio-ELECTRA.  A list does not state its casing, which is inferred from the pieces.
* A SentencePiece unigram model (spiece.model): ALBERT.  Its tokenizer is that of Hugging Face's
  AlbertTokenizer and its converter: quotation marks, accents and case first, then the model's own rules.
* A tokenizer.json, or a folder of one model of Hugging Face's, whose tokenizer_config.json may state casing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tokenizers import Tokenizer
from tokenizers.models import Unigram, WordPiece
from tokenizers.normalizers import BertNormalizer, Precompiled

from bioshards.corpus.errors import InputNotFoundError, InvalidValueError
from bioshards.vocab.tokenizer import hugging_face
from bioshards.vocab.tokenizer.pretokenizer import Casing
from bioshards.vocab.tokenizer.sentencepiece_model import (
    ModelPiece,
    PieceKind,
    SentencePieceModel,
    parse_model,
)
from bioshards.vocab.tokenizer.wordpiece import ALBERT_UNK, UNK

_FILES: Final = ("tokenizer.json", "vocab.txt", "spiece.model")
"""Files of a folder, the first of which is read."""
_ALBERT_STEPS: Final = {"Replace", "NFKD", "StripAccents", "Lowercase", "Precompiled"}
"""Types of the steps of ALBERT's normaliser."""
_CASED_THRESHOLD: Final = 1 / 50
"""Fraction of pieces with a capital letter above which a vocabulary is cased."""
_NUMBER_COMMA_PENALTY: Final = 100.0
"""ALBERT's code splits pieces such as ``2014,`` again; as Hugging Face's AlbertConverter, they are made too
improbable to be chosen."""


@dataclass(frozen=True, slots=True)
class CasingOptions:
    """What the user says about the casing of a vocabulary; None takes it from the files."""

    lower_case: bool | None = None
    strip_accents: bool | None = None


@dataclass(frozen=True, slots=True)
class PublishedVocabulary:
    """A published vocabulary.

    Attributes:
        tokenizer: its tokenizer, without truncation and padding.
        casing: its casing.
        file: path of the file that it was read from.
        spiece_model: content of its spiece.model, if there is one.
        notice: what the user should know about blank or repeated lines of a list, which are ignored.
    """

    tokenizer: Tokenizer
    casing: Casing
    file: str
    spiece_model: bytes | None = None
    notice: str = ""

    @property
    def is_sentencepiece(self) -> bool:
        """True if it is a unigram model of SentencePiece."""
        return isinstance(self.tokenizer.model, Unigram)


def load_published_vocabulary(path: str, options: CasingOptions = CasingOptions()) -> PublishedVocabulary:
    """Load a published vocabulary.

    Args:
        path: a tokenizer.json, a spiece.model, a WordPiece vocab.txt of any name, or a folder with one of the
            three.
        options: casing, if it is not that of the files.

    Raises:
        FileNotFoundError: the path does not exist, or the folder has none of the files.
        ValueError: the file has another format, or is of a model that is not supported.
    """
    file = _find_vocabulary_file(path)
    content = _read_bytes(file)
    config = _read_config(path)
    if file.lower().endswith(".model"):
        return _load_spiece_model(file, content, config, options)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValueError(
            f"{file} is no vocabulary: byte {error.start} is not UTF-8. Give a tokenizer.json, a vocab.txt "
            "or a spiece.model."
        ) from None
    is_json = text.lstrip().startswith("{") and not file.lower().endswith(".txt")
    published = (_load_json if is_json else _load_vocab_txt)(file, text, config, options)
    model_path = os.path.join(path, "spiece.model")
    if published.is_sentencepiece and os.path.exists(model_path):
        return replace(published, spiece_model=_read_bytes(model_path))
    return published


def _find_vocabulary_file(path: str) -> str:
    if not os.path.exists(path):
        raise InputNotFoundError(
            f"There is no vocabulary at {path}. Give a tokenizer.json, a vocab.txt, a spiece.model or their "
            "folder."
        )
    if not os.path.isdir(path):
        return path
    for name in _FILES:
        if os.path.exists(os.path.join(path, name)):
            return os.path.join(path, name)
    raise InputNotFoundError(
        f"The folder {path} has neither tokenizer.json nor vocab.txt nor spiece.model: it is no vocabulary."
    )


def _read_bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _read_config(path: str) -> Mapping[str, Any]:
    """Read the tokenizer_config.json of a folder; of a file, none belongs to it."""
    config_path = os.path.join(path, "tokenizer_config.json")
    if not os.path.isdir(path) or not os.path.exists(config_path):
        return {}
    try:
        return {**json.loads(_read_bytes(config_path))}
    except (ValueError, TypeError) as error:
        raise InvalidValueError(
            f"{config_path} is damaged ({error}). Give the vocabulary's file instead"
        ) from None


def _first(*values: bool | None) -> bool:
    """Return the first value that is not None."""
    return next((bool(value) for value in values if value is not None), False)


# BERT's


def _load_vocab_txt(
    path: str, text: str, config: Mapping[str, Any], options: CasingOptions
) -> PublishedVocabulary:
    lines = [line.rstrip("\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    # A piece's id is its line, so a line that is not used leaves a hole and moves no other piece.
    ids = {line: line_index for line_index, line in enumerate(lines) if line}
    if UNK not in ids:
        raise InvalidValueError(
            f"{path} is no WordPiece vocabulary: it has no line {UNK}. "
            "Give a vocab.txt with one piece a line."
        )
    num_blank = lines.count("")
    num_repeated = len(lines) - num_blank - len(ids)
    notice = ""
    if num_blank or num_repeated:
        notice = (
            f"{path}: of {len(lines)} lines {num_blank} are blank and {num_repeated} repeat a piece; a "
            "repeated piece has the id of its last line, as in BERT's own code"
        )
    casing = _resolve_bert_casing(config, options, not _has_capitals(ids), None)
    tokenizer = hugging_face.make_wordpiece_tokenizer(ids, casing)
    tokenizer.normalizer = _make_bert_normalizer(casing, config, {})
    return PublishedVocabulary(tokenizer, casing, path, notice=notice)


def _has_capitals(pieces: Collection[str]) -> bool:
    """Return True if the pieces are cased.

    A few capitals do not make a vocabulary cased: SciBERT's uncased one has 175 pieces with a capital, 0.6 %,
    from its alphabet.  Cased ones have capitals in a fifth of their pieces and more.
    """
    num_with_capitals = sum(
        piece != piece.lower() for piece in pieces if not (piece[:1] == "[" and piece[-1:] == "]")
    )
    return num_with_capitals > _CASED_THRESHOLD * len(pieces)


def _resolve_bert_casing(
    config: Mapping[str, Any], options: CasingOptions, lower_case: bool, strip_accents: bool | None
) -> Casing:
    """Return the casing of options, else of tokenizer_config.json, else the one given.

    As in BERT's code, accents are stripped in lower case only if nothing else is said.
    """
    is_lower_case = _first(options.lower_case, config.get("do_lower_case"), lower_case)
    strips = _first(options.strip_accents, config.get("strip_accents"), strip_accents, is_lower_case)
    return Casing(is_lower_case, strips)


def _make_bert_normalizer(
    casing: Casing, config: Mapping[str, Any], published: Mapping[str, Any]
) -> BertNormalizer:
    """Return the normaliser of a casing, with the other settings of the published files."""
    return BertNormalizer(
        clean_text=published.get("clean_text", True),
        handle_chinese_chars=_first(
            config.get("tokenize_chinese_chars"), published.get("handle_chinese_chars"), True
        ),
        strip_accents=casing.strip_accents,
        lowercase=casing.lower_case,
    )


# ALBERT's


def _load_spiece_model(
    path: str, content: bytes, config: Mapping[str, Any], options: CasingOptions
) -> PublishedVocabulary:
    try:
        model = parse_model(content)
    except InvalidValueError as error:
        raise InvalidValueError(f"{path} is {error}. Give a spiece.model") from None
    if reason := _find_unsupported(model):
        raise InvalidValueError(
            f"{path} is a SentencePiece model {reason}, which ALBERT's tokenizer does not have. Give "
            "ALBERT's spiece.model, or one that was trained with its options"
        )
    casing = _resolve_albert_casing(config, options, Casing(True, True))
    scored_pieces = _score_pieces(model.pieces)
    tokenizer = hugging_face.make_unigram_tokenizer(scored_pieces, casing, charsmap=model.charsmap)
    return PublishedVocabulary(tokenizer, casing, path, content)


def _resolve_albert_casing(config: Mapping[str, Any], options: CasingOptions, found: Casing) -> Casing:
    """Return the casing of options, else of tokenizer_config.json, else the one found."""
    keeps_accents = config.get("keep_accents")
    config_strips = None if keeps_accents is None else not keeps_accents
    return Casing(
        _first(options.lower_case, config.get("do_lower_case"), found.lower_case),
        _first(options.strip_accents, config_strips, found.strip_accents),
    )


def _find_unsupported(model: SentencePieceModel) -> str | None:
    """Return the property of a model because of which its ids would differ; None if there is none."""
    if model.unsupported:
        return model.unsupported
    if kinds := {piece.kind for piece in model.pieces} & {PieceKind.UNUSED, PieceKind.BYTE}:
        return f"with pieces of the kind {min(kinds).name}"
    if [piece.text for piece in model.pieces if piece.kind == PieceKind.UNKNOWN] != [ALBERT_UNK]:
        return f"without the unknown token {ALBERT_UNK}"
    if model.charsmap:
        normalizer = Precompiled(model.charsmap)
        for piece in model.pieces:
            if piece.kind == PieceKind.USER_DEFINED and normalizer.normalize_str(piece.text) != piece.text:
                return f"whose normaliser changes its own piece {piece.text!r}"
    return None


def _score_pieces(pieces: Collection[ModelPiece]) -> list[tuple[str, float]]:
    """Return the pieces with the scores by which SentencePiece and ALBERT's code choose them.

    Pieces that were defined by the user win over all others (unigram_model.cc: length x highest score - 0.1).
    """
    max_score = max((piece.score for piece in pieces if piece.kind == PieceKind.NORMAL), default=0.0)

    def score(piece: ModelPiece) -> float:
        if piece.kind == PieceKind.USER_DEFINED:
            return len(piece.text) * max_score - 0.1
        is_number_comma = piece.text.endswith(",") and piece.text[-2:-1].isdigit()
        return piece.score - (_NUMBER_COMMA_PENALTY if is_number_comma else 0.0)

    return [(piece.text, score(piece)) for piece in pieces]


# Either's tokenizer.json


def _load_json(
    path: str, text: str, config: Mapping[str, Any], options: CasingOptions
) -> PublishedVocabulary:
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises a bare Exception
        raise InvalidValueError(
            f"{path} is no tokenizer.json that the tokenizers library reads: {error}"
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    normalizer = json.loads(tokenizer.to_str())["normalizer"] or {}
    steps = {str(step["type"]) for step in normalizer.get("normalizers", [])}
    if isinstance(tokenizer.model, WordPiece) and normalizer.get("type") == "BertNormalizer":
        casing = _resolve_bert_casing(config, options, normalizer["lowercase"], normalizer["strip_accents"])
        tokenizer.normalizer = _make_bert_normalizer(casing, config, normalizer)
    elif isinstance(tokenizer.model, Unigram) and steps and steps <= _ALBERT_STEPS:
        found = Casing("Lowercase" in steps, "StripAccents" in steps)
        casing = _resolve_albert_casing(config, options, found)
        if casing != found:
            charsmap = hugging_face.get_charsmap(normalizer)
            tokenizer.normalizer = hugging_face.make_albert_normalizer(casing, charsmap)
    elif options != CasingOptions():
        raise InvalidValueError(
            f"{path} has a normaliser that is neither BERT's nor ALBERT's, so that its casing cannot be "
            "changed: leave out --cased and --strip-accents"
        )
    else:
        casing = hugging_face.measure_casing(tokenizer)
    return PublishedVocabulary(tokenizer, casing, path)
