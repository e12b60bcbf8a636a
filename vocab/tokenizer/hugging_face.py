"""Tokenizer files for Hugging Face's libraries, with the same ids in every file.

They work with ``tokenizers`` (``tokenizer.json`` is complete), with transformers 5 and the fast classes of 4
through ``AutoTokenizer``, ``BertTokenizer`` and ``AlbertTokenizer``, and with the code of BERT and ELECTRA
(``vocab.txt``).  Transformers 5 rebuilds a BertTokenizer from the pieces and three options and ignores the
rest of the normaliser, so only those options are used.  ``tokenizer_config.json`` names the class, so that no
``config.json`` is needed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from tokenizers import AddedToken, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import Unigram, WordPiece
from tokenizers.processors import TemplateProcessing

from .pretokenizer import Casing
from .wordpiece import CONTINUATION_PREFIX, MAX_WORD_LENGTH, SENTENCEPIECE_SPACE, SPECIAL_TOKENS, UNK

ALBERT_SPECIAL_TOKENS: Final = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
"""Special tokens of ALBERT, in the order of their ids."""
MODEL_MAX_LENGTH: Final = 512
"""Number of positions of every model of the papers."""


def make_wordpiece_tokenizer(
    vocabulary: Sequence[str], casing: Casing, entity_placeholders: Sequence[str] = ()
) -> Tokenizer:
    """Return BERT's tokenizer with the pieces of a vocabulary in the order of ids."""
    ids = {piece: piece_id for piece_id, piece in enumerate(vocabulary)}
    tokenizer = Tokenizer(WordPiece(ids, unk_token=UNK, max_input_chars_per_word=MAX_WORD_LENGTH))
    tokenizer.normalizer = casing.make_normalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION_PREFIX)
    return _add_special_tokens(tokenizer, SPECIAL_TOKENS, entity_placeholders)


def make_unigram_tokenizer(
    pieces: Sequence[tuple[str, float]], casing: Casing, entity_placeholders: Sequence[str] = ()
) -> Tokenizer:
    """Return ALBERT's tokenizer with the pieces and scores of a unigram model in the order of ids."""
    tokenizer = Tokenizer(
        Unigram(list(pieces), unk_id=ALBERT_SPECIAL_TOKENS.index("<unk>"), byte_fallback=False)
    )
    tokenizer.normalizer = make_albert_normalizer(casing)
    metaspace = pre_tokenizers.Metaspace(replacement=SENTENCEPIECE_SPACE, prepend_scheme="always")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), metaspace])
    tokenizer.decoder = decoders.Metaspace(replacement=SENTENCEPIECE_SPACE, prepend_scheme="always")
    return _add_special_tokens(tokenizer, ALBERT_SPECIAL_TOKENS, entity_placeholders)


def make_albert_normalizer(casing: Casing) -> normalizers.Normalizer:
    """Return the normaliser of Hugging Face's AlbertTokenizer."""
    steps: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if casing.strip_accents:
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    if casing.lower_case:
        steps.append(normalizers.Lowercase())
    return normalizers.Sequence(steps)


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


def serialize_tokenizer(tokenizer: Tokenizer, tokenizer_config: dict[str, Any]) -> dict[str, bytes]:
    """Return the files of a tokenizer by name; ``vocab.txt`` is among them for WordPiece."""
    texts = {
        "tokenizer.json": tokenizer.to_str(pretty=True) + "\n",
        "tokenizer_config.json": json.dumps(tokenizer_config, indent=2, ensure_ascii=False) + "\n",
    }
    if isinstance(tokenizer.model, WordPiece):
        by_id = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
        texts["vocab.txt"] = "".join(f"{piece}\n" for piece, _ in by_id)
    return {name: text.encode() for name, text in texts.items()}


def _add_special_tokens(
    tokenizer: Tokenizer, special_tokens: Sequence[str], entity_placeholders: Sequence[str]
) -> Tokenizer:
    """Add special tokens, tokens that are never split, and the template ``[CLS] A [SEP] B [SEP]``."""
    tokenizer.add_special_tokens(
        [AddedToken(name, special=True, normalized=False) for name in special_tokens]
    )
    tokenizer.add_tokens([AddedToken(name, special=False, normalized=False) for name in entity_placeholders])
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")],
    )
    return tokenizer
