"""The papers' recipes from published vocabularies and weights, on stand-ins: from adopt to a benchmark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    BertConfig,
    BertForPreTraining,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
)

from bioshards.train.__main__ import main as train
from bioshards.vocab import __main__ as vocab
from tests.support.evaluate.evaluate_commands import load_result, run_evaluate
from tests.support.outputs import load_manifest
from tests.support.train.trainer_runs import load_log
from tests.support.vocab.published_files import make_spiece_model, write_vocab_txt
from tests.support.vocab.synthetic_corpora import run_shards_to_pretraining, write_abstracts, write_articles

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("single_thread")]

MODEL_SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 512,
}
SIZE_OPTIONS = (
    *("--hidden-size", 32, "--num-layers", 2, "--num-heads", 2, "--intermediate-size", 64),
    *("--embedding-size", 32, "--batch-size", 4, "--log-every", 1),
)
STEP_OPTIONS = ("--steps", 2, "--warmup", 1)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Directories of generated abstracts and articles."""
    folder = tmp_path_factory.mktemp("corpora")
    return write_abstracts(folder / "abstracts", a=range(1, 41)), write_articles(
        folder / "articles", b=range(101, 104)
    )


def adopt(source: Path, output: Path) -> Path:
    assert vocab.main(["adopt", str(source), "--output", str(output)]) == 0
    return output


def build_set(documents: Path, vocabulary: Path, output: Path, preset: str) -> Path:
    options = ("--input", documents, "--vocab", vocabulary, "--output", output, "--preset", preset)
    assert run_shards_to_pretraining(*options, "--validation-fraction", 0.1) == 0
    return output


def run_train(data: Path, output: Path, *options: object) -> int:
    return train([str(one) for one in (data, "--output", output, *SIZE_OPTIONS, *options)])


def save_published_model(family: str, folder: Path, vocabulary_size: int) -> dict[str, torch.Tensor]:
    """Save a model as on Hugging Face's hub: weights and configuration; return its weights."""
    torch.manual_seed(4)
    model: Any
    if family == "albert":
        model = AlbertForPreTraining(
            AlbertConfig(vocab_size=vocabulary_size, embedding_size=32, bos_token_id=2, **MODEL_SIZES)
        )
    elif family == "bert":
        model = BertForPreTraining(BertConfig(vocab_size=vocabulary_size, **MODEL_SIZES))
    else:
        model = ElectraForPreTraining(
            ElectraConfig(vocab_size=vocabulary_size, embedding_size=32, **MODEL_SIZES)
        )
        generator_sizes = {**MODEL_SIZES, "num_attention_heads": 1, "intermediate_size": 128}
        generator = ElectraConfig(vocab_size=vocabulary_size, embedding_size=32, **generator_sizes)
        ElectraForMaskedLM(generator).save_pretrained(folder / "generator")
    model.save_pretrained(folder)
    return load_file(folder / "model.safetensors")


def count_pieces(vocabulary: Path) -> int:
    pieces: int = load_manifest(vocabulary)["counts"]["pieces"]
    return pieces


def test_electramed_from_scivocab(corpora: tuple[Path, Path], tmp_path: Path) -> None:
    """SciVocab's ids, ELECTRA from random weights, rows of 512; then its named entities."""
    vocabulary = adopt(write_vocab_txt(tmp_path / "vocab.txt"), tmp_path / "vocabulary")
    data = build_set(corpora[0], vocabulary, tmp_path / "set", "electramed")
    assert load_manifest(data)["config"]["max_seq_length"] == 512
    assert run_train(data, tmp_path / "run", "--preset", "electramed", *STEP_OPTIONS) == 0
    hf = tmp_path / "run" / "step-0000002" / "hf"
    assert (hf / "vocab.txt").read_bytes() == (tmp_path / "vocab.txt").read_bytes()
    assert json.loads((hf / "config.json").read_text())["vocab_size"] == count_pieces(vocabulary)
    assert run_evaluate(hf, tmp_path / "scores", "--tasks", "electramed/ncbi-disease", "--seeds", 1) == 0
    assert load_result(tmp_path / "scores", "electramed/ncbi-disease")["scores"]


def test_bioalbert_from_alberts_vocabulary_and_weights(corpora: tuple[Path, Path], tmp_path: Path) -> None:
    """ALBERT's ids and weights, a stage on abstracts and one on articles; then named entities."""
    published = tmp_path / "albert-base"
    published.mkdir()
    (published / "spiece.model").write_bytes(make_spiece_model())
    vocabulary = adopt(published, tmp_path / "vocabulary")
    weights = save_published_model("albert", published, count_pieces(vocabulary))
    data = build_set(corpora[0], vocabulary, tmp_path / "abstracts-set", "bioalbert")
    articles = build_set(corpora[1], vocabulary, tmp_path / "articles-set", "bioalbert")
    start = ("--preset", "bioalbert", "--init-checkpoint", published)
    assert run_train(data, tmp_path / "still", *start, "--learning-rate", 0, *STEP_OPTIONS) == 0
    unchanged = load_file(tmp_path / "still" / "step-0000002" / "hf" / "model.safetensors")
    assert unchanged.keys() == weights.keys()
    assert all(torch.equal(unchanged[name], weights[name]) for name in weights)
    assert run_train(data, tmp_path / "run", *start, *STEP_OPTIONS) == 0
    go_on = ("--preset", "bioalbert-pmc", "--continue-from", tmp_path / "run", "--steps", 4, "--warmup", 1)
    assert run_train(articles, tmp_path / "run-pmc", *go_on) == 0
    assert [entry["step"] for entry in load_log(tmp_path / "run-pmc") if entry["split"] == "train"] == [3, 4]
    hf = tmp_path / "run-pmc" / "step-0000004" / "hf"
    assert (hf / "spiece.model").read_bytes() == (published / "spiece.model").read_bytes()
    assert run_evaluate(hf, tmp_path / "scores", "--tasks", "bioalbert/ncbi-disease", "--seeds", 1) == 0
    assert load_result(tmp_path / "scores", "bioalbert/ncbi-disease")["scores"]
    (published / "spiece.model").write_bytes(make_spiece_model(True))
    assert run_train(data, tmp_path / "other", *start, *STEP_OPTIONS) == 2


@pytest.mark.parametrize("family", ["bert", "electra"])
def test_published_weights_with_their_own_order_of_special_tokens(
    family: str, corpora: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    published = tmp_path / "published"
    published.mkdir()
    write_vocab_txt(published / "vocab.txt", layout="reversed")
    vocabulary = adopt(published, tmp_path / "vocabulary")
    weights = save_published_model(family, published, count_pieces(vocabulary))
    data = build_set(
        corpora[0], vocabulary, tmp_path / "set", "pubmedbert" if family == "bert" else "electramed"
    )
    start = ("--family", family, "--init-checkpoint", published, "--generator-hidden-fraction", 1)
    assert run_train(data, tmp_path / "run", *start, *STEP_OPTIONS, "--learning-rate", 0) == 0
    loaded = load_file(tmp_path / "run" / "step-0000002" / "hf" / "model.safetensors")
    assert all(torch.equal(loaded[name], weights[name]) for name in weights)
    hf_config = json.loads((tmp_path / "run" / "step-0000002" / "hf" / "config.json").read_text())
    assert hf_config["pad_token_id"] == 4
    identity = json.loads((tmp_path / "run" / "run.json").read_text())["identity"]
    assert (identity["origin"], identity["recipe"]["start_from"]) == (str(published), "checkpoint")
    assert load_manifest(data)["config"]["vocabulary"]["size"] == count_pieces(vocabulary)
    write_vocab_txt(published / "vocab.txt", layout="scivocab")
    capsys.readouterr()
    assert run_train(data, tmp_path / "other", *start, *STEP_OPTIONS) == 2
    assert "pieces differ from the pretraining set's vocabulary" in capsys.readouterr().err
