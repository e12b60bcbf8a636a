"""What verify says of a folder: rows, verdicts, the table, and whether it failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from bioshards.evaluate.benchmarks import verification
from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS, ner_common
from bioshards.evaluate.benchmarks.catalogue.record_counts import counts_by_split
from bioshards.evaluate.benchmarks.definition import (
    Benchmark,
    FileLayout,
    KnownDiscrepancy,
    MissingSplitPolicy,
    Split,
)
from bioshards.evaluate.benchmarks.formats import iob
from bioshards.evaluate.benchmarks.readers.split_reader import read_each_split
from bioshards.evaluate.benchmarks.verification import (
    CountCheck,
    Verdict,
    check_benchmark,
    format_table,
    has_failures,
)
from tests.support.evaluate.iob_files import CRICHTON_SAMPLE, write_benchmark_files
from tests.support.real_data import DATA, needs_data

LAYOUT = FileLayout(
    ner_common.split_patterns("toy/{}.tsv"),
    ner_common.ONE_FILE_PER_SPLIT,
    read_each_split(iob.read_sentences),
    note="a toy",
)
TOY = Benchmark(
    name="toy",
    title="Toys",
    layouts=(LAYOUT,),
    published_counts={"mentions": counts_by_split(2, 2, 2), "sentences": {"train+dev+test": 6}},
    count_records=ner_common.count_tagged_sentences,
    counts_source="Nobody (1900)",
    licence="none",
    download_from="nowhere",
)
FILES = {f"toy/{part}.tsv": CRICHTON_SAMPLE for part in ("train", "dev", "test")}


def verdicts(found: Sequence[CountCheck]) -> dict[str, Verdict]:
    return {f"{row.unit} {row.split}".strip(): row.verdict for row in found}


def test_as_published(tmp_path: Path) -> None:
    found = check_benchmark(str(write_benchmark_files(tmp_path, FILES)), TOY)
    assert set(verdicts(found).values()) == {"ok"}
    assert found[0] == CountCheck("toy", "Toys", "mentions", "train", 2, 2, "ok", "Nobody (1900)", ("a toy",))
    assert found[3].actual == 6
    assert not has_failures(found)


def test_a_mention_more_differs(tmp_path: Path) -> None:
    found = check_benchmark(
        str(write_benchmark_files(tmp_path, {**FILES, "toy/dev.tsv": f"{CRICHTON_SAMPLE}more\tB-X\n"})), TOY
    )
    assert verdicts(found) == {
        "mentions train": "ok",
        "mentions dev": "differs",
        "mentions test": "ok",
        "sentences train+dev+test": "differs",
    }
    assert found[1].actual == 3
    assert has_failures(found)


def test_a_known_difference_is_no_failure_and_any_other_number_is(tmp_path: Path) -> None:
    known = replace(LAYOUT, known_discrepancies=(KnownDiscrepancy("mentions", "dev", 3, "a reason"),))
    toy = replace(TOY, layouts=(known,), published_counts={"mentions": TOY.published_counts["mentions"]})
    found = check_benchmark(
        str(write_benchmark_files(tmp_path, {**FILES, "toy/dev.tsv": f"{CRICHTON_SAMPLE}more\tB-X\n"})), toy
    )
    assert verdicts(found)["mentions dev"] == "known"
    assert found[1].notes == ("a toy", "a reason")
    assert not has_failures(found)
    found = check_benchmark(
        str(write_benchmark_files(tmp_path, {**FILES, "toy/dev.tsv": f"{CRICHTON_SAMPLE * 2}"})), toy
    )
    assert verdicts(found)["mentions dev"] == "differs"


def test_parts_of_our_own_split_are_told_and_their_sum_is_checked(tmp_path: Path) -> None:
    own: tuple[Split, ...] = ("train", "dev")
    layout = replace(
        LAYOUT,
        patterns={**LAYOUT.patterns, "list": "list.txt"},
        missing_split_policies={"list": MissingSplitPolicy("ours", own)},
    )
    toy = replace(TOY, layouts=(layout,), published_counts={"mentions": TOY.published_counts["mentions"]})
    moved = {"toy/train.tsv": CRICHTON_SAMPLE * 2, "toy/dev.tsv": "none\tO\n"}
    found = check_benchmark(str(write_benchmark_files(tmp_path, {**FILES, **moved})), toy)
    assert verdicts(found) == {
        "mentions train": "own split",
        "mentions dev": "own split",
        "mentions test": "ok",
        "mentions train+dev": "ok",
    }
    assert found[0].notes == ("a toy", "ours")
    assert not has_failures(found)
    found = check_benchmark(str(write_benchmark_files(tmp_path, {"toy/dev.tsv": CRICHTON_SAMPLE})), toy)
    assert verdicts(found)["mentions train+dev"] == "differs"
    write_benchmark_files(tmp_path, {"list.txt": ""})
    assert verdicts(check_benchmark(str(tmp_path), toy))["mentions train"] == "differs"


def test_what_is_missing_says_where_it_is_to_be_had(tmp_path: Path) -> None:
    [found] = check_benchmark(str(tmp_path), TOY)
    assert found.verdict == "missing"
    assert found.notes == ("to be had from nowhere; licence: none",)
    assert has_failures([found]), "a folder with nothing in it is no folder of benchmarks"
    part = check_benchmark(str(write_benchmark_files(tmp_path, {"toy/dev.tsv": CRICHTON_SAMPLE})), TOY)
    assert verdicts(part) == {
        "mentions train": "missing",
        "mentions dev": "ok",
        "mentions test": "missing",
        "sentences train+dev+test": "missing",
    }
    assert part[0].notes == ("a toy", "to be had from nowhere; licence: none")
    assert not has_failures(part)


def test_what_the_files_do_not_tell_is_missing(tmp_path: Path) -> None:
    toy = replace(TOY, published_counts={"documents": counts_by_split(1, 1, 1)})
    found = check_benchmark(str(write_benchmark_files(tmp_path, FILES)), toy)
    assert {row.verdict for row in found} == {"missing"}
    assert found[0].notes == ("these files do not have documents",)


def test_a_damaged_set_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    good = {f"BC2GM-IOB/{part}.tsv": CRICHTON_SAMPLE for part in ("train", "devel", "test")}
    write_benchmark_files(tmp_path, {**good, "NCBI-disease-IOB/test.tsv": b"a\tO\n\xff\tO\n"})
    found = verification.verify_benchmarks(str(tmp_path), ["ncbi-disease", "bc2gm"])
    assert [row.benchmark for row in found] == ["ncbi-disease", *["bc2gm"] * 3]
    assert found[0].verdict == "damaged"
    assert f"{tmp_path}/NCBI-disease-IOB/test.tsv, line 2: it is not UTF-8" in found[0].notes[0]
    assert found[1].actual == 2
    assert has_failures([found[0]])
    assert "ncbi-disease: NCBI-disease - damaged" in format_table(found)


def test_a_folder_in_a_file_s_place_is_damage(tmp_path: Path) -> None:
    (tmp_path / "BC2GM-IOB" / "test.tsv").mkdir(parents=True)
    [found] = verification.verify_benchmarks(str(tmp_path), ["bc2gm"])
    assert found.verdict == "damaged"


def test_names_and_folders_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no benchmark bc5-chm\. There are: bc5-chem, "):
        verification.verify_benchmarks(str(tmp_path), ["bc5-chm"])
    with pytest.raises(FileNotFoundError, match="no folder"):
        verification.verify_benchmarks(str(tmp_path / "nowhere"))


def test_each_verdict_in_the_table_and_nothing_wider_than_a_page(tmp_path: Path) -> None:
    long = "a reason of many words " * 20
    every = [
        CountCheck("a", "A", "mentions", "dev", 5, 5, verdict, "B (1900)", (long, "another"))
        for verdict in get_args(Verdict)
        if verdict != "damaged"
    ]
    alone = [
        CountCheck("gone", "G", "", "", None, None, "missing", "C", ("to be had",)),
        CountCheck("torn", "T", "", "", None, None, "damaged", "C", ("f, line 3: torn",)),
    ]
    text = format_table([*alone, *every])
    lines = text.split("\n")
    assert max(map(len, lines)) <= 110
    assert text.count("another") == text.count("B (1900)") == 1, "notes and sources are said once a set"
    assert [line for line in lines if line.startswith(("a:", "gone:", "torn:"))] == [
        "torn: T - damaged",
        "a: A",
        "gone: G - missing",
    ]
    assert " ".join(lines[-2:]).split(", ") == [
        "1 counts ok",
        "2 differ (1 of them for a known reason)",
        "1 benchmarks missing",
        "1 not comparable (own split)",
        "1 without data in these files",
        "1 benchmarks damaged",
    ]


def test_the_table_of_a_set(tmp_path: Path) -> None:
    found = check_benchmark(str(write_benchmark_files(tmp_path, {**FILES, "toy/dev.tsv": "a\tO\n"})), TOY)
    assert format_table(found).split("\n") == [
        "toy: Toys",
        "                            split             expected    actual",
        "  mentions                  train                    2         2  ok",
        "  mentions                  dev                      2         0  differs",
        "  mentions                  test                     2         2  ok",
        "  sentences                 train+dev+test           6         5  differs",
        "  expected by Nobody (1900)",
        "  a toy",
        "",
        "2 counts ok, 2 differ (0 of them for a known reason), 0 benchmarks missing",
    ]


def test_every_set_is_described(tmp_path: Path) -> None:
    for name, dataset in BENCHMARKS.items():
        assert name == dataset.name
        assert dataset.published_counts, name
        assert dataset.counts_source, name
        assert dataset.download_from, name
        assert dataset.licence, name
        for layout in dataset.layouts:
            needed = {file for part in layout.files_by_split.values() for file in part}
            assert needed <= set(layout.patterns), name
            assert not needed & set(layout.missing_split_policies), name
            for known in layout.known_discrepancies:
                assert dataset.published_counts[known.unit][known.split] != known.actual, name


@needs_data
def test_the_real_sets_are_as_published() -> None:
    found = verification.verify_benchmarks(
        f"{DATA}/benchmarks", ["bc5-disease", "ncbi-disease", "bc5cdr-pubtator"]
    )
    assert {row.verdict for row in found} == {"ok", "known"}
    assert [
        (row.benchmark, row.split, row.expected, row.actual) for row in found if row.verdict == "known"
    ] == [("bc5-disease", "dev", 4244, 4246)]
