"""Tag schemes: conversions, spans of well-formed and ill-formed tags, and allowed transitions."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.metrics.tags import (
    TAG_SCHEMES,
    TagScheme,
    allowed_transitions,
    convert_from_bio,
    convert_to_bio,
    extract_spans,
    extract_strict_spans,
    list_labels,
)
from tests.support.evaluate.metric_oracles import conlleval

BIO = ("O", "B-Gene", "I-Gene", "B-Drug", "I-Drug")
TAG_SENTENCES = st.lists(st.sampled_from(BIO), max_size=12).map(tuple)
WELL_FORMED_SENTENCES = TAG_SENTENCES.map(lambda tags: convert_from_bio("BIO", tags))


def expand_tags(line: str) -> tuple[str, ...]:
    """Expand ``"Bg Ig O"`` to tags: each word is a prefix and the first letter of a type."""
    types = {"g": "-Gene", "d": "-Drug", "": ""}
    return tuple(word[0] + types[word[1:]] for word in line.split())


@pytest.mark.parametrize(
    ("bio", "bioul", "io"),
    [
        ("Bg Ig Ig O", "Bg Ig Lg O", "Ig Ig Ig O"),
        ("Bg O Bd Id", "Ug O Bd Ld", "Ig O Id Id"),
        ("Bg Bg Bd", "Ug Ug Ud", "Ig Ig Id"),
        ("O O", "O O", "O O"),
        ("B I O B", "B L O U", "I I O I"),
        ("", "", ""),
    ],
)
def test_golden_conversions_from_bio(bio: str, bioul: str, io: str) -> None:
    for scheme, line in (("BIO", bio), ("BIOUL", bioul), ("IO", io)):
        assert convert_from_bio(scheme, expand_tags(bio)) == expand_tags(line)  # type: ignore[arg-type]


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
