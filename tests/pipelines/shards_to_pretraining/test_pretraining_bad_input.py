"""Tests of ``shards_to_pretraining`` on bad options, vocabularies, documents and outputs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from tokenizers import Tokenizer

from bioshards.vocab.pretraining import build
from tests.support.corpus.damaged_shards import delete_shard, flip_bit_of_page
from tests.support.corpus.manifests import of_words
from tests.support.corpus.synthetic_documents import make_document, write_document_dir
from tests.support.outputs import load_manifest, sign
from tests.support.vocab import synthetic_corpora
from tests.support.vocab.synthetic_corpora import run_shards_to_pretraining

pytestmark = pytest.mark.thorough  # this file takes minutes

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vocabulary")
    return synthetic_corpora.build_vocabulary(
        folder / "v", synthetic_corpora.write_abstracts(folder / "in", one=range(1, 80))
    )


@pytest.fixture
def abstracts(tmp_path: Path) -> Path:
    return synthetic_corpora.write_abstracts(tmp_path / "abstracts", one=range(100, 120), two=range(200, 220))


@pytest.fixture
def assert_refused(tmp_path: Path, vocabulary: Path, capsys: Capture) -> Callable[..., str]:
    """Assert that a run exits with 2 and writes nothing; return its one-line error."""

    def call(*arguments: object, vocab: Path = vocabulary, output: Path = tmp_path / "out") -> str:
        before = sorted(tmp_path.rglob("*"))
        capsys.readouterr()
        assert run_shards_to_pretraining(*arguments, "--vocab", vocab, "--output", output) == 2
        captured = capsys.readouterr()
        assert captured.err.startswith("beam: ")
        assert len(captured.err.splitlines()) == 1
        assert ".." not in captured.err.replace("...", "")
        assert "Traceback" not in captured.err
        assert not captured.out
        assert sorted(tmp_path.rglob("*")) == before
        return captured.err

    return call


# The command line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--vocab", "v", "--output", "x"), "--input DIR is missing: a finished --output of"),
        (("--input", "x", "--output", "x"), "--vocab DIR is missing: the --output of bioshards vocab build"),
        (("--input", "x", "--vocab", "v"), "--output DIR is missing: the folder to write"),
        (
            ("--max-seq-length", 4),
            "--max-seq-length 4 is below 5: [CLS], [SEP] and [SEP] leave no room for a pair",
        ),
        (
            ("--max-seq-length", 70_000),
            "--max-seq-length 70,000 is above 65,535: positions in a row are 16 bits",
        ),
        (("--short-seq-prob", 2), "2 is not between 0 and 1"),
        (("--dupe-factor", 0), "0 is below 1"),
        (("--dupe-factor", 1.5), "invalid whole number value: '1.5'"),
        (("--validation-fraction", 1), "--validation-fraction 1 leaves no document to train on"),
        (
            ("--single-segment-prob", 0.1, "--objective", "bert"),
            "--single-segment-prob does not apply to --objective bert, only to",
        ),
        (
            ("--short-seq-prob", 0.1, "--objective", "plain"),
            "--short-seq-prob does not apply to --objective plain, only to",
        ),
        (("--keep-overflow", "--objective", "albert"), "--keep-overflow does not apply to --objective"),
        (("--as-published",), "--as-published does not apply to --objective electra, only to albert"),
        (("--as-published", "--preset", "pubmedbert"), "--as-published does not apply to --objective bert"),
        (
            ("--objective", "plain", "--preset", "bio-electra"),
            "--preset bio-electra has the objective electra,",
        ),
        (("stray",), "stray is no option"),
        (("--runner=DataflowRunner",), "is local; Dataflow's workers need gs://"),
    ],
)
def test_wrong_command_line_is_refused(
    options: tuple[object, ...],
    message: str,
    abstracts: Path,
    vocabulary: Path,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    valid_options = (
        () if "is missing" in message else ("--input", abstracts, "--vocab", vocabulary, "--output", "x")
    )
    assert run_shards_to_pretraining(*valid_options, *options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "See beam run shards_to_pretraining --help" in error
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("pipeline", "library"), [("shards_to_words", "numpy"), ("shards_to_pretraining", "tokenizers")]
)
def test_missing_library_error_names_the_extra_to_install(
    pipeline: str, library: str, abstracts: Path, tmp_path: Path
) -> None:
    code = (
        f"import sys; sys.modules['{library}'] = None; from bioshards.pipelines import cli; "
        f"sys.exit(cli.main(['run', '{pipeline}', *sys.argv[1:]]))"
    )
    options = ["--input", str(abstracts), "--output", str(tmp_path / "out")]
    options += ["--vocab", "v"] if pipeline == "shards_to_pretraining" else []
    command = [sys.executable, "-c", code, *options]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 2
    assert f"{pipeline} needs a library that cannot be imported" in completed.stderr
    assert "pip install '.[vocab]'" in completed.stderr
    assert len(completed.stderr.splitlines()) == 1
    assert not (tmp_path / "out").exists()


# The vocabulary: tests/vocab/pretraining/test_pretraining_input_checks.py has the others


def test_invalid_vocabulary_is_refused(
    abstracts: Path, vocabulary: Path, tmp_path: Path, assert_refused: Callable[..., str]
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "tokenizer.json").write_bytes((vocabulary / "tokenizer.json").read_bytes()[:-100])
    (tmp_path / "folder" / "tokenizer.json").mkdir(parents=True)
    for name, message in {
        "nowhere": f"--vocab: {tmp_path}/nowhere is not a directory: it is not a vocabulary. Give",
        "empty": f"--vocab: {tmp_path}/empty has no tokenizer.json: it is not a vocabulary. Give the",
        "file": f"--vocab: {tmp_path}/file is not a directory",
        "damaged": f"{tmp_path}/damaged/tokenizer.json cannot be read by the tokenizers library",
        "folder": "Is a directory",
    }.items():
        assert message in assert_refused("--input", abstracts, vocab=tmp_path / name)


def test_vocabulary_that_differs_from_its_manifest_is_refused(
    abstracts: Path, vocabulary: Path, tmp_path: Path, assert_refused: Callable[..., str]
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(vocabulary, copy)
    with (copy / "tokenizer.json").open("a") as file:
        file.write("\n")
    error = assert_refused("--input", abstracts, vocab=copy)
    assert f"--vocab: {copy}: tokenizer.json is not the one that its manifest.json lists" in error
    assert "Build the vocabulary again" in error
    manifest, path = load_manifest(copy), copy / "manifest.json"
    unreadable = f"--vocab: {path} cannot be read: "
    foreign = f"--vocab: {copy} by its manifest.json is not of bioshards: "
    damaged = f"--vocab: {path} is not as vocab writes it: "
    for text, message in (
        ("{", unreadable),
        ('{"outputs": [{"file": "tokenizer.json"}]}', foreign),
        (
            json.dumps(sign({**manifest, "outputs": [{"file": "tokenizer.json"}]})),
            f"{damaged}Object missing required field `bytes` - at `$.outputs[0]`",
        ),
    ):
        path.write_text(text)
        error = assert_refused("--input", abstracts, vocab=copy)
        assert message in error
        assert "Build the vocabulary again" in error
    path.write_text(json.dumps(sign(msgspec.to_builtins(of_words([])))))
    error = assert_refused("--input", abstracts, vocab=copy)
    assert f"--vocab {copy}: it is no vocabulary, it was made by shards_to_words. Give the" in error
    assert "Give the --output of a bioshards vocab build" in error
    (copy / "manifest.json").unlink()  # a vocabulary of another tool
    assert run_shards_to_pretraining("--input", abstracts, "--vocab", copy, "--output", tmp_path / "out") == 0


# The documents


def test_duplicate_input_shards_are_refused(
    abstracts: Path, tmp_path: Path, assert_refused: Callable[..., str]
) -> None:
    copy, link = tmp_path / "copy", tmp_path / "link"
    shutil.copytree(abstracts, copy)
    link.symlink_to(abstracts)
    grown = synthetic_corpora.write_abstracts(tmp_path / "grown", two=range(200, 220), three=range(300, 305))
    for other in (f"{abstracts}/", copy, link, grown):
        error = assert_refused("--input", abstracts, "--input", other)
        assert f"{abstracts} and {str(other).rstrip('/')} hold the same shard (data/data-" in error
        assert "counted twice" in error
        assert "Give one of them" in error


@pytest.mark.parametrize(("name", "damage_shard"), [("one", flip_bit_of_page), ("two", delete_shard)])
def test_a_shard_that_is_not_what_its_manifest_lists_is_named(
    name: str,
    damage_shard: Callable[[Path], str],
    abstracts: Path,
    vocabulary: Path,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first shard is read before the run starts, the second one is not."""
    monkeypatch.setattr(build, "MIN_GROUP_BYTES", 1)
    shard = abstracts / f"data/data-{name}-00000.parquet"
    content = shard.read_bytes()
    message = damage_shard(shard)
    command = ("--input", abstracts, "--vocab", vocabulary, "--output", tmp_path / "out")
    assert run_shards_to_pretraining(*command) == 3
    stderr = capsys.readouterr().err
    assert f"({shard}: {message})" in stderr
    assert "rerun the command that made them" in stderr
    assert sorted(path.name for path in (tmp_path / "out").glob("*")) == [".bioshards", "train"]
    # With the shard repaired, the same command succeeds.
    shard.write_bytes(content)
    assert run_shards_to_pretraining(*command) == 0
    assert load_manifest(tmp_path / "out")["counts"]["documents"] == 40


def test_every_flipped_byte_of_a_shard_is_detected(abstracts: Path, vocabulary: Path, tmp_path: Path) -> None:
    """Damaged Arrow list offsets once crashed the process, so this runs in a subprocess."""
    code = """
import pathlib, random, sys
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.manifest import find_damage
from bioshards.corpus.shards import input_dirs
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import pretraining_inputs

folder, vocabulary = sys.argv[1:]
chance, encoder = random.Random(7), Encoder(vocabulary)
found = input_dirs.load_document_inputs(LocalStorage(), [folder])
path = pathlib.Path(folder, found[0].shards[0].file)
data = path.read_bytes()
for _ in range(1000):
    at = chance.randrange(len(data))
    path.write_bytes(data[:at] + bytes([data[at] ^ chance.choice([1, 64, 128, 255])]) + data[at + 1 :])
    pretraining_inputs.check_vocabulary(LocalStorage(), found, encoder, vocabulary)
    assert find_damage(LocalStorage(), str(path), found[0].shards[0])
"""
    command = [sys.executable, "-c", code, str(abstracts), str(vocabulary)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr


def test_empty_corpus_is_refused(tmp_path: Path, assert_refused: Callable[..., str]) -> None:
    empty_folder = write_document_dir(tmp_path / "none", {})
    assert f"{empty_folder} has no documents. The funnel" in assert_refused("--input", empty_folder)


def test_too_long_document_is_rejected(
    abstracts: Path, vocabulary: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 41 documents exceeds the limit, which is lowered for the test."""
    long_folder = write_document_dir(
        tmp_path / "long",
        {"long": [make_document("pubmed:999", synthetic_corpora.make_paragraph("long", 90))]},
    )
    monkeypatch.setattr(build, "MAX_DOCUMENT_TOKENS", 700)
    inputs = ("--input", abstracts, "--input", long_folder)
    arguments = (*inputs, "--vocab", vocabulary, "--output", tmp_path / "out")
    assert run_shards_to_pretraining(*arguments, "--max-rejected", 0) == 3
    stderr = capsys.readouterr().err
    assert "1 of 41 documents were rejected, more than --max-rejected 0 allows: " in stderr
    assert "(data/data-long-00000.parquet, pubmed:999: " in stderr
    assert "same command with a higher --max-rejected publishes the rows that are built already" in stderr
    assert not (tmp_path / "out" / "manifest.json").exists()
    [path] = (tmp_path / "out" / "rejected").iterdir()
    before = path.stat().st_mtime_ns
    assert run_shards_to_pretraining(*arguments) == 0
    assert "too-long:   1 documents" in capsys.readouterr().out
    assert path.stat().st_mtime_ns == before
    counts = load_manifest(tmp_path / "out")["counts"]
    assert counts["rejected"] == {"too-long": 1}
    assert counts["train"]["documents"] + counts["validation"]["documents"] == 40


# The output


def test_output_inside_an_input_is_refused(
    abstracts: Path, tmp_path: Path, assert_refused: Callable[..., str]
) -> None:
    for output in (abstracts, abstracts / "rows"):
        error = assert_refused("--input", abstracts, output=output)
        assert f"{output} is inside the input {abstracts}. Choose another --output" in error
    error = assert_refused("--input", abstracts, output=tmp_path)
    assert f"the input {abstracts} is inside {tmp_path}" in error


def test_output_of_another_vocabulary_is_refused(
    abstracts: Path, vocabulary: Path, tmp_path: Path, assert_refused: Callable[..., str]
) -> None:
    arguments = ("--input", abstracts, "--output", tmp_path / "out", "--vocab")
    assert run_shards_to_pretraining(*arguments, vocabulary) == 0
    other = synthetic_corpora.build_vocabulary(tmp_path / "other", abstracts, options=("--size", "250"))
    error = assert_refused("--input", abstracts, vocab=other)
    assert (
        f"size was {Tokenizer.from_file(f'{vocabulary}/tokenizer.json').get_vocab_size()}, now 250" in error
    )
    assert "sha256 was" in error
