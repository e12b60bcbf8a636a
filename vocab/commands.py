"""What ``python -m bioshards.vocab`` does: from folders to a finished vocabulary, and to its report."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tokenizers import Tokenizer

from bioshards.corpus.errors import InvalidValueError, OutputMismatchError
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
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.lock import lock_output
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards.input_dirs import DocumentsInput, InputError, check_disjoint
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.counting.count_steps import VALIDATION_WORDS_FILE, WORDS_FILE
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.report.benchmark_texts import BenchmarkTexts
from bioshards.vocab.tokenizer.pretokenizer import Pretokenizer
from bioshards.vocab.training.vocabulary_recipes import VocabularyRecipe

from . import vocabulary_dir
from .counting import count_inputs, word_counts
from .report import baselines, vocabulary_metrics, vocabulary_report
from .report.benchmark_texts import load_benchmark_texts
from .training.vocabulary import build_vocabulary

BaselinePaths = Sequence[tuple[str, str]]
"""Other vocabularies: name and path of each."""


def run_build(
    storage: LocalStorage,
    folders: Sequence[str],
    output: str,
    recipe: VocabularyRecipe,
    *,
    min_count: int | None,
    validation_fraction: float,
    seed: int,
    baseline_paths: BaselinePaths,
    benchmark_folder: str | None,
    command: Sequence[str],
    progress: Callable[[str], None],
) -> str:
    """Build the vocabulary that the recipe describes; returns what to tell.

    Raises:
        FileNotFoundError, InputError, OutputMismatchError, ValueError: what is asked for cannot be done.
    """
    if min_count is not None and min_count < 1:
        raise InvalidValueError(f"--min-count {min_count} is below 1")
    if not output or "://" in output:
        raise OutputMismatchError(
            f"--output {output!r} is no folder of this machine, and a vocabulary is built on one"
        )
    count_config = CountConfig(recipe.pretokenizer, validation_fraction, seed)
    check_disjoint(folders, output)
    corpus_inputs = count_inputs.load_corpus_inputs(storage, folders)
    if validation_fraction and not any(
        isinstance(corpus_input, DocumentsInput) for corpus_input in corpus_inputs
    ):
        raise InputError(
            "--validation-fraction: words that are counted already are held out by shards_to_words --validation-fraction"
        )
    comparison = _load_comparison(baseline_paths, benchmark_folder)
    output_dir = OutputDir(os.path.abspath(output))
    config = vocabulary_dir.make_config(recipe, count_config, min_count, corpus_inputs)
    output_layout.check_config(storage, output_dir, config)
    if vocabulary_dir.is_up_to_date(storage, output_dir):
        return (
            f"{output_dir.path} is finished and its input is unchanged: nothing to do. For another report: "
            f"python -m bioshards.vocab report {output} --compare NAME=PATH"
        )
    os.makedirs(output_dir.path, exist_ok=True)
    run = vocabulary_dir.make_run_info(command, corpus_inputs)
    training_counts = count_inputs.read_training_counts(
        storage, corpus_inputs, count_config, min_count, progress
    )
    progress(f"training on {len(training_counts.words):,} distinct words")
    vocabulary = build_vocabulary(recipe, training_counts.words)
    totals = vocabulary_dir.compute_totals(vocabulary, training_counts)
    progress("measuring")
    measured_words = _MeasuredWords.from_counts(
        recipe.sentencepiece, training_counts.words, training_counts.validation_words
    )
    curve = None
    if (
        vocabulary.ranked_pieces and recipe.algorithm != "unigram"
    ):  # of a unigram model the order is that of scores
        curve = vocabulary_metrics.measure_curve(
            vocabulary.ranked_pieces,
            vocabulary.tokenizer,
            measured_words.validation_words or measured_words.words,
        )
    report = measured_words.build_report(vocabulary.tokenizer, curve, comparison, _make_about(config, totals))
    output_layout.check_config(storage, output_dir, config)  # once more: all this took minutes
    output_layout.mark_started(storage, output_dir, config)
    with lock_output(storage, output_dir):
        output_layout.reset(storage, output_dir)
        vocabulary_dir.publish_vocabulary(
            storage, output_dir, vocabulary, recipe, training_counts, totals, report, config, run
        )
    return (
        f"{format_summary(totals)}\nvocabulary: {output_dir.path}\nreport:     {output_dir.path}/report.html"
    )


def run_report(
    storage: LocalStorage,
    folder: str,
    baseline_paths: BaselinePaths,
    benchmark_folder: str | None,
    progress: Callable[[str], None],
) -> str:
    """Write a finished vocabulary's report anew; returns what to tell.

    Raises:
        FileNotFoundError, InputError: there is no finished vocabulary, or what is to be beside it is not.
    """
    output_dir = OutputDir(os.path.abspath(folder))
    manifest = _manifest(storage, folder, output_dir)
    comparison = _load_comparison(baseline_paths, benchmark_folder)
    if not vocabulary_dir.is_up_to_date(storage, output_dir, vocabulary_dir.REPORT_FILES):
        raise InputError(f"{folder} has lost files that its manifest.json lists: build it again")
    config = encode(manifest.config)
    output_layout.mark_started(storage, output_dir, config)
    with lock_output(storage, output_dir):
        progress("measuring")
        tokenizer = Tokenizer.from_file(f"{output_dir.path}/tokenizer.json")
        measured_words = _MeasuredWords.from_counts(
            bool(manifest.config.recipe["sentencepiece"]),
            _read_counts(storage, f"{output_dir.path}/{WORDS_FILE}"),
            _read_counts(storage, f"{output_dir.path}/{VALIDATION_WORDS_FILE}"),
        )
        old_curve = storage.read_json(f"{output_dir.path}/report.json")["curve"]
        curve = old_curve and old_curve["points"]  # it takes the order of learning, which ids may not have
        about = _make_about(config, manifest.counts)
        new_report = measured_words.build_report(tokenizer, curve, comparison, about)
        vocabulary_dir.replace_report(storage, output_dir, manifest, new_report)
    return f"report:     {output_dir.path}/report.html"


def _manifest(files: LocalStorage, folder: str, work: OutputDir) -> VocabularyManifest:
    """The manifest of a finished vocabulary.

    Raises:
        InputError: it is none.
    """
    found: Manifest | None
    try:
        found = read_manifest(files, work.path)
    except (ManifestNotFoundError, ForeignManifestError):
        found = None
    except ManifestError as error:
        raise InputError(str(error)) from error
    if not isinstance(found, VocabularyManifest):
        raise InputError(f"{folder} is no finished vocabulary: build it with python -m bioshards.vocab build")
    if found.config.format != vocabulary_dir.FORMAT:
        raise InputError(
            f"{folder} was made by another version of bioshards (format {found.config.format}, this is "
            f"{vocabulary_dir.FORMAT}). Build it again: python -m bioshards.vocab build with another --output"
        )
    return found


def format_summary(totals: VocabularyCounts) -> str:
    """Some lines on what was made of what."""
    words, distinct, min_count = totals.words, totals.distinct_words, totals.min_count
    rare_note = (
        f"; those that occur less than {min_count:,} times are left out, or may be" if min_count > 1 else ""
    )
    lines = [f"{totals.pieces:,} pieces from {words:,} words, {distinct:,} distinct ones{rare_note}"]
    if totals.alphabet is not None:
        coverage, rarest_count = f"{100 * (totals.alphabet_coverage or 0):.7g} %", totals.alphabet_rarest or 0
        frequency_note = f" {rarest_count:,} times or more" if rarest_count > 1 else ""
        lines.append(
            f"alphabet of {totals.alphabet:,} characters, all those that occur{frequency_note}: {coverage} "
            "of the "
            "words' characters"
        )
    return "\n".join(lines)


_IN_REPORT: Final = {
    "held_out_words": "validation_words",
    "hold_out": "validation_fraction",
    "tools": "library_versions",
}
"""Names that report.json has for fields of the manifest, so that its bytes stay the same."""


def _make_about(config: Mapping[str, Any], totals: VocabularyCounts) -> dict[str, Any]:
    """What the report says at its top of the vocabulary and its corpus."""
    about = {
        **config["recipe"],
        **encode(totals),
        **(config["counting"] or {}),
        **{key: config[key] for key in ("inputs", "library_versions")},
    }
    names = {new: old for old, new in _IN_REPORT.items()}
    return {names.get(name, name): value for name, value in about.items()}


class _Comparison(NamedTuple):
    """What a report has beside its vocabulary: other vocabularies, and evaluation sets if asked for."""

    tokenizers: dict[str, Tokenizer]
    benchmark_texts: list[BenchmarkTexts] | None


def _load_comparison(baseline_paths: BaselinePaths, benchmark_folder: str | None) -> _Comparison:
    """Read it, before any work; what is odd about other vocabularies is told.

    Raises:
        FileNotFoundError, ValueError: one of them, or the folder of evaluation sets, is not right.
    """
    names = [name for name, _ in baseline_paths]
    if len({*names, vocabulary_report.DEFAULT_NAME}) <= len(names):
        raise InvalidValueError(
            f"--compare: each needs its own name, which is not {vocabulary_report.DEFAULT_NAME!r}: {', '.join(names)}"
        )
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always", UserWarning)
        tokenizers = {name: baselines.load_tokenizer(path) for name, path in baseline_paths}
    for warning in caught_warnings:
        print(f"notice: {warning.message}", file=sys.stderr)
    return _Comparison(tokenizers, load_benchmark_texts(benchmark_folder) if benchmark_folder else None)


class _MeasuredWords(NamedTuple):
    """The words that a report measures with: BERT's, or what stands between white space for SentencePiece."""

    pretokenizer: str
    words: Mapping[str, int]
    validation_words: Mapping[str, int]

    @classmethod
    def from_counts(
        cls, sentencepiece: bool, words: Mapping[str, int], validation_words: Mapping[str, int]
    ) -> _MeasuredWords:
        """Of words as they were counted for the vocabulary."""
        if sentencepiece:
            return cls("white-space", words, validation_words)
        return cls(
            "bert",
            *(
                word_counts.convert_counts(split_words, Pretokenizer())
                for split_words in (words, validation_words)
            ),
        )

    def build_report(
        self,
        tokenizer: Tokenizer,
        curve: Sequence[Mapping[str, Any]] | None,
        comparison: _Comparison,
        about: Mapping[str, Any],
    ) -> dict[str, Any]:
        """The report's data."""
        return vocabulary_report.build_report(
            *(
                tokenizer,
                self.words,
                self.validation_words or None,
                curve,
                comparison.tokenizers,
                comparison.benchmark_texts,
                about,
            ),
            pretokenizer=self.pretokenizer,
        )


def _read_counts(storage: LocalStorage, path: str) -> Mapping[str, int]:
    if not storage.exists(path):
        return {}
    with storage.open(path) as file:
        return word_counts.read_counts(file)
