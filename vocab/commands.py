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
from bioshards.corpus.workspace import Workspace

from . import build as building
from . import counts, others, publishing, sources
from . import report as reporting
from .counts import Counting
from .inputs import Documents, WrongInput
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
    counting = Counting(recipe.kind, hold_out, seed)
    found = sources.look(files, folders)
    if hold_out and not any(isinstance(source, Documents) for source in found):
        raise WrongInput(
            "--hold-out: words that are counted already are held out by shards_to_words --hold-out"
        )
    loaded = _loaded(beside, lambda line: print(line, file=sys.stderr))
    work = Workspace(os.path.abspath(out))
    config = publishing.config(recipe, counting, min_count, found)
    workspace.check(files, work, config)
    workspace.begin(files, work, config)
    with workspace.locked(work):
        if publishing.finished(files, work):
            return (
                f"{work.output} is finished and its input is unchanged: nothing to do. For another report: "
                f"python -m bioshards.vocab report {out} --beside NAME=PATH"
            )
        workspace.clear(files, work)
        run = publishing.run_of(command, found)
        text = sources.read(files, found, counting, min_count, say)
        say(f"training on {len(text.words):,} distinct words")
        vocabulary = building.build(recipe, text.words)
        totals = publishing.totals(vocabulary, text)
        say("measuring")
        report = _report(
            *(vocabulary.tokenizer, vocabulary.model, recipe.as_dict(), totals),
            *(text.words, text.held_out, loaded, benchmarks),
        )
        publishing.publish(files, work, vocabulary, recipe, text, report, config, run)
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
    loaded = _loaded(beside, lambda line: print(line, file=sys.stderr))
    manifest = files.read_json(work.manifest)
    with workspace.locked(work):
        say("measuring")
        tokenizer = Tokenizer.from_file(f"{work.output}/tokenizer.json")
        new = _report(
            tokenizer,
            _bytes(files, f"{work.output}/spiece.model"),
            manifest["config"]["recipe"],
            manifest["counts"],
            _counts(files, f"{work.output}/words.tsv"),
            _counts(files, f"{work.output}/held-out.tsv"),
            loaded,
            benchmarks,
        )
        publishing.rewrite_report(files, work, new)
    return f"report:     {work.output}/report.html"


def summary(totals: Mapping[str, Any]) -> str:
    """Some lines on what was made of what."""
    words, distinct, least = totals["words"], totals["distinct_words"], totals["min_count"]
    rare = f"; those that occur less than {least:,} times are left out" if least > 1 else ""
    lines = [f"{totals['pieces']:,} pieces from {words:,} words, {distinct:,} distinct ones{rare}"]
    if totals["alphabet"] is not None:
        share = f"{totals['alphabet_coverage']:.5%}"
        lines.append(f"alphabet of {totals['alphabet']:,} characters, {share} of all that occur")
    return "\n".join(lines)


def _report(
    tokenizer: Tokenizer,
    model: bytes | None,
    recipe: Mapping[str, Any],
    totals: Mapping[str, Any],
    words: Mapping[str, int],
    held_out: Mapping[str, int],
    loaded: Mapping[str, Tokenizer],
    benchmarks: str | None,
) -> dict[str, Any]:
    learned = None
    if not recipe["sentencepiece"]:
        reserved = Recipe(**{**recipe, "dummies": tuple(recipe["dummies"])}).reserved
        learned = building.as_learned(tokenizer, model, len(reserved))
    if not recipe["sentencepiece"]:
        words, held_out = (counts.recased(each, Words()) for each in (words, held_out))
    about = {**recipe, **totals}
    return reporting.report(tokenizer, words, held_out or None, learned, dict(loaded), benchmarks, about)


def _loaded(beside: Beside, tell: Callable[[str], None]) -> dict[str, Tokenizer]:
    """Other vocabularies by name; what is odd about them is told."""
    with warnings.catch_warnings(record=True) as odd:
        warnings.simplefilter("always", UserWarning)
        loaded = {name: others.load(path) for name, path in beside}
    for warning in odd:
        tell(f"notice: {warning.message}")
    return loaded


def _counts(files: LocalFiles, path: str) -> Mapping[str, int]:
    if not files.exists(path):
        return {}
    with files.open(path) as file:
        return counts.read(file)


def _bytes(files: LocalFiles, path: str) -> bytes | None:
    if not files.exists(path):
        return None
    with files.open(path) as file:
        return file.read()
