"""Inputs of the run before that are not among the inputs now."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bioshards.corpus.jats.inputs import discover
from bioshards.corpus.lifecycle.inputs import describe_missing_inputs, save_part_lists
from bioshards.corpus.lifecycle.job import ShardsJob
from bioshards.corpus.manifest import InputFile, write_manifest
from bioshards.corpus.pubmed.discovery import discover_sources
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import SourceFile
from tests.support.corpus.manifests import of_documents
from tests.support.corpus.pubmed_xml import pubmed_set_xml
from tests.support.corpus.shard_jobs import make_shards_job

FILES = LocalStorage()


def write_articles(folder: Path, *names: str) -> list[SourceFile]:
    """Make a folder of exactly these files; return its sources."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name in names:
        (folder / name).write_bytes(b"x")
    return discover(FILES, [str(folder)])


def stage(job: ShardsJob, sources: list[SourceFile]) -> None:
    """Leave what a run has staged."""
    save_part_lists(job, sources)
    for source in sources:
        FILES.write_json(job.output.staged_path(f"{source.stem}-0123abcd", "json"), {})


def test_missing_archives_and_articles_are_said(tmp_path: Path) -> None:
    """What a stopped run has staged counts, too."""
    job = make_shards_job(tmp_path / "out")
    before = write_articles(tmp_path / "in", "PMC1.xml", "PMC2.xml", "other.xml", "a.zip", "b.zip")
    stage(job, before)
    assert describe_missing_inputs(job, before, ()) == []
    grown = write_articles(tmp_path / "in", "PMC1.xml", "PMC2.xml", "PMC3.xml", "other.xml", "a.zip", "b.zip")
    assert describe_missing_inputs(job, grown, ()) == []
    after = write_articles(tmp_path / "in", "PMC1.xml", "PMC3.xml", "a.zip")
    assert describe_missing_inputs(job, after, ("b.zip",)) == [
        f"2 articles that an earlier run into {job.output.path} has read are not among the inputs: PMC2.xml, "
        "in/other.xml. The result will be without their documents, and with the versions that these replaced"
    ]
    assert describe_missing_inputs(job, after, ())[0] == (
        f"1 file that an earlier run into {job.output.path} has read is not among the inputs: b.zip. The "
        "result will be without its documents, and with the versions that these replaced"
    )


def test_files_of_pubmed_are_replaced_by_those_of_a_later_year(tmp_path: Path) -> None:
    job = make_shards_job(tmp_path / "out")
    for stem in ("pubmed25n0001", "pubmed26n0001", "pubmed26n0002", "own"):
        FILES.write_json(job.output.staged_path(f"{stem}-0123abcd", "json"), {})
    (tmp_path / "pubmed26n0001.xml").write_bytes(pubmed_set_xml())
    sources = discover_sources(FILES, [str(tmp_path / "pubmed26n0001.xml")])
    [notice] = describe_missing_inputs(job, sources, ())
    assert notice.startswith("2 files that an earlier run")
    assert "are not among the inputs: own, pubmed26n0002. The result" in notice


def test_files_of_the_manifest_are_compared(tmp_path: Path) -> None:
    job = make_shards_job(tmp_path / "out")
    names = [f"PMC{number}_PMC{number + 1}.xml.gz" for number in range(1, 8)]
    sources = write_articles(tmp_path / "in", *names)
    manifest = of_documents([])
    entries = tuple(
        InputFile(
            file=name,
            path=f"/elsewhere/{name}",
            num_files=1,
            bytes=1,
            md5="",
            records=0,
            deletions=0,
            rejected={},
            funnel={},
            shards=(),
        )
        for name in names
    )
    write_manifest(FILES, job.output.manifest_path, msgspec.structs.replace(manifest, inputs=entries))
    assert describe_missing_inputs(job, sources, ()) == []
    assert describe_missing_inputs(job, sources[:1], ()) == [
        f"6 files that an earlier run into {job.output.path} has read are not among the inputs: PMC2_PMC3, "
        "PMC3_PMC4, PMC4_PMC5, PMC5_PMC6, PMC6_PMC7 (and 1 more). The result will be without their "
        "documents, and with the versions that these replaced"
    ]
