"""Small vocabularies made by hand."""

from __future__ import annotations

from pathlib import Path

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import Unigram, WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer, Metaspace

from bioshards.vocab.tokenizer.pretokenizer import AS_WRITTEN, Casing

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
UNCASED = Casing(lower_case=True, strip_accents=True)


def make_wordpiece(*pieces: str, casing: Casing = AS_WRITTEN) -> Tokenizer:
    """Return a WordPiece tokenizer of these pieces, after BERT's special tokens."""
    ids = {piece: number for number, piece in enumerate((*SPECIAL_TOKENS, *pieces))}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = casing.make_normalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens(
        [AddedToken(piece, special=True, normalized=False) for piece in SPECIAL_TOKENS]
    )
    return tokenizer


def make_unigram(*pieces: str) -> Tokenizer:
    """Return a Unigram tokenizer like ALBERT's, with equally probable pieces."""
    tokenizer = Tokenizer(Unigram([("<unk>", 0.0), *((piece, -1.0) for piece in pieces)], unk_id=0))
    tokenizer.pre_tokenizer = Metaspace()
    return tokenizer


def save_character_vocabulary(folder: Path) -> Path:
    """Write a vocabulary of single characters, which knows every English word; return the folder."""
    characters = [chr(code) for code in range(33, 127)]
    folder.mkdir(exist_ok=True)
    tokenizer = make_wordpiece(*characters, *(f"##{character}" for character in characters))
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder
