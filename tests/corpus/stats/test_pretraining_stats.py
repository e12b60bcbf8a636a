"""Statistics of pretraining sets."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bioshards.corpus.stats import directory_stats, report
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.stats_directories import (
    LENGTH,
    CountedRow,
    split_counts,
    write_counted_set,
)
from tests.support.fuzzing import list_again
from tests.support.hypothesis_profiles import examples

FILES = LocalStorage()


def render_lines(stats: dict[str, Any]) -> list[str]:
    """Return the lines of the summary with runs of blanks collapsed."""
    return [" ".join(line.split()) for line in report.render_text(stats).split("\n")]


@pytest.fixture
def set_dir(tmp_path: Path) -> Path:
    """A set with three rows for training and one for validation."""
    train: list[list[CountedRow]] = [
        [(8, 4, 0), (5, 0, -100)],
        [(8, 3, 1)],
    ]
    validation: list[list[CountedRow]] = [[(4, 0, -100)]]
    counts = {
        "train": split_counts(3, read=15, special=8, borrowed=2, overflow=2, idle=2),
        "validation": split_counts(1, read=2, special=2),
    }
    return write_counted_set(tmp_path / "small", {"train": train, "validation": validation}, counts)


def compute_stats(folder: Path) -> dict[str, Any]:
    return directory_stats.compute_stats(FILES, str(folder))


def test_row_without_a_value_is_refused(set_dir: Path) -> None:
    path = min((set_dir / "train").glob("*.arrow"))
    with pa.ipc.open_stream(path.read_bytes()) as stream:
        table = stream.read_all()
    splits = pa.array([None, *table["split"].to_pylist()[1:]], table.schema.field("split").type)
    damaged = table.set_column(table.schema.get_field_index("split"), "split", splits)
    with pa.OSFile(str(path), "w") as file, pa.ipc.new_stream(file, damaged.schema) as stream:
        stream.write_table(damaged)
    list_again(set_dir, f"train/{path.name}")
    with pytest.raises(directory_stats.StatsError, match=r"cannot be read \(a row lacks a value\)"):
        compute_stats(set_dir)


def test_summary_has_columns_for_train_and_validation(set_dir: Path) -> None:
    lines = render_lines(compute_stats(set_dir))
    assert lines[0] == "Pretraining set, made by shards_to_pretraining"
    for line in (
        "objective bert",
        "vocabulary 100 (0123456789ab)",
        "At a glance train validation",
        "tokens 21 4",
        "padding, if rows are padded to 8 12.50 % 50.00 %",
        "rows of 8 tokens 66.67 % 0 %",
        "label 0, in order 33.33 % 0 %",
        "label -100, no pair 33.33 % 100 %",
        "tokens per row, train 7.00 5 8 8 8",
        "lost: idle 2 0",
        "not accounted for 0 0",
        "pubmed 1987-2019, unknown 1,234",
        "pmc 0",
        "dropped: no-tokens 1",
    ):
        assert line in lines


def test_unaccounted_tokens_are_reported(tmp_path: Path) -> None:
    folder = write_counted_set(
        tmp_path / "set",
        {"train": [[(8, 0, 0)]]},
        {"train": split_counts(1, read=20, special=2, short=4)},
    )
    assert compute_stats(folder)["splits"]["train"]["unaccounted_tokens"] == 10
    assert "not accounted for 10" in render_lines(compute_stats(folder))


@pytest.mark.parametrize("objective", ["electra", "plain"])
def test_set_without_labels_and_validation(tmp_path: Path, objective: str) -> None:
    rows: list[CountedRow] = [(8, 0, 0), (6, 0, 0)]
    counts = {"train": split_counts(2), "validation": split_counts(0)}
    folder = write_counted_set(tmp_path / "set", {"train": [rows]}, counts, objective)
    stats = compute_stats(folder)
    assert list(stats["splits"]) == ["train"]
    assert stats["splits"]["train"]["labels"] == {}
    assert "label" not in report.render_text(stats)


def test_set_without_rows_has_no_shares(tmp_path: Path) -> None:
    stats = compute_stats(
        write_counted_set(tmp_path / "set", {}, {"train": split_counts(2), "validation": split_counts(0)})
    )
    train = stats["splits"]["train"]
    assert train["rows"] == train["tokens"] == 0
    assert [train[key] for key in ("fill", "padding", "full_rows", "single_segment")] == [None] * 4
    assert "none" in report.render_text(stats)
    assert "padding." not in report.render_stats_page(stats, "set")


ROW = st.integers(1, LENGTH).flatmap(
    lambda tokens: st.tuples(
        st.just(tokens),
        st.integers(0, tokens),
        st.sampled_from([-100, 0, 1]),
    )
)


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(ROW, min_size=1, max_size=5), min_size=1, max_size=3))
def test_stats_equal_those_of_single_rows(tmp_path: Path, batches: list[list[CountedRow]]) -> None:
    shutil.rmtree(tmp_path)
    counts = {"train": split_counts(3)}
    train = compute_stats(write_counted_set(tmp_path, {"train": batches}, counts))["splits"]["train"]
    rows = [row for batch in batches for row in batch]
    tokens = sum(length for length, _, _ in rows)
    assert (train["rows"], train["tokens"]) == (len(rows), tokens)
    assert train["fill"] == tokens / (len(rows) * LENGTH)
    assert train["single_segment"] == sum(split == 0 for _, split, _ in rows) / len(rows)
    labels = Counter(str(label) for _, _, label in rows)
    assert {label: counted["rows"] for label, counted in train["labels"].items()} == labels
    assert train["rows_per_document"] == len(rows) / 3
    assert train["row_lengths"]["median"] == sorted(length for length, _, _ in rows)[(len(rows) - 1) // 2]
