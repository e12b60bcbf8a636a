"""Question benchmarks: yes or no, candidates to rank, answers in a passage."""

from __future__ import annotations

from functools import partial
from typing import Final

from bioshards.evaluate.benchmarks.catalogue import attributions as sources
from bioshards.evaluate.benchmarks.catalogue.record_counts import (
    count_candidates,
    count_examples,
    count_questions,
    counts_by_split,
)
from bioshards.evaluate.benchmarks.definition import (
    SPLITS,
    Benchmark,
    FileLayout,
    MissingSplitPolicy,
    Split,
    TaskSpec,
)
from bioshards.evaluate.benchmarks.formats import tsv
from bioshards.evaluate.benchmarks.formats.tsv import TableColumns
from bioshards.evaluate.benchmarks.readers import bioasq, pubmedqa, squad
from bioshards.evaluate.benchmarks.readers.split_reader import read_each_split

_YES_NO_LABELS: Final = ("no", "yes")
_GOLDEN_PATTERN: Final = "electramed/QA/BioASQ/7B[1-5]_golden.json"

PUBMEDQA: Final = Benchmark(
    name="pubmedqa",
    title="PubMedQA",
    layouts=(
        FileLayout(
            patterns={
                "questions": "pubmedqa/data/ori_pqal.json",
                "answers": "pubmedqa/data/test_ground_truth.json",
            },
            files_by_split=dict.fromkeys(SPLITS, ("questions", "answers")),
            read=pubmedqa.read_pubmedqa,
        ),
    ),
    published_counts={
        "questions": counts_by_split(450, 50, 500),
        "yes": {"test": 276, "train+dev+test": 552},
        "no": {"test": 169, "train+dev+test": 338},
        "maybe": {"test": 55, "train+dev+test": 110},
    },
    count_records=count_examples("questions"),
    counts_source=f"{sources.BLURB_SOURCE}; by answer: Jin et al. 2019 (arXiv 1909.06146), table 2, and its "
    "files",
    licence="MIT",
    download_from="https://github.com/pubmedqa/pubmedqa, to be put into pubmedqa/",
    has_pmids=True,
    task=TaskSpec("single_label", "accuracy", labels=pubmedqa.ANSWERS),
)

_BIOASQ_LISTS: Final = "**/indexing/BioASQ/*_id.tsv"
BIOASQ_YESNO: Final = Benchmark(
    name="bioasq-yesno",
    title="BioASQ 7b yes/no (BLURB)",
    layouts=(
        FileLayout(
            patterns={"train": "**/train*ing7b.json", "test": _GOLDEN_PATTERN, "lists": _BIOASQ_LISTS},
            files_by_split={"train": ("train",), "dev": ("train",), "test": ("test",)},
            read=bioasq.read_yes_no,
            missing_split_policies={
                "lists": MissingSplitPolicy(
                    f"BLURB's lists of questions ({_BIOASQ_LISTS}) are missing: of the training file's, the "
                    f"{bioasq.DEV_QUESTIONS} whose ids' SHA-256 come first are dev",
                    ("train", "dev"),
                )
            },
        ),
    ),
    published_counts={
        "questions": counts_by_split(670, 75, 140),
        "yes": counts_by_split(test=94),
        "no": counts_by_split(test=46),
    },
    count_records=count_examples("questions"),
    counts_source=f"{sources.BLURB_SOURCE}; by answer: BioASQ's five golden batches of 2019",
    licence=sources.BIOASQ_LICENCE,
    download_from=f"test: {sources.ELECTRAMED_DOWNLOAD}; training7b.json (trainining7b.json): "
    f"{sources.BIOASQ_DOWNLOAD}",
    has_pmids=True,
    task=TaskSpec("single_label", "accuracy", labels=_YES_NO_LABELS),
)

YESNO_IDEAL: Final = Benchmark(
    name="yesno-ideal",
    title="BioASQ 8b yes/no with ideal answer (Bio-ELECTRA)",
    layouts=(
        FileLayout(
            patterns={"train": "bio_electra/yesno/train.tsv", "test": "bio_electra/yesno/test.tsv"},
            files_by_split={"train": ("train",), "test": ("test",)},
            read=read_each_split(
                partial(
                    tsv.read_texts,
                    table_columns=TableColumns(
                        text="question",
                        pair="ideal_answer",
                        label="yesno_label",
                        label_names={"1": "yes", "0": "no"},
                    ),
                )
            ),
            note="there is no dev part: its authors' dev.tsv is test.tsv again, and is not read",
        ),
    ),
    published_counts={
        "questions": counts_by_split(train=728, test=128),
        "yes": counts_by_split(test=102),
        "no": counts_by_split(test=26),
    },
    count_records=count_examples("questions"),
    counts_source=f"{sources.BIO_ELECTRA_SOURCE}; by answer: {sources.BIO_ELECTRA_FILES_SOURCE}",
    licence=sources.REGENTS_LICENCE,
    download_from=sources.BIO_ELECTRA_DOWNLOAD,
    task=TaskSpec("single_label", "yes_no_f1", labels=_YES_NO_LABELS),
)

RERANKER: Final = Benchmark(
    name="reranker",
    title="BioASQ 5b answers to rank (Bio-ELECTRA)",
    layouts=(
        FileLayout(
            patterns={"train": "bio_electra/reranker/train.tsv", "test": "bio_electra/reranker/test.tsv"},
            files_by_split={"train": ("train",), "test": ("test",)},
            read=read_each_split(tsv.read_ranked_answers),
            note="there is no dev part: its authors' dev.tsv is test.tsv again, and is not read",
        ),
    ),
    published_counts={
        "candidates": counts_by_split(train=44933, test=9064),
        "questions": counts_by_split(train=492, test=100),
        "right candidates": counts_by_split(test=117),
    },
    count_records=count_candidates,
    counts_source=f"{sources.BIO_ELECTRA_SOURCE}; right candidates: {sources.BIO_ELECTRA_FILES_SOURCE}",
    licence=sources.REGENTS_LICENCE,
    download_from=sources.BIO_ELECTRA_DOWNLOAD,
    task=TaskSpec("ranking", "mean_reciprocal_rank", labels=("0", "1")),
)

FACTOID_8B: Final = Benchmark(
    name="factoid-8b",
    title="BioASQ 8b factoid and list (Bio-ELECTRA)",
    layouts=(
        FileLayout(
            patterns={"train": "bio_electra/bioasq/train.json", "test": "bio_electra/bioasq/dev.json"},
            files_by_split={"train": ("train",), "test": ("test",)},
            read=read_each_split(
                partial(squad.read_questions, group_id_of=lambda name: name.partition(":")[0])
            ),
            note="the authors' dev.json is what their paper tests on; there is no dev part",
        ),
    ),
    published_counts={
        "pairs": counts_by_split(train=9557, test=1809),
        "questions": counts_by_split(test=213),
    },
    count_records=count_questions,
    counts_source=f"{sources.BIO_ELECTRA_SOURCE}; questions (two ids have the same): "
    f"{sources.BIO_ELECTRA_FILES_SOURCE}",
    licence=sources.REGENTS_LICENCE,
    download_from=sources.BIO_ELECTRA_DOWNLOAD,
    task=TaskSpec("span_per_passage", "squad_f1"),
)

FACTOID_7B: Final = Benchmark(
    name="factoid-7b",
    title="BioASQ 7b factoid (ELECTRAMed)",
    layouts=(
        FileLayout(
            patterns={
                "train": "electramed/QA/BioASQ/BioASQ-train-factoid-7b*.json",
                "test": "electramed/QA/BioASQ/BioASQ-test-factoid-7b-[1-5].json",
                "golden": _GOLDEN_PATTERN,
            },
            files_by_split={"train": ("train",), "test": ("test", "golden")},
            read=bioasq.read_factoid,
        ),
    ),
    published_counts={
        "pairs": counts_by_split(train=5537, test=407),
        "questions": counts_by_split(train=556, test=162),
        **{
            f"{unit} of batch {batch}": counts_by_split(test=number)
            for batch, numbers in enumerate(((39, 98), (25, 56), (29, 84), (34, 90), (35, 79)), 1)
            for unit, number in zip(("questions", "pairs"), numbers, strict=True)
        },
    },
    count_records=count_questions,
    counts_source="Miolo et al. 2021 (ELECTRAMed, arXiv 2104.09585)",
    licence=sources.BIOASQ_LICENCE,
    download_from=f"{sources.ELECTRAMED_DOWNLOAD}; train also: https://github.com/dmis-lab/bioasq-biobert, "
    "beside them",
    has_pmids=True,
    task=TaskSpec("span_per_question", "bioasq_factoid"),
)

_SQUAD_FILES_BY_SPLIT: Final[dict[Split, tuple[str, ...]]] = {"train": ("train",), "dev": ("dev",)}
SQUAD: Final = Benchmark(
    name="squad",
    title="SQuAD v1.1",
    layouts=(
        FileLayout(
            patterns={"train": "squad/train-v1.1.json", "dev": "squad/dev-v1.1.json"},
            files_by_split=_SQUAD_FILES_BY_SPLIT,
            read=read_each_split(squad.read_questions),
        ),
        FileLayout(
            patterns={"train": "squad/train-v1.1.json", "dev": "squad/dev-v1.1-rebuilt.json"},
            files_by_split=_SQUAD_FILES_BY_SPLIT,
            read=read_each_split(squad.read_questions),
            note="dev is rebuilt from SQuAD's web pages: each answer is said to start where it first occurs",
        ),
    ),
    published_counts={"questions": counts_by_split(train=87599, dev=10570)},
    count_records=lambda records: {"questions": len(records)},
    counts_source="Rajpurkar et al. 2016 (arXiv 1606.05250), its files",
    licence="CC BY-SA 4.0",
    download_from="https://rajpurkar.github.io/SQuAD-explorer/ (version 1.1), to be put into squad/",
)

QUESTION_BENCHMARKS: Final = (PUBMEDQA, BIOASQ_YESNO, YESNO_IDEAL, RERANKER, FACTOID_8B, FACTOID_7B, SQUAD)
