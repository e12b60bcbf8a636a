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
from dataclasses import dataclass
from typing import Any, Final

from tokenizers import Tokenizer
from tokenizers.models import Unigram, WordPiece
from tokenizers.normalizers import BertNormalizer

from bioshards.corpus.errors import InputNotFoundError, InvalidValueError
from bioshards.corpus.manifest import check_listed
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.tokenizer import hugging_face
from bioshards.vocab.tokenizer.pretokenizer import Casing
from bioshards.vocab.tokenizer.sentencepiece_model import ModelPiece, PieceKind, parse_model
from bioshards.vocab.tokenizer.wordpiece import UNK

_FILES: Final = ("tokenizer.json", "vocab.txt", "spiece.model")
_CONFIG_FILE: Final = "tokenizer_config.json"
"""Files of a folder, the first of which is read."""
_ALBERT_STEPS: Final = {"Replace", "NFKD", "StripAccents", "Lowercase", "Precompiled"}
"""Types of the steps of ALBERT's normaliser."""
_CASED_THRESHOLD: Final = 1 / 50
"""Fraction of pieces with a capital letter above which a vocabulary is cased."""
_NUMBER_COMMA_PENALTY: Final = 100.0
"""ALBERT's code splits pieces such as ``2014,`` again; as Hugging Face's AlbertConverter, they are made too
improbable to be chosen."""


@dataclass(frozen=True, slots=True)
class PublishedVocabulary:
    """A published vocabulary.

    Attributes:
        tokenizer: without truncation and padding.
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


def load_published_vocabulary(
    path: str, lower_case: bool | None = None, strip_accents: bool | None = None
) -> PublishedVocabulary:
    """Load a published vocabulary.

    Args:
        path: a tokenizer.json, a spiece.model, a WordPiece vocab.txt of any name, or a folder with one of the
            three.
        lower_case, strip_accents: casing, if it is not that of the files.

    Raises:
        FileNotFoundError: the path does not exist, or the folder has none of the files.
        ManifestError: it is of bioshards, and a file is damaged.
        ValueError: the file has another format, or is of a model that is not supported.
    """
    file = _find_vocabulary_file(path)
    check_listed(LocalStorage(), os.path.dirname(file) or ".", (*_FILES, _CONFIG_FILE))
    content = _read_bytes(file)
    config = _read_config(path)
    notice = ""
    if file.lower().endswith(".model"):
        tokenizer = _parse_spiece_model(file, content)
    else:
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidValueError(
                f"{file} is no vocabulary: byte {error.start} is not UTF-8. Give a tokenizer.json, a "
                "vocab.txt or a spiece.model."
            ) from None
        if text.lstrip().startswith("{") and not file.lower().endswith(".txt"):
            tokenizer = _parse_json(file, text)
        else:
            tokenizer, notice = _parse_vocab_txt(file, text)
    casing = _set_casing(tokenizer, file, config, lower_case, strip_accents)
    spiece_model = None
    if isinstance(tokenizer.model, Unigram):
        model_path = file if file.lower().endswith(".model") else os.path.join(path, "spiece.model")
        spiece_model = _read_bytes(model_path) if os.path.exists(model_path) else None
    return PublishedVocabulary(tokenizer, casing, file, spiece_model, notice)


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
    config_path = os.path.join(path, _CONFIG_FILE)
    if not os.path.isdir(path) or not os.path.exists(config_path):
        return {}
    try:
        return {**json.loads(_read_bytes(config_path))}
    except (ValueError, TypeError) as error:
        raise InvalidValueError(
            f"{config_path} is damaged ({error}). Give the vocabulary's file instead"
        ) from None


def _parse_vocab_txt(path: str, text: str) -> tuple[Tokenizer, str]:
    """Return the tokenizer of a list, in the casing of its pieces, and the notice for the user."""
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
    tokenizer = hugging_face.make_wordpiece_tokenizer(ids, Casing())
    tokenizer.normalizer = BertNormalizer(lowercase=not _has_capitals(ids))
    return tokenizer, notice


def _has_capitals(pieces: Collection[str]) -> bool:
    """Return True if the pieces are cased.

    A few capitals do not make a vocabulary cased: SciBERT's uncased one has 175 pieces with a capital, 0.6 %,
    from its alphabet.  Cased ones have capitals in a fifth of their pieces and more.
    """
    num_with_capitals = sum(
        piece != piece.lower() for piece in pieces if not (piece[:1] == "[" and piece[-1:] == "]")
    )
    return num_with_capitals > _CASED_THRESHOLD * len(pieces)


def _parse_spiece_model(path: str, content: bytes) -> Tokenizer:
    try:
        model = parse_model(content)
    except InvalidValueError as error:
        raise InvalidValueError(f"{path} is {error}. Give a spiece.model") from None
    if model.unsupported:
        raise InvalidValueError(
            f"{path} is a SentencePiece model {model.unsupported}, which ALBERT's tokenizer does not have. "
            "Give ALBERT's spiece.model, or one that was trained with its options"
        )
    return hugging_face.make_unigram_tokenizer(
        _score_pieces(model.pieces), Casing(True, True), charsmap=model.charsmap
    )


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


def _parse_json(path: str, text: str) -> Tokenizer:
    try:
        tokenizer = hugging_face.parse_tokenizer(text)
    except InvalidValueError as error:
        raise InvalidValueError(
            f"{path} is no tokenizer.json that the tokenizers library reads: {error}"
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _set_casing(
    tokenizer: Tokenizer,
    path: str,
    config: Mapping[str, Any],
    lower_case: bool | None,
    strip_accents: bool | None,
) -> Casing:
    """Give a tokenizer this casing, else that of tokenizer_config.json, else its own; return it.

    As in BERT's code, accents are stripped in lower case only if nothing else is said.
    """
    own = json.loads(tokenizer.to_str())["normalizer"] or {}
    steps = {str(step["type"]) for step in own.get("normalizers", [])}
    if isinstance(tokenizer.model, WordPiece) and own.get("type") == "BertNormalizer":
        lower_case = _first(lower_case, config.get("do_lower_case"), own["lowercase"])
        own_strips = _first(own["strip_accents"], lower_case)
        casing = Casing(lower_case, _first(strip_accents, config.get("strip_accents"), own_strips))
        tokenizer.normalizer = BertNormalizer(
            clean_text=own["clean_text"],
            handle_chinese_chars=_first(config.get("tokenize_chinese_chars"), own["handle_chinese_chars"]),
            strip_accents=casing.strip_accents,
            lowercase=casing.lower_case,
        )
        return casing
    if isinstance(tokenizer.model, Unigram) and steps and steps <= _ALBERT_STEPS:
        keeps_accents = config.get("keep_accents")
        config_strips = None if keeps_accents is None else not keeps_accents
        casing = Casing(
            _first(lower_case, config.get("do_lower_case"), "Lowercase" in steps),
            _first(strip_accents, config_strips, "StripAccents" in steps),
        )
        if casing != Casing("Lowercase" in steps, "StripAccents" in steps):
            tokenizer.normalizer = hugging_face.make_albert_normalizer(casing, hugging_face.get_charsmap(own))
        return casing
    if (lower_case, strip_accents) != (None, None):
        raise InvalidValueError(
            f"{path} has a normaliser that is neither BERT's nor ALBERT's, so that its casing cannot be "
            "changed: leave out --cased and --strip-accents"
        )
    return hugging_face.measure_casing(tokenizer)


def _first(*values: bool | None) -> bool:
    """Return the first value that is not None."""
    return next((bool(value) for value in values if value is not None), False)
