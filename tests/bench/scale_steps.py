"""What scale.py measures in processes of their own: ``python -m tests.bench.scale_steps STEP ...``.

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

from bioshards.corpus import publishing, shards, workspace
from bioshards.corpus.document import Document
from bioshards.corpus.download import pmc, pmc_inventory
from bioshards.corpus.files import LocalStorage
from bioshards.corpus.finishing import FinalizeResult
from bioshards.corpus.manifest import DocumentsRun
from bioshards.corpus.rules import PubMedConfig
from bioshards.corpus.shards import Shard
from bioshards.corpus.staging import StageResult
from bioshards.corpus.workspace import FORMAT, OutputDir
from bioshards.pipelines import cli
from bioshards.pipelines.inputs import RunInputs
from bioshards.pipelines.progress import ShardsProgress
from bioshards.vocab import inputs
from bioshards.vocab.examples import portions
from tests import invented
from tests.conftest import citation, pubmed_set
from tests.counted import counted
from tests.pmc_bucket import BASE, BUCKET, FOLDER, Bucket, FolderConnection

from . import scale_graphs

FILES: Final = LocalStorage()
CSV_ROWS: Final = 500_000
HIGHEST_PMCID: Final = 13_000_000
CONFIG: Final = {
    "pipeline": "pubmed_to_shards",
    "format": FORMAT,
    "rules": PubMedConfig().to_dict(),
    "keep_dropped": False,
    "dedup": "none",
}


class Clock:
    """Seconds by what took them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[what] = round(time.perf_counter() - started, 3)


def inventory(work: Path, rows: int) -> dict[str, Any]:
    """Read an inventory, which is made first."""
    root, mirror, clock = work / "bucket", str(work / "mirror"), Clock()
    shutil.rmtree(mirror, ignore_errors=True)
    if not (root / f"{rows}.made").exists():
        shutil.rmtree(root, ignore_errors=True)
        _write_inventory(Bucket(root), rows)
        (root / f"{rows}.made").touch()
    with clock("read"):
        found = pmc_inventory.update_inventory(FILES, mirror, FolderConnection(root), BASE)
    with clock("list ranges"):
        numbers = pmc.list_ranges(FILES, mirror)
    with clock("read a range"):
        pmc_inventory.read_range(FILES, mirror, numbers[len(numbers) // 2])
    size = Path(mirror, "pmc/inventory.parquet").stat().st_size
    return {"rows": found.rows, "ranges": len(numbers), "bytes": size, **clock.seconds}


def _write_inventory(bucket: Bucket, rows: int) -> None:
    """CSV files as S3 writes them, of ids drawn from all there are."""
    draw = np.random.default_rng(7)
    ids = np.sort(draw.choice(HIGHEST_PMCID, rows, replace=False)) + 1
    listed = []
    for first in range(0, rows, CSV_ROWS):
        some = ids[first : first + CSV_ROWS]
        digests = draw.bytes(16 * len(some)).hex()
        table = pa.table(
            {
                "bucket": pa.repeat(BUCKET, len(some)),
                "key": pa.array([f"metadata/PMC{number}.1.json" for number in some]),
                "modified": pa.repeat("2026-01-08T11:47:59.000Z", len(some)),
                "etag": pa.array([digests[32 * at : 32 * at + 32] for at in range(len(some))]),
            }
        )
        text = io.BytesIO()
        pa.csv.write_csv(table, text, pa.csv.WriteOptions(include_header=False, quoting_style="all_valid"))
        body = gzip.compress(text.getvalue(), 1, mtime=0)
        key = f"{FOLDER}data/{first}.csv.gz"
        bucket.write(key, body)
        listed.append({"key": key, "size": len(body), "MD5checksum": hashlib.md5(body).hexdigest()})
    bucket.manifest("2026-11-01", listed)


def manifest(work: Path, count: int) -> dict[str, Any]:
    """Publish made-up shards; the reports of steps as they pass between them."""
    output, clock = OutputDir(str(work / "published")), Clock()
    shutil.rmtree(output.path, ignore_errors=True)
    staged, finished = list(map(_staged, range(count))), list(map(_finished, range(count)))
    with clock("publish"):
        publishing.publish_output(
            FILES,
            output,
            PubMedConfig(),
            dict(CONFIG),
            staged,
            finished,
            0.001,
            DocumentsRun(command=("bench",)),
        )
    with clock("read"):
        shards.read_documents_manifest(FILES, output.path)
    with clock("find"):
        [found] = inputs.load_document_inputs(FILES, [output.path])
    with clock("portions"):
        some = list(portions.group_shards([found], 0, {}))
    with clock("finished?"):
        workspace.is_up_to_date(FILES, output, [])
    return {
        "manifest": Path(output.manifest_path).stat().st_size,
        "staged": len(pickle.dumps(staged)) // count,
        "finished": len(pickle.dumps(finished)) // count,
        "of portions": len(some),
        **clock.seconds,
    }


def _staged(number: int) -> StageResult:
    source = scale_graphs.abstracts(1)[0]
    name = f"pubmed26n{number:05d}"
    md5 = scale_graphs.digest(number)[:32]
    return StageResult(source, f"{name}-{md5[:8]}", md5, 30_000, 12, 30_012)


def _finished(number: int) -> FinalizeResult:
    """A report with as many years, languages and rules as those of real files have."""
    draw = random.Random(number)
    name = f"pubmed26n{number:05d}-{scale_graphs.digest(number)[:8]}"
    size = 35_000_000 + draw.randrange(10**6)
    listed = Shard(f"data-{name}-00000.arrow", 20_000, size, scale_graphs.digest(name))
    return FinalizeResult(
        output_name=name,
        shards=[listed],
        dropped=[],
        funnel={"kept": 20_000, "no-abstract": 9_000, "superseded": 900, "deleted": 100},
        counts={"documents": 20_000, "sentences": 180_000, "words": 4_000_000, "characters": 27_000_000},
        years={str(year): draw.randrange(9999) for year in range(1966, 2027)},
        languages={language: draw.randrange(999) for language in ("eng", "fre", "ger", "jpn", "rus", "chi")},
        licences={"unknown": 20_000},
        article_types={kind: draw.randrange(9999) for kind in ("Journal Article", "Review", "Letter")},
        cleaning={rule: {"documents": 9, "characters": 99} for rule in ("copyright", "truncated", "tags")},
    )


def tiny(work: Path, count: int) -> dict[str, Any]:
    """A finished directory of many shards, for runs to read."""
    folder = work / f"tiny-{count}"
    if not (folder / "manifest.json").exists():
        invented.put(folder, {f"{number:05d}": _documents(number) for number in range(count)})
    return {}


def _documents(number: int) -> list[Document]:
    """Two abstracts of words of which some are in no other shard."""
    words = ["cells", "were", "grown", "in", "the", "mice", f"p{number}", f"g{number % 997}"]
    sentences = [" ".join([*words[at:], *words[:at], "."]) for at in range(len(words))]
    return [invented.document(f"pubmed:{2 * number + at}", sentences) for at in (1, 2)]


def watch(work: Path, count: int) -> dict[str, Any]:
    """A look at a run of which half is done."""
    output, clock = OutputDir(str(work / "watched")), Clock()
    shutil.rmtree(output.path, ignore_errors=True)
    folder = Path(output.work_folder, "staged")
    folder.mkdir(parents=True)
    sources = scale_graphs.abstracts(count)
    progress = ShardsProgress(FILES, output, RunInputs(sources), io.StringIO())
    report = json.dumps({"staged": {"records": 30_000}, "seconds": 3.0})
    for one in sources[: count // 2]:
        for ending in ("json", "arrow", "keys"):
            (folder / f"{one.stem}-12345678.{ending}").write_text(report if ending == "json" else "")
    with clock("first look"):
        progress.update()
    with clock("next look"):
        progress.update()
    return clock.seconds


def calls(work: Path, count: int) -> dict[str, Any]:
    """What runs of one worker ask of their storage."""
    given, output = work / "counted" / "in", work / "counted" / "out"
    shutil.rmtree(work / "counted", ignore_errors=True)
    given.mkdir(parents=True)
    broken = "<PubmedArticle><bad/></PubmedArticle>"
    for number in range(1, count + 1):
        same = citation(10**6 + number, abstract="The same words. As others.")
        (given / f"pubmed26n{number:04d}.xml").write_bytes(pubmed_set(citation(number), same, broken))
    command = ["run", "pubmed_to_shards", "--workers", "1", "--dedup", "exact", "--max-rejected", "1"]
    command += ["--input", str(given), "--output", str(output)]
    tiny(work, count)
    words = ["run", "shards_to_words", "--workers", "1", "--input", str(work / f"tiny-{count}")]
    words += ["--output", str(work / "counted" / "words")]
    return {"abstracts": _asked(command), "nothing to do": _asked(command), "words": _asked(words)}


def _asked(command: list[str]) -> dict[str, tuple[int, int]]:
    """Calls of each step: those that wait for each other, and those ahead of their turn."""
    with counted() as asked, contextlib.redirect_stdout(sys.stderr):
        if cli.main(command):
            raise SystemExit(f"beam {' '.join(command)} has failed")
    return {step: (asked.serial(step), asked.ahead(step)) for step in asked.steps}


STEPS: Final = {step.__name__: step for step in (inventory, manifest, tiny, watch, calls)}


def main() -> None:
    """Do one step and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale_steps", description=__doc__)
    parser.add_argument("step", choices=list(STEPS))
    parser.add_argument("count", type=int)
    parser.add_argument("--work", type=Path, required=True)
    options = parser.parse_args()
    print(json.dumps(STEPS[options.step](options.work.resolve(), options.count)))


if __name__ == "__main__":
    main()
