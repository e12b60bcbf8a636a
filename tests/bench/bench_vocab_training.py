"""Speed of subword training from counts and from text: ``python -m tests.bench.bench_vocab_training``.

Each model is trained in its own process.  The first table compares bioshards' models from the counts of a
corpus with SentencePiece's from its text, and a unigram model from counts without bioshards' seeds, by time,
memory and fertility (pieces a word).  The second uses lists of millions of words (see synthetic_words.py).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Final

from tests.bench.harness import timing
from tests.bench.harness.bench_runner import BenchRunner
from tests.bench.harness.text_corpora import build_document_dirs
from tests.bench.harness.timing import Figure

SIZE: Final = 30_000
OCCURRENCES: Final = 100_000_000
"""Occurrences that synthetic lists are scaled to for the WordPiece trainer, which reads each of them."""

READ_SCRIPT = """
import sys
from collections import Counter
words = {}
for line in open(sys.argv[1], encoding="utf-8", newline="\\n"):
    word, count = line.rstrip("\\n").split("\\t")
    words[word] = int(count)
"""
COUNTS_SCRIPT = f"""{READ_SCRIPT}
from bioshards.vocab import training
model = training.sentencepiece(words, sys.argv[2], {SIZE})
"""
MARKED_SCRIPT = f"""{READ_SCRIPT}
from bioshards.vocab import training
training.marked(words, {SIZE}, {{character for word in words for character in word}}, 32)
"""
SENTENCEPIECE_SCRIPT = f"""{READ_SCRIPT}
import io, sentencepiece
written = io.BytesIO()
text = sys.argv[3:]
given = text or [sys.argv[1]]
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=(line.rstrip("\\n") for line in open(given[0], encoding="utf-8", newline="\\n")),
    input_format="text" if text else "tsv", model_writer=written, model_type=sys.argv[2],
    vocab_size={SIZE}, normalization_rule_name="identity", character_coverage=1.0, num_threads=16,
    required_chars="".join(sorted({{*"".join(words)}} - {{*"\u2581\u2585"}})),  # 1.0 would lose the rarest
    max_sentence_length=1 << 20, minloglevel=3, pad_id=0, unk_id=1, bos_id=-1, eos_id=-1)
model = written.getvalue()
"""
FERTILITY_SCRIPT = """
import sentencepiece
loaded = sentencepiece.SentencePieceProcessor(model_proto=model)
print(sum(len(loaded.encode(word)) * words[word] for word in words) / sum(words.values()))
"""
WORDPIECE_SCRIPT = f"""{READ_SCRIPT}
from bioshards.vocab import training
total = sum(words.values())
words = {{word: max(1, count * {OCCURRENCES} // total) for word, count in words.items()}}
alphabet = sorted({{character for word in words for character in word}})
training.wordpiece(words, {SIZE}, alphabet)
print(sum(words.values()))
"""
SEEDED_UNIGRAM: Final = "unigram, counts and our seeds"
MODELS: Final = {
    "bpe, counts": (COUNTS_SCRIPT, "bpe", False),
    "bpe, text": (SENTENCEPIECE_SCRIPT, "bpe", True),
    SEEDED_UNIGRAM: (COUNTS_SCRIPT, "unigram", False),
    "unigram, counts alone": (SENTENCEPIECE_SCRIPT, "unigram", False),
    "unigram, text": (SENTENCEPIECE_SCRIPT, "unigram", True),
}
"""Models of bioshards and of SentencePiece: script, algorithm, and whether it reads the text."""


def measure_corpus(bench: BenchRunner, work: Path) -> list[Figure]:
    """Measure training on the corpus."""
    rows = []
    fertility: dict[str, float] = {}
    for name, (script, algorithm, text) in MODELS.items():
        given = [str(work / "words.tsv"), algorithm, *([str(work / "text.txt")] if text else [])]
        run = bench.time_python(name, "-c", script + FERTILITY_SCRIPT, *given, tries=1)
        fertility[name] = float(run.output)
        rows += make_process_figures(bench, name, "corpus read")
        rows.append(Figure(f"{name}: fertility", [1000 * fertility[name]], "pieces per 1,000 words"))
    for name, peer in (
        ("bpe, counts", "bpe, text"),
        (SEEDED_UNIGRAM, "unigram, counts alone"),
        (SEEDED_UNIGRAM, "unigram, text"),
    ):
        ratio = [fertility[peer] / fertility[name]]
        rows.append(Figure(f"**fertility, {peer} / {name}**", ratio, "×", ">=", 1))
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
    bench.time_python(f"{label} read", "-c", READ_SCRIPT, str(words), tries=1)
    rows = [Figure(f"{label}, read only: peak", bench.peaks(f"{label} read"), "MB")]
    for algorithm, script in (
        ("marked bpe", MARKED_SCRIPT),
        ("bpe", COUNTS_SCRIPT),
        ("unigram", COUNTS_SCRIPT),
    ):
        bench.time_python(f"{label}, {algorithm}", "-c", script, str(words), algorithm, tries=1)
        rows += make_process_figures(bench, f"{label}, {algorithm}", f"{label} read")
    name = f"{label}, wordpiece"
    run = bench.time_python(name, "-c", WORDPIECE_SCRIPT, str(words), tries=1)
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
    bench.time_python("corpus read", "-c", READ_SCRIPT, str(work / "words.tsv"), tries=1)
    rows = [] if options.no_corpus else measure_corpus(bench, work)
    for number in options.millions:
        rows += measure_scaling(bench, work / f"words-{number:g}m.tsv", number)
    print(f"{generated}\n{os.cpu_count()} cores, Python {sys.version.split()[0]}; pieces: {SIZE:,}.\n")
    print(timing.format_table(rows))


if __name__ == "__main__":
    main()
