"""What ``python -m bioshards.vocab`` does: from folders to a finished vocabulary, and to its report."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tokenizers import Tokenizer

from bioshards.corpus import workspace
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.workspace import Workspace, WrongOutput

from . import build as building
from . import counts, measure, others, publishing, sources
from . import report as reporting
from .counting import HELD_OUT, WORDS
from .counts import Counting
from .inputs import Documents, WrongInput, apart
from .recipes import Recipe
from .words import Words

Beside = Sequence[tuple[str, str]]
"""Other vocabularies: name and path of each."""


def build(
    files: LocalFiles,
    folders: Sequence[str],
    out: str,
    recipe: Recipe,
    *,
    min_count: int | None,
    hold_out: float,
    seed: int,
    beside: Beside,
    benchmarks: str | None,
    command: Sequence[str],
    say: Callable[[str], None],
) -> str:
    """Build the vocabulary that the recipe describes; returns what to tell.

    Raises:
        FileNotFoundError, WrongInput, WrongOutput, ValueError: what is asked for cannot be done.
    """
    if min_count is not None and min_count < 1:
        raise ValueError(f"--min-count {min_count} is below 1")
    if not out or "://" in out:
        raise WrongOutput(f"--out {out!r} is no folder of this machine, and a vocabulary is built on one")
    counting = Counting(recipe.kind, hold_out, seed)
    apart(folders, out)
    found = sources.look(files, folders)
    if hold_out and not any(isinstance(source, Documents) for source in found):
        raise WrongInput(
            "--hold-out: words that are counted already are held out by shards_to_words --hold-out"
        )
    loaded = _loaded(beside, benchmarks)
    work = Workspace(os.path.abspath(out))
    config = publishing.config(recipe, counting, min_count, found)
    workspace.check(files, work, config)
    if publishing.finished(files, work):
        return (
            f"{work.output} is finished and its input is unchanged: nothing to do. For another report: "
            f"python -m bioshards.vocab report {out} --beside NAME=PATH"
        )
    os.makedirs(work.output, exist_ok=True)
    run = publishing.run_of(command, found)
    text = sources.read(files, found, counting, min_count, say)
    say(f"training on {len(text.words):,} distinct words")
    vocabulary = building.build(recipe, text.words)
    totals = publishing.totals(vocabulary, text)
    say("measuring")
    words, held_out = _as_measured(recipe.sentencepiece, text.words, text.held_out)
    curve = None
    if vocabulary.learned and recipe.algorithm != "unigram":  # of a unigram model the order is that of scores
        curve = measure.curve(vocabulary.learned, vocabulary.tokenizer, held_out or words)
    about = {**recipe.as_dict(), **totals}
    report = reporting.report(vocabulary.tokenizer, words, held_out or None, curve, loaded, benchmarks, about)
    workspace.check(files, work, config)  # once more: all this took minutes
    workspace.begin(files, work, config)
    with workspace.locked(work):
        workspace.clear(files, work)
        publishing.publish(files, work, vocabulary, recipe, text, totals, report, config, run)
    return f"{summary(totals)}\nvocabulary: {work.output}\nreport:     {work.output}/report.html"


def report(
    files: LocalFiles, folder: str, beside: Beside, benchmarks: str | None, say: Callable[[str], None]
) -> str:
    """Write a finished vocabulary's report anew; returns what to tell.

    Raises:
        FileNotFoundError, WrongInput: there is no finished vocabulary, or what is to be beside it is not.
    """
    work = Workspace(os.path.abspath(folder))
    if not files.exists(work.manifest) or files.read_json(work.manifest).get("pipeline") != "vocab":
        raise WrongInput(f"{folder} is no finished vocabulary: build it with python -m bioshards.vocab build")
    loaded = _loaded(beside, benchmarks)
    if not publishing.finished(files, work):
        raise WrongInput(f"{folder} has lost files that its manifest.json lists: build it again")
    manifest = files.read_json(work.manifest)
    workspace.begin(files, work, manifest["config"])
    with workspace.locked(work):
        say("measuring")
        tokenizer = Tokenizer.from_file(f"{work.output}/tokenizer.json")
        recipe = manifest["config"]["recipe"]
        words, held_out = _as_measured(
            recipe["sentencepiece"],
            _counts(files, f"{work.output}/{WORDS}"),
            _counts(files, f"{work.output}/{HELD_OUT}"),
        )
        before = files.read_json(f"{work.output}/report.json")["curve"]
        curve = before and before["points"]  # it takes the order of learning, which ids may not have
        about = {**recipe, **manifest["counts"]}
        new = reporting.report(tokenizer, words, held_out or None, curve, loaded, benchmarks, about)
        publishing.rewrite_report(files, work, new)
    return f"report:     {work.output}/report.html"


def summary(totals: Mapping[str, Any]) -> str:
    """Some lines on what was made of what."""
    words, distinct, least = totals["words"], totals["distinct_words"], totals["min_count"]
    rare = f"; those that occur less than {least:,} times are left out, or may be" if least > 1 else ""
    lines = [f"{totals['pieces']:,} pieces from {words:,} words, {distinct:,} distinct ones{rare}"]
    if totals["alphabet"] is not None:
        share, rarest = f"{100 * totals['alphabet_coverage']:.7g} %", totals["alphabet_rarest"]
        lines.append(
            f"alphabet of {totals['alphabet']:,} characters, all those that occur {rarest:,} times or more: "
            f"{share} of the words' characters"
        )
    return "\n".join(lines)


def _as_measured(kept: bool, *each: Mapping[str, int]) -> list[Mapping[str, int]]:
    """The words to measure with: BERT's, or for a SentencePiece model what stands between white space."""
    return list(each) if kept else [counts.recased(words, Words()) for words in each]


def _loaded(beside: Beside, benchmarks: str | None) -> dict[str, Tokenizer]:
    """Other vocabularies by name; what is odd about them is told.

    Raises:
        FileNotFoundError, ValueError: one of them, or the folder of evaluation sets, is not right.
    """
    if benchmarks and not os.path.isdir(benchmarks):
        raise FileNotFoundError(f"--benchmarks {benchmarks}: there is no such folder")
    if len(dict(beside)) < len(beside):
        raise ValueError("--beside: two vocabularies have the same name. Give each its own")
    with warnings.catch_warnings(record=True) as odd:
        warnings.simplefilter("always", UserWarning)
        loaded = {name: others.load(path) for name, path in beside}
    for warning in odd:
        print(f"notice: {warning.message}", file=sys.stderr)
    return loaded


def _counts(files: LocalFiles, path: str) -> Mapping[str, int]:
    if not files.exists(path):
        return {}
    with files.open(path) as file:
        return counts.read(file)
