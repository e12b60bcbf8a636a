"""Near duplicates against exact similarities, other tools, and at scale.

``python -m tests.bench.bench_near_duplicates`` compares the links of signatures with the exact Jaccard
similarity of all pairs of real abstracts (BIOSHARDS_DATA) and of abstracts with edits at known rates, and
finds duplicates among the signatures of all of PubMed, which are synthetic.  ``--peers PYTHON`` adds the
tools that it can import:

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
from typing import Final

import numpy as np
import pyarrow as pa

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.lifecycle.near_duplicates import (
    BAND_ROWS,
    MIN_WORDS,
    NUM_BANDS,
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
from tests.bench.harness import peer_near_duplicates
from tests.bench.harness.text_corpora import get_data_dir
from tests.bench.harness.timing import MB

EDIT_RATES: Final = (0.005, 0.01, 0.02, 0.04, 0.08)
"""Fractions of changed words."""
ALL_ABSTRACTS: Final = 40_000_000
DOCUMENTS_PER_SOURCE: Final = 400_000
Pair = tuple[int, int]


@dataclass(frozen=True)
class Abstract:
    """A distinct text of a record: revisions of a citation are several."""

    title: str
    text: tuple[str, ...]

    @functools.cached_property
    def words(self) -> list[str]:
        return normalise_words(" ".join([self.title, *self.text])).decode().split()

    @functools.cached_property
    def shingles(self) -> frozenset[tuple[str, ...]]:
        if len(self.words) < MIN_WORDS:
            return frozenset([tuple(self.words)])
        return frozenset(zip(*(self.words[start:] for start in range(SHINGLE_WORDS)), strict=False))

    @functools.cached_property
    def signature(self) -> UInt32Array:
        signature = compute_signature(self.title, self.text)
        assert signature is not None
        return signature


def load_abstracts() -> list[Abstract]:
    """Load the distinct texts of all real records with an abstract, revisions included."""
    folder = get_data_dir() / "pubmed"
    storage, reader = LocalStorage(), make_reader(PubMedConfig(), keep_dropped=False)
    abstracts = {}
    for source in discover_sources(storage, [str(folder), f"{folder}/**/*.@*"]):
        try:
            documents = [record.document for record in reader.read_records(storage, source)]
        except BadFileError:
            continue
        for document in documents:
            if document is not None and document.sections:
                text = tuple(document.sentences[document.sections[0][1] :])
                if normalise_words(" ".join(text)):
                    abstracts[document.pmid, document.title, text] = Abstract(document.title, text)
    return list(abstracts.values())


def compute_similarity(first: Abstract, second: Abstract) -> float:
    """Compute the exact Jaccard similarity."""
    return len(first.shingles & second.shingles) / len(first.shingles | second.shingles)


def find_similar_pairs(abstracts: Sequence[Abstract]) -> dict[Pair, float]:
    """Compute the exact similarity of all pairs that have a shingle in common."""
    by_shingle: dict[tuple[str, ...], list[int]] = collections.defaultdict(list)
    for number, abstract in enumerate(abstracts):
        for shingle in abstract.shingles:
            by_shingle[shingle].append(number)
    pairs = {pair for numbers in by_shingle.values() for pair in itertools.combinations(numbers, 2)}
    return {(one, two): compute_similarity(abstracts[one], abstracts[two]) for one, two in pairs}


def is_linked(first: UInt32Array, second: UInt32Array) -> bool:
    """Return True if two signatures share a band and agree in enough values."""
    agrees = (first == second).reshape(NUM_BANDS, BAND_ROWS)
    return bool(agrees.all(axis=1).any() and agrees.mean() >= THRESHOLD)


def compare_with_exact(abstracts: Sequence[Abstract]) -> None:
    """Print recall and precision over all pairs of real abstracts."""
    exact = find_similar_pairs(abstracts)
    links = {pair for pair in exact if is_linked(abstracts[pair[0]].signature, abstracts[pair[1]].signature)}
    true = {pair for pair, similarity in exact.items() if similarity >= THRESHOLD}
    expected = sum(map(compute_drop_probability, exact.values()))
    print(
        f"{len(abstracts):,} distinct texts: of {len(true)} pairs of {THRESHOLD} or more {len(links & true)} "
        f"are linked, of others {len(links - true)}; {expected:.1f} links are expected.\n"
    )


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
        edited = [Abstract("", (" ".join(edit(abstract.words, rate, rng)),)) for abstract in long_ones]
        pairs = list(zip(long_ones, edited, strict=True))
        similarities = [compute_similarity(*pair) for pair in pairs]
        linked = np.mean([is_linked(first.signature, second.signature) for first, second in pairs])
        expected = np.mean(list(map(compute_drop_probability, similarities)))
        print(f"| {rate:.1%} | {np.mean(similarities):.3f} | {linked:.1%} | {expected:.1%} |")
    print()


def drop_with_bioshards(texts: Sequence[str]) -> list[int]:
    """Return the numbers of the texts that are dropped; the lowest number of similar ones is kept."""
    signatures = [signature for text in texts if (signature := compute_signature("", [text])) is not None]
    rows = [(number, f"pubmed:{number}", number, None) for number in range(len(signatures))]
    batch = make_signature_batch(rows, signatures)
    table = SignatureTable(LocalStorage(), [pa.Table.from_batches([batch], SIGNATURE_SCHEMA).select])
    pairs = np.concatenate([table.find_candidates(band, 0, 1) for band in range(NUM_BANDS)])
    return [row["position"] for batch in table.find_near_duplicates(pairs) for row in batch.to_pylist()]


def compare_with_peers(peers: str | None, num_texts: int) -> None:
    """Print speed and errors of each tool on pairs of a text and its edited copy."""
    rng = random.Random(2)
    texts, similarities = list[str](), list[float]()
    for _ in range(num_texts // 2):
        words = [make_word(rng, 30_000) for _ in range(rng.randrange(60, 320))]
        pair = [" ".join(words), " ".join(edit(words, rng.uniform(0.001, 0.06), rng))]
        texts += pair
        similarities.append(compute_similarity(Abstract("", (pair[0],)), Abstract("", (pair[1],))))
    commands = {"bioshards": [sys.executable, "-m", "tests.bench.bench_near_duplicates", "--drop"]}
    for tool in peer_near_duplicates.TOOLS if peers else ():
        commands[tool] = [str(peers), peer_near_duplicates.__file__, tool]
    exact = {number for number, similarity in enumerate(similarities) if similarity >= THRESHOLD}
    far = {number for number, similarity in enumerate(similarities) if similarity < THRESHOLD - 0.1}
    print(
        f"{len(texts):,} synthetic texts, {len(exact):,} of {len(similarities):,} pairs of {THRESHOLD} "
        "or more"
    )
    print("\n| | texts/s | peak | recall | precision | dropped below 0.7 |\n|---|---|---|---|---|---|")
    for tool, command in commands.items():
        run = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, check=False)
        if run.returncode:
            print(f"{tool}: not compared: {run.stderr.strip().splitlines()[-1]}")
            continue
        outcome = json.loads(run.stdout.splitlines()[-1])
        dropped = {number // 2 for number in outcome["dropped"]}
        recall, precision = len(dropped & exact) / len(exact), len(dropped & exact) / len(dropped)
        print(
            f"| {tool} | {len(texts) / outcome['seconds']:,.0f} | {outcome['peak_mb']:.0f} MB | {recall:.3f} "
            f"| {precision:.3f} | {len(dropped & far)} |"
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


def measure_scale(num_documents: int) -> None:
    """Find the candidates of a band among synthetic signatures, decide on those of all, and print it."""
    num_sources = -(-num_documents // DOCUMENTS_PER_SOURCE)
    per_source = num_documents // num_sources
    readers = [
        functools.partial(make_synthetic_columns, source, num_documents=per_source)
        for source in range(num_sources)
    ]
    table = SignatureTable(LocalStorage(), readers)
    started = time.process_time()
    num_candidates = len(table.find_candidates(1, 0, count_buckets(num_documents)))
    seconds = [time.process_time() - started]
    copies = np.arange(50, per_source, 50) + per_source * np.arange(num_sources)[:, None]
    pairs = ((copies - 1) << 32 | copies).astype(np.uint64).ravel()
    started = time.process_time()
    num_dropped = sum(batch.num_rows for batch in table.find_near_duplicates(np.tile(pairs, NUM_BANDS)))
    seconds.append(time.process_time() - started)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / MB
    print(
        f"{num_documents:,} signatures, made anew at each reading: {num_candidates:,} candidates of a band "
        f"in bucket 1 of {count_buckets(num_documents)}, {seconds[0]:.0f} s; {num_dropped:,} dropped, "
        f"{seconds[1]:.0f} s; peak {peak_mb:.0f} MB (bar 1,500: {'met' if peak_mb <= 1500 else 'NOT met'})"
    )


def main() -> None:
    """Run all comparisons and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_near_duplicates", description=__doc__)
    parser.add_argument("--peers", help="Python with other tools")
    parser.add_argument("--texts", type=int, default=20_000, help="synthetic texts (default: %(default)s)")
    parser.add_argument("--documents", type=int, default=ALL_ABSTRACTS, help="signatures (%(default)s)")
    parser.add_argument("--drop", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.drop:
        peer_near_duplicates.report(drop_with_bioshards)
        return
    measure_scale(options.documents)
    abstracts = load_abstracts()
    compare_with_exact(abstracts)
    compare_edits(abstracts)
    compare_with_peers(options.peers, options.texts)


if __name__ == "__main__":
    main()
