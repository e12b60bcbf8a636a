"""Tests of ``beam run pubmed_to_shards`` on the sample: documents, funnel, shards, manifest, export."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.outputs import load_documents, load_manifest
from tests.support.paths import PUBMED_SAMPLE

Run = Callable[..., int]


def test_sample_gives_the_expected_counts(reference: Path) -> None:
    manifest = load_manifest(reference)
    assert manifest["funnel"] == {
        "records": 112,
        "dropped: deleted": 5,
        "dropped: superseded": 15,
        "dropped: book": 1,
        "dropped: no-text": 1,
        "dropped: no-abstract": 13,
        "kept": 77,
    }
    assert manifest["counts"]["deletions"] == 6
    # A book record is counted but has no document of its own.
    reasons = [row["reason"] for row in pq.read_table(reference / "dropped").to_pylist()]
    assert len(reasons) == 112 - 77 - 1
    assert set(reasons) == {"deleted", "superseded", "no-text", "no-abstract"}
    documents = load_documents(reference)
    assert len(documents) == manifest["counts"]["documents"] == 77
    assert manifest["counts"]["sentences"] == sum(len(row["sentences"]) for row in documents.values())
    assert manifest["counts"]["words"] == sum(
        len(line.split()) for row in documents.values() for line in row["sentences"]
    )
    assert manifest["counts"]["characters"] == sum(
        len(line) for row in documents.values() for line in row["sentences"]
    )
    assert sum(manifest["years"].values()) == sum(manifest["languages"].values()) == 77


def test_versions_and_deletions_of_the_sample(reference: Path) -> None:
    documents = load_documents(reference)
    origin = {id_: row["origin"]["file"] for id_, row in documents.items()}
    assert "pubmed:90000040" not in documents  # deleted by the first update
    assert "pubmed:90000060" not in documents  # revised and deleted by the same update
    assert documents["pubmed:90000041"]["version"] == 2  # a later file wins over a higher version
    assert origin["pubmed:90000041"] == "pubmed26n0003.xml"
    assert documents["pubmed:90000020"]["retracted"]  # the retraction came with an update
    assert documents["pubmed:90000091"]["origin"] == {"file": "pubmed26n0002.xml", "position": 9}


def test_shards_are_bounded_in_size(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bioshards.corpus.shards.document_schema.BATCH_ROWS", 100)
    long_abstract = " ".join(f"This is sentence number {number} of it." for number in range(60))
    source = tmp_path / "pubmed26n0001.xml"
    source.write_bytes(pubmed_set_xml(*[citation_xml(pmid, long_abstract) for pmid in range(1, 1501)]))
    assert run("--input", source, "--output", tmp_path / "out", "--max-shard-mb", 1) == 0
    outputs = load_manifest(tmp_path / "out")["outputs"]
    assert len(outputs) > 2
    assert all(shard["bytes"] <= 1_050_000 for shard in outputs)
    assert pq.read_table(tmp_path / "out/data").num_rows == 1500


@pytest.mark.parametrize(
    ("names", "options", "expected"),
    [("*", (), 2), ("pubmed26n0001.xml", (), 1), ("pubmed26n0001.xml", ("--dedup", "near"), 2)],
)
def test_processes_without_an_item_are_not_started(
    names: str,
    options: tuple[str, ...],
    expected: int,
    tmp_path: Path,
    run: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from bioshards.pipelines.execution import local_runner

    counts: list[int] = []

    def stop(_: object, workers: int) -> None:
        counts.append(workers)
        raise RuntimeError

    monkeypatch.setattr("bioshards.corpus.ui.options.count_cpus", lambda: 2)
    monkeypatch.setattr(local_runner, "set_workers", stop)
    inputs = ("--input", f"{PUBMED_SAMPLE}/{names}")
    assert run("--workers", 2, *inputs, *options, "--output", tmp_path / "out") == 1
    assert counts == [expected]


def test_presets_and_options_reach_the_documents(tmp_path: Path, run: Run) -> None:
    assert run("--output", tmp_path / "a", "--preset", "pubmedbert") == 0
    for row in load_documents(tmp_path / "a").values():
        assert len(" ".join(row["sentences"]).split()) >= 128
        assert row["sections"][0]["first_sentence"] == 0
    assert (
        run("--output", tmp_path / "b", "--preset", "bio-electra", "--drop-retracted", "--languages", "eng")
        == 0
    )
    for row in load_documents(tmp_path / "b").values():
        assert row["pmid"] >= 10_000_000
        assert not row["retracted"]
        assert "eng" in row["language"]
    funnel = load_manifest(tmp_path / "b")["funnel"]
    assert {"dropped: below-min-pmid", "dropped: retracted", "dropped: language"} <= set(funnel)
    assert run("--output", tmp_path / "c", "--keep-title-only", "--section-labels") == 0
    documents = load_documents(tmp_path / "c")
    # All current records of the sample with an abstract or a title, without the book.
    assert len(documents) == 90
    assert any(line.startswith("METHODS: ") for row in documents.values() for line in row["sentences"])
