"""Synthetic document directories and vocabularies, and the rows of a pretraining set as Python objects.

Two kinds of corpora.  In one each word is its own token and occurs once, so that a token says which document
it is of and where it stands there; with it every row can be judged from its ids alone.  The other is prose
of invented sentences, with a vocabulary built on it as users build theirs.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from bioshards.corpus.document import Document
from bioshards.corpus.output.output_layout import SPLITS
from bioshards.pipelines import cli
from bioshards.vocab import __main__ as vocab
from tests.support.corpus.synthetic_documents import make_document, write_document_dir
from tests.support.outputs import load_manifest
from tests.support.vocab.tiny_tokenizers import make_wordpiece

NO_TOKENS = "\u200b\u200b"
"""A sentence that BERT's normalisation empties."""


def run_shards_to_pretraining(*arguments: object) -> int:
    """Run ``beam run shards_to_pretraining`` in this process, with one worker by default."""
    return cli.main(["run", "shards_to_pretraining", "--workers", "1", *map(str, arguments)])


# Documents


# A corpus in which no word is there twice


@dataclass(frozen=True)
class UniqueWordCorpus:
    """Directories of documents, and a vocabulary for them.

    Attributes:
        vocabulary: the folder of the vocabulary.
        documents: those of all folders.
    """

    folders: tuple[Path, ...]
    vocabulary: Path
    documents: tuple[Document, ...]

    def input_options(self, *folders: Path) -> list[object]:
        """Return the options for some or all inputs and the vocabulary."""
        words = [word for folder in folders or self.folders for word in ("--input", folder)]
        return [*words, "--vocab", self.vocabulary]


def write_unique_word_corpus(folder: Path) -> UniqueWordCorpus:
    """Write abstracts and articles of words that each occur once and are one token.

    There are sentences without tokens, single ones longer than a row, documents of one sentence, one
    document without tokens, and articles with the PMID of an abstract.
    """
    rng, abstracts, articles = random.Random(7), 90, 10
    next_words = (f"w{number}" for number in itertools.count())

    def sentence(size: int) -> str:
        return " ".join(itertools.islice(next_words, size))

    def sentences(number: int, longest: int) -> list[str]:
        sentence_list = [sentence(min(longest, 1 + int(rng.expovariate(1 / 14)))) for _ in range(number)]
        if rng.random() < 0.2:
            sentence_list.insert(rng.randrange(len(sentence_list) + 1), NO_TOKENS)
        return sentence_list

    pubmed = [
        make_document(f"pubmed:{number}", sentences(rng.randint(2, 9), 80), year=2000 + number % 7)
        for number in range(1, abstracts)
    ]
    pubmed += [
        make_document(f"pubmed:{abstracts}", [NO_TOKENS, ""]),
        make_document(f"pubmed:{abstracts + 1}", [sentence(300)], year=None),
        make_document(f"pubmed:{abstracts + 2}", [sentence(6)]),
        make_document(f"pubmed:{abstracts + 3}", [sentence(1)]),
    ]
    pmc = [
        make_document(f"pmc:PMC{number}.1", sentences(25, 120), pmid=number if number % 2 else None)
        for number in range(1, articles)
    ]
    pmc.append(make_document(f"pmc:PMC{articles}.1", [sentence(400), sentence(2), sentence(700)]))
    rng.shuffle(pubmed)
    folders = (
        write_document_dir(folder / "abstracts", {"a": pubmed[::3], "b": pubmed[1::3], "c": pubmed[2::3]}),
        write_document_dir(folder / "articles", {"PMC1": pmc[:4], "PMC2": pmc[4:]}, "pmc_to_shards"),
    )
    lines = [line for one in (*pubmed, *pmc) for line in one.sentences]
    used = {word for line in lines for word in line.split()} - {NO_TOKENS}
    vocabulary = folder / "vocabulary"
    vocabulary.mkdir()
    pieces = sorted(used, key=lambda word: int(word[1:]))
    make_wordpiece(*pieces).save(str(vocabulary / "tokenizer.json"))
    return UniqueWordCorpus(folders, vocabulary, (*pubmed, *pmc))


# Prose

_SUBJECTS = ("The mice", "All cells", "Most patients", "No kidney", "Naïve nurses", "BRCA1 carriers")
_VERBS = ("grew", "slept", "declined", "were fed", "were counted", "did not change", "doubled")
_ENDINGS = (
    "at night",
    "in winter",
    "after 12 days",
    "with β-carotene",
    "(p < 0.05)",
    "twice, then never",
    "in vitro",
)


def make_paragraph(seed: str, number: int) -> list[str]:
    """Return generated sentences, the same for the same seed."""
    rng = random.Random(seed)
    parts = (_SUBJECTS, _VERBS, _ENDINGS)
    return [" ".join(rng.choice(part) for part in parts) + "." for _ in range(number)]


def write_abstracts(folder: Path, **pmids_by_shard: range) -> Path:
    """Write a finished directory of generated abstracts, given the PMIDs of each shard."""
    return write_document_dir(
        folder,
        {
            name: [
                make_document(f"pubmed:{number}", make_paragraph(str(number), 3 + number % 9))
                for number in numbers
            ]
            for name, numbers in pmids_by_shard.items()
        },
    )


def write_articles(folder: Path, **numbers_by_shard: range) -> Path:
    """Write a finished directory of generated articles, given the numbers (also the PMIDs) of each shard."""
    return write_document_dir(
        folder,
        {
            name: [
                make_document(f"pmc:PMC{number}.1", make_paragraph(f"article {number}", 60), pmid=number)
                for number in numbers
            ]
            for name, numbers in numbers_by_shard.items()
        },
        "pmc_to_shards",
    )


def build_vocabulary(folder: Path, *inputs: Path, options: Sequence[str] = ("--size", "300")) -> Path:
    """Build a vocabulary on directories."""
    argv = ["build", *map(str, inputs), "--output", str(folder), *options]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as stderr:
        code = vocab.main(argv)
    assert code == 0, stderr.getvalue()
    return folder


# Rows


@dataclass(frozen=True)
class PretrainingRow:
    """A row of a pretraining set.

    Attributes:
        label: None where the objective has none.
    """

    ids: tuple[int, ...]
    split: int
    label: int | None

    @property
    def segments(self) -> tuple[tuple[int, ...], ...]:
        """Segment A and, if there is one, segment B, without special tokens."""
        if not self.split:
            return (self.ids[1:-1],)
        return self.ids[1 : self.split - 1], self.ids[self.split : -1]


def list_shards(output: Path, split: str) -> list[Path]:
    """Return the shards of a split in the order of the manifest."""
    return [
        output / entry["file"]
        for entry in load_manifest(output)["outputs"]
        if entry["file"].startswith(f"{split}/") and entry["file"].endswith(".arrow")
    ]


def load_rows(output: Path, split: str) -> list[PretrainingRow]:
    """Return all rows of a split, shard by shard."""
    return [row for path in list_shards(output, split) for row in load_shard_rows(path)]


def load_shard_rows(path: Path) -> list[PretrainingRow]:
    """Return the rows of a shard."""
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
        return [
            PretrainingRow(tuple(row["input_ids"]), row["split"], row.get("label"))
            for row in stream.read_all().to_pylist()
        ]


def load_rows_by_split(output: Path) -> dict[str, list[PretrainingRow]]:
    """Return the rows of each split."""
    return {split: load_rows(output, split) for split in SPLITS}
