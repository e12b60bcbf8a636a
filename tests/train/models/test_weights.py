"""Saving, loading of initial weights, and model sizes."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tokenizers.normalizers import BertNormalizer
from transformers import (
    AutoModelForTokenClassification,
    PreTrainedModel,
)

from bioshards.train.models import attention
from bioshards.train.models.objectives import ElectraObjective, Objective
from bioshards.train.models.weights import InitialWeightsError, build_objective
from tests.support.train.synthetic_batches import (
    FAMILIES,
    VOCABULARY,
    DatasetInfo,
    make_flat_batch,
    make_objective,
    make_recipe,
    random_masked_rows,
)
from tests.support.vocab.tiny_tokenizers import SPECIAL_TOKENS, make_wordpiece

WORDS = [f"w{number}" for number in range(VOCABULARY - len(SPECIAL_TOKENS))]


@pytest.fixture(autouse=True)
def use_offline_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def save_objective(family: str, folder: Path) -> Objective:
    objective = make_objective(family)
    objective.save(str(folder))
    return objective


def read_load_error(family: str, folder: Path, vocabulary: Path | None = None, **sizes: float) -> str:
    with pytest.raises(InitialWeightsError) as error:
        build_objective(
            replace(make_recipe(family), **sizes),  # type: ignore[arg-type]
            DatasetInfo(),
            str(folder),
            str(vocabulary) if vocabulary else None,
        )
    assert str(folder) in str(error.value)
    return str(error.value)


# Loading.  tests/train/runs has what the library loads, and the checkpoints of other models.


@pytest.mark.parametrize("family", FAMILIES)
def test_all_weights_are_loaded_exactly(family: str, tmp_path: Path) -> None:
    saved_state = save_objective(family, tmp_path).state_dict()
    torch.manual_seed(99)
    objective = build_objective(make_recipe(family, dropout=0.25), DatasetInfo(), str(tmp_path))
    assert objective.state_dict().keys() == saved_state.keys()
    assert all(torch.equal(value, saved_state[name]) for name, value in objective.state_dict().items())
    assert objective.training
    assert all(part.training for part in objective.modules())
    assert (
        objective.encoder.config.hidden_dropout_prob == 0.25
    )  # from the configuration, not from the directory
    assert objective.encoder.config._attn_implementation == attention.ATTN_IMPLEMENTATION
    with torch.no_grad():
        assert torch.equal(
            objective.eval()(make_flat_batch(random_masked_rows(2)))["mlm"],
            make_objective(family).eval()(make_flat_batch(random_masked_rows(2)))["mlm"],
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_encoder_without_heads_gets_new_heads(family: str, tmp_path: Path) -> None:
    encoder = save_objective(family, tmp_path / "all").encoder
    AutoModelForTokenClassification.from_pretrained(tmp_path / "all").save_pretrained(tmp_path / "tagger")
    torch.manual_seed(1)
    first = build_objective(make_recipe(family), DatasetInfo(), str(tmp_path / "tagger"))
    torch.manual_seed(1)
    second = build_objective(make_recipe(family), DatasetInfo(), str(tmp_path / "tagger"))
    for name, value in first.encoder.state_dict().items():
        assert "pooler" in name or torch.equal(value, encoder.state_dict()[name])
    assert all(torch.equal(value, second.state_dict()[name]) for name, value in first.state_dict().items())


# Errors


def test_invalid_configuration_is_refused(tmp_path: Path) -> None:
    for text in ("", "{", "[]", '{"model_type": "no such thing"}'):
        (tmp_path / "config.json").write_text(text)
        assert "cannot read the config.json" in read_load_error("bert", tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "generator/model.safetensors"])
def test_missing_or_damaged_weights_are_refused(name: str, tmp_path: Path) -> None:
    save_objective("electra", tmp_path)
    original = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(original[: len(original) // 2])
    assert "cannot read the weights" in read_load_error("electra", tmp_path)
    (tmp_path / name).unlink()
    assert "cannot read the weights" in read_load_error("electra", tmp_path)


def test_incomplete_weights_are_refused(tmp_path: Path) -> None:
    model = save_objective("bert", tmp_path).get_submodule("model")
    assert isinstance(model, PreTrainedModel)
    incomplete_state = {name: value for name, value in model.state_dict().items() if "layer.1." not in name}
    model.save_pretrained(tmp_path, state_dict=incomplete_state)
    assert "bert.encoder.layer.1." in read_load_error("bert", tmp_path)


def test_error_names_all_different_sizes(tmp_path: Path) -> None:
    save_objective("electra", tmp_path)
    message = read_load_error("electra", tmp_path, num_layers=3, max_positions=512)
    assert "num_hidden_layers is 2, not 3" in message
    assert "max_position_embeddings is 64, not 512" in message
    assert "hidden_size" not in message
    assert "generator" in read_load_error("electra", tmp_path, generator_layers_fraction=0.5)


def write_vocabulary(folder: Path, *words: str) -> Path:
    folder.mkdir(exist_ok=True)
    make_wordpiece(*words).save(str(folder / "tokenizer.json"))
    return folder


def load_lines(family: str, folder: Path, vocabulary: Path) -> list[str]:
    """Load a checkpoint, and return what is said about it."""
    lines: list[str] = []
    build_objective(make_recipe(family), DatasetInfo(), str(folder), str(vocabulary), lines.append)
    return lines


def test_vocabulary_with_other_pieces_is_refused(tmp_path: Path) -> None:
    model, own = tmp_path / "model", write_vocabulary(tmp_path / "own", *WORDS)
    save_objective("bert", model)
    [line] = load_lines("bert", model, own)
    assert "no tokenizer that can be compared" in line
    write_vocabulary(model, *WORDS)
    assert load_lines("bert", model, own) == []
    write_vocabulary(model, WORDS[1], WORDS[0], *WORDS[2:-1], "other")
    assert "3 of its 61 pieces differ" in read_load_error("bert", model, own)
    (model / "tokenizer.json").write_text("{")
    assert "cannot be read" in read_load_error("bert", model, own)


def test_vocab_txt_of_a_checkpoint_is_compared(tmp_path: Path) -> None:
    model, own = tmp_path / "model", write_vocabulary(tmp_path / "own", *WORDS)
    save_objective("bert", model)
    pieces = make_wordpiece(*WORDS).get_vocab()
    by_id = sorted(pieces, key=pieces.__getitem__)
    (model / "vocab.txt").write_text("\r\n".join(by_id) + "\r\n")
    [line] = load_lines("bert", model, own)
    assert "does not tell its casing" in line
    (model / "vocab.txt").write_text("\n".join([*by_id[:5], *reversed(by_id[5:])]))
    message = read_load_error("bert", model, own)
    assert "vocab.txt: 56 of its 61 pieces differ" in message
    assert f"bioshards vocab adopt {model}" in message
    (model / "vocab.txt").write_bytes(b"\xff\n")
    assert "vocab.txt cannot be read" in read_load_error("bert", model, own)


def test_checkpoint_of_another_casing_is_refused(tmp_path: Path) -> None:
    """The pieces are the same, and tell nothing: all are in lower case."""
    model, own = tmp_path / "model", tmp_path / "own"
    save_objective("bert", model)
    for folder, lower_case in ((model, False), (own, True)):
        folder.mkdir(exist_ok=True)
        tokenizer = make_wordpiece(*WORDS)
        tokenizer.normalizer = BertNormalizer(lowercase=lower_case)
        tokenizer.save(str(folder / "tokenizer.json"))
    assert "that is cased; the pretraining set's vocabulary is lower case" in read_load_error(
        "bert", model, own
    )
    pieces = make_wordpiece(*WORDS).get_vocab()
    (own / "tokenizer.json").write_text("\ufeff" + (own / "tokenizer.json").read_text())
    (model / "tokenizer.json").unlink()
    (model / "vocab.txt").write_text("\ufeff" + "\n".join(sorted(pieces, key=pieces.__getitem__)))
    (model / "tokenizer_config.json").write_text('\ufeff{"do_lower_case": false}')
    assert "that is cased" in read_load_error("bert", model, own)
    (model / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert load_lines("bert", model, own) == []


def test_missing_generator_is_said_and_shares_the_embeddings_of_the_discriminator(tmp_path: Path) -> None:
    model, own = tmp_path / "model", write_vocabulary(tmp_path / "own", *WORDS)
    saved_objective = save_objective("electra", model)
    write_vocabulary(model, *WORDS)
    assert load_lines("electra", model, own) == []
    shutil.rmtree(model / "generator")
    [line] = load_lines("electra", model, own)
    assert "no folder generator/: the generator starts at random" in line
    objective = build_objective(make_recipe("electra"), DatasetInfo(), str(model))
    assert isinstance(objective, ElectraObjective)
    assert isinstance(saved_objective, ElectraObjective)
    words = objective.generator.electra.embeddings.word_embeddings.weight
    assert torch.equal(words, saved_objective.discriminator.electra.embeddings.word_embeddings.weight)
    assert objective.generator.generator_lm_head.weight is words


def test_model_folder_never_runs_its_own_code(tmp_path: Path) -> None:
    save_objective("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "evil.EvilConfig", "AutoModel": "evil.EvilModel"}
    config["model_type"] = "evil"
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'proof')!r}, 'w')\n")
    assert "cannot read the config.json" in read_load_error("bert", tmp_path)
    assert not (tmp_path / "proof").exists()


def test_configuration_of_every_family() -> None:
    for family in FAMILIES:
        recipe = make_recipe(family, dropout=0.3, attention_dropout=0.2)
        config = build_objective(recipe, DatasetInfo()).encoder.config
        assert config.model_type == family
        assert (config.vocab_size, config.pad_token_id, config.max_position_embeddings) == (VOCABULARY, 0, 64)
        assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.3, 0.2)
    assert (config.bos_token_id, config.eos_token_id) == (2, 3)  # ALBERT's: [CLS] and [SEP]
