"""The files of sources that are made of many, laid aside where every worker can read them.

A folder of single articles is a few hundred sources of up to 10,000 files each, whose names are hundreds of
megabytes.  So they are no part of a job's graph, nor of what passes between its steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, replace

from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.corpus.storage.source_file import SourceFile, SourcePart
from bioshards.corpus.storage.storage_protocol import Storage


def without_parts(sources: Iterable[SourceFile]) -> list[SourceFile]:
    """The sources without their parts."""
    return [replace(source, parts=()) for source in sources]


def save_part_lists(storage: Storage, output_dir: OutputDir, sources: Iterable[SourceFile]) -> None:
    """Write the sources' parts to where :func:`take_up` finds them."""

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
    """The source with its parts."""
    if not source.num_files or source.parts:
        return source
    return replace(
        source,
        parts=tuple(SourcePart(*part) for part in storage.read_json(output_dir.part_list_path(source.stamp))),
    )
