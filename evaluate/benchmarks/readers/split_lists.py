"""Who is in which part, where a set's authors do not say: BLURB's lists, or without them a split of our own.

BLURB's lists of files and ids are in its archive data_generation.tar.gz, folder ``indexing``: a name a line
(DDI) or all names on one, separated by commas (HoC, BioASQ).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError, Split
from bioshards.evaluate.benchmarks.formats.text_files import read_text


def assign_splits(
    names: Collection[str], split_sizes: Mapping[Split, int], list_paths: Sequence[str]
) -> dict[str, Split]:
    """The part that each name is in.

    Args:
        names: of files without folder and ending, or ids.
        split_sizes: how many are in each part but ``train``, which has the others, where there are no lists.
             Those whose names' SHA-256 come first are taken: that is the same wherever and whenever it is
             done.
        lists: paths of ``train_*``, ``dev_*`` and, where sizes have it, ``test_*``.

    Raises:
        BenchmarkFileError: a name in a list is not there, is in two lists, or one that is there is in none.
    """
    if not list_paths:
        names_by_hash = iter(sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest()))
        drawn_splits = {
            name: split for split, size in split_sizes.items() for name in islice(names_by_hash, size)
        }
        return {name: drawn_splits.get(name, "train") for name in names}
    split_by_name: dict[str, Split] = {}
    for split in ("train", *split_sizes):
        for path in list_paths:
            if os.path.basename(path).startswith(f"{split}_"):
                for line, name in _read_names(path):
                    if name not in names or name in split_by_name:
                        reason = "in another list, too" if name in split_by_name else "not in the set's files"
                        raise BenchmarkFileError(path, line, f"{name!r} is {reason}")
                    split_by_name[name] = split
    if missing := [name for name in names if name not in split_by_name]:
        raise BenchmarkFileError(
            list_paths[0], None, f"neither it nor the lists beside it have {missing[0]!r}"
        )
    return split_by_name


def _read_names(path: str) -> list[tuple[int, str]]:
    return [
        (line_number, os.path.basename(name.strip()).removesuffix(".xml").removesuffix(".txt"))
        for line_number, line in enumerate(read_text(path).split("\n"), 1)
        for name in line.split(",")
        if name.strip()
    ]
