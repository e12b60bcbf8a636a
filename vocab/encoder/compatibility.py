"""Check that a tokenizer can be applied chunk by chunk, so that each distinct chunk is encoded once.

A chunk is the text between two blanks (U+0020).  The tokenizers of BERT and ALBERT are accepted, which are
those that ``vocab build`` writes.  ``tokenizer_json`` is the parsed ``tokenizer.json``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tokenizers import Tokenizer

from bioshards.vocab.tokenizer import wordpiece

TokenizerJson = Mapping[str, Any]
"""Parsed ``tokenizer.json``."""

_LOCAL_NORMALIZERS: Final = ("BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Lowercase")
"""Normalisers that never look across a blank: nothing composes with it, and no mark moves past it."""


def find_incompatibilities(tokenizer_json: TokenizerJson, hf_tokenizer: Tokenizer) -> Iterator[str]:
    """Yield the settings because of which the ids of a text may differ from those of its chunks."""
    if tokenizer_json["truncation"] or tokenizer_json["padding"]:
        yield "truncation or padding"
    model = tokenizer_json["model"]
    if model["type"] not in ("WordPiece", "Unigram"):
        yield f"a {model['type']} model, neither WordPiece nor Unigram"
    elif model["type"] == "WordPiece" and model["unk_token"] not in model["vocab"]:
        yield f"no {model['unk_token']} in its vocabulary"
    if not is_bert_pretokenizer(tokenizer_json) and not is_albert_pretokenizer(tokenizer_json):
        yield "a pre-tokenizer that is neither BertPreTokenizer nor WhitespaceSplit and Metaspace (always)"
    for normalizer in _flatten_normalizers(tokenizer_json["normalizer"]):
        if normalizer["type"] not in _LOCAL_NORMALIZERS and not _is_local_replacement(normalizer):
            yield f"a normaliser that may look across a blank ({normalizer['type']})"
    for token in tokenizer_json["added_tokens"]:
        content = token["content"]
        if token["normalized"] and hf_tokenizer.normalizer:
            content += hf_tokenizer.normalizer.normalize_str(content)
        if any(character.isspace() for character in content):
            yield f"an added token with a blank in it ({token['content']!r})"


def is_bert_pretokenizer(tokenizer_json: TokenizerJson) -> bool:
    """Return True if the tokenizer splits at white space and punctuation."""
    match tokenizer_json["pre_tokenizer"]:
        case {"type": "BertPreTokenizer"}:
            return True
    return False


def is_albert_pretokenizer(tokenizer_json: TokenizerJson) -> bool:
    """Return True if the tokenizer splits at white space only and puts SentencePiece's sign before words."""
    match tokenizer_json["pre_tokenizer"]:
        case {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]}:
            match metaspace:
                case {
                    "type": "Metaspace",
                    "replacement": wordpiece.SENTENCEPIECE_SPACE,
                    "prepend_scheme": "always",
                }:
                    return True
    return False


def _flatten_normalizers(normalizer: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    if normalizer and normalizer["type"] == "Sequence":
        return [leaf for inner in normalizer["normalizers"] for leaf in _flatten_normalizers(inner)]
    return [normalizer] if normalizer else []


def _is_local_replacement(normalizer: Mapping[str, Any]) -> bool:
    """Return True for ALBERT's replacement of quotation marks and for the one of several blanks by one."""
    match normalizer:
        case {"type": "Replace", "pattern": {"String": str(pattern)}}:
            return pattern != "" and pattern.isprintable() and " " not in pattern
        case {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}:
            return True
    return False
