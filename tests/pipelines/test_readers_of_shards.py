"""Libraries of the field open an output as the README says."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from bioshards.corpus.shards.document_shards import read_directory
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli

SOURCES = ("test", "validation", "train", "_notes", "dropped")
"""Names that ``datasets`` and pyarrow give a meaning when they look for files."""


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output of text files with these names, with two documents each, and one that all have."""
    folder = tmp_path_factory.mktemp("readers")
    (folder / "in").mkdir()
    for name in SOURCES:
        texts = [f"The {name} sample was measured {number} times. It was small." for number in range(2)]
        texts.append("This text is in every file. All but one are dropped.")
        lines = [json.dumps({"id": f"{name}{number}", "text": text}) for number, text in enumerate(texts)]
        (folder / "in" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    options = ["--input", str(folder / "in"), "--output", str(folder / "out"), "--dedup", "exact"]
    assert cli.main(["run", "text_to_shards", "--workers", "1", "--keep-dropped", *options]) == 0
    return folder / "out"


def read_ids(output: Path) -> list[str]:
    """Return the ids that bioshards reads."""
    batches = read_directory(LocalStorage(), str(output), ["id"])
    return sorted(row for batch in batches for row in batch["id"].to_pylist())


def load_dataset(output: Path) -> list[str]:
    import datasets  # here, because it takes half a second, also where this test is not selected

    loaded = datasets.load_dataset(str(output), cache_dir=str(output.parent / "cache"))
    assert list(loaded) == ["train"]
    return list(loaded["train"]["id"])


def scan_with_polars(output: Path) -> list[str]:
    return pl.scan_parquet(output / "data/*.parquet").select("id").collect()["id"].to_list()


def query_with_duckdb(output: Path) -> list[str]:
    return [name for (name,) in duckdb.execute(f"select id from '{output}/data/*.parquet'").fetchall()]


def read_with_pandas(output: Path) -> list[str]:
    return list(pd.read_parquet(output / "data", columns=["id"])["id"])


def open_with_pyarrow(output: Path) -> list[str]:
    ids: list[str] = ds.dataset(output / "data").to_table(columns=["id"])["id"].to_pylist()
    return ids


READERS = [load_dataset, scan_with_polars, query_with_duckdb, read_with_pandas, open_with_pyarrow]


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_all_documents_are_read_and_no_others(output: Path, read: Callable[[Path], list[str]]) -> None:
    expected = read_ids(output)
    assert len(expected) == 2 * len(SOURCES) + 1
    assert sorted(read(output)) == expected


def test_a_document_is_found_by_its_id(output: Path) -> None:
    wanted, files = read_ids(output)[3], output / "data/*.parquet"
    [found] = pl.scan_parquet(files).filter(pl.col("id") == wanted).collect()["sentences"].to_list()
    query = f"select sentences from '{files}' where id = ?"
    assert duckdb.execute(query, [wanted]).fetchall() == [(found,)]
    table = ds.dataset(output / "data").to_table(filter=ds.field("id") == wanted)
    assert table["sentences"].to_pylist() == [found]


def test_dropped_documents_have_a_reason(output: Path) -> None:
    assert set(pq.read_table(output / "dropped")["reason"].to_pylist()) == {"duplicate"}
