"""Tag schemes and their metrics against conlleval and scikit-learn; legacy modes against result files."""

from __future__ import annotations

import random
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import BertWordPieceTokenizer

from bioshards.evaluate.metrics.tags import (
    TAG_SCHEMES,
    TagScheme,
    allowed_transitions,
    biobert_tag_f1,
    convert_from_bio,
    convert_to_bio,
    count_words_read,
    entity_f1,
    extract_spans,
    extract_strict_spans,
    list_labels,
    merge_entity_types,
    word_f1,
)
from bioshards.evaluate.tasks.tagging import lowercase_without_accents
from tests.support.evaluate.metric_oracles import conlleval, one_hot, random_classifications, scores_by_class
from tests.support.real_data import DATA, needs_data

BIO = ("O", "B-Gene", "I-Gene", "B-Drug", "I-Drug")
TAG_SENTENCES = st.lists(st.sampled_from(BIO), max_size=12).map(tuple)
WELL_FORMED_SENTENCES = TAG_SENTENCES.map(lambda tags: convert_from_bio("BIO", tags))


def expand_tags(line: str) -> tuple[str, ...]:
    """Expand ``"Bg Ig O"`` to tags: each word is a prefix and the first letter of a type."""
    types = {"g": "-Gene", "d": "-Drug", "": ""}
    return tuple(word[0] + types[word[1:]] for word in line.split())


@pytest.mark.parametrize(
    ("line", "lenient", "strict"),
    [
        ("Bg Ig O Bd", [(0, 2, "Gene"), (3, 4, "Drug")], [(0, 2, "Gene"), (3, 4, "Drug")]),
        ("O Ig Ig O", [(1, 3, "Gene")], []),
        ("Bg Id Id", [(0, 1, "Gene"), (1, 3, "Drug")], [(0, 1, "Gene")]),
        ("Bg Bg Ig", [(0, 1, "Gene"), (1, 3, "Gene")], [(0, 1, "Gene"), (1, 3, "Gene")]),
        ("Ig Bg", [(0, 1, "Gene"), (1, 2, "Gene")], [(1, 2, "Gene")]),
        ("I O B I", [(0, 1, ""), (2, 4, "")], [(2, 4, "")]),
    ],
)
def test_golden_spans(line: str, lenient: list[object], strict: list[object]) -> None:
    assert extract_spans(expand_tags(line)) == lenient
    assert extract_strict_spans(expand_tags(line)) == strict


def test_type_may_contain_a_hyphen() -> None:
    assert extract_spans(["B-cell-line", "I-cell-line", "I-cell"]) == [(0, 2, "cell-line"), (2, 3, "cell")]


@pytest.mark.parametrize("tag", ["U-Gene", "E-Gene", "Gene", "", "o", "O-Gene", "X", "[PAD]"])
def test_non_bio_tag_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="is no BIO tag"):
        extract_spans(["O", tag])


@given(TAG_SENTENCES)
def test_spans_equal_conlleval_counts(sentence: tuple[str, ...]) -> None:
    spans = extract_spans(sentence)
    assert conlleval([sentence], [sentence]) == (len(spans),) * 3
    assert [index for start, end, _ in spans for index in range(start, end)] == [
        index for index, tag in enumerate(sentence) if tag != "O"
    ]


@given(WELL_FORMED_SENTENCES)
def test_well_formed_tags_round_trip(sentence: tuple[str, ...]) -> None:
    assert convert_to_bio("BIO", convert_from_bio("BIO", sentence)) == sentence
    assert convert_to_bio("BIOUL", convert_from_bio("BIOUL", sentence)) == sentence
    assert extract_strict_spans(sentence) == extract_spans(sentence)
    entities_are_separated = all(
        first[1] < second[0] or first[2] != second[2]
        for first, second in zip(extract_spans(sentence), extract_spans(sentence)[1:], strict=False)
    )
    assert (convert_to_bio("IO", convert_from_bio("IO", sentence)) == sentence) == entities_are_separated


@pytest.mark.parametrize(
    ("bioul", "bio"),
    [
        ("Ug Ig Lg", "Bg Bg Ig"),  # U ends an entity
        ("Bg Lg Lg", "Bg Ig Bg"),  # L does
        ("Lg Lg Ig", "Ig Bg Bg"),
        ("O Ig Lg", "O Ig Ig"),  # without its B: counted by the lenient rule alone
        ("Bg O", "Bg O"),  # without its L
        ("Ug Id", "Bg Id"),
        ("Bg Ug", "Bg Bg"),
        ("Bg Ld", "Bg Id"),
    ],
)
def test_ill_formed_bioul_is_converted_leniently(bioul: str, bio: str) -> None:
    assert convert_to_bio("BIOUL", expand_tags(bioul)) == expand_tags(bio)


@given(st.sampled_from(TAG_SCHEMES), st.data())
def test_every_prediction_converts_to_spans(scheme: TagScheme, data: st.DataObject) -> None:
    predicted = data.draw(st.lists(st.sampled_from(list_labels(scheme, ("Gene", "Drug"))), max_size=12))
    bio = convert_to_bio(scheme, predicted)
    covered = {index for start, end, _ in extract_spans(bio) for index in range(start, end)}
    assert covered == {index for index, tag in enumerate(predicted) if tag != "O"}
    assert [tag[2:] for tag in bio] == [tag[2:] for tag in predicted]


def test_labels_of_each_scheme() -> None:
    assert list_labels("BIO", ("a", "b")) == ("O", "B-a", "I-a", "B-b", "I-b")
    assert list_labels("BIOUL", ("a",)) == ("O", "B-a", "I-a", "U-a", "L-a")
    assert list_labels("IO", ("a", "b")) == ("O", "I-a", "I-b")
    assert list_labels("BIO", ("",)) == ("O", "B", "I")


@pytest.mark.parametrize("scheme", TAG_SCHEMES)
@pytest.mark.parametrize("types", [("a", "b"), ("",)])
def test_allowed_transitions_accept_exactly_the_well_formed_sentences(
    scheme: TagScheme, types: tuple[str, ...]
) -> None:
    labels = list_labels(scheme, types)
    allowed = allowed_transitions(scheme, labels)
    assert allowed.shape == (len(labels) + 1, len(labels) + 1)
    for length in range(5 if len(types) == 1 else 4):
        for path in product(range(len(labels)), repeat=length):
            sentence = tuple(labels[code] for code in path)
            is_allowed = all(
                allowed[before, after] for before, after in zip((-1, *path), (*path, -1), strict=True)
            )
            assert is_allowed == (convert_from_bio(scheme, convert_to_bio(scheme, sentence)) == sentence), (
                sentence
            )


PICO = ("I-PAR", "I-INT", "I-OUT", "O")


def draw_tags(rng: random.Random) -> tuple[list[list[str]], list[list[str]]]:
    """Draw up to four sentences of gold tags, and predictions that keep about half of the tags."""
    gold = [rng.choices(BIO, k=rng.randint(1, 8)) for _ in range(rng.randint(0, 4))]
    predicted = [[tag if rng.random() < 0.5 else rng.choice(BIO) for tag in sentence] for sentence in gold]
    return gold, predicted


def test_entity_f1_golden_case() -> None:
    gold = [["B-Gene", "I-Gene", "O", "B-Drug"], ["O", "B-Gene"]]
    predicted = [["B-Gene", "I-Gene", "O", "B-Gene"], ["O", "I-Gene"]]
    metric = entity_f1()
    assert metric.compute_stats(gold, predicted).tolist() == [[1, 2, 2, 1, 2, 2], [1, 1, 1, 0, 0, 1]]
    assert metric.compute_scores(gold, predicted) == pytest.approx(
        {
            "precision": 2 / 3,
            "recall": 2 / 3,
            "F1": 2 / 3,
            "strict precision": 1 / 2,
            "strict recall": 1 / 3,
            "strict F1": 2 / 5,
        }
    )


def test_entity_f1_equals_conlleval_and_strict_spans() -> None:
    rng = random.Random(1)
    metric = entity_f1()
    for _ in range(2000):
        gold, predicted = draw_tags(rng)
        sums = metric.compute_stats(gold, predicted).sum(axis=0)
        assert tuple(sums[:3]) == conlleval(gold, predicted)
        span_sets = [
            {(index, *span) for index, tags in enumerate(side) for span in extract_strict_spans(tags)}
            for side in (gold, predicted)
        ]
        assert tuple(sums[3:]) == (len(span_sets[0] & span_sets[1]), len(span_sets[1]), len(span_sets[0]))


def test_word_f1_equals_scikit_learn() -> None:
    """Each case is two sentences of seven words; the classes are the types and ``O``."""
    gold, predicted = random_classifications(2, len(PICO), (300, 14))
    scores = scores_by_class(one_hot(gold, 4), one_hot(predicted, 4))
    metric = word_f1(("PAR", "INT", "OUT"))
    for index, (gold_codes, predicted_codes) in enumerate(zip(gold, predicted, strict=True)):
        sides = (
            [[PICO[code] for code in half] for half in (side[:7], side[7:])]
            for side in (gold_codes, predicted_codes)
        )
        word_scores = metric.compute_scores(*sides)
        means = scores[:, index, :3].mean(axis=-1)
        assert [word_scores["precision"], word_scores["recall"], word_scores["F1"]] == pytest.approx(means)
        assert [word_scores[f"{name} F1"] for name in ("PAR", "INT", "OUT")] == pytest.approx(
            scores[2, index, :3]
        )
        assert word_scores["F1 with O"] == pytest.approx(scores[2, index].mean())


def test_word_f1_does_not_depend_on_the_tag_scheme() -> None:
    metric = word_f1(("PAR", "INT"))
    gold = [["I-PAR", "I-PAR", "O", "I-INT"]]
    assert metric.compute_scores(gold, [["B-PAR", "L-PAR", "O", "U-INT"]])["F1 with O"] == 1


def test_scores_without_sentences_or_entities_are_0() -> None:
    for metric in (entity_f1(), word_f1(("PAR",))):
        assert metric.compute_stats([], []).shape == (0, len(metric.stat_names))
        for gold in ([], [["O", "O"]]):
            scores = metric.compute_scores(gold, gold)
            assert scores[metric.main_score] == scores["precision"] == scores["recall"] == 0


def test_unequal_numbers_of_sentences_or_words_are_refused() -> None:
    with pytest.raises(ValueError, match="1 are predicted, but there are 2"):
        entity_f1().compute_scores([["O"], ["O"]], [["O"]])
    with pytest.raises(ValueError, match="sentence 1 has 2 words, but 1 are tagged"):
        word_f1(("PAR",)).compute_scores([["O"], ["O", "O"]], [["O"], ["O"]])


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
