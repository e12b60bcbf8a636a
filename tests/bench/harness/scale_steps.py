"""Steps that bench_scale.py measures in other processes:
``python -m tests.bench.harness.scale_steps STEP WORK``.

    make            the keys and digests that staging 1,600 files of 30,000 records would leave
    decide          versions and exact duplicates decided on them
    read_back       the numbers of dead records and of duplicates, by these decisions
    count           the same numbers, counted in another way
    make_inventory  an inventory of PMC's of 9.3 million articles
    inventory       this inventory read into a mirror
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from bioshards.corpus.download.pmc import bucket_inventory
from bioshards.corpus.lifecycle import decisions
from bioshards.corpus.lifecycle.decisions import TEXT_DIGEST_SCHEMA
from bioshards.corpus.lifecycle.job import StageResult
from bioshards.corpus.lifecycle.stage import STAGED_KEY_SCHEMA
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import SourceFile
from tests.support.corpus.shard_jobs import make_shards_job
from tests.support.servers.fake_pmc_bucket import (
    BASE_URL,
    BUCKET,
    INVENTORY_PREFIX,
    FakeBucket,
    FolderConnection,
)

STORAGE: Final = LocalStorage()
FILES, RECORDS = 1600, 30_000
HIGHEST_PMID: Final = FILES * RECORDS * 5 // 6
DELETED_SHARE, DROPPED_SHARE = 0.01, 0.3
NUM_TEXTS: Final = 10 * FILES * RECORDS
DIGEST_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
"""Times this, the number of a text is spread over all digests."""
ARTICLES: Final = 9_300_000
HIGHEST_PMCID: Final = 13_000_000
CSV_ROWS: Final = 500_000


def list_stage_results() -> list[StageResult]:
    """Return what staging would say of the files."""
    results = []
    for number in range(1, FILES + 1):
        name = f"pubmed26n{number:04d}"
        source = SourceFile(26, number, f"{name}.xml.gz", f"{name}.xml.gz", 1, "1")
        stem = f"{name}-{number:08x}"
        results.append(StageResult(source, stem, f"{number:032x}", records=RECORDS, num_keys=RECORDS))
    return results


def make_keys(work: Path) -> None:
    """Write the keys of all records and the digests of those that no rule drops."""
    for index, source in enumerate(list_stage_results()):
        rng = np.random.default_rng(index)
        keys = {
            "key": rng.integers(1, HIGHEST_PMID, RECORDS, dtype=np.int64),
            "version": np.ones(RECORDS, np.int16),
            "minor_version": np.zeros(RECORDS, np.int32),
            "published": np.zeros(RECORDS, np.int32),
            "position": np.arange(RECORDS, dtype=np.int32),
            "is_deletion": rng.random(RECORDS) < DELETED_SHARE,
            "drop_reason": pc.if_else(
                pa.array(rng.random(RECORDS) < DROPPED_SHARE), "no-abstract", None
            ).cast(STAGED_KEY_SCHEMA.field("drop_reason").type),
        }
        table = pa.table(keys, schema=STAGED_KEY_SCHEMA)
        texts = rng.integers(0, NUM_TEXTS, RECORDS, dtype=np.uint64)
        halves = np.stack([texts * DIGEST_MULTIPLIER, texts], axis=1)
        digests = {
            "key": table["key"],
            "id": pc.binary_join_element_wise("pubmed", table["key"].cast(pa.string()), ":"),
            "position": table["position"],
            "digest": pa.Array.from_buffers(pa.binary(16), RECORDS, [None, pa.py_buffer(halves)]),
        }
        is_compared = pc.and_(pc.invert(table["is_deletion"]), pc.is_null(table["drop_reason"]))
        _write_table(work, source, "keys", table)
        _write_table(
            work, source, "digests", pa.table(digests, schema=TEXT_DIGEST_SCHEMA).filter(is_compared)
        )


def _write_table(work: Path, source: StageResult, ending: str, table: pa.Table) -> None:
    path = OutputDir(str(work)).staged_path(source.output_name or "", ending)
    with STORAGE.write(path) as out, pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)


def decide(work: Path) -> None:
    """Decide which versions live, and which of those are duplicates."""
    decisions.decide(make_shards_job(work, dedup="exact"), list_stage_results())


def read_back(work: Path) -> None:
    """Print how many records are dead and how many are duplicates, by the decisions."""
    path = OutputDir(str(work)).work_path("decisions/decisions.arrow")
    reasons: Counter[str] = Counter()
    for index in range(FILES):
        table = decisions.read_decisions(STORAGE, [path], index)
        reasons.update(table["reason"].cast(pa.string()).to_pylist())
    duplicates = reasons.pop("duplicate", 0)
    print(json.dumps([reasons.total(), duplicates]))


def count(work: Path) -> None:
    """Count the same in another way.

    A record lives if it is the last one of its PMID and no deletion follows it; duplicates are those that are
    compared less their different texts.
    """
    parts = []
    for index, source in enumerate(list_stage_results()):
        keys, digests = (_read_table(work, source, ending) for ending in ("keys", "digests"))
        texts = np.full(keys.num_rows, -1, np.int64)
        halves = np.frombuffer(b"".join(digests["digest"].to_pylist()), np.int64)
        texts[digests["position"].to_numpy()] = halves[1::2]
        order = (index << 32) + keys["position"].to_numpy().astype(np.int64)
        parts.append((keys["key"].to_numpy(), order, keys["is_deletion"].to_numpy(), texts))
    pmids, orders, deletes, texts = (np.concatenate(column) for column in zip(*parts, strict=True))
    del parts
    last_record = np.full(HIGHEST_PMID, -1, np.int64)
    last_deletion = last_record.copy()
    last_record[pmids[~deletes]] = orders[~deletes]  # later ones overwrite earlier ones
    last_deletion[pmids[deletes]] = orders[deletes]
    lives = (last_record >= 0) & (last_record > last_deletion)
    compared = texts[~deletes & (last_record[pmids] == orders) & lives[pmids] & (texts >= 0)]
    duplicates = len(compared) - len(np.unique(compared))
    print(json.dumps([int((~deletes).sum() - lives.sum()), duplicates]))


def _read_table(work: Path, source: StageResult, ending: str) -> pa.Table:
    path = OutputDir(str(work)).staged_path(source.output_name or "", ending)
    return pa.ipc.open_stream(Path(path).read_bytes()).read_all()


def make_inventory(work: Path) -> None:
    """Write an inventory of randomly drawn ids."""
    bucket = FakeBucket(work / "bucket")
    rng = np.random.default_rng(7)
    ids = np.sort(rng.choice(HIGHEST_PMCID, ARTICLES, replace=False)) + 1
    bucket.publish_manifest("2026-11-01", list(_write_csv_files(bucket, rng, ids)))
    print("{}")


def _write_csv_files(
    bucket: FakeBucket, rng: np.random.Generator, ids: NDArray[np.int64]
) -> Iterator[dict[str, object]]:
    """Write CSV files in S3's format, and yield their entries of the inventory's manifest."""
    for first in range(0, len(ids), CSV_ROWS):
        ids_of_file = ids[first : first + CSV_ROWS]
        digests = rng.bytes(16 * len(ids_of_file)).hex()
        columns = {
            "bucket": pa.repeat(BUCKET, len(ids_of_file)),
            "key": pa.array([f"metadata/PMC{number}.1.json" for number in ids_of_file]),
            "modified": pa.repeat("2026-01-08T11:47:59.000Z", len(ids_of_file)),
            "etag": pa.array([digests[32 * at : 32 * at + 32] for at in range(len(ids_of_file))]),
        }
        text = io.BytesIO()
        options = pa.csv.WriteOptions(include_header=False, quoting_style="all_valid")
        pa.csv.write_csv(pa.table(columns), text, options)
        body = gzip.compress(text.getvalue(), 1, mtime=0)
        key = f"{INVENTORY_PREFIX}data/{first}.csv.gz"
        bucket.write(key, body)
        yield {"key": key, "size": len(body), "MD5checksum": hashlib.md5(body).hexdigest()}


def read_inventory(work: Path) -> None:
    """Read the inventory into a mirror, and print what it took."""
    mirror, connection = str(work / "inventory-mirror"), FolderConnection(work / "bucket")
    started = time.perf_counter()
    updated = bucket_inventory.update_inventory(STORAGE, mirror, connection, BASE_URL)
    seconds = time.perf_counter() - started
    size = Path(mirror, "pmc/inventory.parquet").stat().st_size
    print(json.dumps({"rows": updated.rows, "bytes": size, "seconds": seconds}))


STEPS: Final[dict[str, Callable[[Path], None]]] = {
    "make": make_keys,
    "decide": decide,
    "read_back": read_back,
    "count": count,
    "make_inventory": make_inventory,
    "inventory": read_inventory,
}

if __name__ == "__main__":
    STEPS[sys.argv[1]](Path(sys.argv[2]))
