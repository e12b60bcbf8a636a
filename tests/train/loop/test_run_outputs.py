"""What a run leaves behind: checkpoints that Hugging Face loads, and files that say how they came about."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoTokenizer

from bioshards.corpus.output.output_layout import SPLITS
from bioshards.train.config.model_presets import PRESETS
from bioshards.train.loop.metrics_log import SPEED_FIELDS
from bioshards.train.models import attention
from tests.support.outputs import load_manifest
from tests.support.train.trainer_runs import (
    is_same_state,
    load_log,
    load_reproducible_log,
    load_state,
    run_trainer,
    use_torch_threads,
)

FAMILIES = ("electra", "bert", "albert")
LAST, BEFORE = "step-0000012", "step-0000006"
_HEADS = {
    "AutoModel": (),
    "AutoModelForTokenClassification": ("classifier.",),
    "AutoModelForSequenceClassification": ("classifier.",),
    "AutoModelForQuestionAnswering": ("qa_outputs.",),
    "AutoModelForPreTraining": (),
    "AutoModelForMaskedLM": ("generator_predictions.", "generator_lm_head."),
}
"""Classes, and where their new weights are: an ELECTRA discriminator has no head that guesses tokens."""


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    with use_torch_threads(1):
        yield


@pytest.fixture(scope="module")
def runs(pretraining_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A finished run of each family."""
    folder = tmp_path_factory.mktemp("runs")
    for family in FAMILIES:
        assert run_trainer(pretraining_sets[family], folder / family) == 0
    return {family: folder / family for family in FAMILIES}


def weights(hf: Path) -> dict[str, torch.Tensor]:
    return load_file(hf / "model.safetensors")


def loaded(name: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """A model, and the library's report."""
    found = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    return found[0], found[1]


# Models


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", _HEADS)
def test_hugging_face_loads_it_with_no_more_than_the_head_new(
    name: str, family: str, runs: dict[str, Path]
) -> None:
    hf = runs[family] / LAST / "hf"
    model, report = loaded(name, hf)
    missing = set(report["missing_keys"])
    assert not report["mismatched_keys"]
    if name == "AutoModelForMaskedLM" and family != "electra":
        assert not missing
    else:
        assert bool(missing) == bool(_HEADS[name])
        assert all(key.startswith(_HEADS[name]) for key in missing)
    if name == "AutoModelForPreTraining":
        assert not report["unexpected_keys"]
    saved, base = weights(hf), model.base_model_prefix
    for key, value in model.base_model.state_dict().items():
        assert torch.equal(value, saved[f"{base}.{key}"])


def test_the_generator_is_a_model_too(runs: dict[str, Path]) -> None:
    hf = runs["electra"] / LAST / "hf"
    model, report = loaded("AutoModelForMaskedLM", hf / "generator")
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    ours, theirs = weights(hf), model.state_dict()
    shared = [name for name in ours if name.startswith("electra.embeddings.")]
    assert len(shared) == 5  # words, positions, types, and both vectors of their LayerNorm
    assert all(torch.equal(ours[name], theirs[name]) for name in shared)
    assert theirs["generator_lm_head.weight"].equal(theirs["electra.embeddings.word_embeddings.weight"])


@pytest.mark.parametrize("family", FAMILIES)
def test_its_weights_are_those_that_training_goes_on_with(family: str, runs: dict[str, Path]) -> None:
    for checkpoint in (BEFORE, LAST):
        kept = load_state(runs[family] / checkpoint)["model"]
        hf = runs[family] / checkpoint / "hf"
        found: dict[str, torch.Tensor] = {}
        parts = {"discriminator": hf, "generator": hf / "generator"} if family == "electra" else {"model": hf}
        for part, folder in parts.items():
            found |= {f"{part}.{name}": value for name, value in weights(folder).items()}
        assert found.keys() <= kept.keys()
        assert all(torch.equal(value, kept[name]) for name, value in found.items())
        # what is not in the files is tied to what is
        for name in kept.keys() - found.keys():
            assert any(torch.equal(kept[name], value) for value in found.values()), name
    assert not is_same_state(
        load_state(runs[family] / BEFORE)["model"], load_state(runs[family] / LAST)["model"]
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_its_configuration_is_the_librarys_own(family: str, runs: dict[str, Path]) -> None:
    hf = runs[family] / LAST / "hf"
    for path in hf.rglob("config.json"):
        said = path.read_text()
        assert attention.ATTN_IMPLEMENTATION not in said
        assert "bioshards" not in said
        assert "_attn" not in said
        known = AutoConfig.for_model(json.loads(said)["model_type"]).to_dict()
        assert json.loads(said).keys() <= known.keys() | {"architectures", "transformers_version"}
    found = AutoConfig.from_pretrained(hf)
    assert (found.model_type, found.vocab_size, found.max_position_embeddings) == (family, 300, 64)
    assert found.hidden_dropout_prob == 0.1


@pytest.mark.parametrize("family", FAMILIES)
def test_a_loaded_model_reads_what_its_tokenizer_makes(family: str, runs: dict[str, Path]) -> None:
    hf = runs[family] / LAST / "hf"
    tokenizer, (model, _) = AutoTokenizer.from_pretrained(hf), loaded("AutoModel", hf)
    texts = ["The mice slept.", "No kidney declined in winter."]
    given = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        together = model(**given).last_hidden_state
        for text, hidden, seen in zip(texts, together, given["attention_mask"].bool(), strict=True):
            alone = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0]
            torch.testing.assert_close(hidden[seen], alone, rtol=1e-4, atol=1e-5)


# Tokenizers


@pytest.mark.parametrize("family", FAMILIES)
def test_its_tokenizer_is_the_vocabularys(
    family: str, runs: dict[str, Path], pretraining_sets: dict[str, Path]
) -> None:
    ours = Tokenizer.from_file(str(pretraining_sets["vocabulary"] / "tokenizer.json"))
    theirs = AutoTokenizer.from_pretrained(runs[family] / LAST / "hf")
    for text in (
        "The mice slept at night.",
        "Naïve β-carotene (p < 0.05)",
        "",
        " \t ",
        "[MASK] zß\u200b漢字 x",
    ):
        assert theirs(text).input_ids == ours.encode(text).ids
        pair = ours.encode(text, "twice, then never.")
        assert theirs(text, "twice, then never.").input_ids == pair.ids
        assert theirs(text, "twice, then never.").token_type_ids == pair.type_ids
    assert len(theirs) == ours.get_vocab_size()
    assert theirs.model_max_length == 64
    named = (theirs.pad_token, theirs.unk_token, theirs.cls_token, theirs.sep_token, theirs.mask_token)
    assert named == ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    assert len(theirs("The mice slept. " * 99, truncation=True).input_ids) == 64


# What is said of a run


@pytest.mark.parametrize("family", FAMILIES)
def test_run_json_says_what_was_trained_on_what_with_what(
    family: str, runs: dict[str, Path], pretraining_sets: dict[str, Path]
) -> None:
    run, data = runs[family], pretraining_sets[family]
    said = json.loads((run / "run.json").read_text())
    recipe = said["identity"]["recipe"]
    assert recipe.keys() == PRESETS["tiny"].to_dict().keys()
    assert (recipe["family"], recipe["hidden_size"], recipe["steps"], recipe["batch_size"]) == (
        family,
        32,
        12,
        8,
    )
    assert said["preset"] == "tiny"
    digest = hashlib.sha256((pretraining_sets["vocabulary"] / "tokenizer.json").read_bytes()).hexdigest()
    assert said["identity"]["vocabulary_sha256"] == digest
    shards = [one for one in load_manifest(data)["outputs"] if one["file"].startswith(f"{SPLITS[0]}/")]
    listed = "".join(f"{one['file']} {one['sha256']}\n" for one in shards)
    assert said["identity"]["data_fingerprint"] == hashlib.sha256(listed.encode()).hexdigest()
    assert said["identity"]["origin"] is None
    assert said["data"]["folder"] == str(data)
    assert said["data"]["rows"] == sum(one["rows"] for one in shards)
    assert said["run"]["library_versions"].keys() == {
        *("bioshards", "python", "numpy", "tokenizers", "torch", "transformers"),
    }
    assert said["run"]["library_versions"]["torch"] == torch.__version__
    assert said["run"]["command"][:4] == ["python", "-m", "bioshards.train", str(data)]
    assert (said["run"]["world_size"], said["run"]["device"], said["run"]["micro_batch_size"]) == (
        1,
        "cpu",
        8,
    )
    for checkpoint, step in ((BEFORE, 6), (LAST, 12)):
        of = json.loads((run / checkpoint / "run.json").read_text())
        assert of["step"] == step
        assert of["tokens"] == next(
            (line["tokens_seen"] for line in load_log(run) if line["step"] == step), of["tokens"]
        )
        assert {name: value for name, value in of.items() if name in said and name != "started_at"} == {
            name: value for name, value in said.items() if name != "started_at"
        }


@pytest.mark.parametrize("family", FAMILIES)
def test_the_manifest_lists_every_file_of_the_last_checkpoint(family: str, runs: dict[str, Path]) -> None:
    run = runs[family]
    said = load_manifest(run)
    listed = {one["file"]: (one["bytes"], one["sha256"]) for one in said["outputs"]}
    there = {}
    for path in sorted((run / LAST).rglob("*")):
        if path.is_file() and path.name != "run.json":  # which has times
            data = path.read_bytes()
            there[str(path.relative_to(run))] = (len(data), hashlib.sha256(data).hexdigest())
    assert listed == there
    assert said["pipeline"] == "train"
    about = json.loads((run / "run.json").read_text())
    assert said["config"] == {**about["identity"]["recipe"], "format": about["identity"]["format"]}
    assert said["inputs"] == [
        {name: about["identity"][name] for name in ("data_fingerprint", "vocabulary_sha256", "origin")},
    ]
    assert (
        said["final_metrics"] == [line for line in load_reproducible_log(run) if line["split"] == "train"][-1]
    )
    assert said["run"]["library_versions"] == about["run"]["library_versions"]


@pytest.mark.parametrize(
    ("family", "weight", "accuracies"),
    [
        ("electra", {"mlm": 1, "rtd": 50}, {"mlm_accuracy", "rtd_accuracy", "replaced", "replaced_entropy"}),
        ("bert", {"mlm": 1, "nsp": 1}, {"mlm_accuracy", "nsp_accuracy"}),
        ("albert", {"mlm": 1, "sop": 1}, {"mlm_accuracy", "sop_accuracy"}),
    ],
)
def test_the_log_says_all_that_is_to_be_known(
    family: str, weight: dict[str, float], accuracies: set[str], runs: dict[str, Path]
) -> None:
    lines = load_log(runs[family])
    assert [(line["step"], line["split"]) for line in lines] == [
        *((4, "train"), (8, "train"), (12, "train"), (12, "validation")),
    ]
    for line in lines:
        assert line["losses"].keys() == weight.keys()
        assert line["loss"] == pytest.approx(sum(weight[name] * line["losses"][name] for name in weight))
        assert accuracies <= line["metrics"].keys()
        assert all(0 <= value <= 1 for value in line["metrics"].values())
    numbers = ("lr", "grad_norm", "skipped_steps", "tokens_seen", "mask_rate", "epoch", *SPEED_FIELDS)
    for line in lines[:3]:
        assert {"step", "split", "loss", "losses", "metrics", *numbers} == line.keys()
        assert all(isinstance(line[name], (int, float)) for name in numbers)
        assert line["grad_norm"] > 0
        assert line["mask_rate"] == 0.15
        assert 0 < line["mfu"] < 1
        assert 0 <= line["data_wait_fraction"] < 1
    for name in ("tokens_seen", "epoch", "elapsed_seconds"):
        values = [line[name] for line in lines[:3]]
        assert values == sorted(set(values))


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_command_writes_the_same_files_but_for_times(
    family: str,
    runs: dict[str, Path],
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there, again = runs[family], tmp_path / family
    assert run_trainer(pretraining_sets[family], again) == 0
    names = [sorted(str(path.relative_to(run)) for path in run.rglob("*")) for run in (there, again)]
    assert names[0] == names[1]
    for name in names[0]:
        one, other = there / name, again / name
        if one.is_dir():
            continue
        if "/hf/" in name:
            assert one.read_bytes() == other.read_bytes(), name
        elif name.endswith("state.pt"):
            assert is_same_state(load_state(one.parent), load_state(other.parent))
        elif name.endswith("run.json"):
            assert timeless(one, there) == timeless(other, again)
    assert load_reproducible_log(there) == load_reproducible_log(again)
    ours, theirs = load_manifest(there), load_manifest(again)
    for said in (ours, theirs):
        del said["run"]
        said["outputs"] = [each for each in said["outputs"] if "/hf/" in each["file"]]
        said["final_metrics"] = {
            name: said["final_metrics"][name] for name in ("losses", "lr", "grad_norm", "tokens_seen")
        }
    assert ours == theirs


def timeless(path: Path, run: Path) -> Any:
    """A run.json without times, whatever its --output."""
    said = json.loads(path.read_text().replace(json.dumps(str(run)), '"RUN"'))
    return {name: value for name, value in said.items() if name not in ("started_at", "saved")}
