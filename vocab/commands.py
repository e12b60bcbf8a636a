"""The commands of ``python -m bioshards.vocab``: build a vocabulary, and rewrite its report."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
from tokenizers import Tokenizer

from bioshards.corpus.errors import InvalidValueError, OutputMismatchError
from bioshards.corpus.manifest import (
    ForeignManifestError,
    Manifest,
    ManifestError,
    ManifestNotFoundError,
    VocabularyConfig,
    VocabularyCounts,
    VocabularyManifest,
    read_manifest,
)
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir, lock_output
from bioshards.corpus.shards.input_dirs import DocumentsInput, InputError, check_disjoint
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.progress import Progress
from bioshards.vocab import vocabulary_dir
from bioshards.vocab.counting import count_inputs, word_counts
from bioshards.vocab.counting.count_steps import VALIDATION_WORDS_FILE, WORDS_FILE
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.options import BuildOptions, ReportOptions, RewriteOptions
from bioshards.vocab.report import vocabulary_metrics, vocabulary_report
from bioshards.vocab.report.benchmark_texts import BenchmarkTexts, load_benchmark_texts
from bioshards.vocab.tokenizer import published_vocabulary
from bioshards.vocab.tokenizer.pretokenizer import Pretokenizer
from bioshards.vocab.training.vocabulary import build_vocabulary


def run_build(storage: Storage, options: BuildOptions, progress: Progress) -> str:
    """Build the vocabulary of a recipe.

    Args:
        progress: shows the current step.

    Returns:
        The message to print.

    Raises:
        FileNotFoundError, InputError, OutputMismatchError, ValueError: the options or the inputs are invalid.
    """
    recipe = options.make_recipe()
    if options.min_count is not None and options.min_count < 1:
        raise InvalidValueError(f"--min-count {options.min_count} is below 1")
    if not options.output or "://" in options.output:
        raise OutputMismatchError(
            f"--output {options.output!r} is not a local directory, where vocabularies are built"
        )
    count_config = CountConfig(recipe.pretokenizer, options.validation_fraction, options.seed)
    check_disjoint(options.folders, options.output)
    corpus_inputs = count_inputs.load_corpus_inputs(storage, options.folders)
    has_documents = any(isinstance(corpus_input, DocumentsInput) for corpus_input in corpus_inputs)
    if options.validation_fraction and not has_documents:
        raise InputError(
            "--validation-fraction applies to documents, and all inputs are counted words. Split them with "
            "beam run shards_to_words --validation-fraction"
        )
    comparison = load_comparison(options)
    output_dir = OutputDir(os.path.abspath(options.output))
    config = vocabulary_dir.make_config(recipe, count_config, options.min_count, corpus_inputs)
    settings = vocabulary_dir.list_settings(config)
    output_layout.check_config(storage, output_dir, settings)
    if vocabulary_dir.is_up_to_date(storage, output_dir):
        return (
            f"{output_dir.path} is finished and its input is unchanged: nothing to do. For another report: "
            f"python -m bioshards.vocab report {options.output} --compare NAME=PATH"
        )
    os.makedirs(output_dir.path, exist_ok=True)
    run = vocabulary_dir.make_run_info(
        options.command, [corpus_input.folder for corpus_input in corpus_inputs]
    )
    training_counts = count_inputs.read_training_counts(
        storage, corpus_inputs, count_config, options.min_count, progress
    )
    with progress.bar(f"training {recipe.algorithm} on {len(training_counts.words):,} distinct words"):
        vocabulary = build_vocabulary(recipe, training_counts.words)
    totals = vocabulary_dir.compute_totals(vocabulary, training_counts)
    with progress.bar("measuring"):
        measured_words = MeasuredWords.from_counts(
            recipe.sentencepiece, training_counts.words, training_counts.validation_words
        )
        curve = None
        if vocabulary.ranked_pieces and recipe.algorithm != "unigram":  # unigram pieces are ranked by score
            curve = vocabulary_metrics.measure_curve(
                vocabulary.ranked_pieces,
                vocabulary.tokenizer,
                measured_words.validation_words or measured_words.words,
            )
        report = measured_words.build_report(
            vocabulary.tokenizer, curve, comparison, make_about(config, totals)
        )
    output_layout.check_config(storage, output_dir, settings)  # again: training took minutes
    output_layout.mark_started(storage, output_dir, settings)
    with lock_output(storage, output_dir):
        output_layout.reset(storage, output_dir)
        files = vocabulary_dir.list_files(vocabulary, recipe, training_counts)
        vocabulary_dir.publish_vocabulary(storage, output_dir, files, totals, report, config, run)
    return (
        f"{format_summary(totals)}\nvocabulary: {output_dir.path}\nreport:     {output_dir.path}/report.html"
    )


def run_report(storage: Storage, options: RewriteOptions, progress: Progress) -> str:
    """Rewrite the report of a finished vocabulary, and return the message to print.

    Raises:
        FileNotFoundError, InputError: the vocabulary is not finished, or a baseline is missing.
    """
    folder = options.folder
    output_dir = OutputDir(os.path.abspath(folder))
    manifest = _read_vocabulary_manifest(storage, folder, output_dir)
    comparison = load_comparison(options)
    if not vocabulary_dir.is_up_to_date(storage, output_dir, vocabulary_dir.REPORT_FILES):
        raise InputError(f"{folder} lacks files that its manifest.json lists: build it again")
    output_layout.mark_started(storage, output_dir, vocabulary_dir.list_settings(manifest.config))
    with lock_output(storage, output_dir):
        with progress.bar("measuring"):
            tokenizer = Tokenizer.from_file(f"{output_dir.path}/tokenizer.json")
            measured_words = MeasuredWords.from_counts(
                bool(manifest.config.recipe["sentencepiece"]),
                _read_counts(storage, f"{output_dir.path}/{WORDS_FILE}"),
                _read_counts(storage, f"{output_dir.path}/{VALIDATION_WORDS_FILE}"),
            )
            # The curve needs the order of training, which the ids do not always have.
            old_curve = storage.read_json(f"{output_dir.path}/report.json")["curve"]
            curve = old_curve and old_curve["points"]
            about = make_about(manifest.config, manifest.counts)
            new_report = measured_words.build_report(tokenizer, curve, comparison, about)
        vocabulary_dir.replace_report(storage, output_dir, manifest, new_report)
    return f"report:     {output_dir.path}/report.html"


def _read_vocabulary_manifest(storage: Storage, folder: str, output_dir: OutputDir) -> VocabularyManifest:
    """Read the manifest of a finished vocabulary.

    Raises:
        InputError: the directory is not a finished vocabulary of this version.
    """
    manifest: Manifest | None
    try:
        manifest = read_manifest(storage, output_dir.path)
    except (ManifestNotFoundError, ForeignManifestError):
        manifest = None
    except ManifestError as error:
        raise InputError(str(error)) from error
    if not isinstance(manifest, VocabularyManifest):
        raise InputError(
            f"{folder} is not a finished vocabulary: build it with python -m bioshards.vocab build"
        )
    if manifest.config.format != vocabulary_dir.FORMAT:
        raise InputError(
            f"{folder} was made by another version of bioshards (format {manifest.config.format}, this is "
            f"{vocabulary_dir.FORMAT}). Build it again: python -m bioshards.vocab build with another --output"
        )
    return manifest


def format_summary(totals: VocabularyCounts) -> str:
    """Return a few lines about the pieces, the words and the alphabet."""
    words, distinct, min_count = totals.words, totals.distinct_words, totals.min_count
    rare_note = f"; words with fewer than {min_count:,} occurrences may be left out" if min_count > 1 else ""
    lines = [f"{totals.pieces:,} pieces from {words:,} words, {distinct:,} distinct{rare_note}"]
    if totals.alphabet is not None:
        coverage, rarest_count = f"{100 * (totals.alphabet_coverage or 0):.7g} %", totals.alphabet_rarest or 0
        frequency_note = f" with {rarest_count:,} occurrences or more" if rarest_count > 1 else ""
        lines.append(
            f"alphabet: {totals.alphabet:,} characters, all that occur{frequency_note}; {coverage} of the "
            "words' characters"
        )
    return "\n".join(lines)


_REPORT_NAMES: Final = {
    "character_coverage": "coverage",
    "num_unused_tokens": "unused",
    "entity_placeholders": "dummies",
    "sort_by_collation": "by_collation",
    "pretokenizer": "kind",
    "validation_words": "held_out_words",
    "validation_fraction": "hold_out",
    "library_versions": "tools",
}
"""Names in report.json of fields of the manifest, so that the bytes of report.json stay the same."""


def make_about(config: VocabularyConfig, totals: VocabularyCounts) -> dict[str, Any]:
    """Return the ``about`` part of the report: the recipe, the counts and the inputs."""
    settings = vocabulary_dir.list_settings(config)
    about = {
        **settings["recipe"],
        **msgspec.to_builtins(totals),
        **(settings["counting"] or {}),
        **{key: settings[key] for key in ("inputs", "library_versions")},
    }
    return {_REPORT_NAMES.get(name, name): value for name, value in about.items()}


class Comparison(NamedTuple):
    """What a report compares with: tokenizers by name, and evaluation sets if requested."""

    tokenizers: dict[str, Tokenizer]
    benchmark_texts: list[BenchmarkTexts] | None


def load_comparison(options: ReportOptions) -> Comparison:
    """Load the baselines and evaluation sets, and print warnings about them.

    Raises:
        FileNotFoundError, ValueError: a baseline or the folder of evaluation sets is missing or invalid.
    """
    names = [baseline.name for baseline in options.compare]
    if len({*names, vocabulary_report.DEFAULT_NAME}) <= len(names):
        raise InvalidValueError(
            f"--compare: names must differ from each other and from {vocabulary_report.DEFAULT_NAME!r}: "
            f"{', '.join(names)}"
        )
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always", UserWarning)
        tokenizers = {
            baseline.name: published_vocabulary.load_tokenizer(baseline.path) for baseline in options.compare
        }
    for warning in caught_warnings:
        print(f"notice: {warning.message}", file=sys.stderr)
    return Comparison(
        tokenizers, load_benchmark_texts(options.benchmark_texts) if options.benchmark_texts else None
    )


@dataclass(frozen=True, slots=True)
class MeasuredWords:
    """Words to measure with: BERT's, or those between white space for SentencePiece."""

    pretokenizer: str
    words: Mapping[str, int]
    validation_words: Mapping[str, int]

    @classmethod
    def from_counts(
        cls, sentencepiece: bool, words: Mapping[str, int], validation_words: Mapping[str, int]
    ) -> MeasuredWords:
        """Convert words as they were counted for the vocabulary."""
        if sentencepiece:
            return cls("white-space", words, validation_words)
        pretokenize = Pretokenizer()
        return cls(
            "bert",
            word_counts.convert_counts(words, pretokenize),
            word_counts.convert_counts(validation_words, pretokenize),
        )

    def build_report(
        self,
        tokenizer: Tokenizer,
        curve: Sequence[Mapping[str, Any]] | None,
        comparison: Comparison,
        about: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the data of report.json."""
        return vocabulary_report.build_report(
            tokenizer,
            words=self.words,
            validation_words=self.validation_words or None,
            curve=curve,
            baselines=comparison.tokenizers,
            benchmark_texts=comparison.benchmark_texts,
            about=about,
            pretokenizer=self.pretokenizer,
        )


def _read_counts(storage: Storage, path: str) -> Mapping[str, int]:
    if not storage.exists(path):
        return {}
    with storage.open(path) as file:
        return word_counts.read_counts(file)
