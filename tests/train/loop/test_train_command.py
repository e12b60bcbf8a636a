"""The command line: what a run begins with, what it goes on from, and that models learn."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForTokenClassification

from bioshards.train.__main__ import main
from bioshards.train.config.model_presets import PRESETS
from bioshards.train.optim.schedules import learning_rate
from tests.support.corpus.synthetic_documents import make_document, write_document_dir
from tests.support.outputs import published_digests
from tests.support.train.trainer_runs import (
    SMALL_MODEL_OPTIONS,
    build_pretraining_set,
    is_same_state,
    load_log,
    load_reproducible_log,
    load_state,
    run_trainer,
    use_torch_threads,
)
from tests.support.vocab.synthetic_corpora import build_vocabulary, load_rows, write_abstracts

Capture = pytest.CaptureFixture[str]
Says = Callable[..., str]
FAMILIES = ("electra", "bert", "albert")
LAST = "step-0000012"


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


@pytest.fixture(scope="module")
def others(pretraining_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Other data: for the same vocabulary, and for another."""
    folder = tmp_path_factory.mktemp("others")
    documents = write_abstracts(folder / "documents", a=range(500, 560))
    same = build_pretraining_set(folder / "same", "electra", documents, pretraining_sets["vocabulary"])
    vocabulary = build_vocabulary(folder / "vocabulary", documents, options=("--size", "280"))
    other = build_pretraining_set(folder / "other", "electra", documents, vocabulary)
    return {"same": same, "other": other}


@pytest.fixture
def refused(capsys: Capture) -> Says:
    """What a run says that does not begin."""

    def call(data: Path, out: Path, *options: object) -> str:
        capsys.readouterr()
        assert main([str(data), "--output", str(out), *SMALL_MODEL_OPTIONS, *map(str, options)]) == 2
        said = capsys.readouterr().err.splitlines()[-1]
        assert said.startswith("train: ")
        assert not (out / "run.json").exists()
        return said

    return call


def model(checkpoint: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = load_state(checkpoint)["model"]
    return found


# Words


@pytest.mark.parametrize("words", [["--help"], ["plot", "--help"]])
def test_help(words: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert "usage: python -m bioshards.train" in said
    assert words[0] != "--help" or all(name in said for name in PRESETS)


@pytest.mark.parametrize("words", [[], ["DATA"], ["--output", "RUN"], ["plot"]])
def test_words_that_are_missing(words: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "the following arguments are required" in capsys.readouterr().err


def test_curves_are_drawn_into_the_first_run(runs: dict[str, Path], tmp_path: Path, capsys: Capture) -> None:
    first = shutil.copytree(runs["electra"], tmp_path / "run")
    capsys.readouterr()
    assert main(["plot", str(first), str(runs["bert"])]) == 0
    assert capsys.readouterr().out.split() == [f"{first}/curves.png", f"{first}/curves.html"]
    assert (first / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert main(["plot", str(first), "--output", str(tmp_path / "picture")]) == 0
    assert (tmp_path / "picture.html").exists()


def test_what_has_no_curves_is_said(tmp_path: Path, capsys: Capture) -> None:
    assert main(["plot", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("train: ")
    assert str(tmp_path) in said


def test_the_end_says_how_the_model_is_loaded(
    pretraining_sets: dict[str, Path], tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    assert run_trainer(pretraining_sets["electra"], out) == 0
    said = capsys.readouterr().out
    assert said.startswith("12 steps, ")
    assert f"checkpoint: {out}/{LAST}/hf\n" in said
    assert f'AutoModel.from_pretrained("{out}/{LAST}/hf")' in said
    assert f"python -m bioshards.train plot {out}" in said


def test_the_last_checkpoints_stay(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run_trainer(pretraining_sets["bert"], out, "--save-every", 5, "--keep-checkpoints", 2) == 0
    assert sorted(path.name for path in out.glob("step-*")) == ["step-0000010", LAST]


# Presets that begin with something


@pytest.mark.parametrize(
    ("preset", "data", "says"),
    [
        (
            "bioalbert-base",
            "albert",
            "starts from a checkpoint: give --init-checkpoint FOLDER, a Hugging Face checkpoint",
        ),
        ("bioalbert-large", "albert", "starts from a checkpoint: give --init-checkpoint FOLDER"),
        ("bio-electra-pp", "electra", "starts from a run: give --continue-from RUN"),
    ],
)
def test_a_preset_says_what_it_begins_with(
    preset: str, data: str, says: str, refused: Says, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    options = ("--preset", preset, "--steps", 4_000_000, "--num-heads", 2)
    said = refused(pretraining_sets[data], tmp_path / "out", *options)
    assert f"this recipe {says}" in said
    assert said.endswith("or --start-from random for random weights")


@pytest.mark.parametrize(("preset", "data"), [("bioalbert-base", "albert"), ("bio-electra-pp", "electra")])
def test_it_may_begin_with_random_weights_all_the_same(
    preset: str, data: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    options = ("--preset", preset, "--start-from", "random", "--warmup", 0.1)
    sizes = ("--num-layers", 2, "--num-heads", 2, "--steps", 2)
    assert run_trainer(pretraining_sets[data], tmp_path / "out", *options, *sizes) == 0


def test_not_both(
    refused: Says, pretraining_sets: dict[str, Path], runs: dict[str, Path], tmp_path: Path
) -> None:
    options = ("--init-checkpoint", runs["electra"] / LAST / "hf", "--continue-from", runs["electra"])
    said = refused(pretraining_sets["electra"], tmp_path / "out", *options)
    assert "--init-checkpoint and --continue-from exclude each other" in said


# --init-checkpoint


@pytest.mark.parametrize("family", FAMILIES)
def test_a_checkpoints_weights_are_taken_over_exactly(
    family: str, runs: dict[str, Path], pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """The learning rate of the first step is 0: after it the weights are those it began with."""
    hf = runs[family] / LAST / "hf"
    options = (
        "--init-checkpoint",
        hf,
        "--save-every",
        1,
        "--keep-checkpoints",
        20,
        "--warmup",
        5,
        "--seed",
        7,
    )
    assert run_trainer(pretraining_sets[family], tmp_path / "out", *options) == 0
    assert load_log(tmp_path / "out")[-2]["lr"] > 0
    assert is_same_state(model(tmp_path / "out" / "step-0000001"), model(runs[family] / LAST))
    assert not is_same_state(model(tmp_path / "out" / "step-0000003"), model(runs[family] / LAST))
    about = json.loads((tmp_path / "out" / "run.json").read_text())["identity"]
    assert about["origin"] == str(hf.resolve())
    assert about["recipe"]["start_from"] == "checkpoint"
    assert load_state(tmp_path / "out" / "step-0000001")["done"] == 1


def test_an_encoder_without_heads_will_do(
    runs: dict[str, Path], pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    tagger = AutoModelForTokenClassification.from_pretrained(runs["bert"] / LAST / "hf")
    tagger.save_pretrained(tmp_path / "tagger")
    options = ("--init-checkpoint", tmp_path / "tagger", "--save-every", 1, "--keep-checkpoints", 20)
    assert run_trainer(pretraining_sets["bert"], tmp_path / "out", *options) == 0
    ours, theirs = (
        model(tmp_path / "out" / "step-0000001"),
        load_file(tmp_path / "tagger" / "model.safetensors"),
    )
    for name, value in theirs.items():
        assert name.startswith("classifier.") or torch.equal(ours[f"model.{name}"], value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--family", "bert"), "has a model of family electra; this run trains bert"),
        (("--num-layers", 3), "has a model of other sizes: num_hidden_layers is 2, not 3"),
        (("--hidden-size", 64), "generator has a model of other sizes: hidden_size is 8, not 16"),
        (("--max-positions", 128), "max_position_embeddings is 64, not 128"),
    ],
)
def test_another_model_is_none_to_begin_with(
    options: tuple[object, ...],
    says: str,
    refused: Says,
    runs: dict[str, Path],
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
) -> None:
    hf = runs["electra"] / LAST / "hf"
    assert says in refused(pretraining_sets["electra"], tmp_path / "out", "--init-checkpoint", hf, *options)


def test_neither_is_one_of_another_vocabulary(
    refused: Says,
    runs: dict[str, Path],
    others: dict[str, Path],
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
) -> None:
    hf = runs["electra"] / LAST / "hf"
    said = refused(others["other"], tmp_path / "out", "--init-checkpoint", hf)
    assert "has a model with a vocabulary of 300 pieces; the pretraining set has " in said
    # As many pieces, two of them the other way round.
    changed = shutil.copytree(hf, tmp_path / "hf")
    tokenizer = json.loads((changed / "tokenizer.json").read_text())
    pieces = tokenizer["model"]["vocab"]
    one, two = [piece for piece, number in pieces.items() if number in (200, 201)]
    pieces[one], pieces[two] = pieces[two], pieces[one]
    (changed / "tokenizer.json").write_text(json.dumps(tokenizer))
    said = refused(pretraining_sets["electra"], tmp_path / "out", "--init-checkpoint", changed)
    assert "2 of its 300 pieces differ from the pretraining set's vocabulary" in said


def test_neither_is_what_is_no_model(
    refused: Says, runs: dict[str, Path], pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data, out = pretraining_sets["electra"], tmp_path / "out"
    assert "nowhere does not exist" in refused(data, out, "--init-checkpoint", tmp_path / "nowhere")
    said = refused(data, out, "--init-checkpoint", runs["electra"])
    assert (
        "has no config.json. Give a folder written by save_pretrained, such as the hf/ of a checkpoint"
        in said
    )
    damaged = shutil.copytree(runs["electra"] / LAST / "hf", tmp_path / "damaged")
    (damaged / "model.safetensors").write_bytes(b"weights")
    assert "cannot read the weights of" in refused(data, out, "--init-checkpoint", damaged)


# --continue-from


def test_a_run_is_continued_on_other_data(
    runs: dict[str, Path], others: dict[str, Path], tmp_path: Path
) -> None:
    """The schedule is that of all steps; Adam's moments, the step and the tokens go on; the data begin."""
    before = published_digests(runs["electra"])
    out, more = (
        tmp_path / "out",
        ("--steps", 24, "--log-every", 1, "--save-every", 1, "--keep-checkpoints", 20),
    )
    fixed = ("--continue-from", runs["electra"], "--schedule", "electra", "--warmup", 4)
    assert run_trainer(others["same"], out, *fixed, *more) == 0
    lines = [line for line in load_log(out) if line["split"] == "train"]
    assert [line["step"] for line in lines] == list(range(13, 25))
    for line in lines:
        assert line["lr"] == learning_rate("electra", line["step"] - 1, 24, 4, 1e-3)
    assert lines[0]["lr"] == pytest.approx(1e-3 * (1 - 12 / 24))
    there = load_state(runs["electra"] / LAST)
    assert lines[0]["tokens_seen"] > there["tokens"] > lines[0]["tokens_seen"] - 8 * 64
    data_rows = json.loads((out / "run.json").read_text())["data"]["rows"]
    assert [line["epoch"] for line in lines] == pytest.approx([8 * step / data_rows for step in range(1, 13)])
    first = load_state(out / "step-0000013")
    assert (first["done"], first["first"]) == (13, 12)
    assert json.loads((out / "run.json").read_text())["first_step"] == 12
    assert published_digests(runs["electra"]) == before


def test_what_is_continued_is_the_model_and_its_moments(
    runs: dict[str, Path], others: dict[str, Path], tmp_path: Path
) -> None:
    """With a learning rate of 0 the model is the other run's; the moments are no longer those of nothing."""
    fixed = (
        "--continue-from",
        runs["electra"],
        "--steps",
        13,
        "--learning-rate",
        0,
        "--weight-decay",
        0,
        "--warmup",
        0,
    )
    assert run_trainer(others["same"], tmp_path / "out", *fixed) == 0
    there, here = load_state(runs["electra"] / LAST), load_state(tmp_path / "out" / "step-0000013")
    assert is_same_state(there["model"], here["model"])
    for name, before in there["optimiser"]["second"].items():
        added = here["optimiser"]["second"][name] - 0.999 * before
        assert bool((added > -1e-9).all())
    assert here["optimiser"]["steps"] == 13


def test_a_continued_run_that_is_stopped_goes_on(
    runs: dict[str, Path], others: dict[str, Path], tmp_path: Path
) -> None:
    options = ("--continue-from", runs["electra"], "--steps", 24)
    for name in ("whole", "halves"):
        assert run_trainer(others["same"], tmp_path / name, *options) == 0
    halves = tmp_path / "halves"
    (halves / "manifest.json").unlink()
    shutil.rmtree(halves / "step-0000024")
    assert run_trainer(others["same"], halves, *options) == 0
    assert is_same_state(load_state(tmp_path / "whole" / "step-0000024"), load_state(halves / "step-0000024"))
    assert load_reproducible_log(tmp_path / "whole") == load_reproducible_log(halves)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--num-layers", 3), "that run has another model: --num-layers 2"),
        (
            ("--hidden-size", 64, "--intermediate-size", 128),
            "that run has another model: --hidden-size 32, --intermediate-size 64",
        ),
        (("--optimizer", "lamb"), "that run has another model: --optimizer adam"),
        (
            ("--generator-hidden-fraction", 0.5),
            "that run has another model: --generator-hidden-fraction 0.25",
        ),
        (("--family", "bert"), "that run has another model: --family electra"),
        (("--steps", 12), "--steps 12 counts from step 0, and "),
        (("--steps", 6), "has done 12: give more"),
    ],
)
def test_another_model_or_no_more_steps_cannot_be_continued(
    options: tuple[object, ...],
    says: str,
    refused: Says,
    runs: dict[str, Path],
    others: dict[str, Path],
    tmp_path: Path,
) -> None:
    more = ("--continue-from", runs["electra"], "--steps", 24)
    assert says in refused(others["same"], tmp_path / "out", *more, *options)


def test_what_else_cannot_be_continued(
    refused: Says, runs: dict[str, Path], others: dict[str, Path], tmp_path: Path, capsys: Capture
) -> None:
    def said(run: Path, data: Path = others["same"]) -> str:
        return refused(data, tmp_path / "out", "--continue-from", run, "--steps", 24)

    assert "that run has another model: another vocabulary" in said(runs["electra"], others["other"])
    for nothing in (tmp_path / "nowhere", tmp_path, runs["electra"] / LAST, others["same"]):
        assert f"--continue-from {nothing} has no checkpoint: give the --output of a training run" in said(
            nothing
        )
    itself = [
        str(others["same"]),
        "--output",
        str(runs["electra"]),
        *SMALL_MODEL_OPTIONS,
        "--continue-from",
        str(runs["electra"]),
    ]
    assert main(itself) == 2
    assert (
        "--continue-from and --output are the same folder; rerun the command without"
        in capsys.readouterr().err
    )


# Models learn


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Abstracts of two words each: what is masked follows from what is not."""
    folder, chance = tmp_path_factory.mktemp("topics"), random.Random(5)
    words = [
        "".join(chance.choice("bdfgklmnprst") + chance.choice("aeiou") for _ in range(3)) for _ in range(16)
    ]

    def abstract(number: int) -> list[str]:
        topic = words[number % 8 * 2 :][:2]
        return [" ".join(chance.choices(topic, k=9)) + "." for _ in range(8)]

    found = [make_document(f"pubmed:{number}", abstract(number)) for number in range(1, 241)]
    documents = write_document_dir(folder / "documents", {"a": found})
    vocabulary = build_vocabulary(folder / "vocabulary", documents, options=("--size", "290"))
    return {each: build_pretraining_set(folder / each, each, documents, vocabulary) for each in FAMILIES}


def unigram_entropy(data: Path) -> float:
    """In nats, of tokens that may be masked: the loss of who knows how frequent they are, and no more."""
    special = 5
    counts = Counter(token for row in load_rows(data, "train") for token in row.ids if token >= special)
    total = sum(counts.values())
    return -sum(count / total * math.log(count / total) for count in counts.values())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_learns_more_than_how_frequent_tokens_are(
    family: str, topics: dict[str, Path], tmp_path: Path
) -> None:
    """Masked tokens better than by their frequencies, replaced ones than by their share, pairs as by chance
    at least (what order sentences were in cannot be known here)."""
    sizes = (
        "--hidden-size",
        64,
        "--intermediate-size",
        64,
        "--embedding-size",
        64,
        "--generator-hidden-fraction",
        0.5,
    )
    how = ("--steps", 250, "--dropout", 0, "--attention-dropout", 0, "--log-every", 50, "--save-every", 250)
    assert run_trainer(topics[family], tmp_path / "out", *sizes, *how) == 0
    *_, last, validation = load_log(tmp_path / "out")
    assert (last["split"], validation["split"]) == ("train", "validation")
    for found in (last, validation):
        losses, figures = found["losses"], found["metrics"]
        assert losses["mlm"] < unigram_entropy(topics[family]) - 0.1
        if family == "electra":
            assert losses["rtd"] < 0.95 * figures["replaced_entropy"]
        else:
            assert losses["nsp" if family == "bert" else "sop"] < math.log(2) + 0.1
