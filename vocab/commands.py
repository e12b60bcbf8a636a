"""The commands of ``bioshards vocab``: build a vocabulary, adopt a published one, rewrite a report.

A vocabulary is a directory whose files are written atomically, the manifest last; without a manifest it is
not finished.  All but the manifest's ``run`` is the same for the same words and recipe.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import sentencepiece
import tokenizers
from tokenizers import Tokenizer
from tokenizers.models import Unigram, WordPiece

from bioshards.corpus import manifest as manifests
from bioshards.corpus.errors import InvalidValueError, OutputMismatchError, escape_line
from bioshards.corpus.manifest import (
    OutputFile,
    VocabularyConfig,
    VocabularyCounts,
    VocabularyManifest,
    VocabularyRun,
)
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir, lock_output
from bioshards.corpus.shards.input_dirs import (
    DocumentsInput,
    InputError,
    check_disjoint,
    describe_shared_sources,
)
from bioshards.corpus.stats import dataset_card
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.progress import Progress
from bioshards.vocab.counting import count_inputs, word_counts
from bioshards.vocab.counting.count_steps import VALIDATION_WORDS_FILE, WORDS_FILE
from bioshards.vocab.counting.repeated_ids import describe_repeated_ids
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.encoder.compatibility import find_incompatibilities
from bioshards.vocab.options import AdoptOptions, BuildOptions, ReportOptions, RewriteOptions
from bioshards.vocab.report import vocabulary_report
from bioshards.vocab.report.vocabulary_card import format_vocabulary_card
from bioshards.vocab.report.vocabulary_report import BenchmarkTexts, load_benchmark_texts
from bioshards.vocab.tokenizer import hugging_face
from bioshards.vocab.tokenizer.pretokenizer import Pretokenizer
from bioshards.vocab.tokenizer.published_vocabulary import PublishedVocabulary, load_published_vocabulary
from bioshards.vocab.tokenizer.wordpiece import ALBERT_SPECIAL_TOKENS, SPECIAL_TOKENS
from bioshards.vocab.training.vocabulary import build_vocabulary, check_size

FORMAT: Final = 3
"""Version of the data files: raised when the same words and recipe give other files."""


def run_build(storage: Storage, options: BuildOptions, progress: Progress) -> str:
    """Build the vocabulary of a recipe, and return the message to print.

    Raises:
        FileNotFoundError, InputError, OutputMismatchError, ValueError: the options or the inputs are invalid.
    """
    recipe = options.make_recipe()
    check_size(recipe)
    output_dir = _resolve_output(options.output)
    count_config = CountConfig(recipe.pretokenizer, options.validation_fraction, options.seed)
    check_disjoint(options.folders, options.output)
    corpus_inputs = count_inputs.load_corpus_inputs(storage, options.folders)
    document_inputs = [item for item in corpus_inputs if isinstance(item, DocumentsInput)]
    for notice in describe_shared_sources(document_inputs):
        print(escape_line(f"notice: {notice}"), file=sys.stderr)
    has_documents = bool(document_inputs)
    if options.validation_fraction and not has_documents:
        raise InputError(
            "--validation-fraction applies to documents, and all inputs are counted words. Split them with "
            "beam run shards_to_words --validation-fraction"
        )
    comparison = _load_comparison(options)
    config = VocabularyConfig(
        pipeline="vocab",
        format=FORMAT,
        recipe=msgspec.to_builtins(recipe),
        counting=count_config.counting if has_documents else None,
        min_count=options.min_count,
        inputs=tuple(corpus_input.summary for corpus_input in corpus_inputs),
        library_versions=_get_library_versions(),
    )
    output_layout.check_config(storage, output_dir, _list_settings(config))
    if _is_up_to_date(storage, output_dir):
        return (
            f"{output_dir.path} is finished and its input is unchanged: nothing to do. For another report: "
            f"bioshards vocab report {options.output} --compare NAME=PATH"
        )
    os.makedirs(output_dir.path, exist_ok=True)
    run = _start_run(options, [corpus_input.folder for corpus_input in corpus_inputs])
    counts = count_inputs.read_training_counts(
        storage, corpus_inputs, count_config, options.min_count, progress
    )
    for notice in describe_repeated_ids(storage, document_inputs):
        print(escape_line(f"notice: {notice}"), file=sys.stderr)
    with progress.bar(f"training {recipe.algorithm} on {len(counts.words):,} distinct words"):
        vocabulary = build_vocabulary(recipe, counts.words)
    totals = VocabularyCounts(
        pieces=vocabulary.tokenizer.get_vocab_size(),
        words=counts.words.total(),
        distinct_words=len(counts.words),
        min_count=counts.min_count,
        validation_words=counts.validation_words.total(),
        trained_words=vocabulary.total_words,
        distinct_trained_words=vocabulary.distinct_words,
        alphabet=len(vocabulary.alphabet.characters),
        alphabet_rarest=vocabulary.alphabet.rarest,
        alphabet_coverage=round(vocabulary.alphabet.coverage, 7),
    )
    tokenizer_config = hugging_face.make_tokenizer_config(recipe.casing, recipe.is_sentencepiece)
    files = hugging_face.serialize_tokenizer(vocabulary.tokenizer, tokenizer_config)
    if vocabulary.sentencepiece_model:
        files["spiece.model"] = vocabulary.sentencepiece_model
    files[WORDS_FILE] = b"".join(word_counts.lines_from_counts(counts.words))
    if counts.validation_words:
        files[VALIDATION_WORDS_FILE] = b"".join(word_counts.lines_from_counts(counts.validation_words))
    manifest = VocabularyManifest(config=config, outputs=(), counts=totals, run=run)
    with progress.bar("measuring"):
        files |= _measure(vocabulary.tokenizer, counts.words, counts.validation_words, comparison, manifest)
    return f"{_format_summary(totals)}\n{_publish(storage, output_dir, files, manifest)}"


def run_adopt(storage: Storage, options: AdoptOptions, progress: Progress) -> str:
    """Write the directory of a published vocabulary, with its ids, and return the message to print.

    Raises:
        FileNotFoundError, InvalidValueError, OutputMismatchError: the options or the vocabulary are invalid.
    """
    output_dir = _resolve_output(options.output)
    published = _load_published(options.path, options.cased, options.strip_accents)
    _check_supported(published)
    tokenizer, casing = published.tokenizer, published.casing
    comparison = _load_comparison(options)
    with open(published.file, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    config = VocabularyConfig(
        pipeline="vocab",
        format=FORMAT,
        recipe={
            "algorithm": "adopted",
            "file": os.path.basename(published.file),
            "sha256": digest,
            "lower_case": casing.lower_case,
            "strip_accents": casing.strip_accents,
            "sentencepiece": published.is_sentencepiece,
        },
        counting=None,
        min_count=None,
        inputs=(),
        library_versions=_get_library_versions(),
    )
    output_layout.check_config(storage, output_dir, _list_settings(config))
    summary = (
        f"{tokenizer.get_vocab_size():,} pieces of {published.file}: "
        f"{'SentencePiece' if published.is_sentencepiece else 'WordPiece'}, "
        f"{'lower case' if casing.lower_case else 'cased'}, "
        f"accents {'stripped' if casing.strip_accents else 'kept'}"
    )
    if _is_up_to_date(storage, output_dir):
        return f"{summary}\n{output_dir.path} is finished and the vocabulary unchanged: nothing to do"
    os.makedirs(output_dir.path, exist_ok=True)
    totals = VocabularyCounts(
        pieces=tokenizer.get_vocab_size(),
        words=0,
        distinct_words=0,
        min_count=1,
        validation_words=0,
        trained_words=0,
        distinct_trained_words=0,
        alphabet=None,
        alphabet_rarest=None,
        alphabet_coverage=None,
    )
    run = _start_run(options, [options.path])
    manifest = VocabularyManifest(config=config, outputs=(), counts=totals, run=run)
    # The class of the family makes the normaliser anew from its options; where this would lose something,
    # the class is the one that reads tokenizer.json alone.
    tokenizer_config = hugging_face.make_tokenizer_config(casing, published.is_sentencepiece)
    if not published.is_sentencepiece:
        normalizer = tokenizer.normalizer
        tokenizer_config["tokenize_chinese_chars"] = getattr(normalizer, "handle_chinese_chars", True)
    if not hugging_face.is_rebuilt(tokenizer, casing):
        tokenizer_config["tokenizer_class"] = "PreTrainedTokenizerFast"
    files = hugging_face.serialize_tokenizer(tokenizer, tokenizer_config)
    if published.spiece_model is not None:
        files["spiece.model"] = published.spiece_model
    with progress.bar("measuring"):
        files |= _measure(tokenizer, Counter(), Counter(), comparison, manifest)
    return f"{summary}\n{_publish(storage, output_dir, files, manifest)}"


def run_report(storage: Storage, options: RewriteOptions, progress: Progress) -> str:
    """Rewrite the report of a finished vocabulary, and return the message to print.

    An interrupted run may have rewritten one file of the report: it is safe to repeat.

    Raises:
        FileNotFoundError, InputError: the vocabulary is not finished, or a baseline is missing.
        ManifestError: a file is damaged.
    """
    output_dir = OutputDir(os.path.abspath(options.folder))
    folder, manifest = output_dir.path, _read_manifest(storage, options.folder)
    comparison = _load_comparison(options)
    if not _is_up_to_date(storage, output_dir, any_size=("report.json", "report.html")):
        raise InputError(f"{options.folder} lacks files that its manifest.json lists: build it again")
    manifests.check_listed(storage, folder, ("tokenizer.json", WORDS_FILE, VALIDATION_WORDS_FILE))
    with lock_output(storage, output_dir):
        output_layout.mark_started(storage, output_dir, _list_settings(manifest.config))
        words, validation_words = (
            _read_counts(storage, f"{folder}/{name}") for name in (WORDS_FILE, VALIDATION_WORDS_FILE)
        )
        with progress.bar("measuring"):
            tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
            report_files = _measure(tokenizer, words, validation_words, comparison, manifest)
        written = {name: _write_file(storage, folder, name, data) for name, data in report_files.items()}
        outputs = tuple(written.get(output.file, output) for output in manifest.outputs)
        manifest = msgspec.structs.replace(manifest, outputs=outputs)
        manifests.write_manifest(storage, output_dir.manifest_path, manifest)
    return f"report:     {folder}/report.html"


# The directory


def _resolve_output(output: str) -> OutputDir:
    if not output or "://" in output:
        raise OutputMismatchError(
            f"--output {output!r} is not a local directory, where vocabularies are built"
        )
    return OutputDir(os.path.abspath(output))


def _get_library_versions() -> dict[str, str]:
    """Return the versions of the libraries that a vocabulary depends on."""
    return {"sentencepiece": sentencepiece.__version__, "tokenizers": tokenizers.__version__}


def _list_settings(config: VocabularyConfig) -> dict[str, Any]:
    """Return a configuration, which a rerun must share, as JSON gives it."""
    settings: dict[str, Any] = json.loads(json.dumps(msgspec.to_builtins(config)))
    return settings


def _start_run(options: ReportOptions, inputs: Sequence[str]) -> VocabularyRun:
    return VocabularyRun(command=("bioshards", "vocab", *options.command), inputs=tuple(inputs))


def _is_up_to_date(storage: Storage, output_dir: OutputDir, any_size: tuple[str, ...] = ()) -> bool:
    """Return True if the manifest exists and every file that it lists has its size, or is of any size."""
    manifest = manifests.find_manifest(storage, output_dir.path, VocabularyManifest)
    return manifest is not None and manifests.is_complete(
        storage, output_dir.path, manifest, any_size=any_size
    )


def _publish(
    storage: Storage, output_dir: OutputDir, files: Mapping[str, bytes], manifest: VocabularyManifest
) -> str:
    """Write the files of a vocabulary, the manifest last, and return where they are."""
    settings = _list_settings(manifest.config)
    with lock_output(storage, output_dir):
        output_layout.check_config(storage, output_dir, settings)  # again: training took minutes
        output_layout.mark_started(storage, output_dir, settings)
        output_layout.reset(storage, output_dir)
        files = {**files, dataset_card.FILE: format_vocabulary_card(manifest, set(files)).encode()}
        outputs = tuple(_write_file(storage, output_dir.path, name, data) for name, data in files.items())
        run = msgspec.structs.replace(manifest.run, finished_at=manifests.utc_now())
        manifest = msgspec.structs.replace(manifest, outputs=outputs, run=run)
        manifests.write_manifest(storage, output_dir.manifest_path, manifest)
    return f"vocabulary: {output_dir.path}\nreport:     {output_dir.path}/report.html"


def _write_file(storage: Storage, folder: str, name: str, data: bytes) -> OutputFile:
    with storage.write(f"{folder}/{name}") as file:
        writer = HashingWriter(file)
        writer.write(data)
    return OutputFile(name, writer.size, writer.sha256)


def _read_manifest(storage: Storage, folder: str) -> VocabularyManifest:
    """Read the manifest of a finished vocabulary of this version."""
    manifest: manifests.Manifest | None = None
    try:
        manifest = manifests.read_manifest(storage, os.path.abspath(folder))
    except (manifests.ManifestNotFoundError, manifests.ForeignManifestError):
        pass
    except manifests.ManifestError as error:
        raise InputError(str(error)) from error
    if not isinstance(manifest, VocabularyManifest):
        origin = f" (by its manifest.json it was made by {manifest.pipeline})" if manifest else ""
        raise InputError(
            f"{folder} is not a finished vocabulary{origin}: build it with bioshards vocab build"
        )
    if manifest.config.format != FORMAT:
        raise InputError(
            f"{folder} was made by another version of bioshards (format {manifest.config.format}, this is "
            f"{FORMAT}). Build it again: bioshards vocab build with another --output"
        )
    return manifest


def _read_counts(storage: Storage, path: str) -> Counter[str]:
    if not storage.exists(path):
        return Counter()
    with storage.open(path) as file:
        return word_counts.read_counts(file)


def _format_summary(totals: VocabularyCounts) -> str:
    """Return a few lines about the pieces, the words and the alphabet of a built vocabulary."""
    rare_note = ""
    if totals.min_count > 1:
        rare_note = f"; words with fewer than {totals.min_count:,} occurrences may be left out"
    rarest, coverage = totals.alphabet_rarest or 0, f"{100 * (totals.alphabet_coverage or 0):.7g} %"
    frequency_note = f" with {rarest:,} occurrences or more" if rarest > 1 else ""
    return (
        f"{totals.pieces:,} pieces from {totals.words:,} words, {totals.distinct_words:,} distinct"
        f"{rare_note}\n"
        f"alphabet: {totals.alphabet:,} characters, all that occur{frequency_note}; {coverage} of the "
        "words' characters"
    )


# Published vocabularies


def _load_published(
    path: str, cased: bool | None = None, strip_accents: bool | None = None
) -> PublishedVocabulary:
    lower_case = None if cased is None else not cased
    published = load_published_vocabulary(path, lower_case, strip_accents)
    if published.notice:
        print(f"notice: {published.notice}", file=sys.stderr)
    return published


def _check_supported(published: PublishedVocabulary) -> None:
    """Check that a vocabulary is of BERT's or ALBERT's tokenizer, and mark its special tokens."""
    tokenizer = published.tokenizer
    if isinstance(tokenizer.model, WordPiece | Unigram):
        special_tokens = ALBERT_SPECIAL_TOKENS if published.is_sentencepiece else SPECIAL_TOKENS
        missing = [name for name in special_tokens if tokenizer.token_to_id(name) is None]
        if missing:
            raise InvalidValueError(
                f"{published.file} lacks {', '.join(missing)}: pretraining needs the special tokens of "
                f"{'ALBERT' if published.is_sentencepiece else 'BERT'}, {', '.join(special_tokens)}. Give a "
                "vocabulary of such a model"
            )
        hugging_face.add_special_tokens(tokenizer, special_tokens)
    for reason in find_incompatibilities(json.loads(tokenizer.to_str()), tokenizer):
        raise InvalidValueError(
            f"{published.file} has {reason}: bioshards encodes with the tokenizers of BERT and ELECTRA "
            "(WordPiece) and of ALBERT (SentencePiece unigram) only"
        )


# The report


class _Comparison(NamedTuple):
    """What a report compares with: tokenizers by name, and evaluation sets if requested."""

    baselines: dict[str, Tokenizer]
    benchmark_texts: BenchmarkTexts | None


def _load_comparison(options: ReportOptions) -> _Comparison:
    """Load the baselines and evaluation sets, and print warnings about them."""
    names = [baseline.name for baseline in options.compare]
    if len({*names, vocabulary_report.OWN_NAME}) <= len(names):
        raise InvalidValueError(
            f"--compare: names must differ from each other and from {vocabulary_report.OWN_NAME!r}: "
            f"{', '.join(names)}"
        )
    baselines = {baseline.name: _load_published(baseline.path).tokenizer for baseline in options.compare}
    texts = load_benchmark_texts(options.benchmark_texts) if options.benchmark_texts else None
    return _Comparison(baselines, texts)


def _measure(
    tokenizer: Tokenizer,
    words: Counter[str],
    validation_words: Counter[str],
    comparison: _Comparison,
    manifest: VocabularyManifest,
) -> dict[str, bytes]:
    """Return the files of the report, measured on BERT's words, or for SentencePiece on those as counted."""
    kind = "white-space"
    if not isinstance(tokenizer.model, Unigram):
        kind, pretokenize = "bert", Pretokenizer()
        words = word_counts.convert_counts(words, pretokenize)
        validation_words = word_counts.convert_counts(validation_words, pretokenize)
    settings = _list_settings(manifest.config)
    about = {
        **settings["recipe"],
        **msgspec.to_builtins(manifest.counts),
        **(settings["counting"] or {}),
        **{key: settings[key] for key in ("inputs", "library_versions")},
    }
    report = vocabulary_report.build_report(tokenizer, words, validation_words, *comparison, about, kind)
    report_json = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    report_html = vocabulary_report.render_page(report)
    return {"report.json": report_json.encode(), "report.html": report_html.encode()}
