"""Vocabulary recipes: presets have the published values, with sources in ``vocabulary_recipes.py``."""

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


def test_preset_names() -> None:
    assert PRESETS.keys() == PUBLISHED.keys()


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("as_published", [False, True])
def test_preset_values_are_as_published(name: str, as_published: bool) -> None:
    *numbers, coverage = PUBLISHED[name]
    recipe = get_preset(name, as_published)
    assert [
        *(recipe.algorithm, recipe.size, recipe.lower_case, recipe.strip_accents, recipe.sentencepiece),
        *(recipe.num_unused_tokens, recipe.sort_by_collation),
    ] == numbers
    assert recipe.character_coverage == (coverage if as_published else 0.99999)
    assert recipe.as_published is as_published


@pytest.mark.parametrize(
    ("name", "as_published", "kind"),
    [
        *(("bio-electra", False, "bert"), ("bio-electra", True, "white-space")),
        *(("electramed", False, "bert"), ("electramed", True, "white-space")),
        *(("bioalbert", False, "white-space"), ("bioalbert", True, "white-space")),
        *(("pubmedbert", False, "bert"), ("pubmedbert", True, "bert")),
    ],
)
def test_pretokenizer_of_presets(name: str, as_published: bool, kind: str) -> None:
    assert get_preset(name, as_published).pretokenizer == kind


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
    assert VocabularyRecipe().make_pretokenizer()("Ménière's") == ["meniere", "'", "s"]
    assert get_preset("bio-electra", True).make_pretokenizer()("Ménière's") == ["Ménière's"]
    assert get_preset("electramed", True).make_pretokenizer()("Ménière's") == ["meniere's"]
    assert get_preset("bioalbert", False).make_pretokenizer()("``ﬁbrin''²") == ['"fibrin"2']


@pytest.mark.thorough
def test_smallest_size_has_room_for_ascii_and_greek_in_both_forms() -> None:
    # 94 printable ASCII characters less 26 capitals, 25 Greek small letters; 36 and 25 inside of words too
    assert VocabularyRecipe(size=159).min_size == 5 + 68 + 25 + 36 + 25
    with pytest.raises(ValueError, match="give 159 or more"):
        VocabularyRecipe(size=158)
