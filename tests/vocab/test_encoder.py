"""The encoder against the tokenizers library: the same ids, whatever the text."""

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

from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab import encode
from bioshards.vocab.encode import Encoder
from bioshards.vocab.encoder.bounded_cache import BoundedCache
from tests.support.real_data import DATA, needs_data

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
INVENTED = (
    "The kinase phosphorylates its substrate in vitro; binding (p<0.05) rose 3-fold at 37 °C. "
    "β-catenin, naïve T-cells and Å-scale résumés: IL-6/STAT3 signalling, \"quoted\" and 'so on'. "
    "Ein Überblick über Zellen. Клетки растут. τα κύτταρα ΣΑΣ. 細胞の成長 세포 cells cellular unlike likely "
)
HOSTILE = [
    *(
        "",
        " ",
        "  ",
        " a",
        "a ",
        " a  b ",
        "a\tb",
        "a\nb\r\nc",
        "a\u00a0b",
        "a\u2028b\u2029c",
        "\x1c\x1d\x1e\x1f",
    ),
    *(
        "a\x1cb",
        "\x00",
        "a\x00b",
        "\x7f",
        "a\u200bb",
        "a\ufeffb",
        "a\u00adb",
        "\ufffd",
        "\U000f0000",
        "\u3000x\u3000",
    ),
    *(
        "e\u0301",
        "\u0301",
        "a \u0301b",
        "a \u0302\u0316",
        "\u0344",
        "\u1b44\u302e\u0316",
        "q\u0323\u0307",
        "ǖ",
    ),
    *("ﷺ", "ﬁn", "①", "ﾊﾟ", "½", "´", "a ´ b", "¨", "῁", "İ", "ẞß", "ΣΑΣ ΣΑΣ.", "ς", "ſ", "\u212a", "Ω", "ǅ"),
    *("अनुच्छेद", "क्ष", "กำ", "नी नि", "\u0600 \u0301", "\u0600a", "שָׁלוֹם", "العَرَبِيَّة", "\u202eabc\u202c", "𝐱𝒩"),
    *(
        "細胞",
        "a細b",
        "한국어",
        "각",
        "\u1112\u1161\u11ab",
        "👩‍👩‍👧",
        "👍🏽",
        "🇩🇪🇫🇷",
        "☎️",
        "1\u20e3",
        "が",
        "か\u3099",
    ),
    *(
        "[MASK]",
        "[mask]",
        "a[MASK]b",
        " [MASK] ",
        "[MASK][SEP]",
        "[[MASK]]",
        "[MA SK]",
        "[UNK]s",
        "x [CLS]",
        "[PAD",
    ),
    *(
        "@GENE$",
        "(@GENE$)",
        "@gene$",
        "@GENE$s",
        "@GENE$-@GENE$",
        "unused1",
        "unused12",
        "Unused1",
        "[unused1]",
    ),
    *("##a", "a##b", "▁", "▁a", "a▁b", "▁▁", "``x''", "''", "` `", "a``", "'' ''"),
    *(
        "x" * 99,
        "x" * 100,
        "x" * 101,
        "é" * 100,
        "é" * 101,
        "e\u0301" * 60,
        "," * 101,
        "a" * 100 + "-" + "b" * 101,
    ),
    *("cells" * 50_000, "a.b" * 30_000, "é-" * 20_000, "細" * 5_000, "word " * 3_000),
]


def bert(lower: bool, strip: bool | None, extra: int = 0, added: list[AddedToken] | None = None) -> Tokenizer:
    """A WordPiece tokenizer, trained upon the invented text."""
    made = Tokenizer(WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=strip, lowercase=lower
    )
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=400, special_tokens=SPECIAL, show_progress=False)
    made.train_from_iterator([INVENTED], trainer)
    if extra:
        vocab = made.get_vocab() | {f"filler{n}": 100_000 + n for n in range(extra)}
        made.model = WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100)
    made.add_special_tokens(SPECIAL)
    made.add_special_tokens(added or [])
    made.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return made


def albert(mask: AddedToken | str = "[MASK]") -> Tokenizer:
    """A Unigram tokenizer of ALBERT's shape."""
    made = Tokenizer(Unigram())
    made.normalizer = normalizers.Sequence(
        [
            *(normalizers.Replace("``", '"'), normalizers.Replace("''", '"')),
            *(normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()),
            normalizers.Replace(Regex(" {2,}"), " "),
        ]
    )
    made.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")]
    )
    special = ["<pad>", "<unk>", "[CLS]", "[SEP]"]
    trainer = trainers.UnigramTrainer(
        vocab_size=150, special_tokens=special, unk_token="<unk>", show_progress=False
    )
    made.train_from_iterator([INVENTED], trainer)
    made.add_special_tokens([*special, mask])
    return made


def with_accents_kept(made: Tokenizer) -> Tokenizer:
    made.normalizer = normalizers.Sequence([normalizers.NFKC()])
    return made


def with_token(made: Tokenizer, token: AddedToken) -> Tokenizer:
    """With an added token that is not special."""
    made.add_tokens([token])
    return made


DUMMIES = [AddedToken("@GENE$"), AddedToken("unused1", single_word=True), AddedToken("[x]", rstrip=True)]
KINDS: dict[str, Callable[[], Tokenizer]] = {
    "cased": lambda: bert(False, False),
    "uncased": lambda: bert(True, True),
    "uncased by default": lambda: bert(True, None),
    "lower case, accents kept": lambda: bert(True, False),
    "cased, accents stripped": lambda: bert(False, True),
    "dummies": lambda: bert(True, True, added=DUMMIES),
    "many ids": lambda: bert(True, True, extra=5),
    "normalised token": lambda: with_token(bert(True, True), AddedToken("@gène$")),
    "unigram": albert,
    "unigram, lstrip": lambda: albert(AddedToken("[MASK]", lstrip=True)),
    "unigram, rstrip": lambda: albert(AddedToken("[MASK]", rstrip=True)),
    "unigram, nfkc": lambda: with_accents_kept(albert()),
    "unigram, normalised token": lambda: with_token(albert(), AddedToken("@gène$")),
}


def saved(folder: Path, tokenizer: Tokenizer) -> str:
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return str(folder)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Tokenizer, Encoder]]:
    """By kind: the library's tokenizer and the encoder of the same folder."""
    root = tmp_path_factory.mktemp("vocabularies")
    found = {}
    for name, make in KINDS.items():
        folder = saved(root / name, make())
        found[name] = Tokenizer.from_file(f"{folder}/tokenizer.json"), Encoder(folder)
    return found


def check(pair: tuple[Tokenizer, Encoder], texts: list[str]) -> None:
    """The encoder's ids of each text, alone and together, are the library's."""
    library, encoder = pair
    expected = [library.encode(text, add_special_tokens=False).ids for text in texts]
    for text, ids in zip(texts, expected, strict=True):
        assert encoder.encode(text) == ids, text[:200]
    together(encoder, texts, expected)


def together(encoder: Encoder, texts: list[str] | pa.Array, expected: list[list[int]]) -> None:
    encoded = encoder.encode_all(texts)
    assert encoded.offsets.tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    assert encoded.ids.tolist() == [number for ids in expected for number in ids]


@pytest.mark.parametrize("kind", KINDS)
def test_hostile_text_has_the_librarys_ids(kind: str, pairs: dict[str, tuple[Tokenizer, Encoder]]) -> None:
    check(pairs[kind], [*HOSTILE, INVENTED, " ".join(HOSTILE), "".join(HOSTILE)])


PARTS = st.one_of(
    st.sampled_from([text for text in HOSTILE if len(text) < 120]),
    st.sampled_from(INVENTED.split()),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    st.text(st.characters(categories=["Mn", "Mc", "Me", "Cf", "Zs", "Cc"]), max_size=3),
    st.text(st.characters(max_codepoint=0x2BFF), max_size=6),
    st.text(st.characters(max_codepoint=0x7F), max_size=6),
    st.sampled_from([" ", "  ", "\t", "a", "[", "]"]),
)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=150, deadline=None)
@given(texts=st.lists(st.lists(PARTS, max_size=8).map("".join), max_size=4))
def test_any_text_has_the_librarys_ids(
    kind: str, pairs: dict[str, tuple[Tokenizer, Encoder]], texts: list[str]
) -> None:
    check(pairs[kind], texts)


@pytest.mark.parametrize("kind", ["cased", "uncased", "lower case, accents kept", "unigram"])
def test_every_character_is_encoded_as_by_the_library(
    kind: str, pairs: dict[str, tuple[Tokenizer, Encoder]]
) -> None:
    """Alone, within a word and twice after a letter; of those beyond the table's, one in thirteen."""
    library, encoder = pairs[kind]
    codes = [*range(0x2C00), *range(0x2C00 + len(kind) % 13, sys.maxunicode + 1, 13)]
    characters = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
    texts = []
    for start in range(0, len(characters), 100):
        some = characters[start : start + 100]
        texts.append(" ".join(f"{c} a{c}b{c}{c}" for c in some))
    expected = [found.ids for found in library.encode_batch_fast(texts, add_special_tokens=False)]
    together(encoder, texts, expected)


@pytest.mark.parametrize("kind", ["cased", "uncased"])
def test_the_characters_of_the_table_depend_on_no_neighbour(kind: str) -> None:
    from bioshards.vocab.encoder.chunk_encoders import _CONTEXT_FREE

    characters = [chr(code) for code in range(sys.maxunicode + 1) if _CONTEXT_FREE.match(chr(code))]
    assert not [c for c in characters if unicodedata.combining(c) or unicodedata.category(c).startswith("M")]
    assert all(unicodedata.combining(unicodedata.normalize("NFD", c)[0]) == 0 for c in characters)


@pytest.mark.parametrize("kind", ["uncased", "unigram"])
def test_a_lone_surrogate_raises_as_in_the_library(
    kind: str, pairs: dict[str, tuple[Tokenizer, Encoder]]
) -> None:
    library, encoder = pairs[kind]
    for text in ("\ud800", "a \udfff b"):
        with pytest.raises(TypeError):
            library.encode(text)
        with pytest.raises(TypeError):
            encoder.encode(text)
        with pytest.raises(TypeError, match="surrogate"):
            encoder.encode_all(["fine", text])


def test_what_is_no_string_is_refused(pairs: dict[str, tuple[Tokenizer, Encoder]]) -> None:
    encoder: Any = pairs["uncased"][1]
    wrong: Any
    for wrong in (None, 5, b"bytes", ["list"]):
        with pytest.raises(TypeError):
            encoder.encode(wrong)
    for wrong in ([None], ["a", None], [5], pa.array(["a", None])):
        with pytest.raises(TypeError):
            encoder.encode_all(wrong)


def test_sentences_may_be_an_arrow_array(pairs: dict[str, tuple[Tokenizer, Encoder]]) -> None:
    library, encoder = pairs["uncased"]
    texts = [text for text in HOSTILE if len(text) < 200]
    expected = [library.encode(text, add_special_tokens=False).ids for text in texts]
    for kind in (pa.string(), pa.large_string()):
        array = pa.array(["before", *texts, "after"], kind)
        together(encoder, array[1:-1], expected)
        rows = pa.array([["x", "y"], texts, ["z"]], pa.list_(kind))[1:2]  # a column of shards, sliced
        together(encoder, rows.flatten(), expected)


def test_ids_take_two_bytes_or_four_and_go_to_arrow_as_they_are(
    pairs: dict[str, tuple[Tokenizer, Encoder]],
) -> None:
    for kind, width in (("uncased", np.uint16), ("many ids", np.uint32)):
        library, encoder = pairs[kind]
        texts = ["cells grow", "", "filler3 likely"]
        encoded = encoder.encode_all(texts)
        assert encoded.ids.dtype == width
        lists = pa.LargeListArray.from_arrays(pa.array(encoded.offsets), pa.array(encoded.ids))
        assert lists.to_pylist() == [library.encode(text, add_special_tokens=False).ids for text in texts]
    assert pairs["many ids"][1].size == 100_005


def test_more_sentences_than_are_split_at_a_time(
    pairs: dict[str, tuple[Tokenizer, Encoder]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encode, "_BATCH_SENTENCES", 3)
    texts = [text for text in HOSTILE if len(text) < 200]
    for number in (0, 1, 3, 4, len(texts)):
        check(pairs["uncased"], texts[:number])
    check(pairs["uncased"], ["", " ", "\x00", ""])


def test_memory_is_bounded_and_ids_stay_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ever new chunks, of which memory is full again and again."""
    monkeypatch.setattr(encode, "CACHE_BYTES", 500_000)
    for tokenizer in (bert(True, True), albert()):
        folder = saved(tmp_path / "one", tokenizer)
        library, encoder = Tokenizer.from_file(f"{folder}/tokenizer.json"), Encoder(folder)
        remembered = [encoder._chunk_cache, getattr(encoder._chunk_cache._compute, "_word_cache", {})]
        most = [0, 0]
        for start in range(0, 4_000, 400):
            texts = [f"cell{n} (é{n * 7919}) {'y' * (n % 30)}{n} again" for n in range(start, start + 400)]
            expected = [found.ids for found in library.encode_batch_fast(texts, add_special_tokens=False)]
            together(encoder, texts, expected)
            assert [encoder.encode(text) for text in texts] == expected
            for number, found in enumerate(remembered):
                held = sum(sys.getsizeof(key) + sys.getsizeof(ids) for key, ids in found.items())
                most[number] = max(most[number], held + sys.getsizeof(found))
        assert sum(most) <= 500_000
        assert most[0] > 150_000


def _always(ids: bytes) -> Callable[[list[str]], list[bytes]]:
    return lambda keys: [bytes(bytearray(ids)) for _ in keys]  # new objects each time


def test_memory_holds_what_it_says_of_entries_of_any_size() -> None:
    for key, ids in (
        ("x", b""),
        ("x" * 20, b"12345678"),
        ("\U0001f600" * 20, bytes(200)),
        ("é" * 100, bytes(64)),
    ):
        found, most = BoundedCache(_always(ids), 1_000_000), 0
        for number in range(20_000):
            assert found.get_many([f"{key}{number}"]) == [ids]
            held = len(found) * (sys.getsizeof(f"{key}{number}") + sys.getsizeof(ids))
            most = max(most, held + sys.getsizeof(found))
        assert 500_000 < most <= 1_100_000


def test_long_chunks_are_not_remembered(pairs: dict[str, tuple[Tokenizer, Encoder]]) -> None:
    for kind in ("uncased", "unigram"):
        library, encoder = pairs[kind]
        text = "z" * 1_000_000 + "-short"
        assert encoder.encode(text) == library.encode(text, add_special_tokens=False).ids
        assert text not in encoder._chunk_cache
        assert encoder.encode("a short one")
        assert max(map(len, encoder._chunk_cache)) < 512


@pytest.mark.parametrize("kind", ["dummies", "many ids", "unigram, lstrip"])
def test_a_pickled_encoder_is_its_tokenizer_alone(
    kind: str, pairs: dict[str, tuple[Tokenizer, Encoder]]
) -> None:
    library, encoder = pairs[kind]
    encoder.encode(INVENTED)
    pickled = pickle.dumps(encoder)
    assert len(pickled) < len(library.to_str(pretty=True).encode()) + 1_000
    again = pickle.loads(pickled)
    assert not again._chunk_cache
    assert (again.size, again.special_ids, again.is_continuation) == (
        encoder.size,
        encoder.special_ids,
        encoder.is_continuation,
    )
    check((library, again), HOSTILE[:60])


@pytest.mark.parametrize("kind", ["cased", "uncased", "unigram"])
def test_special_tokens_in_a_text_are_text_where_that_is_asked_for(kind: str, tmp_path: Path) -> None:
    """A paper on language models says [MASK]; only the builder of examples may put the token there."""
    library = KINDS[kind]()
    encoder = pickle.loads(pickle.dumps(Encoder(saved(tmp_path, library), special_as_text=True)))
    library.encode_special_tokens = True
    texts = ["We hide [MASK] and x[SEP]y.", "[CLS]", "plain words", "[CLS] [PAD][UNK] [MASK]."]
    check((library, encoder), texts)
    assert not {encoder.special_ids["[CLS]"], encoder.special_ids["[SEP]"]} & set(
        encoder.encode(" ".join(texts))
    )


def test_what_a_packer_asks_of_a_vocabulary(pairs: dict[str, tuple[Tokenizer, Encoder]]) -> None:
    library, encoder = pairs["dummies"]
    assert encoder.size == library.get_vocab_size()
    assert encoder.special_ids == {
        token: library.token_to_id(token) for token in [*SPECIAL, "@GENE$", "unused1", "[x]"]
    }
    pieces = library.get_vocab()
    assert {piece for piece, number in pieces.items() if encoder.is_continuation[number]} == {
        piece for piece in pieces if piece.startswith("##")
    }
    library, encoder = pairs["unigram"]
    pieces = library.get_vocab()
    begin = {piece for piece in pieces if piece.startswith("▁")} | {
        "<pad>",
        "<unk>",
        "[CLS]",
        "[SEP]",
        "[MASK]",
    }
    assert {piece for piece, number in pieces.items() if not encoder.is_continuation[number]} == begin


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_all_of_the_library_and_unknown_is_what_it_says(
    kind: str, pairs: dict[str, tuple[Tokenizer, Encoder]]
) -> None:
    library, encoder = pairs[kind]
    assert encoder.get_vocab() == library.get_vocab(with_added_tokens=True)
    assert 1 + max(encoder.get_vocab().values()) == encoder.size == len(encoder.is_continuation)
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


def test_what_is_unknown_is_by_the_model_and_not_by_what_is_added(tmp_path: Path) -> None:
    """[UNK] may be a piece and no added token, or have another name, or there may be none."""
    word_piece = Tokenizer(WordPiece({"cell": 0, "[UNK]": 1, "<?>": 2}, unk_token="<?>"))
    word_piece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    word_piece.add_special_tokens(["[UNK]"])
    encoder = Encoder(saved(tmp_path / "1", word_piece))
    assert (encoder.unknown_id, encoder.encode("cell mice")) == (2, [0, 2])
    for number, expected in ((None, -1), (0, 0), (1, 1)):
        model = Unigram([("a", -1.0), ("odd", -2.0), ("\u2581", -3.0)], unk_id=number)
        tokenizer = _pre_tokenized(
            Tokenizer(model), pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()
        )
        assert Encoder(saved(tmp_path / str(number), tokenizer)).unknown_id == expected


def test_a_folder_without_a_tokenizer_is_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nowhere is not a directory.*bioshards\.vocab build"):
        Encoder(str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer\.json.*bioshards\.vocab build"):
        Encoder(str(tmp_path))
    for wrong in (b"", b"{", b"{}", b"\xff\xfe", b"[1]", b'{"version": "1.0"}'):
        (tmp_path / "tokenizer.json").write_bytes(wrong)
        with pytest.raises(ValueError, match=r"tokenizer\.json cannot be read.*build"):
            Encoder(str(tmp_path))


def _pre_tokenized(made: Tokenizer, *steps: Any) -> Tokenizer:
    made.pre_tokenizer = pre_tokenizers.Sequence(list(steps)) if len(steps) > 1 else steps[0]
    return made


def _normalized(made: Tokenizer, *steps: Any) -> Tokenizer:
    made.normalizer = normalizers.Sequence(list(steps))
    return made


def _truncated(made: Tokenizer) -> Tokenizer:
    made.enable_truncation(8)
    return made


def _padded(made: Tokenizer) -> Tokenizer:
    made.enable_padding()
    return made


FIRST = pre_tokenizers.Metaspace(prepend_scheme="first")
CROSSING: dict[str, tuple[Callable[[], Tokenizer], str]] = {
    "metaspace": (lambda: _pre_tokenized(albert(), pre_tokenizers.Metaspace()), "pre-tokenizer"),
    "first": (lambda: _pre_tokenized(albert(), pre_tokenizers.WhitespaceSplit(), FIRST), "pre-tokenizer"),
    "none": (lambda: Tokenizer(WordPiece({"[UNK]": 0}, unk_token="[UNK]")), "pre-tokenizer"),
    "prepend": (lambda: _normalized(albert(), normalizers.Prepend("x")), r"\(Prepend\)"),
    "replace": (lambda: _normalized(albert(), normalizers.Replace("a b", "ab")), r"\(Replace\)"),
    "regex": (lambda: _normalized(albert(), normalizers.Replace(Regex(r"a\s+b"), "ab")), r"\(Replace\)"),
    "byte level": (lambda: _normalized(albert(), normalizers.ByteLevel()), r"\(ByteLevel\)"),
    "blank": (lambda: bert(True, True, added=[AddedToken("two words")]), "added token.*'two words'"),
    "ideograph": (lambda: with_token(bert(True, True), AddedToken("細")), "added token.*'細'"),
    "truncation": (lambda: _truncated(bert(True, True)), "truncation"),
    "padding": (lambda: _padded(bert(True, True)), "padding"),
    "unk": (
        lambda: _pre_tokenized(Tokenizer(WordPiece({"a": 0})), pre_tokenizers.BertPreTokenizer()),
        r"no \[UNK\]",
    ),
    "bpe": (lambda: _pre_tokenized(Tokenizer(BPE()), pre_tokenizers.BertPreTokenizer()), "a BPE model"),
}


@pytest.mark.parametrize("name", CROSSING)
def test_a_tokenizer_that_may_look_across_a_blank_is_refused(name: str, tmp_path: Path) -> None:
    make, reason = CROSSING[name]
    folder = saved(tmp_path / "vocabulary", make())
    with pytest.raises(ValueError, match=rf"tokenizer\.json has .*{reason}.*chunk by chunk\. Encode with"):
        Encoder(folder)


def test_other_tokenizers_that_split_at_blanks_are_right_too(tmp_path: Path) -> None:
    """They take no short cut: their normaliser is not BERT's, their pre-tokenizer not ALBERT's."""
    made = [
        _normalized(bert(True, True), normalizers.NFC(), normalizers.Lowercase()),
        _pre_tokenized(albert(), pre_tokenizers.BertPreTokenizer()),
    ]
    made[0].normalizer = normalizers.Sequence([normalizers.NFC()])
    for number, tokenizer in enumerate(made):
        folder = saved(tmp_path / str(number), tokenizer)
        check((Tokenizer.from_file(f"{folder}/tokenizer.json"), Encoder(folder)), HOSTILE)


BENCHMARKS = Path(str(DATA)) / "benchmarks"
PUBLISHED = {
    "SciVocab": ("electramed/vocab/vocab.txt", True),
    "Bio-ELECTRA": ("bio_electra/pmc_2017_abstracts_wp_vocab_sorted.txt", False),
}


@pytest.fixture(scope="module")
def real_sentences(real_abstracts: Path) -> list[str]:
    batches = arrow_io.read_directory(LocalStorage(), str(real_abstracts), ["sentences"])
    return [text for batch in batches for text in batch.column("sentences").flatten().to_pylist()]


@needs_data
@pytest.mark.parametrize("name", PUBLISHED)
def test_real_text_has_the_librarys_ids(name: str, real_sentences: list[str], tmp_path: Path) -> None:
    path, lower = PUBLISHED[name]
    lines = (BENCHMARKS / path).read_text(encoding="utf-8").split("\n")
    made = Tokenizer(
        WordPiece({line: number for number, line in enumerate(lines) if line}, unk_token="[UNK]")
    )
    made.normalizer = normalizers.BertNormalizer(lowercase=lower)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.add_special_tokens(SPECIAL)
    folder = saved(tmp_path / "vocabulary", made)
    library, encoder = Tokenizer.from_file(f"{folder}/tokenizer.json"), Encoder(folder)
    expected = [found.ids for found in library.encode_batch_fast(real_sentences, add_special_tokens=False)]
    together(encoder, real_sentences, expected)
    assert [encoder.encode(text) for text in real_sentences] == expected
    document = "\n".join(real_sentences)
    assert encoder.encode(document) == library.encode(document, add_special_tokens=False).ids


def test_nothing_but_tokenizer_json_is_read(tmp_path: Path) -> None:
    folder = saved(tmp_path / "vocabulary", bert(True, True))
    for name in ("vocab.txt", "tokenizer_config.json"):
        (Path(folder) / name).write_text("nonsense")
    library = Tokenizer.from_file(f"{folder}/tokenizer.json")
    check((library, Encoder(folder)), ["cells"])
