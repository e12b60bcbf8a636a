"""Abstracts that full text among the inputs holds too: they would be read twice, so they are left out.

``pmc_to_shards --drop-in ABSTRACTS`` lists them (corpus/overlap.py).  Where both directories are inputs, the
list is obeyed.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus import overlap, shards
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.shards import Shard
from bioshards.vocab.inputs import Documents, InputError, damage

Lists = dict[str, dict[str, str]]
"""For a folder of abstracts, the folders of full text that list some of them, and ``rows_sha256``."""


def lists(files: LocalFiles, inputs: Sequence[Documents]) -> Lists:
    """The lists that are to be obeyed among these inputs.

    Raises:
        InputError: a list is of abstracts that are not, or no longer, among the inputs, or is damaged.
    """
    abstracts = {
        overlap.identity(files, documents.folder): documents.folder
        for documents in inputs
        if documents.pipeline == "pubmed_to_shards"
    }
    found: Lists = {folder: {} for folder in abstracts.values()}
    for documents in inputs:
        listed = shards.documents_manifest(files, documents.folder).overlap if abstracts else ()
        for one in listed:
            if one.abstracts not in abstracts:
                raise InputError(
                    f"{documents.folder}/{overlap.FILE} lists abstracts of other shards "
                    f"than {' and '.join(found)} has. If that has been updated since, run pmc_to_shards "
                    "again with the same --drop-in"
                )
            path = f"{documents.folder}/{one.file}"
            if wrong := damage(files, path, one):
                raise InputError(
                    f"{path}: {wrong}. Delete it and run pmc_to_shards again with the same --drop-in, which "
                    "makes it anew"
                )
            found[abstracts[one.abstracts]][documents.folder] = one.rows_sha256
    return found


def ids(
    files: LocalFiles,
    folder: str,
    listed_by: Sequence[tuple[str, str]],
    listed: Sequence[Shard],
) -> pa.Array:
    """The ids of abstracts in some shards of a folder that are held in full.

    Only the ids of these shards are in memory where lists are on this machine, which are mapped and gone
    through; from an object store a process reads a list once, and keeps its ids.

    Args:
        listed_by: the folders of full text, with the SHA-256 of their lists.
        listed: the shards, as the folder's manifest lists them.
    """
    if not listed_by:
        return pa.array([], pa.string())
    of_shards = [batch["id"] for batch in shards.read_some(files, folder, listed, ["id"])]
    wanted = pa.chunked_array(of_shards, pa.string()).combine_chunks()
    found = [_of_list(files, *one, folder) for one in listed_by]
    return pa.concat_arrays([ids.filter(pc.is_in(ids, value_set=wanted)).combine_chunks() for ids in found])


_kept: dict[tuple[str, str], pa.ChunkedArray] = {}
"""The ids of the lists on object stores that this process has read: every portion asks for the same ones."""


def _of_list(files: LocalFiles, full: str, sha256: str, folder: str) -> pa.ChunkedArray:
    """The ids of the list, of this SHA-256, in a folder of full text."""
    if "://" not in full:
        return overlap.read(files, full, folder)["id"]
    if (full, sha256) not in _kept:
        ids = overlap.read(files, full, folder)["id"]
        _kept[full, sha256] = pa.chunked_array([ids.combine_chunks()])  # a copy, without the other columns
    return _kept[full, sha256]
