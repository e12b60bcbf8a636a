"""Figures of documents, of words and of vocabularies, and directories that have none."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bioshards.corpus import __main__ as command
from bioshards.corpus.manifest import encode
from bioshards.corpus.stats import directory_stats, text_tables
from bioshards.corpus.stats.shard_batches import StatsError
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.manifests import of_documents, of_mirror
from tests.support.corpus.stats_directories import (
    FUNNEL,
    VOCABULARY_MANIFEST,
    WORDS_MANIFEST,
    make_stats_document,
    write_document_shards,
    write_manifest_file,
)
from tests.support.outputs import load_manifest

FILES = LocalStorage()


def figures(folder: Path) -> dict[str, Any]:
    return directory_stats.compute_stats(FILES, str(folder))


@pytest.fixture
def small(tmp_path: Path) -> Path:
    first = make_stats_document(1, ["One title.", "It has three words."])
    second = make_stats_document(2, ["Größe"], year=None)
    third = make_stats_document(3, ["A b c d.", "", "e"], year=1999, source="pmc")
    return write_document_shards(tmp_path / "small", [[first], [second]], [[third]])


def test_figures_by_hand(small: Path) -> None:
    found = figures(small)
    assert (found["kind"], found["pipeline"], found["shards"]) == ("documents", "pubmed_to_shards", 2)
    assert found["bytes"] == sum(path.stat().st_size for path in small.glob("*.arrow"))
    assert (found["documents"], found["sentences"], found["words"]) == (3, 6, 2 + 4 + 1 + 4 + 0 + 1)
    assert found["characters"] == 10 + 19 + 5 + 8 + 0 + 1
    assert found["funnel"] == FUNNEL
    assert found["years"] == {
        "pmc": {"1999": {"documents": 1, "words": 5}},
        "pubmed": {"2020": {"documents": 1, "words": 6}, "unknown": {"documents": 1, "words": 1}},
    }
    lengths = found["distributions"]
    assert [lengths["sentences_per_document"][key] for key in ("mean", "median", "max")] == [2, 2, 3]
    assert [lengths["words_per_document"][key] for key in ("mean", "median", "max")] == [4, 5, 6]
    assert [lengths["words_per_sentence"][key] for key in ("mean", "min", "p95")] == [2, 0, 4]


def test_the_summary_of_documents(small: Path) -> None:
    found = figures(small)
    assert text_tables.render_text(found | {"bytes": 12_345}) == SUMMARY


SUMMARY = """\
Document shards, made by pubmed_to_shards

At a glance
documents         3
sentences         6
words            12
characters       43
shards            2
bytes        12,345

Lengths                 mean  5 %  median  95 %  max
sentences per document  2.00    1       2     3    3
words per document      4.00    1       5     6    6
words per sentence      2.00    0       1     4    4

By source          years  documents  words
pmc                 1999          1      5
pubmed     2020, unknown          2      7

Records
records               5
dropped: no-abstract  2
kept                  3
"""


SENTENCE = st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), max_size=6).map(
    " ".join
)
MADE = st.tuples(
    st.lists(SENTENCE, max_size=5), st.none() | st.integers(1900, 1903), st.sampled_from(["pubmed", "pmc"])
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.lists(MADE, min_size=1, max_size=4), max_size=3), max_size=3))
def test_figures_are_those_of_the_texts_one_by_one(tmp_path: Path, made: list[list[list[Any]]]) -> None:
    shutil.rmtree(tmp_path)
    of_shards = [[[make_stats_document(1, *one) for one in batch] for batch in batches] for batches in made]
    found = figures(write_document_shards(tmp_path, *of_shards))
    documents = [one for batches in of_shards for batch in batches for one in batch]
    sentences = [sentence for one in documents for sentence in one.sentences]
    words = [sum(len(sentence.split()) for sentence in one.sentences) for one in documents]
    assert found["documents"] == len(documents)
    assert found["sentences"] == len(sentences)
    assert found["words"] == sum(words)
    assert found["characters"] == sum(map(len, sentences))
    lengths = found["distributions"]
    assert bins(lengths["words_per_document"]) == Counter(words)
    assert bins(lengths["sentences_per_document"]) == Counter(len(one.sentences) for one in documents)
    assert bins(lengths["words_per_sentence"]) == Counter(len(sentence.split()) for sentence in sentences)
    expected: Counter[tuple[str, str]] = Counter()
    for one, number in zip(documents, words, strict=True):
        expected[one.source, str(one.year or "unknown")] += number
    assert expected == Counter(
        {
            (source, year): of["words"]
            for source, years in found["years"].items()
            for year, of in years.items()
        }
    )


def bins(found: dict[str, Any]) -> Counter[int]:
    """The numbers of a distribution so small that a bin holds one."""
    histogram = found["histogram"] or {"bins": []}
    return Counter({one["from"]: one["count"] for one in histogram["bins"] if one["count"]})


@pytest.mark.parametrize("corpus", ["reference", "full_text"])
def test_what_is_counted_is_what_the_pipeline_has_counted(
    corpus: str, request: pytest.FixtureRequest
) -> None:
    folder = request.getfixturevalue(corpus)
    found, listed = figures(folder), load_manifest(folder)
    for key in ("documents", "sentences", "words", "characters"):
        assert found[key] == listed["counts"][key]
    (years,) = found["years"].values()
    assert {year: of["documents"] for year, of in years.items()} == listed["years"]


def test_words_and_a_vocabulary_say_what_their_manifest_says(tmp_path: Path) -> None:
    words = figures(write_manifest_file(tmp_path / "words", WORDS_MANIFEST))
    assert (words["kind"], words["counts"]) == ("words", WORDS_MANIFEST["counts"])
    summary = text_tables.render_text(words)
    assert summary.startswith("Counted words, made by shards_to_words\n")
    for line in (
        "validation: documents          634",
        "documents of pubmed_to_shards  1,234",
        "words.tsv  4,567",
    ):
        assert f"{line}\n" in summary
    vocabulary = figures(write_manifest_file(tmp_path / "vocabulary", VOCABULARY_MANIFEST))
    summary = text_tables.render_text(vocabulary)
    assert re.search(r"^its page +report.html$", summary, re.MULTILINE)
    assert re.search(r"^recipe: dummies +@GENE\$, @X\$$", summary, re.MULTILINE)
    assert re.search(r"^input +shards_to_words$", summary, re.MULTILINE)
    assert "alphabet" not in summary
    assert "library_versions" not in vocabulary["config"]


# Directories that cannot be counted


def without(found: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name != field}


DOCUMENTS: dict[str, Any] = encode(of_documents([], "pmc_to_shards"))
MIRROR: dict[str, Any] = encode(of_mirror())


def refused(folder: Path) -> str:
    with pytest.raises((FileNotFoundError, StatsError)) as caught:
        figures(folder)
    return str(caught.value)


def test_an_unfinished_directory(small: Path, tmp_path: Path) -> None:
    (small / "manifest.json").unlink()
    assert "rerun the command to complete it" in refused(small)
    assert "no manifest.json" in refused(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], "it is not of bioshards"),
        ({"name": "an app"}, "it is not of bioshards"),
        ({"pipeline": ["vocab"]}, "it is not of bioshards"),
        ({"pipeline": "another"}, "it was made by another. Give an output of pubmed_to_shards"),
        (MIRROR, "it was made by fetch. Give an output of pubmed_to_shards, pmc_to_shards"),
        (
            {**VOCABULARY_MANIFEST, "config": 3},
            "is not as vocab writes it (config: expected an object, found 3)",
        ),
        ({**DOCUMENTS, "outputs": "?"}, "is not as pmc_to_shards writes it (outputs: expected a list"),
        (without(DOCUMENTS, "funnel"), "is not as pmc_to_shards writes it (funnel: the field is missing)"),
        (without(VOCABULARY_MANIFEST, "schema_version"), "was made by another version of bioshards"),
        ({**VOCABULARY_MANIFEST, "schema_version": 2}, "schema_version 2, this is schema_version 1"),
    ],
)
def test_a_directory_of_something_else(tmp_path: Path, found: object, said: str) -> None:
    message = refused(write_manifest_file(tmp_path, found))
    assert said in message
    assert str(tmp_path) in message


def test_a_manifest_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{")
    assert "manifest.json cannot be read" in refused(tmp_path)


def test_a_shard_that_is_gone_cut_off_or_of_something_else(small: Path) -> None:
    shard = small / "data-0-00000.arrow"
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    assert f"{shard} cannot be read" in refused(small)
    shard.write_bytes(b"")
    assert f"{shard} cannot be read" in refused(small)
    shutil.copy(small / "data-1-00000.arrow", shard)
    assert f"{shard} has 1 rows, and its manifest lists 2. Delete it" in refused(small)
    shard.unlink()
    assert f"{shard} cannot be read" in refused(small)


def test_a_shard_without_a_column_that_is_counted(small: Path) -> None:
    shard = small / "data-0-00000.arrow"
    with pa.ipc.open_stream(shard.read_bytes()) as stream:
        table = stream.read_all().drop_columns(["year"])
    with pa.ipc.new_stream(str(shard), table.schema) as stream:
        stream.write_table(table)
    assert f"{shard} cannot be read" in refused(small)


# The command


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(*words: object) -> int:
        monkeypatch.setattr(sys, "argv", ["corpus", "stats", *map(str, words)])
        return command.main()

    return run


def test_the_summary_is_printed_where_no_file_is_named(
    small: Path, call: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(small) == 0
    assert capsys.readouterr().out == text_tables.render_text(figures(small))


def test_the_same_directory_gives_the_same_bytes_wherever_it_is(
    small: Path,
    tmp_path: Path,
    call: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert call(small, "--json", tmp_path / "1.json", "--html", tmp_path / "1.html") == 0
    moved = tmp_path / "elsewhere" / "small"
    shutil.copytree(small, moved)
    assert call(f"{moved}/", "--json", tmp_path / "2.json", "--html", tmp_path / "2.html") == 0
    assert capsys.readouterr().out == ""
    monkeypatch.chdir(moved)
    assert call(".", "--json", "-", "--html", tmp_path / "3.html") == 0
    assert capsys.readouterr().out == (tmp_path / "1.json").read_text()
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    pages = {(tmp_path / f"{number}.html").read_bytes() for number in (1, 2, 3)}
    assert len(pages) == 1
    assert str(tmp_path).encode() not in pages.pop()
    assert json.loads((tmp_path / "1.json").read_text()) == figures(small)


def test_what_cannot_be_done_ends_with_2_and_says_why(
    small: Path, tmp_path: Path, call: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(tmp_path) == 2
    assert "has no manifest.json" in capsys.readouterr().err
    assert call(small, "--json", small) == 2
    assert f"{small} cannot be written" in capsys.readouterr().err
    assert call(write_manifest_file(tmp_path / "other", MIRROR)) == 2
    assert "it was made by fetch" in capsys.readouterr().err


def test_a_name_that_is_no_unicode_is_escaped(tmp_path: Path, call: Any) -> None:
    name = os.fsdecode(b"data-\xff.arrow")
    outputs = [{"file": name, "bytes": 1}]
    folder = write_manifest_file(
        tmp_path / "words", WORDS_MANIFEST | {"outputs": [{**outputs[0], "rows": 1, "sha256": ""}]}
    )
    assert call(folder, "--json", tmp_path / "found.json") == 0
    assert json.loads((tmp_path / "found.json").read_bytes())["outputs"] == outputs
    assert call(folder, "--html", tmp_path / "found.html") == 0
    assert "data-U+DCFF.arrow" in (tmp_path / "found.html").read_text()
    assert call(folder) == 0


def test_a_reader_that_stops_is_no_failure(small: Path) -> None:
    asked = [sys.executable, "-m", "bioshards.corpus", "stats", str(small), "--json", "-"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        done = subprocess.run(asked, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
