"""MeSH: publication types, and NLM's tree of descriptors for the filters ``--mesh`` and ``--drop-mesh``.

A line of the tree's file is ``name;tree number`` (``mtrees2026.bin``, :data:`DOWNLOAD_PAGE`).
A descriptor stands at one place of the tree or at several, and its branch is what is below any of them, as
in PubMed's search ("explode").
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from typing import BinaryIO, Final

from bioshards.corpus.errors import UserError, suggest_nearest

DOWNLOAD_PAGE: Final = "https://www.nlm.nih.gov/databases/download/mesh.html"

BRANCH_PREFIX: Final = "branch:"
"""Prefix of a name or tree number that stands for its branch."""

MAX_TREE_BYTES: Final = 16 << 20
"""Largest file of a tree. That of 2026 has 2.6 MB."""
_TREE_NUMBER: Final = re.compile(r"[A-Z](?:\d\d(?:\.\d{3})*)?")


class MeshTreeError(UserError):
    """The file is no tree of MeSH, or has no such branch."""


@dataclass(frozen=True, slots=True)
class MeshTree:
    """The tree of a file.

    Attributes:
        name_by_number: name of the descriptor at each tree number.
        sha256: SHA-256 of the file.
    """

    name_by_number: Mapping[str, str]
    sha256: str

    def list_branches(self, names: Iterable[str]) -> frozenset[str]:
        """Return the descriptors, in lower case, of those names that begin with :data:`BRANCH_PREFIX`.

        Raises:
            MeshTreeError: the tree has no such branch; the message names the nearest.
        """
        branches = [name.removeprefix(BRANCH_PREFIX).strip() for name in names if is_branch(name)]
        return frozenset().union(*map(self._list_branch, branches))

    def _list_branch(self, branch: str) -> frozenset[str]:
        if _TREE_NUMBER.fullmatch(branch.upper()):
            roots = {branch.upper()}
        else:
            roots = {number for number, name in self.name_by_number.items() if name.casefold() == branch}
        # The first letter, a category, has no line of its own and no dot behind it.
        prefixes = tuple(root if len(root) == 1 else f"{root}." for root in roots)
        descriptors = frozenset(
            name.casefold()
            for number, name in self.name_by_number.items()
            if number in roots or number.startswith(prefixes)
        )
        if not descriptors:
            known = [*self.name_by_number, *self.name_by_number.values()]
            raise MeshTreeError(
                f"{branch} is neither a descriptor nor a number of the tree of MeSH"
                f"{suggest_nearest(branch, known)}; give {BRANCH_PREFIX}Neoplasms or {BRANCH_PREFIX}C04"
            )
        return descriptors


def is_branch(name: str) -> bool:
    """Return True if a name of ``--mesh`` stands for a branch."""
    return name.startswith(BRANCH_PREFIX)


def parse_tree(file: BinaryIO, path: str) -> MeshTree:
    """Parse a file of NLM's.

    Args:
        file: the file.
        path: its path, for messages.

    Raises:
        MeshTreeError: a line is not ``name;tree number``, there is none, or too much.
    """
    data = file.read(MAX_TREE_BYTES + 1)
    if len(data) > MAX_TREE_BYTES:
        raise MeshTreeError(
            f"{path} has more than {MAX_TREE_BYTES >> 20} MiB, and so is no tree of MeSH; give NLM's file "
            f"mtrees2026.bin ({DOWNLOAD_PAGE})"
        )
    name_by_number: dict[str, str] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        try:
            name, _, tree_number = line.decode().lstrip("\ufeff").strip().rpartition(";")
        except UnicodeDecodeError:
            name = tree_number = ""
        if not name or not _TREE_NUMBER.fullmatch(tree_number):
            raise MeshTreeError(
                f"{path}, line {number} is no line of a MeSH tree, as Neoplasms;C04; give NLM's file "
                f"mtrees2026.bin ({DOWNLOAD_PAGE})"
            )
        name_by_number[tree_number] = name
    if not name_by_number:
        raise MeshTreeError(f"{path} is empty; give NLM's file mtrees2026.bin ({DOWNLOAD_PAGE})")
    return MeshTree(name_by_number, hashlib.sha256(data).hexdigest())


# Publication types

PUBLICATION_TYPES: Final = tuple(
    (resources.files(__package__) / "publication_types.txt").read_text(encoding="utf-8").splitlines()
)
"""Types of MeSH (https://www.nlm.nih.gov/mesh/pubtypes.html), with older names that records still have.

They check and complete what a person writes. The vocabulary is open: NLM adds and renames types every year,
and records of publishers have others.
"""
_NAME_BY_FOLDED: Final = {name.casefold(): name for name in PUBLICATION_TYPES}
_MAX_COMMAS: Final = max(name.count(",") for name in PUBLICATION_TYPES)


def parse_publication_types(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list; known types may contain commas, and are spelled in any case."""
    parts = [part.strip() for part in text.split(",")]
    names: set[str] = set()
    while parts:
        for length in range(min(len(parts), _MAX_COMMAS + 1), 0, -1):
            name = ", ".join(parts[:length])
            if length == 1 or name.casefold() in _NAME_BY_FOLDED:
                break
        names.add(_NAME_BY_FOLDED.get(name.casefold(), name))
        del parts[:length]
    return tuple(sorted(names - {""}))
