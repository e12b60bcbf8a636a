"""Tests of ``beam run shards_to_pretraining``: tokens, labels and splits of rows, files, presets.

Documents are encoded with the tokenizers library, and the manifest's counts are computed again from documents
and rows.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from tokenizers import Tokenizer

from bioshards.corpus.output.output_layout import FORMAT, SPLITS
from bioshards.corpus.shards import pretraining_schema
from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.vocab.pretraining import example_recipes
from bioshards.vocab.pretraining.example_recipes import OBJECTIVES
from tests.support.corpus.datasets_library import load_with_datasets
from tests.support.outputs import load_manifest
from tests.support.vocab import synthetic_corpora
from tests.support.vocab.synthetic_corpora import PretrainingRow, UniqueWordCorpus, run_shards_to_pretraining

Capture = pytest.CaptureFixture[str]
CLS, SEP = 2, 3

OPTIONS_BY_KIND: dict[str, tuple[object, ...]] = {
    "electra": ("--objective", "electra"),
    "electra in short rows": ("--max-seq-length", 21, "--short-seq-prob", 0.5, "--single-segment-prob", 0.3),
    "electra in two passes, overflow kept": ("--keep-overflow", "--max-seq-length", 30, "--dupe-factor", 2),
    "bert in three passes": ("--objective", "bert", "--max-seq-length", 33, "--dupe-factor", 3),
    "albert": ("--objective", "albert", "--max-seq-length", 64),
    "albert as published": ("--objective", "albert", "--max-seq-length", 64, "--as-published"),
    "plain": ("--objective", "plain"),
    "plain in two passes": ("--objective", "plain", "--max-seq-length", 50, "--dupe-factor", 2),
}
"""Options of the pretraining sets that are built from the corpus of unique words."""


class TokenPosition(NamedTuple):
    """The document, sentence number and position in the document of a token."""

    document: str
    sentence: int
    position: int


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> UniqueWordCorpus:
    return synthetic_corpora.write_unique_word_corpus(tmp_path_factory.mktemp("unique"))


@pytest.fixture(scope="module")
def token_positions(corpus: UniqueWordCorpus) -> dict[int, TokenPosition]:
    """The position of each token, by token id."""
    positions: dict[int, TokenPosition] = {}
    for document in corpus.documents:
        position = 0
        for sentence, ids in enumerate(encode_sentences(corpus.vocabulary, document.sentences)):
            for token in ids:
                assert token not in positions
                positions[token] = TokenPosition(document.id, sentence, position)
                position += 1
    return positions


@pytest.fixture(scope="module")
def build_set(corpus: UniqueWordCorpus, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Build the set of a kind on first use, and return its directory."""
    folder = tmp_path_factory.mktemp("made")

    def make(kind: str) -> Path:
        output = folder / kind
        if not output.exists():
            assert (
                run_shards_to_pretraining(
                    *corpus.input_options(),
                    *OPTIONS_BY_KIND[kind],
                    "--validation-fraction",
                    0.2,
                    "--output",
                    output,
                )
                == 0
            )
        return output

    return make


@pytest.fixture(scope="module")
def prose(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Abstracts and articles of invented sentences."""
    folder = tmp_path_factory.mktemp("prose")
    return (
        synthetic_corpora.write_abstracts(folder / "abstracts", one=range(100, 160), two=range(160, 220)),
        synthetic_corpora.write_articles(folder / "articles", PMC1=range(100, 108)),
    )


@pytest.fixture(scope="module")
def vocabulary(prose: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic_corpora.build_vocabulary(tmp_path_factory.mktemp("vocabulary") / "v", *prose)


def encode_sentences(vocabulary: Path, sentences: list[str]) -> list[list[int]]:
    """Return the token ids of sentences by the tokenizers library."""
    tokenizer = Tokenizer.from_file(str(vocabulary / "tokenizer.json"))
    return [encoding.ids for encoding in tokenizer.encode_batch(sentences, add_special_tokens=False)]


def split_documents(row: PretrainingRow, objective: str) -> list[tuple[int, ...]]:
    """Return the tokens of each document of a row, without special tokens."""
    if objective == "electra":
        return [tuple(token for segment in row.segments for token in segment)]
    if objective != "plain":
        return list(row.segments)
    parts = itertools.groupby(row.ids, lambda token: token in (CLS, SEP))
    return [tuple(part) for is_special, part in parts if not is_special]


def find_document(tokens: tuple[int, ...], token_positions: dict[int, TokenPosition]) -> str:
    """Return the one document of tokens."""
    (document,) = {token_positions[token].document for token in tokens}
    return document


def load_validation_documents(output: Path, token_positions: dict[int, TokenPosition]) -> set[str]:
    """Return the documents of the validation rows."""
    rows = synthetic_corpora.load_rows(output, "validation")
    return {token_positions[token].document for row in rows for token in row.ids if token > SEP}


def load_config(output: Path) -> dict[str, Any]:
    config: dict[str, Any] = load_manifest(output)["config"]
    return config


# Rows


@pytest.mark.parametrize("kind", OPTIONS_BY_KIND)
def test_every_token_is_in_a_row_or_counted_as_lost(
    kind: str,
    build_set: Callable[[str], Path],
    corpus: UniqueWordCorpus,
    token_positions: dict[int, TokenPosition],
) -> None:
    """The manifest's counts of a split equal those computed from documents and rows."""
    output = build_set(kind)
    objective, counts = load_config(output)["objective"], load_manifest(output)["counts"]
    sizes = Counter(position.document for position in token_positions.values())
    reason = {"electra": "overflow", "bert": "truncated", "albert": "truncated"}
    seen_documents: set[str] = set()
    for split, rows in synthetic_corpora.load_rows_by_split(output).items():
        passes = load_config(output)["dupe_factor"] if split == "train" else 1
        own_tokens, other_document_tokens = Counter[int](), 0
        for row in rows:
            first, *others = split_documents(row, objective)
            own_tokens.update(first)
            for tokens in others:
                is_own = find_document(tokens, token_positions) == find_document(first, token_positions)
                if is_own or objective == "plain":
                    own_tokens.update(tokens)
                else:
                    other_document_tokens += len(tokens)
        documents = {token_positions[token].document for token in own_tokens}
        assert not documents & seen_documents
        seen_documents |= documents
        assert set(own_tokens.values()) <= set(range(1, passes + 1))
        input_tokens = passes * sum(sizes[document] for document in documents)
        lost_tokens = input_tokens - own_tokens.total()
        assert counts[split] == {
            "documents": len(documents),
            "rows": len(rows),
            "unlabelled_rows": sum(row.label == -100 for row in rows),
            "tokens": sum(len(row.ids) for row in rows),
            "special_tokens": sum(token in (CLS, SEP) for row in rows for token in row.ids),
            "other_document_tokens": other_document_tokens,
            "input_tokens": input_tokens,
            "unknown_tokens": 0,
            "lost_tokens": {reason[objective]: lost_tokens} if lost_tokens else {},
        }
        split_counts = counts[split]
        assert split_counts["input_tokens"] == split_counts["tokens"] - split_counts[
            "special_tokens"
        ] - split_counts["other_document_tokens"] + sum(split_counts["lost_tokens"].values())
        assert lost_tokens == 0 or (objective != "plain" and "kept" not in kind)
        assert (other_document_tokens > 0) == (
            objective == "bert" or "published" in kind
        ) or split == "validation"
    assert seen_documents == sizes.keys()
    years: dict[str, Counter[str]] = {"pubmed": Counter(), "pmc": Counter()}
    for document in corpus.documents:
        if size := sizes[document.id]:
            years[document.source][str(document.year or "unknown")] += size
    assert counts["years"] == years
    assert (counts["documents"], counts["dropped"], counts["rejected"]) == (103, {"no-tokens": 1}, {})


# Labels


def test_next_sentence_labels(
    build_set: Callable[[str], Path], token_positions: dict[int, TokenPosition]
) -> None:
    output, labels = build_set("bert in three passes"), Counter[int | None]()
    length = load_config(output)["max_seq_length"]
    for split in SPLITS:
        for path in synthetic_corpora.list_shards(output, split):
            rows = synthetic_corpora.load_shard_rows(path)
            is_single_document = len({token_positions[row.ids[1]].document for row in rows}) == 1
            for row in rows:
                labels[row.label] += 1
                assert (row.label == NO_LABEL) == (not row.split)
                documents = {find_document(segment, token_positions) for segment in row.segments}
                assert (row.label == 1) == (len(documents) == 2)
                assert row.label != (1 if is_single_document else NO_LABEL)
                if row.label == 0:
                    first, second = (
                        [token_positions[token].position for token in part] for part in row.segments
                    )
                    gap = second[0] - first[-1] - 1
                    assert gap == 0 or (gap > 0 and len(row.ids) == length), "only a full row has a gap"
    assert labels[0] > 20
    assert labels[1] > 50
    assert labels.keys() <= {0, 1, NO_LABEL}


# Validation set


def test_validation_set_depends_only_on_seed_and_document(
    corpus: UniqueWordCorpus,
    build_set: Callable[[str], Path],
    token_positions: dict[int, TokenPosition],
    tmp_path: Path,
) -> None:
    validation_ids = load_validation_documents(build_set("electra"), token_positions)
    assert 10 < len(validation_ids) < 32
    for kind in OPTIONS_BY_KIND:
        if kind != "electra":
            assert load_validation_documents(build_set(kind), token_positions) == validation_ids
    runs = {
        "abstracts alone": (*corpus.input_options(corpus.folders[0]), "--validation-fraction", 0.2),
        "more": (*corpus.input_options(), "--validation-fraction", 0.6),
        "seed": (*corpus.input_options(), "--validation-fraction", 0.2, "--seed", 1),
    }
    for name, options in runs.items():
        assert run_shards_to_pretraining(*options, "--output", tmp_path / name) == 0
    assert load_validation_documents(tmp_path / "abstracts alone", token_positions) == {
        id_ for id_ in validation_ids if id_.startswith("pubmed:")
    }
    assert load_validation_documents(tmp_path / "more", token_positions) > validation_ids
    assert load_validation_documents(tmp_path / "seed", token_positions) != validation_ids


# Files


def test_a_set_is_opened_memory_mapped(build_set: Callable[[str], Path]) -> None:
    output = build_set("bert in three passes")
    assert sum(item["bytes"] for item in load_manifest(output)["outputs"]) > 50_000
    before = pa.total_allocated_bytes()
    opened = load_with_datasets(output)
    assert pa.total_allocated_bytes() - before < 10_000
    assert type(opened).__name__ == "DatasetDict"
    assert list(opened) == ["train", "validation"]
    for split in SPLITS:
        rows = synthetic_corpora.load_rows(output, split)
        assert len(opened[split]) == len(rows)
        for at in (0, len(rows) // 2, len(rows) - 1):
            row = opened[split][at]
            assert tuple(row["input_ids"]) == rows[at].ids
            assert (row["split"], row["label"]) == (rows[at].split, rows[at].label)
        with pa.memory_map(str(synthetic_corpora.list_shards(output, split)[0])) as file:
            before = pa.total_allocated_bytes()
            table = pa.ipc.open_stream(file).read_all()
            assert pa.total_allocated_bytes() - before < 10_000
            assert table.column_names == ["input_ids", "split", "label"]


def test_shard_schema_and_metadata(corpus: UniqueWordCorpus, build_set: Callable[[str], Path]) -> None:
    """tests/vocab/pretraining/test_token_block.py has vocabularies whose ids take 32 bits."""
    output = build_set("electra in short rows")
    tokenizer = Tokenizer.from_file(str(corpus.vocabulary / "tokenizer.json"))
    tokenizer_json = (corpus.vocabulary / "tokenizer.json").read_bytes()
    for split in SPLITS:
        for path in synthetic_corpora.list_shards(output, split):
            rows = synthetic_corpora.load_shard_rows(path)
            schema = pa.ipc.open_stream(pa.memory_map(str(path))).schema
            assert schema.field("input_ids").type == pa.list_(pa.uint16())
            assert schema.names == ["input_ids", "split"]
            assert pretraining_schema.metadata_from_schema(schema) == {
                "objective": "electra",
                "length": 21,
                "vocabulary_sha256": hashlib.sha256(tokenizer_json).hexdigest(),
                "vocabulary_size": tokenizer.get_vocab_size(),
                "special": {"[PAD]": 0, "[UNK]": 1, "[CLS]": CLS, "[SEP]": SEP, "[MASK]": 4},
                "split": split,
                "rows": len(rows),
                "tokens": sum(len(row.ids) for row in rows),
            }
    assert load_config(output)["vocabulary"] == {
        "sha256": hashlib.sha256(tokenizer_json).hexdigest(),
        "size": tokenizer.get_vocab_size(),
    }


def test_record_batches_have_2048_rows(corpus: UniqueWordCorpus, tmp_path: Path) -> None:
    options = ("--objective", "plain", "--max-seq-length", 5, "--output", tmp_path / "out")
    assert run_shards_to_pretraining(*corpus.input_options(corpus.folders[0]), *options) == 0
    [path] = synthetic_corpora.list_shards(tmp_path / "out", "train")
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
        sizes = [len(batch) for batch in stream]
    assert len(sizes) == 2
    assert sizes[0] == 2048 >= sizes[1] > 0


def test_manifest_lists_config_inputs_and_outputs(
    corpus: UniqueWordCorpus, build_set: Callable[[str], Path], tmp_path: Path
) -> None:
    output = build_set("bert in three passes")
    manifest = load_manifest(output)
    assert manifest["config"].pop("library_versions").keys() == {"tokenizers"}
    assert manifest["config"].pop("vocabulary").keys() == {"sha256", "size"}
    assert manifest["config"] == {
        "pipeline": "shards_to_pretraining",
        "format": FORMAT,
        "objective": "bert",
        "max_seq_length": 33,
        "short_seq_prob": 0.1,
        "single_segment_prob": 0.0,
        "dupe_factor": 3,
        "keep_overflow": False,
        "as_published": False,
        "seed": 0,
        "validation_fraction": 0.2,
        "max_shard_mb": 128,
    }
    inputs = {item["pipeline"]: item for item in manifest["inputs"]}
    for folder, name, documents in zip(
        corpus.folders, ("pubmed_to_shards", "pmc_to_shards"), (93, 10), strict=True
    ):
        sha256s = [shard["sha256"] for shard in load_manifest(folder)["outputs"]]
        assert inputs[name] == {
            "pipeline": name,
            "shards_sha256": hashlib.sha256("".join(sha256s).encode()).hexdigest(),
            "shards": len(sha256s),
            "documents": documents,
            "overlap": [],
        }
    shard_names = {str(path.relative_to(output)) for path in output.rglob("*.arrow")}
    assert [item["file"] for item in manifest["outputs"]] == sorted(shard_names)
    assert manifest["run"]["command"][:3] == ["beam", "run", "shards_to_pretraining"]
    assert manifest["run"]["vocabulary"] == str(corpus.vocabulary)
    assert sorted(manifest["run"]["inputs"]) == sorted(map(str, corpus.folders))
    assert manifest["run"]["started_at"] <= manifest["run"]["finished_at"]
    del manifest["run"]
    assert str(corpus.vocabulary.parent) not in json.dumps(manifest)


def test_summary_of_a_run(corpus: UniqueWordCorpus, tmp_path: Path, capsys: Capture) -> None:
    assert (
        run_shards_to_pretraining(
            *corpus.input_options(), "--validation-fraction", 0.2, "--output", tmp_path / "out"
        )
        == 0
    )
    captured = capsys.readouterr()
    counts = load_manifest(tmp_path / "out")["counts"]
    train = counts["train"]
    assert captured.out.splitlines()[:4] == [
        "103 documents",
        f"  train:      {train['documents']} documents, {train['rows']} rows, {train['tokens']:,} tokens "
        f"({train['tokens'] / train['rows'] / 128:.0%} of 128 a row), "
        f"{train['lost_tokens']['overflow']:,} lost (overflow)",
        captured.out.splitlines()[2],
        "  no-tokens:  1 documents",
    ]
    assert f"report:       {tmp_path}/out/manifest.json" in captured.out
    progress = r"^building: 100% 103/103 documents \[.+, 2/2 groups\]$"
    assert re.search(progress, captured.err, re.MULTILINE)


# Order of rows


def test_rows_of_a_shard_are_in_a_random_order(
    build_set: Callable[[str], Path], corpus: UniqueWordCorpus, token_positions: dict[int, TokenPosition]
) -> None:
    document_indices = {document.id: index for index, document in enumerate(corpus.documents)}
    for path in synthetic_corpora.list_shards(build_set("electra"), "train"):
        rows = synthetic_corpora.load_shard_rows(path)
        order = [document_indices[token_positions[row.ids[1]].document] for row in rows]
        assert abs(statistics.correlation(range(len(order)), order)) < 3 / math.sqrt(len(order))


# Presets


def test_defaults_and_presets_are_those_of_the_papers() -> None:
    from bioshards.pipelines import shards_to_pretraining

    parser = shards_to_pretraining.make_parser()

    def make_recipe(*argv: str) -> example_recipes.ExampleRecipe:
        options, _ = parser.parse_known_options(argv)
        return options.make_recipe()

    for objective in OBJECTIVES:
        assert make_recipe("--objective", objective) == example_recipes.DEFAULTS[objective]
    assert make_recipe() == example_recipes.DEFAULTS["electra"]
    for name, recipe in example_recipes.PRESETS.items():
        assert make_recipe("--preset", name) == recipe
    assert make_recipe("--preset", "pubmedbert", "--max-seq-length", "64") == dataclasses.replace(
        example_recipes.PRESETS["pubmedbert"], max_seq_length=64
    )


# Elements between steps


def test_elements_between_steps_have_no_tokens_and_no_text(
    prose: tuple[Path, Path], vocabulary: Path, tmp_path: Path
) -> None:
    """The elements of all PCollections are recorded: names, numbers and reports."""
    from tests.support.pipeline_elements import run_recorded

    inputs = ("--input", prose[0], "--input", prose[1], "--vocab", vocabulary, "--output", tmp_path / "out")
    options = ("--validation-fraction", 0.1)
    run_recorded(tmp_path / "notes", "shards_to_pretraining", *inputs, *options)
    notes = (tmp_path / "notes").read_text()
    assert "BuildResult(" in notes
    for word in ("mice", "BRCA1", "naïve", "pubmed:", "[CLS]"):
        assert word not in notes
    assert len(notes) < 30_000
