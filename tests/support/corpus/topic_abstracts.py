"""Writes corpus/sample/topics, abstracts of few topics in few phrases, from which a small model learns.

The command is ``python -m tests.support.corpus.topic_abstracts``.  The file is committed; a test compares it
with the output of this module.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from tests.support.paths import TOPIC_SAMPLE

_NUM_ABSTRACTS: Final = 500
_FIRST_PMID: Final = 90_001_001
_SEED: Final = 23

_TOPICS: Final[Sequence[Mapping[str, str]]] = [
    dict(zip(("drug", "gene", "disease", "species", "site", "sign"), names, strict=True))
    for names in (
        ("talmedrine", "KLT7R", "Ansel fever", "Murella portansis", "skin", "fever"),
        ("spirelactone", "BRF12", "Marlow syndrome", "Bacillus anselii", "heart", "fainting"),
        ("ovirastane", "GLIM5", "pale kidney disease", "dock sponge", "kidney", "oedema"),
        ("quelonide", "lumen adhesion factor", "hollow lung syndrome", "mice", "lung", "breathlessness"),
        ("bremaxine", "tubulose synthase", "tarsitis", "rats", "ankle", "stiffness"),
        ("zumepril acetate", "piezin receptor", "harbour asthma", "M. portansis", "throat", "wheezing"),
        ("5-hydroxyvexamide", "SOLV1", "glassblower's neuropathy", "hamsters", "hand", "numbness"),
    )
]
"""Of each topic its drug, the gene that the drug blocks, and what else occurs with them."""
_TITLES: Final = (
    "{drug} in {disease}",
    "{gene} and {sign} in {disease}",
    "A trial of {drug} for {sign}",
    "{drug} blocks {gene} in the {site} of {species}",
)
_SECTIONS: Final[Sequence[Sequence[str]]] = (
    (
        "{disease} is a rare disease of the {site} that begins with {sign}.",
        "Patients with {disease} have {sign}, and the {site} is swollen.",
    ),
    (
        "{gene} is expressed in the {site} of {species}.",
        "The loss of {gene} in {species} leads to {sign}.",
    ),
    (
        "We asked whether {drug}, which blocks {gene}, relieves {sign}.",
        "We studied the effect of {drug} on the {site} of {species}.",
    ),
    (
        "Patients with {disease} received {drug} or placebo for {n} weeks.",
        "The {site} of {species} was exposed to {drug} for {n} hours.",
    ),
    (
        "{sign} was less frequent with {drug} than with placebo.",
        "{drug} reduced the activity of {gene} in the {site}.",
    ),
    (
        "No adverse event of {drug} was seen.",
        "{sign} returned when {drug} was stopped.",
    ),
    (
        "We conclude that {drug} is effective in patients with {disease}.",
        "We conclude that {drug} acts on the {site} through {gene}.",
    ),
)
"""What an abstract says, in this order, each in one of its phrases."""
_FILE: Final = """\
<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" \
"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">
<PubmedArticleSet>
{citations}
</PubmedArticleSet>
"""
_CITATION: Final = """\
<PubmedArticle><MedlineCitation Status="MEDLINE" Owner="NLM"><PMID Version="1">{pmid}</PMID>
<Article PubModel="Print"><Journal><JournalIssue CitedMedium="Print"><PubDate><Year>2026</Year></PubDate>
</JournalIssue></Journal><ArticleTitle>{title}</ArticleTitle>
<Abstract><AbstractText>{abstract}</AbstractText></Abstract><Language>eng</Language></Article></MedlineCitation>
</PubmedArticle>"""


def topic_file() -> str:
    """Generate the PubMed file."""
    rng = Random(_SEED)
    citations = (
        _format_citation(rng, pmid, _TOPICS[pmid % len(_TOPICS)])
        for pmid in range(_FIRST_PMID, _FIRST_PMID + _NUM_ABSTRACTS)
    )
    return _FILE.format(citations="\n".join(citations))


def _format_citation(rng: Random, pmid: int, topic: Mapping[str, str]) -> str:
    def fill(phrases: Sequence[str]) -> str:
        phrase = rng.choice(phrases).replace("{n}", "%d")
        text = phrase.format(**topic)
        text %= tuple(rng.randrange(2, 90) for _ in range(phrase.count("%d")))
        return text[:1].upper() + text[1:]

    abstract = " ".join(fill(phrases) for phrases in _SECTIONS)
    return _CITATION.format(pmid=pmid, title=f"{fill(_TITLES)}.", abstract=abstract)


if __name__ == "__main__":
    TOPIC_SAMPLE.parent.mkdir(exist_ok=True)
    TOPIC_SAMPLE.write_bytes(gzip.compress(topic_file().encode(), mtime=0))
