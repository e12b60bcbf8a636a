"""Damaged work files: each is recognised, named and made again from its source."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal

import pytest

from bioshards.corpus.errors import RunError
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.jats.inputs import discover
from bioshards.corpus.lifecycle.decisions import decide
from bioshards.corpus.lifecycle.finalize import finalize_source, list_sources
from bioshards.corpus.lifecycle.inputs import load_parts, save_part_lists
from bioshards.corpus.lifecycle.job import ShardsJob
from bioshards.corpus.lifecycle.stage import stage_source
from bioshards.corpus.pubmed.discovery import discover_sources
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.bit_flips import flip_bits
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.corpus.shard_jobs import make_shards_job
from tests.support.corpus.small_articles import small_article

FILES = LocalStorage()


def run_steps(job: ShardsJob, inputs: Path) -> list[str]:
    """Run the steps until the shards are final, and return the damaged files that they named."""
    staged = [stage_source(job, source) for source in discover_sources(FILES, [str(inputs)])]
    decided = [decide(job, staged)]
    finalized = [finalize_source(job, source, decided) for source in list_sources(job, staged)]
    named = [result.damaged for result in staged] + [result.damaged for result in finalized]
    return [path for paths in named for path in paths]


def read_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    text = " ".join(f"Word{number}" for number in range(60)) + "."
    records = [citation_xml(number, text) for number in (1, 2)] + [citation_xml(3), "<Surprise/>"]
    (tmp_path / "in").mkdir()
    (tmp_path / "in/pubmed26n0001.xml").write_bytes(pubmed_set_xml(*records))
    return tmp_path / "in"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("dedup", "pattern"),
    [
        ("exact", "staged/*.json"),
        ("exact", "staged/*.arrow"),
        ("exact", "staged/*.keys"),
        ("exact", "staged/*.digests"),
        ("near", "staged/*.signatures"),
        ("exact", "staged/*.rejected.jsonl"),
        ("exact", "final_reports/*.json"),
        ("exact", "final_reports/*.tsv"),
        ("exact", "input_digests/*.json"),
    ],
)
def test_any_flipped_bit_of_a_work_file_is_mended(
    dedup: Literal["exact", "near"], pattern: str, tmp_path: Path, inputs: Path
) -> None:
    job = make_shards_job(tmp_path / "out", dedup=dedup)
    assert run_steps(job, inputs) == []
    expected = read_files(tmp_path / "out")
    [path] = (tmp_path / "out/.bioshards").glob(pattern)
    # An MD5 is computed again, which needs no word.
    named = [] if pattern.startswith("input_digests") else [str(path)]
    for data in flip_bits(path):
        path.write_bytes(data)
        if path.suffix == ".arrow":  # it is read when the shards are made again
            [report] = (tmp_path / "out/.bioshards/final_reports").glob("*.json")
            report.unlink()
        assert run_steps(job, inputs) == named
        assert read_files(tmp_path / "out") == expected


def test_a_damaged_list_of_files_is_named_and_made_by_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in (1, 2):
        (tmp_path / f"in/PMC{number}.xml").write_bytes(small_article(number))
    job = make_shards_job(tmp_path / "out", PmcConfig(), pipeline="pmc_to_shards")
    [source] = discover(FILES, [str(tmp_path / "in")])
    save_part_lists(job, [source])
    path = Path(job.output.part_list_path(source.stamp))
    expected = path.read_bytes()
    for data in flip_bits(path):
        path.write_bytes(data)
        with pytest.raises(RunError, match=f"{path} was damaged"):
            load_parts(job, dataclasses.replace(source, parts=()))
        save_part_lists(job, [source])
        assert path.read_bytes() == expected
