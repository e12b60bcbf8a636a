"""``beam run shards_to_pretraining``: what its rows hold, token by token, and what its files say of them.

Documents are encoded with the tokenizers library here, and what the manifest counts is counted anew from
documents and rows.
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

import datasets
import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer

from bioshards.corpus.output.output_layout import FORMAT, SPLITS
from bioshards.corpus.shards import pretraining_schema
from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.pretraining import row_keys
from bioshards.vocab.pretraining.objectives import document_rng, example_recipes
from bioshards.vocab.pretraining.objectives.objective_registry import OBJECTIVES
from tests.support.fork_server import run_beam
from tests.support.outputs import load_manifest
from tests.support.vocab import synthetic_corpora as sets
from tests.support.vocab.synthetic_corpora import PretrainingRow, UniqueWordCorpus, run_shards_to_pretraining

Capture = pytest.CaptureFixture[str]
CLS, SEP = 2, 3

KINDS: dict[str, tuple[object, ...]] = {
    "electra": ("--objective", "electra"),
    "electra in short rows": ("--max-seq-length", 21, "--short-seq-prob", 0.5, "--single-segment-prob", 0.3),
    "electra in the shortest rows": ("--max-seq-length", 5, "--short-seq-prob", 0),
    "electra, overflow kept": ("--keep-overflow", "--max-seq-length", 40),
    "electra in two passes, overflow kept": ("--keep-overflow", "--max-seq-length", 30, "--dupe-factor", 2),
    "bert": ("--objective", "bert"),
    "bert in three passes": ("--objective", "bert", "--max-seq-length", 33, "--dupe-factor", 3),
    "bert in the shortest rows": ("--objective", "bert", "--max-seq-length", 5, "--short-seq-prob", 1),
    "albert": ("--objective", "albert", "--max-seq-length", 64),
    "albert as published": ("--objective", "albert", "--max-seq-length", 64, "--as-published"),
    "plain": ("--objective", "plain"),
    "plain in two passes": ("--objective", "plain", "--max-seq-length", 50, "--dupe-factor", 2),
    "plain in the shortest rows": ("--objective", "plain", "--max-seq-length", 5),
}
"""Sets of the corpus of words that are there once."""


class Place(NamedTuple):
    """Where a token stands: in which sentence of its document, and which one of the document's it is."""

    document: str
    sentence: int
    position: int


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> UniqueWordCorpus:
    return sets.write_unique_word_corpus(tmp_path_factory.mktemp("unique"))


@pytest.fixture(scope="module")
def places(corpus: UniqueWordCorpus) -> dict[int, Place]:
    """Where each token stands, by its id."""
    found: dict[int, Place] = {}
    for document in corpus.documents:
        position = 0
        for sentence, ids in enumerate(encoded(corpus.vocabulary, document.sentences)):
            for token in ids:
                assert token not in found
                found[token] = Place(document.id, sentence, position)
                position += 1
    return found


@pytest.fixture(scope="module")
def made(corpus: UniqueWordCorpus, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The output of a kind of set, made when it is first asked for."""
    folder = tmp_path_factory.mktemp("made")

    def make(kind: str) -> Path:
        output = folder / kind
        if not output.exists():
            assert (
                run_shards_to_pretraining(
                    *corpus.input_options(), *KINDS[kind], "--validation-fraction", 0.2, "--output", output
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
        sets.write_abstracts(folder / "abstracts", one=range(100, 160), two=range(160, 220)),
        sets.write_articles(folder / "articles", PMC1=range(100, 108)),
    )


@pytest.fixture(scope="module")
def vocabulary(prose: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sets.build_vocabulary(tmp_path_factory.mktemp("vocabulary") / "v", *prose)


def encoded(vocabulary: Path, sentences: list[str]) -> list[list[int]]:
    """The sentences' ids, by the library."""
    library = Tokenizer.from_file(str(vocabulary / "tokenizer.json"))
    return [one.ids for one in library.encode_batch(sentences, add_special_tokens=False)]


def parts(row: PretrainingRow, objective: str) -> list[tuple[int, ...]]:
    """The tokens that each of the row's spans is about, what is around them taken off."""
    if objective == "electra":
        return [tuple(token for segment in row.segments for token in segment)]
    if objective != "plain":
        return list(row.segments)
    starts = [start for _, start, _, _ in row.spans]
    return [
        row.ids[start : stop - 1] for start, stop in zip(starts, [*starts[1:], len(row.ids)], strict=True)
    ]


def config(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = load_manifest(output)["config"]
    return found


# Rows


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_is_what_its_columns_say(
    kind: str, made: Callable[[str], Path], places: dict[int, Place]
) -> None:
    output = made(kind)
    objective, length = config(output)["objective"], config(output)["max_seq_length"]
    for row in (row for rows in sets.load_rows_by_split(output).values() for row in rows):
        assert len(row.ids) <= length
        assert row.ids[0] == CLS
        assert row.ids[-1] == SEP
        between = {start - 1 for _, start, _, _ in row.spans[1:]} | ({row.split - 1} if row.split else set())
        assert {at for at, token in enumerate(row.ids) if token == SEP} == {len(row.ids) - 1} | between
        assert row.ids.count(CLS) == 1
        assert all(segment for segment in row.segments)
        assert row.spans[0][1] == 1
        if objective in ("bert", "albert"):
            assert len(row.spans) == 1 + bool(row.split)
            assert [start for _, start, _, _ in row.spans][1:] == [row.split] * bool(row.split)
        else:
            assert row.label is None
            assert objective == "electra" or not row.split
        for (document, _, first, end), tokens in zip(row.spans, parts(row, objective), strict=True):
            stand = [places[token] for token in tokens]
            assert {place.document for place in stand} == {document}
            sentences = [place.sentence for place in stand]
            assert (min(sentences), max(sentences) + 1) == (first, end)
            if objective != "electra":
                assert [place.position for place in stand] == in_a_row(stand)
        for segment in row.segments if objective == "electra" else ():
            positions = [places[token].position for token in segment]
            assert positions == sorted(positions)


def in_a_row(stand: list[Place]) -> list[int]:
    return list(range(stand[0].position, stand[0].position + len(stand)))


@pytest.mark.parametrize("kind", KINDS)
def test_every_token_is_in_a_row_or_counted_as_lost(
    kind: str, made: Callable[[str], Path], corpus: UniqueWordCorpus, places: dict[int, Place]
) -> None:
    """All that the manifest counts of a split, counted anew from documents and rows."""
    output = made(kind)
    objective, counts = config(output)["objective"], load_manifest(output)["counts"]
    size_of = Counter(place.document for place in places.values())
    reason = {"electra": "overflow", "bert": "truncated", "albert": "truncated"}
    seen: set[str] = set()
    for split, rows in sets.load_rows_by_split(output).items():
        passes = config(output)["dupe_factor"] if split == "train" else 1
        own, borrowed = Counter[int](), 0
        for row in rows:
            for span, tokens in zip(row.spans, parts(row, objective), strict=True):
                if span[0] == row.spans[0][0] or objective == "plain":
                    own.update(tokens)
                else:
                    borrowed += len(tokens)
        documents = {places[token].document for token in own}
        assert not documents & seen
        seen |= documents
        assert set(own.values()) <= set(range(1, passes + 1))
        read = passes * sum(size_of[document] for document in documents)
        lost = read - own.total()
        assert counts[split] == {
            "documents": len(documents),
            "rows": len(rows),
            "unlabelled_rows": sum(row.label == -100 for row in rows),
            "tokens": sum(len(row.ids) for row in rows),
            "special_tokens": sum(token in (CLS, SEP) for row in rows for token in row.ids),
            "other_document_tokens": borrowed,
            "input_tokens": read,
            "unknown_tokens": 0,
            "lost_tokens": {reason[objective]: lost} if lost else {},
        }
        of = counts[split]
        assert of["input_tokens"] == of["tokens"] - of["special_tokens"] - of["other_document_tokens"] + sum(
            of["lost_tokens"].values()
        )
        assert lost == 0 or (objective != "plain" and "kept" not in kind)
        assert (borrowed > 0) == (objective == "bert" or "published" in kind) or split == "validation"
    assert seen == size_of.keys()
    years: dict[str, Counter[str]] = {"pubmed": Counter(), "pmc": Counter()}
    for document in corpus.documents:
        if size := size_of[document.id]:
            years[document.source][str(document.year or "unknown")] += size
    assert counts["years"] == years
    assert (counts["documents"], counts["dropped"], counts["rejected"]) == (103, {"no-tokens": 1}, {})


@pytest.mark.parametrize("kind", ["electra", "electra in short rows", "albert", "plain"])
def test_a_row_is_of_a_stretch_of_its_document_that_no_other_row_has(
    kind: str, made: Callable[[str], Path], places: dict[int, Place]
) -> None:
    for rows in sets.load_rows_by_split(made(kind)).values():
        stretches: dict[str, list[tuple[int, int]]] = {}
        for row in rows:
            own = [places[token] for token in row.ids if token > SEP]
            for document in {place.document for place in own}:
                positions = [place.position for place in own if place.document == document]
                stretches.setdefault(document, []).append((min(positions), max(positions)))
        for found in stretches.values():
            found.sort()
            assert all(before[1] < after[0] for before, after in itertools.pairwise(found))


def test_plain_rows_are_full(made: Callable[[str], Path]) -> None:
    """All but the last one of a shard and pass; one token is free where a [SEP] alone would fill it."""
    for kind, passes in (("plain", 1), ("plain in two passes", 2), ("plain in the shortest rows", 1)):
        output = made(kind)
        length = config(output)["max_seq_length"]
        for path in sets.list_shards(output, "train"):
            sizes = sorted(len(row.ids) for row in sets.load_shard_rows(path))
            assert all(size >= length - 1 for size in sizes[passes:])
            assert sizes[-1] == length


# Labels


@pytest.mark.parametrize("kind", ["bert", "bert in three passes", "bert in the shortest rows"])
def test_next_sentences_are_the_next_or_another_documents(
    kind: str, made: Callable[[str], Path], places: dict[int, Place]
) -> None:
    output, labels = made(kind), Counter[int | None]()
    for split in SPLITS:
        for path in sets.list_shards(output, split):
            rows = sets.load_shard_rows(path)
            alone = len({row.spans[0][0] for row in rows}) == 1
            for row in rows:
                labels[row.label] += 1
                assert (row.label == NO_LABEL) == (not row.split)
                assert (row.label == 1) == (len({span[0] for span in row.spans}) == 2)
                assert row.label != (1 if alone else NO_LABEL)
                if row.label == 0:
                    assert_follows(row, row.segments, places, config(output)["max_seq_length"])
    assert labels[0] > 20
    assert labels[1] > 50
    assert labels.keys() <= {0, 1, NO_LABEL}


def assert_follows(
    row: PretrainingRow, segments: tuple[tuple[int, ...], ...], places: dict[int, Place], length: int
) -> None:
    """The second segment's text follows the first one's; between them is what was too much for the row."""
    first, second = segments
    between = places[second[0]].position - places[first[-1]].position - 1
    assert between == 0 or (between > 0 and len(row.ids) == length)


@pytest.mark.parametrize("kind", ["albert", "albert as published"])
def test_sentence_orders_are_kept_or_swapped(
    kind: str, made: Callable[[str], Path], places: dict[int, Place]
) -> None:
    output, labels, other = made(kind), Counter[int | None](), 0
    length = config(output)["max_seq_length"]
    for row in (row for rows in sets.load_rows_by_split(output).values() for row in rows):
        labels[row.label] += 1
        assert (row.label == NO_LABEL) == (not row.split)
        if row.label == 0:
            assert_follows(row, row.segments, places, length)
        elif row.label == NO_LABEL:
            [(_, _, first, end)] = row.spans
            assert end == first + 1
        elif row.spans[0][0] == row.spans[1][0]:
            assert_follows(row, row.segments[::-1], places, length)
        else:
            other += 1
            [(_, _, first, end), _] = row.spans
            assert end == first + 1
    assert labels.keys() == ({0, 1} if "published" in kind else {0, 1, NO_LABEL})
    assert min(labels.values()) > 20
    assert abs(labels[0] - (labels[1] - other)) < 60
    assert (other > 20) == (kind == "albert as published")


# Held out


def test_who_is_held_out_depends_on_the_seed_and_the_document_alone(
    corpus: UniqueWordCorpus, made: Callable[[str], Path], tmp_path: Path
) -> None:
    held = sets.load_validation_documents(made("electra"))
    assert 10 < len(held) < 32
    for kind in KINDS:
        if kind != "electra":
            assert sets.load_validation_documents(made(kind)) == held
    others = {
        "abstracts alone": (*corpus.input_options(corpus.folders[0]), "--validation-fraction", 0.2),
        "global": (*corpus.input_options(), "--validation-fraction", 0.2, "--shuffle", "global"),
        "more": (*corpus.input_options(), "--validation-fraction", 0.6),
        "seed": (*corpus.input_options(), "--validation-fraction", 0.2, "--seed", 1),
    }
    for name, options in others.items():
        assert run_shards_to_pretraining(*options, "--output", tmp_path / name) == 0
    assert sets.load_validation_documents(tmp_path / "abstracts alone") == {
        id_ for id_ in held if id_.startswith("pubmed:")
    }
    assert sets.load_validation_documents(tmp_path / "global") == held
    assert sets.load_validation_documents(tmp_path / "more") > held
    assert sets.load_validation_documents(tmp_path / "seed") != held


def test_an_abstract_and_its_article_are_on_the_same_side(tmp_path: Path, vocabulary: Path) -> None:
    """Whichever of the two knows the PMID; an article without one is drawn by its id."""
    numbers = range(1, 601)
    folders = (
        sets.write_abstracts(tmp_path / "a", all=numbers),
        sets.write_articles(tmp_path / "b", all=numbers[::10]),
    )
    given = [word for folder in folders for word in ("--input", folder)]
    options = ("--vocab", vocabulary, "--validation-fraction", 0.25, "--output", tmp_path / "out")
    assert run_shards_to_pretraining(*given, *options) == 0
    sides: dict[str, set[str]] = {}
    for split in SPLITS:
        for row in sets.load_rows(tmp_path / "out", split):
            sides.setdefault(row.spans[0][0].removesuffix(".1").removeprefix("pmc:PMC"), set()).add(split)
    assert all(len(found) == 1 for found in sides.values())
    for number in numbers[::10]:
        assert sides[str(number)] == sides[f"pubmed:{number}"]
    share = sum(sides[f"pubmed:{number}"] == {"validation"} for number in numbers) / len(numbers)
    assert abs(share - 0.25) < 3 * math.sqrt(0.25 * 0.75 / len(numbers))


def test_where_nothing_is_held_out_there_is_no_validation_folder(
    corpus: UniqueWordCorpus, tmp_path: Path, capsys: Capture
) -> None:
    for shuffle in ("shard", "global"):
        output = tmp_path / shuffle
        options = ("--validation-fraction", 0, "--shuffle", shuffle, "--output", output)
        assert run_shards_to_pretraining(*corpus.input_options(), *options) == 0
        assert not (output / "validation").exists()
        assert json.loads((output / "dataset_dict.json").read_text()) == {"splits": ["train"]}
        assert datasets.load_from_disk(str(output)).keys() == {"train"}
        counts = load_manifest(output)["counts"]
        assert counts["train"]["documents"] == 102
        assert counts["validation"].pop("lost_tokens") == {}
        assert set(counts["validation"].values()) == {0}
        assert not sets.load_validation_documents(output)
        assert "validation" not in capsys.readouterr().out


# Files


def test_a_set_is_opened_memory_mapped(made: Callable[[str], Path]) -> None:
    output = made("bert in three passes")
    assert sum(item["bytes"] for item in load_manifest(output)["outputs"]) > 100_000
    before = pa.total_allocated_bytes()
    opened = datasets.load_from_disk(str(output))
    assert pa.total_allocated_bytes() - before < 10_000
    assert isinstance(opened, datasets.DatasetDict)
    assert list(opened) == ["train", "validation"]
    for split in SPLITS:
        rows = sets.load_rows(output, split)
        assert len(opened[split]) == len(rows)
        for at in (0, len(rows) // 2, len(rows) - 1):
            row = opened[split][at]
            assert tuple(row["input_ids"]) == rows[at].ids
            assert (row["split"], row["label"]) == (rows[at].split, rows[at].label)
            assert tuple(tuple(span.values()) for span in row["spans"]) == rows[at].spans
        with pa.memory_map(str(sets.list_shards(output, split)[0])) as file:
            before = pa.total_allocated_bytes()
            table = pa.ipc.open_stream(file).read_all()
            assert pa.total_allocated_bytes() - before < 10_000
            assert table.column_names == ["input_ids", "split", "label", "spans"]


@pytest.mark.parametrize(
    ("entries", "type_", "shuffle"),
    [
        (0, "uint16", "global"),
        (65_536, "uint16", "shard"),
        (65_537, "uint32", "shard"),
        (65_537, "uint32", "global"),
    ],
)
def test_a_shards_schema_says_what_it_holds(entries: int, type_: str, shuffle: str, tmp_path: Path) -> None:
    small = sets.write_unique_word_corpus(tmp_path, entries, abstracts=20, articles=3)
    output = tmp_path / "out"
    options = ("--validation-fraction", 0.3, "--max-seq-length", 60, "--shuffle", shuffle, "--output", output)
    assert run_shards_to_pretraining(*small.input_options(), *options) == 0
    library = Tokenizer.from_file(str(small.vocabulary / "tokenizer.json"))
    assert not entries or library.get_vocab_size() == entries
    tokenizer_json = (small.vocabulary / "tokenizer.json").read_bytes()
    for split in SPLITS:
        highest = 0
        for path in sets.list_shards(output, split):
            rows = sets.load_shard_rows(path)
            schema = pa.ipc.open_stream(pa.memory_map(str(path))).schema
            assert schema.field("input_ids").type == pa.list_(pa.type_for_alias(type_))
            assert schema.names == ["input_ids", "split", "spans"]
            assert pretraining_schema.metadata_from_schema(schema) == {
                "objective": "electra",
                "length": 60,
                "vocabulary_sha256": hashlib.sha256(tokenizer_json).hexdigest(),
                "vocabulary_size": library.get_vocab_size(),
                "special": {"[PAD]": 0, "[UNK]": 1, "[CLS]": CLS, "[SEP]": SEP, "[MASK]": 4},
                "split": split,
                "rows": len(rows),
                "tokens": sum(len(row.ids) for row in rows),
            }
            highest = max(highest, *(max(row.ids) for row in rows))
        assert highest > library.get_vocab_size() - 3_000
    assert config(output)["vocabulary"] == {
        "sha256": hashlib.sha256(tokenizer_json).hexdigest(),
        "size": library.get_vocab_size(),
    }


@pytest.mark.parametrize("shuffle", ["shard", "global"])
def test_record_batches_have_2048_rows(shuffle: str, corpus: UniqueWordCorpus, tmp_path: Path) -> None:
    options = (
        "--objective",
        "plain",
        "--max-seq-length",
        5,
        "--shuffle",
        shuffle,
        "--output",
        tmp_path / "out",
    )
    assert run_shards_to_pretraining(*corpus.input_options(corpus.folders[0]), *options) == 0
    [path] = sets.list_shards(tmp_path / "out", "train")
    with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
        sizes = [len(batch) for batch in stream]
    assert len(sizes) == 2
    assert sizes[0] == 2048 >= sizes[1] > 0


def test_the_manifest_says_what_was_made_of_what(
    corpus: UniqueWordCorpus, made: Callable[[str], Path], tmp_path: Path
) -> None:
    output = made("bert in three passes")
    facts = load_manifest(output)
    assert facts["config"].pop("library_versions").keys() == {"tokenizers"}
    assert facts["config"].pop("vocabulary").keys() == {"sha256", "size"}
    assert facts["config"] == {
        "pipeline": "shards_to_pretraining",
        "format": FORMAT,
        "objective": "bert",
        "max_seq_length": 33,
        "short_seq_prob": 0.1,
        "single_segment_prob": 0.0,
        "dupe_factor": 3,
        "keep_overflow": False,
        "as_published": False,
        "whole_words": False,
        "max_predictions_per_seq": 0,
        "seed": 0,
        "validation_fraction": 0.2,
        "shuffle": "shard",
        "max_shard_mb": 128,
        "tfrecord": False,
    }
    listed = {item["pipeline"]: item for item in facts["inputs"]}
    for folder, name, documents in zip(
        corpus.folders, ("pubmed_to_shards", "pmc_to_shards"), (93, 10), strict=True
    ):
        sha256s = [shard["sha256"] for shard in load_manifest(folder)["outputs"]]
        assert listed[name] == {
            "pipeline": name,
            "shards_sha256": hashlib.sha256("".join(sha256s).encode()).hexdigest(),
            "shards": len(sha256s),
            "documents": documents,
            "overlap": [],
        }
    found = {str(path.relative_to(output)) for path in output.rglob("*.arrow")}
    assert [item["file"] for item in facts["outputs"]] == sorted(found)
    for item in facts["outputs"]:
        data = (output / item["file"]).read_bytes()
        assert (item["bytes"], item["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
        assert item["rows"] == len(sets.load_shard_rows(output / item["file"]))
    assert facts["run"]["command"][:3] == ["beam", "run", "shards_to_pretraining"]
    assert facts["run"]["vocabulary"] == str(corpus.vocabulary)
    assert sorted(facts["run"]["inputs"]) == sorted(map(str, corpus.folders))
    assert facts["run"]["started_at"] <= facts["run"]["finished_at"]
    del facts["run"]
    assert str(corpus.vocabulary.parent) not in json.dumps(facts)
    assert {path.name for path in output.iterdir()} == {
        *(".bioshards", "manifest.json", "dataset_dict.json", "train", "validation")
    }


def test_a_run_says_what_it_has_made(corpus: UniqueWordCorpus, tmp_path: Path, capsys: Capture) -> None:
    assert (
        run_shards_to_pretraining(
            *corpus.input_options(), "--validation-fraction", 0.2, "--output", tmp_path / "out"
        )
        == 0
    )
    said = capsys.readouterr()
    counts = load_manifest(tmp_path / "out")["counts"]
    train = counts["train"]
    assert said.out.splitlines()[:4] == [
        "103 documents",
        f"  train:      {train['documents']} documents, {train['rows']} rows, {train['tokens']:,} tokens "
        f"({train['tokens'] / train['rows'] / 128:.0%} of 128 a row), "
        f"{train['lost_tokens']['overflow']:,} lost (overflow)",
        said.out.splitlines()[2],
        "  no-tokens:  1 documents",
    ]
    assert f"report:       {tmp_path}/out/manifest.json" in said.out
    told = re.findall(r"^(\d)/2 (.+): (\d+) documents in", said.err, re.MULTILINE)
    assert sorted(number for number, _, _ in told) == ["1", "2"]
    assert {(name, documents) for _, name, documents in told} == {  # two workers finish in any order
        ("data-a-00000.arrow and 2 more", "93"),
        ("data-PMC1-00000.arrow and 1 more", "10"),
    }
    assert (
        run_shards_to_pretraining(
            *corpus.input_options(), "--validation-fraction", 0.2, "--output", tmp_path / "out"
        )
        == 0
    )
    assert "is finished and its 2 inputs are unchanged: nothing to do" in capsys.readouterr().out


def test_a_large_portion_is_several_shards(corpus: UniqueWordCorpus, tmp_path: Path) -> None:
    """A shard takes about --max-shard-mb; what is in which shard depends on that alone."""
    options = (
        "--objective",
        "plain",
        "--dupe-factor",
        200,
        "--max-shard-mb",
        1,
        "--validation-fraction",
        0.2,
    )
    assert (
        run_shards_to_pretraining(
            *corpus.input_options(corpus.folders[0]), *options, "--output", tmp_path / "out"
        )
        == 0
    )
    listed = [
        item for item in load_manifest(tmp_path / "out")["outputs"] if item["file"].startswith("train/")
    ]
    assert len(listed) == 2
    assert listed[0]["file"].removesuffix("00000.arrow") == listed[1]["file"].removesuffix("00001.arrow")
    assert all(item["bytes"] < 2_200_000 for item in listed)
    documents = [
        {row.spans[0][0] for row in sets.load_shard_rows(tmp_path / "out" / item["file"])} for item in listed
    ]
    assert not documents[0] & documents[1]
    counts = load_manifest(tmp_path / "out")["counts"]
    assert counts["train"]["input_tokens"] == counts["train"]["tokens"] - counts["train"]["special_tokens"]
    assert counts["validation"]["documents"] * 3 < counts["train"]["documents"]


# The whole set shuffled


@pytest.fixture
def many_buckets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A global shuffle of small inputs makes as many shards as one of large inputs."""
    from bioshards.pipelines.drivers import pretraining_driver

    monkeypatch.setattr(pretraining_driver, "_TOKENS_PER_BYTE", 4000.0)


@pytest.mark.usefixtures("many_buckets")
@pytest.mark.parametrize("kind", ["electra", "bert in three passes", "plain"])
def test_a_global_shuffle_has_the_same_rows(
    kind: str, corpus: UniqueWordCorpus, made: Callable[[str], Path], tmp_path: Path
) -> None:
    options = (
        *KINDS[kind],
        "--validation-fraction",
        0.2,
        "--shuffle",
        "global",
        "--output",
        tmp_path / "out",
    )
    assert run_shards_to_pretraining(*corpus.input_options(), *options) == 0
    for split in SPLITS:
        found, expected = sets.load_rows(tmp_path / "out", split), sets.load_rows(made(kind), split)
        assert found != expected or split == "validation"  # these are all of one shard
        assert Counter(found) == Counter(expected)
        files = sets.list_shards(tmp_path / "out", split)
        assert [path.name for path in files] == [
            f"data-{number:05d}-of-{len(files):05d}.arrow" for number in range(len(files))
        ]
        assert len(files) > (3 if split == "train" else 1)
    ours, theirs = (load_manifest(output)["counts"] for output in (tmp_path / "out", made(kind)))
    assert ours == theirs
    opened = datasets.load_from_disk(str(tmp_path / "out"))
    assert [tuple(ids) for ids in opened["train"]["input_ids"]] == [
        row.ids for row in sets.load_rows(tmp_path / "out", "train")
    ]
    assert not list((tmp_path / "out" / ".bioshards" / "dealt").glob("*"))


def test_a_bucket_without_rows_is_no_shard(
    corpus: UniqueWordCorpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bioshards.pipelines.drivers import pretraining_driver

    monkeypatch.setattr(pretraining_driver, "_TOKENS_PER_BYTE", 40000.0)
    options = ("--objective", "plain", "--shuffle", "global", "--output", tmp_path / "out")
    assert run_shards_to_pretraining(*corpus.input_options(), *options) == 0
    listed = load_manifest(tmp_path / "out")["outputs"]
    assert 0 not in {item["rows"] for item in listed}
    assert len(listed) < int(listed[0]["file"][-11:-6])
    opened = datasets.load_from_disk(str(tmp_path / "out"))["train"]
    assert [tuple(ids) for ids in opened["input_ids"]] == [
        row.ids for row in sets.load_rows(tmp_path / "out", "train")
    ]


@pytest.mark.usefixtures("many_buckets")
def test_a_global_shuffle_is_in_the_order_of_the_rows_keys(
    corpus: UniqueWordCorpus, places: dict[int, Place], tmp_path: Path
) -> None:
    options = ("--seed", 5, "--validation-fraction", 0.2, "--shuffle", "global", "--output", tmp_path / "out")
    assert run_shards_to_pretraining(*corpus.input_options(), *options) == 0
    place_of = {document.id: at for at, document in enumerate(corpus.documents)}
    for split in SPLITS:
        rows = sets.load_rows(tmp_path / "out", split)
        begins = [min(places[token].position for token in row.ids if token > SEP) for row in rows]
        numbers, of = {}, Counter[str]()
        for at in sorted(range(len(rows)), key=begins.__getitem__):
            document = rows[at].spans[0][0]
            numbers[at] = of[document]
            of[document] += 1
        keys = np.array([document_rng.derive_document_key(5, 0, row.spans[0][0]) for row in rows], np.uint64)
        sorted_by = row_keys.derive_row_keys(keys, np.array([numbers[at] for at in range(len(rows))]))
        assert (np.diff(sorted_by.astype(np.float64)) >= 0).all()
        files = sets.list_shards(tmp_path / "out", split)
        which = [number for number, path in enumerate(files) for _ in sets.load_shard_rows(path)]
        assert which == [(int(key) >> 32) * len(files) >> 32 for key in sorted_by]
        correlation = statistics.correlation(range(len(rows)), [place_of[row.spans[0][0]] for row in rows])
        assert abs(correlation) < 3 / math.sqrt(len(rows))


def test_rows_of_a_shard_are_in_a_random_order(made: Callable[[str], Path], corpus: UniqueWordCorpus) -> None:
    place_of = {document.id: at for at, document in enumerate(corpus.documents)}
    for path in sets.list_shards(made("electra"), "train"):
        order = [place_of[row.spans[0][0]] for row in sets.load_shard_rows(path)]
        assert abs(statistics.correlation(range(len(order)), order)) < 3 / math.sqrt(len(order))


def test_another_seed_gives_other_rows(
    corpus: UniqueWordCorpus, made: Callable[[str], Path], tmp_path: Path
) -> None:
    options = ("--seed", 1, "--validation-fraction", 0, "--output")
    assert run_shards_to_pretraining(*corpus.input_options(), *options, tmp_path / "one") == 0
    rows, others = sets.load_rows(tmp_path / "one", "train"), sets.load_rows(made("electra"), "train")
    assert not {path.name for path in sets.list_shards(tmp_path / "one", "train")} & {
        path.name for path in sets.list_shards(made("electra"), "train")
    }
    assert {row.ids for row in rows} != {row.ids for row in others}


# Presets


@pytest.mark.parametrize("name", example_recipes.PRESETS)
def test_a_preset_is_made_as_its_paper_says(
    name: str, prose: tuple[Path, Path], vocabulary: Path, tmp_path: Path
) -> None:
    """On prose, with a vocabulary built on it; each span's text is in the sentences that it names."""
    recipe = example_recipes.PRESETS[name]
    if name == "bioalbert":
        options = ("--preset", "bioalbert", "--size", "130")
        vocabulary = sets.build_vocabulary(tmp_path / "albert", *prose, options=options)
    given = [word for folder in prose for word in ("--input", folder)]
    options_given = ("--vocab", vocabulary, "--validation-fraction", 0.1, "--preset", name)
    assert run_shards_to_pretraining(*given, *options_given, "--output", tmp_path / "out") == 0
    found = config(tmp_path / "out")
    assert {field: found[field] for field in recipe.to_dict()} == recipe.to_dict()
    library = Tokenizer.from_file(str(vocabulary / "tokenizer.json"))
    counts = load_manifest(tmp_path / "out")["counts"]
    text = {id_: encoded(vocabulary, sentences) for id_, sentences in sets.load_sentences(*prose).items()}
    assert counts["documents"] == len(text) == 128
    tokens = {id_: sum(map(len, sentences)) for id_, sentences in text.items()}
    held = sets.load_validation_documents(tmp_path / "out")
    for split, rows in sets.load_rows_by_split(tmp_path / "out").items():
        passes = recipe.dupe_factor if split == "train" else 1
        of_split = {id_: size for id_, size in tokens.items() if (id_ in held) == (split == "validation")}
        of = counts[split]
        assert of["documents"] == len(of_split)
        assert of["input_tokens"] == passes * sum(of_split.values())
        assert of["input_tokens"] == of["tokens"] - of["special_tokens"] - of["other_document_tokens"] + sum(
            of["lost_tokens"].values()
        )
        for row in rows:
            assert row.ids[0] == library.token_to_id("[CLS]")
            assert row.ids[-1] == library.token_to_id("[SEP]")
            assert not row.split or row.ids[row.split - 1] == library.token_to_id("[SEP]")
            found_parts = [list(part) for part in parts(row, recipe.objective)]
            for (document, _, first, end), part in zip(row.spans, found_parts, strict=True):
                named = [token for sentence in text[document][first:end] for token in sentence]
                if recipe.objective == "electra":
                    assert not Counter(part) - Counter(named)
                    assert all(is_within(list(segment), named) for segment in row.segments)
                else:
                    assert any(named[at : at + len(part)] == part for at in range(len(named)))


def is_within(part: list[int], whole: list[int]) -> bool:
    """Is the part a subsequence of the whole?"""
    rest = iter(whole)
    return all(token in rest for token in part)


def test_options_win_over_a_preset(corpus: UniqueWordCorpus, tmp_path: Path) -> None:
    options = ("--preset", "pubmedbert", "--max-seq-length", 64, "--dupe-factor", 2, "--short-seq-prob", 0)
    assert (
        run_shards_to_pretraining(
            *corpus.input_options(), *options, "--objective", "bert", "--output", tmp_path / "out"
        )
        == 0
    )
    expected = dataclasses.replace(
        example_recipes.PRESETS["pubmedbert"], max_seq_length=64, dupe_factor=2, short_seq_prob=0.0
    )
    found = config(tmp_path / "out")
    assert {field: found[field] for field in expected.to_dict()} == expected.to_dict()


def test_what_is_not_said_is_as_in_the_reference_code() -> None:
    from bioshards.pipelines import shards_to_pretraining
    from bioshards.pipelines.drivers import pretraining_driver
    from bioshards.pipelines.options.common import documents_options_from_args
    from bioshards.pipelines.shards_to_pretraining import PretrainingOptions

    parser = shards_to_pretraining.make_parser()

    def make_recipe(*argv: str) -> example_recipes.ExampleRecipe:
        options = documents_options_from_args(PretrainingOptions, parser.parse_args(argv))
        return pretraining_driver.make_recipe(options)

    for objective in OBJECTIVES:
        assert make_recipe("--objective", objective) == example_recipes.DEFAULTS[objective]
    assert make_recipe() == example_recipes.DEFAULTS["electra"]


def test_list_and_help_name_it_and_wait_for_nothing() -> None:
    assert "shards_to_pretraining " in run_beam("list").stdout
    said = run_beam("run", "shards_to_pretraining", "--help").stdout
    for option in ("--input DIR", "--vocab DIR", "--preset", "--keep-overflow", "--shuffle {shard,global}"):
        assert option in said
    assert "Beam" in said


# What passes between the steps


def test_no_token_and_no_text_passes_between_the_steps(
    prose: tuple[Path, Path], vocabulary: Path, tmp_path: Path
) -> None:
    """Everything that any transform gives is written down: names, numbers and reports."""
    import functools

    import apache_beam
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.pipeline import PipelineVisitor

    from bioshards.pipelines import shards_to_pretraining
    from bioshards.pipelines.drivers import pretraining_driver
    from bioshards.pipelines.execution import local_runner

    collections: list[Any] = []

    class Looking(PipelineVisitor):  # type: ignore[misc]
        def visit_transform(self, node: Any) -> None:
            collections.extend(node.outputs.values())

    words = ["--input", prose[0], "--input", prose[1], "--vocab", vocabulary, "--output", tmp_path / "out"]
    given = list(map(str, [*words, "--shuffle", "global", "--validation-fraction", 0.1]))
    parser = shards_to_pretraining.make_parser()
    driver = pretraining_driver.PretrainingDriver(parser, parser.parse_args(given), [], given)
    job = driver.load_inputs(LocalStorage(), list(map(str, prose)))
    options = PipelineOptions([], **local_runner.make_local_options(1))
    root = apache_beam.Pipeline(runner=local_runner.make_runner(options), options=options)
    shards_to_pretraining.build(root, job)
    root.visit(Looking())
    for number, collection in enumerate(collections):
        note = apache_beam.Map(functools.partial(_note, str(tmp_path / "notes")))
        collection | f"Note {number}" >> note
    result = root.run()
    result.wait_until_finish()
    notes = (tmp_path / "notes").read_text()
    assert "BuildResult(" in notes
    assert "MergeResult(" in notes
    for word in ("mice", "BRCA1", "naïve", "pubmed:", "[CLS]"):
        assert word not in notes
    assert len(notes) < 30_000
    metrics = {found.key.metric.name: found.committed for found in result.metrics().query()["counters"]}
    counts = load_manifest(tmp_path / "out")["counts"]
    assert metrics["build_items"] == 2
    assert metrics["build_documents"] == counts["documents"]
    assert metrics["merge_items"] == 2
    for split in SPLITS:
        assert metrics[f"build_{split}_rows"] == counts[split]["rows"] > 0
        assert metrics[f"build_{split}_tokens"] == counts[split]["tokens"]


def _note(path: str, element: object) -> None:
    with open(path, "a") as file:
        file.write(f"{element!r}\n")
