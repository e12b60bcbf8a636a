"""Error messages of ``evaluate run`` for wrong options, models and benchmarks; other tasks are completed."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model, T5Config, T5EncoderModel

from bioshards.corpus.storage.checksums import add_sha256
from bioshards.evaluate.__main__ import main
from bioshards.evaluate.benchmarks import formats
from bioshards.evaluate.encoder import inspect_checkpoint
from bioshards.evaluate.recipes import SUITES
from tests.support.evaluate.benchmark_files import write_benchmark_files
from tests.support.evaluate.evaluate_commands import (
    copy_benchmarks,
    list_temporary_files,
    load_result,
    load_results,
    run_evaluate,
)
from tests.support.evaluate.tiny_checkpoints import save_tiny_checkpoint
from tests.support.paths import BENCHMARK_SAMPLE

Capture = pytest.CaptureFixture[str]
ReadError = Callable[..., str]
ONE_TASK = ("--tasks", "blurb/gad", "--seeds", 1, "--max-examples", 8)


pytestmark = pytest.mark.usefixtures("use_one_thread")


@pytest.fixture
def damaged_checkpoint(checkpoint_dir: Path, tmp_path: Path) -> Path:
    """A copy of the checkpoint for a test to damage."""
    folder: Path = shutil.copytree(checkpoint_dir, tmp_path / "broken")
    return folder


@pytest.fixture
def read_error(checkpoint_dir: Path, tmp_path: Path, capsys: Capture) -> ReadError:
    """Run ``evaluate run``, check its exit code, and return stdout and stderr."""

    def run(
        *options: object,
        code: int = 2,
        checkpoint: Path = checkpoint_dir,
        out: Path = tmp_path / "out",
        data: Path = BENCHMARK_SAMPLE,
    ) -> str:
        capsys.readouterr()
        try:
            exit_code = run_evaluate(checkpoint, out, *options, data=data)
        except SystemExit as error:  # argparse's own
            exit_code = error.code  # type: ignore[assignment]
        captured = capsys.readouterr()
        assert exit_code == code, captured.err
        assert "Traceback" not in captured.err
        assert "BIOSHARDS_TRACEBACK" not in captured.err  # printed with an unexpected exception only
        return captured.out + captured.err

    return run


# Options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--tasks", "bc5chem"), "--tasks bc5chem: there is no such suite or task (did you mean bc5-chem?)"),
        (("--tasks", "electramed/gad"), "--tasks electramed/gad: there is no such suite or task"),
        (("--tasks", "squad"), "there is no such suite or task"),
        (("--seeds", 0), "argument --seeds: 0 is below 1"),
        (("--max-examples", 0), "argument --max-examples: 0 is below 1"),
        (("--legacy", "bluebert"), "argument --legacy: invalid choice: 'bluebert'"),
        (("--device", "tpu"), "--device tpu is not supported; give cpu, cuda or cuda:1"),
        (("--device", "cuda:99"), "--device cuda:99 is not available: "),
        (("--learning-rate", "nan"), "--learning-rate nan is below 0 or not a number"),
        (("--max-seq-length", 7), "--max-seq-length 7 is below 8"),
        (("--tag-scheme", "BILOU"), "argument --tag-scheme: invalid choice: 'BILOU'"),
        (("--class-weights", "heavy"), "heavy is not none, balanced, or numbers such as 1,99"),
        (("--config", "nowhere.toml"), "cannot read --config nowhere.toml"),
    ],
    ids=str,
)
def test_wrong_options_are_refused(
    tmp_path: Path, read_error: ReadError, options: tuple[object, ...], message: str
) -> None:
    assert message in read_error(*options)
    assert not (tmp_path / "out").exists()


def test_class_weights_must_match_the_number_of_classes(tmp_path: Path, read_error: ReadError) -> None:
    output = read_error(*ONE_TASK, "--class-weights", "1,2,3", code=1, out=tmp_path)
    assert "blurb/gad failed: --class-weights has 3 numbers, and there are 2 classes: 0, 1" in output


def test_entity_markers_need_files_with_mentions(tmp_path: Path, read_error: ReadError) -> None:
    output = read_error(*ONE_TASK, "--entity-format", "markers", code=1, out=tmp_path)
    assert "which the files of gad do not have: use placeholders and cls" in output


# Existing results


@pytest.fixture
def output_dir(checkpoint_dir: Path, tmp_path: Path) -> Path:
    """An output directory with one result."""
    assert run_evaluate(checkpoint_dir, tmp_path / "out", *ONE_TASK) == 0
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--learning-rate", 0.5), "other settings (learning_rate 3e-05, now 0.5)"),
        (("--batch-size", 3, "--dropout", 0), "other settings (batch_size 16, now 3, dropout 0.1, now 0.0)"),
        (("--max-examples", 9), "other --max-examples"),
    ],
)
def test_result_with_other_settings_is_refused(
    output_dir: Path, read_error: ReadError, options: tuple[object, ...], message: str
) -> None:
    before = load_results(output_dir)
    output = read_error(*ONE_TASK, *options)
    assert f"{output_dir}/blurb/gad/seed-0.json was made with {message}: give another --output" in output
    assert load_results(output_dir) == before


def test_result_of_another_model_or_other_files_is_refused(
    output_dir: Path, tmp_path: Path, read_error: ReadError
) -> None:
    other = save_tiny_checkpoint(tmp_path / "other", "bert")
    assert "was made with other weights: give another --output" in read_error(*ONE_TASK, checkpoint=other)
    data = copy_benchmarks(tmp_path / "data", "gad")
    path = data / "bio_electra/gad/test.tsv"
    path.write_text(path.read_text() + "99\t@GENE$ and @DISEASE$.\t1\n")
    assert "was made with other files or counts: give another --output" in read_error(*ONE_TASK, data=data)


def replace_and_sign(old: str, new: str, text: str) -> str:
    """Return the text of a result with a change, and with the SHA-256 of its fields then."""
    fields = json.loads(text.replace(old, new))
    del fields["sha256"]
    return json.dumps(add_sha256(fields))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        # test_results.py has all files that are not whole
        (lambda text: text[:200], "is damaged ("),
        (lambda _: "[1]", "is not a result of bioshards evaluate"),
        (partial(replace_and_sign, '"seed": 0', '"seed": 4'), "was made with other seed"),
        (partial(replace_and_sign, '"task": "gad"', '"task": "ddi"'), "was made with other task"),
        (
            partial(replace_and_sign, '"settings": {', '"settings": {"colour": 1, '),
            "other settings (colour 1, now None)",
        ),
        (lambda text: text.replace('"seed": 0', '"seed": 4'), "is damaged or was edited: its SHA-256 is not"),
    ],
)
def test_damaged_or_edited_result_is_refused(
    output_dir: Path, read_error: ReadError, damage: Callable[[str], str], message: str
) -> None:
    path = output_dir / "blurb/gad/seed-0.json"
    path.write_text(damage(path.read_text()))
    output = read_error(*ONE_TASK)
    assert message in output
    assert str(path) in output


def test_output_that_is_a_file_is_refused(tmp_path: Path, read_error: ReadError) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "out"):
        message = read_error(*ONE_TASK, out=path)
        assert "is a file, and --output must be a directory" in message


# Models


def test_missing_model_is_refused(tmp_path: Path, read_error: ReadError) -> None:
    assert f"there is no folder {tmp_path}/x with a model" in read_error(*ONE_TASK, checkpoint=tmp_path / "x")
    assert "holds no config.json" in read_error(*ONE_TASK, checkpoint=tmp_path)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("model.safetensors", None, "holds no weights (model.safetensors)"),
        ("model.safetensors", "x" * 100, "cannot be loaded"),
        ("config.json", "{", "config.json is of no model that transformers knows"),
        ("config.json", '{"model_type": "elektra"}', "config.json is of no model that transformers knows"),
        ("tokenizer.json", "{}", "has no usable tokenizer"),
        ("tokenizer.json", None, "the tokenizer of"),
    ],
)
def test_damaged_model_is_refused(
    damaged_checkpoint: Path, read_error: ReadError, name: str, text: str | None, message: str
) -> None:
    if text is None:
        (damaged_checkpoint / name).unlink()
        (damaged_checkpoint / "vocab.txt").unlink(missing_ok=True)
    else:
        (damaged_checkpoint / name).write_text(text)
    output = read_error(*ONE_TASK, checkpoint=damaged_checkpoint)
    assert message in output
    assert str(damaged_checkpoint) in output


def test_model_folder_never_runs_its_own_code(
    damaged_checkpoint: Path, tmp_path: Path, read_error: ReadError
) -> None:
    """Neither by its configuration nor by its tokenizer, even where the hub's default would ask."""
    proof, code = tmp_path / "proof", f"open({str(tmp_path / 'proof')!r}, 'w')\n"
    (damaged_checkpoint / "evil.py").write_text(code)
    for name in ("tokenizer_config.json", "config.json"):
        config = json.loads((damaged_checkpoint / name).read_text())
        config["auto_map"] = {
            key: ["evil.Evil", "evil.Evil"] if key == "AutoTokenizer" else "evil.Evil"
            for key in ("AutoConfig", "AutoModel", "AutoTokenizer")
        }
        if name == "config.json":
            config["model_type"] = "evil"
        (damaged_checkpoint / name).write_text(json.dumps(config))
    output = read_error(*ONE_TASK, checkpoint=damaged_checkpoint)
    assert "config.json is of no model that transformers knows" in output
    assert not proof.exists()


def test_model_with_a_spiece_model_alone_is_told_how_to_make_its_tokenizer(
    damaged_checkpoint: Path, read_error: ReadError
) -> None:
    (damaged_checkpoint / "tokenizer.json").unlink()
    (damaged_checkpoint / "vocab.txt").unlink(missing_ok=True)
    (damaged_checkpoint / "spiece.model").write_bytes(b"")
    output = read_error(*ONE_TASK, checkpoint=damaged_checkpoint)
    assert f"bioshards vocab adopt {damaged_checkpoint}" in output


def test_name_of_a_model_has_no_control_characters(checkpoint_dir: Path) -> None:
    assert inspect_checkpoint(str(checkpoint_dir), "mine\x1b[2J\n\u202e").name == "mine\\x1b[2J\\n\\u202e"


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_model_without_encoder_is_refused(
    damaged_checkpoint: Path, read_error: ReadError, family: str
) -> None:
    for name in ("config.json", "model.safetensors"):
        (damaged_checkpoint / name).unlink()
    gpt2 = GPT2Config(vocab_size=200, n_embd=16, n_layer=1, n_head=2, n_positions=64)
    t5 = T5Config(vocab_size=200, d_model=16, num_layers=1, num_heads=2, d_ff=8)
    model: Any = GPT2Model(gpt2) if family == "gpt2" else T5EncoderModel(t5)
    model.save_pretrained(damaged_checkpoint)
    output = read_error(*ONE_TASK, checkpoint=damaged_checkpoint)
    assert f"{damaged_checkpoint} is of type {family}" in output
    assert "no encoder" in output


def test_vocabulary_of_another_model_is_refused(damaged_checkpoint: Path, read_error: ReadError) -> None:
    config = BertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8
    )
    BertModel(config).save_pretrained(damaged_checkpoint)
    output = read_error(*ONE_TASK, checkpoint=damaged_checkpoint)
    assert "has 153 tokens, and its model 60" in output


# Benchmarks


def test_missing_benchmark_folder_is_refused(tmp_path: Path, read_error: ReadError) -> None:
    (tmp_path / "file").write_text("")
    for data in (tmp_path / "nowhere", tmp_path / "file"):
        message = read_error(*ONE_TASK, data=data)
        assert f"there is no folder {data} with benchmarks: give --benchmarks" in message


def test_empty_benchmark_folder_lists_the_missing_benchmarks(tmp_path: Path, read_error: ReadError) -> None:
    (tmp_path / "data").mkdir()
    output = read_error("--tasks", *SUITES, data=tmp_path / "data", code=1)
    assert "blurb/gad is missing: GAD: no train and no test in" in output
    assert "https://github.com/SciCrunch/bio_electra" in output
    assert "0 results written, 0 skipped (finished before), 38 tasks without benchmark, 0 failed" in output


def test_damaged_file_fails_only_its_task_and_is_named_with_its_line(
    tmp_path: Path, read_error: ReadError
) -> None:
    data = copy_benchmarks(tmp_path / "data", "gad", "ncbi-disease", "biosses", "pubmedqa", "ddi")
    names = {
        "gad": "bio_electra/gad/test.tsv",
        "ncbi-disease": "mtl-bioinformatics-2016/NCBI-disease-IOB/devel.tsv",
        "pubmedqa": "pubmedqa/data/ori_pqal.json",
    }
    gad_path, ncbi_disease_path, pubmedqa_path = (data / name for name in names.values())
    gad_path.write_text(gad_path.read_text() + "a line\n")
    ncbi_disease_path.write_text(ncbi_disease_path.read_text().replace("O\n", "Q\n", 1))
    pubmedqa_path.write_bytes(pubmedqa_path.read_bytes()[:500])
    ddi_path = sorted(data.glob("ddi2013/**/*.xml"))[0]
    ddi_path.write_text(ddi_path.read_text().replace("<pair", "<pair<", 1))
    options = ("--tasks", "blurb/gad", "blurb/ncbi-disease", "pubmedqa", "ddi", "biosses", "--seeds", 1)
    output = read_error(*options, data=data, code=1)
    assert f"blurb/gad failed: {gad_path}, line 14: 1 fields where 3 should be" in output
    assert (
        f"blurb/ncbi-disease failed: {ncbi_disease_path}, line 1: a tag is O, B-Type or I-Type, not 'Q'"
        in output
    )
    assert f"blurb/pubmedqa failed: {pubmedqa_path}" in output
    assert f"blurb/ddi failed: {ddi_path}, line 6: it is not well-formed XML" in output
    assert "1 results written, 0 skipped (finished before), 0 tasks without benchmark, 4 failed" in output
    assert load_result(tmp_path / "out", "blurb/biosses")


def test_unreadable_file_fails_only_its_task(
    tmp_path: Path, read_error: ReadError, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = copy_benchmarks(tmp_path / "data", "gad", "biosses")
    unreadable = str(data / "bio_electra/gad/test.tsv")

    def refuse(path: str, *arguments: Any, **options: Any) -> Any:
        if path == unreadable:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return open(path, *arguments, **options)

    monkeypatch.setattr(formats, "open", refuse, raising=False)
    output = read_error("--tasks", "blurb/gad", "biosses", "--seeds", 1, data=data, code=1)
    assert f"blurb/gad failed: {data}/bio_electra/gad/test.tsv: it cannot be read" in output
    assert "1 results written" in output


def test_verify_prints_its_table_when_counts_differ(tmp_path: Path, capsys: Capture) -> None:
    data = copy_benchmarks(tmp_path / "data", "gad", "biosses")
    assert main(["verify", str(data)]) == 1
    output = capsys.readouterr()
    assert "biosses: BIOSSES" in output.out
    assert not output.err


# Training data


def write_ncbi_disease(folder: Path, **parts: str) -> Path:
    files = {f"mtl-bioinformatics-2016/NCBI-disease-IOB/{part}.tsv": text for part, text in parts.items()}
    return write_benchmark_files(folder, files)


@pytest.mark.parametrize("head", ["linear", "crf"])
def test_entity_type_missing_in_train_is_counted_as_gold(
    checkpoint_dir: Path, tmp_path: Path, head: str
) -> None:
    data = write_ncbi_disease(
        tmp_path / "data",
        train="drug\tB-Drug\nhelps\tO\n\ndrug\tB-Drug\n",
        devel="gene\tB-Gene\n\ndrug\tB-Drug\n",
        test="gene\tB-Gene\nof\tI-Gene\n\ndrug\tB-Drug\n",
    )
    task = ("--tasks", "blurb/ncbi-disease", "--seeds", 1, "--head", head)
    assert run_evaluate(checkpoint_dir, tmp_path / "out", *task, data=data) == 0
    units = load_result(tmp_path / "out", "blurb/ncbi-disease")["per_example_stats"]
    assert units["test"][units["names"].index("gold")] == [1, 1]


@pytest.mark.parametrize("head", ["linear", "bilstm-crf"])
def test_train_with_a_single_word_tagged_o(checkpoint_dir: Path, tmp_path: Path, head: str) -> None:
    data = write_ncbi_disease(
        tmp_path / "data", train="word\tO\n", devel="drug\tB-Drug\n", test="drug\tB-Drug\n"
    )
    task = ("--tasks", "blurb/ncbi-disease", "--seeds", 1, "--head", head)
    assert run_evaluate(checkpoint_dir, tmp_path / "out", *task, data=data) == 0
    assert load_result(tmp_path / "out", "blurb/ncbi-disease")["scores"]["test"]["F1"] == 0


def write_gad(folder: Path, train: str, test: str) -> Path:
    files = {"train": train, "test": f"index\tsentence\tlabel\n{test}"}
    return write_benchmark_files(folder, {f"bio_electra/gad/{part}.tsv": files[part] for part in files})


def test_one_class_and_one_example_per_split(checkpoint_dir: Path, tmp_path: Path) -> None:
    data = write_gad(tmp_path / "data", "A link.\t1\nAnother.\t1\n", "0\tNo link.\t0\n")
    for weights in ("none", "balanced"):
        output_dir, options = tmp_path / weights, ("--tasks", "blurb/gad", "--class-weights", weights)
        assert run_evaluate(checkpoint_dir, output_dir, *options, "--seeds", 1, data=data) == 0
        assert len(load_result(output_dir, "blurb/gad")["per_example_stats"]["test"][0]) == 1


def test_train_too_small_for_a_dev_set_is_refused(tmp_path: Path, read_error: ReadError) -> None:
    data = write_gad(tmp_path / "data", "A link.\t1\n", "0\tNo link.\t0\n")
    output = read_error("--tasks", "blurb/gad", data=data, code=1)
    assert "bio_electra/gad/train.tsv: it holds nothing for train of GAD" in output


def test_train_without_answers_needs_squad(
    checkpoint_dir: Path, tmp_path: Path, read_error: ReadError
) -> None:
    data = copy_benchmarks(tmp_path / "data", "factoid-8b", "squad")
    path = data / "bio_electra/bioasq/train.json"
    file = json.loads(path.read_text())
    for paragraph in file["data"][0]["paragraphs"]:
        paragraph["qas"][0]["answers"] = []
    path.write_text(json.dumps(file))
    task = ("--tasks", "factoid-8b", "--seeds", 1)
    assert "no training examples" in read_error(*task, "--squad-transfer", "no", data=data, code=1)
    assert run_evaluate(checkpoint_dir, tmp_path / "joint", *task, data=data) == 0


@pytest.mark.parametrize("task", ["blurb/ncbi-disease", "biosses", "factoid-7b"])
def test_diverging_learning_rate_fails_without_a_result(
    tmp_path: Path, read_error: ReadError, task: str
) -> None:
    """The loss of the only update is finite; the weights after it are NaN."""
    options = ("--tasks", task, "--seeds", 1, "--learning-rate", 1e38, "--batch-size", 999)
    output = read_error(*options, code=1, out=tmp_path)
    assert "the model gives no numbers any more: give a lower --learning-rate" in output
    assert not load_results(tmp_path)
    assert not list_temporary_files(tmp_path)
