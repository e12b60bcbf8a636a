"""The papers' vocabularies: every number as published (sources in vocabulary_recipes.py)."""

from __future__ import annotations

import pytest

from bioshards.vocab.training.vocabulary_recipes import PRESETS, VocabularyRecipe, get_preset

PUBLISHED = {
    # algorithm, size, lower case, accents stripped, SentencePiece kept, unused, sorted, published coverage
    "bio-electra": ("bpe", 31_620, False, False, False, 0, True, 0.9995),
    "electramed": ("bpe", 31_090, True, True, False, 100, False, 0.9999),
    "bioalbert": ("unigram", 30_000, True, True, True, 0, False, 0.99995),
    "pubmedbert": ("wordpiece", 30_522, True, True, False, 0, False, 0.99999),
}


def test_the_presets_are_these() -> None:
    assert PRESETS.keys() == PUBLISHED.keys()


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("as_published", [False, True])
def test_a_presets_numbers(name: str, as_published: bool) -> None:
    *numbers, coverage = PUBLISHED[name]
    found = get_preset(name, as_published)
    assert [
        *(found.algorithm, found.size, found.lower_case, found.strip_accents, found.sentencepiece),
        *(found.num_unused_tokens, found.sort_by_collation),
    ] == numbers
    assert found.character_coverage == (coverage if as_published else 0.99999)
    assert found.as_published is as_published


@pytest.mark.parametrize(
    ("name", "as_published", "kind"),
    [
        *(("bio-electra", False, "bert"), ("bio-electra", True, "white-space")),
        *(("electramed", False, "bert"), ("electramed", True, "white-space")),
        *(("bioalbert", False, "white-space"), ("bioalbert", True, "white-space")),
        *(("pubmedbert", False, "bert"), ("pubmedbert", True, "bert")),
    ],
)
def test_which_words_a_preset_is_trained_on(name: str, as_published: bool, kind: str) -> None:
    assert get_preset(name, as_published).pretokenizer == kind


def test_the_default() -> None:
    found = VocabularyRecipe()
    assert (found.algorithm, found.size, found.lower_case, found.strip_accents) == ("bpe", 30_522, True, True)
    assert found.pretokenizer == "bert"


def test_words_in_lower_case_without_accents_are_those_of_bert() -> None:
    assert VocabularyRecipe().make_pretokenizer()("Ménière's") == ["meniere", "'", "s"]
    assert get_preset("bio-electra", True).make_pretokenizer()("Ménière's") == ["Ménière's"]
    assert get_preset("electramed", True).make_pretokenizer()("Ménière's") == ["meniere's"]
    assert get_preset("bioalbert", False).make_pretokenizer()("``ﬁbrin''²") == ['"fibrin"2']


def test_the_smallest_size_has_room_for_ascii_and_greek_in_both_forms() -> None:
    # 94 printable ASCII characters less 26 capitals, 25 Greek small letters; 36 and 25 inside of words too
    assert VocabularyRecipe(size=159).min_size == 5 + 68 + 25 + 36 + 25
    with pytest.raises(ValueError, match="give 159 or more"):
        VocabularyRecipe(size=158)
