"""Tests of ``beam run shards_to_words``: counts, validation split, manifest, interruptions, errors."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.output.output_layout import FORMAT
from bioshards.corpus.shards import arrow_io
from bioshards.pipelines import cli
from bioshards.vocab.counting import count_steps as count_steps
from bioshards.vocab.counting import word_counts
from bioshards.vocab.counting.word_counts import WordCounts
from tests.support.corpus.damaged_shards import DAMAGES
from tests.support.fork_server import run_beam
from tests.support.outputs import load_manifest
from tests.support.vocab.text_directories import count_directly, write_texts

pytestmark = pytest.mark.thorough  # this file takes minutes

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def run() -> Run:
    """``beam run shards_to_words`` in this process, one worker unless said otherwise."""

    def call(*arguments: object) -> int:
        return cli.main(["run", "shards_to_words", "--workers", "1", *map(str, arguments)])

    return call


FIRST = {1: "Mice were fed, mice grew.", 2: "Naïve β-cells grew in mice."}
SECOND = {3: "Mice slept.", 4: "All mice, all night."}
THIRD = {5: "Rats did not sleep."}


@pytest.fixture
def abstracts(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "abstracts", {"first": FIRST, "second": SECOND})


def format_counts(counts: dict[str, int], min_count: int = 1) -> bytes:
    return b"".join(word_counts.lines_from_counts(counts, min_count))


# Counts


@pytest.mark.parametrize("kind", word_counts.PRETOKENIZERS)
def test_counts_equal_a_direct_count(kind: str, reference: Path, full_text: Path, tmp_path: Path) -> None:
    inputs = ("--input", reference, "--input", full_text)
    options = ("--pretokenizer", kind, "--validation-fraction", 0.3, "--seed", 5, "--workers", 2)
    completed = run_beam("run", "shards_to_words", *inputs, *options, "--output", tmp_path)
    assert completed.returncode == 0, completed.stderr
    expected = count_directly(reference, full_text, pretokenizer=kind, validation_fraction=0.3, seed=5)
    assert (tmp_path / "words.tsv").read_bytes() == format_counts(expected.words)
    assert (tmp_path / "validation-words.tsv").read_bytes() == format_counts(expected.validation_words)
    counts = load_manifest(tmp_path)["counts"]
    assert counts == {
        "documents": expected.documents,
        "tokens": expected.words.total(),
        "distinct_words": len(expected.words),
        "pruned": {"distinct_words": 0, "tokens": 0},
        "validation": {
            "documents": expected.validation_documents,
            "tokens": expected.validation_words.total(),
            "distinct_words": len(expected.validation_words),
        },
    }
    assert counts["documents"] > counts["validation"]["documents"] > 10
    assert f"{counts['documents']} documents, {counts['tokens']:,} tokens" in completed.stdout
    assert ", 5/5 shards]" in completed.stderr


def test_rare_words_are_pruned_and_counted(abstracts: Path, tmp_path: Path, run: Run) -> None:
    options = ("--min-count", 2, "--validation-fraction", 0.5)
    assert run("--input", abstracts, "--output", tmp_path / "out", *options) == 0
    expected = count_directly(abstracts, validation_fraction=0.5)
    assert (tmp_path / "out" / "words.tsv").read_bytes() == format_counts(expected.words, 2)
    assert (tmp_path / "out" / "validation-words.tsv").read_bytes() == format_counts(
        expected.validation_words
    )
    manifest = load_manifest(tmp_path / "out")
    rare = [word for word, times in expected.words.items() if times == 1]
    assert len(rare) > 2
    assert manifest["config"]["min_count"] == 2
    assert manifest["counts"]["pruned"] == {"distinct_words": len(rare), "tokens": len(rare)}
    assert manifest["counts"]["distinct_words"] - len(rare) == manifest["outputs"][0]["rows"]


def test_manifest_lists_config_inputs_and_outputs(abstracts: Path, tmp_path: Path, run: Run) -> None:
    full_text = write_texts(tmp_path / "fulltext", {"third": THIRD}, "pmc_to_shards")
    output = tmp_path / "out"
    options = ("--validation-fraction", 0.1, "--min-count", 1)
    assert run("--input", abstracts, "--input", full_text, *options, "--output", output) == 0
    manifest = load_manifest(output)
    assert manifest["config"].pop("library_versions").keys() == {"tokenizers"}
    assert manifest["config"] == {
        "pipeline": "shards_to_words",
        "format": FORMAT,
        "pretokenizer": "bert",
        "validation_fraction": 0.1,
        "seed": 0,
        "min_count": 1,
    }
    inputs = {item["pipeline"]: item for item in manifest["inputs"]}
    assert inputs["pubmed_to_shards"] == {
        "pipeline": "pubmed_to_shards",
        "shards_sha256": arrow_io.combine_digests(
            shard["sha256"] for shard in load_manifest(abstracts)["outputs"]
        ),
        "shards": 2,
        "documents": 4,
    }
    assert [item["file"] for item in manifest["outputs"]] == ["words.tsv", "validation-words.tsv"]
    assert sorted(manifest["run"]["inputs"]) == sorted([str(abstracts), str(full_text)])
    assert manifest["run"]["command"][:3] == ["beam", "run", "shards_to_words"]
    assert manifest["run"]["started_at"] <= manifest["run"]["finished_at"]
    del manifest["run"]
    assert str(tmp_path) not in json.dumps(manifest)


# Reruns, interruptions, updates


def test_update_counts_only_new_shards(
    abstracts: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    count_shard_words, counted_files = word_counts.count_shard_words, []

    def record_and_count(*arguments: Any) -> WordCounts:
        counted_files.append(arguments[2].file)
        return count_shard_words(*arguments)

    monkeypatch.setattr(word_counts, "count_shard_words", record_and_count)
    command = ("--input", abstracts, "--output", tmp_path / "out")
    assert run(*command) == 0
    assert len(counted_files) == 2
    for texts, new_files in (
        ({"first": FIRST, "second": SECOND, "third": THIRD}, ["data/data-third-00000.parquet"]),
        ({"first": FIRST, "third": {6: "Nobody slept."}}, ["data/data-third-00000.parquet"]),
    ):
        shutil.rmtree(abstracts)
        write_texts(abstracts, texts)
        counted_files.clear()
        assert run(*command) == 0
        assert counted_files == new_files
        assert (tmp_path / "out" / "words.tsv").read_bytes() == format_counts(count_directly(abstracts).words)
    cached_digests = {path.stem for path in (tmp_path / "out" / ".bioshards" / "word_counts").iterdir()}
    assert cached_digests == {shard["sha256"] for shard in load_manifest(abstracts)["outputs"]}


# Elements between steps


def test_elements_between_steps_have_no_words(abstracts: Path, tmp_path: Path) -> None:
    """The elements of all PCollections are recorded: names, numbers and reports."""
    from tests.support.pipeline_elements import run_recorded

    arguments = ("--input", abstracts, "--validation-fraction", 0.5, "--output", tmp_path / "out")
    run_recorded(tmp_path / "notes", "shards_to_words", *arguments)
    notes = (tmp_path / "notes").read_text()
    assert "ShardCounts(" in notes
    assert "BucketCounts(" in notes
    for word in ("mice", "Mice", "Naïve", "β", "grew", "pubmed:"):
        assert word not in notes


# Errors


@pytest.mark.parametrize("damage_shard", DAMAGES)
def test_a_shard_that_is_not_what_its_manifest_lists_is_named(
    damage_shard: Callable[[Path], str], abstracts: Path, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    shard = abstracts / "data/data-second-00000.parquet"
    content = shard.read_bytes()
    message = damage_shard(shard)
    command = ("--input", abstracts, "--output", tmp_path / "out")
    assert run(*command) == 3
    stderr = capsys.readouterr().err
    assert f"1 of 2 shards cannot be read ({shard}: {message})" in stderr
    assert "rerun the command that made them" in stderr
    assert [path.name for path in (tmp_path / "out").glob("*")] == [".bioshards"]
    # With the shard repaired, the same command succeeds.
    if shard.is_dir():
        shard.rmdir()
    shard.write_bytes(content)
    assert run(*command) == 0
    assert (tmp_path / "out" / "words.tsv").read_bytes() == format_counts(count_directly(abstracts).words)


@pytest.mark.parametrize("options", [("--validation-fraction", 0.999999), ("--min-count", 1000)])
def test_run_without_any_word_fails(
    options: tuple[object, ...], abstracts: Path, tmp_path: Path, run: Run, capsys: Capture
) -> None:
    assert run("--input", abstracts, "--output", tmp_path / "out", *options) == 3
    assert "no word is left" in capsys.readouterr().err
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--output", "x"), "--input DIR is missing: a finished --output of pubmed_to_shards, pmc"),
        (("--input", "x"), "--output DIR is missing"),
        (("--output", "x", "--validation-fraction", 1), "validation_fraction 1.0 is not"),
        (("--output", "x", "--validation-fraction", "tenth"), "invalid fraction value: 'tenth'"),
        (("--output", "x", "--runner=DataflowRunner"), "is local; Dataflow's workers need gs://"),
    ],
)
def test_wrong_command_line_is_refused(
    options: tuple[object, ...],
    message: str,
    abstracts: Path,
    tmp_path: Path,
    run: Run,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    input_arguments = () if "is missing" in message else ("--input", abstracts)
    assert run(*input_arguments, *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
