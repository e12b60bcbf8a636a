"""Rows of many documents: their figures are those recorded of the references' code."""

from __future__ import annotations

import random
from dataclasses import replace
from math import sqrt

import pytest

from bioshards.vocab.pretraining import objectives
from bioshards.vocab.pretraining.example_recipes import DEFAULTS
from bioshards.vocab.pretraining.objectives import count_tokens, derive_document_key
from tests.support.vocab.reference_cases import document_offsets, load_golden

RECORDED = load_golden("figures")


def random_documents(count: int, seed: int) -> list[list[int]]:
    """Return documents, half with 1 to 8 sentences and half with more; half the sentences have 23 tokens."""
    rng = random.Random(seed)
    return [
        [1 + min(int(rng.lognormvariate(3.1, 0.6)), 250) for _ in range(1 + int(rng.expovariate(1 / 11)))]
        for _ in range(count)
    ]


@pytest.mark.parametrize("name", RECORDED["figures"])
def test_figures_of_many_documents_are_near_those_of_the_reference(name: str) -> None:
    """Each is within five standard deviations of the mean of the reference's twelve runs."""
    objective, _, length = name.partition("-")
    recipe = replace(DEFAULTS[objective], max_seq_length=int(length), as_published=objective == "albert")
    documents = random_documents(4000, 1)
    assert sum(map(sum, documents)) == RECORDED["tokens"]
    documents = documents if objective == "electra" else documents[:2000]
    keys = [derive_document_key(0, 0, str(number)) for number in range(len(documents))]
    rows = list(objectives.build_rows(document_offsets(documents), keys, recipe))
    figures = {
        "rows": len(rows),
        "mean": sum(count_tokens(row.segment_a + row.segment_b) for row in rows) / len(rows),
        "first": sum(count_tokens(row.segment_a) for row in rows) / len(rows),
        "single": sum(not row.segment_b for row in rows) / len(rows),
        "label": sum(row.label for row in rows) / len(rows),
        "across": sum(row.other_document_tokens > 0 for row in rows) / len(rows),
        "lost": sum(row.lost_tokens for row in rows) / sum(map(sum, documents)),
    }
    for figure, (mean, deviation) in RECORDED["figures"][name].items():
        assert abs(figures[figure] - mean) <= 5 * deviation * sqrt(1 + 1 / 12), figure
