"""Factories of documents, encoders, token blocks and row plans."""

from __future__ import annotations

import dataclasses
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from bioshards.corpus.document import Document
from bioshards.corpus.manifest import OverlapFile, PretrainingConfig, PretrainingRun, Shard
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import input_dirs, pretraining_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.encode import EncodedBatch, Encoder
from bioshards.vocab.pretraining import build
from bioshards.vocab.pretraining.build import (
    BuildResult,
    PretrainingJob,
    ShardGroup,
    build_group,
    group_shards,
)
from bioshards.vocab.pretraining.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.row_plan import RowPlan, TokenBlock
from tests.support.corpus import synthetic_documents
from tests.support.corpus.manifests import of_pretraining
from tests.support.vocab.tiny_tokenizers import make_wordpiece

NO_TOKENS = "\u200b\x07"
"""A sentence that BERT's normalisation empties."""
WORDS = [f"w{number}" for number in range(300)]
CLS, SEP = 2, 3
"""Their ids in every vocabulary here."""
UNLIMITED_BYTES = 10**9

# Vocabularies


def save_encoder(folder: Path, tokenizer: Tokenizer) -> Encoder:
    """Write a tokenizer to a folder, and return its encoder."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return Encoder(str(folder))


def make_word_encoder(folder: Path, *pieces: str) -> Encoder:
    """Return the encoder of a vocabulary in which each of :data:`WORDS` is a token."""
    return save_encoder(folder, make_wordpiece(*WORDS, *pieces))


def make_fake_encoder(size: int = 60_000) -> Encoder:
    """Return a fake with the attributes of an encoder that a block reads."""
    return cast(Encoder, SimpleNamespace(size=size, special_ids={"[CLS]": CLS, "[SEP]": SEP}))


# Documents


def make_sentences_document(id_: str, *sentences: str, **overrides: Any) -> Document:
    """Return a document; the PMID of a PubMed document is taken from its id."""
    return synthetic_documents.make_document(id_, sentences, **overrides)


def make_abstracts(first: int, last: int) -> list[Document]:
    """Return abstracts of these PMIDs, each of a few sentences of a few words."""
    return [
        make_sentences_document(
            f"pubmed:{number}",
            *(
                " ".join(
                    WORDS[(number * 7 + sentence * 3 + word) % len(WORDS)] for word in range(1 + number % 5)
                )
                for sentence in range(1 + number % 6)
            ),
            year=2000 + number % 3,
        )
        for number in range(first, last)
    ]


def write_documents(
    folder: Path,
    documents_by_shard: Mapping[str, Sequence[Document]],
    pipeline: str = "pubmed_to_shards",
    overlap: Sequence[OverlapFile] = (),
) -> input_dirs.DocumentsInput:
    """Write a finished directory with a shard for each name; the longest shard has two record batches."""
    half = (max(map(len, documents_by_shard.values()), default=0) + 1) // 2
    synthetic_documents.write_document_dir(folder, documents_by_shard, pipeline, max(1, half), overlap)
    (found,) = input_dirs.load_document_inputs(LocalStorage(), [str(folder)])
    return found


def make_single_group(
    documents: input_dirs.DocumentsInput, seed: int = 0, overlap_lists: Mapping[str, str] | None = None
) -> ShardGroup:
    """Return the shards of a directory as one group."""
    (group,) = group_shards([documents], seed, {documents.folder: overlap_lists or {}})
    return group


MakeJob = Callable[..., PretrainingJob]
"""Takes an output directory and, as ``storage``, where it is; returns the job of a configuration."""


def make_build_config(
    encoder: Encoder,
    recipe: ExampleRecipe | None = None,
    *,
    max_shard_bytes: int = UNLIMITED_BYTES,
    **overrides: Any,
) -> MakeJob:
    """Return a configuration for ELECTRA rows of 16 tokens, with overrides, as a function of the output."""
    build._encoders[encoder.sha256] = encoder  # as if workers had loaded it
    recipe = recipe or ExampleRecipe("electra", 16, 0.05, 0.1)
    fields = {
        **msgspec.to_builtins(of_pretraining([]).config),
        **dataclasses.asdict(recipe),
        "seed": 0,
        "validation_fraction": 0.25,
        "vocabulary": {"sha256": encoder.sha256, "size": encoder.size},
        **overrides,
    }
    config = msgspec.structs.replace(
        msgspec.convert(fields, PretrainingConfig), max_shard_mb=max_shard_bytes / 1_000_000
    )
    run = PretrainingRun(command=("test",), inputs=(), vocabulary="nowhere", started_at="then")

    def make_job(output: Path, storage: Storage | None = None, **changes: Any) -> PretrainingJob:
        defaults: dict[str, Any] = {
            "storage": storage or LocalStorage(),
            "output": OutputDir(str(output)),
            "config": config,
            "inputs": (),
            "run": run,
        }
        return PretrainingJob(**defaults | changes)

    return make_job


# Blocks and plans


def make_block(
    documents: Mapping[str, Sequence[int]], encoder: Encoder | None = None, chunk_size: int = 1
) -> TokenBlock:
    """Return a block of documents, given the number of tokens of each sentence; token ids count up from 10.

    Args:
        chunk_size: number of documents added together.
    """
    encoder = encoder or make_fake_encoder()
    block = TokenBlock(encoder)
    dtype = np.uint16 if encoder.size <= 1 << 16 else np.uint32
    remaining = iter(documents.items())
    while chunk := list(itertools.islice(remaining, chunk_size)):
        sizes = [size for _, sentences in chunk for size in sentences]
        ids = 10 + block.tokens + np.arange(sum(sizes))
        offsets = np.cumsum([0, *sizes])
        names = pa.array([id_ for id_, _ in chunk], pa.string())
        counts = np.array([len(sentences) for _, sentences in chunk], np.int64)
        block.add(names, counts, EncodedBatch(ids.astype(dtype), offsets))
    return block


def splitmix64(state: int, number: int) -> int:
    """Return the generator's number by its definition, in Python integers."""
    mask = (1 << 64) - 1
    z = (state + 0x9E3779B97F4A7C15 * (number + 1)) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def make_schema(size: int = 60_000, labelled: bool = False) -> pa.Schema:
    return pretraining_schema.make_schema(size, labelled, {})


def plan_rows(plan: RowPlan, columns: pa.Schema | None = None, size: int = 2048) -> list[dict[str, Any]]:
    """Return the rows of a plan in the order of their keys."""
    columns = columns or make_schema()
    return [row for batch in plan.iter_batches(columns, size) for row in batch.to_pylist()]


# What is written


def build_from_group(
    output: Path, group: ShardGroup, config: MakeJob, storage: LocalStorage | None = None
) -> BuildResult:
    """Build the rows of a group in a folder."""
    return build_group(config(output, storage), group)


def read_listed_rows(output: Path, entries: Iterable[Shard]) -> list[dict[str, Any]]:
    """Return the rows of the Arrow shards among manifest entries."""
    return [
        row
        for entry in entries
        if entry.file.endswith(".arrow")
        for row in pa.ipc.open_stream(pa.memory_map(str(output / entry.file))).read_all().to_pylist()
    ]


def count_text_tokens(rows: Iterable[Mapping[str, Any]]) -> Counter[int]:
    """Count the tokens of rows, but for special ones."""
    return Counter(token for row in rows for token in row["input_ids"] if token not in (CLS, SEP))


def count_word_tokens(encoder: Encoder, documents: Iterable[Document]) -> Counter[int]:
    """Count the tokens of documents of :data:`WORDS`."""
    ids = encoder.get_vocab()
    return Counter(ids[word] for one in documents for line in one.sentences for word in line.split())


def list_files(output: Path) -> set[str]:
    """Return the paths of all files, the work folder included."""
    return {str(path.relative_to(output)) for path in output.rglob("*") if path.is_file()}


def read_result_files(output: Path, result: BuildResult) -> dict[str, bytes]:
    """Return the content of the files of a build result by path."""
    names = [f"{output}/{entry.file}" for entry in result.outputs]
    return {name: Path(name).read_bytes() for name in names}
