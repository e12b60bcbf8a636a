"""Vocabulary recipes: presets have the published values, with sources in ``options.py``."""

from __future__ import annotations

import pytest

from bioshards.vocab.options import PRESETS, VocabularyRecipe
from bioshards.vocab.training.vocabulary import check_size, make_pretokenizer

PUBLISHED = {
    # algorithm, size, lower case, accents stripped, unused, sorted; pretokenizer of the words
    "bio-electra": ("bpe", 31_620, False, False, 0, True, "bert"),
    "electramed": ("bpe", 31_090, True, True, 100, False, "bert"),
    "bioalbert": ("unigram", 30_000, True, True, 0, False, "white-space"),
    "pubmedbert": ("wordpiece", 30_522, True, True, 0, False, "bert"),
}


def test_preset_values_are_published() -> None:
    assert {
        name: (
            *(recipe.algorithm, recipe.size, recipe.lower_case, recipe.strip_accents),
            *(recipe.num_unused_tokens, recipe.sort_by_collation, recipe.pretokenizer),
        )
        for name, recipe in PRESETS.items()
    } == PUBLISHED
    assert {recipe.character_coverage for recipe in PRESETS.values()} == {0.99999}


def test_default_recipe() -> None:
    recipe = VocabularyRecipe()
    assert (recipe.algorithm, recipe.size, recipe.lower_case, recipe.strip_accents) == (
        "bpe",
        30_522,
        True,
        True,
    )
    assert recipe.pretokenizer == "bert"


def test_pretokenizer_of_recipes() -> None:
    assert make_pretokenizer(VocabularyRecipe())("Ménière's") == ["meniere", "'", "s"]
    assert make_pretokenizer(PRESETS["bio-electra"])("Ménière's") == ["Ménière", "'", "s"]
    assert make_pretokenizer(PRESETS["bioalbert"])("``ﬁbrin''²") == ['"fibrin"2']


@pytest.mark.thorough
def test_smallest_size_has_room_for_ascii_and_greek_in_both_forms() -> None:
    # 94 printable ASCII characters less 26 capitals, 25 Greek small letters; 36 and 25 inside of words too
    assert 5 + 68 + 25 + 36 + 25 == 159
    check_size(VocabularyRecipe(size=159))
    with pytest.raises(ValueError, match="give --size 159 or more"):
        check_size(VocabularyRecipe(size=158))
