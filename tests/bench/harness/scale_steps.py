"""Steps that bench_scale.py measures in other processes: ``python -m tests.bench.harness.scale_steps STEP
...``.

inventory ROWS       read an inventory of PMC's of so many articles into a mirror, and list its ranges
manifest SHARDS      publish so many made-up shards, and read their manifest as the next pipelines do
tiny SHARDS          the same directory with its shards, each of two documents
watch FILES          one look at the progress of a run of so many files
calls FILES          what a run of so many files asks of its storage
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import hashlib
import io
import json
import pickle
import random
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv

from bioshards.corpus.document import Document
from bioshards.corpus.download.pmc import article_ranges, bucket_inventory
from bioshards.corpus.lifecycle.finalize import FinalizeResult
from bioshards.corpus.lifecycle.job import StageResult, is_up_to_date
from bioshards.corpus.lifecycle.publish import publish
from bioshards.corpus.manifest import DocumentsManifest, Shard
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import document_shards, input_dirs
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress, RunProgress, StepBar
from bioshards.pipelines import cli
from bioshards.vocab.pretraining import build
from tests.bench.harness import scale_graphs
from tests.support.corpus import synthetic_documents
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.corpus.shard_jobs import make_shards_job
from tests.support.servers.fake_pmc_bucket import (
    BASE_URL,
    BUCKET,
    INVENTORY_PREFIX,
    FakeBucket,
    FolderConnection,
)
from tests.support.storage_calls import count_storage_calls

FILES: Final = LocalStorage()
CSV_ROWS: Final = 500_000
HIGHEST_PMCID: Final = 13_000_000


class StepClock:
    """Seconds by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[what] = round(time.perf_counter() - started, 3)


def measure_inventory(work: Path, rows: int) -> dict[str, Any]:
    """Write an inventory, and measure reading it."""
    root, mirror, clock = work / "bucket", str(work / "mirror"), StepClock()
    shutil.rmtree(mirror, ignore_errors=True)
    if not (root / f"{rows}.made").exists():
        shutil.rmtree(root, ignore_errors=True)
        _write_inventory(FakeBucket(root), rows)
        (root / f"{rows}.made").touch()
    with clock("read"):
        updated = bucket_inventory.update_inventory(FILES, mirror, FolderConnection(root), BASE_URL)
    with clock("list ranges"):
        numbers = article_ranges.list_ranges(FILES, mirror)
    with clock("read a range"):
        bucket_inventory.read_range(FILES, mirror, numbers[len(numbers) // 2])
    size = Path(mirror, "pmc/inventory.parquet").stat().st_size
    return {"rows": updated.rows, "ranges": len(numbers), "bytes": size, **clock.seconds}


def _write_inventory(bucket: FakeBucket, rows: int) -> None:
    """Write CSV files in S3's format, of randomly drawn ids."""
    rng = np.random.default_rng(7)
    ids = np.sort(rng.choice(HIGHEST_PMCID, rows, replace=False)) + 1
    csv_files = []
    for first in range(0, rows, CSV_ROWS):
        ids_of_file = ids[first : first + CSV_ROWS]
        digests = rng.bytes(16 * len(ids_of_file)).hex()
        table = pa.table(
            {
                "bucket": pa.repeat(BUCKET, len(ids_of_file)),
                "key": pa.array([f"metadata/PMC{number}.1.json" for number in ids_of_file]),
                "modified": pa.repeat("2026-01-08T11:47:59.000Z", len(ids_of_file)),
                "etag": pa.array([digests[32 * at : 32 * at + 32] for at in range(len(ids_of_file))]),
            }
        )
        text = io.BytesIO()
        pa.csv.write_csv(table, text, pa.csv.WriteOptions(include_header=False, quoting_style="all_valid"))
        body = gzip.compress(text.getvalue(), 1, mtime=0)
        key = f"{INVENTORY_PREFIX}data/{first}.csv.gz"
        bucket.write(key, body)
        csv_files.append({"key": key, "size": len(body), "MD5checksum": hashlib.md5(body).hexdigest()})
    bucket.publish_manifest("2026-11-01", csv_files)


def measure_manifest(work: Path, count: int) -> dict[str, Any]:
    """Measure publishing synthetic shards, and the size of the reports between steps."""
    output, clock = OutputDir(str(work / "published")), StepClock()
    shutil.rmtree(output.path, ignore_errors=True)
    staged, finalized = (
        list(map(make_stage_result, range(count))),
        list(map(make_finalize_result, range(count))),
    )
    with clock("publish"):
        publish(make_shards_job(output.path), staged, finalized)
    with clock("read"):
        document_shards.read_documents_manifest(FILES, output.path)
    with clock("find"):
        [found] = input_dirs.load_document_inputs(FILES, [output.path])
    with clock("portions"):
        groups = list(build.group_shards([found], 0, {}))
    with clock("finished?"):
        is_up_to_date(FILES, output, DocumentsManifest, "")
    return {
        "manifest": Path(output.manifest_path).stat().st_size,
        "staged": len(pickle.dumps(staged)) // count,
        "finished": len(pickle.dumps(finalized)) // count,
        "of portions": len(groups),
        **clock.seconds,
    }


def make_stage_result(number: int) -> StageResult:
    source = scale_graphs.make_sources(1)[0]
    name = f"pubmed26n{number:05d}"
    md5 = scale_graphs.hash_hex(number)[:32]
    return StageResult(source, f"{name}-{md5[:8]}", md5, 30_000, 12, 30_012)


def make_finalize_result(number: int) -> FinalizeResult:
    """Make a report with as many years, languages and rules as a real file has."""
    rng = random.Random(number)
    name = f"pubmed26n{number:05d}-{scale_graphs.hash_hex(number)[:8]}"
    size = 35_000_000 + rng.randrange(10**6)
    shard = Shard(f"data/data-{name}-00000.parquet", 20_000, size, scale_graphs.hash_hex(name))
    return FinalizeResult(
        output_name=name,
        shards=[shard],
        dropped=[],
        funnel={"kept": 20_000, "no-abstract": 9_000, "superseded": 900, "deleted": 100},
        counts={"documents": 20_000, "sentences": 180_000, "words": 4_000_000, "characters": 27_000_000},
        years={str(year): rng.randrange(9999) for year in range(1966, 2027)},
        languages={language: rng.randrange(999) for language in ("eng", "fre", "ger", "jpn", "rus", "chi")},
        licences={"unknown": 20_000},
        article_types={kind: rng.randrange(9999) for kind in ("Journal Article", "Review", "Letter")},
        cleaning={rule: {"documents": 9, "characters": 99} for rule in ("copyright", "truncated", "tags")},
    )


def write_tiny_shards(work: Path, count: int) -> dict[str, Any]:
    """Write a finished directory of many shards."""
    folder = work / f"tiny-{count}"
    if not (folder / "manifest.json").exists():
        synthetic_documents.write_document_dir(
            folder, {f"{number:05d}": _make_documents(number) for number in range(count)}
        )
    return {}


def _make_documents(number: int) -> list[Document]:
    """Make two abstracts, some of whose words are in no other shard."""
    words = ["cells", "were", "grown", "in", "the", "mice", f"p{number}", f"g{number % 997}"]
    sentences = [" ".join([*words[offset:], *words[:offset], "."]) for offset in range(len(words))]
    return [
        synthetic_documents.make_document(f"pubmed:{2 * number + offset}", sentences) for offset in (1, 2)
    ]


def measure_progress(work: Path, count: int) -> dict[str, Any]:
    """A look at a run of which half is done."""
    output, clock = OutputDir(str(work / "watched")), StepClock()
    shutil.rmtree(output.path, ignore_errors=True)
    folder = Path(output.work_folder, "staged")
    folder.mkdir(parents=True)
    sources = scale_graphs.make_sources(count)
    bars = [StepBar("stage", "staging", " files", count, reports=output.work_path("staged"))]
    progress = RunProgress(bars, FILES, Progress(io.StringIO()))
    report = json.dumps({"result": {"records": 30_000}, "seconds": 3.0})
    for source in sources[: count // 2]:
        for ending in ("json", "arrow", "keys"):
            (folder / f"{source.stem}-12345678.{ending}").write_text(report if ending == "json" else "")
    with clock("first look"):
        progress.update()
    with clock("next look"):
        progress.update()
    return clock.seconds


def count_calls(work: Path, count: int) -> dict[str, Any]:
    """Count the storage calls of runs with one worker."""
    input_dir, output = work / "counted" / "in", work / "counted" / "out"
    shutil.rmtree(work / "counted", ignore_errors=True)
    input_dir.mkdir(parents=True)
    broken = "<PubmedArticle><bad/></PubmedArticle>"
    for number in range(1, count + 1):
        same = citation_xml(10**6 + number, abstract="The same words. As others.")
        (input_dir / f"pubmed26n{number:04d}.xml").write_bytes(
            pubmed_set_xml(citation_xml(number), same, broken)
        )
    command = ["run", "pubmed_to_shards", "--workers", "1", "--dedup", "exact", "--max-rejected", "1"]
    command += ["--input", str(input_dir), "--output", str(output)]
    write_tiny_shards(work, count)
    words = ["run", "shards_to_words", "--workers", "1", "--input", str(work / f"tiny-{count}")]
    words += ["--output", str(work / "counted" / "words")]
    return {
        "abstracts": _count_command_calls(command),
        "nothing to do": _count_command_calls(command),
        "words": _count_command_calls(words),
    }


def _count_command_calls(command: list[str]) -> dict[str, tuple[int, int]]:
    """Count the sequential and the concurrent calls of each step."""
    with count_storage_calls() as storage_calls, contextlib.redirect_stdout(sys.stderr):
        if cli.main(command):
            raise SystemExit(f"beam {' '.join(command)} has failed")
    return {
        step: (storage_calls.sequential(step), storage_calls.concurrent(step)) for step in storage_calls.steps
    }


STEPS: Final = {
    step.__name__: step
    for step in (measure_inventory, measure_manifest, write_tiny_shards, measure_progress, count_calls)
}


def main() -> None:
    """Do one step and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.harness.scale_steps", description=__doc__)
    parser.add_argument("step", choices=list(STEPS))
    parser.add_argument("count", type=int)
    parser.add_argument("--work", type=Path, required=True)
    options = parser.parse_args()
    print(json.dumps(STEPS[options.step](options.work.resolve(), options.count)))


if __name__ == "__main__":
    main()
