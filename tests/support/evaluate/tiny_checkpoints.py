"""Tiny checkpoints: one layer, random weights, a vocabulary of letters."""

from __future__ import annotations

import string
from pathlib import Path
from typing import Any, Literal

import torch
from transformers import (
    AlbertConfig,
    AlbertModel,
    AlbertTokenizer,
    BertConfig,
    BertForPreTraining,
    BertTokenizer,
    ElectraConfig,
    ElectraForPreTraining,
    RobertaConfig,
    RobertaModel,
    RobertaTokenizer,
)

Family = Literal["bert", "electra", "albert", "roberta"]
_SIZES: dict[str, Any] = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 64,
}
_SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
_CHARACTERS = string.ascii_lowercase + string.digits + string.punctuation
WORDS = ("protein", "gene", "drug", "cells", "patients", "the", "of", "in", "is", "no", "yes", "drug$")


def save_tiny_checkpoint(folder: Path, family: Family = "electra", positions: int = 64) -> Path:
    """Save a reproducible checkpoint to a folder."""
    torch.manual_seed(0)
    sizes = {**_SIZES, "max_position_embeddings": positions}
    tokenizer: Any
    model: Any
    pieces = [*_SPECIAL_TOKENS, *_CHARACTERS, *(f"##{one}" for one in _CHARACTERS), *WORDS]
    match family:
        case "bert" | "electra":
            tokenizer = BertTokenizer(vocab={piece: at for at, piece in enumerate(pieces)})
            if family == "bert":
                model = BertForPreTraining(BertConfig(vocab_size=len(pieces), **sizes))
            else:
                model = ElectraForPreTraining(
                    ElectraConfig(vocab_size=len(pieces), embedding_size=8, **sizes)
                )
        case "albert":
            scored_pieces = [("<pad>", 0.0), ("<unk>", 0.0), *((one, 0.0) for one in _SPECIAL_TOKENS[2:])]
            scored_pieces += (
                [(one, -5.0) for one in _CHARACTERS] + [("▁", -3.0)] + [(f"▁{one}", -4.0) for one in WORDS]
            )
            tokenizer = AlbertTokenizer(vocab=scored_pieces)
            model = AlbertModel(AlbertConfig(vocab_size=len(scored_pieces), embedding_size=8, **sizes))
        case "roberta":
            roberta_pieces = [
                "<s>",
                "<pad>",
                "</s>",
                "<unk>",
                "<mask>",
                *_CHARACTERS,
                "Ġ",
                *(f"Ġ{one}" for one in _CHARACTERS),
            ]
            tokenizer = RobertaTokenizer(
                vocab={piece: at for at, piece in enumerate(roberta_pieces)}, merges=[]
            )
            model = RobertaModel(RobertaConfig(vocab_size=len(roberta_pieces), type_vocab_size=1, **sizes))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
