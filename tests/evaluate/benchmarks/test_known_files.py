"""What the SHA-256 of benchmark files says of them."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

from bioshards.evaluate.benchmarks import verification
from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.benchmarks.verification import (
    FileStatus,
    check_benchmark,
    format_table,
    judge_files,
    worse_status,
)
from tests.support.evaluate.benchmark_files import find_files, write_benchmark_files
from tests.support.evaluate.evaluate_commands import copy_benchmarks
from tests.support.paths import BENCHMARK_SAMPLE
from tests.support.real_data import DATA, needs_data


def write_tagged_files(folder: Path, *words: str) -> Path:
    """Write the three files of NCBI-disease, each with one word."""
    splits = zip(("train", "devel", "test"), words, strict=True)
    files = {f"NCBI-disease-IOB/{split}.tsv": f"{word}\tO\n" for split, word in splits}
    return write_benchmark_files(folder, files)


def test_list_of_known_files_has_sources_and_whole_digests() -> None:
    sources = verification._load_known_sources()
    assert len(sources) > 50
    assert all(len(digest) == 64 and int(digest, 16) for digest in sources)
    assert all(source.startswith(("github.com/", "rajpurkar.github.io/")) for source in sources.values())


@pytest.mark.parametrize(
    ("known_words", "do_counts_agree", "expected"),
    [
        (("a", "b", "c"), True, "verified"),
        (("a", "b"), True, "counts agree"),
        ((), True, "counts agree"),
        (("a", "b", "c"), False, "differs"),
    ],
)
def test_files_are_verified_if_each_is_known_and_the_counts_agree(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    known_words: tuple[str, ...],
    do_counts_agree: bool,
    expected: FileStatus,
) -> None:
    digests = {hashlib.sha256(f"{word}\tO\n".encode()).hexdigest(): "somewhere" for word in known_words}
    monkeypatch.setattr(verification, "_load_known_sources", lambda: digests)
    files = find_files(write_tagged_files(tmp_path, "a", "b", "c"), "ncbi-disease")
    judgement = judge_files(files, do_counts_agree)
    assert judgement.status == expected
    assert len(judgement.unknown_files) == 3 - len(known_words)
    assert judgement.sources == (("somewhere",) if known_words else ())


def test_known_files_without_those_of_a_split_are_partial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A split that a task does not need, or that the authors do not distribute, is not missed."""
    monkeypatch.setattr(
        verification, "_load_known_sources", lambda: {hashlib.sha256(b"a\tO\n").hexdigest(): "somewhere"}
    )
    write_tagged_files(tmp_path, "a", "a", "a")
    (tmp_path / "NCBI-disease-IOB" / "devel.tsv").unlink()
    judgement = judge_files(find_files(tmp_path, "ncbi-disease"), do_counts_agree=True)
    assert (judgement.status, judgement.missing_splits) == ("partial", ("dev",))
    assert judge_files(find_files(tmp_path, "ncbi-disease"), do_counts_agree=False).status == "differs"
    assert judge_files(find_files(tmp_path, "ncbi-disease"), True, ("train", "test")).status == "verified"
    assert find_files(BENCHMARK_SAMPLE, "yesno-ideal").missing_splits == ()


@pytest.mark.parametrize("name", BENCHMARKS)
def test_bundled_sample_is_invented(name: str, tmp_path: Path) -> None:
    copy = copy_benchmarks(tmp_path / "elsewhere", name)
    for folder in (BENCHMARK_SAMPLE, copy):
        assert judge_files(find_files(folder, name), do_counts_agree=True).status == "invented"
    table = format_table(check_benchmark(str(copy), BENCHMARKS[name]))
    assert " - invented" in table
    assert "invented: the sample bundled with bioshards" in table


def test_file_of_the_sample_among_others_is_no_sample_unless_it_is_a_whole_part(tmp_path: Path) -> None:
    """Labels of two texts are easily equal; all labels of two corpora are not."""
    copy = copy_benchmarks(tmp_path, "hoc")
    for path in [*copy.rglob("text/*.txt"), *copy.rglob("*_pmid.tsv")]:
        path.write_text(path.read_text() + "\n")
    assert judge_files(find_files(copy, "hoc"), do_counts_agree=True).status == "invented"
    next(copy.rglob("labels/*.txt")).write_text("< < <")
    assert judge_files(find_files(copy, "hoc"), do_counts_agree=True).status == "counts agree"


def test_digest_of_many_files_depends_on_names_and_contents_alone(tmp_path: Path) -> None:
    first = copy_benchmarks(tmp_path / "first", "hoc")
    (tmp_path / "second").mkdir()
    shutil.copytree(first, tmp_path / "second" / "deep" / "er")
    shutil.move(first / "hallmarks-of-cancer", tmp_path / "hallmarks-of-cancer")
    checksums = [
        {name: digest for name, digest in judge_files(files, True).checksums.items() if "(40 files)" in name}
        for files in (find_files(tmp_path, "hoc"), find_files(tmp_path / "second" / "deep" / "er", "hoc"))
    ]
    assert len(checksums[0]) == 2
    assert checksums[0] == checksums[1]


def test_worse_status_is_the_less_comparable_one() -> None:
    assert worse_status("verified", "counts agree") == "counts agree"
    assert worse_status("partial", "counts agree") == "partial"
    assert worse_status("invented", "differs") == "invented"


@needs_data
def test_real_hallmarks_are_known_as_a_group() -> None:
    judgement = judge_files(find_files(Path(str(DATA), "benchmarks"), "hoc"), do_counts_agree=True)
    assert judgement.status == "verified"
    assert [name.partition("/ ")[2] for name in judgement.checksums] == ["(1852 files)"] * 2
