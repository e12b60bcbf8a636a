"""Speed of subword training from counts and from text: ``python -m tests.bench.bench_vocab_training``.

Each model is trained in its own process.  The first table compares bioshards' unigram model from the counts
of a corpus with SentencePiece's from its text and from counts alone, by time, memory and fertility (pieces a
word).  The second uses lists of millions of words (see synthetic_words.py).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from tests.bench.harness import timing
from tests.bench.harness.bench_runner import BenchRunner
from tests.bench.harness.subword_training import SIZE
from tests.bench.harness.text_corpora import build_document_dirs
from tests.bench.harness.timing import Figure

SEEDED_UNIGRAM: Final = "unigram, counts and our seeds"
MODELS: Final = {
    SEEDED_UNIGRAM: ("unigram", False),
    "unigram, counts alone": ("sentencepiece-unigram", False),
    "unigram, text": ("sentencepiece-unigram", True),
}
"""Models of bioshards and of SentencePiece: the way of subword_training, and whether it reads the text."""
TRAINING: Final = ("-m", "tests.bench.harness.subword_training")


def measure_corpus(bench: BenchRunner, work: Path) -> list[Figure]:
    """Measure training on the corpus."""
    rows = []
    fertility: dict[str, float] = {}
    for name, (way, text) in MODELS.items():
        arguments = [way, str(work / "words.tsv"), "--fertility"]
        arguments += ["--text", str(work / "text.txt")] if text else []
        run = bench.time_python(name, *TRAINING, *arguments, tries=1)
        fertility[name] = float(run.output)
        rows += make_process_figures(bench, name, "corpus read")
        rows.append(Figure(f"{name}: fertility", [1000 * fertility[name]], "pieces per 1,000 words"))
    for peer in ("unigram, counts alone", "unigram, text"):
        ratio = [fertility[peer] / fertility[SEEDED_UNIGRAM]]
        rows.append(Figure(f"**fertility, {peer} / {SEEDED_UNIGRAM}**", ratio, "×", ">=", 1))
    return rows


def make_process_figures(bench: BenchRunner, name: str, read_run: str) -> list[Figure]:
    """Measure time, without reading the words, and memory of one process."""
    start = bench.runs[read_run][0]
    return [
        Figure(f"{name}: wall", [run.wall - start.wall for run in bench.runs[name]], "s"),
        Figure(f"{name}: CPU", [run.cpu - start.cpu for run in bench.runs[name]], "s"),
        Figure(f"{name}: peak", bench.peaks(name), "MB"),
    ]


def measure_scaling(bench: BenchRunner, words: Path, millions: float) -> list[Figure]:
    """Measure training on a list of synthetic words, by CPU time and memory."""
    label = f"{millions:g} million words"
    bench.time_python(f"{label} read", *TRAINING, "read", str(words), tries=1)
    rows = [Figure(f"{label}, read only: peak", bench.peaks(f"{label} read"), "MB")]
    for way in ("bpe", "unigram"):
        bench.time_python(f"{label}, {way}", *TRAINING, way, str(words), tries=1)
        rows += make_process_figures(bench, f"{label}, {way}", f"{label} read")
    name = f"{label}, wordpiece"
    run = bench.time_python(name, *TRAINING, "wordpiece", str(words), tries=1)
    rows += make_process_figures(bench, name, f"{label} read")
    return [*rows, Figure(f"{name}: rate", [int(run.output) / run.wall / 1e6], "million occurrences/s")]


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_vocab_training", description=__doc__)
    parser.add_argument("shards", nargs="*", help="finished directories; default: made of BIOSHARDS_DATA")
    parser.add_argument("--work", type=Path, default=Path("build/bench-training"))
    parser.add_argument("--millions", type=float, nargs="*", default=[1, 2, 4], help="of made words")
    parser.add_argument("--no-corpus", action="store_true", help="only the lists of made words")
    options = parser.parse_args()
    work = options.work.resolve()
    timing.adopt_orphans()
    bench = BenchRunner(work)
    millions = [str(number) for number in options.millions]
    arguments = [
        str(work),
        *build_document_dirs(options.shards, Path("build/bench-text").resolve()),
        "--millions",
        *millions,
    ]
    generated = bench.time_python(
        "make", "-m", "tests.bench.harness.synthetic_words", *arguments, tries=1
    ).output
    bench.time_python("corpus read", *TRAINING, "read", str(work / "words.tsv"), tries=1)
    rows = [] if options.no_corpus else measure_corpus(bench, work)
    for number in options.millions:
        rows += measure_scaling(bench, work / f"words-{number:g}m.tsv", number)
    print(f"{generated}\n{os.cpu_count()} cores, Python {sys.version.split()[0]}; pieces: {SIZE:,}.\n")
    print(timing.format_table(rows))


if __name__ == "__main__":
    main()
