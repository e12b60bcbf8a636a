"""Runs on what they cannot be made from: each message says what, where and what to do; no more is lost."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model, T5Config, T5EncoderModel

from bioshards.evaluate.__main__ import main
from bioshards.evaluate.config.suites import SUITES
from tests.support.evaluate.evaluate_commands import (
    copy_benchmarks,
    list_temporary_files,
    load_result,
    load_results,
    run_evaluate,
)
from tests.support.evaluate.tiny_checkpoints import save_tiny_checkpoint
from tests.support.train.trainer_runs import use_torch_threads

Capture = pytest.CaptureFixture[str]
Says = Callable[..., str]
ONE = ("--tasks", "gad", "--seeds", 1, "--max-examples", 8)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    with use_torch_threads(1):
        yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_checkpoint(tmp_path_factory.mktemp("model") / "electra")


@pytest.fixture
def broken(model: Path, tmp_path: Path) -> Path:
    """A checkpoint to be damaged."""
    folder: Path = shutil.copytree(model, tmp_path / "broken")
    return folder


@pytest.fixture
def says(capsys: Capture) -> Says:
    """What a run says that ends with 2, or with ``code``."""

    def call(model: object, out: object, *options: object, code: int = 2, **more: Any) -> str:
        capsys.readouterr()
        try:
            ended = run_evaluate(model, out, *options, **more)
        except SystemExit as error:  # argparse's own
            ended = error.code  # type: ignore[assignment]
        said = capsys.readouterr()
        assert ended == code, said.err
        assert "Traceback" not in said.err
        assert "BIOSHARDS_TRACEBACK" not in said.err  # nothing that nobody has thought of
        return said.out + said.err

    return call


# Words


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tasks", "bc5chem"), "--tasks bc5chem: there is no such suite or task; bc5-chem is meant?"),
        (("--tasks", "electramed/gad"), "--tasks electramed/gad: there is no such suite or task"),
        (("--tasks", "squad"), "there is no such suite or task"),
        (("--seeds", 0), "argument --seeds: 0 is below 1"),
        (("--seeds", -1), "argument --seeds: -1 is below 1"),
        (("--max-examples", 0), "argument --max-examples: 0 is below 1"),
        (("--legacy", "bluebert"), "argument --legacy: invalid choice: 'bluebert'"),
        (("--device", "tpu"), "--device tpu cannot be used here"),
        (("--device", "cuda:99"), "--device cuda:99 cannot be used here"),
        (("--learning-rate", "nan"), "--learning-rate nan is below 0 or not a number"),
        (("--learning-rate", -1), "--learning-rate -1.0 is below 0 or not a number"),
        (("--epochs", 0), "--epochs 0 is below 1"),
        (("--max-seq-length", 7), "--max-seq-length 7 is below 8"),
        (("--tag-scheme", "BILOU"), "argument --tag-scheme: invalid choice: 'BILOU'"),
        (
            ("--class-weights", "heavy"),
            "--class-weights heavy is not none, balanced, or numbers such as 1,99",
        ),
        (("--config", "nowhere.toml"), "cannot read --config nowhere.toml"),
    ],
    ids=str,
)
def test_words_that_are_wrong(
    model: Path, tmp_path: Path, says: Says, options: tuple[object, ...], said: str
) -> None:
    assert said in says(model, tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


def test_class_weights_are_as_many_as_classes(model: Path, tmp_path: Path, says: Says) -> None:
    said = says(model, tmp_path, *ONE, "--class-weights", "1,2,3", code=1)
    assert "blurb/gad failed: --class-weights has 3 numbers, and there are 2 classes: 0, 1" in said


def test_entities_can_be_shown_only_where_the_files_tell_of_them(
    model: Path, tmp_path: Path, says: Says
) -> None:
    said = says(model, tmp_path, *ONE, "--entity-format", "markers", code=1)
    assert "which the files of gad do not have: use placeholders and cls" in said


# Results that are there


@pytest.fixture
def out(model: Path, tmp_path: Path) -> Path:
    """A folder with a result."""
    assert run_evaluate(model, tmp_path / "out", *ONE) == 0
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--learning-rate", 0.5), "other settings (learning_rate 3e-05, now 0.5)"),
        (("--batch-size", 3, "--dropout", 0), "other settings (batch_size 16, now 3, dropout 0.1, now 0.0)"),
        (("--max-examples", 9), "other --max-examples"),
    ],
)
def test_other_settings_are_refused_by_name(
    model: Path, out: Path, says: Says, options: tuple[object, ...], said: str
) -> None:
    before = load_results(out)
    told = says(model, out, *ONE, *options)
    assert f"{out}/blurb/gad/seed-0.json was made with {said}: give another --output" in told
    assert load_results(out) == before


def test_another_model_and_other_files_are_refused(
    out: Path, tmp_path: Path, model: Path, says: Says
) -> None:
    other = save_tiny_checkpoint(tmp_path / "other", "bert")
    assert "was made with other weights: give another --output" in says(other, out, *ONE)
    data = copy_benchmarks(tmp_path / "data", "gad")
    path = data / "bio_electra/gad/test.tsv"
    path.write_text(path.read_text() + "99\t@GENE$ and @DISEASE$.\t1\n")
    assert "was made with other files or counts: give another --output" in says(model, out, *ONE, data=data)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda text: text[:200], "is damaged ("),
        (lambda _: "", "is damaged ("),
        (lambda _: "[1]", "is not a result of bioshards.evaluate"),
        (lambda text: text.replace('"format": 2', '"format": 3'), "is of format 3, and this version reads 2"),
        (
            lambda text: text.replace('"main_score": "F1"', '"main_score": "F2"'),
            "it has no F2 of the test set",
        ),
        (lambda text: text.replace('"seed": 0', '"seed": 4'), "was made with other seed"),
        (lambda text: text.replace('"task": "gad"', '"task": "ddi"'), "was made with other task"),
        (
            lambda text: text.replace('"settings": {', '"settings": {"colour": 1, '),
            "other settings (colour 1, now None)",
        ),
        (lambda text: text.replace("\n", "\0", 1), "is damaged ("),
    ],
)
def test_results_that_were_damaged_or_edited(
    model: Path, out: Path, says: Says, damage: Callable[[str], str], said: str
) -> None:
    path = out / "blurb/gad/seed-0.json"
    path.write_text(damage(path.read_text()))
    told = says(model, out, *ONE)
    assert said in told
    assert str(path) in told


def test_a_file_is_no_folder_for_results(model: Path, tmp_path: Path, says: Says) -> None:
    (tmp_path / "file").write_text("")
    assert "is a file, and --output must be a directory" in says(model, tmp_path / "file", *ONE)
    assert "is a file, and --output must be a directory" in says(model, tmp_path / "file" / "out", *ONE)


# Models


def test_a_model_that_is_not_there(tmp_path: Path, says: Says) -> None:
    assert f"there is no folder {tmp_path}/x with a model" in says(tmp_path / "x", tmp_path / "out", *ONE)
    assert "holds no config.json" in says(tmp_path, tmp_path / "out", *ONE)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("model.safetensors", None, "holds no weights (model.safetensors)"),
        ("model.safetensors", "x" * 100, "cannot be loaded"),
        ("config.json", "{", "config.json is of no model that transformers knows"),
        ("config.json", '{"model_type": "elektra"}', "config.json is of no model that transformers knows"),
        ("tokenizer.json", "{}", "has no usable tokenizer"),
        ("tokenizer.json", None, "the tokenizer of"),
    ],
)
def test_models_that_are_damaged(
    broken: Path, tmp_path: Path, says: Says, name: str, text: str | None, said: str
) -> None:
    if text is None:
        (broken / name).unlink()
        (broken / "vocab.txt").unlink(missing_ok=True)
    else:
        (broken / name).write_text(text)
    told = says(broken, tmp_path / "out", *ONE)
    assert said in told
    assert str(broken) in told


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_a_model_that_is_no_encoder(broken: Path, tmp_path: Path, says: Says, family: str) -> None:
    for name in ("config.json", "model.safetensors"):
        (broken / name).unlink()
    if family == "gpt2":
        GPT2Model(GPT2Config(vocab_size=200, n_embd=16, n_layer=1, n_head=2, n_positions=64)).save_pretrained(
            broken
        )
    else:
        T5EncoderModel(
            T5Config(vocab_size=200, d_model=16, num_layers=1, num_heads=2, d_ff=8)
        ).save_pretrained(broken)
    said = says(broken, tmp_path / "out", *ONE)
    assert f"{broken} is of type {family}" in said
    assert "no encoder" in said


def test_a_vocabulary_that_is_not_the_models(broken: Path, tmp_path: Path, says: Says) -> None:
    config = BertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    BertModel(config).save_pretrained(broken)
    said = says(broken, tmp_path / "out", *ONE)
    assert "has 153 tokens, and its model 60" in said


# Benchmarks


def test_a_folder_of_benchmarks_that_is_not_there(model: Path, tmp_path: Path, says: Says) -> None:
    data = tmp_path / "nowhere"
    assert f"there is no folder {data} with benchmarks: give --benchmarks" in says(
        model, tmp_path / "out", *ONE, data=data
    )
    data.write_text("")
    assert f"there is no folder {data} with benchmarks" in says(model, tmp_path / "out", *ONE, data=data)


def test_an_empty_folder_of_benchmarks(model: Path, tmp_path: Path, says: Says) -> None:
    (tmp_path / "data").mkdir()
    said = says(model, tmp_path / "out", "--tasks", *SUITES, data=tmp_path / "data", code=1)
    assert "blurb/gad is missing: GAD: no train and no test in" in said
    assert "https://github.com/SciCrunch/bio_electra" in said
    assert "0 results written, 0 skipped (finished before), 38 tasks without benchmark, 0 failed" in said


def test_a_damaged_file_is_named_with_its_line_and_ends_only_its_task(
    model: Path, tmp_path: Path, says: Says
) -> None:
    data = copy_benchmarks(tmp_path / "data", "gad", "ncbi-disease", "biosses", "pubmedqa", "ddi")
    names = {
        "gad": "bio_electra/gad/test.tsv",
        "ncbi-disease": "mtl-bioinformatics-2016/NCBI-disease-IOB/devel.tsv",
        "pubmedqa": "pubmedqa/data/ori_pqal.json",
    }
    table, tagged, asked = (data / name for name in names.values())
    table.write_text(table.read_text() + "a line\n")
    tagged.write_text(tagged.read_text().replace("O\n", "Q\n", 1))
    asked.write_bytes(asked.read_bytes()[:500])
    xml = sorted(data.glob("ddi2013/**/*.xml"))[0]
    xml.write_text(xml.read_text().replace("<pair", "<pair<", 1))
    told = ("--tasks", "gad", "ncbi-disease", "pubmedqa", "ddi", "biosses", "--seeds", 1)
    said = says(model, tmp_path / "out", *told, data=data, code=1)
    assert f"blurb/gad failed: {table}, line 14: 1 fields where 3 should be" in said
    assert f"blurb/ncbi-disease failed: {tagged}, line 1: a tag is O, B-Type or I-Type, not 'Q'" in said
    assert f"blurb/pubmedqa failed: {asked}" in said
    assert f"blurb/ddi failed: {xml}, line 6: it is not well-formed XML" in said
    assert "1 results written, 0 skipped (finished before), 0 tasks without benchmark, 4 failed" in said
    assert load_result(tmp_path / "out", "blurb/biosses")


def test_a_file_that_cannot_be_read_ends_only_its_task(model: Path, tmp_path: Path, says: Says) -> None:
    data = copy_benchmarks(tmp_path / "data", "gad", "biosses")
    (data / "bio_electra/gad/test.tsv").unlink()
    (data / "bio_electra/gad/test.tsv").mkdir()
    said = says(model, tmp_path / "out", "--tasks", "gad", "biosses", "--seeds", 1, data=data, code=1)
    assert f"blurb/gad failed: {data}/bio_electra/gad/test.tsv: it cannot be read" in said
    assert "1 results written" in said


def test_verify_prints_its_table_whatever_it_says(tmp_path: Path, capsys: Capture) -> None:
    data = copy_benchmarks(tmp_path / "data", "gad", "biosses")
    assert main(["verify", str(data)]) == 1
    said = capsys.readouterr()
    assert "biosses: BIOSSES" in said.out
    assert not said.err


# What there is to learn from


def _tagged(folder: Path, **parts: str) -> Path:
    for part, text in parts.items():
        path = folder / f"mtl-bioinformatics-2016/NCBI-disease-IOB/{part}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize("head", ["linear", "crf"])
def test_a_type_that_train_has_not(model: Path, tmp_path: Path, head: str) -> None:
    data = _tagged(
        tmp_path / "data",
        train="drug\tB-Drug\nhelps\tO\n\ndrug\tB-Drug\n",
        devel="gene\tB-Gene\n\ndrug\tB-Drug\n",
        test="gene\tB-Gene\nof\tI-Gene\n\ndrug\tB-Drug\n",
    )
    task = ("--tasks", "ncbi-disease", "--seeds", 1, "--head", head)
    assert run_evaluate(model, tmp_path / "out", *task, data=data) == 0
    units = load_result(tmp_path / "out", "blurb/ncbi-disease")["per_example_stats"]
    assert units["test"][units["names"].index("gold")] == [1, 1]


@pytest.mark.parametrize("head", ["linear", "bilstm-crf"])
def test_nothing_but_o_or_a_single_word_to_learn_from(model: Path, tmp_path: Path, head: str) -> None:
    data = _tagged(tmp_path / "data", train="word\tO\n", devel="drug\tB-Drug\n", test="drug\tB-Drug\n")
    task = ("--tasks", "ncbi-disease", "--seeds", 1, "--head", head)
    assert run_evaluate(model, tmp_path / "out", *task, data=data) == 0
    assert load_result(tmp_path / "out", "blurb/ncbi-disease")["scores"]["test"]["F1"] == 0


def _gad(folder: Path, train: str, test: str) -> Path:
    for part, text in (("train", train), ("test", f"index\tsentence\tlabel\n{test}")):
        path = folder / f"bio_electra/gad/{part}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def test_one_class_only_and_one_example_a_part(model: Path, tmp_path: Path) -> None:
    data = _gad(tmp_path / "data", "A link.\t1\nAnother.\t1\n", "0\tNo link.\t0\n")
    for weights in ("none", "balanced"):
        out = tmp_path / weights
        assert (
            run_evaluate(model, out, "--tasks", "gad", "--seeds", 1, "--class-weights", weights, data=data)
            == 0
        )
        assert len(load_result(out, "blurb/gad")["per_example_stats"]["test"][0]) == 1


def test_too_little_for_a_dev_set(model: Path, tmp_path: Path, says: Says) -> None:
    data = _gad(tmp_path / "data", "A link.\t1\n", "0\tNo link.\t0\n")
    said = says(model, tmp_path / "out", "--tasks", "gad", data=data, code=1)
    assert "bio_electra/gad/train.tsv: it holds nothing for train of GAD" in said


def test_answers_that_are_in_no_passage(model: Path, tmp_path: Path, says: Says) -> None:
    data = copy_benchmarks(tmp_path / "data", "factoid-8b", "squad")
    path = data / "bio_electra/bioasq/train.json"
    file = json.loads(path.read_text())
    for paragraph in file["data"][0]["paragraphs"]:
        paragraph["qas"][0]["answers"] = []
    path.write_text(json.dumps(file))
    task = ("--tasks", "factoid-8b", "--seeds", 1)
    assert "no training examples" in says(
        model, tmp_path / "out", *task, "--squad-transfer", "no", data=data, code=1
    )
    assert run_evaluate(model, tmp_path / "joint", *task, data=data) == 0


@pytest.mark.parametrize("task", ["ncbi-disease", "biosses", "factoid-7b"])
def test_a_learning_rate_that_is_far_too_high(model: Path, tmp_path: Path, says: Says, task: str) -> None:
    """There is one update: its loss is a number, but the weights then are none."""
    options = ("--tasks", task, "--seeds", 1, "--learning-rate", 1e38, "--batch-size", 999)
    said = says(model, tmp_path, *options, code=1)
    assert "the model gives no numbers any more: give a lower --learning-rate" in said
    assert not load_results(tmp_path)
    assert not list_temporary_files(tmp_path)
