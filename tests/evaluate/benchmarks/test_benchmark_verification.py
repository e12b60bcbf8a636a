"""``evaluate verify``: count checks, verdicts, the table, and failures."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from bioshards.evaluate.benchmarks import verification
from bioshards.evaluate.benchmarks.catalogue import (
    BENCHMARKS,
    Benchmark,
    BenchmarkFiles,
    FileLayout,
    KnownDiscrepancy,
    MissingSplitPolicy,
    count_sentences,
    load_records,
)
from bioshards.evaluate.benchmarks.formats import read_sentences
from bioshards.evaluate.benchmarks.readers import read_each_split
from bioshards.evaluate.benchmarks.records import SPLITS, RecordsBySplit, Split
from bioshards.evaluate.benchmarks.verification import (
    CountCheck,
    Verdict,
    check_benchmark,
    format_table,
    has_failures,
)
from tests.support.evaluate.benchmark_files import CRICHTON_SAMPLE, write_benchmark_files
from tests.support.real_data import DATA, needs_data

LAYOUT = FileLayout(
    {split: f"toy/{split}.tsv" for split in SPLITS},
    {split: (split,) for split in SPLITS},
    read_each_split(read_sentences),
    note="a toy",
)
TOY_BENCHMARK = Benchmark(
    name="toy",
    title="Toys",
    layouts=(LAYOUT,),
    published_counts={"mentions": dict.fromkeys(SPLITS, 2), "sentences": {"train+dev+test": 6}},
    count_records=count_sentences,
    counts_source="Nobody (1900)",
    licence="none",
    download_from="nowhere",
)
TOY_FILES = {f"toy/{split}.tsv": CRICHTON_SAMPLE for split in ("train", "dev", "test")}
MENTIONS = {"mentions": TOY_BENCHMARK.published_counts["mentions"]}


def check_toys(
    folder: Path, changed_files: dict[str, str], benchmark: Benchmark = TOY_BENCHMARK
) -> list[CountCheck]:
    """Check a folder with the toy files, some of which are changed."""
    return check_benchmark(str(write_benchmark_files(folder, {**TOY_FILES, **changed_files})), benchmark)


def get_verdicts(checks: Sequence[CountCheck]) -> dict[str, Verdict]:
    return {f"{check.unit} {check.split}".strip(): check.verdict for check in checks}


def verify(folder: Path, *names: str) -> list[CountCheck]:
    return verification.verify_benchmarks(str(folder), [BENCHMARKS[name] for name in names])


def test_published_counts_are_ok(tmp_path: Path) -> None:
    checks = check_toys(tmp_path, {})
    assert set(get_verdicts(checks).values()) == {"ok"}
    assert checks[0] == CountCheck(
        *("toy", "Toys", "Nobody (1900)", "ok"),
        unit="mentions",
        split="train",
        expected=2,
        actual=2,
        notes=(
            "only the counts agree: the SHA-256 of toy/train.tsv and 2 more is none that is known",
            "a toy",
        ),
        file_status="counts agree",
    )
    assert checks[3].actual == 6
    assert not has_failures(checks)


def test_missing_split_is_said(tmp_path: Path) -> None:
    files = {name: text for name, text in TOY_FILES.items() if name != "toy/train.tsv"}
    checks = check_benchmark(str(write_benchmark_files(tmp_path, files)), TOY_BENCHMARK)
    assert {check.file_status for check in checks} == {"partial"}
    assert checks[1].notes[0] == (
        "no train in these files; of the others, only the counts agree: the SHA-256 of toy/dev.tsv and 1 "
        "more is none that is known"
    )
    assert not has_failures(checks)
    table = format_table(checks)
    assert "toy: Toys - partial" in table
    assert "0 benchmarks verified by SHA-256, 0 only by their counts, 1 partial," in table


def test_additional_mention_differs(tmp_path: Path) -> None:
    checks = check_toys(tmp_path, {"toy/dev.tsv": f"{CRICHTON_SAMPLE}more\tB-X\n"})
    assert get_verdicts(checks) == {
        "mentions train": "ok",
        "mentions dev": "differs",
        "mentions test": "ok",
        "sentences train+dev+test": "differs",
    }
    assert checks[1].actual == 3
    assert has_failures(checks)


def test_known_discrepancy_is_no_failure(tmp_path: Path) -> None:
    layout = replace(LAYOUT, known_discrepancies=(KnownDiscrepancy("mentions", "dev", 3, "a reason"),))
    benchmark = replace(TOY_BENCHMARK, layouts=(layout,), published_counts=MENTIONS)
    checks = check_toys(tmp_path, {"toy/dev.tsv": f"{CRICHTON_SAMPLE}more\tB-X\n"}, benchmark)
    assert get_verdicts(checks)["mentions dev"] == "known"
    assert checks[1].notes == ("not the published files or split", "a toy", "a reason")
    assert not has_failures(checks)
    checks = check_toys(tmp_path, {"toy/dev.tsv": CRICHTON_SAMPLE * 2}, benchmark)
    assert get_verdicts(checks)["mentions dev"] == "differs"


def test_own_splits_are_checked_by_their_sum(tmp_path: Path) -> None:
    own_splits: tuple[Split, ...] = ("train", "dev")
    layout = replace(
        LAYOUT,
        patterns={**LAYOUT.patterns, "list": "list.txt"},
        missing_split_policies={"list": MissingSplitPolicy("ours", own_splits)},
    )
    benchmark = replace(TOY_BENCHMARK, layouts=(layout,), published_counts=MENTIONS)
    changed_files = {"toy/train.tsv": CRICHTON_SAMPLE * 2, "toy/dev.tsv": "none\tO\n"}
    checks = check_toys(tmp_path, changed_files, benchmark)
    assert get_verdicts(checks) == {
        "mentions train": "own split",
        "mentions dev": "own split",
        "mentions test": "ok",
        "mentions train+dev": "ok",
    }
    assert checks[0].notes == ("not the published files or split", "a toy", "ours")
    assert not has_failures(checks)
    checks = check_benchmark(
        str(write_benchmark_files(tmp_path, {"toy/dev.tsv": CRICHTON_SAMPLE})), benchmark
    )
    assert get_verdicts(checks)["mentions train+dev"] == "differs"
    write_benchmark_files(tmp_path, {"list.txt": ""})
    assert get_verdicts(check_benchmark(str(tmp_path), benchmark))["mentions train"] == "differs"


def test_missing_benchmark_names_its_source(tmp_path: Path) -> None:
    [check] = check_benchmark(str(tmp_path), TOY_BENCHMARK)
    assert check.verdict == "missing"
    assert check.notes == ("to be had from nowhere; licence: none",)
    assert has_failures([check]), "a folder with nothing in it is no folder of benchmarks"
    checks = check_benchmark(
        str(write_benchmark_files(tmp_path, {"toy/dev.tsv": CRICHTON_SAMPLE})), TOY_BENCHMARK
    )
    assert get_verdicts(checks) == {
        "mentions train": "missing",
        "mentions dev": "ok",
        "mentions test": "missing",
        "sentences train+dev+test": "missing",
    }
    assert checks[0].notes[1:] == ("a toy", "to be had from nowhere; licence: none")
    assert not has_failures(checks)


def test_count_without_data_is_missing(tmp_path: Path) -> None:
    benchmark = replace(TOY_BENCHMARK, published_counts={"documents": dict.fromkeys(SPLITS, 1)})
    checks = check_toys(tmp_path, {}, benchmark)
    assert {check.verdict for check in checks} == {"missing"}
    assert checks[0].notes[1:] == ("these files do not have documents",)


def test_damaged_benchmark_is_named_and_others_are_checked(tmp_path: Path) -> None:
    complete_files = {f"BC2GM-IOB/{split}.tsv": CRICHTON_SAMPLE for split in ("train", "devel", "test")}
    write_benchmark_files(tmp_path, {**complete_files, "NCBI-disease-IOB/test.tsv": b"a\tO\n\xff\tO\n"})
    checks = verify(tmp_path, "ncbi-disease", "bc2gm")
    assert [check.benchmark for check in checks] == ["ncbi-disease", *["bc2gm"] * 3]
    assert checks[0].verdict == "damaged"
    assert f"{tmp_path}/NCBI-disease-IOB/test.tsv, line 2: it is not UTF-8" in checks[0].notes[0]
    assert checks[1].actual == 2
    assert has_failures([checks[0]])
    assert "ncbi-disease: NCBI-disease - damaged" in format_table(checks)


def test_folder_in_place_of_a_file_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "BC2GM-IOB" / "test.tsv").mkdir(parents=True)
    [check] = verify(tmp_path, "bc2gm")
    assert check.verdict == "missing"
    assert has_failures([check])


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no folder"):
        verify(tmp_path / "nowhere", "bc2gm")


def test_table_shows_each_verdict_within_110_columns(tmp_path: Path) -> None:
    long_note = "a reason of many words " * 20
    checks = [
        CountCheck("a", "A", "B (1900)", verdict, (long_note, "another"), "mentions", "dev", 5, 5)
        for verdict in get_args(Verdict)
        if verdict != "damaged"
    ]
    single_checks = [
        CountCheck("gone", "G", "C", "missing", ("to be had",)),
        CountCheck("torn", "T", "C", "damaged", ("f, line 3: torn",)),
    ]
    text = format_table([*single_checks, *checks])
    lines = text.split("\n")
    assert max(map(len, lines)) <= 110
    assert text.count("another") == text.count("B (1900)") == 1, "notes and sources are said once a set"
    assert [line for line in lines if line.startswith(("a:", "gone:", "torn:"))] == [
        "torn: T - damaged",
        "a: A",
        "gone: G - missing",
    ]
    assert " ".join(lines[-3:]).split(", ") == [
        "0 benchmarks verified by SHA-256",
        "0 only by their counts",
        "1 counts ok",
        "2 differ (1 of them for a known reason)",
        "1 benchmarks missing",
        "1 not comparable (own split)",
        "1 without data in these files",
        "1 benchmarks damaged",
    ]


def test_table_of_a_benchmark(tmp_path: Path) -> None:
    checks = check_toys(tmp_path, {"toy/dev.tsv": "a\tO\n"})
    assert format_table(checks).split("\n") == [
        "toy: Toys - differs",
        "                            split             expected    actual",
        "  mentions                  train                    2         2  ok",
        "  mentions                  dev                      2         0  differs",
        "  mentions                  test                     2         2  ok",
        "  sentences                 train+dev+test           6         5  differs",
        "  expected by Nobody (1900)",
        "  not the published files or split",
        "  a toy",
        "",
        "0 benchmarks verified by SHA-256, 0 only by their counts, 2 counts ok, 2 differ "
        "(0 of them for a known",
        "reason), 0 benchmarks missing",
    ]


REAL_FILES: dict[str, dict[str, str]] = {
    "verified": {
        "bc5-chem": "1b657a9cc1988e77",
        "bc5-disease": "cf0ad127a96768f3",
        "ncbi-disease": "aadec25a8bb59d28",
        "bc2gm": "dd05e4367d8dc34c",
        "linnaeus": "146470750aa38483",
        "bc5cdr-merged": "7aad7bbd5bd8232f",
        "chemprot-lim-kang": "83ce7970f5d38974",
        "chemprot-scibert": "f4d3107ae0445d7d",
        "gad": "4063d3b3de61cbf2",
        "pubmedqa": "1170f2fd951ee9e8",
        "yesno-ideal": "4ee27e222572a715",
    },
    "partial": {
        "jnlpba": "f66e53974b55a3c9",
        "jnlpba-typed": "d6422e27dcdc0345",
        "chemprot-blue": "6860e555cc188b90",
        "ddi-blue": "2fe51355bddd5420",
        "reranker": "a5834a77314cdda6",
        "factoid-8b": "39a4af5c16c863aa",
        "factoid-7b": "ced2dec7efbc5714",
    },
    "differs": {
        "ebm-pico": "18eb83f8aa17e776",
        "ddi": "1860fad9d36c6355",
        "hoc": "786aea11b45480d3",
        "bioasq-yesno": "8c6888a7b215fd1e",
    },
    "counts agree": {"bc5cdr-pubtator": "e4f608d31d432adc", "biosses": "92cec59a7312b92a"},
    "missing": dict.fromkeys(("bc4chemd", "s800", "chemprot", "squad"), ""),
}
"""What is known of the files of BIOSHARDS_DATA, and the digest of the records that are read from them.

Those that differ are SciBERT's, or lack BLURB's lists.  The records were compared with plain parsing of the
files (split lines, regular expressions, the authors' lists) when the digests were taken.
"""


@needs_data
def test_real_benchmarks_have_published_counts_and_known_records(monkeypatch: pytest.MonkeyPatch) -> None:
    digests: dict[str, str] = {}

    def load_and_digest(files: BenchmarkFiles) -> RecordsBySplit:
        records_by_split, digest = load_records(files), hashlib.sha256()
        for split, records in records_by_split.items():
            assert len({record.id for record in records}) == len(records)
            for record in records:
                digest.update(json.dumps([split, asdict(record)], default=sorted).encode())
        digests[files.benchmark.name] = digest.hexdigest()[:16]
        return records_by_split

    monkeypatch.setattr(verification, "load_records", load_and_digest)
    checks = verify(Path(str(DATA), "benchmarks"), *BENCHMARKS)
    found: dict[str, dict[str, str]] = {}
    for check in checks:
        status = found.setdefault(check.file_status or check.verdict, {})
        status[check.benchmark] = digests.get(check.benchmark, "")
    assert found == REAL_FILES
    verdicts = Counter(check.verdict for check in checks if check.unit)
    assert verdicts == {"ok": 108, "known": 3, "own split": 2, "missing": 19}
