"""A page of each report, of realistic size and with names that are hard to show."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bioshards.corpus.manifest import Shard
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.stats import directory_stats, report
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.contamination import contamination_report
from bioshards.evaluate.contamination.corpus_scan import CorpusDocument
from bioshards.evaluate.contamination.matches import (
    BenchmarkExample,
    BenchmarkExamples,
    ContaminationResult,
    DocumentMatch,
    ExampleMatch,
)
from bioshards.evaluate.report import report_pages
from bioshards.evaluate.report.published import BLURB_TASKS
from bioshards.train import run_report
from bioshards.train.presets import PRESETS
from bioshards.train.run_report import Guess
from bioshards.vocab.report import vocabulary_report
from bioshards.vocab.report.vocabulary_report import build_report as build_vocabulary_report
from tests.support.corpus.stats_directories import (
    make_stats_document,
    split_counts,
    write_counted_set,
    write_document_shards,
)
from tests.support.evaluate.synthetic_results import build_synthetic_report, make_provenance, make_result
from tests.support.vocab.tiny_tokenizers import make_unigram, make_wordpiece

HOSTILE: Final = (
    "<script>alert(1)</script>",
    '"onload="x',
    "</style></svg></title><b>",
    "\u202egnp",
    "W" * 150,
    "蛋白質" * 40,
)
"""Names with markup, quotes, invisible characters, and such that are too wide for any column."""
_LETTERS: Final = [form + letter for letter in "abcdefghijklmnopqrstuvwxyzADNR.,?" for form in ("", "##")]


def write_pages(folder: Path) -> Iterator[Path]:
    """Write all pages; yield their paths."""
    writers: dict[str, Callable[[Path], str]] = {
        "documents": _make_documents_page,
        "pretraining": _make_pretraining_page,
        "run": lambda _: _make_run_page(HOSTILE[4], " ".join(HOSTILE)),
        "vocabulary": lambda _: _make_vocabulary_page(*HOSTILE),
        "evaluation": lambda _: _make_evaluation_page(*HOSTILE),
        "contamination": lambda _: _make_contamination_page(HOSTILE[0], HOSTILE[4]),
    }
    for name, write in writers.items():
        path = folder / f"{name}.html"
        path.write_text(write(folder / name))
        yield path


def _make_documents_page(folder: Path) -> str:
    documents = [
        make_stats_document(number, ["a b c"] * (1 + number % 37), 1946 + number % 80)
        for number in range(2000)
    ]
    documents += [
        make_stats_document(2000, ["a b"] * 3000, None),
        *(make_stats_document(number, ["x"], 1990 + number % 3, "pmc") for number in range(2001, 2009)),
    ]
    write_document_shards(folder, [documents])
    stats = directory_stats.compute_stats(LocalStorage(), str(folder))
    stats["years"]["pubmed"]["2025"]["words"] = 3_512_345_678
    stats["values"]["journal"] = {"distinct": 40, "top": dict.fromkeys(HOSTILE, 300)}
    stats["cleaning"] = {name: {"documents": 12, "characters": 34_567} for name in ("copyright", HOSTILE[4])}
    stats["rejected"] = [
        {"reason": "no-pmid", "file": HOSTILE[4], "position": 7, "detail": HOSTILE[5], "text": HOSTILE[2]}
    ]
    metrics = ("items", "skipped", "milliseconds", "max_item_ms")
    stats["steps"] = {step: dict.fromkeys(metrics, 123_456_789) for step in ("stage", "versions", "finalize")}
    stats["warnings"] = ["2 baseline files do not have 30,000 records"]
    stats["years"][HOSTILE[0]] = {HOSTILE[4]: {"documents": 1, "words": 1}}
    return report.render_stats_page(stats, "abstracts")


def _make_pretraining_page(folder: Path) -> str:
    rows = [(1 + number % 8, 4, number % 2) for number in range(100)]
    write_counted_set(
        folder,
        {"train": [rows], "validation": [rows[:9]]},
        {"train": split_counts(5), "validation": split_counts(1)},
    )
    stats = directory_stats.compute_stats(LocalStorage(), str(folder))
    long_row = ["[CLS]", *["myo", "##card", "##ial"] * 80, "[SEP]"]
    segments = [[*HOSTILE, "[SEP]"], long_row]
    stats["drawn"] = [
        {"name": "train/data-0.arrow", "label": number, "segments": segments} for number in (0, 1)
    ]
    return report.render_stats_page(stats, "bert-8")


def _make_run_page(token: str, text: str) -> str:
    losses = {"mlm": 7.25, "rtd": 0.69}
    entries = [
        {
            "step": step,
            "split": split,
            "loss": 9.0,
            "losses": {name: loss * 90_000 / (step + 90_000) + 1 for name, loss in losses.items()},
            "metrics": {"mlm_accuracy": 0.5},
            "tokens_seen": 123_456_789_012,
        }
        for step in range(0, 1_800_001, 18_000)
        for split in ("train", "validation")[: 1 + (step % 180_000 == 0)]
    ]
    text = f"we found [MASK] signs of acute [?] {text}"
    guess = Guess(token, text, f"{token} 61%, the 12%, ##ing 3%", f"{token}: 7% sure that it was replaced")
    recipe = replace(PRESETS["bio-electra"], family="electra")
    return run_report.render_page(recipe, "validation", entries, [guess] * 10)


def _make_vocabulary_page(*baseline_names: str) -> str:
    pieces = [*_LETTERS, "insulin", "heart", "DNA", "the", "##ate", HOSTILE[0]]
    tokenizer, words = make_wordpiece(*pieces), {"the": 9, "heart": 4, "insulin": 2, ".": 5, "naïve": 1}
    makers = (make_wordpiece, make_unigram)
    baselines = {
        baseline: makers[index % 2]("the", "heart", "▁the", "h", "e", HOSTILE[4][: 40 + index])
        for index, baseline in enumerate(baseline_names)
    }
    about: dict[str, Any] = {
        "documents": 38_123_456,
        "inputs": [{"pipeline": "pubmed_to_shards", "sha256": "0123456789abcdef" * 4}],
        HOSTILE[0]: HOSTILE[1],
    }
    return vocabulary_report.render_page(
        build_vocabulary_report(tokenizer, words, {"the": 3, "heart": 1}, baselines, None, about)
    )


def _make_evaluation_page(*models: str) -> str:
    invented = make_provenance("invented", models[-1])
    on_sample: Any = {"provenance": invented, "sample_sizes": {"train": 9, "dev": 9, "test": 2}}
    changed: Any = {"settings": {"learning_rate": 1e-4, "batch_size": 16, "epochs": 3}}
    results = [
        make_result(
            model,
            task,
            seed,
            rows=[(6 + index % 4, 10, 10, 6 + seed + number % 3, 10, 10)] * 5,
            **(on_sample if index == 3 else {}),
            **(changed if number else {}),
        )
        for number, model in enumerate(models)
        for index, task in enumerate([*BLURB_TASKS, models[-1]])
        for seed in (0, 1)
    ]
    return report_pages.render_page(build_synthetic_report(*results))


def _make_contamination_page(folder: str, benchmark: str) -> str:
    matches = [
        ExampleMatch(
            BenchmarkExample(benchmark, split, f"{number}", "", (number,), (0,)), (), 40, 7 * number, "", 0
        )
        for split in ("train", "dev", "test")
        for number in range(5)
    ]
    documents = [
        DocumentMatch(
            CorpusDocument(f"pubmed:3{number:07}", 30_000_000 + number, None),
            number % 3 == 0,
            1 + 977 * number % 4001,
            False,
            (benchmark, "bc5-chem"),
            number % 2 == 0,
        )
        for number in range(120)
    ]
    result = ContaminationResult(
        BenchmarkExamples([match.example for match in matches], ["a"], {benchmark: ("no dev",)}, ["hoc"]),
        [DocumentsInput(folder, "pubmed_to_shards", (Shard("a.arrow", 38_123_456, 1, "0" * 64),))],
        ("test",),
        13,
        45_678_901_234,
        matches,
        documents,
    )
    return contamination_report.render_page(result, contamination_report.summarise_splits(matches))
