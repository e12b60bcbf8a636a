"""Counts of the papers' presets on real documents: ``python -m tests.bench.tables.preset_counts [WORK]``.

Abstracts and articles of BIOSHARDS_DATA, made with each paper's own rules for its corpus and its own kind of
vocabulary, to examples of its preset; rows, fill and sizes of documents as one Markdown table, to be held
against what the papers say (words a document, passes over them).
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pyarrow.compute as pc

from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.pretraining.example_recipes import PRESETS
from tests.bench.harness.bench_runner import ROOT
from tests.bench.harness.text_corpora import get_data_dir

ARTICLE_PRESET: Final = "bio-electra-pp"
"""The one preset for articles' text."""
TABLE_HEADER: Final = (
    "| preset | text | documents | words each | tokens each | rows | rows each, a pass | tokens a row | fill "
    "| special | another's | lost |"
)


def load_or_make(output: Path, *command: str) -> dict[str, Any]:
    """Load the manifest of a command's output, running the command if needed."""
    if not (output / "manifest.json").exists():
        log = output.with_suffix(".log")
        output.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "wb") as log_file:
            code = subprocess.run(
                [sys.executable, "-m", *command], cwd=ROOT, stdout=log_file, stderr=log_file
            ).returncode
        if code:
            raise SystemExit(f"{' '.join(command)} ended with {code}:\n{log.read_text()[-2000:]}")
    manifest: dict[str, Any] = json.loads((output / "manifest.json").read_text())
    return manifest


def make_documents(preset: str, source: str, work: Path) -> Path:
    """Make documents of abstracts or articles, by the rules of the paper if it has any."""
    name = ARTICLE_PRESET if source == "jats" else "bio-electra" if preset == ARTICLE_PRESET else preset
    pipeline = "pmc_to_shards" if source == "jats" else "pubmed_to_shards"
    output = work / "text" / f"{source}-{name}"
    command = ["bioshards.pipelines.cli", "run", pipeline, "--preset", name, "--max-rejected", "0.01"]
    load_or_make(output, *command, "--input", f"{get_data_dir()}/{source}", "--output", str(output))
    return output


def make_vocabulary(preset: str, work: Path) -> Path:
    """Build a vocabulary like the paper's on all text."""
    name = "bio-electra" if preset == ARTICLE_PRESET else preset
    output = work / "vocabularies" / name
    folders = [str(make_documents(name, kind, work)) for kind in ("pubmed", "jats")]
    load_or_make(output, "bioshards.vocab", "build", *folders, "--preset", name, "--output", str(output))
    return output


def count_words(folder: Path) -> int:
    """Count words separated by white space."""
    return sum(
        pc.sum(pc.list_value_length(pc.utf8_split_whitespace(batch["sentences"].flatten()))).as_py()
        for batch in document_shards.read_directory(LocalStorage(), str(folder), ["sentences"])
    )


def make_row(preset: str, source: str, work: Path) -> str:
    """Make the row of a preset and a kind of text."""
    folder, recipe = make_documents(preset, source, work), PRESETS[preset]
    output = work / "examples" / f"{preset}-{source}"
    command = [
        "bioshards.pipelines.cli",
        "run",
        "shards_to_pretraining",
        "--preset",
        preset,
        "--validation-fraction",
        "0",
    ]
    paths = ["--input", str(folder), "--vocab", str(make_vocabulary(preset, work)), "--output", str(output)]
    counts = load_or_make(output, *command, *paths)["counts"]["train"]
    documents, rows, tokens = counts["documents"], counts["rows"], counts["tokens"]
    passes = recipe.dupe_factor
    return (
        f"| {preset} ({recipe.max_seq_length}) | {'articles' if source == 'jats' else 'abstracts'} | "
        f"{documents:,} "
        f"| {count_words(folder) / documents:,.0f} | {counts['input_tokens'] / passes / documents:,.0f} | "
        f"{rows:,} "
        f"| {rows / passes / documents:.2f} | {tokens / rows:.0f} | "
        f"{tokens / rows / recipe.max_seq_length:.1%} "
        f"| {counts['special_tokens'] / tokens:.1%} | {counts['other_document_tokens'] / tokens:.1%} "
        f"| {sum(counts['lost_tokens'].values()) / counts['input_tokens']:.1%} |"
    )


def main() -> None:
    """Make missing outputs and print the table."""
    work = Path(sys.argv[1] if len(sys.argv) > 1 else "build/preset-counts").resolve()
    print(f"{TABLE_HEADER}\n|{'---|' * TABLE_HEADER.count(' | ')}---|", flush=True)
    for preset in PRESETS:
        for kind in ("jats",) if preset == ARTICLE_PRESET else ("pubmed", "jats"):
            print(make_row(preset, kind, work), flush=True)


if __name__ == "__main__":
    main()
