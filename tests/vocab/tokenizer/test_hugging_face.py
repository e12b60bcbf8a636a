"""The files of a vocabulary: every loader of Hugging Face's gives the same ids."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from bioshards.vocab.tokenizer import alphabet, hugging_face
from bioshards.vocab.tokenizer.pretokenizer import Casing, Pretokenizer
from bioshards.vocab.tokenizer.wordpiece import SPECIAL_TOKENS
from bioshards.vocab.training.vocabulary_recipes import VocabularyRecipe

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


def wordpiece(casing: Casing) -> Tokenizer:
    split = Pretokenizer(casing)
    words = {"naloxone": 2, "Ménière": 1, "中": 1}
    letters = alphabet.build_alphabet({part: 1 for word in words for part in split(word)}, 1, split)
    pieces = [
        *SPECIAL_TOKENS,
        "@GENE$",
        *alphabet.iter_pieces(letters, split),
        *split("binds"),
        "##inds",
        *split("IL"),
    ]
    return hugging_face.make_wordpiece_tokenizer(list(dict.fromkeys(pieces)), casing, ["@GENE$"])


def unigram(casing: Casing) -> Tokenizer:
    letters = [character for character in alphabet.ASCII if character not in "XYZ"]
    pieces = [(name, 0.0) for name in (*hugging_face.ALBERT_SPECIAL_TOKENS, "@GENE$")]
    pieces += [("▁", -3.0), ("▁bind", -4.0), ("ing", -4.5), ("▁na", -5.0)]
    pieces += [(letter, -6.0 - number / 10) for number, letter in enumerate([*letters, "é", "κ"])]
    return hugging_face.make_unigram_tokenizer(pieces, casing, ["@GENE$"])


def written(folder: Path, tokenizer: Tokenizer, casing: Casing, sentencepiece: bool) -> str:
    for name, data in hugging_face.serialize_tokenizer(
        tokenizer, hugging_face.make_tokenizer_config(casing, sentencepiece)
    ).items():
        (folder / name).write_bytes(data)
    return str(folder)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.mark.parametrize("casing", CASINGS)
def test_every_loader_of_a_wordpiece_vocabulary_gives_the_same_ids(tmp_path: Path, casing: Casing) -> None:
    import transformers

    folder = written(tmp_path, wordpiece(casing), casing, sentencepiece=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.txt",
    ]
    ours = Tokenizer.from_file(f"{folder}/tokenizer.json")
    for name in ("AutoTokenizer", "BertTokenizer", "BertTokenizerFast"):
        theirs: Any = getattr(transformers, name).from_pretrained(folder)
        assert type(theirs).__name__ == "BertTokenizer"
        _same(ours, theirs)
    pieces = (tmp_path / "vocab.txt").read_text().split("\n")[:-1]
    assert [ours.token_to_id(piece) for piece in pieces] == list(range(len(pieces)))


@pytest.mark.parametrize("casing", CASINGS)
def test_every_loader_of_a_unigram_model_gives_the_same_ids(tmp_path: Path, casing: Casing) -> None:
    import transformers

    folder = written(tmp_path, unigram(casing), casing, sentencepiece=True)
    ours = Tokenizer.from_file(f"{folder}/tokenizer.json")
    for loader in (transformers.AutoTokenizer, transformers.AlbertTokenizer):
        theirs: Any = loader.from_pretrained(folder)
        assert type(theirs).__name__ == "AlbertTokenizer"
        _same(ours, theirs)


def _same(ours: Tokenizer, theirs: Any) -> None:
    for text in TEXTS:
        assert theirs(text, add_special_tokens=False)["input_ids"] == _ids(ours, text), text
    pair = theirs("a", "b c")
    assert pair["input_ids"] == ours.encode("a", "b c").ids
    assert pair["token_type_ids"] == ours.encode("a", "b c").type_ids
    assert pair["token_type_ids"][0] == 0
    assert pair["token_type_ids"][-1] == 1
    specials = [theirs.pad_token_id, theirs.unk_token_id, theirs.cls_token_id, theirs.sep_token_id]
    assert [*specials, theirs.mask_token_id] == [0, 1, 2, 3, 4]
    assert theirs.model_max_length == 512
    assert len(theirs) == ours.get_vocab_size()


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return found


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Tokenizer, Any]]:
    import transformers

    made = []
    for casing in CASINGS:
        folder = written(
            tmp_path_factory.mktemp("vocabulary"), wordpiece(casing), casing, sentencepiece=False
        )
        made.append(
            (
                Tokenizer.from_file(f"{folder}/tokenizer.json"),
                transformers.AutoTokenizer.from_pretrained(folder),
            )
        )
    return made


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_has_the_same_ids(loaded: list[tuple[Tokenizer, Any]], text: str) -> None:
    for ours, theirs in loaded:
        assert theirs(text, add_special_tokens=False)["input_ids"] == _ids(ours, text)


def test_dummies_are_never_split_and_found_as_they_are_written() -> None:
    tokenizer = wordpiece(Casing(True, True))
    assert tokenizer.encode("a@GENE$b", add_special_tokens=False).tokens == ["a", "@GENE$", "b"]
    assert "@GENE$" not in tokenizer.encode("@gene$", add_special_tokens=False).tokens


def test_a_decoded_text_has_its_words_again() -> None:
    tokenizer = wordpiece(Casing())
    assert tokenizer.decode(_ids(tokenizer, "IL binds naloxone")) == "IL binds naloxone"


@pytest.mark.parametrize(
    ("unused", "expected"),
    [
        (0, ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "@GENE$"]),
        (2, ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "@GENE$"]),
    ],
)
def test_where_the_reserved_tokens_are(unused: int, expected: list[str]) -> None:
    assert (
        VocabularyRecipe(num_unused_tokens=unused, entity_placeholders=("@GENE$",)).reserved_tokens
        == expected
    )


def test_where_they_are_in_a_sentencepiece_model() -> None:
    reserved = VocabularyRecipe(
        algorithm="unigram", sentencepiece=True, num_unused_tokens=1, entity_placeholders=("@GENE$",)
    ).reserved_tokens
    assert reserved == ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "@GENE$"]
