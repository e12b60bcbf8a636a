"""The job of a run that writes document shards, which each of its steps gets whole, and the results of steps.

The job is pickled into every step of the graph, so that nothing that grows with the input is in it: sources
are elements of the graph, and lists of ids and of files are in the work folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import msgspec

from bioshards.corpus.manifest import (
    DocumentsManifest,
    PretrainingManifest,
    WordsManifest,
    find_manifest,
    is_complete,
    utc_now,
)
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.checksums import sha256_of_json
from bioshards.corpus.storage.source_file import replace_folder
from bioshards.corpus.storage.storage_protocol import Storage

if TYPE_CHECKING:
    from bioshards.corpus.lifecycle.id_lists import IdList
    from bioshards.corpus.manifest import DocumentsConfig, DocumentsRun
    from bioshards.corpus.storage.source_file import SourceFile
    from bioshards.corpus.text_config import TextConfig

RunManifest: TypeAlias = DocumentsManifest | PretrainingManifest | WordsManifest
"""The manifest of an output of ``beam run``, mirrors apart."""
ManifestT = TypeVar("ManifestT", DocumentsManifest, PretrainingManifest, WordsManifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardsJob:
    """A run that writes document shards.

    Attributes:
        config: the options that fix the bytes of the output, as the manifest has them.
        documents: filters and text processing; ``config.document_config`` are its fields.
        included: digest of the ids of documents to keep; the ids are in the work folder.
        excluded: digest of the ids of documents to drop; the ids are in the work folder.
        overlap_with: directory of abstracts to look for in the articles.
        abstracts_digest: digest of these abstracts (full_text_overlap.py).
        max_rejected: accepted fraction of rejected records.
        max_bad_files: accepted fraction of bad files.
        run: facts about this run; the last step completes them.
        typed_folders: folders of relative paths as they were typed, by their absolute paths: workers may have
            another working directory, and a manifest names no folder of this machine that nobody typed.
    """

    storage: Storage
    output: OutputDir
    config: DocumentsConfig
    documents: TextConfig
    run: DocumentsRun
    included: IdList | None = None
    excluded: IdList | None = None
    overlap_with: str | None = None
    abstracts_digest: str | None = None
    max_rejected: float = 0.001
    max_bad_files: float = 0.001
    typed_folders: Mapping[str, str] = field(default_factory=dict)

    def as_typed(self, path: str) -> str:
        """Return a path as the person typed it, for what is published (source_file.py)."""
        return replace_folder(path, self.typed_folders)

    def as_absolute(self, path: str) -> str:
        """Return the absolute path of one as it was typed."""
        return replace_folder(path, {typed: folder for folder, typed in self.typed_folders.items()})

    def make_inputs_key(self, sources: Iterable[SourceFile]) -> str:
        """Return the key of the inputs: of the sources and of the lists that are no part of ``config``."""
        excluded = self.excluded.sha256 if self.excluded else None
        identities = sorted({(source.path, source.stamp) for source in sources})
        return make_key([identities, self.abstracts_digest, excluded])


@dataclass(frozen=True, slots=True)
class StageResult:
    """Result of staging a source; depends on its bytes and the configuration only.

    Attributes:
        source: the source.
        output_name: stem of its files in the output and the work folder; None for a bad file.
        md5: MD5 of its content; None for a bad file.
        records: number of records, with rejected ones, without deletions.
        deletions: number of PMIDs in its DeleteCitation.
        num_keys: number of rows of its keys.
        rejected: number of rejected records by reason.
        rejection: (reason, detail) of a bad file.
        not_fetched: number of its articles that could not be fetched.
        fetch_errors: why the first few of them could not.
        misdeclared_files: number of its files in UTF-8 that declare another encoding.
        skipped_entries: number of entries of an archive that are no articles, by kind; no records.
        partial_lists: names of its files that are a page of a longer list of a server.
        unmatched: names of filters that none of its records has, with the nearest that one has.
        sha256s: SHA-256 of its work files, by extension.
        damaged: paths of work files of an earlier run that were damaged.
        is_cached: True if it was staged by an earlier run.
    """

    source: SourceFile
    output_name: str | None
    md5: str | None
    records: int = 0
    deletions: int = 0
    num_keys: int = 0
    rejected: dict[str, int] = field(default_factory=dict)
    rejection: tuple[str, str] | None = None
    not_fetched: int = 0
    fetch_errors: tuple[str, ...] = ()
    misdeclared_files: int = 0
    skipped_entries: dict[str, int] = field(default_factory=dict)
    partial_lists: Sequence[str] = ()
    unmatched: dict[str, str] = field(default_factory=dict)
    sha256s: dict[str, str] = field(default_factory=dict, compare=False)
    damaged: tuple[str, ...] = field(default=(), compare=False)
    is_cached: bool = field(default=False, compare=False)

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        return {
            "skipped": int(self.is_cached),
            "failed": int(self.rejection is not None),
            "records": self.records,
            "deletions": self.deletions,
            **{f"rejected_{reason}": count for reason, count in self.rejected.items()},
        }


def order_stage_results(
    stage_results: Sequence[StageResult],
) -> tuple[list[StageResult], list[tuple[str, str]]]:
    """Sort results in the order of application and remove copies, files of the same name and content.

    Returns:
        The results, and (path, path of the kept copy) of the removed copies.
    """
    unique: dict[str, StageResult] = {}
    copies = []
    for stage_result in sorted(stage_results, key=lambda item: item.source):
        kept = unique.setdefault(stage_result.output_name or stage_result.source.path, stage_result)
        if kept is not stage_result:
            copies.append((stage_result.source.path, kept.source.path))
    return list(unique.values()), copies


@dataclass(frozen=True, slots=True)
class PublishResult:
    """Result of the last step, for the process that started the run.

    Attributes:
        problem: None if the manifest was written, else the reason.
        bad_files: path of every bad file, and why it is one.
        notices: what else to tell of this run, each on a line.
    """

    problem: str | None
    bad_files: tuple[tuple[str, ...], ...] = ()
    notices: tuple[str, ...] = ()

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        return {"failed": int(self.problem is not None)}


def make_key(content: object) -> str:
    """Return a digest of JSON values."""
    return sha256_of_json(content)[:32]


def finish_manifest(manifest: ManifestT, inputs_key: str) -> ManifestT:
    """Return a manifest with the time and the key by which :func:`is_up_to_date` knows it.

    Args:
        manifest: the manifest, complete but for these.
        inputs_key: key of the inputs; '' if a rerun may mend one of them.
    """
    key = _make_manifest_key(manifest, inputs_key) if inputs_key else ""
    finished_at = manifest.run.finished_at or utc_now()  # that of a page that is written before the manifest
    run = msgspec.structs.replace(manifest.run, finished_at=finished_at, inputs_key=key)
    return msgspec.structs.replace(manifest, run=run)


def _make_manifest_key(manifest: RunManifest, inputs_key: str) -> str:
    """Return a key of the inputs and of what a manifest says of the output: it changes if that is edited."""
    content = msgspec.to_builtins(manifest)
    del content["run"]
    return make_key([inputs_key, content])


def is_up_to_date(storage: Storage, output: OutputDir, kind: type[RunManifest], inputs_key: str) -> bool:
    """Return True if an output is complete and was made from the inputs with this key."""
    manifest = find_manifest(storage, output.path, kind)
    if manifest is None or manifest.run.inputs_key != _make_manifest_key(manifest, inputs_key):
        return False
    index_files: set[str] = set()
    if isinstance(manifest, PretrainingManifest):
        splits = {entry.file.partition("/")[0] for entry in manifest.outputs}
        index_files = {"dataset_dict.json", *(f"{split}/state.json" for split in splits)}
    return is_complete(storage, output.path, manifest, present=index_files)
