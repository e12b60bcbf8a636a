"""Tokenizer files for Hugging Face's libraries, with the same ids in every file.

They work with ``tokenizers`` (``tokenizer.json`` is complete), with transformers 5 and the fast classes of 4
through ``AutoTokenizer``, ``BertTokenizer`` and ``AlbertTokenizer``, and with the code of BERT and ELECTRA
(``vocab.txt``).  Transformers 5 rebuilds a BertTokenizer from the pieces and three options and ignores the
rest of the normaliser, so only those options are used.  ``tokenizer_config.json`` names the class, so that no
``config.json`` is needed.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import Unigram, WordPiece
from tokenizers.processors import TemplateProcessing

from bioshards.corpus.errors import InvalidValueError
from bioshards.vocab.tokenizer.charsmap import find_charsmap_damage
from bioshards.vocab.tokenizer.pretokenizer import Casing
from bioshards.vocab.tokenizer.wordpiece import (
    ALBERT_SPECIAL_TOKENS,
    ALBERT_UNK,
    CONTINUATION_PREFIX,
    MAX_WORD_LENGTH,
    SENTENCEPIECE_SPACE,
    SPECIAL_TOKENS,
    UNK,
)

MODEL_MAX_LENGTH: Final = 512
"""Number of positions of every model of the papers."""
_BATCH_TEXTS: Final = 20_000
"""Texts that are encoded at once."""


def make_wordpiece_tokenizer(
    vocabulary: Sequence[str] | Mapping[str, int], casing: Casing, entity_placeholders: Sequence[str] = ()
) -> Tokenizer:
    """Return BERT's tokenizer with the pieces of a vocabulary: in the order of ids, or with their ids."""
    if not isinstance(vocabulary, Mapping):
        vocabulary = {piece: piece_id for piece_id, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(
        WordPiece(dict(vocabulary), unk_token=UNK, max_input_chars_per_word=MAX_WORD_LENGTH)
    )
    tokenizer.normalizer = casing.make_normalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION_PREFIX)
    return add_special_tokens(tokenizer, SPECIAL_TOKENS, entity_placeholders)


def make_unigram_tokenizer(
    pieces: Sequence[tuple[str, float]],
    casing: Casing,
    entity_placeholders: Sequence[str] = (),
    charsmap: bytes = b"",
) -> Tokenizer:
    """Return ALBERT's tokenizer with the pieces and scores of a unigram model in the order of ids.

    Args:
        charsmap: compiled rules of the model's normaliser; empty if it has none.
    """
    unknown_id = [name for name, _ in pieces].index(ALBERT_UNK)
    tokenizer = Tokenizer(Unigram(list(pieces), unk_id=unknown_id, byte_fallback=False))
    tokenizer.normalizer = make_albert_normalizer(casing, charsmap)
    metaspace = pre_tokenizers.Metaspace(replacement=SENTENCEPIECE_SPACE, prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    tokenizer.decoder = decoders.Metaspace(replacement=SENTENCEPIECE_SPACE, prepend_scheme="always")
    return add_special_tokens(tokenizer, ALBERT_SPECIAL_TOKENS, entity_placeholders)


def make_albert_normalizer(casing: Casing, charsmap: bytes = b"") -> normalizers.Normalizer:
    """Return the normaliser of Hugging Face's AlbertTokenizer."""
    steps: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if casing.strip_accents:
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if casing.lower_case:
        steps.append(normalizers.Lowercase())
    if charsmap:
        steps.append(normalizers.Precompiled(charsmap))
    return normalizers.Sequence(steps)


def parse_tokenizer(text: str) -> Tokenizer:
    """Return the tokenizer of a ``tokenizer.json``.

    Raises:
        InvalidValueError: the library does not read it, or would end in a panic when it encodes.
    """
    try:
        tokenizer = Tokenizer.from_str(text)
    except Exception as error:  # the library raises bare exceptions
        raise InvalidValueError(str(error)) from None
    normalizer = json.loads(tokenizer.to_str())["normalizer"]
    for step in list_normalizer_steps(normalizer):
        if step["type"] == "Precompiled" and (damage := find_charsmap_damage(_decode_charsmap(step))):
            raise InvalidValueError(f"the rules of its normaliser are damaged ({damage})")
    return tokenizer


def list_normalizer_steps(normalizer: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """Return the steps of the JSON of a normaliser, those within others in their place."""
    if normalizer and normalizer["type"] == "Sequence":
        return [step for inner in normalizer["normalizers"] for step in list_normalizer_steps(inner)]
    return [normalizer] if normalizer else []


def make_tokenizer_config(casing: Casing, sentencepiece: bool) -> dict[str, Any]:
    """Return the content of ``tokenizer_config.json``."""
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    tokenizer_config: dict[str, Any] = {
        "tokenizer_class": "AlbertTokenizer" if sentencepiece else "BertTokenizer",
        **dict(zip(names, ALBERT_SPECIAL_TOKENS if sentencepiece else SPECIAL_TOKENS, strict=True)),
        "do_lower_case": casing.lower_case,
        "model_max_length": MODEL_MAX_LENGTH,
        "model_input_names": ["input_ids", "token_type_ids", "attention_mask"],
    }
    if sentencepiece:
        return {
            **tokenizer_config,
            "keep_accents": not casing.strip_accents,
            "bos_token": "[CLS]",
            "eos_token": "[SEP]",
        }
    return {**tokenizer_config, "strip_accents": casing.strip_accents, "tokenize_chinese_chars": True}


def is_rebuilt(tokenizer: Tokenizer, casing: Casing) -> bool:
    """Return True if BertTokenizer or AlbertTokenizer of transformers 5 gives the tokenizer's ids.

    They take the pieces of tokenizer.json, the rules of its model's normaliser and the options of
    ``tokenizer_config.json``; the rest is their own.
    """
    published = json.loads(tokenizer.to_str())
    if isinstance(tokenizer.model, Unigram):
        charsmap = get_charsmap(published["normalizer"])
        rebuilt = json.loads(make_unigram_tokenizer([(ALBERT_UNK, 0.0)], casing, charsmap=charsmap).to_str())
        is_same_model = published["model"]["unk_id"] == ALBERT_SPECIAL_TOKENS.index(ALBERT_UNK)
    else:
        rebuilt = json.loads(make_wordpiece_tokenizer([UNK], casing).to_str())
        is_same_model = published["model"]["max_input_chars_per_word"] == MAX_WORD_LENGTH
    return (
        is_same_model
        and published["pre_tokenizer"] == rebuilt["pre_tokenizer"]
        and _drop_ineffective(published["normalizer"]) == _drop_ineffective(rebuilt["normalizer"])
    )


def measure_casing(tokenizer: Tokenizer) -> Casing:
    """Return the casing that the normaliser applies."""
    normalizer = tokenizer.normalizer
    if normalizer is None:
        return Casing()
    return Casing(normalizer.normalize_str("A") == "a", normalizer.normalize_str("é") == "e")


def get_charsmap(normalizer: Mapping[str, Any] | None) -> bytes:
    """Return the compiled rules in the JSON of ALBERT's normaliser; empty if there are none."""
    for step in (normalizer or {}).get("normalizers", []):
        if step["type"] == "Precompiled":
            return _decode_charsmap(step)
    return b""


def _decode_charsmap(step: Mapping[str, Any]) -> bytes:
    return base64.b64decode(step["precompiled_charsmap"])


def _drop_ineffective(normalizer: Mapping[str, Any] | None) -> list[Any]:
    """Return the steps that matter: not one for several blanks, at which text is split, nor for ideographs,
    which has an option of its own."""
    steps = (normalizer or {}).get("normalizers", [normalizer])
    return [
        {name: value for name, value in step.items() if name != "handle_chinese_chars"}
        for step in steps
        if step and step.get("pattern") != {"Regex": " {2,}"}
    ]


def serialize_tokenizer(tokenizer: Tokenizer, tokenizer_config: dict[str, Any]) -> dict[str, bytes]:
    """Return the files of a tokenizer by name; ``vocab.txt`` is among them for WordPiece.

    The line of an id without a piece is blank.
    """
    config_json = json.dumps(tokenizer_config, indent=2, ensure_ascii=False)
    texts = {"tokenizer.json": tokenizer.to_str(pretty=True), "tokenizer_config.json": config_json}
    if isinstance(tokenizer.model, WordPiece):
        pieces = {piece_id: piece for piece, piece_id in tokenizer.get_vocab().items()}
        texts["vocab.txt"] = "\n".join(pieces.get(piece_id, "") for piece_id in range(max(pieces) + 1))
    return {name: f"{text}\n".encode() for name, text in texts.items()}


def add_special_tokens(
    tokenizer: Tokenizer, special_tokens: Sequence[str], entity_placeholders: Sequence[str] = ()
) -> Tokenizer:
    """Add tokens to a tokenizer, and the template ``[CLS] A [SEP] B [SEP]`` if it has none.

    Args:
        special_tokens: pieces that become special tokens; those that the vocabulary lacks are left out.
        entity_placeholders: pieces that are never split.
    """
    present = [name for name in special_tokens if tokenizer.token_to_id(name) is not None]
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in present])
    tokenizer.add_tokens([AddedToken(name, special=False, normalized=False) for name in entity_placeholders])
    if tokenizer.post_processor is None and {"[CLS]", "[SEP]"} <= set(present):
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS]:0 $A:0 [SEP]:0",
            pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
            special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
        )
    return tokenizer


def encode_words(
    tokenizer: Tokenizer, texts: Sequence[str]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the ids of all texts in order, and the number of ids of each; without [CLS] and [SEP]."""
    ids, lengths = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for start in range(0, len(texts), _BATCH_TEXTS):
        batch = list(texts[start : start + _BATCH_TEXTS])
        encodings = tokenizer.encode_batch_fast(batch, add_special_tokens=False)
        lengths.append(np.fromiter(map(len, encodings), np.int64, len(batch)))
        ids.append(np.fromiter(chain.from_iterable(encoding.ids for encoding in encodings), np.int64))
    return np.concatenate(ids), np.concatenate(lengths)
