"""File lists of multi-file sources, stored in the work folder.

A folder of single articles is a few hundred sources of up to 10,000 files each.  Their names take hundreds of
megabytes, so they stay out of the Beam graph and of the elements between steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, replace

from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.corpus.storage.source_file import SourceFile, SourcePart
from bioshards.corpus.storage.storage_protocol import Storage


def without_parts(sources: Iterable[SourceFile]) -> list[SourceFile]:
    """Return the sources without their file lists."""
    return [replace(source, parts=()) for source in sources]


def save_part_lists(storage: Storage, output_dir: OutputDir, sources: Iterable[SourceFile]) -> None:
    """Write the file lists of multi-file sources, for :func:`load_parts`."""

    def save_part_list(source: SourceFile) -> None:
        storage.write_json(output_dir.part_list_path(source.stamp), [astuple(part) for part in source.parts])

    existing = set(storage.list_names(f"{output_dir.work_folder}/part_lists"))
    multi_file_sources = [source for source in sources if source.parts]
    parallel_for_each(
        storage,
        save_part_list,
        [source for source in multi_file_sources if f"{source.stamp}.json" not in existing],
    )


def load_parts(storage: Storage, output_dir: OutputDir, source: SourceFile) -> SourceFile:
    """Return the source with its file list."""
    if not source.num_files or source.parts:
        return source
    return replace(
        source,
        parts=tuple(SourcePart(*part) for part in storage.read_json(output_dir.part_list_path(source.stamp))),
    )
