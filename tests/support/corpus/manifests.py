"""Manifests with defaults, and the check of all manifests that the tests write."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from jsonschema import Draft202012Validator

from bioshards.corpus.manifest import (
    DocumentCounts,
    DocumentsConfig,
    DocumentsManifest,
    DocumentsRun,
    ManifestError,
    MirrorConfig,
    MirrorManifest,
    MirrorRun,
    OutputFile,
    OverlapFile,
    PretrainingConfig,
    PretrainingCounts,
    PretrainingInput,
    PretrainingManifest,
    PretrainingRun,
    PrunedWords,
    Shard,
    SplitCounts,
    ValidationWords,
    VocabularyConfig,
    VocabularyCounts,
    VocabularyIdentity,
    VocabularyManifest,
    VocabularyRun,
    WordsConfig,
    WordsManifest,
    WordsRun,
    WordTotals,
    parse_manifest,
    read_manifest,
    write_manifest,
)
from bioshards.corpus.output.output_layout import FORMAT
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.commands import FORMAT as VOCABULARY_FORMAT
from tests.support.corpus.manifest_reference import make_schema
from tests.support.outputs import sign

FILES = LocalStorage()
EMPTY_SPLIT = SplitCounts(
    lost_tokens={},
    documents=0,
    rows=0,
    tokens=0,
    special_tokens=0,
    other_document_tokens=0,
    input_tokens=0,
    unknown_tokens=0,
    unlabelled_rows=0,
)


def of_documents(
    outputs: Iterable[Shard],
    pipeline: str = "pubmed_to_shards",
    overlap: Iterable[OverlapFile] = (),
    funnel: Mapping[str, int] | None = None,
) -> DocumentsManifest:
    """Make the manifest of a directory of document shards."""
    name: Literal["pubmed_to_shards", "pmc_to_shards"] = (
        "pmc_to_shards" if pipeline == "pmc_to_shards" else "pubmed_to_shards"
    )
    assert name == pipeline
    shards = tuple(outputs)
    rows = sum(shard.rows for shard in shards)
    return DocumentsManifest(
        pipeline=name,
        notice="",
        config=DocumentsConfig(
            pipeline=name,
            format=FORMAT,
            preset=None,
            document_config={},
            library_versions={},
            dedup="none",
            include_ids=None,
            keep_dropped=False,
            max_shard_mb=256,
        ),
        newest_file=None,
        inputs=(),
        bad_files=(),
        outputs=shards,
        dropped=(),
        duplicates=(),
        overlap=tuple(overlap),
        exclusion_list=None,
        inclusion_list=None,
        funnel=funnel or {"records": rows, "kept": rows},
        counts=DocumentCounts(
            documents=rows, sentences=0, words=0, characters=0, records=rows, rejected=0, deletions=0
        ),
        cleaning={},
        dropped_parts={},
        years={},
        languages={},
        licences={},
        article_types={},
        warnings=(),
        run=DocumentsRun(command=("test",)),
    )


def put_documents(folder: Path | str, outputs: Iterable[Shard], *others: Any, **more: Any) -> None:
    """Write the manifest of a directory of document shards."""
    write_manifest(FILES, f"{folder}/manifest.json", of_documents(outputs, *others, **more))


def of_pretraining(
    outputs: Iterable[Shard],
    objective: Any = "electra",
    length: int = 16,
    vocabulary: VocabularyIdentity | None = None,
    inputs: Sequence[PretrainingInput] = (),
    counts: PretrainingCounts | None = None,
) -> PretrainingManifest:
    """Make the manifest of a pretraining set."""
    return PretrainingManifest(
        config=PretrainingConfig(
            pipeline="shards_to_pretraining",
            format=FORMAT,
            objective=objective,
            max_seq_length=length,
            short_seq_prob=0.0,
            single_segment_prob=0.0,
            dupe_factor=1,
            keep_overflow=False,
            as_published=False,
            seed=0,
            validation_fraction=0.01,
            max_shard_mb=128,
            vocabulary=vocabulary or VocabularyIdentity("5" * 64, 100),
            library_versions={},
        ),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        counts=counts
        or PretrainingCounts(
            documents=0, dropped={}, rejected={}, train=EMPTY_SPLIT, validation=EMPTY_SPLIT, years={}
        ),
        run=PretrainingRun(command=("test",), inputs=(), vocabulary="nowhere"),
    )


def of_words(outputs: Iterable[Shard], inputs: Iterable[Any] = (), **more: Any) -> WordsManifest:
    """Make the manifest of a directory of counted words."""
    counts = WordTotals(
        documents=600,
        tokens=70_000,
        distinct_words=5_000,
        pruned=PrunedWords(0, 0),
        validation=ValidationWords(634, 9_000, 800),
    )
    return WordsManifest(
        config=WordsConfig(
            pipeline="shards_to_words",
            format=FORMAT,
            pretokenizer="bert",
            validation_fraction=0.5,
            seed=0,
            min_count=1,
            library_versions={},
        ),
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        counts=more.get("counts", counts),
        run=WordsRun(command=("test",), inputs=()),
    )


def of_vocabulary(
    outputs: Iterable[OutputFile], recipe: Mapping[str, Any], inputs: Iterable[Any]
) -> VocabularyManifest:
    """Make the manifest of a vocabulary."""
    return VocabularyManifest(
        config=VocabularyConfig(
            pipeline="vocab",
            format=VOCABULARY_FORMAT,
            recipe=recipe,
            counting=None,
            min_count=None,
            inputs=tuple(inputs),
            library_versions={"tokenizers": "1"},
        ),
        outputs=tuple(outputs),
        counts=VocabularyCounts(
            pieces=30_522,
            words=9,
            distinct_words=9,
            min_count=1,
            validation_words=0,
            trained_words=9,
            distinct_trained_words=9,
            alphabet=None,
            alphabet_rarest=None,
            alphabet_coverage=None,
        ),
        run=VocabularyRun(command=("test",), inputs=()),
    )


def of_mirror() -> MirrorManifest:
    """Make the manifest of an empty mirror."""
    return MirrorManifest(
        notice="",
        config=MirrorConfig(
            inputs=(),
            servers={},
            licences=(),
            sets=(),
            drop_retracted=False,
            versions="newest",
            inventory=None,
        ),
        files=(),
        newest_file=None,
        not_fetched=(),
        articles=None,
        run=MirrorRun(command=("test",), listed_at="then", notices=()),
    )


@functools.cache
def validator() -> Draft202012Validator:
    """Make the validator of manifests by the JSON Schema."""
    return Draft202012Validator(make_schema())


def problems(value: object) -> list[str]:
    """Return the errors of a manifest by the JSON Schema."""
    return [f"{error.json_path}: {error.message}" for error in validator().iter_errors(value)]


def is_read(value: object) -> bool:
    """Return True if bioshards reads this manifest."""
    try:
        parse_manifest(sign(value) if isinstance(value, dict) else value, "folder/manifest.json")
    except ManifestError:
        return False
    return True


def written(folder: Path) -> Iterator[Path]:
    """Yield the directories at any depth that have a manifest which bioshards reads."""
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        if "manifest.json" in names:
            try:
                read_manifest(FILES, root)
            except ManifestError:  # damaged by a test, or another program's
                continue
            yield Path(root)
