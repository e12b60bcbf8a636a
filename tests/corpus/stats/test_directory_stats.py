"""Statistics of document shards, errors of invalid directories, and the command."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bioshards.corpus import __main__ as command
from bioshards.corpus.manifest import BadFile
from bioshards.corpus.stats import directory_stats, report
from bioshards.corpus.stats.directory_stats import StatsError
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.manifests import of_documents, of_mirror
from tests.support.corpus.stats_directories import (
    VOCABULARY_MANIFEST,
    make_stats_document,
    write_document_shards,
    write_manifest_file,
)
from tests.support.hypothesis_profiles import examples
from tests.support.outputs import save_manifest

FILES = LocalStorage()


def compute_stats(folder: Path) -> dict[str, Any]:
    return directory_stats.compute_stats(FILES, str(folder))


@pytest.fixture
def documents_dir(tmp_path: Path) -> Path:
    """A directory with three documents in two shards."""
    first = make_stats_document(1, ["One title.", "It has three words."])
    second = make_stats_document(2, ["Größe"], year=None)
    third = make_stats_document(3, ["A b c d.", "", "e"], year=1999, source="pmc")
    return write_document_shards(tmp_path / "small", [[first], [second]], [[third]])


def test_summary_of_documents(documents_dir: Path) -> None:
    stats = compute_stats(documents_dir)
    assert stats["bytes"] == sum(path.stat().st_size for path in documents_dir.glob("data/*"))
    assert report.render_text(stats | {"bytes": 12_345}) == SUMMARY


SUMMARY = """\
Document shards, made by pubmed_to_shards

At a glance
documents         3
sentences         6
words            12
characters       43
shards            2
bytes        12,345

Records
records               5
dropped: no-abstract  2
kept                  3

By source          years  documents  words
pmc                 1999          1      5
pubmed     2020, unknown          2      7

Language  documents  share
eng               3  100 %

Lengths                 mean  5 %  median  95 %  max
sentences per document  2.00    1       2     3    3
words per document      4.00    1       5     6    6
words per sentence      2.00    0       1     4    4
"""


SENTENCE = st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), max_size=6).map(
    " ".join
)
DOCUMENT_FIELDS = st.tuples(
    st.lists(SENTENCE, max_size=5), st.none() | st.integers(1900, 1903), st.sampled_from(["pubmed", "pmc"])
)


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.lists(DOCUMENT_FIELDS, min_size=1, max_size=4), max_size=3), max_size=3))
def test_stats_equal_those_of_single_documents(tmp_path: Path, drawn_shards: list[list[list[Any]]]) -> None:
    shutil.rmtree(tmp_path)
    shards = [
        [[make_stats_document(1, *document) for document in batch] for batch in batches]
        for batches in drawn_shards
    ]
    stats = compute_stats(write_document_shards(tmp_path, *shards))
    documents = [document for batches in shards for batch in batches for document in batch]
    sentences = [sentence for document in documents for sentence in document.sentences]
    words = [sum(len(sentence.split()) for sentence in document.sentences) for document in documents]
    assert stats["documents"] == len(documents)
    assert stats["sentences"] == len(sentences)
    assert stats["words"] == sum(words)
    assert stats["characters"] == sum(map(len, sentences))
    lengths = stats["distributions"]
    assert count_bins(lengths["words_per_document"]) == Counter(words)
    assert count_bins(lengths["sentences_per_document"]) == Counter(
        len(document.sentences) for document in documents
    )
    assert count_bins(lengths["words_per_sentence"]) == Counter(
        len(sentence.split()) for sentence in sentences
    )
    expected: Counter[tuple[str, str]] = Counter()
    for document, num_words in zip(documents, words, strict=True):
        expected[document.source, str(document.year or "unknown")] += num_words
    assert expected == Counter(
        {
            (source, year): counts["words"]
            for source, years in stats["years"].items()
            for year, counts in years.items()
        }
    )


def count_bins(distribution: dict[str, Any]) -> Counter[int]:
    """Return the counts of a distribution whose bins hold one number each."""
    histogram = distribution["histogram"] or {"bins": []}
    return Counter(
        {interval["from"]: interval["count"] for interval in histogram["bins"] if interval["count"]}
    )


# Invalid directories


DOCUMENTS: dict[str, Any] = msgspec.to_builtins(of_documents([], "pmc_to_shards"))
MIRROR: dict[str, Any] = msgspec.to_builtins(of_mirror())


def read_error_message(folder: Path) -> str:
    """Return the message of the error that the directory gives."""
    with pytest.raises((FileNotFoundError, StatsError)) as caught:
        compute_stats(folder)
    return str(caught.value)


def test_unfinished_directory_is_refused(documents_dir: Path, tmp_path: Path) -> None:
    (documents_dir / "manifest.json").unlink()
    assert "rerun the command to complete it" in read_error_message(documents_dir)
    assert "nowhere does not exist: it is not" in read_error_message(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ([], "it is not of bioshards"),
        ({"name": "an app"}, "it is not of bioshards"),
        ({"pipeline": ["vocab"]}, "it is not of bioshards"),
        ({"pipeline": "another"}, "it was made by another. Give an output of pubmed_to_shards"),
        (MIRROR, "it was made by fetch. Give an output of pubmed_to_shards, pmc_to_shards"),
        (VOCABULARY_MANIFEST, "it was made by vocab. Give an output of"),
        ({**DOCUMENTS, "outputs": "?"}, "is not as pmc_to_shards writes it: Expected `array`, got `str`"),
        ({**VOCABULARY_MANIFEST, "schema_version": 3}, "schema_version 3, this is schema_version 2"),
    ],
)
def test_directory_of_another_kind_is_refused(tmp_path: Path, manifest: object, reason: str) -> None:
    message = read_error_message(write_manifest_file(tmp_path, manifest))
    assert reason in message
    assert str(tmp_path) in message


def test_damaged_missing_or_exchanged_shard_is_refused(documents_dir: Path) -> None:
    shard = documents_dir / "data/data-0-00000.parquet"
    content = shard.read_bytes()
    shard.write_bytes(content[: len(content) // 2])
    assert f"{shard} cannot be read" in read_error_message(documents_dir)
    shard.write_bytes(b"")
    assert f"{shard} cannot be read" in read_error_message(documents_dir)
    shutil.copy(documents_dir / "data/data-1-00000.parquet", shard)
    assert f"{shard} cannot be read: it has " in read_error_message(documents_dir)
    shard.write_bytes(content)
    manifest = json.loads((documents_dir / "manifest.json").read_text())
    manifest["outputs"][0]["rows"] += 1
    save_manifest(documents_dir, manifest)
    assert f"{shard} has 2 rows, and its manifest lists 3. Delete it" in read_error_message(documents_dir)
    shard.unlink()
    assert f"{shard} cannot be read" in read_error_message(documents_dir)


def test_shard_without_a_counted_column_is_refused(documents_dir: Path) -> None:
    shard = documents_dir / "data/data-0-00000.parquet"
    pq.write_table(pq.read_table(shard).drop_columns(["year"]), shard)
    assert f"{shard} cannot be read" in read_error_message(documents_dir)


# The command


@pytest.fixture
def run_command(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that runs ``corpus stats`` and returns the exit status."""

    def run_stats(*arguments: object) -> int:
        monkeypatch.setattr(sys, "argv", ["corpus", "stats", *map(str, arguments)])
        return command.main()

    return run_stats


def test_summary_is_printed_without_output_options(
    documents_dir: Path, run_command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(documents_dir) == 0
    assert capsys.readouterr().out == report.render_text(compute_stats(documents_dir))


def test_output_is_independent_of_the_path(
    documents_dir: Path,
    tmp_path: Path,
    run_command: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run_command(documents_dir, "--json", tmp_path / "1.json", "--html", tmp_path / "1.html") == 0
    moved = tmp_path / "elsewhere" / "small"
    shutil.copytree(documents_dir, moved)
    assert run_command(f"{moved}/", "--json", tmp_path / "2.json", "--html", tmp_path / "2.html") == 0
    assert capsys.readouterr().out == ""
    monkeypatch.chdir(moved)
    assert run_command(".", "--json", "-", "--html", tmp_path / "3.html") == 0
    assert capsys.readouterr().out == (tmp_path / "1.json").read_text()
    assert (tmp_path / "1.json").read_bytes() == (tmp_path / "2.json").read_bytes()
    pages = {(tmp_path / f"{number}.html").read_bytes() for number in (1, 2, 3)}
    assert len(pages) == 1
    assert str(tmp_path).encode() not in pages.pop()
    assert json.loads((tmp_path / "1.json").read_text()) == compute_stats(documents_dir)


def test_errors_end_with_status_2_and_a_message(
    documents_dir: Path, tmp_path: Path, run_command: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(tmp_path) == 2
    assert "has no manifest.json" in capsys.readouterr().err
    assert run_command(documents_dir, "--json", documents_dir) == 2
    assert f"{documents_dir} cannot be written" in capsys.readouterr().err
    assert run_command(write_manifest_file(tmp_path / "other", MIRROR)) == 2
    assert "it was made by fetch" in capsys.readouterr().err


def test_file_name_with_invalid_unicode_is_escaped(tmp_path: Path, run_command: Any) -> None:
    bad_file = BadFile(os.fsdecode(b"data-\xff.xml"), "/in/x", "unreadable", "it is damaged")
    manifest = msgspec.structs.replace(of_documents([]), bad_files=(bad_file,))
    folder = write_manifest_file(tmp_path / "out", msgspec.to_builtins(manifest))
    assert run_command(folder, "--json", tmp_path / "found.json") == 0
    found = json.loads((tmp_path / "found.json").read_bytes())["bad_files"]
    assert found == [{"file": bad_file.file, "detail": "it is damaged"}]
    assert run_command(folder, "--html", tmp_path / "found.html") == 0
    assert "data-U+DCFF.xml" in (tmp_path / "found.html").read_text()
    assert run_command(folder) == 0


@pytest.mark.parametrize("words", ["corpus stats {} --json -", "show {} --id pubmed:1"])
def test_closed_output_pipe_is_not_an_error(documents_dir: Path, words: str) -> None:
    command_line = [sys.executable, "-m", "bioshards", *words.format(documents_dir).split()]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as closed:
        completed = subprocess.run(command_line, stdout=closed, stderr=subprocess.PIPE, check=False)
    assert (completed.returncode, completed.stderr) == (0, b"")
