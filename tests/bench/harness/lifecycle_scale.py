"""The life-cycle decision at the size of all PubMed, on made-up keys.

The documents of PubMed are no part of it: which version of a citation lives is decided on the keys
that staging leaves beside each shard, so those are all that is made here.  PMIDs are drawn at random,
which puts every bucket's PMIDs into every file and makes two records in five give way to another:
more work than a real baseline with its updates.  Exact duplicates are decided on the digests of those that
live: made-up ones too, of which a few in a hundred are the same.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.lifecycle import decisions
from bioshards.corpus.lifecycle.decisions import TEXT_DIGEST_SCHEMA
from bioshards.corpus.lifecycle.job import StageResult
from bioshards.corpus.lifecycle.stage import STAGED_KEY_SCHEMA
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import SourceFile
from tests.support.corpus.shard_jobs import make_shards_job

DELETED_SHARE = 0.01
PMIDS_PER_KEY = 5 / 6
TEXTS_PER_KEY = 10
DIGEST_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Times this, the number of a text is spread over all digests."""


def make_stage_results(files: int, keys: int) -> list[StageResult]:
    """What staging would say of ``files`` files of ``keys`` keys each."""
    results = []
    for number in range(1, files + 1):
        name = f"pubmed26n{number:04d}"
        source = SourceFile(26, number, f"{name}.xml.gz", f"{name}.xml.gz", 1, "1")
        results.append(
            StageResult(source, f"{name}-{number:08x}", f"{number:032x}", records=keys, num_keys=keys)
        )
    return results


def write_keys(output_dir: OutputDir, staged: list[StageResult]) -> None:
    """The keys and digests that staging would leave; the same ones for the same numbers."""
    total = sum(source.num_keys for source in staged)
    highest = int(total * PMIDS_PER_KEY)
    storage = LocalStorage()
    for index, source in enumerate(staged):
        path = output_dir.staged_path(source.output_name or "", "keys")
        if storage.exists(path):
            continue
        random = np.random.default_rng(index)
        rows = source.num_keys
        columns = {
            "key": pa.array(random.integers(1, highest, rows, dtype=np.int64)),
            "version": pa.array(np.ones(rows, np.int16)),
            "position": pa.array(np.arange(rows, dtype=np.int32)),
            "is_deletion": pa.array(random.random(rows) < DELETED_SHARE),
            "drop_reason": pc.if_else(pa.array(random.random(rows) < 0.3), "no-abstract", None).cast(
                STAGED_KEY_SCHEMA.field("drop_reason").type
            ),
        }
        text_numbers = random.integers(0, total * TEXTS_PER_KEY, rows, dtype=np.uint64)
        digest_halves = np.stack([text_numbers * DIGEST_MULTIPLIER, text_numbers], axis=1)
        table = pa.table(columns, schema=STAGED_KEY_SCHEMA)
        digests = pa.Array.from_buffers(pa.binary(16), rows, [None, pa.py_buffer(digest_halves)])
        ids = pc.binary_join_element_wise("pubmed", table["key"].cast(pa.string()), ":")
        columns = {"key": table["key"], "id": ids, "position": table["position"], "digest": digests}
        compared_digests = pa.table(columns, schema=TEXT_DIGEST_SCHEMA)
        _write_table(
            storage,
            output_dir.staged_path(source.output_name or "", "digests"),
            compared_digests.filter(_is_compared(table)),
        )
        _write_table(storage, path, table)


def _is_compared(keys: pa.Table) -> pa.ChunkedArray:
    """Which rows are of documents that no rule drops."""
    return pc.and_(pc.invert(keys["is_deletion"]), pc.is_null(keys["drop_reason"]))


def _write_table(storage: LocalStorage, path: str, table: pa.Table) -> None:
    with storage.write(path) as out, pa.ipc.new_stream(out, table.schema) as stream:
        stream.write_table(table)


def decide_versions(output_dir: OutputDir, staged: list[StageResult]) -> dict[str, object]:
    """Decide which versions live."""
    decisions.decide(make_shards_job(output_dir.path), staged)
    return {"buckets": decisions.count_buckets(sum(source.num_keys for source in staged))}


def decide_duplicates(output_dir: OutputDir, staged: list[StageResult]) -> dict[str, object]:
    """Decide the same, and which of those that live are duplicates."""
    decisions.decide(make_shards_job(output_dir.path, dedup="exact"), staged)
    return {}


def read_back_decisions(output_dir: OutputDir, staged: list[StageResult]) -> dict[str, object]:
    """Read the decisions on each source and digest them, as finalizing it begins."""
    reasons: Counter[str] = Counter()
    digest_seconds = 0.0
    for index in range(len(staged)):
        table = decisions.read_decisions(
            LocalStorage(), [output_dir.work_path("decisions/decisions.arrow")], index
        )
        reasons.update(table["reason"].cast(pa.string()).to_pylist())
        started = time.perf_counter()
        decisions.digest_decisions(table)
        digest_seconds += time.perf_counter() - started
    duplicates = reasons.pop("duplicate", 0)
    return {"dead": reasons.total(), "duplicates": duplicates, "digests": round(digest_seconds, 3)}


def count_expected(output_dir: OutputDir, staged: list[StageResult]) -> dict[str, object]:
    """Count another way the records that live, one for each PMID less those deleted after it, and the
    duplicates among them: those that are compared less their different texts.
    """
    parts = []
    for index, source in enumerate(staged):
        keys, digests = (
            pa.ipc.open_stream(
                Path(output_dir.staged_path(source.output_name or "", ending)).read_bytes()
            ).read_all()
            for ending in ("keys", "digests")
        )
        order = pc.add(pc.cast(keys["position"], pa.int64()), index << 32)
        texts = np.full(keys.num_rows, -1, np.int64)
        halves = np.frombuffer(b"".join(digests["digest"].to_pylist()), np.int64)
        texts[digests["position"].to_numpy()] = halves[1::2]
        parts.append((keys["key"].to_numpy(), order.to_numpy(), keys["is_deletion"].to_numpy(), texts))
    pmids, orders, deletes, texts = (np.concatenate(column) for column in zip(*parts, strict=True))
    del parts
    last_record = np.full(pmids.max() + 1, -1, np.int64)
    last_deletion = last_record.copy()
    last_record[pmids[~deletes]] = orders[~deletes]  # later ones overwrite earlier ones
    last_deletion[pmids[deletes]] = orders[deletes]
    living = (last_record >= 0) & (last_record > last_deletion)
    compared = texts[~deletes & (last_record[pmids] == orders) & living[pmids] & (texts >= 0)]
    return {
        "records": int((~deletes).sum()),
        "living": int(living.sum()),
        "duplicates": len(compared) - len(np.unique(compared)),
    }


STEPS = {
    "decide": decide_versions,
    "duplicates": decide_duplicates,
    "read_back": read_back_decisions,
    "check": count_expected,
}


def main() -> None:
    """Do one step in a process of its own and print its figures as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.harness.lifecycle_scale", description=__doc__
    )
    parser.add_argument("step", choices=["make", *STEPS])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--files", type=int, default=1600)
    parser.add_argument("--keys", type=int, default=30_000)
    options = parser.parse_args()
    output_dir = OutputDir(str(options.work.resolve()))
    staged = make_stage_results(options.files, options.keys)
    if options.step == "make":
        write_keys(output_dir, staged)
        print("{}")
    else:
        print(json.dumps(STEPS[options.step](output_dir, staged)))


if __name__ == "__main__":
    main()
