"""The life-cycle decision at the size of all PubMed, on made-up keys.

The documents of PubMed are no part of it: which version of a citation lives is decided on the keys
that staging leaves beside each shard, so those are all that is made here.  PMIDs are drawn at random,
which puts every bucket's PMIDs into every file and makes two records in five give way to another:
more work than a real baseline with its updates.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus import finishing, lifecycle
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.sources import Source
from bioshards.corpus.staging import STAGED_KEYS, Staged
from bioshards.corpus.workspace import Workspace

DELETED_SHARE = 0.01
PMIDS_PER_KEY = 5 / 6


def staged_of(files: int, keys: int) -> list[Staged]:
    """What staging would say of ``files`` files of ``keys`` keys each."""
    found = []
    for number in range(1, files + 1):
        name = f"pubmed26n{number:04d}"
        source = Source(26, number, f"{name}.xml.gz", f"{name}.xml.gz", 1, "1")
        found.append(Staged(source, f"{name}-{number:08x}", f"{number:032x}", records=keys, keys=keys))
    return found


def write_keys(work: Workspace, staged: list[Staged]) -> None:
    """The keys that staging would leave; the same ones for the same numbers."""
    highest = int(sum(source.keys for source in staged) * PMIDS_PER_KEY)
    files = LocalFiles()
    for index, source in enumerate(staged):
        path = work.staged(source.name or "", "keys")
        if files.exists(path):
            continue
        random = np.random.default_rng(index)
        rows = source.keys
        columns = {
            "pmid": pa.array(random.integers(1, highest, rows, dtype=np.int32)),
            "version": pa.array(np.ones(rows, np.int16)),
            "position": pa.array(np.arange(rows, dtype=np.int32)),
            "deletes": pa.array(random.random(rows) < DELETED_SHARE),
            "drop": pc.if_else(pa.array(random.random(rows) < 0.3), "no-abstract", None).cast(
                STAGED_KEYS.field("drop").type
            ),
        }
        with files.write(path) as out, pa.ipc.new_stream(out, STAGED_KEYS) as stream:
            stream.write_table(pa.table(columns, schema=STAGED_KEYS))


def decide(work: Workspace, staged: list[Staged]) -> dict[str, object]:
    """Decide every bucket, one after the other as one worker would; the seconds of each."""
    count = lifecycle.buckets(sum(source.keys for source in staged))
    seconds = []
    for bucket in range(count):
        started = time.perf_counter()
        finishing.decide(LocalFiles(), work, staged, bucket, count)
        seconds.append(round(time.perf_counter() - started, 3))
    return {"buckets": count, "seconds": seconds}


def read_back(work: Workspace, staged: list[Staged]) -> dict[str, object]:
    """Pick each source's verdicts out of all buckets and fingerprint them, as finishing it begins."""
    count = lifecycle.buckets(sum(source.keys for source in staged))
    dead = 0
    fingerprints = 0.0
    for index in range(len(staged)):
        verdicts = finishing._verdicts(LocalFiles(), work, index, count)
        dead += verdicts.num_rows
        started = time.perf_counter()
        lifecycle.fingerprint(verdicts)
        fingerprints += time.perf_counter() - started
    return {"dead": dead, "fingerprints": round(fingerprints, 3)}


def check(work: Workspace, staged: list[Staged]) -> dict[str, object]:
    """Count the records that live by another way: one for each PMID, less those deleted after it."""
    parts = []
    for index, source in enumerate(staged):
        with open(work.staged(source.name or "", "keys"), "rb") as file:
            keys = pa.ipc.open_stream(file).read_all()
        order = pc.add(pc.cast(keys["position"], pa.int64()), index << 32)
        parts.append((keys["pmid"].to_numpy(), order.to_numpy(), keys["deletes"].to_numpy()))
    pmids, orders, deletes = (np.concatenate(column) for column in zip(*parts, strict=True))
    del parts
    last_record = np.full(pmids.max() + 1, -1, np.int64)
    last_deletion = last_record.copy()
    last_record[pmids[~deletes]] = orders[~deletes]  # later ones overwrite earlier ones
    last_deletion[pmids[deletes]] = orders[deletes]
    living = int(((last_record >= 0) & (last_record > last_deletion)).sum())
    return {"records": int((~deletes).sum()), "living": living}


def main() -> None:
    """Do one step in a process of its own and print its figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.lifecycle_scale", description=__doc__)
    parser.add_argument("step", choices=["make", "decide", "read_back", "check"])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--files", type=int, default=1600)
    parser.add_argument("--keys", type=int, default=30_000)
    options = parser.parse_args()
    work = Workspace(str(options.work.resolve()))
    staged = staged_of(options.files, options.keys)
    if options.step == "make":
        write_keys(work, staged)
        print("{}")
    else:
        step = {"decide": decide, "read_back": read_back, "check": check}[options.step]
        print(json.dumps(step(work, staged)))


if __name__ == "__main__":
    main()
