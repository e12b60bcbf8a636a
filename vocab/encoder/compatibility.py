"""Check that a tokenizer can be applied chunk by chunk, so that each distinct chunk is encoded once.

A chunk is the text between two blanks (U+0020).  The tokenizers of BERT and ALBERT are accepted, which are
those that ``vocab build`` writes.  ``tokenizer_json`` is the parsed ``tokenizer.json``.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final

from tokenizers import Tokenizer
from tokenizers.normalizers import Precompiled

from bioshards.vocab.tokenizer.charsmap import has_rule_of
from bioshards.vocab.tokenizer.hugging_face import list_normalizer_steps
from bioshards.vocab.tokenizer.wordpiece import SENTENCEPIECE_SPACE

TokenizerJson = Mapping[str, Any]
"""Parsed ``tokenizer.json``."""

_LOCAL_NORMALIZERS: Final = ("BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "StripAccents", "Lowercase")
"""Normalisers that never look across a blank: nothing composes with it, and no mark moves past it."""

_PREPENDED_SIGNS: Final = tuple(
    map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0xD4E, 0x110BD, 0x110CD))
)
"""Signs that form a grapheme with the next character (Unicode's Prepended_Concatenation_Mark)."""


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
    for normalizer in list_normalizer_steps(tokenizer_json["normalizer"]):
        if (
            normalizer["type"] not in _LOCAL_NORMALIZERS
            and not _is_local_replacement(normalizer)
            and not _is_local_charsmap(normalizer)
        ):
            yield f"a normaliser that may look across a blank ({normalizer['type']})"
    for token in tokenizer_json["added_tokens"]:
        content = token["content"]
        if token["normalized"] and hf_tokenizer.normalizer:
            content += hf_tokenizer.normalizer.normalize_str(content)
        if any(character.isspace() for character in content):
            yield f"an added token with a blank in it ({token['content']!r})"


def is_bert_pretokenizer(tokenizer_json: TokenizerJson) -> bool:
    """Return True if the tokenizer splits at white space and punctuation."""
    return bool((tokenizer_json["pre_tokenizer"] or {}).get("type") == "BertPreTokenizer")


def is_albert_pretokenizer(tokenizer_json: TokenizerJson) -> bool:
    """Return True if the tokenizer splits at white space only and puts SentencePiece's sign before words."""
    match tokenizer_json["pre_tokenizer"]:
        case {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, {"type": "Metaspace", **metaspace}],
        }:
            return (metaspace["replacement"], metaspace["prepend_scheme"]) == (SENTENCEPIECE_SPACE, "always")
    return False


def _is_local_charsmap(normalizer: Mapping[str, Any]) -> bool:
    """Return True for the rules of a SentencePiece model if none of them changes a blank.

    The library applies a rule to a whole grapheme, which has a blank in it if a mark follows the blank or a
    sign of :data:`_PREPENDED_SIGNS` precedes it.  With accents kept, two marks after a blank of which a rule
    changes the first may differ; text in NFC, as documents are, has none.
    """
    if normalizer["type"] != "Precompiled":
        return False
    rules = base64.b64decode(normalizer["precompiled_charsmap"])
    apply_rules = Precompiled(rules).normalize_str
    return not has_rule_of(rules, " ") and all(apply_rules(sign) == sign for sign in _PREPENDED_SIGNS)


def _is_local_replacement(normalizer: Mapping[str, Any]) -> bool:
    """Return True for ALBERT's replacement of quotation marks and for the one of several blanks by one."""
    match normalizer:
        case {"type": "Replace", "pattern": {"String": str(pattern)}}:
            return pattern != "" and pattern.isprintable() and " " not in pattern
        case {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}:
            return True
    return False
