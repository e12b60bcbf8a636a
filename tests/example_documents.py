"""Documents, vocabularies and blocks made by us, for the tests of how examples are made."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer
from tokenizers.models import Unigram
from tokenizers.pre_tokenizers import Metaspace, WhitespaceSplit
from tokenizers.pre_tokenizers import Sequence as Steps

from bioshards.corpus import pretraining
from bioshards.corpus.document import Document
from bioshards.corpus.files import LocalStorage
from bioshards.corpus.manifest import OverlapFile, Shard
from bioshards.corpus.workspace import OutputDir
from bioshards.vocab import inputs
from bioshards.vocab.encode import EncodedBatch, Encoder
from bioshards.vocab.examples import writing
from bioshards.vocab.examples.block import TokenBlock
from bioshards.vocab.examples.made import BuildResult
from bioshards.vocab.examples.making import BuildConfig, build_group
from bioshards.vocab.examples.plan import RowPlan
from bioshards.vocab.examples.portions import ShardGroup, group_shards
from bioshards.vocab.examples.recipes import ExampleRecipe
from bioshards.vocab.examples.rows import ExampleRow, RowSpan
from tests.vocabularies import word_piece

from . import invented

NO_TOKENS = "\u200b\x07"
"""A sentence of which BERT's normalisation leaves nothing."""
WORDS = [f"w{number}" for number in range(300)]
CLS, SEP = 2, 3
"""Their ids in every vocabulary here."""
EVERYTHING = 10**9

# Vocabularies


def saved(folder: Path, tokenizer: Tokenizer) -> Encoder:
    """The encoder of a tokenizer, written to a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return Encoder(str(folder))


def of_words(folder: Path, *pieces: str) -> Encoder:
    """A vocabulary in which each of :data:`WORDS` is a token."""
    return saved(folder, word_piece(*WORDS, *pieces))


def sentencepiece(*pieces: str, unknown: str = "<unk>") -> Tokenizer:
    """A tokenizer of ALBERT's kind, with BERT's special tokens."""
    everything = ["<pad>", unknown, "[CLS]", "[SEP]", "[MASK]", *pieces]
    scored = [(piece, -1.0 - number) for number, piece in enumerate(everything)]
    tokenizer = Tokenizer(Unigram(scored, unk_id=1))
    tokenizer.pre_tokenizer = Steps([WhitespaceSplit(), Metaspace(prepend_scheme="always")])
    tokenizer.add_special_tokens(["<pad>", "[CLS]", "[SEP]", "[MASK]"])
    return tokenizer


def fake(size: int = 60_000) -> Encoder:
    """What a block asks of an encoder, without one."""
    return cast(Encoder, SimpleNamespace(size=size, special={"[CLS]": CLS, "[SEP]": SEP}))


# Documents


def document(id_: str, *sentences: str, **more: Any) -> Document:
    """A document; of PubMed's the PMID is in the id."""
    return invented.document(id_, sentences, **more)


def abstracts(first: int, last: int) -> list[Document]:
    """Documents of these PMIDs, each of a few sentences of a few words."""
    return [
        document(
            f"pubmed:{number}",
            *(
                " ".join(WORDS[(number * 7 + sentence * 3 + at) % len(WORDS)] for at in range(1 + number % 5))
                for sentence in range(1 + number % 6)
            ),
            year=2000 + number % 3,
        )
        for number in range(first, last)
    ]


def put(
    folder: Path,
    shards_of: Mapping[str, Sequence[Document]],
    pipeline: str = "pubmed_to_shards",
    overlap: Sequence[OverlapFile] = (),
) -> inputs.DocumentsInput:
    """A finished directory with a shard for each name, the longest of two record batches."""
    half = (max(map(len, shards_of.values()), default=0) + 1) // 2
    invented.put(folder, shards_of, pipeline, max(1, half), overlap)
    (found,) = inputs.load_document_inputs(LocalStorage(), [str(folder)])
    return found


def all_in_one(documents: inputs.DocumentsInput, seed: int = 0, **lists: Mapping[str, str]) -> ShardGroup:
    """A directory as one portion."""
    (portion,) = group_shards([documents], seed, {documents.folder: lists.get("lists", {})})
    return portion


def making(encoder: Encoder, recipe: ExampleRecipe | None = None, **how: Any) -> BuildConfig:
    """What is made of documents: rows of 16 tokens of ELECTRA's kind, unless said otherwise."""
    given: dict[str, Any] = {
        "vocabulary": "0123",
        "seed": 0,
        "validation": 0.25,
        "buckets": {},
        "max_bytes": EVERYTHING,
        "writer": writing.ShardWriter(),
    }
    return BuildConfig(
        recipe=recipe or ExampleRecipe("electra", 16, 0.05, 0.1), encoder=encoder, **(given | how)
    )


# Blocks and plans


def block_of(
    documents: Mapping[str, Sequence[int]], encoder: Encoder | None = None, at_a_time: int = 1
) -> TokenBlock:
    """A block of documents by id, of sentences with so many tokens; its tokens' ids are 10, 11, 12 and so on.

    Args:
        at_a_time: documents added together.
    """
    encoder = encoder or fake()
    block = TokenBlock(encoder)
    dtype = np.uint16 if encoder.size <= 1 << 16 else np.uint32
    waiting = iter(documents.items())
    while some := list(itertools.islice(waiting, at_a_time)):
        sizes = [size for _, sentences in some for size in sentences]
        ids = 10 + block.tokens + np.arange(sum(sizes))
        offsets = np.cumsum([0, *sizes])
        names = pa.array([id_ for id_, _ in some], pa.string())
        counts = np.array([len(sentences) for _, sentences in some], np.int64)
        block.add(names, counts, EncodedBatch(ids.astype(dtype), offsets))
    return block


def split_mix(state: int, number: int) -> int:
    """The generator's number by its definition, in Python's integers."""
    mask = (1 << 64) - 1
    z = (state + 0x9E3779B97F4A7C15 * (number + 1)) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return z ^ (z >> 31)


def single(document: int, start: int, stop: int, **more: Any) -> ExampleRow:
    """A row of one segment."""
    return ExampleRow([(start, stop)], [], (RowSpan(document, 1, 0, 1),), **more)


def schema(size: int = 60_000, labelled: bool = False) -> pa.Schema:
    return pretraining.make_schema(size, labelled, {})


def table(plan: RowPlan, columns: pa.Schema | None = None, size: int = 2048) -> list[dict[str, Any]]:
    """A plan's rows in the order of their keys."""
    columns = columns or schema()
    return [
        row for batch in plan.iter_batches(plan.sort_by_key()[0], columns, size) for row in batch.to_pylist()
    ]


# What is written


def made_of(
    out: Path, portion: ShardGroup, how: BuildConfig, storage: LocalStorage | None = None
) -> BuildResult:
    """What is made of a portion in this folder."""
    return build_group(storage or LocalStorage(), OutputDir(str(out)), portion, how)


def listed_rows(output: Path, listed: Iterable[Shard]) -> list[dict[str, Any]]:
    """The rows of the Arrow shards among what a manifest lists."""
    return [
        row
        for one in listed
        if one.file.endswith(".arrow")
        for row in pa.ipc.open_stream(pa.memory_map(str(output / one.file))).read_all().to_pylist()
    ]


def files_in(output: Path) -> set[str]:
    """All files, those of the work folder too."""
    return {str(path.relative_to(output)) for path in output.rglob("*") if path.is_file()}


def bytes_of(output: Path, made: BuildResult) -> dict[str, bytes]:
    """What the files of a portion hold."""
    output_dir = OutputDir(str(output))
    names = [f"{output}/{one.file}" for one in made.outputs]
    names += [
        output_dir.shuffle_spill_path(name) for several in made.spill_files.values() for name in several
    ]
    return {name: Path(name).read_bytes() for name in names}


class Failing(LocalStorage):
    """A disk that is full once so many bytes are written to files with this in their path."""

    def __init__(self, part: str, after: int = 0) -> None:
        self._part, self._left = part, after

    @contextmanager
    def write(self, path: str) -> Iterator[BinaryIO]:
        with super().write(path) as file:
            yield cast(BinaryIO, _Full(self, file)) if self._part in path else file

    def take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise OSError(28, "No space left on device")


class _Full:
    def __init__(self, disk: Failing, file: BinaryIO) -> None:
        self._disk, self._file = disk, file
        self.closed = False

    def write(self, data: bytes) -> int:
        self._disk.take(len(memoryview(data).cast("B")))
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()
