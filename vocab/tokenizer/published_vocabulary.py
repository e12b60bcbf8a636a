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
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tokenizers import Tokenizer
from tokenizers.models import Unigram, WordPiece
from tokenizers.normalizers import BertNormalizer, Precompiled

from bioshards.corpus.errors import InputNotFoundError, InvalidValueError
from bioshards.vocab.tokenizer import hugging_face
from bioshards.vocab.tokenizer.hugging_face import ALBERT_UNK
from bioshards.vocab.tokenizer.model_proto import ModelPiece, PieceKind, SentencePieceModel, parse_model
from bioshards.vocab.tokenizer.pretokenizer import Casing
from bioshards.vocab.tokenizer.wordpiece import UNK

_FILES: Final = ("tokenizer.json", "vocab.txt", "spiece.model")
"""Files of a folder, the first of which is read."""
_CONFIG_FILE: Final = "tokenizer_config.json"
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
    """

    tokenizer: Tokenizer
    casing: Casing
    file: str
    spiece_model: bytes | None

    @property
    def is_sentencepiece(self) -> bool:
        """True if it is a unigram model of SentencePiece."""
        return isinstance(self.tokenizer.model, Unigram)


def load_tokenizer(path: str) -> Tokenizer:
    """Load the tokenizer of a published vocabulary, as :func:`load_published_vocabulary` does."""
    return load_published_vocabulary(path).tokenizer


def load_published_vocabulary(path: str, options: CasingOptions = CasingOptions()) -> PublishedVocabulary:
    """Load a published vocabulary.

    Args:
        path: a tokenizer.json, a spiece.model, a WordPiece vocab.txt of any name, or a folder with one of the
            three.
        options: casing, if it is not that of the files.

    Raises:
        FileNotFoundError: the path does not exist, or the folder has none of the files.
        ValueError: the file has another format, or is of a model that is not supported.

    Warns:
        UserWarning: a list has blank or repeated lines, which are ignored.
    """
    file = _find_vocabulary_file(path)
    content = _read_bytes(file)
    config = _read_config(path)
    if file.lower().endswith(".model"):
        tokenizer, casing = _tokenizer_from_spiece_model(file, content, config, options)
        return PublishedVocabulary(tokenizer, casing, file, content)
    text = _decode_text(file, content)
    if text.lstrip().startswith("{") and not file.lower().endswith(".txt"):
        tokenizer, casing = _tokenizer_from_json(file, text, config, options)
    else:
        tokenizer, casing = _tokenizer_from_vocab_txt(file, text, config, options)
    model_path = os.path.join(path, "spiece.model")
    has_model = isinstance(tokenizer.model, Unigram) and os.path.exists(model_path)
    return PublishedVocabulary(tokenizer, casing, file, _read_bytes(model_path) if has_model else None)


def infer_casing(pieces: Collection[str]) -> Casing:
    """Return the casing of pieces: as written, or that of BERT's uncased models (lower case, no accents).

    A few capitals do not make a vocabulary cased: SciBERT's uncased one has 175 pieces with a capital, 0.6 %,
    from its alphabet.  Cased ones have capitals in a fifth of their pieces and more.
    """
    num_with_capitals = sum(
        piece != piece.lower() for piece in pieces if not (piece[:1] == "[" and piece[-1:] == "]")
    )
    return (
        Casing()
        if num_with_capitals > _CASED_THRESHOLD * len(pieces)
        else Casing(lower_case=True, strip_accents=True)
    )


def _find_vocabulary_file(path: str) -> str:
    if not os.path.isdir(path):
        if os.path.exists(path):
            return path
        raise InputNotFoundError(
            f"There is no vocabulary at {path}. Give a tokenizer.json, a vocab.txt, a spiece.model or their "
            "folder."
        )
    for name in _FILES:
        if os.path.exists(os.path.join(path, name)):
            return os.path.join(path, name)
    raise InputNotFoundError(
        f"The folder {path} has neither tokenizer.json nor vocab.txt nor spiece.model: it is no vocabulary."
    )


def _read_bytes(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _decode_text(path: str, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidValueError(
            f"{path} is no vocabulary: byte {error.start} is not UTF-8. Give a tokenizer.json, a vocab.txt "
            "or a spiece.model."
        ) from None


def _read_config(path: str) -> Mapping[str, Any]:
    """Read the tokenizer_config.json of a folder; of a file, none belongs to it."""
    config_path = os.path.join(path, _CONFIG_FILE)
    if not os.path.isdir(path) or not os.path.exists(config_path):
        return {}
    try:
        config: Mapping[str, Any] = {**json.loads(_read_bytes(config_path))}
    except (ValueError, TypeError) as error:
        raise InvalidValueError(
            f"{config_path} is damaged ({error}). Give the vocabulary's file instead"
        ) from None
    return config


# vocab.txt


def _tokenizer_from_vocab_txt(
    path: str, text: str, config: Mapping[str, Any], options: CasingOptions
) -> tuple[Tokenizer, Casing]:
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
    if num_blank or num_repeated:
        warnings.warn(
            f"{path}: of {len(lines)} lines {num_blank} are blank and {num_repeated} repeat a piece; a "
            "repeated piece has the id of its last line, as in BERT's own code",
            stacklevel=3,
        )
    casing = _resolve_bert_casing(config, options, infer_casing(ids).lower_case, None)
    tokenizer = hugging_face.make_wordpiece_tokenizer(ids, casing)
    tokenizer.normalizer = _make_bert_normalizer(casing, config, {})
    return tokenizer, casing


def _resolve_bert_casing(
    config: Mapping[str, Any], options: CasingOptions, lower_case: bool, strip_accents: bool | None
) -> Casing:
    """Return the casing of options, else of tokenizer_config.json, else the one given.

    As in BERT's code, accents are stripped in lower case only if nothing else is said.
    """
    is_lower_case = _first(options.lower_case, config.get("do_lower_case"), lower_case)
    return Casing(
        is_lower_case,
        _first(options.strip_accents, config.get("strip_accents"), strip_accents, is_lower_case),
    )


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


def _first(*values: bool | None) -> bool:
    """Return the first value that is not None."""
    return next((bool(value) for value in values if value is not None), False)


# spiece.model


def _tokenizer_from_spiece_model(
    path: str, content: bytes, config: Mapping[str, Any], options: CasingOptions
) -> tuple[Tokenizer, Casing]:
    try:
        model = parse_model(content)
    except InvalidValueError as error:
        raise InvalidValueError(f"{path} is {error}. Give a spiece.model") from None
    if reason := _find_unsupported(model):
        raise InvalidValueError(
            f"{path} is a SentencePiece model {reason}, which ALBERT's tokenizer does not have. Give "
            "ALBERT's spiece.model, or one that was trained with its options"
        )
    casing = _resolve_albert_casing(config, options, True, True)
    tokenizer = hugging_face.make_unigram_tokenizer(
        _score_pieces(model.pieces), casing, charsmap=model.charsmap
    )
    return tokenizer, casing


def _resolve_albert_casing(
    config: Mapping[str, Any], options: CasingOptions, lower_case: bool, strip_accents: bool
) -> Casing:
    keeps_accents = config.get("keep_accents")
    return Casing(
        _first(options.lower_case, config.get("do_lower_case"), lower_case),
        _first(options.strip_accents, None if keeps_accents is None else not keeps_accents, strip_accents),
    )


def _find_unsupported(model: SentencePieceModel) -> str | None:
    """Return the property of a model because of which its ids would differ; None if there is none."""
    if not model.is_unigram:
        return "of another type than unigram"
    if model.has_word_end_sign or not model.has_word_start_sign:
        return "without the sign for a blank before each word"
    if not model.has_pieces_in_words:
        return "with pieces across blanks"
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


# tokenizer.json


def _tokenizer_from_json(
    path: str, text: str, config: Mapping[str, Any], options: CasingOptions
) -> tuple[Tokenizer, Casing]:
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises a bare Exception
        raise InvalidValueError(
            f"{path} is no tokenizer.json that the tokenizers library reads: {error}"
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    normalizer = json.loads(tokenizer.to_str())["normalizer"]
    if isinstance(tokenizer.model, WordPiece) and normalizer and normalizer["type"] == "BertNormalizer":
        casing = _resolve_bert_casing(config, options, normalizer["lowercase"], normalizer["strip_accents"])
        tokenizer.normalizer = _make_bert_normalizer(casing, config, normalizer)
    elif isinstance(tokenizer.model, Unigram) and (steps := _list_step_types(normalizer)):
        found = Casing("Lowercase" in steps, "StripAccents" in steps)
        casing = _resolve_albert_casing(config, options, found.lower_case, found.strip_accents)
        if casing != found:
            charsmap = hugging_face.get_charsmap(normalizer)
            tokenizer.normalizer = hugging_face.make_albert_normalizer(casing, charsmap)
    elif options != CasingOptions():
        raise InvalidValueError(
            f"{path} has a normaliser that is neither BERT's nor ALBERT's, so that its casing cannot be "
            "changed: leave out --cased and --strip-accents"
        )
    else:
        casing = _measure_casing(tokenizer)
    return tokenizer, casing


def _list_step_types(normalizer: Mapping[str, Any] | None) -> set[str]:
    """Return the types of the steps of ALBERT's normaliser; empty for another one."""
    types = {str(step["type"]) for step in (normalizer or {}).get("normalizers", [])}
    return types if types <= {"Replace", "NFKD", "StripAccents", "Lowercase", "Precompiled"} else set()


def _measure_casing(tokenizer: Tokenizer) -> Casing:
    normalizer = tokenizer.normalizer
    if normalizer is None:
        return Casing()
    return Casing(normalizer.normalize_str("A") == "a", normalizer.normalize_str("é") == "e")
