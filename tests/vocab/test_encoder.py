"""The encoder gives the same ids as the tokenizers library for any text."""

from __future__ import annotations

import pickle
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers, processors, trainers
from tokenizers.models import BPE, Unigram, WordPiece

from bioshards.vocab import encode
from bioshards.vocab.encode import Encoder
from bioshards.vocab.encoder.chunk_encoders import BoundedCache
from tests.support.hypothesis_profiles import examples

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SAMPLE_TEXT = (
    "The kinase phosphorylates its substrate in vitro; binding (p<0.05) rose 3-fold at 37 °C. "
    "β-catenin, naïve T-cells and Å-scale résumés: IL-6/STAT3 signalling, \"quoted\" and 'so on'. "
    "Ein Überblick über Zellen. Клетки растут. τα κύτταρα ΣΑΣ. 細胞の成長 세포 cells cellular unlike likely "
)
HOSTILE = [
    *("", " ", "  ", " a", "a ", " a  b ", "a\tb", "a\nb\r\nc", "a\u00a0b", "a\u2028b\u2029c"),
    "\x1c\x1d\x1e\x1f",
    *("a\x1cb", "\x00", "a\x00b", "\x7f", "a\u200bb", "a\ufeffb", "a\u00adb", "\ufffd", "\U000f0000"),
    "\u3000x\u3000",
    *("e\u0301", "\u0301", "a \u0301b", "a \u0302\u0316", "\u0344", "\u1b44\u302e\u0316", "q\u0323\u0307"),
    "ǖ",
    *("ﷺ", "ﬁn", "①", "ﾊﾟ", "½", "´", "a ´ b", "¨", "῁", "İ", "ẞß", "ΣΑΣ ΣΑΣ.", "ς", "ſ", "\u212a", "Ω"),
    "ǅ",
    *("अनुच्छेद", "क्ष", "กำ", "नी नि", "\u0600 \u0301", "\u0600a", "שָׁלוֹם", "العَرَبِيَّة"),
    *("\u202eabc\u202c", "𝐱𝒩"),
    *("細胞", "a細b", "한국어", "각", "\u1112\u1161\u11ab", "👩‍👩‍👧", "👍🏽", "🇩🇪🇫🇷", "☎️", "1\u20e3", "が"),
    "か\u3099",
    *("[MASK]", "[mask]", "a[MASK]b", " [MASK] ", "[MASK][SEP]", "[[MASK]]", "[MA SK]", "[UNK]s"),
    *("x [CLS]", "[PAD"),
    *("@GENE$", "(@GENE$)", "@gene$", "@GENE$s", "@GENE$-@GENE$", "unused1", "unused12", "Unused1"),
    "[unused1]",
    *("##a", "a##b", "▁", "▁a", "a▁b", "▁▁", "``x''", "''", "` `", "a``", "'' ''"),
    *("x" * 99, "x" * 100, "x" * 101, "é" * 100, "é" * 101, "e\u0301" * 60, "," * 101),
    "a" * 100 + "-" + "b" * 101,
    *("cells" * 50_000, "a.b" * 30_000, "é-" * 20_000, "細" * 5_000, "word " * 3_000),
]


def make_bert_tokenizer(
    lower: bool, strip: bool | None, num_extra_ids: int = 0, added_tokens: list[AddedToken] | None = None
) -> Tokenizer:
    """Train a WordPiece tokenizer on the sample text."""
    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=strip, lowercase=lower
    )
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator([SAMPLE_TEXT], trainer)
    if num_extra_ids:
        vocab = tokenizer.get_vocab() | {f"filler{n}": 100_000 + n for n in range(num_extra_ids)}
        tokenizer.model = WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100)
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.add_special_tokens(added_tokens or [])
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def make_albert_tokenizer(mask: AddedToken | str = "[MASK]") -> Tokenizer:
    """Train a Unigram tokenizer with ALBERT's normalizer and pre-tokenizer."""
    tokenizer = Tokenizer(Unigram())
    tokenizer.normalizer = normalizers.Sequence(
        [
            *(normalizers.Replace("``", '"'), normalizers.Replace("''", '"')),
            *(normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]"]
    trainer = trainers.UnigramTrainer(
        vocab_size=150, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator([SAMPLE_TEXT], trainer)
    tokenizer.add_special_tokens([*special, mask])
    return tokenizer


def keep_accents(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC()])
    return tokenizer


def add_token(tokenizer: Tokenizer, token: AddedToken) -> Tokenizer:
    """Add a token that is not special."""
    tokenizer.add_tokens([token])
    return tokenizer


PLACEHOLDERS = [AddedToken("@GENE$"), AddedToken("unused1", single_word=True), AddedToken("[x]", rstrip=True)]
KINDS: dict[str, Callable[[], Tokenizer]] = {
    "cased": lambda: make_bert_tokenizer(False, False),
    "uncased": lambda: make_bert_tokenizer(True, True),
    "uncased by default": lambda: make_bert_tokenizer(True, None),
    "lower case, accents kept": lambda: make_bert_tokenizer(True, False),
    "cased, accents stripped": lambda: make_bert_tokenizer(False, True),
    "dummies": lambda: make_bert_tokenizer(True, True, added_tokens=PLACEHOLDERS),
    "many ids": lambda: make_bert_tokenizer(True, True, num_extra_ids=5),
    "normalised token": lambda: add_token(make_bert_tokenizer(True, True), AddedToken("@gène$")),
    "unigram": make_albert_tokenizer,
    "unigram, lstrip": lambda: make_albert_tokenizer(AddedToken("[MASK]", lstrip=True)),
    "unigram, rstrip": lambda: make_albert_tokenizer(AddedToken("[MASK]", rstrip=True)),
    "unigram, nfkc": lambda: keep_accents(make_albert_tokenizer()),
    "unigram, normalised token": lambda: add_token(make_albert_tokenizer(), AddedToken("@gène$")),
}


def save_tokenizer(folder: Path, tokenizer: Tokenizer) -> str:
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return str(folder)


@pytest.fixture(scope="module")
def tokenizer_pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Tokenizer, Encoder]]:
    """The library's tokenizer and the encoder of the same directory, by kind."""
    root = tmp_path_factory.mktemp("vocabularies")
    pairs = {}
    for name, make in KINDS.items():
        folder = save_tokenizer(root / name, make())
        pairs[name] = Tokenizer.from_file(f"{folder}/tokenizer.json"), Encoder(folder)
    return pairs


def assert_same_ids(pair: tuple[Tokenizer, Encoder], texts: list[str]) -> None:
    """Check the encoder's ids of each text, alone and in a batch, against the library's."""
    library, encoder = pair
    expected = [library.encode(text, add_special_tokens=False).ids for text in texts]
    for text, ids in zip(texts, expected, strict=True):
        assert encoder.encode(text) == ids, text[:200]
    assert_batch_ids(encoder, texts, expected)


def assert_batch_ids(encoder: Encoder, texts: list[str] | pa.Array, expected: list[list[int]]) -> None:
    encoded = encoder.encode_all(texts)
    assert encoded.offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert encoded.ids.tolist() == [number for ids in expected for number in ids]


@pytest.mark.thorough
@pytest.mark.parametrize("kind", KINDS)
def test_unusual_text_has_the_ids_of_the_library(
    kind: str, tokenizer_pairs: dict[str, tuple[Tokenizer, Encoder]]
) -> None:
    assert_same_ids(tokenizer_pairs[kind], [*HOSTILE, SAMPLE_TEXT, " ".join(HOSTILE), "".join(HOSTILE)])


PARTS = st.one_of(
    st.sampled_from([text for text in HOSTILE if len(text) < 120]),
    st.sampled_from(SAMPLE_TEXT.split()),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.text(st.characters(categories=["Mn", "Mc", "Me", "Cf", "Zs", "Cc"]), max_size=3),
    st.text(st.characters(max_codepoint=0x2BFF), max_size=6),
    st.text(st.characters(max_codepoint=0x7F), max_size=6),
    st.sampled_from([" ", "  ", "\t", "a", "[", "]"]),
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=examples(150))
@given(texts=st.lists(st.lists(PARTS, max_size=8).map("".join), max_size=4))
def test_any_text_has_the_ids_of_the_library(
    kind: str, tokenizer_pairs: dict[str, tuple[Tokenizer, Encoder]], texts: list[str]
) -> None:
    assert_same_ids(tokenizer_pairs[kind], texts)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["cased", "uncased", "lower case, accents kept", "unigram"])
def test_every_character_has_the_ids_of_the_library(
    kind: str, tokenizer_pairs: dict[str, tuple[Tokenizer, Encoder]]
) -> None:
    """Each is alone, within a word and doubled. Above U+2C00 one character in thirteen is tested."""
    library, encoder = tokenizer_pairs[kind]
    codes = [*range(0x2C00), *range(0x2C00 + len(kind) % 13, sys.maxunicode + 1, 13)]
    characters = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
    texts = []
    for start in range(0, len(characters), 100):
        chunk = characters[start : start + 100]
        texts.append(" ".join(f"{c} a{c}b{c}{c}" for c in chunk))
    expected = [encoding.ids for encoding in library.encode_batch_fast(texts, add_special_tokens=False)]
    assert_batch_ids(encoder, texts, expected)


def test_context_free_characters_have_no_combining_marks() -> None:
    from bioshards.vocab.encoder.chunk_encoders import _CONTEXT_FREE

    characters = [chr(code) for code in range(sys.maxunicode + 1) if _CONTEXT_FREE.match(chr(code))]
    assert not [c for c in characters if unicodedata.combining(c) or unicodedata.category(c).startswith("M")]
    assert all(unicodedata.combining(unicodedata.normalize("NFD", c)[0]) == 0 for c in characters)


@pytest.mark.parametrize("kind", ["uncased", "unigram"])
def test_lone_surrogate_raises_as_in_the_library(
    kind: str, tokenizer_pairs: dict[str, tuple[Tokenizer, Encoder]]
) -> None:
    library, encoder = tokenizer_pairs[kind]
    for text in ("\ud800", "a \udfff b"):
        with pytest.raises(TypeError):
            library.encode(text)
        with pytest.raises(TypeError):
            encoder.encode(text)
        with pytest.raises(TypeError, match="surrogate"):
            encoder.encode_all(["fine", text])


def test_other_types_than_strings_are_refused(tokenizer_pairs: dict[str, tuple[Tokenizer, Encoder]]) -> None:
    encoder: Any = tokenizer_pairs["uncased"][1]
    wrong: Any
    for wrong in (None, 5, b"bytes", ["list"]):
        with pytest.raises(TypeError):
            encoder.encode(wrong)
    for wrong in ([None], ["a", None], [5], pa.array(["a", None])):
        with pytest.raises(TypeError):
            encoder.encode_all(wrong)


def test_sentences_may_be_an_arrow_array(tokenizer_pairs: dict[str, tuple[Tokenizer, Encoder]]) -> None:
    library, encoder = tokenizer_pairs["uncased"]
    texts = [text for text in HOSTILE if len(text) < 200]
    expected = [library.encode(text, add_special_tokens=False).ids for text in texts]
    for kind in (pa.string(), pa.large_string()):
        array = pa.array(["before", *texts, "after"], kind)
        assert_batch_ids(encoder, array[1:-1], expected)
        rows = pa.array([["x", "y"], texts, ["z"]], pa.list_(kind))[1:2]  # a column of shards, sliced
        assert_batch_ids(encoder, rows.flatten(), expected)


def test_ids_are_uint16_or_uint32_and_convert_to_arrow(
    tokenizer_pairs: dict[str, tuple[Tokenizer, Encoder]],
) -> None:
    for kind, width in (("uncased", np.uint16), ("many ids", np.uint32)):
        library, encoder = tokenizer_pairs[kind]
        texts = ["cells grow", "", "filler3 likely"]
        encoded = encoder.encode_all(texts)
        assert encoded.ids.dtype == width
        lists = pa.LargeListArray.from_arrays(pa.array(encoded.offsets), pa.array(encoded.ids))
        assert lists.to_pylist() == [library.encode(text, add_special_tokens=False).ids for text in texts]
    assert tokenizer_pairs["many ids"][1].size == 100_005


def test_more_sentences_than_one_batch(
    tokenizer_pairs: dict[str, tuple[Tokenizer, Encoder]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "_BATCH_SENTENCES", 3)
    texts = [text for text in HOSTILE if len(text) < 200]
    for number in (0, 1, 3, 4, len(texts)):
        assert_same_ids(tokenizer_pairs["uncased"], texts[:number])
    assert_same_ids(tokenizer_pairs["uncased"], ["", " ", "\x00", ""])


def test_cache_size_is_bounded_and_ids_are_correct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The texts have many distinct chunks, so that the cache fills up repeatedly."""
    monkeypatch.setattr(encode, "CACHE_BYTES", 500_000)
    for tokenizer in (make_bert_tokenizer(True, True), make_albert_tokenizer()):
        folder = save_tokenizer(tmp_path / "one", tokenizer)
        library, encoder = Tokenizer.from_file(f"{folder}/tokenizer.json"), Encoder(folder)
        caches = [encoder._chunk_cache, getattr(encoder._chunk_cache._compute, "_word_cache", {})]
        max_bytes = [0, 0]
        for start in range(0, 4_000, 400):
            texts = [f"cell{n} (é{n * 7919}) {'y' * (n % 30)}{n} again" for n in range(start, start + 400)]
            expected = [result.ids for result in library.encode_batch_fast(texts, add_special_tokens=False)]
            assert_batch_ids(encoder, texts, expected)
            assert [encoder.encode(text) for text in texts] == expected
            for number, result in enumerate(caches):
                entry_bytes = sum(sys.getsizeof(key) + sys.getsizeof(ids) for key, ids in result.items())
                max_bytes[number] = max(max_bytes[number], entry_bytes + sys.getsizeof(result))
        assert sum(max_bytes) <= 500_000
        assert max_bytes[0] > 150_000


def _make_constant_function(ids: bytes) -> Callable[[list[str]], list[bytes]]:
    return lambda keys: [bytes(bytearray(ids)) for _ in keys]  # new objects each time


def test_cache_limit_holds_for_entries_of_any_size() -> None:
    for key, ids in (
        ("x", b""),
        ("x" * 20, b"12345678"),
        ("\U0001f600" * 20, bytes(200)),
        ("é" * 100, bytes(64)),
    ):
        cache, max_bytes = BoundedCache(_make_constant_function(ids), 1_000_000), 0
        for number in range(20_000):
            assert cache.get_many([f"{key}{number}"]) == [ids]
            entry_bytes = len(cache) * (sys.getsizeof(f"{key}{number}") + sys.getsizeof(ids))
            max_bytes = max(max_bytes, entry_bytes + sys.getsizeof(cache))
        assert 500_000 < max_bytes <= 1_100_000


@pytest.mark.thorough
def test_long_chunks_are_not_cached(tokenizer_pairs: dict[str, tuple[Tokenizer, Encoder]]) -> None:
    for kind in ("uncased", "unigram"):
        library, encoder = tokenizer_pairs[kind]
        text = "z" * 1_000_000 + "-short"
        assert encoder.encode(text) == library.encode(text, add_special_tokens=False).ids
        assert text not in encoder._chunk_cache
        assert encoder.encode("a short one")
        assert max(map(len, encoder._chunk_cache)) < 512


@pytest.mark.parametrize("kind", ["dummies", "many ids", "unigram, lstrip"])
def test_pickled_encoder_has_no_cache(
    kind: str, tokenizer_pairs: dict[str, tuple[Tokenizer, Encoder]]
) -> None:
    library, encoder = tokenizer_pairs[kind]
    encoder.encode(SAMPLE_TEXT)
    pickled = pickle.dumps(encoder)
    assert len(pickled) < len(library.to_str(pretty=True).encode()) + 1_000
    again = pickle.loads(pickled)
    assert not again._chunk_cache
    assert (again.size, again.special_ids) == (encoder.size, encoder.special_ids)
    assert_same_ids((library, again), HOSTILE[:60])


@pytest.mark.parametrize("kind", ["cased", "uncased", "unigram"])
def test_special_tokens_in_text_are_encoded_as_text_on_request(kind: str, tmp_path: Path) -> None:
    """Text may contain "[MASK]", and only the objectives may insert the token."""
    library = KINDS[kind]()
    encoder = pickle.loads(pickle.dumps(Encoder(save_tokenizer(tmp_path, library), special_as_text=True)))
    library.encode_special_tokens = True
    texts = ["We hide [MASK] and x[SEP]y.", "[CLS]", "plain words", "[CLS] [PAD][UNK] [MASK]."]
    assert_same_ids((library, encoder), texts)
    assert not {encoder.special_ids["[CLS]"], encoder.special_ids["[SEP]"]} & set(
        encoder.encode(" ".join(texts))
    )


def test_size_and_special_ids(tokenizer_pairs: dict[str, tuple[Tokenizer, Encoder]]) -> None:
    library, encoder = tokenizer_pairs["dummies"]
    assert encoder.size == library.get_vocab_size()
    assert encoder.special_ids == {
        token: library.token_to_id(token) for token in [*SPECIAL, "@GENE$", "unused1", "[x]"]
    }


@pytest.mark.parametrize("kind", KINDS)
def test_vocabulary_and_unknown_id_equal_those_of_the_library(
    kind: str, tokenizer_pairs: dict[str, tuple[Tokenizer, Encoder]]
) -> None:
    library, encoder = tokenizer_pairs[kind]
    assert encoder.get_vocab() == library.get_vocab(with_added_tokens=True)
    assert 1 + max(encoder.get_vocab().values()) == encoder.size
    name = "<unk>" if "unigram" in kind else "[UNK]"
    assert encoder.unknown_id == library.token_to_id(name)
    assert encoder.encode("\U000f0000a 𓀀𓀁").count(encoder.unknown_id) >= 1
    assert encoder.is_sentencepiece == ("unigram" in kind)
    again = pickle.loads(pickle.dumps(encoder))
    assert (again.unknown_id, again.is_sentencepiece, again.get_vocab()) == (
        encoder.unknown_id,
        encoder.is_sentencepiece,
        encoder.get_vocab(),
    )


def test_unknown_id_comes_from_the_model(tmp_path: Path) -> None:
    """[UNK] may be a piece without being an added token, have another name, or be absent."""
    word_piece = Tokenizer(WordPiece({"cell": 0, "[UNK]": 1, "<?>": 2}, unk_token="<?>"))
    word_piece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    word_piece.add_special_tokens(["[UNK]"])
    encoder = Encoder(save_tokenizer(tmp_path / "1", word_piece))
    assert (encoder.unknown_id, encoder.encode("cell mice")) == (2, [0, 2])
    for number, expected in ((None, -1), (0, 0), (1, 1)):
        model = Unigram([("a", -1.0), ("odd", -2.0), ("\u2581", -3.0)], unk_id=number)
        tokenizer = _set_pre_tokenizer(
            Tokenizer(model), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()
        )
        assert Encoder(save_tokenizer(tmp_path / str(number), tokenizer)).unknown_id == expected


def test_error_names_missing_or_invalid_tokenizer_json(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere is not a directory.*bioshards vocab build"):
        Encoder(str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer\.json.*bioshards vocab build"):
        Encoder(str(tmp_path))
    for wrong in (b"", b"{", b"{}", b"\xff\xfe", b"[1]", b'{"version": "1.0"}'):
        (tmp_path / "tokenizer.json").write_bytes(wrong)
        with pytest.raises(ValueError, match=r"tokenizer\.json cannot be read.*build"):
            Encoder(str(tmp_path))


def _set_pre_tokenizer(tokenizer: Tokenizer, *steps: Any) -> Tokenizer:
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(list(steps)) if len(steps) > 1 else steps[0]
    return tokenizer


def _set_normalizer(tokenizer: Tokenizer, *steps: Any) -> Tokenizer:
    tokenizer.normalizer = normalizers.Sequence(list(steps))
    return tokenizer


def _enable_truncation(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.enable_truncation(8)
    return tokenizer


def _enable_padding(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.enable_padding()
    return tokenizer


FIRST = pre_tokenizers.Metaspace(prepend_scheme="first")
UNSUPPORTED: dict[str, tuple[Callable[[], Tokenizer], str]] = {
    "metaspace": (
        lambda: _set_pre_tokenizer(make_albert_tokenizer(), pre_tokenizers.Metaspace()),
        "pre-tokenizer",
    ),
    "first": (
        lambda: _set_pre_tokenizer(make_albert_tokenizer(), pre_tokenizers.WhitespaceSplit(), FIRST),
        "pre-tokenizer",
    ),
    "none": (lambda: Tokenizer(WordPiece({"[UNK]": 0}, unk_token="[UNK]")), "pre-tokenizer"),
    "prepend": (lambda: _set_normalizer(make_albert_tokenizer(), normalizers.Prepend("x")), r"\(Prepend\)"),
    "replace": (
        lambda: _set_normalizer(make_albert_tokenizer(), normalizers.Replace("a b", "ab")),
        r"\(Replace\)",
    ),
    "regex": (
        lambda: _set_normalizer(make_albert_tokenizer(), normalizers.Replace(Regex(r"a\s+b"), "ab")),
        r"\(Replace\)",
    ),
    "byte level": (
        lambda: _set_normalizer(make_albert_tokenizer(), normalizers.ByteLevel()),
        r"\(ByteLevel\)",
    ),
    "blank": (
        lambda: make_bert_tokenizer(True, True, added_tokens=[AddedToken("two words")]),
        "added token.*'two words'",
    ),
    "ideograph": (lambda: add_token(make_bert_tokenizer(True, True), AddedToken("細")), "added token.*'細'"),
    "truncation": (lambda: _enable_truncation(make_bert_tokenizer(True, True)), "truncation"),
    "padding": (lambda: _enable_padding(make_bert_tokenizer(True, True)), "padding"),
    "unk": (
        lambda: _set_pre_tokenizer(Tokenizer(WordPiece({"a": 0})), pre_tokenizers.BertPreTokenizer()),
        r"no \[UNK\]",
    ),
    "bpe": (lambda: _set_pre_tokenizer(Tokenizer(BPE()), pre_tokenizers.BertPreTokenizer()), "a BPE model"),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_tokenizer_that_cannot_be_encoded_by_chunk_is_refused(name: str, tmp_path: Path) -> None:
    make, reason = UNSUPPORTED[name]
    folder = save_tokenizer(tmp_path / "vocabulary", make())
    with pytest.raises(ValueError, match=rf"tokenizer\.json has .*{reason}.*chunk by chunk\. Encode with"):
        Encoder(folder)


def test_other_tokenizers_that_split_at_blanks_have_the_same_ids(tmp_path: Path) -> None:
    """The general path encodes them, as their normalizer or pre-tokenizer is not BERT's or ALBERT's."""
    tokenizers = [
        _set_normalizer(make_bert_tokenizer(True, True), normalizers.NFC(), normalizers.Lowercase()),
        _set_pre_tokenizer(make_albert_tokenizer(), pre_tokenizers.BertPreTokenizer()),
    ]
    tokenizers[0].normalizer = normalizers.Sequence([normalizers.NFC()])
    for number, tokenizer in enumerate(tokenizers):
        folder = save_tokenizer(tmp_path / str(number), tokenizer)
        pair = Tokenizer.from_file(f"{folder}/tokenizer.json"), Encoder(folder)
        assert_same_ids(pair, [text[:5_000] for text in HOSTILE])


def test_only_tokenizer_json_is_read(tmp_path: Path) -> None:
    folder = save_tokenizer(tmp_path / "vocabulary", make_bert_tokenizer(True, True))
    for name in ("vocab.txt", "tokenizer_config.json"):
        (Path(folder) / name).write_text("nonsense")
    library = Tokenizer.from_file(f"{folder}/tokenizer.json")
    assert_same_ids((library, Encoder(folder)), ["cells"])
