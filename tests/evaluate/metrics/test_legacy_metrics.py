"""Legacy modes: cases worked by hand, and the numbers of gold entities in Bio-ELECTRA's result files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from tokenizers import BertWordPieceTokenizer

from bioshards.evaluate.metrics.tags import (
    biobert_tag_f1,
    count_words_read,
    entity_f1,
    extract_spans,
    merge_entity_types,
)
from bioshards.evaluate.tasks.tagging import lowercase_without_accents
from tests.support.real_data import DATA, needs_data

BENCHMARKS = Path(str(DATA), "benchmarks")


@pytest.mark.parametrize(
    ("words", "length", "kept"),
    [
        (["a", "b", "c"], 7, 1),  # 3 words, [CLS] and [SEP] are 5; with one piece and one more they are 7
        (["a", "b", "c"], 8, 2),
        (["a", "b", "c"], 9, 3),
        (["a", "b", "c"], 6, 0),
        (["aaaa", "b", "c"], 9, 1),  # where a sentence is cut depends on the words before
        (["aaa", "b", "c"], 9, 1),
        (["aa", "b", "c"], 9, 2),
        (["a", "b", "cccccc"], 9, 3),  # the pieces of the word itself do not count
        ([], 1, 0),
    ],
)
def test_count_of_words_read(words: list[str], length: int, kept: int) -> None:
    assert count_words_read(words, len, length) == kept


def test_lowercase_without_accents() -> None:
    assert lowercase_without_accents("Sjögren") == "sjogren"
    assert lowercase_without_accents("ÅNGSTRÖM-É") == "angstrom-e"
    assert lowercase_without_accents("TNF-α") == "tnf-α"
    assert lowercase_without_accents("β₂-άλφα") == "β₂-αλφα"


def test_merged_entity_types() -> None:
    gold = [["B-Gene", "I-Gene", "B-Drug", "O"], ["B-Gene", "O", "O", "O"]]
    predicted = [["B-Drug", "I-Drug", "B-Drug", "O"], ["B-Gene", "I-Drug", "O", "O"]]
    assert entity_f1().compute_stats(gold, predicted)[:, :3].tolist() == [[1, 2, 2], [1, 2, 1]]
    metric = merge_entity_types(entity_f1())
    assert metric.name == "entity F1 (conlleval), types merged"
    assert metric.compute_stats(gold, predicted)[:, :3].tolist() == [[2, 2, 2], [0, 1, 1]]


def test_biobert_tag_f1_by_hand() -> None:
    """Tag B: 1 predicted, 3 gold, 1 correct. Tag I: 2 predicted, 1 gold, 1 correct. No entity is correct."""
    gold = [["B-Drug", "I-Drug", "O", "B-Drug", "B-Gene"]]
    predicted = [["B-Gene", "I-Gene", "I-Gene", "O", "O"]]
    assert merge_entity_types(entity_f1()).compute_scores(gold, predicted)["F1"] == 0
    assert biobert_tag_f1().compute_scores(gold, predicted) == pytest.approx(
        {
            "precision": (1 + 1 / 2) / 2,
            "recall": (1 / 3 + 1) / 2,
            "F1": (2 / 4 + 2 / 3) / 2,
            "micro F1": 4 / 7,
        }
    )


@cache
def load_sentences(name: str) -> list[tuple[list[str], list[str]]]:
    """Read words and tags of a file of MTL-Bioinformatics-2016, which has no ``-DOCSTART-`` lines."""
    text = (BENCHMARKS / "mtl-bioinformatics-2016" / f"{name}.tsv").read_text()
    blocks = ([line.split("\t") for line in block.split("\n") if line] for block in text.split("\n\n"))
    return [([word for word, _ in block], [tag for _, tag in block]) for block in blocks if block]


@cache
def count_pieces(name: str, cased: bool) -> dict[str, int]:
    """Count the pieces of each word in Bio-ELECTRA's vocabulary."""
    vocabulary = BENCHMARKS / "bio_electra" / "pmc_2017_abstracts_wp_vocab_sorted.txt"
    tokenizer = BertWordPieceTokenizer(str(vocabulary), lowercase=False, strip_accents=False)
    words = sorted({word for sentence, _ in load_sentences(name) for word in sentence})
    texts = [word if cased else lowercase_without_accents(word) for word in words]
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    return {word: len(encoding.ids) for word, encoding in zip(words, encodings, strict=True)}


@needs_data
@pytest.mark.parametrize(
    ("name", "length", "all_entities", "lower_cased", "cased"),
    [
        ("BC2GM-IOB/test", 128, 6325, 6123, 6137),
        ("NCBI-disease-IOB/test", 128, 960, 944, 944),
        ("NCBI-disease-IOB/devel", 128, 787, 780, 780),
        ("linnaeus-IOB/test", 192, 1433, 1410, 1411),
        ("linnaeus-IOB/test", 128, 1433, 1359, 1362),
        ("linnaeus-IOB/devel", 192, 711, 707, 707),
    ],
)
def test_truncation_keeps_the_gold_entities_of_bio_electra(
    name: str, length: int, all_entities: int, lower_cased: int, cased: int
) -> None:
    """Recall in the result files is a fraction of 6123, 944 (optimised: 780) and 1410 (707) entities."""
    assert sum(len(extract_spans(tags)) for _, tags in load_sentences(name)) == all_entities
    for is_cased, expected in ((False, lower_cased), (True, cased)):
        count = count_pieces(name, is_cased).__getitem__
        kept = sum(
            len(extract_spans(tags[: count_words_read(words, count, length)]))
            for words, tags in load_sentences(name)
        )
        assert kept == expected
