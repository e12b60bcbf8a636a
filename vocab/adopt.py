"""``python -m bioshards.vocab adopt``: the directory of a published vocabulary, with the same ids."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import warnings
from collections.abc import Iterable
from typing import Any

from tokenizers.models import Unigram, WordPiece

from bioshards.corpus.errors import InvalidValueError, OutputMismatchError
from bioshards.corpus.manifest import VocabularyConfig, VocabularyCounts
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir, lock_output
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.progress import Progress
from bioshards.vocab import vocabulary_dir
from bioshards.vocab.commands import MeasuredWords, load_comparison, make_about
from bioshards.vocab.encoder.compatibility import find_incompatibilities
from bioshards.vocab.options import AdoptOptions
from bioshards.vocab.tokenizer import hugging_face
from bioshards.vocab.tokenizer.published_vocabulary import (
    CasingOptions,
    PublishedVocabulary,
    load_published_vocabulary,
)
from bioshards.vocab.tokenizer.wordpiece import SPECIAL_TOKENS


def run_adopt(storage: Storage, options: AdoptOptions, progress: Progress) -> str:
    """Write the directory of a published vocabulary.

    Args:
        progress: shows the current step.

    Returns:
        The message to print.

    Raises:
        FileNotFoundError, InvalidValueError, OutputMismatchError: the options or the vocabulary are invalid.
    """
    if not options.output or "://" in options.output:
        raise OutputMismatchError(
            f"--output {options.output!r} is not a local directory, where vocabularies are built"
        )
    output_dir = OutputDir(os.path.abspath(options.output))
    published = _load_supported(options)
    comparison = load_comparison(options)
    config = _make_config(published)
    settings = vocabulary_dir.list_settings(config)
    output_layout.check_config(storage, output_dir, settings)
    summary = _format_summary(published)
    if vocabulary_dir.is_up_to_date(storage, output_dir):
        return f"{summary}\n{output_dir.path} is finished and the vocabulary unchanged: nothing to do"
    os.makedirs(output_dir.path, exist_ok=True)
    run = vocabulary_dir.make_run_info(options.command, [os.path.abspath(options.path)])
    totals = VocabularyCounts(
        pieces=published.tokenizer.get_vocab_size(),
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
    with progress.bar("measuring"):
        report = MeasuredWords.from_counts(published.is_sentencepiece, {}, {}).build_report(
            published.tokenizer, None, comparison, make_about(config, totals)
        )
    output_layout.mark_started(storage, output_dir, settings)
    with lock_output(storage, output_dir):
        output_layout.reset(storage, output_dir)
        vocabulary_dir.publish_vocabulary(
            storage, output_dir, _list_files(published), totals, report, config, run
        )
    return f"{summary}\nvocabulary: {output_dir.path}\nreport:     {output_dir.path}/report.html"


def _load_supported(options: AdoptOptions) -> PublishedVocabulary:
    """Load a published vocabulary whose text can be encoded, and mark its special tokens.

    Raises:
        InvalidValueError: it lacks special tokens, or its tokenizer is another than BERT's or ALBERT's.
    """
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("always", UserWarning)
        lower_case = None if options.cased is None else not options.cased
        published = load_published_vocabulary(options.path, CasingOptions(lower_case, options.strip_accents))
    for warning in caught_warnings:
        print(f"notice: {warning.message}", file=sys.stderr)
    tokenizer = published.tokenizer
    if isinstance(tokenizer.model, WordPiece | Unigram):
        special_tokens = _list_special_tokens(published)
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
    return published


def _list_special_tokens(published: PublishedVocabulary) -> tuple[str, ...]:
    return hugging_face.ALBERT_SPECIAL_TOKENS if published.is_sentencepiece else SPECIAL_TOKENS


def _make_config(published: PublishedVocabulary) -> VocabularyConfig:
    """Return the configuration that a rerun must share."""
    with open(published.file, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return VocabularyConfig(
        pipeline="vocab",
        format=vocabulary_dir.FORMAT,
        recipe={
            "algorithm": "adopted",
            "file": os.path.basename(published.file),
            "sha256": digest,
            "lower_case": published.casing.lower_case,
            "strip_accents": published.casing.strip_accents,
            "sentencepiece": published.is_sentencepiece,
        },
        counting=None,
        min_count=None,
        inputs=(),
        library_versions=vocabulary_dir.get_library_versions(),
    )


def _list_files(published: PublishedVocabulary) -> dict[str, Iterable[bytes]]:
    """Return the content of the tokenizer's files by name."""
    files = hugging_face.serialize_tokenizer(published.tokenizer, _make_tokenizer_config(published))
    contents: dict[str, Iterable[bytes]] = {name: [data] for name, data in files.items()}
    if published.spiece_model is not None:
        contents["spiece.model"] = [published.spiece_model]
    return contents


def _make_tokenizer_config(published: PublishedVocabulary) -> dict[str, Any]:
    """Return the tokenizer_config.json.

    It names the class of transformers that gives the same ids.  That of the family makes the normaliser anew
    from its options; where this would lose something, the class is the one that reads tokenizer.json alone.
    """
    tokenizer, casing = published.tokenizer, published.casing
    config = hugging_face.make_tokenizer_config(casing, published.is_sentencepiece)
    if not published.is_sentencepiece:
        config["tokenize_chinese_chars"] = getattr(tokenizer.normalizer, "handle_chinese_chars", True)
    if not hugging_face.is_rebuilt(tokenizer, casing):
        config["tokenizer_class"] = "PreTrainedTokenizerFast"
    return config


def _format_summary(published: PublishedVocabulary) -> str:
    kind = "SentencePiece" if published.is_sentencepiece else "WordPiece"
    case = "lower case" if published.casing.lower_case else "cased"
    accents = "stripped" if published.casing.strip_accents else "kept"
    return (
        f"{published.tokenizer.get_vocab_size():,} pieces of {published.file}: {kind}, {case}, accents "
        f"{accents}"
    )
