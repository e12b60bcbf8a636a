"""Tokenizer files: all Hugging Face loaders give the same ids."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from bioshards.vocab.tokenizer import hugging_face, wordpiece
from bioshards.vocab.tokenizer.pretokenizer import Casing, Pretokenizer
from bioshards.vocab.tokenizer.wordpiece import SPECIAL_TOKENS

TEXTS = [
    "IL-6 binds naloxone, and (p < 0.05).",
    "Ménière's disease; NF-κB: 中文 ≠ \u00a0x\u200by",
    "a@GENE$b @gene$ [MASK] [mask] x[SEP]",
    "``quoted'' \"text\"",
    "e\u0301 ﬁbrin ½ Å",
    "x" * 100 + " " + "y" * 101,
    "\u0000 \ufffd \t\n\u2028",
    "",
]
CASINGS = [Casing(*flags) for flags in itertools.product((False, True), repeat=2)]


def make_wordpiece(casing: Casing) -> Tokenizer:
    split = Pretokenizer(casing)
    words = {"naloxone": 2, "Ménière": 1, "中": 1}
    letters = wordpiece.build_alphabet({part: 1 for word in words for part in split(word)}, 1, split)
    pieces = [
        *SPECIAL_TOKENS,
        "@GENE$",
        *wordpiece.iter_pieces(letters, split),
        *split("binds"),
        "##inds",
        *split("IL"),
    ]
    return hugging_face.make_wordpiece_tokenizer(list(dict.fromkeys(pieces)), casing, ["@GENE$"])


def make_unigram(casing: Casing) -> Tokenizer:
    letters = [character for character in wordpiece.ASCII if character not in "XYZ"]
    pieces = [(name, 0.0) for name in (*wordpiece.ALBERT_SPECIAL_TOKENS, "@GENE$")]
    pieces += [("▁", -3.0), ("▁bind", -4.0), ("ing", -4.5), ("▁na", -5.0)]
    pieces += [(letter, -6.0 - number / 10) for number, letter in enumerate([*letters, "é", "κ"])]
    return hugging_face.make_unigram_tokenizer(pieces, casing, ["@GENE$"])


def write_tokenizer(folder: Path, tokenizer: Tokenizer, casing: Casing, sentencepiece: bool) -> str:
    for name, data in hugging_face.serialize_tokenizer(
        tokenizer, hugging_face.make_tokenizer_config(casing, sentencepiece)
    ).items():
        (folder / name).write_bytes(data)
    return str(folder)


@pytest.fixture(autouse=True)
def use_offline_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("casing", CASINGS)
def test_all_loaders_of_a_wordpiece_vocabulary_give_the_same_ids(tmp_path: Path, casing: Casing) -> None:
    import transformers

    folder = write_tokenizer(tmp_path, make_wordpiece(casing), casing, sentencepiece=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
    ]
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    for name in ("AutoTokenizer", "BertTokenizer", "BertTokenizerFast"):
        hf_tokenizer: Any = getattr(transformers, name).from_pretrained(folder)
        assert type(hf_tokenizer).__name__ == "BertTokenizer"
        assert_same_ids(tokenizer, hf_tokenizer)
    pieces = (tmp_path / "vocab.txt").read_text().split("\n")[:-1]
    assert [tokenizer.token_to_id(piece) for piece in pieces] == list(range(len(pieces)))


@pytest.mark.parametrize("casing", CASINGS)
def test_all_loaders_of_a_unigram_model_give_the_same_ids(tmp_path: Path, casing: Casing) -> None:
    import transformers

    folder = write_tokenizer(tmp_path, make_unigram(casing), casing, sentencepiece=True)
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    for loader in (transformers.AutoTokenizer, transformers.AlbertTokenizer):
        hf_tokenizer: Any = loader.from_pretrained(folder)
        assert type(hf_tokenizer).__name__ == "AlbertTokenizer"
        assert_same_ids(tokenizer, hf_tokenizer)


def assert_same_ids(tokenizer: Tokenizer, hf_tokenizer: Any) -> None:
    for text in TEXTS:
        assert hf_tokenizer(text, add_special_tokens=False)["input_ids"] == encode_text(tokenizer, text), text
    pair = hf_tokenizer("a", "b c")
    assert pair["input_ids"] == tokenizer.encode("a", "b c").ids
    assert pair["token_type_ids"] == tokenizer.encode("a", "b c").type_ids
    assert pair["token_type_ids"][0] == 0
    assert pair["token_type_ids"][-1] == 1
    specials = [
        hf_tokenizer.pad_token_id,
        hf_tokenizer.unk_token_id,
        hf_tokenizer.cls_token_id,
        hf_tokenizer.sep_token_id,
    ]
    assert [*specials, hf_tokenizer.mask_token_id] == [0, 1, 2, 3, 4]
    assert hf_tokenizer.model_max_length == 512
    assert len(hf_tokenizer) == tokenizer.get_vocab_size()


def encode_text(tokenizer: Tokenizer, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids


@pytest.fixture(scope="module")
def tokenizer_pairs(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Tokenizer, Any]]:
    import transformers

    pairs = []
    for casing in CASINGS:
        folder = write_tokenizer(
            tmp_path_factory.mktemp("vocabulary"), make_wordpiece(casing), casing, sentencepiece=False
        )
        pairs.append(
            (
                Tokenizer.from_file(f"{folder}/tokenizer.json"),
                transformers.AutoTokenizer.from_pretrained(folder),
            )
        )
    return pairs


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_has_the_same_ids(tokenizer_pairs: list[tuple[Tokenizer, Any]], text: str) -> None:
    for tokenizer, hf_tokenizer in tokenizer_pairs:
        assert hf_tokenizer(text, add_special_tokens=False)["input_ids"] == encode_text(tokenizer, text)


def test_placeholders_are_not_split_and_match_exactly() -> None:
    tokenizer = make_wordpiece(Casing(True, True))
    assert tokenizer.encode("a@GENE$b", add_special_tokens=False).tokens == ["a", "@GENE$", "b"]
    assert "@GENE$" not in tokenizer.encode("@gene$", add_special_tokens=False).tokens


def test_decoded_text_has_the_same_words() -> None:
    tokenizer = make_wordpiece(Casing())
    assert tokenizer.decode(encode_text(tokenizer, "IL binds naloxone")) == "IL binds naloxone"
