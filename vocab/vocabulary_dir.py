"""The directory of a vocabulary: its files, written atomically, and the manifest last.

A directory without a manifest is not finished.  All but the manifest's ``run`` is the same for the same words
and recipe.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import sentencepiece
import tokenizers

from bioshards.corpus.manifest import (
    OutputFile,
    VocabularyConfig,
    VocabularyCounts,
    VocabularyManifest,
    VocabularyRun,
    find_manifest,
    is_complete,
    utc_now,
    write_manifest,
)
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.counting import word_counts
from bioshards.vocab.counting.count_inputs import CorpusInput, TrainingCounts
from bioshards.vocab.counting.count_steps import VALIDATION_WORDS_FILE, WORDS_FILE
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.report import vocabulary_page
from bioshards.vocab.tokenizer import hugging_face
from bioshards.vocab.training.vocabulary import Vocabulary
from bioshards.vocab.training.vocabulary_recipes import VocabularyRecipe

REPORT_FILES: Final = ("report.json", "report.html")
FORMAT: Final = 2
"""Version of the data files: raised when the same words and recipe give other files."""


def make_config(
    recipe: VocabularyRecipe,
    count_config: CountConfig,
    min_count: int | None,
    corpus_inputs: Sequence[CorpusInput],
) -> VocabularyConfig:
    """Return the configuration that a rerun must share."""
    has_documents = any(isinstance(corpus_input, DocumentsInput) for corpus_input in corpus_inputs)
    return VocabularyConfig(
        pipeline="vocab",
        format=FORMAT,
        recipe=recipe.to_dict(),
        counting=count_config.counting if has_documents else None,
        min_count=min_count,
        inputs=tuple(corpus_input.summary for corpus_input in corpus_inputs),
        library_versions=get_library_versions(),
    )


def list_settings(config: VocabularyConfig) -> dict[str, Any]:
    """Return a configuration as JSON gives it, with lists for tuples."""
    settings: dict[str, Any] = json.loads(json.dumps(msgspec.to_builtins(config)))
    return settings


def get_library_versions() -> dict[str, str]:
    """Return the versions of the libraries that a vocabulary depends on."""
    return {"sentencepiece": sentencepiece.__version__, "tokenizers": tokenizers.__version__}


def is_up_to_date(storage: Storage, output_dir: OutputDir, replaceable_files: Collection[str] = ()) -> bool:
    """Return True if the manifest exists and every file that it lists has its size.

    Args:
        replaceable_files: files that an interrupted run may have rewritten; their sizes are not checked.
    """
    manifest = find_manifest(storage, output_dir.path, VocabularyManifest)
    return manifest is not None and is_complete(
        storage, output_dir.path, manifest, any_size=replaceable_files
    )


def list_files(
    vocabulary: Vocabulary, recipe: VocabularyRecipe, training_counts: TrainingCounts
) -> dict[str, Iterable[bytes]]:
    """Return the content of the files of a trained vocabulary by name, without those of the report."""
    tokenizer_config = hugging_face.make_tokenizer_config(recipe.casing, recipe.sentencepiece)
    contents: dict[str, Iterable[bytes]] = {
        name: [data]
        for name, data in hugging_face.serialize_tokenizer(vocabulary.tokenizer, tokenizer_config).items()
    }
    if vocabulary.sentencepiece_model:
        contents["spiece.model"] = [vocabulary.sentencepiece_model]
    contents[WORDS_FILE] = word_counts.lines_from_counts(training_counts.words)
    if training_counts.validation_words:
        contents[VALIDATION_WORDS_FILE] = word_counts.lines_from_counts(training_counts.validation_words)
    return contents


def publish_vocabulary(
    storage: Storage,
    output_dir: OutputDir,
    files: Mapping[str, Iterable[bytes]],
    totals: VocabularyCounts,
    report: Mapping[str, Any],
    config: VocabularyConfig,
    run: VocabularyRun,
) -> None:
    """Write the files of a vocabulary and of its report, the manifest last."""
    contents = {**files, **_render_report(report)}
    manifest = VocabularyManifest(
        config=config,
        outputs=tuple(_write_file(storage, output_dir.path, name, data) for name, data in contents.items()),
        counts=totals,
        run=msgspec.structs.replace(run, finished_at=utc_now()),
    )
    write_manifest(storage, output_dir.manifest_path, manifest)


def compute_totals(vocabulary: Vocabulary, training_counts: TrainingCounts) -> VocabularyCounts:
    """Return the counts of the manifest."""
    letters = vocabulary.alphabet
    return VocabularyCounts(
        pieces=vocabulary.tokenizer.get_vocab_size(),
        words=training_counts.words.total(),
        distinct_words=len(training_counts.words),
        min_count=training_counts.min_count,
        validation_words=training_counts.validation_words.total(),
        trained_words=vocabulary.total_words,
        distinct_trained_words=vocabulary.distinct_words,
        alphabet=len(letters.characters) if letters else None,
        alphabet_rarest=letters.rarest if letters else None,
        alphabet_coverage=round(letters.coverage, 7) if letters else None,
    )


def replace_report(
    storage: Storage, output_dir: OutputDir, manifest: VocabularyManifest, report: Mapping[str, Any]
) -> None:
    """Replace the report files and update the manifest; safe to repeat after an interruption."""
    new_outputs = {
        name: _write_file(storage, output_dir.path, name, data)
        for name, data in _render_report(report).items()
    }
    outputs = tuple(new_outputs.get(output.file, output) for output in manifest.outputs)
    write_manifest(storage, output_dir.manifest_path, msgspec.structs.replace(manifest, outputs=outputs))


def make_run_info(command: Sequence[str], inputs: Iterable[str]) -> VocabularyRun:
    """Return the facts about this run.

    Args:
        inputs: what was read.
    """
    return VocabularyRun(command=("python", "-m", "bioshards.vocab", *command), inputs=tuple(inputs))


def _render_report(report: Mapping[str, Any]) -> dict[str, Iterable[bytes]]:
    report_json = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    report_html = vocabulary_page.render_page(dict(report))
    return dict(zip(REPORT_FILES, ([report_json.encode()], [report_html.encode()]), strict=True))


def _write_file(storage: Storage, folder: str, name: str, data: Iterable[bytes]) -> OutputFile:
    with storage.write(f"{folder}/{name}") as file:
        writer = HashingWriter(file)
        for block in data:
            writer.write(block)
    return OutputFile(name, writer.size, writer.sha256)
