"""Records for the original trainers: read back by protobuf, against the rows that they are made of."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer

from bioshards.corpus.manifest import Shard, decode
from bioshards.corpus.output.output_layout import SPLITS, TFRECORD_FOLDERS, OutputDir
from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import pretraining_dir
from bioshards.vocab.pretraining.build import build_group
from bioshards.vocab.pretraining.objectives import example_recipes
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.shard_writer import ShardWriter
from bioshards.vocab.pretraining.tfrecord import static_masks
from bioshards.vocab.pretraining.tfrecord.record_encoder import make_record_encoder
from tests.support.outputs import load_manifest, published_digests
from tests.support.vocab.block_factories import (
    CLS,
    SEP,
    WORDS,
    make_abstracts,
    make_build_config,
    make_schema,
    make_sentencepiece,
    make_sentences_document,
    make_single_group,
    make_word_encoder,
    read_listed_rows,
    save_encoder,
    write_documents,
)
from tests.support.vocab.tfrecord_reader import TfExample, read_tfrecords
from tests.support.vocab.tiny_tokenizers import make_wordpiece

LENGTH = 16
PAIRS = ("bert", "albert")
Record = dict[str, list[Any]]


def records(data: bytes) -> list[Record]:
    """The features of each record of a file, by name."""
    found = []
    for message in read_tfrecords(data):
        features = TfExample.FromString(message).features.feature
        found.append(
            {
                name: list(features[name].int64_list.value or features[name].float_list.value)
                for name in features
            }
        )
    return found


def restored(record: Record) -> tuple[int, ...]:
    """The row's ids as they were before they were masked and padded."""
    ids = list(record["input_ids"])
    for place, number, weight in zip(
        record["masked_lm_positions"], record["masked_lm_ids"], record["masked_lm_weights"], strict=True
    ):
        if weight:
            ids[place] = number
    return tuple(ids[: sum(record["input_mask"])])


def predicted(record: Record) -> set[int]:
    """The places that are to be predicted."""
    return set(record["masked_lm_positions"][: int(sum(record["masked_lm_weights"]))])


def batch(*rows: tuple[list[int], int, int | None]) -> pa.RecordBatch:
    """Rows of ids, where segment B starts, and their labels, or none of them labelled."""
    columns = make_schema(labelled=any(label is not None for *_, label in rows))
    return pa.RecordBatch.from_pylist(
        [{"input_ids": ids, "split": at, "label": label, "spans": []} for ids, at, label in rows], columns
    )


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[int], int, int]:
    text = st.lists(st.integers(5, 100), min_size=1, max_size=6)
    a, b = draw(text), draw(text)
    if draw(st.booleans()):
        return [CLS, *a, SEP], 0, NO_LABEL
    return [CLS, *a, SEP, *b, SEP], len(a) + 2, draw(st.integers(0, 1))


ROWS = st.lists(rows(), min_size=1, max_size=12)
SEED = st.integers(0, (1 << 63) - 1)


def keys_of(seed: int, number: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.random.default_rng(seed).integers(0, 1 << 64, number, np.uint64)


# Rows to records


@given(ROWS)
@settings(deadline=None)
def test_electras_records_are_the_rows_padded(
    encoder: Encoder, drawn: list[tuple[list[int], int, int]]
) -> None:
    data, count = make_record_encoder(encoder, ExampleRecipe("electra", LENGTH)).encode_batch(
        batch(*((ids, at, None) for ids, at, _ in drawn)), keys_of(0, len(drawn))
    )
    assert count == len(drawn)
    assert records(data) == [
        {
            "input_ids": [*ids, *[0] * (LENGTH - len(ids))],
            "input_mask": [int(place < len(ids)) for place in range(LENGTH)],
            "segment_ids": [int(0 < at <= place < len(ids)) for place in range(LENGTH)],
        }
        for ids, at, _ in drawn
    ]


@pytest.mark.parametrize("objective", PAIRS)
@given(drawn=ROWS, seed=SEED)
@settings(max_examples=50, deadline=None)
def test_records_of_pairs_are_the_labelled_rows_with_the_masks_of_their_keys(
    objective: Any, encoder: Encoder, drawn: list[tuple[list[int], int, int]], seed: int
) -> None:
    keys = keys_of(seed, len(drawn))
    writer = make_record_encoder(encoder, ExampleRecipe(objective, LENGTH, max_predictions_per_seq=4))
    assert writer.masking
    data, count = writer.encode_batch(batch(*drawn), keys)
    found = records(data)
    labelled = [(*row, key) for row, key in zip(drawn, keys.tolist(), strict=True) if row[2] != NO_LABEL]
    assert count == len(found) == len(labelled)
    for record, (ids, at, label, key) in zip(found, labelled, strict=True):
        assert restored(record) == tuple(ids)
        assert record["next_sentence_labels"] == [label]
        assert record["segment_ids"] == [int(at <= place < len(ids)) for place in range(LENGTH)]
        mask = static_masks.mask_bert_row if objective == "bert" else static_masks.mask_albert_row
        masked = mask(ids, writer.masking, Random(key))
        assert record["input_ids"] == [*masked.ids, *[0] * (LENGTH - len(ids))]
        assert predicted(record) == set(masked.positions)


@pytest.mark.parametrize("objective", ["electra", *PAIRS])
@given(drawn=ROWS, seed=SEED, data=st.data())
@settings(max_examples=50, deadline=None)
def test_batches_bounds_change_nothing(
    objective: Any, encoder: Encoder, drawn: list[tuple[list[int], int, int]], seed: int, data: st.DataObject
) -> None:
    keys = keys_of(seed, len(drawn))
    writer = make_record_encoder(encoder, ExampleRecipe(objective, LENGTH))
    whole = batch(*drawn)
    bounds = sorted(data.draw(st.lists(st.integers(0, len(drawn)), max_size=4)))
    parts = [
        writer.encode_batch(whole.slice(start, stop - start), keys[start:stop])
        for start, stop in zip([0, *bounds], [*bounds, len(drawn)], strict=True)
        if stop > start
    ]
    together, count = writer.encode_batch(whole, keys)
    assert b"".join(part for part, _ in parts) == together
    assert sum(number for _, number in parts) == count


@pytest.mark.parametrize("objective", PAIRS)
def test_rows_of_no_label_alone_are_no_records(objective: Any, encoder: Encoder) -> None:
    writer = make_record_encoder(encoder, ExampleRecipe(objective, LENGTH))
    assert writer.encode_batch(batch(([CLS, 9, SEP], 0, NO_LABEL)), keys_of(0, 1)) == (b"", 0)


@pytest.mark.parametrize("objective", PAIRS)
def test_the_same_row_has_other_masks_with_another_key(objective: Any, encoder: Encoder) -> None:
    ids = [CLS, *range(5, 60), SEP, *range(60, 120), SEP]
    writer = make_record_encoder(encoder, ExampleRecipe(objective, 128))
    data, _ = writer.encode_batch(batch(*[(ids, 57, 0)] * 50), keys_of(1, 50))
    assert len({tuple(sorted(predicted(record))) for record in records(data)}) == 50


@pytest.mark.parametrize("objective", ["electra", *PAIRS])
def test_a_written_file_has_the_records_of_all_batches(
    objective: Any, encoder: Encoder, tmp_path: Path
) -> None:
    ids = [CLS, *range(5, 60), SEP, *range(60, 120), SEP]
    labels = [0, NO_LABEL, 1, 0, 1] * 4
    whole = batch(*((ids, 57, None if objective == "electra" else label) for label in labels))
    keys = keys_of(2, len(labels))
    made_by = make_record_encoder(encoder, ExampleRecipe(objective, 128))
    batches = (whole.slice(start, 3) for start in range(0, len(labels), 3))
    written = ShardWriter(made_by).write(
        LocalStorage(), str(tmp_path), "train", "data-x", whole.schema, batches, keys
    )
    data, count = made_by.encode_batch(whole, keys)
    assert (tmp_path / written[1].file).read_bytes() == data
    assert [one.rows for one in written] == [len(labels), count]


# What they are made with


@pytest.mark.parametrize(
    ("recipe", "most"),
    [
        (example_recipes.DEFAULTS["bert"], 20),
        (example_recipes.DEFAULTS["albert"], 20),
        (example_recipes.PRESETS["pubmedbert"], 80),
        (example_recipes.PRESETS["bioalbert"], 20),
        (ExampleRecipe("bert", 512), 77),
        (ExampleRecipe("bert", 5), 1),
        (ExampleRecipe("bert", 128, max_predictions_per_seq=7), 7),
        (ExampleRecipe("albert", 16, max_predictions_per_seq=20), 20),
    ],
)
def test_the_most_predictions_are_those_asked_for_or_15_percent(
    recipe: ExampleRecipe, most: int, encoder: Encoder
) -> None:
    writer = make_record_encoder(encoder, recipe)
    assert writer.masking
    assert writer.masking.max_predictions_per_seq == most
    ids = [CLS, 9, SEP, 10, SEP]
    (record,) = records(writer.encode_batch(batch((ids, 3, 1)), keys_of(0, 1))[0])
    of_predictions = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    assert {len(record[name]) for name in of_predictions} == {most}
    others = {"input_ids", "input_mask", "segment_ids"}
    others |= {"token_boundary"} if recipe.objective == "albert" else set()
    assert {len(record[name]) for name in others} == {recipe.max_seq_length}
    assert set(record) == {*of_predictions, *others, "next_sentence_labels"}


def test_there_are_none_of_plain_rows(encoder: Encoder) -> None:
    with pytest.raises(ValueError, match="--tfrecord is for electra, bert and albert"):
        make_record_encoder(encoder, ExampleRecipe("plain"))


@pytest.mark.parametrize(("pad", "at"), [("[PAD]", 4), ("<pad>", 5), ("[pad]", None)])
def test_rows_are_padded_with_the_vocabularys_pad_or_0(pad: str, at: int | None, tmp_path: Path) -> None:
    pieces = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "x", "y"]
    pieces[at or 5] = pad
    tokenizer = Tokenizer(WordPiece({piece: n for n, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens([piece for piece in pieces if piece.startswith(("[", "<"))])
    found = make_record_encoder(save_encoder(tmp_path, tokenizer), ExampleRecipe("electra", 5))
    assert found.pad_id == (at or 0)
    (record,) = records(found.encode_batch(batch(([1, 4, 2], 0, None)), keys_of(0, 1))[0])
    assert record["input_ids"][3:] == [at or 0] * 2


def test_ids_above_65535_keep_their_value(tmp_path: Path) -> None:
    encoder = make_word_encoder(tmp_path, *(f"filler{n}" for n in range(70_000)))
    ids = [CLS, 70_123, SEP, 66_000, SEP]
    columns = make_schema(encoder.size, labelled=True)
    rows_ = pa.RecordBatch.from_pylist([{"input_ids": ids, "split": 3, "label": 0, "spans": []}], columns)
    (record,) = records(
        make_record_encoder(encoder, ExampleRecipe("bert", 8)).encode_batch(rows_, keys_of(0, 1))[0]
    )
    assert restored(record) == tuple(ids)


# Whole words


PIECES = ["cell", "##ul", "##ar", "kin", "##ase", "s", "##s", "(", ")"]


def words_of(ids: list[int], continues: Callable[[int], bool]) -> list[set[int]]:
    """The places of each word of a row of two segments."""
    found: list[set[int]] = []
    for place, number in enumerate(ids):
        if number in (CLS, SEP):
            continue
        if found and continues(number):
            found[-1].add(place)
        else:
            found.append({place})
    return found


def masks_of(
    encoder: Encoder, recipe: ExampleRecipe, ids: list[int], split: int, times: int = 60
) -> list[set[int]]:
    data, _ = make_record_encoder(encoder, recipe).encode_batch(
        batch(*[(ids, split, 1)] * times), keys_of(3, times)
    )
    return [predicted(record) for record in records(data)]


def torn(masks: Iterable[set[int]], words: list[set[int]]) -> bool:
    return any(mask & word and word - mask for mask in masks for word in words)


@pytest.mark.parametrize("extra", [[], ["\u2581", "\u2581x"]])
def test_whole_words_are_masked_for_pubmedbert_and_single_pieces_for_bert(
    extra: list[str], tmp_path: Path
) -> None:
    """Though a piece of WordPiece's may begin with the sign that SentencePiece has for a blank."""
    encoder = save_encoder(tmp_path, make_wordpiece(*PIECES, *extra))
    ids_of = encoder.get_vocab()
    text = [ids_of[piece] for piece in ("cell", "##ul", "##ar", "kin", "##ase", "##s", "(", "s", ")")]
    ids = [CLS, *text, *text, SEP, *text, SEP]
    words = words_of(ids, lambda number: bool(encoder.is_continuation[number]))
    assert sorted(map(len, words)) == [1] * 9 + [3] * 6
    whole = example_recipes.PRESETS["pubmedbert"]
    masks = masks_of(encoder, whole, ids, 20)
    assert not torn(masks, words)
    assert set.union(*masks) == set.union(*words)
    assert torn(masks_of(encoder, ExampleRecipe("bert", 64), ids, 20), words)


def test_albert_has_whole_words_by_the_rule_of_its_code(tmp_path: Path) -> None:
    """A figure or a comma is a word of its own there, though no blank stands before it."""
    encoder = save_encoder(
        tmp_path, make_sentencepiece("\u2581cell", "s", "ular", "6", "-", "\u2581il", "ing")
    )
    assert encoder.is_sentencepiece
    ids_of = encoder.get_vocab()
    text = [ids_of[piece] for piece in ("\u2581cell", "ular", "s", "\u2581il", "-", "6", "\u2581cell", "ing")]
    ids = [CLS, *text, SEP, *text, SEP]
    continues = {ids_of[piece] for piece in ("s", "ular", "ing")}
    words = words_of(ids, continues.__contains__)
    assert not torn(masks_of(encoder, example_recipes.DEFAULTS["albert"], ids, 10), words)
    writer = make_record_encoder(encoder, example_recipes.DEFAULTS["albert"])
    (record,) = records(writer.encode_batch(batch((ids, 10, 0)), keys_of(0, 1))[0])
    begins = [int(number not in continues) for number in ids]
    assert record["token_boundary"] == [*begins, *[0] * (512 - len(ids))]


# In a run's steps


def made_files(out: Path, folder: Path, encoder: Encoder, recipe: ExampleRecipe, **how: Any) -> list[Shard]:
    """What is listed of two groups, merged where rows are dealt out."""
    output_dir, storage = OutputDir(str(out)), LocalStorage()
    given_ = make_build_config(
        encoder, recipe, writer=ShardWriter(make_record_encoder(encoder, recipe)), **how
    )
    several = [
        write_documents(folder / f"one-{first}", {"a": make_abstracts(first, first + 40)})
        for first in (1, 50)
    ]
    made = [build_group(storage, output_dir, make_single_group(documents), given_) for documents in several]
    listed = [one for group in made for one in group.outputs]
    for split, buckets in given_.num_buckets.items():
        names = [name for group in made for name in group.spill_files[split]]
        for bucket in range(buckets):
            listed += pretraining_dir.merge_bucket(storage, output_dir, given_, names, split, bucket).outputs
    return listed


def all_records(out: Path, listed: Iterable[Shard], split: str) -> list[Record]:
    return [
        record
        for one in listed
        if one.file.startswith(f"{TFRECORD_FOLDERS[split]}/")
        for record in records((out / one.file).read_bytes())
    ]


@pytest.mark.parametrize("objective", ["electra", *PAIRS])
@pytest.mark.parametrize("buckets", [{}, {"train": 3, "validation": 1}])
def test_the_files_beside_a_shard_have_its_rows_in_its_order(
    objective: Any, buckets: dict[str, int], tmp_path: Path, encoder: Encoder
) -> None:
    recipe = ExampleRecipe(objective, LENGTH)
    listed = made_files(tmp_path, tmp_path, encoder, recipe, num_buckets=buckets)
    arrows = [one for one in listed if one.file.endswith(".arrow")]
    others = {one.file: one for one in listed if not one.file.endswith(".arrow")}
    assert len(arrows) == len(others) == 4
    for one in arrows:
        split, _, name = one.file.removesuffix(".arrow").partition("/data-")
        beside = others[f"{TFRECORD_FOLDERS[split]}/pretrain_data.tfrecord-{name}"]
        rows_ = [row for row in read_listed_rows(tmp_path, [one]) if row.get("label") != NO_LABEL]
        found = records((tmp_path / beside.file).read_bytes())
        assert beside.rows == len(found) == len(rows_)
        for record, row in zip(found, rows_, strict=True):
            ids = record["input_ids"] if objective == "electra" else list(restored(record))
            assert tuple(ids[: sum(record["input_mask"])]) == tuple(row["input_ids"])
            assert record.get("next_sentence_labels", [0]) == [row.get("label", 0)]
    if objective == "albert":
        assert sum(one.rows for one in others.values()) < sum(one.rows for one in arrows)


@pytest.mark.parametrize("objective", PAIRS)
def test_a_row_has_the_same_masks_in_whatever_shard_it_is(
    objective: Any, tmp_path: Path, encoder: Encoder
) -> None:
    recipe = ExampleRecipe(objective, LENGTH, dupe_factor=2)
    found = []
    for name, buckets in (("shard", {}), ("global", {"train": 3, "validation": 2})):
        listed = made_files(tmp_path / name, tmp_path / name, encoder, recipe, num_buckets=buckets)
        found.append([sorted(map(repr, all_records(tmp_path / name, listed, split))) for split in SPLITS])
    assert found[0] == found[1]
    assert all(found[0])


def test_two_passes_over_the_same_row_have_masks_of_their_own(tmp_path: Path, encoder: Encoder) -> None:
    """Of two sentences there are but two rows, in order or swapped; of ten passes some are equal."""
    sentences = [" ".join(WORDS[n * 50 : n * 50 + 40]) for n in range(2)]
    documents = write_documents(tmp_path / "in", {"a": [make_sentences_document("pubmed:1", *sentences)]})
    recipe = ExampleRecipe("albert", 128, dupe_factor=10)
    how = make_build_config(
        encoder, recipe, validation_fraction=0, writer=ShardWriter(make_record_encoder(encoder, recipe))
    )
    made = build_group(LocalStorage(), OutputDir(str(tmp_path)), make_single_group(documents), how)
    masks = defaultdict(list)
    for record in all_records(tmp_path, made.outputs, "train"):
        masks[restored(record)].append(tuple(sorted(predicted(record))))
    assert sum(map(len, masks.values())) == 10
    assert len(masks) == 2
    assert all(len(set(of_row)) == len(of_row) for of_row in masks.values())


# From the command line


def run(*arguments: object) -> int:
    return cli.main(["run", "shards_to_pretraining", "--workers", "1", *map(str, arguments)])


@pytest.mark.parametrize(
    ("objective", "most"), [("electra", None), ("bert", None), ("bert", 3), ("albert", None), ("albert", 3)]
)
def test_the_command_writes_them_and_lists_them(
    objective: str, most: int | None, tmp_path: Path, encoder: Encoder, capsys: pytest.CaptureFixture[str]
) -> None:
    write_documents(tmp_path / "in", {"a": make_abstracts(1, 60)})
    vocabulary = tmp_path / "vocabulary"
    make_word_encoder(vocabulary)
    out = tmp_path / "out"
    options = [
        "--input",
        tmp_path / "in",
        "--vocab",
        vocabulary,
        "--output",
        out,
        "--validation-fraction",
        0.3,
    ]
    options += ["--objective", objective, "--max-seq-length", LENGTH, "--tfrecord"]
    options += ["--max-predictions-per-seq", most] if most else []
    assert run(*options) == 0
    listed = [decode(Shard, one) for one in load_manifest(out)["outputs"]]
    assert len(listed) == 4
    for one in listed:
        data = (out / one.file).read_bytes()
        assert (one.bytes, one.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    for split in SPLITS:
        rows_ = read_listed_rows(out, [one for one in listed if one.file.startswith(f"{split}/")])
        kept = [row for row in rows_ if row.get("label") != NO_LABEL]
        found = all_records(out, listed, split)
        of_split = [one.rows for one in listed if one.file.startswith(TFRECORD_FOLDERS[split])]
        assert of_split == [len(found)] == [len(kept)]
        assert found
        assert {len(record["input_ids"]) for record in found} == {LENGTH}
        if objective != "electra":
            features = most or {"bert": math.ceil(0.15 * LENGTH), "albert": 20}[objective]
            assert {len(record["masked_lm_ids"]) for record in found} == {features}
    before = published_digests(out)
    capsys.readouterr()
    assert run(*options) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert published_digests(out) == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--objective", "plain", "--tfrecord"], "--tfrecord is for electra, bert and albert"),
        (
            ["--objective", "bert", "--max-predictions-per-seq", 3],
            "--max-predictions-per-seq needs --tfrecord: other rows are not masked",
        ),
        (
            ["--tfrecord", "--max-predictions-per-seq", 3],
            "--max-predictions-per-seq does not apply to --objective electra",
        ),
    ],
)
def test_options_that_say_nothing_are_refused(
    options: list[object], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_documents(tmp_path / "in", {"a": make_abstracts(1, 60)})
    make_word_encoder(tmp_path / "vocabulary")
    given_ = ["--input", tmp_path / "in", "--vocab", tmp_path / "vocabulary", "--output", tmp_path / "out"]
    assert run(*given_, *options) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
