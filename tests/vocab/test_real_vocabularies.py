"""Vocabularies of real abstracts: reachable pieces, a known alphabet, and the same ids from every library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab import __main__ as vocab
from bioshards.vocab.encode import Encoder
from bioshards.vocab.tokenizer import wordpiece
from tests.support.real_data import DATA, needs_data

pytestmark = needs_data

SIZE = 8_000
RECIPES = {
    "bpe": [],
    "cased": ["--cased"],
    "wordpiece": ["--algorithm", "wordpiece", "--no-strip-accents"],
    "bioalbert": ["--preset", "bioalbert"],
}


@pytest.fixture(scope="module", params=list(RECIPES))
def vocabulary_dir(
    request: pytest.FixtureRequest, real_abstracts: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    name: str = request.param
    out = tmp_path_factory.mktemp("vocabulary") / name
    options = ["--size", str(SIZE), "--validation-fraction", "0.1", *RECIPES[name]]
    assert vocab.main(["build", str(real_abstracts), "--output", str(out), *options]) == 0
    return out


@pytest.mark.parametrize("vocabulary_dir", [name for name in RECIPES if name != "bioalbert"], indirect=True)
def test_every_piece_is_reachable_and_every_alphabet_character_known(vocabulary_dir: Path) -> None:
    [ours] = json.loads((vocabulary_dir / "report.json").read_text())["vocabularies"]
    assert ours["unreachable"]["all"] == 0
    assert ours["alphabet"]["covered_share"] > 0.9999
    tokenizer = Tokenizer.from_file(str(vocabulary_dir / "tokenizer.json"))
    for character in (*wordpiece.ASCII, *wordpiece.GREEK):
        assert "[UNK]" not in tokenizer.encode(f"{character} a{character} {character}a").tokens


def test_all_libraries_give_the_same_ids(
    vocabulary_dir: Path, real_abstracts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from transformers import AutoTokenizer

    batches = document_shards.read_directory(LocalStorage(), str(real_abstracts), ["sentences"])
    sentences = [text for batch in batches for text in batch["sentences"].flatten().to_pylist()]
    tokenizer = Tokenizer.from_file(str(vocabulary_dir / "tokenizer.json"))
    expected = [encoding.ids for encoding in tokenizer.encode_batch_fast(sentences, add_special_tokens=False)]
    hf_tokenizer: Any = AutoTokenizer.from_pretrained(str(vocabulary_dir))
    assert hf_tokenizer(sentences, add_special_tokens=False)["input_ids"] == expected
    encoded = Encoder(str(vocabulary_dir)).encode_all(sentences)
    assert encoded.ids.tolist() == [id for ids in expected for id in ids]


def test_fertility_is_near_that_of_published_vocabularies(real_abstracts: Path, tmp_path: Path) -> None:
    """The corpus has only 2,000 abstracts, so that fertility is compared roughly and [UNK] must be rarer."""
    compare_options = [
        *("--compare", f"Bio-ELECTRA={DATA}/benchmarks/bio_electra/pmc_2017_abstracts_wp_vocab_sorted.txt"),
        *("--compare", f"SciVocab={DATA}/benchmarks/electramed/vocab/vocab.txt"),
    ]
    options = ["--size", "20000", "--validation-fraction", "0.1", "--output", str(tmp_path / "v")]
    assert vocab.main(["build", str(real_abstracts), *options, *compare_options]) == 0
    report = json.loads((tmp_path / "v" / "report.json").read_text())
    ours, *published = [entry["on_words"] for entry in report["vocabularies"]]
    for theirs in published:
        assert ours["unknown_words"] < theirs["unknown_words"]
        assert ours["fertility"] < 1.15 * theirs["fertility"]
