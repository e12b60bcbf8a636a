"""Notes on what limits the comparability of published scores (published.py).

SOURCES: the papers; code and data published with them; counts in these files where a note has a count that no
paper prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PublishedNote:
    """A footnote.

    Attributes:
        models: columns that it is about.
        tasks: rows that it is about; with ``models`` their cells, without either the whole table.
    """

    text: str
    models: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()

    def applies_to(self, model: str | None, task: str | None) -> bool:
        """Return True if the note is about exactly this column, row, cell, or (without both) the table."""
        return _matches(self.models, model) and _matches(self.tasks, task)


def _matches(names: tuple[str, ...], name: str | None) -> bool:
    return name in names if name is not None else not names


BLURB_NOTES: Final = (
    PublishedNote(
        "The hyper-parameters that were chosen for each set were never published, only their grid, so that a "
        "difference of some tenths may be theirs."
    ),
    PublishedNote(
        "The converted set that BLURB takes has fewer mentions than BC5CDR itself: overlapping and "
        "discontinuous ones are lost in it.",
        tasks=("bc5-chem", "bc5-disease"),
    ),
    PublishedNote(
        "Types are merged into one, which gives about 5 points more than the five types of JNLPBA.",
        tasks=("jnlpba",),
    ),
    PublishedNote(
        "Mean over P, I and O of the words' F1, without the class O of no element, which SciBERT's own "
        "evaluation averages in; a word with several labels has one in the data.",
        tasks=("ebm-pico",),
    ),
    PublishedNote(
        "BLURB's candidates (18,035, 11,268 and 15,745 pairs). Other papers have others: their ChemProts do "
        "not compare.",
        tasks=("chemprot",),
    ),
    PublishedNote(
        "The paper says micro F1; public implementations count F1 of the positive class. Annotators find "
        "the set's labels little better than chance: keep it for comparison only. Always answering 1 gives "
        "68.96.",
        tasks=("gad",),
    ),
    PublishedNote("20 test pairs: one run says very little.", tasks=("biosses",)),
    PublishedNote(
        "1,852 abstracts and micro F1 over ten labels; BLUE's HoC has 1,580 and F1 by example.",
        tasks=("hoc",),
    ),
    PublishedNote("Always answering yes gives 55.20.", tasks=("pubmedqa",)),
    PublishedNote(
        "140 test questions. Inputs have 541 pieces on average (PubMedBERT's), and 512 are read.",
        tasks=("bioasq-yesno",),
    ),
)

_ELECTRA_MODELS: Final = ("ELECTRA-Small++", "Bio-ELECTRA", "Bio-ELECTRA++", "Bio-ELECTRA++ optimised")
_NER_TASKS: Final = ("ncbi-disease", "bc4chemd", "bc2gm", "linnaeus")
BIO_ELECTRA_NOTES: Final = (
    PublishedNote(
        "Bio-ELECTRA and Bio-ELECTRA++ are cased models, but were fine-tuned on text in lower case, in "
        "which a quarter of their pieces never occurs.",
        models=("Bio-ELECTRA", "Bio-ELECTRA++", "Bio-ELECTRA++ optimised"),
    ),
    PublishedNote(
        "Sentences were cut, and gold entities in what was cut off were not counted (of BC2GM 6,123 of 6,325 "
        "are left, of BC4CHEMD 23,882 of 25,346). F1 on all entities is lower.",
        models=_ELECTRA_MODELS,
        tasks=_NER_TASKS,
    ),
    PublishedNote(
        "Scores of the development set, not of the test set: the published results count as many gold "
        "entities as that has (NCBI-disease 780, LINNAEUS 707).",
        models=("Bio-ELECTRA++ optimised",),
        tasks=("ncbi-disease", "linnaeus"),
    ),
    PublishedNote(
        "Inputs of the ELECTRA-Small++ baseline were shorter (128 pieces) than those of the others (192).",
        models=("ELECTRA-Small++",),
        tasks=("factoid-8b", "yesno-ideal", "linnaeus"),
    ),
    PublishedNote(
        "The paper says 2 epochs; the published code trains 3.",
        models=_ELECTRA_MODELS,
        tasks=("factoid-8b",),
    ),
    PublishedNote(
        "Each pair of question and snippet counts once: 1,809 pairs of 213 questions.",
        tasks=("factoid-8b",),
    ),
    PublishedNote(
        "There is no development set: the published code's is the test set itself.",
        tasks=("yesno-ideal", "gad", "reranker", "reranker-weighted"),
    ),
    PublishedNote(
        "One of the ten runs always answered yes, hence the deviations.",
        models=("Bio-ELECTRA", "BERT-Base cased"),
        tasks=("yesno-ideal",),
    ),
    PublishedNote(
        "Table 4 has a recall of 89.46, table 7 one of 89.96; with the precision and the F1 of both, 91.36 "
        "and 90.40, only the former agrees.",
        models=("BERT-Base cased",),
        tasks=("bc4chemd",),
    ),
    PublishedNote("Sentence-BERT's similarity gives 18.1, domain-adapted 16.3.", tasks=("reranker",)),
    PublishedNote(
        "Lim and Kang's candidates (16,521, 10,361 and 14,396 pairs), other than BLURB's and BLUE's.",
        tasks=("chemprot-lim-kang",),
    ),
)

ELECTRAMED_NOTES: Final = (
    PublishedNote(
        "Entities are counted as seqeval does by default, which is conlleval's way. The paper's table 5 has "
        "a layer-wise decay and an epsilon that the published code for these tasks has not.",
        tasks=("ncbi-disease", "bc5cdr-merged", "jnlpba-typed", "chemprot-blue", "ddi-blue"),
    ),
    PublishedNote(
        "Chemicals and diseases are merged into one type, so that this is neither BC5-chem nor BC5-disease.",
        tasks=("bc5cdr-merged",),
    ),
    PublishedNote(
        "All five types; BLURB merges them, which gives about 5 points more.", tasks=("jnlpba-typed",)
    ),
    PublishedNote(
        "BLUE's candidates (19,460, 11,820 and 16,943 pairs), other than BLURB's.",
        tasks=("chemprot-blue",),
    ),
    PublishedNote("BLUE's split (18,779, 7,244 and 5,761 pairs), other than BLURB's.", tasks=("ddi-blue",)),
    PublishedNote(
        "Computed from the paper's five test batches, each weighted by its questions. MRR by batch: 47.95, "
        "53.16, 46.62, 69.55, 31.42.",
        tasks=("factoid-7b",),
    ),
)

BIOALBERT_MODELS: Final = (
    "BioALBERT 1.0 PubMed",
    "BioALBERT 1.0 PubMed + PMC",
    "BioALBERT 1.1 PubMed",
    "BioALBERT 1.1 PubMed + PMC",
)
"""Columns of BioALBERT."""
BIOALBERT_NOTES: Final = (
    PublishedNote(
        "Implausible as entity F1: the paper never says what it counts, and no code was published. BioBERT's "
        "script, which its users are sent to, counts single tokens, and that alone does not explain them.",
        models=BIOALBERT_MODELS,
    ),
    PublishedNote(
        "Rows of two models are the same in print.",
        models=("BioALBERT 1.0 PubMed + PMC", "BioALBERT 1.1 PubMed"),
        tasks=("bc4chemd",),
    ),
    PublishedNote(
        "BioBERT is trained on train and dev together.",
        models=(
            "BioBERT 1.0 PubMed",
            "BioBERT 1.0 PMC",
            "BioBERT 1.0 PubMed + PMC",
            "BioBERT 1.1 PubMed",
        ),
    ),
)
