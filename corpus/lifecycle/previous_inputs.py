"""Find inputs of an earlier run into an output directory that are not among the inputs any more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from bioshards.corpus.errors import shorten_list
from bioshards.corpus.manifest import DocumentsManifest, find_manifest
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.source_file import SourceFile, SourcePart, stem_from_name
from bioshards.corpus.storage.storage_protocol import Storage

_ARTICLE_GROUP: Final = re.compile(r"PMC\d{4,}xxxx|articles-\d{3,}-of-\d{3,}")
"""Stem of a group of single articles (jats/inputs.py)."""


def describe_missing_inputs(
    storage: Storage, output_dir: OutputDir, sources: Sequence[SourceFile], other_names: Iterable[str]
) -> list[str]:
    """Return notices on the files and single articles that an earlier run has read and this one will not.

    Files are compared by their names without extensions, so that another folder of the same files is no
    change.  Single articles are known as long as the work folder exists.

    Args:
        sources: sources that are available, with their parts.
        other_names: names of the files that are to be fetched.
    """
    stems = {source.stem for source in sources} | {stem_from_name(name) for name in other_names}
    files = [
        stem
        for stem in _list_previous_stems(storage, output_dir)
        if stem not in stems and not _ARTICLE_GROUP.fullmatch(stem)
    ]
    names = {part.name for source in sources for part in source.parts}
    articles = [name for name in _list_replaced_parts(storage, output_dir, sources) if name not in names]
    return [
        _describe(kind, missing, output_dir)
        for kind, missing in (("file", files), ("article", articles))
        if missing
    ]


def _list_previous_stems(storage: Storage, output_dir: OutputDir) -> list[str]:
    """Return the stems of the sources in the manifest or, of a stopped run, of those that are staged."""
    manifest = find_manifest(storage, output_dir.path, DocumentsManifest)
    if manifest:
        return sorted({stem_from_name(item.file) for item in manifest.inputs})
    names = storage.list_names(output_dir.staged_folder)
    return sorted({match[1] for name in names if (match := re.fullmatch(r"(.+)-[0-9a-f]{8}\.json", name))})


def _list_replaced_parts(storage: Storage, output_dir: OutputDir, sources: Iterable[SourceFile]) -> list[str]:
    """Return the names of the articles in part lists that are not those of unchanged sources."""
    unchanged = {output_dir.part_list_path(source.stamp) for source in sources if source.parts}
    folder = f"{output_dir.work_folder}/part_lists"
    paths = [f"{folder}/{name}" for name in storage.list_names(folder) if name.endswith(".json")]
    replaced = [path for path in paths if path not in unchanged]
    part_lists = prefetch_map(storage, storage.read_json, replaced)
    return sorted({SourcePart(*part).name for parts in part_lists for part in parts})


def _describe(kind: str, names: list[str], output_dir: OutputDir) -> str:
    count = f"1 {kind}" if len(names) == 1 else f"{len(names):,} {kind}s"
    return (
        f"{count} that an earlier run into {output_dir.path} has read {'is' if len(names) == 1 else 'are'} "
        f"not among the inputs: {shorten_list(names)}. The result will be without "
        f"{'its' if len(names) == 1 else 'their'} documents, and with the versions that these replaced"
    )
