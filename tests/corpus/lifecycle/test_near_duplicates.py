"""Near duplicates: signatures, candidates and clusters against oracles."""

from __future__ import annotations

import functools
import random
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.lifecycle import finalize, near_duplicates
from bioshards.corpus.lifecycle.decisions import DECISION_SCHEMA
from bioshards.corpus.lifecycle.near_duplicates import (
    BAND_COLUMNS,
    BAND_ROWS,
    MIN_WORDS,
    NUM_BANDS,
    NUM_HASHES,
    SHINGLE_WORDS,
    SIGNATURE_SCHEMA,
    SignatureTable,
    UInt32Array,
    compute_drop_probability,
    compute_signature,
    make_signature_batch,
    normalise_words,
)
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.fork_server import kill_when, run_beam, start_beam
from tests.support.hypothesis_profiles import examples
from tests.support.outputs import load_documents, load_manifest, published_digests

# Signatures


def make_words(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [f"w{rng.randrange(5000)}" for _ in range(count)]


def find_shingles(words: list[str]) -> set[tuple[str, ...]]:
    if len(words) < MIN_WORDS:
        return {tuple(words)}
    return {tuple(words[start : start + SHINGLE_WORDS]) for start in range(len(words) - SHINGLE_WORDS + 1)}


def sign(text: str, title: str = "") -> UInt32Array:
    signature = compute_signature(title, [text])
    assert signature is not None
    return signature


def test_estimates_agree_with_exact_jaccard() -> None:
    """The mean error over pairs with independent words is that of a binomial."""
    errors = []
    for seed in range(150):
        rng, words = random.Random(seed), make_words(rng_size := 60 + seed, seed)
        edited = list(words)
        for _ in range(seed % 12):
            edited[rng.randrange(rng_size)] = "edited"
        first, second = find_shingles(words), find_shingles(edited)
        exact = len(first & second) / len(first | second)
        estimate = float((sign(" ".join(words)) == sign(" ".join(edited))).mean())
        assert abs(estimate - exact) <= 4.5 * (exact * (1 - exact) / NUM_HASHES) ** 0.5
        errors.append(estimate - exact)
    assert abs(np.mean(errors)) < 0.01


def test_signature_compares_words_only() -> None:
    words = make_words(80, 1)
    text = " ".join(words)
    assert (sign(text) == sign(f"({text.upper()})!")).all()
    assert (sign(" ".join(words[5:]), " ".join(words[:5])) == sign(text)).all()
    assert (sign(f"{text} é") == sign(f"{', '.join(words)} E\u0301.")).all()
    assert compute_signature("Title", ["...", " "]) is None


@settings(max_examples=examples(200))
@given(
    st.text(st.sampled_from("aAb1٣é\u0301ßK℃µ²ﬁΣς½_ .-\n\u00a0\u00ad[漢"), max_size=12) | st.text(max_size=8)
)
def test_words_are_runs_of_letters_and_digits(text: str) -> None:
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    expected = "".join(character if character.isalnum() else " " for character in folded).split()
    assert normalise_words(text).decode().split(" ") == (expected or [""])


@pytest.mark.parametrize(("num_words", "is_exact"), [(MIN_WORDS - 1, True), (MIN_WORDS, False)])
def test_short_texts_have_exact_duplicates_only(num_words: int, is_exact: bool) -> None:
    words = make_words(num_words, 2)
    agreement = (sign(" ".join(words)) == sign(" ".join([*words[:-1], "other"]))).mean()
    assert agreement < 0.1 if is_exact else agreement > 0.9
    assert len(find_shingles(words)) == (1 if is_exact else MIN_WORDS - SHINGLE_WORDS + 1)


def test_hash_family_is_fixed() -> None:
    assert sign("alpha beta gamma")[:3].tolist() == [989721797, 46219287, 1095076094]
    long_text = " ".join(make_words(2000, 3))  # of several blocks
    assert sign(long_text)[-3:].tolist() == [2683412, 4089, 15546]


def test_drop_probability_is_that_of_simulated_signatures() -> None:
    rng = np.random.default_rng(0)
    for similarity in (0.6, 0.75, 0.8, 0.85, 0.95):
        agrees = rng.random((20_000, NUM_BANDS, BAND_ROWS)) < similarity
        is_linked = np.any(np.all(agrees, axis=2), axis=1) & (agrees.sum(axis=(1, 2)) >= 96)
        assert abs(is_linked.mean() - compute_drop_probability(similarity)) < 0.015
    lines = re.findall(r"of (0\.\d+) with (0\.\d+)", re.sub(r"\s+", " ", near_duplicates.__doc__ or ""))
    assert len(lines) == 5
    for similarity_text, probability in lines:
        assert f"{compute_drop_probability(float(similarity_text)):.{len(probability) - 2}f}" == probability


# Candidates and clusters


@dataclass(frozen=True)
class SignedDocument:
    key: int
    id: str
    year: int | None
    signature: tuple[int, ...]

    @property
    def rank(self) -> tuple[int, int, str]:
        return (-(self.year if self.year is not None else -1), self.key, self.id)


@st.composite
def signed_documents(draw: st.DrawFn) -> list[SignedDocument]:
    """Draw documents whose signatures are copies of one another with some values changed."""
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    documents: list[SignedDocument] = []
    for key in draw(st.lists(st.integers(1, 40), unique=True, max_size=25)):
        if documents and rng.random() < 0.8:
            values = list(rng.choice(documents).signature)
            for index in rng.sample(range(NUM_HASHES), rng.choice((0, 0, 3, 15, 24, 25, 40))):
                values[index] = rng.randrange(1 << 32)
        else:
            values = [rng.randrange(1 << 32) for _ in range(NUM_HASHES)]
        year = rng.choice((None, 1999, 2020))
        documents.append(SignedDocument(key // 2, f"pubmed:{key}", year, tuple(values)))
    return documents


Found = dict[str, tuple[str, float]]
"""Original and similarity by the id of a near duplicate."""


def is_linked(first: SignedDocument, second: SignedDocument) -> bool:
    agrees = [a == b for a, b in zip(first.signature, second.signature, strict=True)]
    bands = [all(agrees[start : start + BAND_ROWS]) for start in range(0, NUM_HASHES, BAND_ROWS)]
    return any(bands) and sum(agrees) >= 0.8 * NUM_HASHES


def find_expected(documents: list[SignedDocument]) -> Found:
    """Walk the graph of links from each document in the order of ranks."""
    expected: Found = {}
    seen: set[str] = set()
    for kept in sorted(documents, key=lambda document: document.rank):
        stack = [] if kept.id in seen else [kept]
        seen.add(kept.id)
        while stack:
            document = stack.pop()
            for other in documents:
                if other.id not in seen and is_linked(document, other):
                    agreements = sum(map(int.__eq__, kept.signature, other.signature))
                    expected[other.id] = kept.id, round(agreements / NUM_HASHES, 6)
                    seen.add(other.id)
                    stack.append(other)
    return expected


def find_all(documents: list[SignedDocument], num_sources: int, num_buckets: int) -> Found:
    """Distribute documents over sources and find the near duplicates of all."""
    sources = [documents[index::num_sources] for index in range(num_sources)]

    def make_table(source: list[SignedDocument]) -> pa.Table:
        rows = [(item.key, item.id, 3 * index, item.year) for index, item in enumerate(source)]
        batch = make_signature_batch(rows, [np.array(item.signature, np.uint32) for item in source])
        batch.validate(full=True)
        return pa.Table.from_batches([batch], SIGNATURE_SCHEMA)

    signatures = SignatureTable(LocalStorage(), [make_table(source).select for source in sources])
    candidates = [
        signatures.find_candidates(band, bucket, num_buckets)
        for band in range(NUM_BANDS)
        for bucket in range(num_buckets)
    ]
    found: Found = {}
    batches = list(signatures.find_near_duplicates(np.concatenate(candidates)))
    assert len(batches) == num_sources
    for source, batch in zip(sources, batches, strict=True):
        assert batch.schema == DECISION_SCHEMA
        batch.validate(full=True)
        for row in batch.to_pylist():
            assert row["reason"] == "near-duplicate"
            found[source[row["position"] // 3].id] = row["duplicate_of"], round(row["similarity"], 6)
    return found


@settings(max_examples=examples(60), deadline=None)
@given(signed_documents(), st.integers(1, 4), st.integers(1, 3), st.randoms(use_true_random=False))
def test_clusters_are_those_of_the_graph_in_any_order(
    documents: list[SignedDocument], num_sources: int, num_buckets: int, rng: random.Random
) -> None:
    shuffled = rng.sample(documents, len(documents))
    assert find_all(shuffled, num_sources, num_buckets) == find_expected(documents)


def test_long_runs_of_a_band_give_the_same_clusters_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few of the pairs of a run are compared, the same ones in any order."""
    monkeypatch.setattr(near_duplicates, "MAX_RUN_DISTANCE", 2)
    base = [random.Random(4).randrange(1 << 32) for _ in range(NUM_HASHES)]
    documents = []
    for key in range(60):
        group, values = key // 3, list(base)  # three of each signature
        for index in random.Random(group).sample(range(NUM_HASHES), 11):
            values[index] = group
        documents.append(SignedDocument(key, f"pubmed:{key}", None, tuple(values)))
    orders = [random.Random(seed).sample(documents, len(documents)) for seed in range(3)]
    found = [find_all(order, 2, 1) for order in orders]
    assert found[0] == found[1] == found[2]
    originals = {f"pubmed:{key}": found[0].get(f"pubmed:{key}", (f"pubmed:{key}",))[0] for key in range(60)}
    assert all(originals[f"pubmed:{key}"] == originals[f"pubmed:{key - key % 3}"] for key in range(60))


def test_no_documents_give_no_candidates() -> None:
    assert find_all([], 2, 2) == {}
    assert BAND_COLUMNS[0] in SIGNATURE_SCHEMA.names


# Whole runs


def edit_text(seed: int, num_edits: int) -> str:
    """Return a text of 120 words, with some of them changed."""
    words = make_words(120, seed)
    for index in range(num_edits):
        words[9 + 7 * index] = "changed"
    return " ".join(words).capitalize() + "."


def dated_citation(pmid: int, seed: int, num_edits: int = 0, year: int = 2020) -> str:
    return citation_xml(pmid, edit_text(seed, num_edits)).replace("2020", str(year))


FIRST_FILES = (
    pubmed_set_xml(
        dated_citation(12, seed=1),
        dated_citation(13, seed=2),
        dated_citation(14, seed=3, year=2015),
        citation_xml(15, "A short text. Yes."),
        citation_xml(16, "A short text. No."),
    ),
    pubmed_set_xml(
        dated_citation(11, seed=1, num_edits=1),
        dated_citation(17, seed=2, num_edits=9),
        dated_citation(18, seed=3, num_edits=1, year=2021),
        citation_xml(19, "A SHORT text; no?"),
        *(dated_citation(pmid, seed=pmid) for pmid in range(30, 60)),
    ),
)
UPDATE = pubmed_set_xml(
    dated_citation(11, seed=5),
    dated_citation(10, seed=2, num_edits=1),
    dated_citation(9, seed=1, num_edits=2),
)
FIRST_DUPLICATES = {"12": "11", "14": "18", "19": "16"}
UPDATED_DUPLICATES = {"12": "9", "13": "10", "14": "18", "19": "16"}


def read_near_duplicates(output: Path) -> dict[str, str]:
    """Return the pairs of ``duplicates.tsv`` as PMIDs, after checks of the similarities and the manifest."""
    header, *lines = (output / "duplicates.tsv").read_text().splitlines()
    assert header == "id\tduplicate_of\tsimilarity"
    assert load_manifest(output)["funnel"]["dropped: near-duplicate"] == len(lines)
    assert load_manifest(output)["duplicates"][0]["rows"] == len(lines)
    rows = [line.split("\t") for line in lines]
    assert all(re.fullmatch(r"[01]\.\d{3}", similarity) for _, _, similarity in rows)
    assert {similarity for document, _, similarity in rows if document == "pubmed:19"} == {"1.000"}
    documents = load_documents(output)
    assert not {document for document, _, _ in rows} & documents.keys()
    assert {original for _, original, _ in rows} <= documents.keys()
    return {
        document.removeprefix("pubmed:"): original.removeprefix("pubmed:") for document, original, _ in rows
    }


def _has_file(folder: Path, pattern: str) -> bool:
    return any(folder.glob(pattern))


@pytest.mark.thorough
def test_near_duplicates_are_dropped_whatever_the_run(
    tmp_path: Path, run: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare a failed and repeated update with a twice killed run with other workers, order and buckets."""
    inputs, updated, whole = tmp_path / "in", tmp_path / "updated", tmp_path / "whole"
    inputs.mkdir()
    for number, content in enumerate(FIRST_FILES, 1):
        (inputs / f"pubmed26n{number:04d}.xml").write_bytes(content)
    command = ("--input", inputs, "--dedup", "near", "--output")
    assert run(*command, updated) == 0
    assert read_near_duplicates(updated) == FIRST_DUPLICATES
    signatures = {path: path.stat().st_mtime_ns for path in updated.glob(".bioshards/staged/*.signatures")}
    assert len(signatures) == 2

    def raise_killed(self: object) -> None:
        raise RuntimeError("killed")

    (inputs / "pubmed26n0003.xml").write_bytes(UPDATE)
    with monkeypatch.context() as patched:
        patched.setattr(finalize._Finalizer, "_count_funnel", raise_killed)
        assert run(*command, updated) == 1
    assert run(*command, updated) == 0
    assert read_near_duplicates(updated) == UPDATED_DUPLICATES
    assert all(path.stat().st_mtime_ns == mtime for path, mtime in signatures.items())
    files = sorted(inputs.iterdir(), reverse=True)
    reverse_inputs = [argument for path in files for argument in ("--input", path)]
    workers_command = ("run", "pubmed_to_shards", "--workers", 2, *reverse_inputs, "--dedup", "near")
    overrides = {"bioshards.corpus.lifecycle.near_duplicates:KEYS_PER_BUCKET": 30}
    for pattern in ("staged/*.signatures", "decisions/candidates-*"):
        has_file = functools.partial(_has_file, whole / ".bioshards", pattern)
        kill_when(start_beam(*workers_command, "--output", whole, overrides=overrides), has_file)
    assert not (whole / "manifest.json").exists()
    completed = run_beam(*workers_command, "--output", whole, overrides=overrides)
    assert completed.returncode == 0, completed.stderr
    assert len(list(whole.glob(".bioshards/decisions/candidates-*"))) == NUM_BANDS
    assert published_digests(updated) == published_digests(whole)
