"""Near duplicates against exact similarities, other tools, and at scale.

``python -m tests.bench.bench_near_duplicates`` compares the links of signatures with the exact Jaccard
similarity of all pairs of real abstracts (BIOSHARDS_DATA) and with PubMed's own links, edits abstracts by
known rates, and finds duplicates among synthetic signatures.  ``--peers PYTHON`` adds the tools that it can
import:

    python -m venv peers && peers/bin/pip install datasketch 'datatrove[processing]'
    python -m tests.bench.bench_near_duplicates --peers peers/bin/python
"""

from __future__ import annotations

import argparse
import collections
import functools
import itertools
import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.lifecycle.near_duplicates import (
    BAND_ROWS,
    MIN_WORDS,
    NUM_BANDS,
    NUM_HASHES,
    SHINGLE_WORDS,
    SIGNATURE_SCHEMA,
    THRESHOLD,
    SignatureTable,
    UInt32Array,
    compute_drop_probability,
    compute_signature,
    count_buckets,
    make_signature_batch,
    normalise_words,
)
from bioshards.corpus.lifecycle.stage import make_reader
from bioshards.corpus.pubmed.discovery import discover_sources
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.bench.harness import peer_near_duplicates, pubmed_baseline
from tests.bench.harness.text_corpora import get_data_dir

EDIT_RATES: Final = (0.005, 0.01, 0.02, 0.04, 0.08)
"""Fractions of changed words."""
LINK_TYPES: Final = ("RepublishedFrom", "RepublishedIn", "UpdateOf", "UpdateIn")
ALL_ABSTRACTS: Final = 40_000_000
DUPLICATE_TYPE: Final = "Duplicate Publication"
DOCUMENTS_PER_SOURCE: Final = 400_000
Pair = tuple[int, int]


@dataclass(frozen=True)
class Abstract:
    """A distinct text of a record: revisions of a citation are several."""

    pmid: int
    title: str
    text: tuple[str, ...]
    links: tuple[tuple[str, int], ...]
    is_duplicate: bool

    @functools.cached_property
    def shingles(self) -> frozenset[bytes]:
        words = normalise_words(" ".join([self.title, *self.text])).split()
        if len(words) < MIN_WORDS:
            return frozenset([b" ".join(words)])
        starts = range(len(words) - SHINGLE_WORDS + 1)
        return frozenset(b" ".join(words[start : start + SHINGLE_WORDS]) for start in starts)

    @functools.cached_property
    def signature(self) -> UInt32Array:
        signature = compute_signature(self.title, self.text)
        assert signature is not None
        return signature


def load_abstracts() -> list[Abstract]:
    """Load the distinct texts of all real records with an abstract, revisions included."""
    folder = Path(get_data_dir()) / "pubmed"
    links: dict[int, set[tuple[str, int]]] = collections.defaultdict(set)
    duplicates = set[int]()
    for record in pubmed_baseline.iter_records(folder):
        record_pmid = record.findtext("MedlineCitation/PMID", "")
        if not record_pmid.isdigit():
            continue
        for link in record.iterfind(".//CommentsCorrections"):
            kind, linked = link.get("RefType", ""), link.findtext("PMID") or ""
            if kind in LINK_TYPES and linked.isdigit():
                links[int(record_pmid)].add((kind, int(linked)))
        if DUPLICATE_TYPE in [item.text for item in record.iterfind(".//PublicationType")]:
            duplicates.add(int(record_pmid))
    storage, reader = LocalStorage(), make_reader(PubMedConfig(), keep_dropped=False)
    abstracts: dict[tuple[int, str, tuple[str, ...]], Abstract] = {}
    for source in discover_sources(storage, [str(folder), f"{folder}/**/*.@*"]):
        try:
            documents = [record.document for record in reader.read_records(storage, source)]
        except BadFileError:
            continue
        for document in documents:
            if document is None or not document.sections or document.pmid is None:
                continue
            pmid, text = document.pmid, tuple(document.sentences[document.sections[0][1] :])
            if normalise_words(" ".join(text)):
                linked_pmids = tuple(sorted(links[pmid]))
                abstract = Abstract(pmid, document.title, text, linked_pmids, pmid in duplicates)
                abstracts.setdefault((pmid, document.title, text), abstract)
    return list(abstracts.values())


def find_exact(abstracts: Sequence[Abstract], lowest: float) -> dict[Pair, float]:
    """Compute the exact similarity of all pairs that have one of at least ``lowest``."""
    by_shingle: dict[bytes, list[int]] = collections.defaultdict(list)
    for number, abstract in enumerate(abstracts):
        for shingle in abstract.shingles:
            by_shingle[shingle].append(number)
    common: collections.Counter[Pair] = collections.Counter()
    for numbers in by_shingle.values():
        common.update(itertools.combinations(numbers, 2))
    similarities = {}
    for (first, second), count in common.items():
        total = len(abstracts[first].shingles) + len(abstracts[second].shingles) - count
        if count / total >= lowest:
            similarities[first, second] = count / total
    return similarities


def make_table(signatures: Sequence[UInt32Array]) -> SignatureTable:
    """Make a table of one source; the lowest number is kept."""
    rows = [(number, f"pubmed:{number}", number, None) for number in range(len(signatures))]
    table = pa.Table.from_batches([make_signature_batch(rows, signatures)], SIGNATURE_SCHEMA)
    return SignatureTable(LocalStorage(), [table.select])


def find_candidates(signatures: Sequence[UInt32Array]) -> set[Pair]:
    """Return the candidates of all bands."""
    table = make_table(signatures)
    pairs = np.unique(np.concatenate([table.find_candidates(band, 0, 1) for band in range(NUM_BANDS)]))
    return {divmod(pair, 1 << 32) for pair in pairs.tolist()}


def is_linked(first: UInt32Array, second: UInt32Array) -> bool:
    """Return True if two signatures share a band and agree in enough values."""
    agrees = (first == second).reshape(NUM_BANDS, BAND_ROWS)
    return bool(agrees.all(axis=1).any() and agrees.mean() >= THRESHOLD)


def compare_with_exact(abstracts: Sequence[Abstract]) -> None:
    """Print recall and precision over all pairs of real abstracts."""
    exact = find_exact(abstracts, 0.3)
    signatures = [abstract.signature for abstract in abstracts]
    links = {
        (first, second)
        for first, second in exact.keys() | find_candidates(signatures)
        if is_linked(signatures[first], signatures[second])
    }
    is_short = [len(abstract.shingles) == 1 for abstract in abstracts]
    print(
        f"{len(abstracts):,} distinct texts of {len({abstract.pmid for abstract in abstracts}):,} citations, "
        f"{sum(is_short):,} of fewer than {MIN_WORDS} words.\n\n"
        "| exact similarity | pairs | linked | expected |\n|---|---|---|---|"
    )
    edges = (0.3, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 1.0, 1.01)
    for low, high in itertools.pairwise(edges):
        pairs = {pair: value for pair, value in exact.items() if low <= value < high}
        expected = sum(map(compute_drop_probability, pairs.values()))
        label = "1" if low == 1 else f"{low:g} to {high:g}"
        print(f"| {label} | {len(pairs):,} | {len(links & pairs.keys()):,} | {expected:.1f} |")
    true = {pair for pair, value in exact.items() if value >= THRESHOLD}
    near = {pair for pair, value in exact.items() if value >= THRESHOLD - 0.1}
    print(
        f"\nrecall {len(links & true) / len(true):.4f}, precision {len(links & true) / len(links):.4f} at "
        f"{THRESHOLD}; {len(links - near)} links are of pairs below {THRESHOLD - 0.1:.1f}\n"
    )


def compare_with_pubmed_links(abstracts: Sequence[Abstract]) -> None:
    """Print what becomes of the pairs that PubMed links, where both have an abstract here."""
    by_pmid = {abstract.pmid: abstract for abstract in abstracts}
    num_links = sum(len(abstract.links) for abstract in by_pmid.values())
    duplicates = [abstract for abstract in by_pmid.values() if abstract.is_duplicate]
    pairs = {
        frozenset((abstract.pmid, pmid)): kind
        for abstract in abstracts
        for kind, pmid in abstract.links
        if pmid in by_pmid and pmid != abstract.pmid
    }
    print(
        f"PubMed's links: {num_links} of the types {', '.join(LINK_TYPES)}, {len(pairs)} with both abstracts "
        f"here; {len(duplicates)} records of the type {DUPLICATE_TYPE}.\n\n"
        "| link | sizes | exact | estimate | linked |\n|---|---|---|---|---|"
    )
    for pair, kind in pairs.items():
        first, second = (by_pmid[pmid] for pmid in sorted(pair))
        exact = len(first.shingles & second.shingles) / len(first.shingles | second.shingles)
        estimate = float((first.signature == second.signature).mean())
        answer = "yes" if is_linked(first.signature, second.signature) else "no"
        sizes = f"{len(first.shingles)} and {len(second.shingles)}"
        print(f"| {kind} | {sizes} shingles | {exact:.3f} | {estimate:.3f} | {answer} |")
    print()


def make_word(rng: random.Random, num_words: int) -> str:
    """Return a word of letters: datatrove takes all numbers for the same."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(rng.randrange(num_words)))


def edit(words: Sequence[str], rate: float, rng: random.Random) -> list[str]:
    """Replace, delete or insert words, each with a third of the rate."""
    edited: list[str] = []
    for word in words:
        draw = rng.random() / rate
        if draw < 1 / 3:
            edited.append(make_word(rng, 1_000_000))
        elif draw < 2 / 3:
            edited += [word, make_word(rng, 1_000_000)]
        elif draw >= 1:
            edited.append(word)
    return edited


def compare_edits(abstracts: Sequence[Abstract]) -> None:
    """Print how many edited abstracts are linked with the original."""
    rng = random.Random(1)
    print("| changed words | mean similarity | linked | expected |\n|---|---|---|---|")
    long_ones = [abstract for abstract in abstracts if len(abstract.shingles) >= 50]
    for rate in EDIT_RATES:
        similarities, num_linked = [], 0
        for abstract in long_ones:
            words = normalise_words(" ".join([abstract.title, *abstract.text])).decode().split()
            edited = Abstract(0, "", (" ".join(edit(words, rate, rng)),), (), False)
            common = len(abstract.shingles & edited.shingles)
            similarities.append(common / len(abstract.shingles | edited.shingles))
            num_linked += is_linked(abstract.signature, edited.signature)
        expected = np.mean(list(map(compute_drop_probability, similarities)))
        share = num_linked / len(long_ones)
        print(f"| {rate:.1%} | {np.mean(similarities):.3f} | {share:.1%} | {expected:.1%} |")
    print()


def drop_with_bioshards(texts: Sequence[str]) -> list[int]:
    """Return the numbers of the texts that are dropped."""
    signatures = [signature for text in texts if (signature := compute_signature("", [text])) is not None]
    table = make_table(signatures)
    pairs = np.concatenate([table.find_candidates(band, 0, 1) for band in range(NUM_BANDS)])
    return [row["position"] for batch in table.find_near_duplicates(pairs) for row in batch.to_pylist()]


def compare_with_peers(peers: str | None, num_texts: int) -> None:
    """Print time, memory and errors of each tool on pairs of a text and its edited copy."""
    rng = random.Random(2)
    texts, similarities = list[str](), list[float]()
    for _ in range(num_texts // 2):
        words = [make_word(rng, 30_000) for _ in range(rng.randrange(60, 320))]
        edited = edit(words, rng.uniform(0.001, 0.06), rng)
        texts += [" ".join(words), " ".join(edited)]
        first, second = (
            {tuple(side[start : start + SHINGLE_WORDS]) for start in range(len(side) - SHINGLE_WORDS + 1)}
            for side in (words, edited)
        )
        similarities.append(len(first & second) / len(first | second))
    commands = {"bioshards": [sys.executable, "-m", "tests.bench.bench_near_duplicates", "--drop"]}
    for tool in peer_near_duplicates.TOOLS if peers else ():
        commands[tool] = [str(peers), peer_near_duplicates.__file__, tool]
    exact = {number for number, similarity in enumerate(similarities) if similarity >= THRESHOLD}
    print(
        f"{len(texts):,} synthetic texts, {len(exact):,} of {len(similarities):,} pairs of a similarity of "
        f"{THRESHOLD} or more.\n\n"
        "| | CPU | texts/s | peak | recall | precision | recall from 0.9 | dropped below 0.7 |\n"
        "|---|---|---|---|---|---|---|---|"
    )
    for tool, command in commands.items():
        run = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, check=False)
        if run.returncode:
            print(f"{tool}: not compared: {run.stderr.strip().splitlines()[-1]}")
            continue
        outcome = json.loads(run.stdout.splitlines()[-1])
        dropped = {number // 2 for number in outcome["dropped"]}
        high = {number for number, similarity in enumerate(similarities) if similarity >= 0.9}
        far = {number for number in dropped if similarities[number] < 0.7}
        recall, precision = len(dropped & exact) / len(exact), len(dropped & exact) / len(dropped)
        print(
            f"| {tool} | {outcome['seconds']:.1f} s | {len(texts) / outcome['seconds']:,.0f} | "
            f"{outcome['peak_mb']:.0f} MB | {recall:.3f} | {precision:.3f} | "
            f"{len(dropped & high) / len(high):.4f} | {len(far)} |"
        )
    print()


def make_synthetic_columns(source: int, columns: Sequence[str], num_documents: int) -> pa.Table:
    """Return columns of random signatures; every 50th document is nearly a copy of the one before."""
    arrays = []
    for name in columns:
        rng = np.random.default_rng([source, SIGNATURE_SCHEMA.get_field_index(name)])
        numbers = np.arange(source * num_documents, (source + 1) * num_documents)
        if name.startswith("band_"):
            values = rng.integers(0, 1 << 32, (num_documents, BAND_ROWS), dtype=np.uint32)
            copies = np.arange(50, num_documents, 50)
            values[copies] = values[copies - 1]
            values[copies, 0] += (rng.random(len(copies)) < 0.5).astype(np.uint32)
            buffers = [None, pa.py_buffer(values)]
            arrays.append(pa.Array.from_buffers(pa.binary(4 * BAND_ROWS), num_documents, buffers))
        elif name == "id":
            arrays.append(pa.array([f"pubmed:{number}" for number in numbers.tolist()]))
        elif name == "digest":
            arrays.append(pa.array(rng.integers(0, 1 << 63, num_documents).astype(np.uint64)))
        else:
            arrays.append(pa.array(numbers % 30_000).cast(SIGNATURE_SCHEMA.field(name).type))
    return pa.table(arrays, schema=pa.schema([SIGNATURE_SCHEMA.field(name) for name in columns]))


def measure_scale(step: str, num_documents: int) -> None:
    """Find the candidates of a band, or decide on those of all, and print what it took as JSON."""
    num_sources = -(-num_documents // DOCUMENTS_PER_SOURCE)
    per_source = num_documents // num_sources
    readers = [
        functools.partial(make_synthetic_columns, source, num_documents=per_source)
        for source in range(num_sources)
    ]

    reading = 0.0

    def read(reader: functools.partial[pa.Table], columns: Sequence[str]) -> pa.Table:
        nonlocal reading
        started = time.process_time()
        table = reader(columns)
        reading += time.process_time() - started
        return table

    table = SignatureTable(LocalStorage(), [functools.partial(read, reader) for reader in readers])
    started = time.process_time()
    if step == "candidates":
        found = len(table.find_candidates(1, 0, count_buckets(num_documents)))
    else:
        copies = np.concatenate(
            [np.arange(50, per_source, 50) + source * per_source for source in range(num_sources)]
        )
        pairs = ((copies - 1) << 32 | copies).astype(np.uint64)
        reading = 0.0
        found = sum(batch.num_rows for batch in table.find_near_duplicates(np.tile(pairs, NUM_BANDS)))
    seconds = time.process_time() - started - reading
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(json.dumps({"found": found, "seconds": seconds, "peak_mb": peak_mb}))


def run_scale(num_documents: Sequence[int]) -> None:
    """Print time and memory of the steps on synthetic signatures."""
    print("| documents | step | CPU, reading apart | peak of a process | found |\n|---|---|---|---|---|")
    for count in num_documents:
        for step in ("candidates", "decide"):
            command = [sys.executable, "-m", "tests.bench.bench_near_duplicates", "--scale-step", step]
            command += ["--documents", str(count)]
            run = subprocess.run(command, capture_output=True, text=True, check=True)
            outcome = json.loads(run.stdout)
            label = "similarities, clusters"
            if step == "candidates":
                label = f"candidates of a band, bucket 1 of {count_buckets(count)}"
            print(
                f"| {count:,} | {label} | {outcome['seconds']:.1f} s | {outcome['peak_mb']:.0f} MB | "
                f"{outcome['found']:,} |",
                flush=True,
            )
    print()


def time_signatures(abstracts: Sequence[Abstract]) -> None:
    """Print how long signatures of real abstracts take."""
    started = time.process_time()
    for abstract in abstracts:
        compute_signature(abstract.title, abstract.text)
    microseconds = (time.process_time() - started) / len(abstracts) * 1e6
    print(f"a signature of a real abstract: {microseconds:.0f} µs CPU, {4 * NUM_HASHES} bytes\n")


def main() -> None:
    """Run all comparisons and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_near_duplicates", description=__doc__)
    parser.add_argument("--peers", help="Python with other tools")
    parser.add_argument("--texts", type=int, default=20_000, help="synthetic texts (default: %(default)s)")
    parser.add_argument("--documents", type=int, action="append", help="synthetic signatures; repeatable")
    parser.add_argument("--drop", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--scale-step", choices=("candidates", "decide"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drop:
        peer_near_duplicates.report(drop_with_bioshards)
    elif options.scale_step:
        measure_scale(options.scale_step, options.documents[0])
    else:
        abstracts = load_abstracts()
        compare_with_exact(abstracts)
        compare_with_pubmed_links(abstracts)
        compare_edits(abstracts)
        time_signatures(abstracts)
        compare_with_peers(options.peers, options.texts)
        run_scale(options.documents or (2_000_000, ALL_ABSTRACTS))


if __name__ == "__main__":
    main()
