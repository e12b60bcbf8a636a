"""The training command: options, initial weights, continued runs, and learning on a small corpus."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from bioshards.train.optim import learning_rate
from tests.support.corpus.synthetic_documents import make_document, write_document_dir
from tests.support.outputs import published_digests
from tests.support.train.trainer_runs import (
    build_pretraining_set,
    is_same_state,
    load_log,
    load_state,
    run_trainer,
)
from tests.support.vocab.synthetic_corpora import build_vocabulary, load_rows, write_abstracts

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("single_thread")]

Capture = pytest.CaptureFixture[str]
ReadError = Callable[..., str]
FAMILIES = ("electra", "bert", "albert")
LAST = "step-0000012"


@pytest.fixture(scope="module")
def other_sets(
    pretraining_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Other pretraining sets, with the same vocabulary and with another."""
    folder = tmp_path_factory.mktemp("others")
    documents = write_abstracts(folder / "documents", a=range(500, 560))
    same = build_pretraining_set(folder / "same", "electra", documents, pretraining_sets["vocabulary"])
    vocabulary = build_vocabulary(folder / "vocabulary", documents, options=("--size", "280"))
    other = build_pretraining_set(folder / "other", "electra", documents, vocabulary)
    return {"same": same, "other": other}


@pytest.fixture
def read_start_error(pretraining_sets: dict[str, Path], tmp_path: Path, capsys: Capture) -> ReadError:
    """Run the trainer with exit code 2 before it starts, and return its error message."""

    def call(*options: object, data: Path = pretraining_sets["electra"]) -> str:
        capsys.readouterr()
        assert run_trainer(data, tmp_path / "out", *options) == 2
        message = capsys.readouterr().err.splitlines()[-1]
        assert message.startswith("train: ")
        assert not (tmp_path / "out" / "run.json").exists()
        return message

    return call


# Arguments


def test_summary_shows_how_to_load_the_model(
    pretraining_sets: dict[str, Path], tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    assert run_trainer(pretraining_sets["electra"], out) == 0
    stdout = capsys.readouterr().out
    assert stdout.startswith("12 steps, ")
    assert f"checkpoint: {out}/{LAST}/hf\n" in stdout
    assert f'AutoModel.from_pretrained("{out}/{LAST}/hf")' in stdout
    assert f"report:     {out}/report.html" in stdout


# Presets that need initial weights


@pytest.mark.parametrize(
    ("preset", "data", "expected"),
    [
        ("bioalbert", "albert", "starts from a checkpoint: give --init-checkpoint FOLDER, a Hugging Face"),
        ("bio-electra-pp", "electra", "starts from a run: give --continue-from RUN"),
        ("bioalbert-pmc", "albert", "starts from a run: give --continue-from RUN"),
    ],
)
def test_preset_that_needs_initial_weights_is_refused_without_them(
    preset: str, data: str, expected: str, read_start_error: ReadError, pretraining_sets: dict[str, Path]
) -> None:
    options = ("--preset", preset, "--steps", 4_000_000, "--num-heads", 2)
    message = read_start_error(*options, data=pretraining_sets[data])
    assert f"this recipe {expected}" in message
    assert message.endswith("or --start-from random for random weights")


@pytest.mark.parametrize(("preset", "data"), [("bioalbert", "albert"), ("bio-electra-pp", "electra")])
def test_preset_can_start_from_random_weights(
    preset: str, data: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    options = ("--preset", preset, "--start-from", "random", "--warmup", 0.1)
    sizes = ("--num-layers", 2, "--num-heads", 2, "--steps", 2)
    assert run_trainer(pretraining_sets[data], tmp_path / "out", *options, *sizes) == 0


def test_init_checkpoint_and_continue_from_exclude_each_other(
    read_start_error: ReadError, runs: dict[str, Path]
) -> None:
    options = ("--init-checkpoint", runs["electra"] / LAST / "hf", "--continue-from", runs["electra"])
    message = read_start_error(*options)
    assert "--init-checkpoint and --continue-from exclude each other" in message


# --init-checkpoint


def test_checkpoint_with_another_vocabulary_is_refused(
    read_start_error: ReadError, runs: dict[str, Path], other_sets: dict[str, Path]
) -> None:
    """models/test_weights.py has vocabularies of the same size."""
    hf = runs["electra"] / LAST / "hf"
    message = read_start_error("--init-checkpoint", hf, data=other_sets["other"])
    assert "has a model with a vocabulary of 300 pieces; the pretraining set has " in message


def test_missing_or_damaged_checkpoint_or_one_of_another_family_is_refused(
    read_start_error: ReadError, runs: dict[str, Path], tmp_path: Path
) -> None:
    """models/test_weights.py has other sizes."""
    message = read_start_error("--init-checkpoint", runs["electra"] / LAST / "hf", "--family", "bert")
    assert "has a model of family electra; this run trains bert" in message
    assert "nowhere does not exist" in read_start_error("--init-checkpoint", tmp_path / "nowhere")
    message = read_start_error("--init-checkpoint", runs["electra"])
    assert "has no config.json. Give a folder written by save_pretrained, such as the hf/ of a" in message
    damaged = shutil.copytree(runs["electra"] / LAST / "hf", tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes(b"weights")
    assert "cannot read the weights of" in read_start_error("--init-checkpoint", damaged)


# --continue-from


def test_run_can_be_continued_on_other_data(
    runs: dict[str, Path], other_sets: dict[str, Path], tmp_path: Path
) -> None:
    """The schedule, Adam's moments, steps and tokens continue; the data starts with a new epoch."""
    before = published_digests(runs["electra"])
    out, options = tmp_path / "out", ("--log-every", 1, "--save-every", 1, "--keep-checkpoints", 20)
    schedule = ("--steps", 24, "--schedule", "electra", "--warmup", 4)
    assert run_trainer(other_sets["same"], out, "--continue-from", runs["electra"], *schedule, *options) == 0
    lines = [line for line in load_log(out) if line["split"] == "train"]
    assert [line["step"] for line in lines] == list(range(13, 25))
    for line in lines:
        assert line["lr"] == learning_rate("electra", line["step"] - 1, 24, 4, 1e-3)
    assert lines[0]["lr"] == pytest.approx(1e-3 * (1 - 12 / 24))
    origin_state = load_state(runs["electra"] / LAST)
    assert lines[0]["tokens_seen"] > origin_state["tokens"] > lines[0]["tokens_seen"] - 8 * 64
    data_rows = json.loads((out / "run.json").read_text())["data"]["rows"]
    assert [line["epoch"] for line in lines] == pytest.approx([8 * step / data_rows for step in range(1, 13)])
    first_state = load_state(out / "step-0000013")
    assert (first_state["done"], first_state["first"]) == (13, 12)
    assert json.loads((out / "run.json").read_text())["first_step"] == 12
    assert published_digests(runs["electra"]) == before


def test_continued_run_has_the_model_and_optimizer_state(
    runs: dict[str, Path], other_sets: dict[str, Path], tmp_path: Path
) -> None:
    """With a learning rate of 0 the weights stay equal, and the second moments build on the old ones."""
    no_updates = ("--learning-rate", 0, "--weight-decay", 0, "--warmup", 0)
    options = ("--continue-from", runs["electra"], "--steps", 13, *no_updates)
    assert run_trainer(other_sets["same"], tmp_path / "out", *options) == 0
    origin_state, state = load_state(runs["electra"] / LAST), load_state(tmp_path / "out" / "step-0000013")
    assert is_same_state(origin_state["model"], state["model"])
    for name, before in origin_state["optimiser"]["second"].items():
        gradient_part = state["optimiser"]["second"][name] - 0.999 * before
        assert bool((gradient_part > -1e-9).all())
    assert state["optimiser"]["steps"] == 13


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--num-layers", 3), "that run has another model: --num-layers 2"),
        (("--hidden-size", 64, "--intermediate-size", 128), "--hidden-size 32, --intermediate-size 64"),
        (("--optimizer", "lamb"), "that run has another model: --optimizer adam"),
        (("--generator-hidden-fraction", 0.5), "model: --generator-hidden-fraction 0.25"),
        (("--family", "bert"), "that run has another model: --family electra"),
        (("--steps", 12), "--steps 12 counts from step 0, and "),
        (("--steps", 6), "has done 12: give more"),
    ],
)
def test_continuing_with_another_model_or_too_few_steps_is_refused(
    options: tuple[object, ...],
    expected: str,
    read_start_error: ReadError,
    runs: dict[str, Path],
    other_sets: dict[str, Path],
) -> None:
    base_options = ("--continue-from", runs["electra"], "--steps", 24)
    assert expected in read_start_error(*base_options, *options, data=other_sets["same"])


def test_invalid_continue_from_is_refused(
    read_start_error: ReadError,
    runs: dict[str, Path],
    other_sets: dict[str, Path],
    tmp_path: Path,
    capsys: Capture,
) -> None:
    def read_continue_error(run: Path, data: Path = other_sets["same"]) -> str:
        return read_start_error("--continue-from", run, "--steps", 24, data=data)

    message = read_continue_error(runs["electra"], other_sets["other"])
    assert "that run has another model: another vocabulary" in message
    for path in (tmp_path / "nowhere", tmp_path, runs["electra"] / LAST, other_sets["same"]):
        expected = f"--continue-from {path} has no checkpoint: give the --output of a training run"
        assert expected in read_continue_error(path)
    assert run_trainer(other_sets["same"], runs["electra"], "--continue-from", runs["electra"]) == 2
    expected = "--continue-from and --output are the same folder; rerun the command without"
    assert expected in capsys.readouterr().err


# Learning


@pytest.fixture(scope="module")
def topic_sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Sets of abstracts with two words each, so that context determines a masked token."""
    folder, rng = tmp_path_factory.mktemp("topics"), random.Random(5)
    words = ["".join(rng.choice("bdfgklmnprst") + rng.choice("aeiou") for _ in range(3)) for _ in range(16)]

    def make_sentences(number: int) -> list[str]:
        topic = words[number % 8 * 2 :][:2]
        return [" ".join(rng.choices(topic, k=9)) + "." for _ in range(8)]

    abstracts = [make_document(f"pubmed:{number}", make_sentences(number)) for number in range(1, 241)]
    documents = write_document_dir(folder / "documents", {"a": abstracts})
    vocabulary = build_vocabulary(folder / "vocabulary", documents, options=("--size", "290"))
    return {
        family: build_pretraining_set(folder / family, family, documents, vocabulary) for family in FAMILIES
    }


def compute_unigram_entropy(data: Path) -> float:
    """Compute the entropy of maskable tokens in nats: the loss of a model that knows only frequencies."""
    special = 5
    counts = Counter(token for row in load_rows(data, "train") for token in row.ids if token >= special)
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_model_learns_more_than_token_frequencies(
    family: str, topic_sets: dict[str, Path], tmp_path: Path
) -> None:
    """Losses are below token frequencies (MLM) and the replaced share (RTD), and near chance for pairs.

    The order of sentences is random in these abstracts."""
    sizes = ("--hidden-size", 64, "--intermediate-size", 64, "--embedding-size", 64)
    recipe = ("--generator-hidden-fraction", 0.5, "--dropout", 0, "--attention-dropout", 0)
    steps = ("--steps", 250, "--log-every", 50, "--save-every", 250)
    assert run_trainer(topic_sets[family], tmp_path / "out", *sizes, *recipe, *steps) == 0
    *_, last, validation = load_log(tmp_path / "out")
    assert (last["split"], validation["split"]) == ("train", "validation")
    for entry in (last, validation):
        losses, metrics = entry["losses"], entry["metrics"]
        assert losses["mlm"] < compute_unigram_entropy(topic_sets[family]) - 0.1
        if family == "electra":
            assert losses["rtd"] < 0.95 * metrics["replaced_entropy"]
        else:
            assert losses["nsp" if family == "bert" else "sop"] < math.log(2) + 0.1
