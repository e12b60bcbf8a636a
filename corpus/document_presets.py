"""Presets: the document filters and text settings of published corpora, each with its source.

A preset contains the settings that a paper states. Settings that a paper leaves open are filled from its
code or its likeliest data source, and marked as open. Command-line options override a preset.
"""

from __future__ import annotations

import dataclasses
from typing import Final

from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.licences import LICENCES
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.text_config import TextConfig
from bioshards.corpus.text_files import TextFilesConfig

PUBMED_PRESETS: Final[dict[str, PubMedConfig]] = {
    # Bio-ELECTRA (Ozyurt 2020, "Pre-training data"; README of its repository): 19.2 M abstracts with
    # PMID >= 10,000,000 as of March 2020, sentences from title and abstract.  The paper leaves open
    # languages, retractions, title-only records (taken as left out: it speaks of abstracts) and
    # labels of sections.
    "bio-electra": PubMedConfig(min_pmid=10_000_000),
    # ELECTRAMed (Miolo et al. 2021) takes its text from BlueBERT's file pubmed_uncased_sentence_nltk: all
    # abstracts until September 2018, 28.7 M of them.  BlueBERT's README has the code: lower case, runs of
    # non-ASCII characters to a blank, NLTK's TreebankWordTokenizer, "x 's" to "x's"; nothing is cleaned
    # of notices.  Different here: no bound on dates (there is no such rule; take the input files of that
    # time); NLTK's Punkt, which found its sentences (BioSentVec, issue 5), is our splitter; PubMed came
    # from BioC's ASCII version, which spells Greek letters out, and here they are dropped; its file has
    # no borders between documents (BLUE_Benchmark, issue 7), ours do.  Open: titles (kept as text), labels
    # of sections (left out), and records without an abstract (left out, though 28.7 M is nearer to the
    # number of all citations of that date: --keep-title-only).
    "electramed": PubMedConfig(cleaning=(), lower_case=True, ascii_only=True, treebank=True),
    # BioALBERT (Naseem et al. 2020, on preprocessing): no blank lines inside a document, lines of fewer
    # than 20 characters left out, a sentence a line; no other cleaning is named.  Lower case belongs to
    # its tokenizer (ALBERT's 30k-clean), and the cut at 512 words to the examples.  Open: dates,
    # splitter, titles (kept as text), labels of sections (left out).
    "bioalbert": PubMedConfig(cleaning=(), min_line_characters=20),
    # PubMedBERT (Gu et al. 2020, on its pretraining corpus): abstracts of February 2020, those
    # below 128 words left out.  Titles are not mentioned; the code it builds on (NVIDIA's BERT for
    # TensorFlow) writes the abstract alone, so titles are no part of the text.
    "pubmedbert": PubMedConfig(min_abstract_words=128, titles=False),
}

PMC_PRESETS: Final[dict[str, PmcConfig]] = {
    # Bio-ELECTRA++ (Ozyurt 2020, "Pre-training data", second stage; README of its repository): all open
    # access full papers of PMC as of May 2020, 12.3 B words, sentences from all sections but the references.
    # Open: licences and languages (taken as all: "all open access full papers"), abstracts, captions,
    # footnotes, acknowledgements and boilerplate (kept: the paper excludes references only), table cells and
    # displayed formulas (excluded), the form of citations and section titles (numbers and titles excluded).
    "bio-electra-pp": PmcConfig(languages=(), licences=tuple(LICENCES), citations="drop"),
    # BioALBERT's second stage (Naseem et al. 2020): full text of PMC, 13.5 B words, by the same rules for
    # lines as its abstracts.  Open: dates, licences and languages (taken as all), sections (all but
    # references), splitter.
    "bioalbert": PmcConfig(
        languages=(), licences=tuple(LICENCES), cleaning=(), min_line_characters=20, citations="drop"
    ),
    # PubMedBERT with PMC (Gu et al. 2020, section 5): abstracts and full text, 16.8 B words together.  Its
    # bound of 128 words is one of abstracts.  Open: all else (taken as all licences, languages and sections
    # but references).
    "pubmedbert": PmcConfig(languages=(), licences=tuple(LICENCES), citations="drop"),
}

TEXT_PRESETS: Final = {
    name: TextFilesConfig(
        **{
            field.name: getattr(preset, field.name)
            for field in dataclasses.fields(TextConfig)
            if field.name not in ("languages", "drop_retracted", "section_labels")
        }
    )
    for name, preset in PUBMED_PRESETS.items()
}
"""Text settings of the papers' abstracts, for text files that are read beside them."""
