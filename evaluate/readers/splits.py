"""Who is in which part, where a set's authors do not say: BLURB's lists, or without them a split of our own.

BLURB's lists of files and ids are in its archive data_generation.tar.gz, folder ``indexing``: a name a line
(DDI) or all names on one, separated by commas (HoC, BioASQ).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from bioshards.evaluate.datasets import BenchmarkFileError, Part

from .lines import contents


def deal(names: Collection[str], sizes: Mapping[Part, int], lists: Sequence[str]) -> dict[str, Part]:
    """The part that each name is in.

    Args:
        names: of files without folder and ending, or ids.
        sizes: how many are in each part but ``train``, which has the others, where there are no lists.  Those
            whose names' SHA-256 come first are taken: that is the same wherever and whenever it is done.
        lists: paths of ``train_*``, ``dev_*`` and, where sizes have it, ``test_*``.

    Raises:
        BenchmarkFileError: a name in a list is not there, is in two lists, or one that is there is in none.
    """
    if not lists:
        shuffled = iter(sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest()))
        parts = {name: part for part, size in sizes.items() for name in islice(shuffled, size)}
        return {name: parts.get(name, "train") for name in names}
    found: dict[str, Part] = {}
    for part in ("train", *sizes):
        for path in lists:
            if os.path.basename(path).startswith(f"{part}_"):
                for line, name in _listed(path):
                    if name not in names or name in found:
                        why = "in another list, too" if name in found else "not in the set's files"
                        raise BenchmarkFileError(path, line, f"{name!r} is {why}")
                    found[name] = part
    if missing := [name for name in names if name not in found]:
        raise BenchmarkFileError(lists[0], None, f"neither it nor the lists beside it have {missing[0]!r}")
    return found


def _listed(path: str) -> list[tuple[int, str]]:
    return [
        (number, os.path.basename(name.strip()).removesuffix(".xml").removesuffix(".txt"))
        for number, line in enumerate(contents(path).split("\n"), 1)
        for name in line.split(",")
        if name.strip()
    ]
