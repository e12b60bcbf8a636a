"""The corpora of the papers, as data: each number with where it is written.

A preset is the set of rules a paper states for its PubMed text; what a paper leaves open is said
and filled from its code or from the likeliest source.  Options given beside a preset win over it.
"""

from __future__ import annotations

from typing import Final

from .rules import Rules

PRESETS: Final[dict[str, Rules]] = {
    # Bio-ELECTRA (Ozyurt 2020, "Pre-training data"; README of its repository): 19.2 M abstracts with
    # PMID >= 10,000,000 as of March 2020, sentences from title and abstract.  Nothing is said of
    # languages, retractions, title-only records (taken as left out: it speaks of abstracts) and
    # labels of sections.
    "bio-electra": Rules(min_pmid=10_000_000),
    # PubMedBERT (Gu et al. 2020, on its pretraining corpus): abstracts of February 2020, those
    # below 128 words left out.  Titles are not mentioned; the code it builds on (NVIDIA's BERT for
    # TensorFlow) writes the abstract alone, so titles are no part of the text.
    "pubmedbert": Rules(min_abstract_words=128, titles=False),
}
