"""Models: their sizes, what they are saved as, and what they begin with from a folder."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedModel,
)

from bioshards.train.config import model_families
from bioshards.train.config.model_config import ModelConfig
from bioshards.train.models import attention, factory
from bioshards.train.models.electra_objective import ElectraObjective
from bioshards.train.models.factory import InitialWeightsError, build_objective
from bioshards.train.models.objective import Objective
from tests.support.train.synthetic_batches import (
    FAMILIES,
    VOCABULARY,
    DatasetInfo,
    make_flat_batch,
    make_model_config,
    make_objective,
    make_padded_batch,
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
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def saved(family: str, folder: Path) -> Objective:
    found = make_objective(family)
    found.save(str(folder))
    return found


def refused(family: str, folder: Path, pieces: dict[str, int] | None = None, **sizes: int) -> str:
    with pytest.raises(InitialWeightsError) as error:
        build_objective(replace(make_model_config(family), **sizes), DatasetInfo(), str(folder), pieces)  # type: ignore[arg-type]
    assert str(folder) in str(error.value)
    return str(error.value)


# What is saved


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "kind", [AutoModel, AutoModelForTokenClassification, AutoModelForSequenceClassification]
)
def test_the_library_loads_what_is_saved_with_only_its_new_head_missing(
    family: str, kind: type, tmp_path: Path
) -> None:
    ours = saved(family, tmp_path).encoder.state_dict()
    model, report = kind.from_pretrained(tmp_path, output_loading_info=True)  # type: ignore[attr-defined]
    assert {name.split(".")[0] for name in report["missing_keys"]} <= {"classifier"}
    assert {part for name in report["unexpected_keys"] for part in name.split(".")} & HEADS[family]
    assert not report["mismatched_keys"]
    theirs = model.base_model.state_dict()
    assert theirs.keys() >= {name for name in ours if "pooler" not in name}
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_library_goes_on_pretraining_with_nothing_missing(family: str, tmp_path: Path) -> None:
    ours = saved(family, tmp_path)
    model, report = AutoModelForPreTraining.from_pretrained(tmp_path, output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    kept = ours.discriminator if isinstance(ours, ElectraObjective) else ours.get_submodule("model")
    assert model.state_dict().keys() == kept.state_dict().keys()
    assert all(torch.equal(value, kept.state_dict()[name]) for name, value in model.state_dict().items())


def test_the_generator_is_saved_as_a_masked_language_model_with_tied_embeddings(tmp_path: Path) -> None:
    ours = saved("electra", tmp_path)
    assert isinstance(ours, ElectraObjective)
    model, report = AutoModelForMaskedLM.from_pretrained(tmp_path / "generator", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert model.generator_lm_head.weight is model.electra.embeddings.word_embeddings.weight
    theirs, own = model.state_dict(), ours.generator.state_dict()
    assert theirs.keys() == own.keys()
    assert all(torch.equal(theirs[name], own[name]) for name in own)
    words = model.electra.embeddings.word_embeddings.weight
    assert torch.equal(words, ours.discriminator.electra.embeddings.word_embeddings.weight)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_configuration_names_no_attention_of_ours(family: str, tmp_path: Path) -> None:
    saved(family, tmp_path)
    configs = list(tmp_path.rglob("config.json"))
    assert len(configs) == (2 if family == "electra" else 1)
    for config in configs:
        assert attention.ATTN_IMPLEMENTATION not in config.read_text()
        assert json.loads(config.read_text())["vocab_size"] == VOCABULARY
    assert AutoModel.from_pretrained(tmp_path).config._attn_implementation == "sdpa"


@pytest.mark.parametrize("family", FAMILIES)
def test_a_loaded_model_says_what_the_trained_one_says(family: str, tmp_path: Path) -> None:
    ours, batch = saved(family, tmp_path), make_padded_batch(random_masked_rows(1))
    model = AutoModel.from_pretrained(tmp_path)
    size = (len(batch.row_starts), batch.max_seqlen)
    with torch.no_grad():
        theirs = model(
            batch.ids.view(size),
            attention_mask=batch.is_token.view(size),
            token_type_ids=batch.token_type_ids.view(size),
        ).last_hidden_state.flatten(0, 1)
        own = attention.encode(ours.eval().encoder, batch)
    torch.testing.assert_close(theirs[batch.is_token], own[batch.is_token], rtol=1e-5, atol=1e-5)


# What training begins with


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_gives_all_weights_bit_by_bit(family: str, tmp_path: Path) -> None:
    ours = saved(family, tmp_path).state_dict()
    torch.manual_seed(99)
    found = build_objective(make_model_config(family, dropout=0.25), DatasetInfo(), str(tmp_path))
    assert found.state_dict().keys() == ours.keys()
    assert all(torch.equal(value, ours[name]) for name, value in found.state_dict().items())
    assert found.training
    assert all(part.training for part in found.modules())
    assert found.encoder.config.hidden_dropout_prob == 0.25  # of the shape, not of the folder
    assert found.encoder.config._attn_implementation == attention.ATTN_IMPLEMENTATION
    with torch.no_grad():
        assert torch.equal(
            found.eval()(make_flat_batch(random_masked_rows(2)))["mlm"],
            make_objective(family).eval()(make_flat_batch(random_masked_rows(2)))["mlm"],
        )


@pytest.mark.parametrize("family", FAMILIES)
def test_an_encoder_alone_gets_new_heads(family: str, tmp_path: Path) -> None:
    ours = saved(family, tmp_path / "all").encoder
    AutoModelForTokenClassification.from_pretrained(tmp_path / "all").save_pretrained(tmp_path / "tagger")
    torch.manual_seed(1)
    one = build_objective(make_model_config(family), DatasetInfo(), str(tmp_path / "tagger"))
    torch.manual_seed(1)
    two = build_objective(make_model_config(family), DatasetInfo(), str(tmp_path / "tagger"))
    for name, value in one.encoder.state_dict().items():
        assert "pooler" in name or torch.equal(value, ours.state_dict()[name])
    assert all(torch.equal(value, two.state_dict()[name]) for name, value in one.state_dict().items())


def test_a_discriminator_without_its_generator_lends_a_new_one_its_embeddings(tmp_path: Path) -> None:
    ours = saved("electra", tmp_path)
    shutil.rmtree(tmp_path / "generator")
    found = build_objective(make_model_config("electra"), DatasetInfo(), str(tmp_path))
    assert isinstance(found, ElectraObjective)
    assert isinstance(ours, ElectraObjective)
    words = found.generator.electra.embeddings.word_embeddings.weight
    assert torch.equal(words, ours.discriminator.electra.embeddings.word_embeddings.weight)
    assert found.generator.generator_lm_head.weight is words


def test_random_weights_are_those_of_the_seed() -> None:
    for family in FAMILIES:
        found = []
        for seed in (3, 3, 4):
            torch.manual_seed(seed)
            found.append(
                torch.cat(
                    [
                        part.flatten()
                        for part in build_objective(make_model_config(family), DatasetInfo()).parameters()
                    ]
                )
            )
        assert torch.equal(found[0], found[1])
        assert not torch.equal(found[0], found[2])


# What it refuses to begin with


def test_no_such_folder_and_no_model_in_it(tmp_path: Path) -> None:
    assert "does not exist" in refused("electra", tmp_path / "nowhere")
    assert "no config.json" in refused("electra", tmp_path)


def test_a_configuration_that_is_none(tmp_path: Path) -> None:
    for text in ("", "{", "[]", '{"model_type": "no such thing"}'):
        (tmp_path / "config.json").write_text(text)
        assert "cannot read the config.json" in refused("bert", tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "generator/model.safetensors"])
def test_weights_that_are_gone_or_damaged(name: str, tmp_path: Path) -> None:
    saved("electra", tmp_path)
    whole = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    assert "cannot read the weights" in refused("electra", tmp_path)
    (tmp_path / name).unlink()
    assert "cannot read the weights" in refused("electra", tmp_path)


def test_weights_of_which_some_are_not_there(tmp_path: Path) -> None:
    kept = saved("bert", tmp_path).get_submodule("model")
    assert isinstance(kept, PreTrainedModel)
    some = {name: value for name, value in kept.state_dict().items() if "layer.1." not in name}
    kept.save_pretrained(tmp_path, state_dict=some)
    assert "bert.encoder.layer.1." in refused("bert", tmp_path)


def test_another_family(tmp_path: Path) -> None:
    saved("bert", tmp_path)
    assert "of family bert; this run trains electra" in refused("electra", tmp_path)


def test_other_sizes_are_all_named(tmp_path: Path) -> None:
    saved("electra", tmp_path)
    message = refused("electra", tmp_path, num_layers=3, max_positions=512)
    assert "num_hidden_layers is 2, not 3" in message
    assert "max_position_embeddings is 64, not 512" in message
    assert "hidden_size" not in message
    assert "generator" in refused("electra", tmp_path, generator_layers_fraction=2)


def test_a_vocabulary_of_another_size(tmp_path: Path) -> None:
    saved("albert", tmp_path)
    with pytest.raises(InitialWeightsError, match="vocabulary of 61 pieces; the pretraining set has 30,000"):
        build_objective(make_model_config("albert"), DatasetInfo(vocabulary_size=30_000), str(tmp_path))


def test_a_vocabulary_of_other_pieces(tmp_path: Path) -> None:
    saved("bert", tmp_path)
    ours = make_wordpiece(*WORDS).get_vocab()
    build_objective(
        make_model_config("bert"), DatasetInfo(), str(tmp_path), ours
    )  # it has no tokenizer.json to compare with
    make_wordpiece(*WORDS).save(str(tmp_path / "tokenizer.json"))
    build_objective(make_model_config("bert"), DatasetInfo(), str(tmp_path), ours)
    make_wordpiece(WORDS[1], WORDS[0], *WORDS[2:-1], "other").save(str(tmp_path / "tokenizer.json"))
    assert "3 of its 61 pieces differ" in refused("bert", tmp_path, ours)
    (tmp_path / "tokenizer.json").write_text("{")
    assert "cannot be read" in refused("bert", tmp_path, ours)


# Shapes


def test_the_generator_is_as_wide_as_the_reference_makes_it() -> None:
    """Small: a width of 64 with one head.  Base: a third, 256 with four (google-research/electra)."""
    small = ElectraObjective.build_generator_config(
        ModelConfig("electra", 256, 12, 4, 1024, 128), DatasetInfo()
    )
    base = ElectraObjective.build_generator_config(
        ModelConfig("electra", 768, 12, 12, 3072, 768, generator_hidden_fraction=1 / 3), DatasetInfo()
    )
    found = [
        (one.hidden_size, one.num_hidden_layers, one.num_attention_heads, one.intermediate_size)
        for one in (small, base)
    ]
    assert found == [(64, 12, 1, 256), (256, 12, 4, 1024)]
    assert [one.embedding_size for one in (small, base)] == [128, 768]


def test_sizes_that_no_model_has_are_refused() -> None:
    for family, sizes, message in (
        ("gpt", {}, "electra, bert, albert"),
        ("electra", {"num_heads": 3}, "not a multiple of num_heads"),
        ("bert", {"embedding_size": 8}, "must equal hidden_size"),
        ("electra", {"generator_hidden_fraction": 0.0}, "change generator_hidden_fraction"),
        ("electra", {"hidden_size": 256, "generator_hidden_fraction": 0.7533}, "193 with 3 heads"),
        ("electra", {"generator_layers_fraction": 0.1}, "0 layers"),
    ):
        fields = {
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 2,
            "intermediate_size": 48,
            "embedding_size": 32,
            **sizes,
        }
        with pytest.raises(ValueError, match=message):
            ModelConfig(family, **fields)  # type: ignore[arg-type]


def test_every_family_has_its_configuration() -> None:
    for family in model_families.FAMILIES:
        sizes = make_model_config(family, dropout=0.3, attention_dropout=0.2)
        config = factory.get_objective_class(family).build_config(sizes, DatasetInfo())
        assert config.model_type == family
        assert (config.vocab_size, config.pad_token_id, config.max_position_embeddings) == (VOCABULARY, 0, 64)
        assert (config.hidden_dropout_prob, config.attention_probs_dropout_prob) == (0.3, 0.2)
    assert (config.bos_token_id, config.eos_token_id) == (2, 3)  # ALBERT's: [CLS] and [SEP]
