"""Word counts of a vocabulary's inputs: complete, and each document counted once."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import FORMAT, OutputDir
from bioshards.corpus.shards import input_dirs
from bioshards.corpus.shards.input_dirs import InputError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress
from bioshards.pipelines import cli
from bioshards.vocab.counting import count_inputs
from bioshards.vocab.counting.count_inputs import TrainingCounts
from bioshards.vocab.counting.word_counts import CountConfig
from tests.support.outputs import load_manifest, save_manifest
from tests.support.vocab.text_directories import count_directly, write_texts

pytestmark = pytest.mark.thorough  # this file takes minutes

FILES = LocalStorage()
MICE = {1: "Mice slept, mice grew.", 2: "All mice grew."}
RATS = {3: "Rats grew.", 4: "No rats slept, but mice did."}


def count_with_pipeline(out: Path, *arguments: object) -> Path:
    """Run ``beam run shards_to_words`` and return its output directory."""
    words = ["run", "shards_to_words", "--workers", "1", "--output", out, *arguments]
    assert cli.main([str(word) for word in words]) == 0
    return out


def read_counts(*folders: Path, min_count: int | None = None, **config: Any) -> TrainingCounts:
    corpus_inputs = count_inputs.load_corpus_inputs(FILES, [str(folder) for folder in folders])
    return count_inputs.read_training_counts(
        FILES, corpus_inputs, CountConfig(**config), min_count, Progress(None)
    )


def read_refusal(*folders: Path) -> str:
    """Return the one-line message of the InputError that reading raises."""
    with pytest.raises(InputError) as raised:
        read_counts(*folders)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.fixture
def mice_documents(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "mice", {"first": MICE})


@pytest.fixture
def rats_documents(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "rats", {"second": RATS}, "pmc_to_shards")


# Complete inputs


def test_counts_of_word_and_document_inputs_are_added(
    mice_documents: Path, rats_documents: Path, tmp_path: Path
) -> None:
    expected = count_directly(mice_documents, rats_documents).words
    assert read_counts(mice_documents, rats_documents).words == expected
    assert (
        read_counts(count_with_pipeline(tmp_path / "words", "--input", mice_documents), rats_documents).words
        == expected
    )


def test_error_names_a_truncated_changed_or_missing_shard(mice_documents: Path) -> None:
    shard = mice_documents / "data/data-first-00000.parquet"
    whole = shard.read_bytes()
    for data, expected in (
        (whole[:-8], f"it has {len(whole) - 8:,} bytes, and its manifest lists {len(whole):,}"),
        (whole.replace(b"All mice", b"All rats"), "its SHA-256 is not the one that its manifest lists"),
        (None, "No such file or directory"),
    ):
        shard.unlink()
        if data is not None:
            shard.write_bytes(data)
        message = read_refusal(mice_documents)
        assert f"{shard} cannot be read: {expected}" in message
        assert "rerun the beam run pubmed_to_shards that made it" in message
        shard.write_bytes(whole)
    assert read_counts(mice_documents).words == count_directly(mice_documents).words


@pytest.mark.parametrize("name", ["words.tsv", "validation-words.tsv"])
def test_error_names_a_word_file_that_differs_from_its_manifest(
    name: str, mice_documents: Path, tmp_path: Path
) -> None:
    words = count_with_pipeline(tmp_path / "words", "--input", mice_documents, "--validation-fraction", 0.5)
    whole = (words / name).read_bytes()
    for data in (whole.replace(b"mice", b"rats"), whole[:-2], None):
        (words / name).unlink()
        if data is not None:
            (words / name).write_bytes(data)
        message = read_refusal(words)
        assert f"{words}/{name} is damaged" in message
        assert "Delete it and run beam run shards_to_words again" in message
        (words / name).write_bytes(whole)
    count_with_pipeline(words, "--input", mice_documents, "--validation-fraction", 0.5)
    assert read_counts(words)


# Rare words


def test_min_count_applies_to_the_sum_over_all_inputs(
    mice_documents: Path, rats_documents: Path, tmp_path: Path
) -> None:
    """ "slept" occurs once in each input, "grew" twice in one and once in the other."""
    expected = {
        word: number
        for word, number in count_directly(mice_documents, rats_documents).words.items()
        if number >= 2
    }
    assert expected["slept"] == 2
    words = [
        count_with_pipeline(tmp_path / "of-mice", "--input", mice_documents),
        count_with_pipeline(tmp_path / "of-rats", "--input", rats_documents, "--pretokenizer", "white-space"),
    ]
    assert read_counts(*words, min_count=2) == (expected, {}, 2)
    assert read_counts(mice_documents, rats_documents, min_count=2) == (expected, {}, 2)


def test_max_words_keeps_the_most_frequent_and_reports_min_count(
    mice_documents: Path, rats_documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = count_with_pipeline(tmp_path / "words", "--input", mice_documents, "--input", rats_documents)
    all_words = count_directly(mice_documents, rats_documents).words
    for limit in range(1, len(all_words) + 1):
        monkeypatch.setattr(count_inputs, "MAX_WORDS", limit)
        text = read_counts(words)
        assert len(text.words) <= limit
        assert text.words == {w: number for w, number in all_words.items() if number >= text.min_count}
        assert text == read_counts(mice_documents, rats_documents)
    assert text.min_count == 1


def test_max_words_keeps_all_validation_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = write_texts(tmp_path / "mice", {"n": {pmid: f"Mouse word{pmid}." for pmid in range(40)}})
    words = count_with_pipeline(tmp_path / "words", "--input", documents, "--validation-fraction", 0.5)
    expected = count_directly(documents, validation_fraction=0.5)
    assert len(expected.validation_words) > 5
    monkeypatch.setattr(count_inputs, "MAX_WORDS", 2)
    text = read_counts(words)
    assert text.words.keys() == {"Mouse", "."}
    assert text.validation_words == expected.validation_words
    assert text.min_count == 2
    assert text == read_counts(documents, validation_fraction=0.5)


def test_min_count_of_counted_words_is_reported(
    mice_documents: Path, rats_documents: Path, tmp_path: Path
) -> None:
    words = count_with_pipeline(tmp_path / "words", "--input", mice_documents, "--min-count", 2)
    assert read_counts(words).min_count == 2
    assert read_counts(words, rats_documents, min_count=3).min_count == 3
    assert read_counts(words, rats_documents).min_count == 2
    frequent = Counter(
        {w: number for w, number in count_directly(mice_documents).words.items() if number >= 2}
    )
    assert read_counts(words, rats_documents).words == frequent + count_directly(rats_documents).words


# Held out


def test_abstract_and_its_article_are_in_the_same_split(tmp_path: Path) -> None:
    """Both in this process and in the pipeline. The word of each document names its PMID."""
    numbers = range(100, 200)
    abstracts = write_texts(tmp_path / "a", {"a": {at: f"abstract{at}" for at in numbers}})
    articles = write_texts(
        tmp_path / "b", {"b": {at: f"article{at}" for at in numbers}}, "pmc_to_shards", "pmc:PMC"
    )
    text = read_counts(abstracts, articles, validation_fraction=0.2)
    held_out_ids = {
        word.removeprefix("abstract") for word in text.validation_words if word.startswith("abstract")
    }
    assert 5 < len(held_out_ids) < 40
    assert text.validation_words.keys() == {
        f"{name}{at}" for name in ("abstract", "article") for at in held_out_ids
    }
    words = count_with_pipeline(
        tmp_path / "words", "--input", abstracts, "--input", articles, "--validation-fraction", 0.2
    )
    assert read_counts(words) == text


# Inputs given twice


def test_words_together_with_their_documents_are_refused(
    mice_documents: Path, rats_documents: Path, tmp_path: Path
) -> None:
    words_dir = count_with_pipeline(tmp_path / "words", "--input", mice_documents, "--input", rats_documents)
    for documents in (mice_documents, rats_documents):
        message = read_refusal(documents, words_dir)
        assert f"{words_dir} and {documents} are of the same documents" in message
        assert "count twice. Give one of them" in message


def test_two_word_counts_of_the_same_documents_are_refused(
    mice_documents: Path, rats_documents: Path, tmp_path: Path
) -> None:
    first = count_with_pipeline(tmp_path / "bert", "--input", mice_documents)
    inputs = ("--input", mice_documents, "--input", rats_documents)
    second = count_with_pipeline(tmp_path / "white-space", *inputs, "--pretokenizer", "white-space")
    message = read_refusal(first, second)
    assert str(first) in message
    assert str(second) in message
    assert "of the same documents" in message


# Invalid directories


def test_error_names_a_manifest_of_words_that_is_not_whole(mice_documents: Path, tmp_path: Path) -> None:
    """tests/corpus/test_manifest.py has all fields, test_pretraining_bad_input.py manifests of documents."""
    words = count_with_pipeline(tmp_path / "words", "--input", mice_documents)
    whole = load_manifest(words)
    for change, hint in (({"outputs": []}, "Count again"), ({"inputs": [{}]}, "Make the directory anew")):
        save_manifest(words, {**whole, **change})
        message = read_refusal(words)
        assert f"{words}/manifest.json is not as shards_to_words writes it" in message
        assert hint in message
    (words / "manifest.json").write_bytes(b"{")
    assert f"{words}/manifest.json cannot be read" in read_refusal(words)


def test_output_in_a_documents_directory_is_refused_with_its_pipeline(mice_documents: Path) -> None:
    for format_number in (FORMAT, FORMAT - 1):
        manifest = load_manifest(mice_documents)
        manifest["config"]["format"] = format_number
        save_manifest(mice_documents, manifest)
        with pytest.raises(
            OutputMismatchError, match="was written by pubmed_to_shards, and this is vocab"
        ) as raised:
            output_layout.check_config(FILES, OutputDir(str(mice_documents)), {"pipeline": "vocab"})
        assert "delete" not in str(raised.value)


def test_error_for_another_directory_lists_the_accepted_inputs(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("[]")
    message = read_refusal(tmp_path)
    assert "does not hold documents" in message
    assert "beam run pubmed_to_shards, pmc_to_shards, text_to_shards or shards_to_words" in message


# Inputs and outputs are separate directories


def test_output_inside_an_input_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "in")
    inside = str(tmp_path / "in")
    for out in (
        inside,
        f"{inside}/",
        f"{inside}/out",
        str(tmp_path / "link" / "out"),
        os.path.relpath(inside),
    ):
        with pytest.raises(InputError, match=f"^{out} is inside the input {inside}"):
            input_dirs.check_disjoint([inside], out)
    for above in (str(tmp_path), f"{tmp_path}/"):
        with pytest.raises(InputError, match=f"^the input {inside} is inside {above}"):
            input_dirs.check_disjoint(["/elsewhere", inside], above)
    with pytest.raises(InputError, match=r"^gs://bucket/in/out is inside the input gs://bucket/in\."):
        input_dirs.check_disjoint(["gs://bucket/in"], "gs://bucket/in/out")
    input_dirs.check_disjoint([inside, "gs://bucket/in"], f"{inside}-out")
    input_dirs.check_disjoint([inside, "gs://bucket/in"], "gs://bucket/in2")
