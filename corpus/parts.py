"""The files of sources that are made of many, laid aside where every worker can read them.

A folder of single articles is a few hundred sources of up to 10,000 files each, whose names are hundreds of
megabytes.  So they are no part of a job's graph, nor of what passes between its steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, replace

from .ahead import for_each
from .files import LocalFiles
from .sources import Part, Source
from .workspace import Workspace


def left_out(sources: Iterable[Source]) -> list[Source]:
    """The sources without their parts."""
    return [replace(source, parts=()) for source in sources]


def lay_aside(files: LocalFiles, work: Workspace, sources: Iterable[Source]) -> None:
    """Write the sources' parts to where :func:`take_up` finds them."""

    def write(source: Source) -> None:
        files.write_json(work.parts(source.stamp), [astuple(part) for part in source.parts])

    there = set(files.names(f"{work.folder}/parts"))
    many = [source for source in sources if source.parts]
    for_each(files, write, [source for source in many if f"{source.stamp}.json" not in there])


def take_up(files: LocalFiles, work: Workspace, source: Source) -> Source:
    """The source with its parts."""
    if not source.files or source.parts:
        return source
    return replace(source, parts=tuple(Part(*part) for part in files.read_json(work.parts(source.stamp))))
