"""The sets of questions: yes or no, answers to rank, and answers to find in a passage."""

from __future__ import annotations

from functools import partial
from typing import Final

from bioshards.evaluate.datasets import PARTS, DataSet, Layout, Part, Without
from bioshards.evaluate.readers import bioasq, pubmedqa, squad, tables
from bioshards.evaluate.readers.parts import by_part
from bioshards.evaluate.readers.tables import Table

from . import text_sources as sources
from .counting import by_parts, candidates, examples, questions

_GOLDEN: Final = "electramed/QA/BioASQ/7B[1-5]_golden.json"

PUBMEDQA: Final = DataSet(
    name="pubmedqa",
    title="PubMedQA",
    layouts=(
        Layout(
            files={
                "questions": "pubmedqa/data/ori_pqal.json",
                "answers": "pubmedqa/data/test_ground_truth.json",
            },
            parts=dict.fromkeys(PARTS, ("questions", "answers")),
            read=pubmedqa.read,
        ),
    ),
    counts={
        "questions": by_parts(450, 50, 500),
        "yes": {"test": 276, "train+dev+test": 552},
        "no": {"test": 169, "train+dev+test": 338},
        "maybe": {"test": 55, "train+dev+test": 110},
    },
    count=examples("questions"),
    source=f"{sources.BLURB}; by answer: Jin et al. 2019 (arXiv 1909.06146), table 2, and its files",
    licence="MIT",
    where="https://github.com/pubmedqa/pubmedqa, to be put into pubmedqa/",
    pmids=True,
)

_LISTS: Final = "**/indexing/BioASQ/*_id.tsv"
BIOASQ_YESNO: Final = DataSet(
    name="bioasq-yesno",
    title="BioASQ 7b yes/no (BLURB)",
    layouts=(
        Layout(
            files={"train": "**/train*ing7b.json", "test": _GOLDEN, "lists": _LISTS},
            parts={"train": ("train",), "dev": ("train",), "test": ("test",)},
            read=bioasq.yes_no,
            without={
                "lists": Without(
                    f"BLURB's lists of questions ({_LISTS}) are absent: of the training file's, the "
                    f"{bioasq.DEV_QUESTIONS} whose ids' SHA-256 come first are dev",
                    ("train", "dev"),
                )
            },
        ),
    ),
    counts={
        "questions": by_parts(670, 75, 140),
        "yes": by_parts(test=94),
        "no": by_parts(test=46),
    },
    count=examples("questions"),
    source=f"{sources.BLURB}; by answer: BioASQ's five golden batches of 2019",
    licence=sources.BIOASQ,
    where=f"test: {sources.FROM_ELECTRAMED}; training7b.json (trainining7b.json): {sources.FROM_BIOASQ}",
    pmids=True,
)

YESNO_IDEAL: Final = DataSet(
    name="yesno-ideal",
    title="BioASQ 8b yes/no with ideal answer (Bio-ELECTRA)",
    layouts=(
        Layout(
            files={"train": "bio_electra/yesno/train.tsv", "test": "bio_electra/yesno/test.tsv"},
            parts={"train": ("train",), "test": ("test",)},
            read=by_part(
                partial(
                    tables.texts,
                    table=Table(
                        text="question",
                        pair="ideal_answer",
                        label="yesno_label",
                        labels={"1": "yes", "0": "no"},
                    ),
                )
            ),
            note="there is no dev part: its authors' dev.tsv is test.tsv again, and is not read",
        ),
    ),
    counts={"questions": by_parts(train=728, test=128), "yes": by_parts(test=102), "no": by_parts(test=26)},
    count=examples("questions"),
    source=f"{sources.BIO_ELECTRA}; by answer: {sources.BIO_ELECTRA_FILES}",
    licence=sources.REGENTS,
    where=sources.FROM_BIO_ELECTRA,
)

RERANKER: Final = DataSet(
    name="reranker",
    title="BioASQ 5b answers to rank (Bio-ELECTRA)",
    layouts=(
        Layout(
            files={"train": "bio_electra/reranker/train.tsv", "test": "bio_electra/reranker/test.tsv"},
            parts={"train": ("train",), "test": ("test",)},
            read=by_part(tables.ranked),
            note="there is no dev part: its authors' dev.tsv is test.tsv again, and is not read",
        ),
    ),
    counts={
        "candidates": by_parts(train=44933, test=9064),
        "questions": by_parts(train=492, test=100),
        "right candidates": by_parts(test=117),
    },
    count=candidates,
    source=f"{sources.BIO_ELECTRA}; right candidates: {sources.BIO_ELECTRA_FILES}",
    licence=sources.REGENTS,
    where=sources.FROM_BIO_ELECTRA,
)

FACTOID_8B: Final = DataSet(
    name="factoid-8b",
    title="BioASQ 8b factoid and list (Bio-ELECTRA)",
    layouts=(
        Layout(
            files={"train": "bio_electra/bioasq/train.json", "test": "bio_electra/bioasq/dev.json"},
            parts={"train": ("train",), "test": ("test",)},
            read=by_part(partial(squad.questions, group=lambda name: name.partition(":")[0])),
            note="the authors' dev.json is what their paper tests on; there is no dev part",
        ),
    ),
    counts={"pairs": by_parts(train=9557, test=1809), "questions": by_parts(test=213)},
    count=questions,
    source=f"{sources.BIO_ELECTRA}; questions (two ids have the same): {sources.BIO_ELECTRA_FILES}",
    licence=sources.REGENTS,
    where=sources.FROM_BIO_ELECTRA,
)

FACTOID_7B: Final = DataSet(
    name="factoid-7b",
    title="BioASQ 7b factoid (ELECTRAMed)",
    layouts=(
        Layout(
            files={
                "train": "electramed/QA/BioASQ/BioASQ-train-factoid-7b*.json",
                "test": "electramed/QA/BioASQ/BioASQ-test-factoid-7b-[1-5].json",
                "golden": _GOLDEN,
            },
            parts={"train": ("train",), "test": ("test", "golden")},
            read=bioasq.factoid,
        ),
    ),
    counts={
        "pairs": by_parts(train=5537, test=407),
        "questions": by_parts(train=556, test=162),
        **{
            f"{unit} of batch {batch}": by_parts(test=number)
            for batch, numbers in enumerate(((39, 98), (25, 56), (29, 84), (34, 90), (35, 79)), 1)
            for unit, number in zip(("questions", "pairs"), numbers, strict=True)
        },
    },
    count=questions,
    source="Miolo et al. 2021 (ELECTRAMed, arXiv 2104.09585)",
    licence=sources.BIOASQ,
    where=f"{sources.FROM_ELECTRAMED}; train also: https://github.com/dmis-lab/bioasq-biobert, beside them",
    pmids=True,
)

_SQUAD_PARTS: Final[dict[Part, tuple[str, ...]]] = {"train": ("train",), "dev": ("dev",)}
SQUAD: Final = DataSet(
    name="squad",
    title="SQuAD v1.1",
    layouts=(
        Layout(
            files={"train": "squad/train-v1.1.json", "dev": "squad/dev-v1.1.json"},
            parts=_SQUAD_PARTS,
            read=by_part(squad.questions),
        ),
        Layout(
            files={"train": "squad/train-v1.1.json", "dev": "squad/dev-v1.1-rebuilt.json"},
            parts=_SQUAD_PARTS,
            read=by_part(squad.questions),
            note="dev is rebuilt from SQuAD's web pages: each answer is said to start where it first occurs",
        ),
    ),
    counts={"questions": by_parts(train=87599, dev=10570)},
    count=lambda records: {"questions": len(records)},
    source="Rajpurkar et al. 2016 (arXiv 1606.05250), its files",
    licence="CC BY-SA 4.0",
    where="https://rajpurkar.github.io/SQuAD-explorer/ (version 1.1), to be put into squad/",
)

QUESTIONS: Final = (PUBMEDQA, BIOASQ_YESNO, YESNO_IDEAL, RERANKER, FACTOID_8B, FACTOID_7B, SQUAD)
