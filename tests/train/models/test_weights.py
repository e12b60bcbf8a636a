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
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    ElectraConfig,
    PreTrainedModel,
)

from bioshards.train.models import attention
from bioshards.train.models.objectives import ElectraObjective, Objective
from bioshards.train.models.weights import InitialWeightsError, build_objective
from bioshards.train.presets import PRESETS
from bioshards.train.recipe import TrainRecipe
from tests.support.train.synthetic_batches import (
    FAMILIES,
    VOCABULARY,
    DatasetInfo,
    make_flat_batch,
    make_objective,
    make_padded_batch,
    make_recipe,
    random_masked_rows,
)
from tests.support.vocab.tiny_tokenizers import SPECIAL_TOKENS, make_wordpiece

HEADS = {
    "electra": {"discriminator_predictions"},
    "bert": {"cls", "pooler"},
    "albert": {"predictions", "sop_classifier", "pooler"},
}
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


# Saving


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "auto_class", [AutoModel, AutoModelForTokenClassification, AutoModelForSequenceClassification]
)
def test_library_loads_saved_encoder_with_only_its_new_head_missing(
    family: str, auto_class: type, tmp_path: Path
) -> None:
    saved_state = save_objective(family, tmp_path).encoder.state_dict()
    model, report = auto_class.from_pretrained(tmp_path, output_loading_info=True)  # type: ignore[attr-defined]
    assert {name.split(".")[0] for name in report["missing_keys"]} <= {"classifier"}
    assert {part for name in report["unexpected_keys"] for part in name.split(".")} & HEADS[family]
    assert not report["mismatched_keys"]
    loaded_state = model.base_model.state_dict()
    assert loaded_state.keys() >= {name for name in saved_state if "pooler" not in name}
    assert all(torch.equal(loaded_state[name], saved_state[name]) for name in loaded_state)


@pytest.mark.parametrize("family", FAMILIES)
def test_library_loads_saved_pretraining_model_completely(family: str, tmp_path: Path) -> None:
    objective = save_objective(family, tmp_path)
    model, report = AutoModelForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    saved_model = (
        objective.discriminator
        if isinstance(objective, ElectraObjective)
        else objective.get_submodule("model")
    )
    assert model.state_dict().keys() == saved_model.state_dict().keys()
    assert all(
        torch.equal(value, saved_model.state_dict()[name]) for name, value in model.state_dict().items()
    )


def test_generator_is_saved_as_masked_lm_with_tied_embeddings(tmp_path: Path) -> None:
    objective = save_objective("electra", tmp_path)
    assert isinstance(objective, ElectraObjective)
    model, report = AutoModelForMaskedLM.from_pretrained(tmp_path / "generator", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert model.generator_lm_head.weight is model.electra.embeddings.word_embeddings.weight
    loaded_state, saved_state = model.state_dict(), objective.generator.state_dict()
    assert loaded_state.keys() == saved_state.keys()
    assert all(torch.equal(loaded_state[name], saved_state[name]) for name in saved_state)
    words = model.electra.embeddings.word_embeddings.weight
    assert torch.equal(words, objective.discriminator.electra.embeddings.word_embeddings.weight)


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_configuration_does_not_name_custom_attention(family: str, tmp_path: Path) -> None:
    save_objective(family, tmp_path)
    configs = list(tmp_path.rglob("config.json"))
    assert len(configs) == (2 if family == "electra" else 1)
    for config in configs:
        assert attention.ATTN_IMPLEMENTATION not in config.read_text()
        assert json.loads(config.read_text())["vocab_size"] == VOCABULARY
    assert AutoModel.from_pretrained(tmp_path).config._attn_implementation == "sdpa"


@pytest.mark.parametrize("family", FAMILIES)
def test_loaded_model_has_the_same_hidden_states(family: str, tmp_path: Path) -> None:
    objective, batch = save_objective(family, tmp_path), make_padded_batch(random_masked_rows(1))
    model = AutoModel.from_pretrained(tmp_path)
    size = (len(batch.row_starts), batch.max_seqlen)
    with torch.no_grad():
        library_states = model(
            batch.ids.view(size),
            attention_mask=batch.is_token.view(size),
            token_type_ids=batch.token_type_ids.view(size),
        ).last_hidden_state.flatten(0, 1)
        states = attention.encode(objective.eval().encoder, batch)
    torch.testing.assert_close(library_states[batch.is_token], states[batch.is_token], rtol=1e-5, atol=1e-5)


# Loading


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


def test_new_generator_shares_the_embeddings_of_a_loaded_discriminator(tmp_path: Path) -> None:
    saved_objective = save_objective("electra", tmp_path)
    shutil.rmtree(tmp_path / "generator")
    objective = build_objective(make_recipe("electra"), DatasetInfo(), str(tmp_path))
    assert isinstance(objective, ElectraObjective)
    assert isinstance(saved_objective, ElectraObjective)
    words = objective.generator.electra.embeddings.word_embeddings.weight
    assert torch.equal(words, saved_objective.discriminator.electra.embeddings.word_embeddings.weight)
    assert objective.generator.generator_lm_head.weight is words


def test_random_weights_depend_on_the_seed() -> None:
    for family in FAMILIES:
        weights = []
        for seed in (3, 3, 4):
            torch.manual_seed(seed)
            weights.append(
                torch.cat(
                    [
                        part.flatten()
                        for part in build_objective(make_recipe(family), DatasetInfo()).parameters()
                    ]
                )
            )
        assert torch.equal(weights[0], weights[1])
        assert not torch.equal(weights[0], weights[2])


# Errors


def test_missing_directory_or_model_is_refused(tmp_path: Path) -> None:
    assert "does not exist" in read_load_error("electra", tmp_path / "nowhere")
    assert "no config.json" in read_load_error("electra", tmp_path)


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


def test_another_family_is_refused(tmp_path: Path) -> None:
    save_objective("bert", tmp_path)
    assert "of family bert; this run trains electra" in read_load_error("electra", tmp_path)


def test_error_names_all_different_sizes(tmp_path: Path) -> None:
    save_objective("electra", tmp_path)
    message = read_load_error("electra", tmp_path, num_layers=3, max_positions=512)
    assert "num_hidden_layers is 2, not 3" in message
    assert "max_position_embeddings is 64, not 512" in message
    assert "hidden_size" not in message
    assert "generator" in read_load_error("electra", tmp_path, generator_layers_fraction=0.5)


def test_vocabulary_of_another_size_is_refused(tmp_path: Path) -> None:
    save_objective("albert", tmp_path)
    with pytest.raises(InitialWeightsError, match="vocabulary of 61 pieces; the pretraining set has 30,000"):
        build_objective(make_recipe("albert"), DatasetInfo(vocabulary_size=30_000), str(tmp_path))


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
    (model / "tokenizer.json").unlink()
    (model / "vocab.txt").write_text("\n".join(sorted(pieces, key=pieces.__getitem__)))
    (model / "tokenizer_config.json").write_text('{"do_lower_case": false}')
    assert "that is cased" in read_load_error("bert", model, own)
    (model / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert load_lines("bert", model, own) == []


def test_missing_generator_is_said(tmp_path: Path) -> None:
    model, own = tmp_path / "model", write_vocabulary(tmp_path / "own", *WORDS)
    save_objective("electra", model)
    write_vocabulary(model, *WORDS)
    assert load_lines("electra", model, own) == []
    shutil.rmtree(model / "generator")
    [line] = load_lines("electra", model, own)
    assert "no folder generator/: the generator starts at random" in line


def test_model_folder_never_runs_its_own_code(tmp_path: Path) -> None:
    save_objective("bert", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["auto_map"] = {"AutoConfig": "evil.EvilConfig", "AutoModel": "evil.EvilModel"}
    config["model_type"] = "evil"
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'proof')!r}, 'w')\n")
    assert "cannot read the config.json" in read_load_error("bert", tmp_path)
    assert not (tmp_path / "proof").exists()


# Sizes


def test_generator_sizes_equal_those_of_the_reference() -> None:
    """Small: width 64 with one head. Base: width 256 with four heads (google-research/electra)."""
    small, base = PRESETS["electra-small"], PRESETS["electra-base"]
    assert [recipe.generator_sizes for recipe in (small, base)] == [(64, 12, 1), (256, 12, 4)]
    config = build_objective(small, DatasetInfo()).get_submodule("generator").config
    assert isinstance(config, ElectraConfig)
    sizes = (config.hidden_size, config.num_hidden_layers, config.num_attention_heads)
    assert (*sizes, config.intermediate_size, config.embedding_size) == (64, 12, 1, 256, 128)


def test_invalid_sizes_are_refused() -> None:
    for family, sizes, message in (
        ("gpt", {}, "electra, bert, albert"),
        ("electra", {"num_heads": 3}, "not a multiple of --num-heads"),
        ("electra", {"hidden_size": 256, "generator_hidden_fraction": 0.7533}, "193 with 3 heads"),
        ("electra", {"generator_layers_fraction": 0.1}, "0 layers"),
    ):
        fields = {"hidden_size": 32, "num_layers": 2, "num_heads": 2, "intermediate_size": 48, **sizes}
        with pytest.raises(ValueError, match=message):
            TrainRecipe(family, **fields)  # type: ignore[arg-type]


def test_configuration_of_every_family() -> None:
    for family in FAMILIES:
        recipe = make_recipe(family, dropout=0.3, attention_dropout=0.2)
        config = build_objective(recipe, DatasetInfo()).encoder.config
        assert config.model_type == family
        assert (config.vocab_size, config.pad_token_id, config.max_position_embeddings) == (VOCABULARY, 0, 64)
        assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.3, 0.2)
    assert (config.bos_token_id, config.eos_token_id) == (2, 3)  # ALBERT's: [CLS] and [SEP]
