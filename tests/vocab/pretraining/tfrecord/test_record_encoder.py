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
from tests.support.hypothesis_profiles import examples
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


def parse_records(data: bytes) -> list[Record]:
    """Return the features of each record of a file, by name."""
    records = []
    for message in read_tfrecords(data):
        features = TfExample.FromString(message).features.feature
        records.append(
            {
                name: list(features[name].int64_list.value or features[name].float_list.value)
                for name in features
            }
        )
    return records


def restore_ids(record: Record) -> tuple[int, ...]:
    """Return the row's ids without masks and padding."""
    ids = list(record["input_ids"])
    for place, number, weight in zip(
        record["masked_lm_positions"], record["masked_lm_ids"], record["masked_lm_weights"], strict=True
    ):
        if weight:
            ids[place] = number
    return tuple(ids[: sum(record["input_mask"])])


def get_predicted_positions(record: Record) -> set[int]:
    """Return the positions of the predictions."""
    return set(record["masked_lm_positions"][: int(sum(record["masked_lm_weights"]))])


def make_batch(*draw_row: tuple[list[int], int, int | None]) -> pa.RecordBatch:
    """Make a batch of rows, each given by its ids, the start of segment B and its label."""
    columns = make_schema(labelled=any(label is not None for *_, label in draw_row))
    return pa.RecordBatch.from_pylist(
        [{"input_ids": ids, "split": at, "label": label, "spans": []} for ids, at, label in draw_row], columns
    )


@st.composite
def draw_row(draw: st.DrawFn) -> tuple[list[int], int, int]:
    text = st.lists(st.integers(5, 100), min_size=1, max_size=6)
    first, second = draw(text), draw(text)
    if draw(st.booleans()):
        return [CLS, *first, SEP], 0, NO_LABEL
    return [CLS, *first, SEP, *second, SEP], len(first) + 2, draw(st.integers(0, 1))


ROWS = st.lists(draw_row(), min_size=1, max_size=12)
SEED = st.integers(0, (1 << 63) - 1)


def make_keys(seed: int, number: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    return np.random.default_rng(seed).integers(0, 1 << 64, number, np.uint64)


# Rows to records


@given(ROWS)
def test_electra_records_are_padded_rows(
    encoder: Encoder, example_rows: list[tuple[list[int], int, int]]
) -> None:
    data, count = make_record_encoder(encoder, ExampleRecipe("electra", LENGTH)).encode_batch(
        make_batch(*((ids, at, None) for ids, at, _ in example_rows)), make_keys(0, len(example_rows))
    )
    assert count == len(example_rows)
    assert parse_records(data) == [
        {
            "input_ids": [*ids, *[0] * (LENGTH - len(ids))],
            "input_mask": [int(place < len(ids)) for place in range(LENGTH)],
            "segment_ids": [int(0 < at <= place < len(ids)) for place in range(LENGTH)],
        }
        for ids, at, _ in example_rows
    ]


@pytest.mark.parametrize("objective", PAIRS)
@given(example_rows=ROWS, seed=SEED)
@settings(max_examples=examples(50))
def test_pair_records_have_the_masks_of_their_row_keys(
    objective: Any, encoder: Encoder, example_rows: list[tuple[list[int], int, int]], seed: int
) -> None:
    keys = make_keys(seed, len(example_rows))
    writer = make_record_encoder(encoder, ExampleRecipe(objective, LENGTH, max_predictions_per_seq=4))
    assert writer.masking
    data, count = writer.encode_batch(make_batch(*example_rows), keys)
    found = parse_records(data)
    labelled = [
        (*row, key) for row, key in zip(example_rows, keys.tolist(), strict=True) if row[2] != NO_LABEL
    ]
    assert count == len(found) == len(labelled)
    for record, (ids, at, label, key) in zip(found, labelled, strict=True):
        assert restore_ids(record) == tuple(ids)
        assert record["next_sentence_labels"] == [label]
        assert record["segment_ids"] == [int(at <= place < len(ids)) for place in range(LENGTH)]
        mask = static_masks.mask_bert_row if objective == "bert" else static_masks.mask_albert_row
        masked = mask(ids, writer.masking, Random(key))
        assert record["input_ids"] == [*masked.ids, *[0] * (LENGTH - len(ids))]
        assert get_predicted_positions(record) == set(masked.positions)


@pytest.mark.parametrize("objective", ["electra", *PAIRS])
@given(example_rows=ROWS, seed=SEED, data=st.data())
@settings(max_examples=examples(50))
def test_records_are_independent_of_batching(
    objective: Any,
    encoder: Encoder,
    example_rows: list[tuple[list[int], int, int]],
    seed: int,
    data: st.DataObject,
) -> None:
    keys = make_keys(seed, len(example_rows))
    writer = make_record_encoder(encoder, ExampleRecipe(objective, LENGTH))
    full_batch = make_batch(*example_rows)
    bounds = sorted(data.draw(st.lists(st.integers(0, len(example_rows)), max_size=4)))
    parts = [
        writer.encode_batch(full_batch.slice(start, stop - start), keys[start:stop])
        for start, stop in zip([0, *bounds], [*bounds, len(example_rows)], strict=True)
        if stop > start
    ]
    together, count = writer.encode_batch(full_batch, keys)
    assert b"".join(part for part, _ in parts) == together
    assert sum(number for _, number in parts) == count


@pytest.mark.parametrize("objective", PAIRS)
def test_unlabelled_rows_give_no_records(objective: Any, encoder: Encoder) -> None:
    writer = make_record_encoder(encoder, ExampleRecipe(objective, LENGTH))
    assert writer.encode_batch(make_batch(([CLS, 9, SEP], 0, NO_LABEL)), make_keys(0, 1)) == (b"", 0)


@pytest.mark.parametrize("objective", PAIRS)
def test_masks_differ_between_row_keys(objective: Any, encoder: Encoder) -> None:
    ids = [CLS, *range(5, 60), SEP, *range(60, 120), SEP]
    writer = make_record_encoder(encoder, ExampleRecipe(objective, 128))
    data, _ = writer.encode_batch(make_batch(*[(ids, 57, 0)] * 50), make_keys(1, 50))
    assert len({tuple(sorted(get_predicted_positions(record))) for record in parse_records(data)}) == 50


@pytest.mark.parametrize("objective", ["electra", *PAIRS])
def test_a_written_file_has_the_records_of_all_batches(
    objective: Any, encoder: Encoder, tmp_path: Path
) -> None:
    ids = [CLS, *range(5, 60), SEP, *range(60, 120), SEP]
    labels = [0, NO_LABEL, 1, 0, 1] * 4
    full_batch = make_batch(*((ids, 57, None if objective == "electra" else label) for label in labels))
    keys = make_keys(2, len(labels))
    encoder_ = make_record_encoder(encoder, ExampleRecipe(objective, 128))
    batches = (full_batch.slice(start, 3) for start in range(0, len(labels), 3))
    shards = ShardWriter(encoder_).write(
        LocalStorage(), str(tmp_path), "train", "data-x", full_batch.schema, batches, keys
    )
    data, count = encoder_.encode_batch(full_batch, keys)
    assert (tmp_path / shards[1].file).read_bytes() == data
    assert [shard.rows for shard in shards] == [len(labels), count]


# Settings of the encoder


@pytest.mark.parametrize(
    ("recipe", "max_predictions"),
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
def test_max_predictions_is_the_option_or_15_percent(
    recipe: ExampleRecipe, max_predictions: int, encoder: Encoder
) -> None:
    writer = make_record_encoder(encoder, recipe)
    assert writer.masking
    assert writer.masking.max_predictions_per_seq == max_predictions
    ids = [CLS, 9, SEP, 10, SEP]
    (record,) = parse_records(writer.encode_batch(make_batch((ids, 3, 1)), make_keys(0, 1))[0])
    prediction_features = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
    assert {len(record[name]) for name in prediction_features} == {max_predictions}
    others = {"input_ids", "input_mask", "segment_ids"}
    others |= {"token_boundary"} if recipe.objective == "albert" else set()
    assert {len(record[name]) for name in others} == {recipe.max_seq_length}
    assert set(record) == {*prediction_features, *others, "next_sentence_labels"}


def test_plain_objective_is_refused(encoder: Encoder) -> None:
    with pytest.raises(ValueError, match="--tfrecord is for electra, bert and albert"):
        make_record_encoder(encoder, ExampleRecipe("plain"))


@pytest.mark.parametrize(("pad", "pad_id"), [("[PAD]", 4), ("<pad>", 5), ("[pad]", None)])
def test_rows_are_padded_with_the_pad_id_or_0(pad: str, pad_id: int | None, tmp_path: Path) -> None:
    pieces = ["[UNK]", "[CLS]", "[SEP]", "[MASK]", "x", "y"]
    pieces[pad_id or 5] = pad
    tokenizer = Tokenizer(WordPiece({piece: n for n, piece in enumerate(pieces)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = BertPreTokenizer()
    tokenizer.add_special_tokens([piece for piece in pieces if piece.startswith(("[", "<"))])
    record_encoder = make_record_encoder(save_encoder(tmp_path, tokenizer), ExampleRecipe("electra", 5))
    assert record_encoder.pad_id == (pad_id or 0)
    (record,) = parse_records(
        record_encoder.encode_batch(make_batch(([1, 4, 2], 0, None)), make_keys(0, 1))[0]
    )
    assert record["input_ids"][3:] == [pad_id or 0] * 2


def test_ids_above_65535_keep_their_value(tmp_path: Path) -> None:
    encoder = make_word_encoder(tmp_path, *(f"filler{n}" for n in range(70_000)))
    ids = [CLS, 70_123, SEP, 66_000, SEP]
    columns = make_schema(encoder.size, labelled=True)
    record_batch = pa.RecordBatch.from_pylist(
        [{"input_ids": ids, "split": 3, "label": 0, "spans": []}], columns
    )
    (record,) = parse_records(
        make_record_encoder(encoder, ExampleRecipe("bert", 8)).encode_batch(record_batch, make_keys(0, 1))[0]
    )
    assert restore_ids(record) == tuple(ids)


# Whole words


PIECES = ["cell", "##ul", "##ar", "kin", "##ase", "s", "##s", "(", ")"]


def group_words(ids: list[int], continues: Callable[[int], bool]) -> list[set[int]]:
    """Return the positions of each word of a row of two segments."""
    words: list[set[int]] = []
    for place, number in enumerate(ids):
        if number in (CLS, SEP):
            continue
        if words and continues(number):
            words[-1].add(place)
        else:
            words.append({place})
    return words


def draw_masks(
    encoder: Encoder, recipe: ExampleRecipe, ids: list[int], split: int, times: int = 60
) -> list[set[int]]:
    data, _ = make_record_encoder(encoder, recipe).encode_batch(
        make_batch(*[(ids, split, 1)] * times), make_keys(3, times)
    )
    return [get_predicted_positions(record) for record in parse_records(data)]


def has_partial_word(masks: Iterable[set[int]], words: list[set[int]]) -> bool:
    return any(mask & word and word - mask for mask in masks for word in words)


@pytest.mark.parametrize("extra", [[], ["\u2581", "\u2581x"]])
def test_pubmedbert_masks_whole_words_and_bert_single_pieces(extra: list[str], tmp_path: Path) -> None:
    """The vocabulary may contain pieces that begin with SentencePiece's blank sign."""
    encoder = save_encoder(tmp_path, make_wordpiece(*PIECES, *extra))
    vocab = encoder.get_vocab()
    text = [vocab[piece] for piece in ("cell", "##ul", "##ar", "kin", "##ase", "##s", "(", "s", ")")]
    ids = [CLS, *text, *text, SEP, *text, SEP]
    words = group_words(ids, lambda number: bool(encoder.is_continuation[number]))
    assert sorted(map(len, words)) == [1] * 9 + [3] * 6
    whole = example_recipes.PRESETS["pubmedbert"]
    masks = draw_masks(encoder, whole, ids, 20)
    assert not has_partial_word(masks, words)
    assert set.union(*masks) == set.union(*words)
    assert has_partial_word(draw_masks(encoder, ExampleRecipe("bert", 64), ids, 20), words)


def test_albert_masks_whole_words_as_its_reference_code(tmp_path: Path) -> None:
    """A digit or punctuation character begins a word even without a blank before it."""
    encoder = save_encoder(
        tmp_path, make_sentencepiece("\u2581cell", "s", "ular", "6", "-", "\u2581il", "ing")
    )
    assert encoder.is_sentencepiece
    vocab = encoder.get_vocab()
    text = [vocab[piece] for piece in ("\u2581cell", "ular", "s", "\u2581il", "-", "6", "\u2581cell", "ing")]
    ids = [CLS, *text, SEP, *text, SEP]
    continues = {vocab[piece] for piece in ("s", "ular", "ing")}
    words = group_words(ids, continues.__contains__)
    assert not has_partial_word(draw_masks(encoder, example_recipes.DEFAULTS["albert"], ids, 10), words)
    writer = make_record_encoder(encoder, example_recipes.DEFAULTS["albert"])
    (record,) = parse_records(writer.encode_batch(make_batch((ids, 10, 0)), make_keys(0, 1))[0])
    begins = [int(number not in continues) for number in ids]
    assert record["token_boundary"] == [*begins, *[0] * (512 - len(ids))]


# Files of a build


def build_set(
    out: Path, folder: Path, encoder: Encoder, recipe: ExampleRecipe, **overrides: Any
) -> list[Shard]:
    """Build two groups, merge their buckets if any, and return the listed shards."""
    output_dir, storage = OutputDir(str(out)), LocalStorage()
    config = make_build_config(
        encoder, recipe, writer=ShardWriter(make_record_encoder(encoder, recipe)), **overrides
    )
    inputs = [
        write_documents(folder / f"one-{first}", {"a": make_abstracts(first, first + 40)})
        for first in (1, 50)
    ]
    results = [build_group(storage, output_dir, make_single_group(documents), config) for documents in inputs]
    listed = [shard for group in results for shard in group.outputs]
    for split, buckets in config.num_buckets.items():
        names = [name for group in results for name in group.spill_files[split]]
        for bucket in range(buckets):
            listed += pretraining_dir.merge_bucket(storage, output_dir, config, names, split, bucket).outputs
    return listed


def read_records(out: Path, listed: Iterable[Shard], split: str) -> list[Record]:
    return [
        record
        for shard in listed
        if shard.file.startswith(f"{TFRECORD_FOLDERS[split]}/")
        for record in parse_records((out / shard.file).read_bytes())
    ]


@pytest.mark.parametrize("objective", ["electra", *PAIRS])
@pytest.mark.parametrize("buckets", [{}, {"train": 3, "validation": 1}])
def test_tfrecords_have_the_rows_of_their_shard_in_order(
    objective: Any, buckets: dict[str, int], tmp_path: Path, encoder: Encoder
) -> None:
    recipe = ExampleRecipe(objective, LENGTH)
    listed = build_set(tmp_path, tmp_path, encoder, recipe, num_buckets=buckets)
    arrows = [shard for shard in listed if shard.file.endswith(".arrow")]
    tfrecords = {shard.file: shard for shard in listed if not shard.file.endswith(".arrow")}
    assert len(arrows) == len(tfrecords) == 4
    for shard in arrows:
        split, _, name = shard.file.removesuffix(".arrow").partition("/data-")
        tfrecord = tfrecords[f"{TFRECORD_FOLDERS[split]}/pretrain_data.tfrecord-{name}"]
        rows = [row for row in read_listed_rows(tmp_path, [shard]) if row.get("label") != NO_LABEL]
        found = parse_records((tmp_path / tfrecord.file).read_bytes())
        assert tfrecord.rows == len(found) == len(rows)
        for record, row in zip(found, rows, strict=True):
            ids = record["input_ids"] if objective == "electra" else list(restore_ids(record))
            assert tuple(ids[: sum(record["input_mask"])]) == tuple(row["input_ids"])
            assert record.get("next_sentence_labels", [0]) == [row.get("label", 0)]
    if objective == "albert":
        assert sum(shard.rows for shard in tfrecords.values()) < sum(shard.rows for shard in arrows)


@pytest.mark.parametrize("objective", PAIRS)
def test_masks_of_a_row_are_independent_of_its_shard(
    objective: Any, tmp_path: Path, encoder: Encoder
) -> None:
    recipe = ExampleRecipe(objective, LENGTH, dupe_factor=2)
    found = []
    for name, buckets in (("shard", {}), ("global", {"train": 3, "validation": 2})):
        listed = build_set(tmp_path / name, tmp_path / name, encoder, recipe, num_buckets=buckets)
        found.append([sorted(map(repr, read_records(tmp_path / name, listed, split))) for split in SPLITS])
    assert found[0] == found[1]
    assert all(found[0])


def test_passes_over_the_same_row_have_different_masks(tmp_path: Path, encoder: Encoder) -> None:
    """Two sentences give only two rows, in order or swapped, so that some of ten passes are equal."""
    sentences = [" ".join(WORDS[n * 50 : n * 50 + 40]) for n in range(2)]
    documents = write_documents(tmp_path / "in", {"a": [make_sentences_document("pubmed:1", *sentences)]})
    recipe = ExampleRecipe("albert", 128, dupe_factor=10)
    config = make_build_config(
        encoder, recipe, validation_fraction=0, writer=ShardWriter(make_record_encoder(encoder, recipe))
    )
    result = build_group(LocalStorage(), OutputDir(str(tmp_path)), make_single_group(documents), config)
    masks = defaultdict(list)
    for record in read_records(tmp_path, result.outputs, "train"):
        masks[restore_ids(record)].append(tuple(sorted(get_predicted_positions(record))))
    assert sum(map(len, masks.values())) == 10
    assert len(masks) == 2
    assert all(len(set(row_masks)) == len(row_masks) for row_masks in masks.values())


# From the command line


def run_pipeline(*arguments: object) -> int:
    return cli.main(["run", "shards_to_pretraining", "--workers", "1", *map(str, arguments)])


@pytest.mark.parametrize(
    ("objective", "max_predictions"),
    [("electra", None), ("bert", None), ("bert", 3), ("albert", None), ("albert", 3)],
)
def test_command_writes_and_lists_tfrecords(
    objective: str,
    max_predictions: int | None,
    tmp_path: Path,
    encoder: Encoder,
    capsys: pytest.CaptureFixture[str],
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
    options += ["--max-predictions-per-seq", max_predictions] if max_predictions else []
    assert run_pipeline(*options) == 0
    listed = [decode(Shard, shard) for shard in load_manifest(out)["outputs"]]
    assert len(listed) == 4
    for shard in listed:
        data = (out / shard.file).read_bytes()
        assert (shard.bytes, shard.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    for split in SPLITS:
        rows = read_listed_rows(out, [shard for shard in listed if shard.file.startswith(f"{split}/")])
        kept = [row for row in rows if row.get("label") != NO_LABEL]
        found = read_records(out, listed, split)
        split_rows = [shard.rows for shard in listed if shard.file.startswith(TFRECORD_FOLDERS[split])]
        assert split_rows == [len(found)] == [len(kept)]
        assert found
        assert {len(record["input_ids"]) for record in found} == {LENGTH}
        if objective != "electra":
            features = max_predictions or {"bert": math.ceil(0.15 * LENGTH), "albert": 20}[objective]
            assert {len(record["masked_lm_ids"]) for record in found} == {features}
    before = published_digests(out)
    capsys.readouterr()
    assert run_pipeline(*options) == 0
    assert "nothing to do" in capsys.readouterr().out
    assert published_digests(out) == before


@pytest.mark.parametrize(
    ("options", "message"),
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
def test_inapplicable_options_are_refused(
    options: list[object], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_documents(tmp_path / "in", {"a": make_abstracts(1, 60)})
    make_word_encoder(tmp_path / "vocabulary")
    base_options = [
        "--input",
        tmp_path / "in",
        "--vocab",
        tmp_path / "vocabulary",
        "--output",
        tmp_path / "out",
    ]
    assert run_pipeline(*base_options, *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
