"""Staging of full text: staged documents, keys, digests, rejects and the names of staged files."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, Literal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus import progress_notes
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.jats.inputs import discover
from bioshards.corpus.lifecycle import decisions, stage
from bioshards.corpus.lifecycle.inputs import compute_input_md5, forget_digests
from bioshards.corpus.lifecycle.job import StageResult, order_stage_results
from bioshards.corpus.lifecycle.stage import STAGED_FIELDS, STAGED_KEY_SCHEMA
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import document_schema
from bioshards.corpus.shards.document_schema import make_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.jats_articles import write_files
from tests.support.corpus.shard_jobs import make_shards_job
from tests.support.corpus.small_articles import (
    KEEP_EVERYTHING,
    pack_articles,
    small_article,
)
from tests.support.hypothesis_profiles import examples

FILES = LocalStorage()


def stage_folder(
    folder: Path,
    work: Path,
    rules: PmcConfig = KEEP_EVERYTHING,
    keep_dropped: bool = False,
    digests: bool = True,
) -> list[StageResult]:
    """Stage all sources of a folder."""
    dedup: Literal["exact", "none"] = "exact" if digests else "none"
    job = make_shards_job(work, rules, dedup=dedup, keep_dropped=keep_dropped)
    return [stage.stage_source(job, source) for source in discover(FILES, [str(folder)])]


def read_table(work: Path, staged: StageResult, ending: str) -> pa.Table:
    with pa.OSFile(OutputDir(str(work)).staged_path(staged.output_name or "", ending)) as file:
        return pa.ipc.open_stream(file).read_all()


def read_batches(work: Path, staged: StageResult) -> list[pa.RecordBatch]:
    with pa.OSFile(OutputDir(str(work)).staged_path(staged.output_name or "", "arrow")) as file:
        return list(pa.ipc.open_stream(file))


def read_rejected(work: Path, staged: StageResult) -> list[dict[str, Any]]:
    path = Path(OutputDir(str(work)).staged_path(staged.output_name or "", "rejected.jsonl"))
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def read_staged(work: Path) -> dict[str, bytes]:
    """Return the contents of all staged files, without the times that reports contain."""
    contents = {}
    for path in sorted((work / ".bioshards" / "staged").iterdir()):
        data = path.read_bytes()
        if path.suffix == ".json":
            data = json.dumps(json.loads(data)["value"]).encode()
        contents[path.name] = data
    return contents


# Staged files


def test_group_of_articles_is_staged(tmp_path: Path) -> None:
    folder = write_files(
        tmp_path / "in",
        {
            "PMC1.1.xml": small_article(1, "Mice sleep."),
            "PMC1.2.xml": small_article(1, "Mice sleep a lot.", version=2),
            "PMC2.xml": small_article(2, "&nonesuch;"),
            "PMC3.xml": small_article(3, body="<body/>"),
            "PMC4.xml": small_article(4, "Mice, sleep!").replace(b"Of 4", b"Of 1"),
        },
    )
    rules = PmcConfig(licences=KEEP_EVERYTHING.licences)
    [staged] = stage_folder(folder, tmp_path / "out", rules)
    assert (staged.records, staged.deletions, staged.num_keys) == (5, 0, 4)
    assert staged.rejected == {"unknown-entity": 1}
    assert staged.rejection is None
    assert staged.output_name
    assert staged.output_name == f"PMC0000xxxx-{(staged.md5 or '')[:8]}"

    keys = read_table(tmp_path / "out", staged, "keys")
    assert keys.schema == STAGED_KEY_SCHEMA
    assert [field.name for field in keys.schema if field.nullable] == ["drop_reason"]
    assert list(zip(*(column.to_pylist() for column in keys.columns), strict=True)) == [
        (1, 1, 0, 0, 0, False, None),
        (1, 2, 0, 0, 1, False, None),
        (3, 1, 0, 0, 3, False, "no-body"),
        (4, 1, 0, 0, 4, False, None),
    ]
    documents = read_table(tmp_path / "out", staged, "arrow")
    assert documents.schema == pa.schema([*make_schema(rules.columns), *STAGED_FIELDS])
    assert documents["id"].to_pylist() == ["pmc:PMC1.1", "pmc:PMC1.2", "pmc:PMC4.1"]
    assert documents["origin"].to_pylist()[1] == {"file": "PMC1.2.xml", "position": 1}
    assert documents["drop_reason"].to_pylist() == [None] * 3
    assert documents["sentences"].to_pylist()[0] == ["Of 1", "Mice sleep."]

    digests = read_table(tmp_path / "out", staged, "digests")
    assert digests.schema == decisions.TEXT_DIGEST_SCHEMA
    assert not any(field.nullable for field in digests.schema)
    assert digests["id"].to_pylist() == ["pmc:PMC1.1", "pmc:PMC1.2", "pmc:PMC4.1"]
    assert digests["key"].to_pylist() == [1, 1, 4]
    one, two, four = digests["digest"].to_pylist()
    assert one == four != two

    [reject] = read_rejected(tmp_path / "out", staged)
    assert (reject["file"], reject["position"], reject["reason"]) == ("PMC2.xml", 2, "unknown-entity")
    assert reject["raw"].encode() == small_article(2, "&nonesuch;")


@pytest.mark.parametrize("dedup", ["none", "near"])
def test_what_is_compared_is_staged_for_its_dedup(tmp_path: Path, dedup: Literal["none", "near"]) -> None:
    job = make_shards_job(tmp_path / "out", KEEP_EVERYTHING, dedup=dedup)
    [source] = discover(FILES, [str(write_files(tmp_path / "in", {"PMC1.xml": small_article(1)}))])
    stage.stage_source(job, source)
    names = {Path(name).suffix: name for name in read_staged(tmp_path / "out")}
    assert names.keys() == {".arrow", ".json", ".keys"} | ({".signatures"} if dedup == "near" else set())
    if dedup == "near":
        with pa.OSFile(f"{tmp_path}/out/.bioshards/staged/{names['.signatures']}") as file:
            assert pa.ipc.open_file(file).read_all()["id"].to_pylist() == ["pmc:PMC1.1"]


def test_records_are_noted_for_the_progress_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_schema, "BATCH_ROWS", 2)
    articles = {f"PMC{number}.xml": small_article(number) for number in range(1, 6)}
    (tmp_path / "notes").mkdir(mode=0o700)
    for _ in range(2):  # staged, and found staged
        with progress_notes.write_notes(str(tmp_path / "notes")):
            with progress_notes.note_step("stage"):
                stage_folder(write_files(tmp_path / "in", articles), tmp_path / "out")
            [note] = progress_notes.read_notes() or []
        assert (note.counts["stage"], note.counts["records"]) == (1, 5)


# Memory


def test_batches_are_bounded_by_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_schema, "BATCH_CHARACTERS", 10_000)
    sizes = [4000, 4000, 4000, 100, 30_000, 100, 9892, 2000, 50]  # and four of each title: two make 10,000
    folder = write_files(
        tmp_path / "in",
        {f"PMC{number}.xml": small_article(number, "x" * size) for number, size in enumerate(sizes, 1)},
    )
    [staged] = stage_folder(folder, tmp_path / "out")
    batches = read_batches(tmp_path / "out", staged)
    assert [batch.num_rows for batch in batches] == [3, 2, 3, 1]
    for batch in batches:
        characters = batch["characters"].to_pylist()
        assert sum(characters[:-1]) <= 10_000
    ids = [id_ for batch in batches for id_ in batch["id"].to_pylist()]
    assert ids == [f"pmc:PMC{number}.1" for number in range(1, 10)]


def test_batches_are_bounded_by_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_schema, "BATCH_ROWS", 2)
    folder = write_files(
        tmp_path / "in", {f"PMC{number}.xml": small_article(number) for number in range(1, 6)}
    )
    [staged] = stage_folder(folder, tmp_path / "out")
    assert [batch.num_rows for batch in read_batches(tmp_path / "out", staged)] == [2, 2, 1]


@settings(max_examples=examples(25))
@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), min_size=1, max_size=12), st.integers(1, 80))
def test_staged_bytes_are_independent_of_chunks(
    tmp_path_factory: pytest.TempPathFactory, articles: list[tuple[int, bool]], max_characters: int
) -> None:
    tmp_path = tmp_path_factory.mktemp("chunks")
    package = pack_articles(
        *(
            small_article(number, "x" * size).replace(
                b"research-article", b"erratum" if is_erratum else b"letter"
            )
            for number, (size, is_erratum) in enumerate(articles, 1)
        )
    )
    folder = write_files(tmp_path / "in", {"PMC1_PMC99.xml": package})
    config = dataclasses.replace(KEEP_EVERYTHING, drop_article_types=("erratum",), min_words=2)
    stage_folder(folder, tmp_path / "whole", config, keep_dropped=True)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(stage, "_CHUNK_CHARACTERS", max_characters)
        stage_folder(folder, tmp_path / "cut", config, keep_dropped=True)
    assert read_staged(tmp_path / "whole") == read_staged(tmp_path / "cut")


# Names and identity


def test_staged_source_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_files(tmp_path / "in", {"PMC1.xml": small_article(1), "PMC2.xml": b""})
    before = stage_folder(folder, tmp_path / "out")
    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "write", None)
        cached = stage_folder(folder, tmp_path / "out")
    assert cached == before
    assert [staged.is_cached for staged in (*before, *cached)] == [False, True]
    write_files(folder, {"PMC2.xml": small_article(2)})
    after = stage_folder(folder, tmp_path / "out")
    assert after[0].output_name != before[0].output_name
    assert after[0].rejected == {}


def test_copy_of_a_package_is_used_once(tmp_path: Path) -> None:
    data = {
        "a/PMC1_PMC9.xml": pack_articles(small_article(1)),
        "b/PMC1_PMC9.xml": pack_articles(small_article(1)),
    }
    staged = stage_folder(write_files(tmp_path / "in", data), tmp_path / "out")
    used, copies = order_stage_results(staged)
    assert [source.source.path for source in used] == [f"{tmp_path}/in/a/PMC1_PMC9.xml"]
    assert copies == [(f"{tmp_path}/in/b/PMC1_PMC9.xml", f"{tmp_path}/in/a/PMC1_PMC9.xml")]


# Changed and bad files


class ChangingStorage(LocalStorage):
    """A storage that changes one file when it is opened for the second time, after its checksum."""

    def __init__(self, path: Path, change: Any) -> None:
        super().__init__()
        self._path, self._change, self._opened = str(path), change, 0

    def open(self, path: str) -> BinaryIO:
        opened = super().open(path)
        if path == self._path:
            self._opened += 1
            if self._opened == 2:
                self._change(Path(path))
        return opened


@pytest.mark.parametrize("change", ["grow", "vanish"])
def test_part_changed_while_read_makes_its_source_bad(tmp_path: Path, change: str) -> None:
    folder = write_files(
        tmp_path / "in",
        {"PMC1.xml": small_article(1), "PMC2.xml": small_article(2), "PMC20000.xml": small_article(20_000)},
    )

    def grow(path: Path) -> None:
        path.write_bytes(small_article(2, "Grown."))
        os.utime(path, ns=(1, 1))

    storage = ChangingStorage(folder / "PMC2.xml", grow if change == "grow" else Path.unlink)
    job = make_shards_job(tmp_path / "out", KEEP_EVERYTHING, storage=storage)
    first, second = (stage.stage_source(job, source) for source in discover(FILES, [str(folder)]))
    assert first.output_name is None
    assert first.rejection
    assert first.rejection[0] == "changed"
    assert second.rejection is None
    second_results = stage_folder(folder, tmp_path / "out", digests=False)
    assert [staged.rejection for staged in second_results] == [None, None]


def test_package_with_a_wrong_md5_file_is_bad(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "in", {"PMC1_PMC9.xml": pack_articles(small_article(1))})
    for sidecar, reason in ((b"0" * 32, "checksum"), (b"no MD5", None)):
        (folder / "PMC1_PMC9.xml.md5").write_bytes(sidecar)
        [staged] = stage_folder(folder, tmp_path / "out")
        assert (staged.rejection and staged.rejection[0]) == reason


def test_digest_of_a_file_with_the_same_size_and_time_is_computed_again_on_request(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "in", {"PMC1_PMC9.xml": pack_articles(small_article(1, "One."))})
    job, path = make_shards_job(tmp_path / "out", KEEP_EVERYTHING), folder / "PMC1_PMC9.xml"
    [source] = discover(FILES, [str(folder)])
    before, info = compute_input_md5(job, source), path.stat()
    path.write_bytes(path.read_bytes().replace(b"One.", b"Two."))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert compute_input_md5(job, source) == before
    forget_digests(job, [source])
    assert compute_input_md5(job, source) != before


def test_unreadable_part_is_rejected_alone(tmp_path: Path) -> None:
    folder = write_files(tmp_path / "in", {"PMC1.xml": small_article(1), "PMC2.xml": small_article(2)})

    class FailingStorage(LocalStorage):
        def open(self, path: str) -> BinaryIO:
            if path.endswith("PMC1.xml"):
                raise OSError(5, "Input/output error")
            return super().open(path)

    def stage_sources() -> Iterator[StageResult]:
        job = make_shards_job(tmp_path / "out", KEEP_EVERYTHING, storage=FailingStorage())
        for source in discover(FILES, [str(folder)]):
            yield stage.stage_source(job, source)

    [failed] = stage_sources()
    assert (failed.records, failed.rejected) == (2, {"unreadable": 1})
    assert [staged.is_cached for staged in stage_sources()] == [False], "it is tried again"
    [mended] = stage_folder(folder, tmp_path / "out2", digests=False)
    assert mended.output_name != failed.output_name
