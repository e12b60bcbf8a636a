"""What ``python -m bioshards.vocab`` does: from folders to a finished vocabulary, and to its report."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tokenizers import Tokenizer

from bioshards.corpus import workspace
from bioshards.corpus.errors import InvalidValueError, OutputMismatchError
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.lock import locked
from bioshards.corpus.manifest import (
    ForeignManifestError,
    Manifest,
    ManifestError,
    ManifestNotFoundError,
    VocabularyCounts,
    VocabularyManifest,
    encode,
    read_manifest,
)
from bioshards.corpus.workspace import Workspace

from . import build as building
from . import counts, evaluation_texts, measure, publishing, sources
from . import others as published
from . import report as reporting
from .counting import HELD_OUT, WORDS
from .counts import Counting
from .evaluation_texts import Found
from .inputs import Documents, InputError, apart
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
        FileNotFoundError, InputError, OutputMismatchError, ValueError: what is asked for cannot be done.
    """
    if min_count is not None and min_count < 1:
        raise InvalidValueError(f"--min-count {min_count} is below 1")
    if not out or "://" in out:
        raise OutputMismatchError(
            f"--out {out!r} is no folder of this machine, and a vocabulary is built on one"
        )
    counting = Counting(recipe.kind, hold_out, seed)
    apart(folders, out)
    found = sources.look(files, folders)
    if hold_out and not any(isinstance(source, Documents) for source in found):
        raise InputError(
            "--hold-out: words that are counted already are held out by shards_to_words --hold-out"
        )
    others = _others(beside, benchmarks)
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
    measured = _Measured.of(recipe.sentencepiece, text.words, text.held_out)
    curve = None
    if vocabulary.learned and recipe.algorithm != "unigram":  # of a unigram model the order is that of scores
        curve = measure.curve(vocabulary.learned, vocabulary.tokenizer, measured.held_out or measured.words)
    report = measured.report(vocabulary.tokenizer, curve, others, _about(config, totals))
    workspace.check(files, work, config)  # once more: all this took minutes
    workspace.begin(files, work, config)
    with locked(files, work):
        workspace.clear(files, work)
        publishing.publish(files, work, vocabulary, recipe, text, totals, report, config, run)
    return f"{summary(totals)}\nvocabulary: {work.output}\nreport:     {work.output}/report.html"


def report(
    files: LocalFiles, folder: str, beside: Beside, benchmarks: str | None, say: Callable[[str], None]
) -> str:
    """Write a finished vocabulary's report anew; returns what to tell.

    Raises:
        FileNotFoundError, InputError: there is no finished vocabulary, or what is to be beside it is not.
    """
    work = Workspace(os.path.abspath(folder))
    manifest = _manifest(files, folder, work)
    others = _others(beside, benchmarks)
    if not publishing.finished(files, work, publishing.REPORTS):
        raise InputError(f"{folder} has lost files that its manifest.json lists: build it again")
    config = encode(manifest.config)
    workspace.begin(files, work, config)
    with locked(files, work):
        say("measuring")
        tokenizer = Tokenizer.from_file(f"{work.output}/tokenizer.json")
        measured = _Measured.of(
            bool(manifest.config.recipe["sentencepiece"]),
            _counts(files, f"{work.output}/{WORDS}"),
            _counts(files, f"{work.output}/{HELD_OUT}"),
        )
        before = files.read_json(f"{work.output}/report.json")["curve"]
        curve = before and before["points"]  # it takes the order of learning, which ids may not have
        about = _about(config, manifest.counts)
        new = measured.report(tokenizer, curve, others, about)
        publishing.rewrite_report(files, work, manifest, new)
    return f"report:     {work.output}/report.html"


def _manifest(files: LocalFiles, folder: str, work: Workspace) -> VocabularyManifest:
    """The manifest of a finished vocabulary.

    Raises:
        InputError: it is none.
    """
    found: Manifest | None
    try:
        found = read_manifest(files, work.output)
    except (ManifestNotFoundError, ForeignManifestError):
        found = None
    except ManifestError as error:
        raise InputError(str(error)) from error
    if not isinstance(found, VocabularyManifest):
        raise InputError(f"{folder} is no finished vocabulary: build it with python -m bioshards.vocab build")
    if found.config.format != publishing.FORMAT:
        raise InputError(
            f"{folder} was made by another version of bioshards (format {found.config.format}, this is "
            f"{publishing.FORMAT}). Build it again: python -m bioshards.vocab build with another --out"
        )
    return found


def summary(totals: VocabularyCounts) -> str:
    """Some lines on what was made of what."""
    words, distinct, least = totals.words, totals.distinct_words, totals.min_count
    rare = f"; those that occur less than {least:,} times are left out, or may be" if least > 1 else ""
    lines = [f"{totals.pieces:,} pieces from {words:,} words, {distinct:,} distinct ones{rare}"]
    if totals.alphabet is not None:
        share, rarest = f"{100 * (totals.alphabet_coverage or 0):.7g} %", totals.alphabet_rarest or 0
        often = f" {rarest:,} times or more" if rarest > 1 else ""
        lines.append(
            f"alphabet of {totals.alphabet:,} characters, all those that occur{often}: {share} of the "
            "words' characters"
        )
    return "\n".join(lines)


_IN_REPORT: Final = {
    "held_out_words": "validation_words",
    "hold_out": "validation_fraction",
    "tools": "library_versions",
}
"""Names that report.json has for fields of the manifest, so that its bytes stay the same."""


def _about(config: Mapping[str, Any], totals: VocabularyCounts) -> dict[str, Any]:
    """What the report says at its top of the vocabulary and its corpus."""
    about = {
        **config["recipe"],
        **encode(totals),
        **(config["counting"] or {}),
        **{k: config[k] for k in ("inputs", "library_versions")},
    }
    names = {new: old for old, new in _IN_REPORT.items()}
    return {names.get(name, name): value for name, value in about.items()}


class _Others(NamedTuple):
    """What a report has beside its vocabulary: other vocabularies, and evaluation sets if asked for."""

    vocabularies: dict[str, Tokenizer]
    evaluation: list[Found] | None


def _others(beside: Beside, benchmarks: str | None) -> _Others:
    """Read it, before any work; what is odd about other vocabularies is told.

    Raises:
        FileNotFoundError, ValueError: one of them, or the folder of evaluation sets, is not right.
    """
    names = [name for name, _ in beside]
    if len({*names, reporting.UNNAMED}) <= len(names):
        raise InvalidValueError(
            f"--beside: each needs its own name, which is not {reporting.UNNAMED!r}: {', '.join(names)}"
        )
    with warnings.catch_warnings(record=True) as odd:
        warnings.simplefilter("always", UserWarning)
        loaded = {name: published.load(path) for name, path in beside}
    for warning in odd:
        print(f"notice: {warning.message}", file=sys.stderr)
    return _Others(loaded, evaluation_texts.check(benchmarks) if benchmarks else None)


class _Measured(NamedTuple):
    """The words that a report measures with: BERT's, or what stands between white space for SentencePiece."""

    kind: str
    words: Mapping[str, int]
    held_out: Mapping[str, int]

    @classmethod
    def of(cls, sentencepiece: bool, words: Mapping[str, int], held_out: Mapping[str, int]) -> _Measured:
        """Of words as they were counted for the vocabulary."""
        if sentencepiece:
            return cls("white-space", words, held_out)
        return cls("bert", *(counts.recased(each, Words()) for each in (words, held_out)))

    def report(
        self,
        tokenizer: Tokenizer,
        curve: Sequence[Mapping[str, Any]] | None,
        others: _Others,
        about: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The report's data."""
        return reporting.report(
            *(
                tokenizer,
                self.words,
                self.held_out or None,
                curve,
                others.vocabularies,
                others.evaluation,
                about,
            ),
            kind=self.kind,
        )


def _counts(files: LocalFiles, path: str) -> Mapping[str, int]:
    if not files.exists(path):
        return {}
    with files.open(path) as file:
        return counts.read(file)
