"""The card of a pretraining set is one that Hugging Face's hub reads."""

from __future__ import annotations

import msgspec
import yaml  # type: ignore[import-untyped]

from bioshards.corpus.manifest import PretrainingCounts, PretrainingInput
from bioshards.vocab.pretraining.set_card import format_set_card
from tests.support.corpus.manifests import EMPTY_SPLIT, of_pretraining


def test_card_has_splits_recipe_inputs_and_rights() -> None:
    inputs = [
        PretrainingInput("pubmed_to_shards", "a" * 64, 2, 1200, ()),
        PretrainingInput("text_to_shards", "b" * 64, 1, 34, ()),
    ]
    train = msgspec.structs.replace(EMPTY_SPLIT, rows=5678, tokens=90123)
    counts = PretrainingCounts(
        documents=1234, dropped={}, rejected={}, train=train, validation=EMPTY_SPLIT, years={}
    )
    card = format_set_card(of_pretraining([], "bert", 128, None, inputs, counts))
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["configs"][0]["data_files"] == [{"split": "train", "path": "train/data-*.arrow"}]
    for line in (
        "# Pretraining rows for BERT",
        "of 1,234 documents",
        "| train | 5,678 | 90,123 |",
        f"| `pubmed_to_shards` | 1,200 | `{'a' * 64}` |",
        "| `dupe_factor` | `1` |",
        "Courtesy of the U.S. National Library of Medicine.",
        "The rights in these documents are those of the text files",
    ):
        assert line in card
