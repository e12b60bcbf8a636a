"""Vocabularies in the formats in which others publish them, made small, and their own ways to encode."""

from __future__ import annotations

import functools
import io
import random
import re
import unicodedata
from pathlib import Path
from typing import Any

import sentencepiece

from bioshards.vocab.tokenizer.sentencepiece_model import parse_model

_WORDS = re.compile(r"\S+")
USER_DEFINED_SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€")
"""Those of ALBERT's 30k-clean.model."""
TEXTS = [
    "Naloxone binds the mu-opioid receptor (p < 0.05).",
    "MÉNIÈRE'S disease; Me\u0301nie\u0300re; naïve Ångström Å",
    "\ufb01brin, o\ufb03ce, \ufb02ow and \ufb05",
    "\u4e2d\u6587 text \u30ab\u30bf\u30ab\u30ca \uff21\uff22\uff23 \uff11\uff12",
    "a\u0000b\u0007c \u200bzero\u200dwidth\ufeff soft\u00adhyphen\ufffd",
    "  tabs\tand\nlines \u00a0 no-break \u3000 ideographic  ",
    "\u2603 snow\u2603man \u00bd \u2460 \u2122 \u2192 \U0001f600",
    "``quoted'' \u201ccurly\u201d \u2018single\u2019 \"straight\"",
    "in 2014, and 1,000 of 12,345.67 (3.5\u20134.5), £5 and €6.",
    "[CLS] is text [mask] <s> ##ing \u2581low",
    "straße ΑΒΓ αβγ NF-κB IL-6 TNF\u03b1 CO\u2082 10\u207b\u00b3",
    "x" * 120,
    "",
    " ",
]
"""Accents, ligatures, ideographs, controls, capitals, unknown characters, quotation marks, numbers."""


@functools.cache
def make_spiece_model(is_cased: bool = False) -> bytes:
    """Train a model with the options of ALBERT's (README of google-research/albert) on invented words."""
    rng = random.Random(3)
    syllables = _WORDS.findall("na lo xo ne re cep tor bind ing fi brin me ni e is")
    words = _WORDS.findall("the of and 2014, 2015, 1, 12, p < il tnf text low x")
    words += ["".join(rng.choices(syllables, k=rng.randint(1, 4))) for _ in range(300)]
    words += ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=2)) for _ in range(200)]
    if is_cased:
        words += [word.title() for word in words]
    lines = [
        " ".join(rng.choices(words, k=8)) + rng.choice([".", " (a-b)", '"', ", ' ` / & =", ""])
        for _ in range(800)
    ]
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=400,
        model_type="unigram",
        character_coverage=1.0,
        normalization_rule_name="nmt_nfkc",
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        user_defined_symbols=list(USER_DEFINED_SYMBOLS),
        hard_vocab_limit=False,
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def encode_as_albert(
    model: bytes, text: str, lower_case: bool = True, keep_accents: bool = False
) -> list[int]:
    """Encode a text as google-research/albert and the first AlbertTokenizer do (tokenization.py).

    Pieces of a number and a comma are encoded again without the comma.
    """
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    text = " ".join(text.split()).replace("``", '"').replace("''", '"')
    if not keep_accents:
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(character for character in decomposed if not unicodedata.combining(character))
    pieces: list[str] = []
    for piece in processor.encode(text.lower() if lower_case else text, out_type=str):
        if piece[-1] == "," and piece[-2:-1].isdigit():
            first, *others = processor.encode(piece[:-1].replace("▁", ""), out_type=str)
            if not piece.startswith("▁"):
                first = first.removeprefix("▁")
            pieces += [part for part in (first, *others) if part] + [","]
        else:
            pieces.append(piece)
    return [processor.piece_to_id(piece) for piece in pieces]


def make_albert_tokenizer(model: bytes, lower_case: bool = True, keep_accents: bool = False) -> Any:
    """Return the AlbertTokenizer that transformers makes of a spiece.model.

    It reads the file with a protobuf that is newer than the one here, so that its arguments are given.
    """
    from transformers import AlbertTokenizer

    parsed = parse_model(model)
    return AlbertTokenizer(
        vocab=[(piece.text, piece.score) for piece in parsed.pieces],
        do_lower_case=lower_case,
        keep_accents=keep_accents,
        _spm_precompiled_charsmap=parsed.charsmap,  # type: ignore[arg-type]  # bytes, it is
    )


PIECES = _WORDS.findall(
    "the of and na ##lo ##x ##one bind ##s ##ing men ##iere fi ##brin café cafe ##é il tnf nf text ##text "
    "##αβγ α ##α ≠ = 2014 ##14 ! \" ' ( ) , - . / < > [ ] ` 中 文 ##中 ½ a ##a x ##x"
)
CASED_PIECES = _WORDS.findall("The Na IL NF MEN Mén ##iÈRE BRCA É ##É T ##N ##F Text")


def write_vocab_txt(path: Path, is_cased: bool = False, layout: str = "scivocab") -> Path:
    """Write a vocab.txt with special tokens where SciVocab, or BERT, has them."""
    specials = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    unused = [f"[unused{number}]" for number in range(10)]
    head = (
        ["[PAD]", *unused, *specials]
        if layout == "scivocab"
        else ["[MASK]", "[SEP]", "[CLS]", "[UNK]", "[PAD]"]
    )
    letters = [form for letter in "bcdefghijklmnopqrstuvwyz0123456789" for form in (letter, f"##{letter}")]
    pieces = [*head, *PIECES, *letters, *(CASED_PIECES if is_cased else ())]
    path.write_text("".join(f"{piece}\n" for piece in dict.fromkeys(pieces)), encoding="utf-8")
    return path
