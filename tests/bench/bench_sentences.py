"""Speed and accuracy of sentence splitters: ``python -m tests.bench.bench_sentences``.

All split the paragraphs of CRAFT and GENIA (BIOSHARDS_DATA/sentences), in turns, in several rounds; slow ones
in one round.  The CPU time of splitting alone is measured, without loading a model.  The caches of bioshards
are cleared before each round.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from bioshards.corpus import sentences
from bioshards.corpus.errors import MissingExtraError
from bioshards.corpus.sentences import boundary_model
from bioshards.corpus.sentences.splitters import load_splitter
from tests.bench.harness.sentence_gold import (
    Paragraph,
    is_held_out,
    load_craft,
    load_genia,
    score_splitter,
)
from tests.bench.harness.text_corpora import get_data_dir
from tests.bench.harness.timing import MB

Split = Callable[[str], list[str]]
OURS: Final = "bioshards"
MIN_F1: Final = {"CRAFT": 0.996, "GENIA": 0.997}
MIN_MB_PER_SECOND: Final = 30
SLOW: Final = ("pysbd", "scispacy")


def _load(package: str) -> Split:
    """Load a splitter.

    Raises:
        ImportError, MissingExtraError: it is not installed.
    """
    if package in (OURS, "scispacy"):
        return load_splitter("scispacy") if package == "scispacy" else sentences.split
    module: Any = importlib.import_module(package)
    match package:
        case "blingfire":
            return lambda text: str(module.text_to_sentences(text)).split("\n")
        case "nltk":
            punkt: Any = importlib.import_module("nltk.tokenize.punkt")
            tokenizer = punkt.PunktSentenceTokenizer()
            return lambda text: list(tokenizer.tokenize(text))
        case "nupunkt":
            return lambda text: list(module.sent_tokenize(text))
        case "pysbd":
            segmenter = module.Segmenter(language="en", clean=False)
            return lambda text: list(segmenter.segment(text))
        case _:
            return lambda text: list(module.segment("en", text))


def load_splitters() -> dict[str, Split]:
    """Load all splitters that are installed."""
    loaded = {}
    for package in (OURS, "blingfire", "nupunkt", "sentencex", "nltk", *SLOW):
        try:
            loaded[package] = _load(package)
        except (ImportError, MissingExtraError) as missing:
            print(f"{package}: not compared: {missing}")
    return loaded


def measure_rate(split: Split, paragraphs: list[Paragraph]) -> float:
    """Measure the MB of text a CPU second, with cold caches."""
    caches: list[dict[str, str] | dict[str, float]] = [
        boundary_model.CLASS_BEFORE_STOP,
        boundary_model.CLASS_AFTER_STOP,
        boundary_model.CLASS_OF_SECOND_WORD_BEFORE,
        boundary_model.CLASS_OF_SECOND_WORD_AFTER,
        *boundary_model.SCORES_OF_WORDS,
    ]
    for cache in caches:
        cache.clear()
    boundary_model.score_context.cache_clear()
    started = time.process_time()
    for paragraph in paragraphs:
        split(paragraph.text)
    return sum(len(paragraph.text) for paragraph in paragraphs) / MB / (time.process_time() - started)


def main() -> None:
    """Run the comparison and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_sentences", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    rounds = parser.parse_args().rounds
    folder = get_data_dir() / "sentences"
    corpora = {"CRAFT": load_craft(folder), "GENIA": load_genia(folder)}
    splitters = load_splitters()
    rates: dict[tuple[str, str], list[float]] = {}
    for number in range(rounds):
        for package, split in splitters.items():
            for corpus, paragraphs in corpora.items():
                if not number or package not in SLOW:
                    rates.setdefault((package, corpus), []).append(measure_rate(split, paragraphs))
    print("| splitter | corpus | F1 (wrong + missed) | test fifth | MB/s a core |\n|---|---|---|---|---|")
    for package, split in splitters.items():
        for corpus, paragraphs in corpora.items():
            held_out = [paragraph for paragraph in paragraphs if is_held_out(paragraph.document)]
            scores = [score_splitter(part, split) for part in (paragraphs, held_out)]
            cells = [f"{score.f1:.4f} ({score.wrong} + {score.missed})" for score in scores]
            rate = statistics.median(rates[package, corpus])
            name = f"{package} {importlib.metadata.version(package)}"
            print(f"| {name} | {corpus} | {' | '.join(cells)} | {rate:.3g} |")
            if package == OURS:
                is_met = scores[1].f1 >= MIN_F1[corpus] and rate >= MIN_MB_PER_SECOND
                bar = f"F1 {MIN_F1[corpus]} of the test fifth and {MIN_MB_PER_SECOND} MB/s"
                print(f"| | | bar: {bar}: {'met' if is_met else 'NOT met'} | | |")


if __name__ == "__main__":
    main()
