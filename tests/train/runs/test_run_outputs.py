"""Outputs of a run: checkpoints that Hugging Face loads, ``run.json``, manifest and log."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import lxml.html
import pyarrow as pa
import pytest
import torch
import torch.nn.functional as F
import transformers
import yaml  # type: ignore[import-untyped]
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoTokenizer

from bioshards.corpus.output.output_layout import SPLITS
from bioshards.train import run_report
from bioshards.train.batch import Batch
from bioshards.train.log import SPEED_FIELDS
from bioshards.train.models import attention
from bioshards.train.models.objectives import ElectraObjective
from bioshards.train.presets import PRESETS
from tests.support.outputs import load_manifest
from tests.support.train.trainer_runs import (
    is_same_state,
    load_log,
    load_reproducible_log,
    load_state,
    run_trainer,
)

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("single_thread")]

FAMILIES = ("electra", "bert", "albert")
LAST, BEFORE = "step-0000012", "step-0000006"
_NEW_WEIGHTS = {
    "AutoModel": (),
    "AutoModelForTokenClassification": ("classifier.",),
    "AutoModelForSequenceClassification": ("classifier.",),
    "AutoModelForQuestionAnswering": ("qa_outputs.",),
    "AutoModelForPreTraining": (),
    "AutoModelForMaskedLM": ("generator_predictions.", "generator_lm_head."),
}
"""Prefixes of newly initialized weights by class; an ELECTRA discriminator does not predict tokens."""


def load_weights(hf: Path) -> dict[str, torch.Tensor]:
    return load_file(hf / "model.safetensors")


def load_model(name: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """Load a model, and return it with the library's loading report."""
    model_and_report = getattr(transformers, name).from_pretrained(folder, output_loading_info=True)
    return model_and_report[0], model_and_report[1]


# Model cards


def test_model_card_says_which_heads_are_trained(runs: dict[str, Path]) -> None:
    cards = {family: (runs[family] / LAST / "hf" / "README.md").read_text() for family in FAMILIES}
    for family, card in cards.items():
        header = {"library_name": "transformers", "license": "other", "language": "en"}
        run_card = (runs[family] / "README.md").read_text()
        for text in (card, run_card):
            assert yaml.safe_load(text.split("---\n")[1]) == {**header, "tags": ["biology", "medical"]}
        assert f'AutoModel.from_pretrained("{LAST}/hf")' in run_card
        assert "| validation/losses/mlm | " in run_card
        assert f"# {family}, 2 layers of 32" in card
        assert "after 12 of\n12 steps" in card
    assert "**`AutoModelForMaskedLM` on this folder adds a head that is not trained.**" in cards["electra"]
    assert "`AutoModelForMaskedLM` on `generator/`" in cards["electra"]
    assert "head for next sentences: `AutoModelForPreTraining`" in cards["bert"]
    assert "head for the order of sentences: `AutoModelForPreTraining`" in cards["albert"]


def test_model_card_names_a_head_without_labels_as_untrained(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data = pretraining_sets["electra"]
    assert run_trainer(data, tmp_path / "run", "--family", "bert", "--steps", 1, "--warmup", 0) == 0
    card = (tmp_path / "run" / "step-0000001" / "hf" / "README.md").read_text()
    assert "The pooler and the head for next sentences were **not trained in this run**" in card


def test_generator_has_the_tokenizer_of_the_model(runs: dict[str, Path]) -> None:
    hf = runs["electra"] / LAST / "hf"
    text = "naloxone binds the [MASK] receptor"
    ids = [AutoTokenizer.from_pretrained(folder)(text)["input_ids"] for folder in (hf, hf / "generator")]
    assert ids[0] == ids[1]
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        assert (hf / "generator" / name).read_bytes() == (hf / name).read_bytes()
    fill = transformers.pipeline("fill-mask", model=str(hf / "generator"))
    assert len(fill("the [MASK] receptor", top_k=3)) == 3


# Models


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", _NEW_WEIGHTS)
def test_hugging_face_loads_models_with_only_new_heads(name: str, family: str, runs: dict[str, Path]) -> None:
    hf = runs[family] / LAST / "hf"
    model, report = load_model(name, hf)
    missing = set(report["missing_keys"])
    assert not report["mismatched_keys"]
    if name == "AutoModelForMaskedLM" and family != "electra":
        assert not missing
    else:
        assert bool(missing) == bool(_NEW_WEIGHTS[name])
        assert all(key.startswith(_NEW_WEIGHTS[name]) for key in missing)
    if name == "AutoModelForPreTraining":
        assert not report["unexpected_keys"]
    saved, base = load_weights(hf), model.base_model_prefix
    for key, value in model.base_model.state_dict().items():
        assert torch.equal(value, saved[f"{base}.{key}"])


def test_generator_is_a_complete_model(runs: dict[str, Path]) -> None:
    hf = runs["electra"] / LAST / "hf"
    model, report = load_model("AutoModelForMaskedLM", hf / "generator")
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    discriminator, generator = load_weights(hf), model.state_dict()
    shared = [name for name in discriminator if name.startswith("electra.embeddings.")]
    assert len(shared) == 5  # words, positions, types, and both vectors of their LayerNorm
    assert all(torch.equal(discriminator[name], generator[name]) for name in shared)
    assert generator["generator_lm_head.weight"].equal(generator["electra.embeddings.word_embeddings.weight"])


@pytest.mark.parametrize("family", FAMILIES)
def test_saved_weights_equal_the_training_state(family: str, runs: dict[str, Path]) -> None:
    for checkpoint in (BEFORE, LAST):
        state = load_state(runs[family] / checkpoint)["model"]
        hf = runs[family] / checkpoint / "hf"
        saved: dict[str, torch.Tensor] = {}
        parts = {"discriminator": hf, "generator": hf / "generator"} if family == "electra" else {"model": hf}
        for part, folder in parts.items():
            saved |= {f"{part}.{name}": value for name, value in load_weights(folder).items()}
        assert saved.keys() <= state.keys()
        assert all(torch.equal(value, state[name]) for name, value in saved.items())
        # weights that are not in the files are tied to others
        for name in state.keys() - saved.keys():
            assert any(torch.equal(state[name], value) for value in saved.values()), name
    assert not is_same_state(
        load_state(runs[family] / BEFORE)["model"], load_state(runs[family] / LAST)["model"]
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_configuration_has_only_library_fields(family: str, runs: dict[str, Path]) -> None:
    hf = runs[family] / LAST / "hf"
    for path in hf.rglob("config.json"):
        text = path.read_text()
        assert attention.ATTN_IMPLEMENTATION not in text
        assert "bioshards" not in text
        assert "_attn" not in text
        known = AutoConfig.for_model(json.loads(text)["model_type"]).to_dict()
        assert json.loads(text).keys() <= known.keys() | {"architectures", "transformers_version"}
    config = AutoConfig.from_pretrained(hf)
    assert (config.model_type, config.vocab_size, config.max_position_embeddings) == (family, 300, 64)


# Tokenizers


@pytest.mark.parametrize("family", FAMILIES)
def test_tokenizer_equals_the_vocabulary(
    family: str, runs: dict[str, Path], pretraining_sets: dict[str, Path]
) -> None:
    tokenizer = Tokenizer.from_file(str(pretraining_sets["vocabulary"] / "tokenizer.json"))
    hf_tokenizer = AutoTokenizer.from_pretrained(runs[family] / LAST / "hf")
    texts = ("The mice slept at night.", "Naïve β-carotene (p < 0.05)", "", " \t ", "[MASK] zß\u200b漢字 x")
    for text in texts:
        assert hf_tokenizer(text).input_ids == tokenizer.encode(text).ids
        pair = tokenizer.encode(text, "twice, then never.")
        assert hf_tokenizer(text, "twice, then never.").input_ids == pair.ids
        assert hf_tokenizer(text, "twice, then never.").token_type_ids == pair.type_ids
    assert len(hf_tokenizer) == tokenizer.get_vocab_size()
    assert hf_tokenizer.model_max_length == 64
    for name in ("pad", "unk", "cls", "sep", "mask"):
        assert getattr(hf_tokenizer, f"{name}_token") == f"[{name.upper()}]"
    assert len(hf_tokenizer("The mice slept. " * 99, truncation=True).input_ids) == 64


# Descriptions of a run


@pytest.mark.parametrize("family", FAMILIES)
def test_report_shows_losses_and_ten_masked_tokens(family: str, runs: dict[str, Path]) -> None:
    tree: Any = lxml.html.document_fromstring((runs[family] / "report.html").read_bytes())
    assert [figure.text_content().split()[0] for figure in tree.iter("figure")] == [
        *(("mlm", "rtd") if family == "electra" else ("mlm", "nsp" if family == "bert" else "sop")),
    ]
    for line in tree.iter("polyline"):
        points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        assert len(points) >= 2
        assert all(0 <= value <= 100 for point in points for value in point)
    guesses, metrics, settings = (
        [[cell.text_content() for cell in row] for row in table.iter("tr")] for table in tree.iter("table")
    )
    assert guesses[0] == ["token", "text", "guesses", *["discriminator"] * (family == "electra")]
    assert len(guesses) == 11
    for _, text, candidates, *judgement in guesses[1:]:
        assert text.count("[?]") == 1
        assert len(re.findall(r"\S+ \d+%", candidates)) == 3
        assert all(re.fullmatch(r"\S+: \d+% sure that it was replaced", line) for line in judgement)
    assert "train/metrics/mlm_accuracy" in [name for name, _ in metrics]
    assert ["batch size", "8"] in settings


def test_guess_is_of_the_token_that_its_text_leaves_out(
    pretraining_sets: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A generator that knows each masked token has it as its first guess, and nothing is replaced."""

    def know_all(_: object, batch: Batch) -> torch.Tensor:
        return 99 * F.one_hot(batch.targets.clamp(min=0), 300).float()

    guesses: list[run_report.Guess] = []
    guess_masked_tokens = run_report.guess_masked_tokens

    def keep_guesses(*arguments: Any) -> list[run_report.Guess]:
        monkeypatch.setattr(ElectraObjective, "compute_generator_logits", know_all)
        guesses.extend(guess_masked_tokens(*arguments))
        return guesses

    monkeypatch.setattr(run_report, "guess_masked_tokens", keep_guesses)
    assert run_trainer(pretraining_sets["electra"], tmp_path, "--steps", 1, "--warmup", 0) == 0
    tokenizer = Tokenizer.from_file(str(pretraining_sets["vocabulary"] / "tokenizer.json"))
    pieces = {token_id: piece for piece, token_id in tokenizer.get_vocab().items()}
    tables = [
        pa.ipc.open_stream(path.read_bytes()).read_all()
        for path in (pretraining_sets["electra"] / "validation").glob("data-*.arrow")
    ]
    rows = [
        "".join(pieces[token_id] for token_id in ids).replace("##", "")
        for table in tables
        for ids in table["input_ids"].to_pylist()
    ]
    assert len(guesses) == 10
    for guess in guesses:
        assert guess.candidates.startswith(f"{guess.token} 100%, ")
        assert guess.judgement.startswith(f"{guess.token}: ")
        text = guess.text.replace("[?]", guess.token).replace(" ", "").replace("##", "")
        pattern = ".{1,20}".join(map(re.escape, text.split("[MASK]")))
        assert any(re.search(pattern, row) for row in rows), guess


@pytest.mark.parametrize("family", FAMILIES)
def test_run_json_has_recipe_data_and_versions(
    family: str, runs: dict[str, Path], pretraining_sets: dict[str, Path]
) -> None:
    run, data = runs[family], pretraining_sets[family]
    run_json = json.loads((run / "run.json").read_text())
    recipe = run_json["identity"]["recipe"]
    assert recipe.keys() == PRESETS["tiny"].to_dict().keys()
    sizes = (recipe["family"], recipe["hidden_size"], recipe["steps"], recipe["batch_size"])
    assert sizes == (family, 32, 12, 8)
    assert run_json["preset"] == "tiny"
    digest = hashlib.sha256((pretraining_sets["vocabulary"] / "tokenizer.json").read_bytes()).hexdigest()
    assert run_json["identity"]["vocabulary_sha256"] == digest
    shards = [shard for shard in load_manifest(data)["outputs"] if shard["file"].startswith(f"{SPLITS[0]}/")]
    listed = "".join(f"{shard['file']} {shard['sha256']}\n" for shard in shards)
    assert run_json["identity"]["data_fingerprint"] == hashlib.sha256(listed.encode()).hexdigest()
    assert run_json["identity"]["origin"] is None
    assert run_json["data"]["folder"] == str(data)
    assert run_json["data"]["rows"] == sum(shard["rows"] for shard in shards)
    run_of = run_json["run"]
    libraries = {"bioshards", "python", "numpy", "tokenizers", "torch", "transformers"}
    assert run_of["library_versions"].keys() == libraries
    assert run_of["library_versions"]["torch"] == torch.__version__
    assert run_of["command"][:3] == ["bioshards", "train", str(data)]
    assert (run_of["world_size"], run_of["device"], run_of["micro_batch_size"]) == (1, "cpu", 8)
    for checkpoint, step in ((BEFORE, 6), (LAST, 12)):
        checkpoint_json = json.loads((run / checkpoint / "run.json").read_text())
        assert checkpoint_json["step"] == step
        assert checkpoint_json["tokens"] == next(
            (line["tokens_seen"] for line in load_log(run) if line["step"] == step), checkpoint_json["tokens"]
        )
        shared = run_json.keys() - {"started_at", "sha256"}
        assert {name: checkpoint_json[name] for name in shared} == {name: run_json[name] for name in shared}
        assert checkpoint_json["files"] == {
            str(path.relative_to(run / checkpoint)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in (run / checkpoint).rglob("*")
            if path.is_file() and path.name != "run.json"
        }


@pytest.mark.parametrize("family", FAMILIES)
def test_manifest_lists_every_file_of_the_last_checkpoint(family: str, runs: dict[str, Path]) -> None:
    run = runs[family]
    manifest = load_manifest(run)
    listed = {output["file"]: (output["bytes"], output["sha256"]) for output in manifest["outputs"]}
    expected = {}
    for path in sorted((run / LAST).rglob("*")):
        if path.is_file() and path.name != "run.json":  # which has times
            data = path.read_bytes()
            expected[str(path.relative_to(run))] = (len(data), hashlib.sha256(data).hexdigest())
    assert listed == expected
    assert manifest["pipeline"] == "train"
    run_json = json.loads((run / "run.json").read_text())
    assert manifest["config"] == {**run_json["identity"]["recipe"], "format": run_json["identity"]["format"]}
    assert manifest["inputs"] == [
        {name: run_json["identity"][name] for name in ("data_fingerprint", "vocabulary_sha256", "origin")},
    ]
    assert (
        manifest["final_metrics"]
        == [line for line in load_reproducible_log(run) if line["split"] == "train"][-1]
    )
    assert manifest["run"]["library_versions"] == run_json["run"]["library_versions"]


@pytest.mark.parametrize(
    ("family", "weight", "accuracies"),
    [
        (
            "electra",
            {"mlm": 1, "rtd": 50},
            {"mlm_accuracy", "mlm_baseline", "rtd_accuracy", "replaced", "replaced_entropy"},
        ),
        ("bert", {"mlm": 1, "nsp": 1}, {"mlm_accuracy", "mlm_baseline", "nsp_accuracy"}),
        ("albert", {"mlm": 1, "sop": 1}, {"mlm_accuracy", "mlm_baseline", "sop_accuracy"}),
    ],
)
def test_log_has_losses_metrics_and_speed(
    family: str, weight: dict[str, float], accuracies: set[str], runs: dict[str, Path]
) -> None:
    lines = load_log(runs[family])
    assert [(line["step"], line["split"]) for line in lines] == [
        (4, "train"),
        (8, "train"),
        (12, "train"),
        (12, "validation"),
    ]
    for line in lines:
        assert line["losses"].keys() == weight.keys()
        assert line["loss"] == pytest.approx(sum(weight[name] * line["losses"][name] for name in weight))
        assert accuracies <= line["metrics"].keys()
        assert all(0 <= value <= 1 for value in line["metrics"].values())
    numbers = {"lr", "grad_norm", "skipped_steps", "tokens_seen", "mask_rate", "epoch", *SPEED_FIELDS}
    numbers.remove("device_memory_bytes")  # of a GPU
    for line in lines[:3]:
        assert {"step", "split", "loss", "losses", "metrics", *numbers} == line.keys()
        assert all(isinstance(line[name], (int, float)) for name in numbers)
        assert line["grad_norm"] > 0
        assert line["mask_rate"] == 0.15
        assert 0 <= line["data_wait_fraction"] < 1
    for name in ("tokens_seen", "epoch", "elapsed_seconds"):
        values = [line[name] for line in lines[:3]]
        assert values == sorted(set(values))
