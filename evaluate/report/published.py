"""Scores printed in papers, in per cent, with standard deviations where printed.

published_notes.py lists what limits their comparability.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from bioshards.evaluate.report import published_notes
from bioshards.evaluate.report.published_notes import PublishedNote


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """Printed score, in per cent."""

    mean: float
    sd: float | None


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table of a paper, or several that form one.

    Attributes:
        suite: suite of the tasks.
        title: title in reports.
        source: paper and table numbers.
        runs_note: runs behind means and deviations.
        models: columns, in the paper's order.
        charted_models: models that charts show.
        scores: scores by (task, score name) and model, in the paper's order.
        notes: limits of comparability.
        blurb_scores: printed BLURB score of each model.
    """

    suite: str
    title: str
    source: str
    runs_note: str
    models: tuple[str, ...]
    charted_models: tuple[str, ...]
    scores: Mapping[tuple[str, str], Mapping[str, PublishedScore]]
    notes: tuple[PublishedNote, ...] = ()
    blurb_scores: tuple[float, ...] = ()

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks of the rows."""
        return tuple(dict.fromkeys(task for task, _ in self.scores))

    def notes_for(self, model: str | None = None, task: str | None = None) -> list[str]:
        """Return the notes on the table, a model's column, a task's rows, or a cell (both given)."""
        return [note.text for note in self.notes if note.applies_to(model, task)]


_CELL_PATTERN: Final = re.compile(r"(-|[\d.]+)(?:[ ]\(([\d.]+)\))?(?:\s+|$)")


def _parse_rows(models: tuple[str, ...], text: str) -> dict[tuple[str, str], dict[str, PublishedScore]]:
    """Parse rows of task, score name (``_`` for a blank) and one cell per model.

    Cells are ``81.16 (0.50)``, ``81.16``, or ``-`` for none.
    """
    rows = {}
    for line in text.strip().splitlines():
        task, score_name, cells = line.split(maxsplit=2)
        cells_by_model = zip(models, _CELL_PATTERN.findall(cells), strict=True)
        rows[task, score_name.replace("_", " ")] = {
            model: PublishedScore(float(mean), float(sd) if sd else None)
            for model, (mean, sd) in cells_by_model
            if mean != "-"
        }
    return rows


_GU_SOURCE: Final = "Gu et al. 2020, arXiv 2007.15779"
_GU_RUNS: Final = "means of 5 runs (BIOSSES, PubMedQA, BioASQ: 10); deviations are not printed"
_BLURB_MODELS: Final = (
    "BERT uncased",
    "BERT cased",
    "RoBERTa",
    "BioBERT",
    "SciBERT uncased",
    "SciBERT cased",
    "ClinicalBERT",
    "BlueBERT",
    "PubMedBERT",
    "PubMedBERT + PMC",
    "PubMedBERT + PMC, longer",
)
BLURB_TABLE: Final = PublishedTable(
    "blurb",
    "BLURB",
    f"{_GU_SOURCE}, tables 6 and 10",
    _GU_RUNS,
    _BLURB_MODELS,
    ("BERT uncased", "BioBERT", "SciBERT uncased", "PubMedBERT"),
    _parse_rows(
        _BLURB_MODELS,
        """
        bc5-chem     F1       89.25 89.99 89.43 92.85 92.49 92.51 90.80 91.19 93.33 93.36 93.34
        bc5-disease  F1       81.44 79.92 80.65 84.70 84.54 84.70 83.04 83.69 85.62 85.62 85.76
        ncbi-disease F1       85.67 85.87 86.62 89.13 88.10 88.25 86.32 88.04 87.82 88.34 88.04
        bc2gm        F1       80.90 81.23 80.90 83.82 83.36 83.36 81.71 81.87 84.52 84.39 84.37
        jnlpba       F1       77.69 77.51 77.86 78.55 78.68 78.51 78.07 77.71 79.10 78.90 79.16
        ebm-pico     F1       72.34 71.70 73.02 73.18 73.12 73.06 72.06 72.54 73.38 73.64 73.72
        chemprot     F1       71.86 71.54 72.98 76.14 75.24 75.00 72.04 71.46 77.24 76.96 76.80
        ddi          F1       80.04 79.34 79.52 80.88 81.06 81.22 78.20 77.78 82.36 83.56 82.06
        gad          F1       80.41 79.61 80.63 82.36 82.38 81.34 80.48 79.15 83.96 84.08 82.90
        biosses      Pearson  82.68 81.40 81.25 89.52 86.25 87.15 91.23 85.38 92.30 90.39 92.31
        hoc          F1       80.20 80.12 79.66 81.54 80.66 81.16 80.74 80.48 82.32 82.16 82.62
        pubmedqa     accuracy 51.62 49.96 52.84 60.24 57.38 51.40 49.08 48.44 55.84 61.02 60.02
        bioasq-yesno accuracy 70.36 74.44 75.20 84.14 78.86 74.22 68.50 68.71 87.56 83.43 87.20
        """,
    ),
    published_notes.BLURB_NOTES,
    blurb_scores=(76.11, 75.86, 76.46, 80.34, 78.86, 78.14, 77.29, 76.27, 81.16, 81.01, 81.50),
)
_PRETRAINING_MODELS: Final = (
    "BERT's vocabulary, word pieces",
    "BERT's vocabulary, whole words",
    "Word pieces",
    "From BERT, PubMed's vocabulary",
    "Half the time",
    "Adversarial",
)
PRETRAINING_TABLE: Final = PublishedTable(
    "blurb",
    "PubMedBERT pretrained otherwise",
    f"{_GU_SOURCE}, tables 7, 9 and 11",
    _GU_RUNS,
    _PRETRAINING_MODELS,
    (),
    _parse_rows(
        _PRETRAINING_MODELS,
        """
        bc5-chem     F1       93.20 93.31 92.96 93.41 93.05 93.17
        bc5-disease  F1       85.00 85.28 84.72 85.43 85.02 85.48
        ncbi-disease F1       88.39 88.53 87.26 87.60 87.77 87.99
        bc2gm        F1       83.65 83.93 83.19 84.03 84.11 84.07
        jnlpba       F1       78.83 78.77 78.63 79.01 78.98 79.18
        ebm-pico     F1       73.30 73.52 73.44 73.80 73.74 72.92
        chemprot     F1       75.04 76.70 75.72 77.05 76.69 77.04
        ddi          F1       81.30 82.60 80.84 81.96 81.21 83.62
        gad          F1       83.02 82.42 81.74 82.47 82.80 83.54
        biosses      Pearson  91.36 91.79 92.45 89.93 92.12 94.11
        hoc          F1       81.76 81.74 80.38 83.14 82.13 82.20
        pubmedqa     accuracy 52.20 55.92 54.76 54.84 55.28 53.30
        bioasq-yesno accuracy 73.69 76.41 78.51 79.00 79.43 82.71
        """,
    ),
    blurb_scores=(79.16, 79.96, 79.62, 80.03, 80.23, 80.77),
)
_FINE_TUNING_MODELS: Final = (
    "BiLSTM",
    "BIOUL",
    "IO",
    "Dummies, mentions",
    "Original, [CLS]",
    "Original, mentions",
    "Markers, [CLS]",
    "Markers, mentions",
    "Markers, entity start",
)
FINE_TUNING_TABLE: Final = PublishedTable(
    "blurb",
    "PubMedBERT fine-tuned otherwise",
    f"{_GU_SOURCE}, tables 12, 13 and 14",
    _GU_RUNS,
    _FINE_TUNING_MODELS,
    (),
    _parse_rows(
        _FINE_TUNING_MODELS,
        """
        bc5-chem     F1 93.12 93.37 93.11 - - - - - -
        bc5-disease  F1 85.64 85.59 85.63 - - - - - -
        jnlpba       F1 79.10 79.02 79.05 - - - - - -
        chemprot     F1 75.40 - - 77.22 50.52 75.48 77.72 77.22 77.58
        ddi          F1 81.70 - - 82.08 37.00 79.42 82.22 82.42 82.18
        gad          F1 83.42 - - - - - - - -
        """,
    ),
)

_OZYURT_MODELS: Final = (
    "ELECTRA-Small++",
    "Bio-ELECTRA",
    "Bio-ELECTRA++",
    "Bio-ELECTRA++ optimised",
    "BERT-Base cased",
)
BIO_ELECTRA_TABLE: Final = PublishedTable(
    "bio-electra",
    "Bio-ELECTRA's tasks",
    "Ozyurt 2020 (Scholarly Document Processing, sdp-1.12), tables 2 to 7",
    "means of 10 runs (numpy.std in brackets, ddof 0)",
    _OZYURT_MODELS,
    ("ELECTRA-Small++", "Bio-ELECTRA", "Bio-ELECTRA++", "BERT-Base cased"),
    _parse_rows(
        _OZYURT_MODELS,
        """
        factoid-8b   exact_match   57.78 (0.64) 57.51 (0.88)  57.93 (0.66) - 59.98 (0.66)
        factoid-8b   F1            67.10 (0.55) 66.87 (0.63)  67.48 (0.44) - 70.25 (0.48)
        yesno-ideal  yes_precision 88.18 (0.71) 87.99 (2.95)  91.24 (1.57) - 87.02 (2.57)
        yesno-ideal  yes_recall    94.31 (1.74) 97.94 (1.35)  95.29 (2.31) - 95.49 (2.64)
        yesno-ideal  yes_F1        91.14 (1.00) 92.66 (1.56)  93.19 (0.75) - 90.99 (1.00)
        yesno-ideal  no_precision  69.92 (7.34) 77.14 (26.47) 78.91 (7.41) - 65.15 (22.99)
        yesno-ideal  no_recall     50.38 (3.19) 46.92 (16.39) 63.85 (7.92) - 43.46 (15.20)
        yesno-ideal  no_F1         58.40 (3.61) 58.18 (19.91) 69.84 (3.87) - 51.71 (17.49)
        ncbi-disease precision     76.96 (0.80) 73.47 (0.92)  75.44 (1.06) 83.40 (0.79) 85.43 (0.62)
        ncbi-disease recall        85.79 (0.64) 83.88 (0.64)  85.19 (0.77) 86.36 (0.65) 87.08 (0.76)
        ncbi-disease F1            81.13 (0.69) 78.32 (0.52)  80.01 (0.68) 84.85 (0.65) 86.24 (0.55)
        bc4chemd     precision     81.62 (0.53) 82.76 (0.42)  83.65 (0.18) 88.45 (0.17) 91.36 (0.13)
        bc4chemd     recall        80.85 (0.47) 83.51 (0.46)  83.95 (0.27) 87.44 (0.20) 89.46 (0.22)
        bc4chemd     F1            81.23 (0.15) 83.13 (0.18)  83.80 (0.19) 87.94 (0.09) 90.40 (0.11)
        bc2gm        precision     67.92 (0.40) 67.54 (0.48)  69.34 (0.43) 77.73 (0.38) 83.95 (0.27)
        bc2gm        recall        75.13 (0.29) 75.03 (0.16)  76.09 (0.28) 80.87 (0.34) 84.30 (0.31)
        bc2gm        F1            71.34 (0.27) 71.08 (0.23)  72.55 (0.30) 79.27 (0.31) 84.13 (0.23)
        linnaeus     precision     86.82 (1.16) 85.90 (1.53)  86.01 (1.55) 93.77 (1.25) 96.01 (0.31)
        linnaeus     recall        83.25 (1.42) 82.38 (0.72)  84.07 (0.92) 96.28 (0.65) 93.90 (0.17)
        linnaeus     F1            84.99 (1.02) 84.10 (0.79)  85.02 (0.59) 95.01 (0.84) 94.94 (0.17)
        reranker          MRR      28.1 (1.4)   32.5 (1.1)    33.5 (1.7)   - 24.6 (0.7)
        reranker-weighted MRR      28.1 (0.8)   33.2 (1.3)    33.2 (1.3)   - -
        gad          precision     71.06 (1.27) 72.99 (1.09)  72.48 (0.55) - 72.72 (1.08)
        gad          recall        91.35 (1.76) 92.70 (1.58)  91.71 (1.17) - 88.72 (2.12)
        gad          F1            79.92 (0.97) 81.66 (0.73)  80.96 (0.35) - 79.91 (1.07)
        chemprot-lim-kang precision 59.64 (2.41) 61.38 (1.90) 64.66 (1.63) 73.23 (0.86) 69.75 (1.18)
        chemprot-lim-kang recall    59.34 (2.09) 60.40 (3.12) 63.85 (2.35) 71.46 (0.79) 69.87 (1.79)
        chemprot-lim-kang F1        59.41 (0.88) 60.86 (2.22) 64.22 (1.40) 72.33 (0.71) 69.80 (1.36)
        """,
    ),
    published_notes.BIO_ELECTRA_NOTES,
)

_ELECTRAMED_BATCHES: Final = (
    (39, 44.62, 51.28, 47.95),
    (25, 46.40, 62.40, 53.16),
    (29, 37.93, 58.62, 46.62),
    (34, 61.18, 82.35, 69.55),
    (35, 24.57, 44.00, 31.42),
)
"""Test batches of BioASQ 7b, and ELECTRAMed's scores on them.

Number of factoid questions (table 4), SACC, LACC and MRR (table 9).
"""


def _average_factoid_batches() -> dict[tuple[str, str], dict[str, PublishedScore]]:
    """Average ELECTRAMed's scores over the batches, weighted by questions."""
    questions, *score_columns = zip(*_ELECTRAMED_BATCHES, strict=True)
    means = [sum(map(operator.mul, questions, column)) / sum(questions) for column in score_columns]
    return {
        ("factoid-7b", name): {"ELECTRAMed": PublishedScore(round(mean, 2), None)}
        for name, mean in zip(("SACC", "LACC", "MRR"), means, strict=True)
    }


ELECTRAMED_TABLE: Final = PublishedTable(
    "electramed",
    "ELECTRAMed's tasks",
    "Miolo et al. 2021, arXiv 2104.09585, tables 7 to 9",
    "means of 5 runs; deviations are not printed",
    ("ELECTRAMed",),
    ("ELECTRAMed",),
    _parse_rows(
        ("ELECTRAMed",),
        """
        ncbi-disease  precision 85.87
        ncbi-disease  recall    89.29
        ncbi-disease  F1        87.54
        bc5cdr-merged precision 88.76
        bc5cdr-merged recall    91.34
        bc5cdr-merged F1        90.03
        jnlpba-typed  precision 69.33
        jnlpba-typed  recall    78.56
        jnlpba-typed  F1        73.65
        chemprot-blue precision 75.47
        chemprot-blue recall    70.67
        chemprot-blue F1        72.94
        ddi-blue      precision 80.07
        ddi-blue      recall    78.24
        ddi-blue      F1        79.13
        """,
    )
    | _average_factoid_batches(),
    published_notes.ELECTRAMED_NOTES,
)

_NASEEM_MODELS: Final = (
    "BioBERT 1.0 PubMed",
    "BioBERT 1.0 PMC",
    "BioBERT 1.0 PubMed + PMC",
    "BioBERT 1.1 PubMed",
    *published_notes.BIOALBERT_MODELS,
)
BIOALBERT_TABLE: Final = PublishedTable(
    "bioalbert",
    "BioALBERT's tasks",
    "Naseem et al. 2020, arXiv 2009.09223, table V",
    "of how many runs is not said",
    _NASEEM_MODELS,
    ("BioBERT 1.1 PubMed",),
    _parse_rows(
        _NASEEM_MODELS,
        """
        ncbi-disease precision 86.76 86.16 89.04 88.22 97.45 96.84 97.18 97.38
        ncbi-disease recall    88.02 89.48 89.69 91.25 94.39 94.40 97.18 94.37
        ncbi-disease F1        87.38 87.79 89.36 89.71 95.89 95.61 97.18 95.85
        bc5-disease  precision 85.80 84.67 85.86 86.47 99.69 99.11 99.27 99.39
        bc5-disease  recall    86.60 85.87 87.27 87.84 95.72 96.17 96.33 95.85
        bc5-disease  F1        86.2  85.27 86.56 87.15 97.66 97.62 97.78 97.61
        bc5-chem     precision 92.52 92.46 93.27 93.68 99.99 99.99 99.99 99.99
        bc5-chem     recall    92.76 92.63 93.61 93.26 95.89 96.24 95.62 95.68
        bc5-chem     F1        92.64 92.54 93.44 93.47 97.9  98.08 97.76 97.79
        bc4chemd     precision 91.77 91.65 92.23 92.80 97.76 97.71 97.71 97.88
        bc4chemd     recall    90.77 90.30 90.61 91.92 94.22 94.83 94.83 94.63
        bc4chemd     F1        91.26 90.97 91.41 92.36 95.96 96.25 96.25 96.23
        bc2gm        precision 81.72 82.86 85.16 84.32 97.86 97.84 98.26 98.02
        bc2gm        recall    83.38 84.21 83.65 85.12 94.87 94.27 95.72 94.70
        bc2gm        F1        82.54 83.53 84.40 84.72 96.34 96.02 96.97 96.33
        jnlpba       precision 71.11 71.17 72.68 72.24 85.14 85.60 86.23 85.56
        jnlpba       recall    83.11 82.76 83.21 83.56 80.43 80.98 81.90 81.49
        jnlpba       F1        76.65 76.53 77.59 77.49 82.72 83.22 84.01 83.53
        linnaeus     precision 91.83 91.62 93.84 90.77 99.95 99.98 99.98 99.92
        linnaeus     recall    84.72 85.48 86.11 85.83 99.47 99.44 99.48 99.55
        linnaeus     F1        88.13 88.45 89.81 88.24 99.71 99.72 99.73 99.73
        s800         precision 70.60 71.54 72.84 72.80 99.17 98.93 99.10 98.75
        s800         recall    75.75 74.71 77.97 75.36 98.34 98.04 98.95 98.69
        s800         F1        73.08 73.09 75.31 74.06 98.76 98.49 99.02 98.72
        """,
    ),
    published_notes.BIOALBERT_NOTES,
)

TASK_TITLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "bc5-chem": "BC5-chem",
        "bc5-disease": "BC5-disease",
        "ncbi-disease": "NCBI-disease",
        "bc2gm": "BC2GM",
        "jnlpba": "JNLPBA",
        "ebm-pico": "EBM PICO",
        "chemprot": "ChemProt",
        "ddi": "DDI",
        "gad": "GAD",
        "biosses": "BIOSSES",
        "hoc": "HoC",
        "pubmedqa": "PubMedQA",
        "bioasq-yesno": "BioASQ yes/no",
        "bc4chemd": "BC4CHEMD",
        "linnaeus": "LINNAEUS",
        "chemprot-lim-kang": "ChemProt (Lim & Kang)",
        "yesno-ideal": "BioASQ 8b yes/no",
        "factoid-8b": "BioASQ 8b factoid",
        "reranker": "BioASQ 5b re-ranking",
        "reranker-weighted": "BioASQ 5b re-ranking, weighted",
        "bc5cdr-merged": "BC5CDR, merged",
        "jnlpba-typed": "JNLPBA, five types",
        "chemprot-blue": "ChemProt (BLUE)",
        "ddi-blue": "DDI (BLUE)",
        "factoid-7b": "BioASQ 7b factoid",
        "s800": "Species-800",
        "chemprot-scibert": "ChemProt (SciBERT)",
        "squad": "SQuAD 1.1",
    }
)
"""Titles of tasks in reports."""
PUBLISHED_TABLES: Final = (
    BLURB_TABLE,
    PRETRAINING_TABLE,
    FINE_TUNING_TABLE,
    BIO_ELECTRA_TABLE,
    ELECTRAMED_TABLE,
    BIOALBERT_TABLE,
)
"""The first table of a suite compares models; later ones compare variants of one model."""
