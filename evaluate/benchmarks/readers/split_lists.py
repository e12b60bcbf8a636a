"""Assign names to splits by published lists, or by a hash if the lists are missing.

BLURB's lists of files and ids are in data_generation.tar.gz, folder ``indexing``: one name a line (DDI), or
all on one line, separated by commas (HoC, BioASQ).
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
    """Return the split of each name.

    Args:
        names: file names without folder and suffix, or ids.
        split_sizes: number of names of each split but ``train`` if there are no lists. Names are drawn in the
            order of their SHA-256, so the split is reproducible.
        list_paths: paths of the lists ``train_*``, ``dev_*`` and, if ``split_sizes`` has it, ``test_*``.

    Raises:
        BenchmarkFileError: a listed name is unknown or listed twice, or a name is in no list.
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
