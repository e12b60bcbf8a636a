"""Speed and accuracy of sentence splitters: ``python -m tests.bench.bench_sentences``.

All split the paragraphs of CRAFT and GENIA (BIOSHARDS_DATA/sentences), in turns, in several rounds; slow ones
in one round.  The CPU time of splitting alone is measured, without loading a model.  The caches of bioshards
are cleared before each round; another row has its speed with warm caches, as in a run over millions of
abstracts.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bioshards.corpus import sentences
from bioshards.corpus.errors import MissingExtraError
from bioshards.corpus.sentences import boundary_model
from bioshards.corpus.sentences.splitters import load_splitter
from tests.bench.harness.sentence_gold import (
    BoundaryScore,
    Paragraph,
    is_held_out,
    load_craft,
    load_genia,
    score_splitter,
)

Split = Callable[[str], list[str]]
BARS: Final = {"CRAFT": 0.993, "GENIA": 0.994}
GOALS: Final = {"CRAFT": 0.996, "GENIA": 0.997}
SPEED_BAR, SPEED_GOAL = 30, 60  # MB/s a core


def _clear_caches() -> None:
    for remembered in (
        boundary_model.CLASS_BEFORE_STOP,
        boundary_model.CLASS_AFTER_STOP,
        boundary_model.CLASS_OF_SECOND_WORD_BEFORE,
        boundary_model.CLASS_OF_SECOND_WORD_AFTER,
    ):
        remembered.clear()
    boundary_model.decide.cache_clear()


def _blingfire() -> Split:
    import blingfire

    return lambda text: str(blingfire.text_to_sentences(text)).split("\n")


def _nltk() -> Split:
    from nltk.tokenize.punkt import PunktSentenceTokenizer

    tokenizer = PunktSentenceTokenizer()
    return lambda text: [str(sentence) for sentence in tokenizer.tokenize(text)]


def _nupunkt() -> Split:
    import nupunkt

    return lambda text: [str(sentence) for sentence in nupunkt.sent_tokenize(text)]


def _pysbd() -> Split:
    import pysbd

    segmenter = pysbd.Segmenter(language="en", clean=False)
    return lambda text: list(segmenter.segment(text))


def _sentencex() -> Split:
    import sentencex

    return lambda text: list(sentencex.segment("en", text))


@dataclass
class Peer:
    """A splitter to compare.  ``package`` names it; ``rounds`` of None are all rounds."""

    name: str
    package: str
    load: Callable[[], Split]
    rounds: int | None = None
    prepare: Callable[[], None] = lambda: None


PEERS: Final = (
    Peer("**bioshards**", "bioshards", lambda: sentences.split, prepare=_clear_caches),
    Peer("bioshards, words seen before", "bioshards", lambda: sentences.split),
    Peer("blingfire", "blingfire", _blingfire),
    Peer("nupunkt", "nupunkt", _nupunkt),
    Peer("sentencex", "sentencex", _sentencex),
    Peer("nltk, Punkt untrained", "nltk", _nltk),
    Peer("pysbd", "pysbd", _pysbd, rounds=1),
    Peer("scispacy (--splitter scispacy)", "scispacy", lambda: load_splitter("scispacy"), rounds=1),
)


def measure_speed(sets: dict[str, list[Paragraph]], rounds: int) -> dict[str, dict[str, list[float]]]:
    """Measure MB/s of each installed splitter on each corpus, by round."""
    loaded = {}
    for peer in PEERS:
        try:
            loaded[peer.name] = peer.load()
        except (ImportError, MissingExtraError) as missing:
            print(f"{peer.name}: not compared: {missing}")
    speeds: dict[str, dict[str, list[float]]] = {name: {which: [] for which in sets} for name in loaded}
    for number in range(rounds):
        for peer in PEERS:
            if peer.name not in loaded or (peer.rounds is not None and number >= peer.rounds):
                continue
            split = loaded[peer.name]
            for which, paragraphs in sets.items():
                peer.prepare()
                started = time.process_time()
                for paragraph in paragraphs:
                    split(paragraph.text)
                seconds = time.process_time() - started
                megabytes = sum(len(paragraph.text) for paragraph in paragraphs) / 1e6
                speeds[peer.name][which].append(megabytes / seconds)
    return speeds


def format_row(
    peer: Peer, split: Split, sets: dict[str, list[Paragraph]], speeds: dict[str, list[float]]
) -> str:
    """Format a line of the table."""
    cells = [f"{peer.name} {importlib.metadata.version(peer.package)}"]
    for paragraphs in sets.values():
        all_score = score_splitter(paragraphs, split)
        held_out_score = score_splitter([part for part in paragraphs if is_held_out(part.document)], split)
        cells.append(f"{_format_score(all_score)} ({all_score.wrong} + {all_score.missed})")
        cells.append(f"{held_out_score.f1:.4f} ({held_out_score.wrong} + {held_out_score.missed})")
    for rates in speeds.values():
        cells.append(f"{statistics.median(rates):.3g}")
    return "| " + " | ".join(cells) + " |"


def _format_score(found: BoundaryScore) -> str:
    precision = found.correct / (found.correct + found.wrong)
    recall = found.correct / (found.correct + found.missed)
    return f"{precision:.4f} / {recall:.4f} / {found.f1:.4f}"


def main() -> None:
    """Run the comparison and print its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    data = os.environ.get("BIOSHARDS_DATA")
    if not data:
        print("Sentence splitters: not compared, BIOSHARDS_DATA is not set (CRAFT and GENIA are not here).")
        return
    folder = Path(data) / "sentences"
    sets = {"CRAFT": load_craft(folder), "GENIA": load_genia(folder)}
    speeds = measure_speed(sets, rounds)
    print(
        "| splitter | CRAFT P / R / F1 (wrong + missed) | held out | GENIA | held out | MB/s CRAFT | GENIA |"
    )
    print("|---|---|---|---|---|---|---|")
    for peer in PEERS:
        if peer.name in speeds:
            print(format_row(peer, peer.load(), sets, speeds[peer.name]), flush=True)
    print()
    for which, paragraphs in sets.items():
        held = score_splitter([part for part in paragraphs if is_held_out(part.document)], sentences.split).f1
        speed = statistics.median(speeds[PEERS[0].name][which])
        print(f"{which}, held out: F1 {_format_verdict(held, BARS[which], GOALS[which])}; ", end="")
        print(f"MB/s {_format_verdict(speed, SPEED_BAR, SPEED_GOAL)}")


def _format_verdict(figure: float, bar: float, goal: float) -> str:
    met = "goal met" if figure >= goal else "met, goal NOT met" if figure >= bar else "NOT met"
    return f"{figure:.4g} (bar {bar}, goal {goal}: {met})"


if __name__ == "__main__":
    main()
