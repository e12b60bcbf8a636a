"""``bioshards vocab adopt``: published vocabularies keep the ids of their own tokenizers."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import yaml  # type: ignore[import-untyped]
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from bioshards.vocab import __main__ as vocab
from bioshards.vocab.encode import Encoder
from bioshards.vocab.tokenizer import sentencepiece_model
from bioshards.vocab.tokenizer.pretokenizer import Casing
from tests.support.outputs import load_manifest, published_digests
from tests.support.real_data import DATA, needs_data
from tests.support.vocab.published_files import (
    TEXTS,
    encode_as_albert,
    make_albert_tokenizer,
    make_spiece_model,
    write_vocab_txt,
)


@pytest.fixture(autouse=True)
def use_offline_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def run_adopt(*arguments: object) -> int:
    return vocab.main(["adopt", *map(str, arguments)])


def adopt(source: Path, output: Path, *options: str) -> Path:
    assert run_adopt(source, "--output", output, *options) == 0
    return output


def write_spiece_model(folder: Path, is_cased: bool = False) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "spiece.model").write_bytes(make_spiece_model(is_cased))
    return folder / "spiece.model"


def encode_texts(folder: Path) -> list[list[int]]:
    """Encode with bioshards, and check that the tokenizers library and transformers give the same ids."""
    from transformers import AutoTokenizer

    library = Tokenizer.from_file(str(folder / "tokenizer.json"))
    expected: list[list[int]] = [library.encode(text, add_special_tokens=False).ids for text in TEXTS]
    loaded: Any = AutoTokenizer.from_pretrained(str(folder))
    assert loaded(TEXTS, add_special_tokens=False)["input_ids"] == expected
    encoder = Encoder(str(folder))
    assert [encoder.encode(text) for text in TEXTS] == expected
    assert encoder.encode_all(TEXTS).ids.tolist() == [id for ids in expected for id in ids]
    return expected


# vocab.txt


@pytest.mark.parametrize("is_cased", [False, True])
@pytest.mark.parametrize("layout", ["scivocab", "reversed"])
def test_vocab_txt_keeps_the_ids_of_its_bert_tokenizer(is_cased: bool, layout: str, tmp_path: Path) -> None:
    from transformers import BertTokenizer

    source = write_vocab_txt(tmp_path / "vocab.txt", is_cased, layout)
    folder = adopt(source, tmp_path / "out")
    own_tokenizer: Any = BertTokenizer.from_pretrained(str(tmp_path), do_lower_case=not is_cased)
    assert encode_texts(folder) == own_tokenizer(TEXTS, add_special_tokens=False)["input_ids"]
    encoder = Encoder(str(folder))
    names = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert encoder.special_ids == {name: own_tokenizer.convert_tokens_to_ids(name) for name in names}
    assert (encoder.pad_id, encoder.unknown_id) == (own_tokenizer.pad_token_id, own_tokenizer.unk_token_id)
    assert (folder / "vocab.txt").read_bytes() == source.read_bytes()


def test_casing_options_of_vocab_txt(tmp_path: Path) -> None:
    from transformers import BertTokenizer

    source = write_vocab_txt(tmp_path / "vocab.txt", is_cased=True)
    settings: dict[str, Any]
    for number, (options, settings) in enumerate(
        (
            (["--cased"], {"do_lower_case": False}),
            (["--no-cased"], {"do_lower_case": True}),
            (["--no-cased", "--no-strip-accents"], {"do_lower_case": True, "strip_accents": False}),
            (["--cased", "--strip-accents"], {"do_lower_case": False, "strip_accents": True}),
        )
    ):
        folder = adopt(source, tmp_path / str(number), *options)
        own_class: Any = BertTokenizer
        own_tokenizer = own_class.from_pretrained(str(tmp_path), **settings)
        assert encode_texts(folder) == own_tokenizer(TEXTS, add_special_tokens=False)["input_ids"]


def test_blank_and_repeated_lines_move_no_other_piece(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "heart", "", "beat", "heart", "##s"]
    (tmp_path / "vocab.txt").write_text("\r\n".join(lines) + "\r\n\r\n")
    folder = adopt(tmp_path / "vocab.txt", tmp_path / "out")
    assert "of 10 lines 1 are blank and 1 repeat a piece" in capsys.readouterr().err
    encoder = Encoder(str(folder))
    assert (encoder.size, encoder.encode("Hearts beat")) == (10, [8, 9, 7])
    assert (folder / "vocab.txt").read_text() == "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n\n\nbeat\nheart\n##s\n"


# spiece.model


@pytest.mark.parametrize(
    ("options", "lower_case", "keep_accents"),
    [
        ([], True, False),
        (["--cased"], False, False),
        (["--no-strip-accents"], True, True),
        (["--cased", "--no-strip-accents"], False, True),
    ],
)
def test_spiece_model_keeps_the_ids_of_sentencepiece_and_of_its_albert_tokenizer(
    options: list[str], lower_case: bool, keep_accents: bool, tmp_path: Path
) -> None:
    model = make_spiece_model(not lower_case)
    source = write_spiece_model(tmp_path, not lower_case)
    folder = adopt(source, tmp_path / "out", *options)
    encoder = Encoder(str(folder), special_as_text=True)
    own_tokenizer: Any = make_albert_tokenizer(model, lower_case, keep_accents)
    for text in TEXTS:
        ids = encoder.encode(text)
        assert ids == encode_as_albert(model, text, lower_case, keep_accents), text
        if "[CLS]" not in text and ", " not in text:
            assert ids == own_tokenizer(text, add_special_tokens=False)["input_ids"], text
    encode_texts(folder)
    assert encoder.special_ids == {"<pad>": 0, "<unk>": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}
    assert (encoder.pad_id, encoder.unknown_id, encoder.is_sentencepiece) == (0, 1, True)
    assert (folder / "spiece.model").read_bytes() == model


# Folders of Hugging Face's models


def test_tokenizer_config_of_a_folder_states_the_casing(tmp_path: Path) -> None:
    from transformers import AlbertTokenizer, BertTokenizer

    bert = tmp_path / "bert"
    bert.mkdir()
    write_vocab_txt(bert / "vocab.txt", is_cased=True)
    (bert / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "strip_accents": False}))
    own_tokenizer: Any = BertTokenizer.from_pretrained(str(bert))
    assert own_tokenizer.do_lower_case is True
    expected = own_tokenizer(TEXTS, add_special_tokens=False)["input_ids"]
    assert encode_texts(adopt(bert, tmp_path / "one")) == expected
    albert = tmp_path / "albert"
    write_spiece_model(albert)
    (albert / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True, "keep_accents": True}))
    assert encode_texts(adopt(albert, tmp_path / "two")) == encode_texts(
        adopt(albert / "spiece.model", tmp_path / "three", "--no-strip-accents")
    )
    own_tokenizer = AlbertTokenizer.from_pretrained(str(tmp_path / "two"))
    assert own_tokenizer.keep_accents is True


@pytest.mark.parametrize("family", ["bert", "albert"])
def test_folder_with_tokenizer_json_keeps_its_ids(family: str, tmp_path: Path) -> None:
    """Truncation and padding, which published files often have, are left out."""
    if family == "bert":
        source = adopt(write_vocab_txt(tmp_path / "vocab.txt", is_cased=True), tmp_path / "source")
    else:
        source = adopt(write_spiece_model(tmp_path), tmp_path / "source")
    expected = encode_texts(source)
    tokenizer = Tokenizer.from_file(str(source / "tokenizer.json"))
    tokenizer.enable_truncation(8)
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(source / "tokenizer.json"))
    (source / "tokenizer.json").write_text("\ufeff" + (source / "tokenizer.json").read_text())
    for name in ("manifest.json", "vocab.txt", "report.json"):
        (source / name).unlink(missing_ok=True)
    folder = adopt(source, tmp_path / "out")
    assert encode_texts(folder) == expected
    assert (folder / ("vocab.txt" if family == "bert" else "spiece.model")).exists()


def test_casing_of_a_tokenizer_json_can_be_overridden(tmp_path: Path) -> None:
    source = write_vocab_txt(tmp_path / "vocab.txt", is_cased=True)
    cased = adopt(source, tmp_path / "cased")
    for name in ("manifest.json", "tokenizer_config.json"):
        (cased / name).unlink()
    lower = encode_texts(adopt(cased, tmp_path / "lower", "--no-cased"))
    assert lower == encode_texts(adopt(source, tmp_path / "list", "--no-cased", "--no-strip-accents"))
    assert lower != encode_texts(adopt(cased, tmp_path / "same"))
    albert = adopt(write_spiece_model(tmp_path), tmp_path / "albert")
    (albert / "manifest.json").unlink()
    (albert / "tokenizer_config.json").unlink()
    accents = encode_texts(adopt(albert, tmp_path / "accents", "--no-strip-accents"))
    assert accents == encode_texts(adopt(tmp_path / "spiece.model", tmp_path / "model", "--no-strip-accents"))


def test_tokenizer_that_no_class_makes_anew_is_loaded_from_its_file(tmp_path: Path) -> None:
    """BertTokenizer would drop the other normaliser."""
    from tokenizers import normalizers

    source = write_vocab_txt(tmp_path / "vocab.txt")
    folder = adopt(source, tmp_path / "source")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFC(), Casing(True, False).make_normalizer()])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    adopted = adopt(tmp_path / "tokenizer.json", tmp_path / "out")
    assert json.loads((adopted / "tokenizer_config.json").read_text())["tokenizer_class"] == (
        "PreTrainedTokenizerFast"
    )
    assert encode_texts(adopted) == [tokenizer.encode(text, add_special_tokens=False).ids for text in TEXTS]


# The directory


def test_directory_has_the_layout_of_a_built_vocabulary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write_vocab_txt(tmp_path / "vocab.txt")
    folder = adopt(source, tmp_path / "out")
    assert "WordPiece, lower case, accents stripped" in capsys.readouterr().out
    names = {path.name for path in folder.iterdir()} - {".bioshards"}
    assert names == {
        *("tokenizer.json", "tokenizer_config.json", "vocab.txt"),
        *("README.md", "report.json", "report.html", "manifest.json"),
    }
    card = yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])
    assert card == {
        "license": "other",
        "library_name": "transformers",
        "tags": ["biology", "medical", "tokenizer"],
    }
    manifest = load_manifest(folder)
    assert {output["file"] for output in manifest["outputs"]} == names - {"manifest.json"}
    recipe = manifest["config"]["recipe"]
    assert (recipe["algorithm"], recipe["file"], recipe["lower_case"]) == ("adopted", "vocab.txt", True)
    assert manifest["counts"]["pieces"] == len(source.read_text().splitlines())
    before = published_digests(folder)
    assert run_adopt(source, "--output", folder) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert vocab.main(["report", str(folder), "--compare", f"Itself={source}"]) == 0
    assert published_digests(folder)["tokenizer.json"] == before["tokenizer.json"]
    assert run_adopt(source, "--output", folder, "--cased") == 2
    assert "lower_case was True, now False" in capsys.readouterr().err
    assert published_digests(adopt(source, tmp_path / "again")) == before


def test_report_compares_a_spiece_model(tmp_path: Path) -> None:
    source = write_vocab_txt(tmp_path / "vocab.txt")
    model = write_spiece_model(tmp_path)
    folder = adopt(source, tmp_path / "out", "--compare", f"ALBERT={model}")
    names = [entry["name"] for entry in json.loads((folder / "report.json").read_text())["vocabularies"]]
    assert names[1:] == ["ALBERT"]


# Errors


@pytest.fixture
def read_adopt_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    def call(source: Path, *options: str) -> str:
        capsys.readouterr()
        assert run_adopt(source, "--output", tmp_path / "failed", *options) == 2
        assert not (tmp_path / "failed").exists()
        return capsys.readouterr().err.splitlines()[-1]

    return call


def test_unusable_files_are_refused(read_adopt_error: Any, tmp_path: Path) -> None:
    assert "There is no vocabulary at" in read_adopt_error(tmp_path / "nowhere")
    assert "neither tokenizer.json nor vocab.txt nor spiece.model" in read_adopt_error(tmp_path)
    file = tmp_path / "vocab.txt"
    file.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nheart\n")
    assert f"{file} lacks [MASK]" in read_adopt_error(file)
    file = tmp_path / "spiece.model"
    for content in (b"", b"no model", make_spiece_model()[:5000]):
        file.write_bytes(content)
        assert f"{file} is no SentencePiece model" in read_adopt_error(file)
    model = make_spiece_model()
    charsmap = model.index(sentencepiece_model.parse_model(model).charsmap)
    file.write_bytes(model[:charsmap] + b"\xff\xff\xff\xff" + model[charsmap + 4 :])
    assert f"{file} is a SentencePiece model with rules of a normaliser that are damaged" in read_adopt_error(
        file
    )
    bpe = Tokenizer(models.BPE({"a": 0}, [], unk_token="a"))
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(), decoders.ByteLevel()
    bpe.save(str(tmp_path / "tokenizer.json"))
    assert "a BPE model, neither WordPiece nor Unigram" in read_adopt_error(tmp_path / "tokenizer.json")
    assert "its casing cannot be changed" in read_adopt_error(tmp_path / "tokenizer.json", "--cased")
    folder = tmp_path / "model"
    folder.mkdir()
    write_vocab_txt(folder / "vocab.txt")
    (folder / "tokenizer_config.json").write_text("[")
    assert "tokenizer_config.json is damaged" in read_adopt_error(folder)


def train_model(**options: Any) -> bytes:
    """Train a small SentencePiece model."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["naloxone binds the receptor", "a text of a few words"] * 20),
        model_writer=model,
        vocab_size=300 if "byte_fallback" in options else 30,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_type": "bpe"}, "of another type than unigram"),
        ({"add_dummy_prefix": False}, "without the sign for a blank before each word"),
        ({"treat_whitespace_as_suffix": True}, "without the sign for a blank before each word"),
        ({"split_by_whitespace": False}, "with pieces across blanks"),
        ({"byte_fallback": True}, "with pieces of the kind BYTE"),
        ({"unk_piece": "[UNK]"}, "without the unknown token <unk>"),
        ({"user_defined_symbols": ["\u2460"]}, "whose normaliser changes its own piece '\u2460'"),
        ({}, "lacks <pad>, [CLS], [SEP], [MASK]"),
    ],
)
def test_spiece_models_that_are_not_like_alberts_are_refused(
    options: dict[str, Any], message: str, read_adopt_error: Any, tmp_path: Path
) -> None:
    (tmp_path / "spiece.model").write_bytes(train_model(**options))
    assert message in read_adopt_error(tmp_path / "spiece.model")


def test_model_whose_rules_reach_over_blanks_is_refused(read_adopt_error: Any, tmp_path: Path) -> None:
    """Text is encoded in chunks between blanks."""
    (tmp_path / "rules.tsv").write_text("20 301\t41\n")
    model = train_model(
        normalization_rule_tsv=str(tmp_path / "rules.tsv"),
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
    )
    (tmp_path / "spiece.model").write_bytes(model)
    assert "may look across a blank (Precompiled)" in read_adopt_error(tmp_path / "spiece.model")


# Published files


@needs_data
@pytest.mark.parametrize(
    ("file", "is_cased"),
    [
        ("electramed/vocab/vocab.txt", False),
        ("bio_electra/pmc_2017_abstracts_wp_vocab_sorted.txt", True),
    ],
)
def test_published_lists_keep_the_ids_of_bert_tokenizer(file: str, is_cased: bool, tmp_path: Path) -> None:
    import shutil

    from transformers import BertTokenizer

    source = Path(str(DATA)) / "benchmarks" / file
    folder = adopt(source, tmp_path / "out")
    (tmp_path / "own").mkdir()
    shutil.copyfile(source, tmp_path / "own" / "vocab.txt")
    own_tokenizer: Any = BertTokenizer.from_pretrained(str(tmp_path / "own"), do_lower_case=not is_cased)
    texts: Sequence[str] = [
        line
        for path in sorted((Path(str(DATA)) / "sentences" / "craft_txt").iterdir())[:5]
        for line in path.read_text().splitlines()
    ]
    expected = [id for ids in own_tokenizer(texts, add_special_tokens=False)["input_ids"] for id in ids]
    assert Encoder(str(folder)).encode_all(texts).ids.tolist() == expected
