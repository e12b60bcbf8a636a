"""Ids of abstracts whose full text is among the inputs, to leave the abstracts out.

``pmc_to_shards --find-overlap-with ABSTRACTS`` lists them (corpus/lifecycle/full_text_overlap.py).  The list
applies if both directories are inputs.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.lifecycle import full_text_overlap
from bioshards.corpus.manifest import Shard
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.input_dirs import DocumentsInput, InputError, find_damage
from bioshards.corpus.storage.storage_protocol import Storage

OverlapLists = dict[str, dict[str, str]]
"""By directory of abstracts: the directories of full text that list some of them, and the lists' SHA-256."""


def load_overlap_lists(storage: Storage, inputs: Sequence[DocumentsInput]) -> OverlapLists:
    """Return the overlap lists that apply to these inputs.

    Raises:
        InputError: a list is of abstracts that are not, or no longer, among the inputs, or is damaged.
    """
    folder_by_identity = {
        full_text_overlap.digest_abstracts(storage, documents.folder): documents.folder
        for documents in inputs
        if documents.pipeline == "pubmed_to_shards"
    }
    overlap_lists: OverlapLists = {folder: {} for folder in folder_by_identity.values()}
    for documents in inputs:
        entries = (
            arrow_io.read_documents_manifest(storage, documents.folder).overlap if folder_by_identity else ()
        )
        for entry in entries:
            if entry.abstracts_sha256 not in folder_by_identity:
                raise InputError(
                    f"{documents.folder}/{full_text_overlap.FILE_NAME} lists abstracts of other shards "
                    f"than {' and '.join(overlap_lists)} has. If they were updated since, rerun "
                    "pmc_to_shards with the same --find-overlap-with"
                )
            path = f"{documents.folder}/{entry.file}"
            if problem := find_damage(storage, path, entry):
                raise InputError(
                    f"{path}: {problem}. Delete it and rerun pmc_to_shards with the same --find-overlap-with"
                )
            overlap_lists[folder_by_identity[entry.abstracts_sha256]][documents.folder] = entry.sha256
    return overlap_lists


def read_overlap_ids(
    storage: Storage,
    folder: str,
    overlap_lists: Sequence[tuple[str, str]],
    shard_entries: Sequence[Shard],
) -> pa.Array:
    """Return the listed ids of abstracts in some shards of a directory.

    Local lists are mapped and scanned, so that only the ids of these shards are in memory.  A list on an
    object store is read once per process, and its ids are cached.

    Args:
        overlap_lists: directories of full text, with the SHA-256 of their lists.
        shard_entries: manifest entries of the shards.
    """
    if not overlap_lists:
        return pa.array([], pa.string())
    id_batches = [batch["id"] for batch in arrow_io.read_shards(storage, folder, shard_entries, ["id"])]
    shard_ids = pa.chunked_array(id_batches, pa.string()).combine_chunks()
    listed_ids = [_read_list_ids(storage, *overlap_list, folder) for overlap_list in overlap_lists]
    return pa.concat_arrays(
        [list_ids.filter(pc.is_in(list_ids, value_set=shard_ids)).combine_chunks() for list_ids in listed_ids]
    )


_cached_ids: dict[tuple[str, str], pa.ChunkedArray] = {}
"""Ids of lists on object stores, by directory and SHA-256: every group of a process needs the same ones."""


def _read_list_ids(storage: Storage, full_text_folder: str, sha256: str, folder: str) -> pa.ChunkedArray:
    """Return the ids of the list with this SHA-256 in a directory of full text."""
    if "://" not in full_text_folder:
        return full_text_overlap.read(storage, full_text_folder, folder)["id"]
    if (full_text_folder, sha256) not in _cached_ids:
        list_ids = full_text_overlap.read(storage, full_text_folder, folder)["id"]
        _cached_ids[full_text_folder, sha256] = pa.chunked_array(
            [list_ids.combine_chunks()]
        )  # a copy, without the other columns
    return _cached_ids[full_text_folder, sha256]
