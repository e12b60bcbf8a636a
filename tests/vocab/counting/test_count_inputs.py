"""Inputs of a vocabulary: each counted once and completely."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import FORMAT, OutputDir
from bioshards.corpus.shards import input_dirs
from bioshards.corpus.shards.input_dirs import InputError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli
from bioshards.vocab.counting import count_inputs
from bioshards.vocab.counting.count_inputs import TrainingCounts
from bioshards.vocab.counting.word_counts import CountConfig
from tests.support.outputs import load_manifest
from tests.support.vocab.text_directories import count_directly, write_texts

FILES = LocalStorage()
MICE = {1: "Mice slept, mice grew.", 2: "All mice grew."}
RATS = {3: "Rats grew.", 4: "No rats slept, but mice did."}


def count(out: Path, *arguments: object) -> Path:
    """``beam run shards_to_words`` into a folder."""
    words = ["run", "shards_to_words", "--workers", "1", "--output", out, *arguments]
    assert cli.main([str(word) for word in words]) == 0
    return out


def read(*folders: Path, min_count: int | None = None, **how: Any) -> TrainingCounts:
    found = count_inputs.load_corpus_inputs(FILES, [str(folder) for folder in folders])
    return count_inputs.read_training_counts(FILES, found, CountConfig(**how), min_count, lambda line: None)


def refused(*folders: Path) -> str:
    """What is said of sources that cannot be used; one sentence for a person."""
    with pytest.raises(InputError) as raised:
        read(*folders)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.fixture
def mice(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "mice", {"first": MICE})


@pytest.fixture
def rats(tmp_path: Path) -> Path:
    return write_texts(tmp_path / "rats", {"second": RATS}, "pmc_to_shards")


def edit(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    facts = load_manifest(folder)
    change(facts)
    (folder / "manifest.json").write_text(json.dumps(facts))


# Whole


def test_words_and_documents_are_added_up(mice: Path, rats: Path, tmp_path: Path) -> None:
    expected = count_directly(mice, rats).words
    assert read(mice, rats).words == expected
    assert read(count(tmp_path / "words", "--input", mice), rats).words == expected


def test_a_shard_that_is_cut_changed_or_missing_is_named(mice: Path) -> None:
    shard = mice / "data-first-00000.arrow"
    whole = shard.read_bytes()
    for data, message in (
        (whole[:-8], f"it has {len(whole) - 8:,} bytes, and its manifest lists {len(whole):,}"),
        (whole.replace(b"All mice", b"All rats"), "its SHA-256 is not the one that its manifest lists"),
        (None, "No such file or directory"),
    ):
        shard.unlink()
        if data is not None:
            shard.write_bytes(data)
        said = refused(mice)
        assert f"{shard} cannot be read: {message}" in said
        assert "rerun the beam run pubmed_to_shards that made it" in said
        shard.write_bytes(whole)
    assert read(mice).words == count_directly(mice).words


@pytest.mark.parametrize("name", ["words.tsv", "validation-words.tsv"])
def test_a_file_of_words_that_is_not_what_its_manifest_lists_is_named(
    name: str, mice: Path, tmp_path: Path
) -> None:
    words = count(tmp_path / "words", "--input", mice, "--validation-fraction", 0.5)
    whole = (words / name).read_bytes()
    for data in (whole.replace(b"mice", b"rats"), whole[:-2], None):
        (words / name).unlink()
        if data is not None:
            (words / name).write_bytes(data)
        said = refused(words)
        assert f"{words}/{name} is damaged" in said
        assert "Delete it and run beam run shards_to_words again" in said
        (words / name).write_bytes(whole)
    count(words, "--input", mice, "--validation-fraction", 0.5)
    assert read(words)


# Rare words


def test_a_word_is_rare_by_its_count_in_all_sources(mice: Path, rats: Path, tmp_path: Path) -> None:
    """ "slept" is once in each, "grew" twice in one and once in the other."""
    expected = {word: number for word, number in count_directly(mice, rats).words.items() if number >= 2}
    assert expected["slept"] == 2
    words = [
        count(tmp_path / "of-mice", "--input", mice),
        count(tmp_path / "of-rats", "--input", rats, "--pretokenizer", "white-space"),
    ]
    assert read(*words, min_count=2) == (expected, {}, 2)
    assert read(mice, rats, min_count=2) == (expected, {}, 2)


def test_of_many_words_the_most_frequent_are_taken_and_the_bound_is_said(
    mice: Path, rats: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = count(tmp_path / "words", "--input", mice, "--input", rats)
    everything = count_directly(mice, rats).words
    for most in range(1, len(everything) + 1):
        monkeypatch.setattr(count_inputs, "MAX_WORDS", most)
        text = read(words)
        assert len(text.words) <= most
        assert text.words == {w: number for w, number in everything.items() if number >= text.min_count}
        assert text == read(mice, rats)
    assert text.min_count == 1


def test_no_word_held_out_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mice = write_texts(tmp_path / "mice", {"n": {at: f"Mouse word{at}." for at in range(40)}})
    words = count(tmp_path / "words", "--input", mice, "--validation-fraction", 0.5)
    expected = count_directly(mice, validation_fraction=0.5)
    assert len(expected.validation_words) > 5
    monkeypatch.setattr(count_inputs, "MAX_WORDS", 2)
    text = read(words)
    assert text.words.keys() == {"Mouse", "."}
    assert text.validation_words == expected.validation_words
    assert text.min_count == 2
    assert text == read(mice, validation_fraction=0.5)


def test_what_was_left_out_when_words_were_counted_is_said(mice: Path, rats: Path, tmp_path: Path) -> None:
    words = count(tmp_path / "words", "--input", mice, "--min-count", 2)
    assert read(words).min_count == 2
    assert read(words, rats, min_count=3).min_count == 3
    assert read(words, rats).min_count == 2
    frequent = Counter({w: number for w, number in count_directly(mice).words.items() if number >= 2})
    assert read(words, rats).words == frequent + count_directly(rats).words


# Held out


def test_an_abstract_and_its_article_are_held_out_together(tmp_path: Path) -> None:
    """In this process and in the pipeline; each has its PMID for a word."""
    numbers = range(100, 200)
    abstracts = write_texts(tmp_path / "a", {"a": {at: f"abstract{at}" for at in numbers}})
    articles = write_texts(
        tmp_path / "b", {"b": {at: f"article{at}" for at in numbers}}, "pmc_to_shards", "pmc:PMC"
    )
    text = read(abstracts, articles, validation_fraction=0.2)
    held = {word.removeprefix("abstract") for word in text.validation_words if word.startswith("abstract")}
    assert 5 < len(held) < 40
    assert text.validation_words.keys() == {f"{name}{at}" for name in ("abstract", "article") for at in held}
    words = count(tmp_path / "words", "--input", abstracts, "--input", articles, "--validation-fraction", 0.2)
    assert read(words) == text


# Once


def test_words_and_the_documents_they_were_counted_from_are_not_taken_together(
    mice: Path, rats: Path, tmp_path: Path
) -> None:
    words = count(tmp_path / "words", "--input", mice, "--input", rats)
    for documents in (mice, rats):
        said = refused(documents, words)
        assert f"{words} and {documents} are of the same documents" in said
        assert "count twice. Give one of them" in said


def test_two_countings_of_the_same_documents_are_not_taken_together(
    mice: Path, rats: Path, tmp_path: Path
) -> None:
    first = count(tmp_path / "bert", "--input", mice)
    second = count(
        tmp_path / "white-space", "--input", mice, "--input", rats, "--pretokenizer", "white-space"
    )
    said = refused(first, second)
    assert str(first) in said
    assert str(second) in said
    assert "of the same documents" in said


# Something else


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts["config"].pop("pretokenizer"),
        lambda facts: facts["config"].update(pretokenizer="bytes"),
        lambda facts: facts["config"].update(min_count=None),
        lambda facts: facts.pop("config"),
        lambda facts: facts.update(config=[]),
        lambda facts: facts.pop("inputs"),
        lambda facts: facts.update(inputs=[{}]),
        lambda facts: facts.update(inputs=["x"]),
        lambda facts: facts.pop("outputs"),
        lambda facts: facts.update(outputs=[{"file": "words.tsv"}]),
        lambda facts: facts.update(outputs=[]),
    ],
)
def test_a_manifest_of_words_that_lacks_something_is_named(
    change: Callable[[dict[str, Any]], object], mice: Path, tmp_path: Path
) -> None:
    words = count(tmp_path / "words", "--input", mice)
    edit(words, change)
    said = refused(words)
    assert f"{words}/manifest.json is not as shards_to_words writes it" in said
    assert re.search("Count again|Make the directory anew", said)


@pytest.mark.parametrize("missing", ["config", "outputs"])
def test_a_manifest_of_documents_that_lacks_something_is_named(missing: str, mice: Path) -> None:
    edit(mice, lambda facts: facts.pop(missing))
    assert f"{mice}/manifest.json is not as pubmed_to_shards writes it" in refused(mice)


def test_a_manifest_that_is_no_json_is_named(mice: Path, tmp_path: Path) -> None:
    words = count(tmp_path / "words", "--input", mice)
    for text in (b"{", b"\xff", b""):
        (words / "manifest.json").write_bytes(text)
        assert f"{words}/manifest.json cannot be read" in refused(words)


def test_the_documents_folder_as_output_is_said_to_be_of_its_pipeline(mice: Path) -> None:
    for made_in in (FORMAT, FORMAT - 1):
        facts = load_manifest(mice)
        facts["config"]["format"] = made_in
        FILES.write_json(f"{mice}/manifest.json", facts)
        with pytest.raises(
            OutputMismatchError, match="was written by pubmed_to_shards, and this is vocab"
        ) as raised:
            output_layout.check_config(FILES, OutputDir(str(mice)), {"pipeline": "vocab"})
        assert "delete" not in str(raised.value)


def test_a_folder_of_something_else_is_told_what_may_be_given(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("[]")
    said = refused(tmp_path)
    assert "does not hold documents" in said
    assert "beam run pubmed_to_shards, pmc_to_shards or shards_to_words" in said


# Apart


def test_what_is_written_lies_apart_from_what_is_read(tmp_path: Path) -> None:
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
