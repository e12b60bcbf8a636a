"""Documents to leave out of a pretraining set: abstracts with full text among the inputs, near duplicates.

``pmc_to_shards --find-overlap-with ABSTRACTS`` lists abstracts with full text
(corpus/lifecycle/full_text_overlap.py).  The list applies if both directories are inputs.

Near duplicates are found among all inputs together: abstracts, articles, a user's own documents.  Each shard
is read once for the signatures of its documents, which are kept in the work folder and stay valid as long as
the shard and the overlap lists do.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.lifecycle import full_text_overlap, near_duplicates
from bioshards.corpus.lifecycle.decisions import digest_decisions
from bioshards.corpus.lifecycle.near_duplicates import SignatureSource, SignatureWriter
from bioshards.corpus.manifest import Shard
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.input_dirs import DocumentsInput, InputError, find_damage
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.pretraining.job import PretrainingJob
from bioshards.vocab.pretraining.shard_groups import GroupShard, ShardGroup

DUPLICATES_FILE: Final = "duplicates.tsv"
_COLUMNS: Final = ("id", "pmid", "pmcid", "year", "title", "sentences", "sections")
_PMC_NUMBER: Final = re.compile(r"PMC(\d+)")
_NO_NUMBER: Final = 1 << 62
"""Key of documents without a PMID and a PMCID: the lowest id is kept."""
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


@dataclass(frozen=True, slots=True)
class SignedShard:
    """A shard whose documents have signatures.

    Attributes:
        number: number of the shard over all groups, in order.
        shard: its manifest entry.
        signatures: their file; None if the shard is damaged, which building reports.
        is_cached: True if an earlier run wrote the file.
    """

    number: int
    shard: Shard
    signatures: str | None
    is_cached: bool = field(default=False, compare=False)

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        return {"skipped": int(self.is_cached)}


def sign_shard(job: PretrainingJob, group_shard: GroupShard) -> SignedShard:
    """Write the signatures of the documents of a shard of a group, unless the file exists.

    Documents that an overlap list leaves out are not compared.
    """
    storage, folder, shard = job.storage, group_shard.folder, group_shard.shard
    digests = sorted(digest for _, digest in group_shard.overlap_lists)
    name = hashlib.sha256(" ".join([shard.sha256, *digests]).encode()).hexdigest()
    path = job.output.work_path(f"signatures/{name}.arrow")
    if storage.exists(path):
        return SignedShard(group_shard.number, shard, path, is_cached=True)
    if find_damage(storage, f"{folder}/{shard.file}", shard):
        return SignedShard(group_shard.number, shard, None)
    overlap_ids = read_overlap_ids(storage, folder, group_shard.overlap_lists, [shard])
    position = 0
    with SignatureWriter(storage, path) as writer:
        for batch in arrow_io.read_shards(storage, folder, [shard], _COLUMNS):
            is_overlap = pc.is_in(batch["id"], value_set=overlap_ids).to_pylist()
            for document, is_left_out in zip(batch.to_pylist(), is_overlap, strict=True):
                if document["sections"] and not is_left_out:
                    abstract = document["sentences"][document["sections"][0]["first_sentence"] :]
                    pmc_number = _PMC_NUMBER.match(document["pmcid"] or "")
                    writer.add(
                        document["pmid"] or (int(pmc_number[1]) if pmc_number else _NO_NUMBER),
                        document["id"],
                        position,
                        document["year"],
                        document["title"],
                        abstract,
                    )
                position += 1
    return SignedShard(group_shard.number, shard, path)


def find_candidates(job: PretrainingJob, band: int, signed: Sequence[SignedShard]) -> str:
    """Write the pairs of documents of all inputs that agree in a band; return the path of the file."""
    num_documents = sum(signed_shard.shard.rows for signed_shard in signed)
    sources = list_sources(signed)
    return near_duplicates.write_candidates(job.storage, job.output, sources, band, num_documents)


def decide_near_duplicates(
    job: PretrainingJob, signed: Sequence[SignedShard], candidates: Sequence[str]
) -> str:
    """Write the decisions on near duplicates, a batch per shard in order; return the path."""
    return near_duplicates.write_decisions(job.storage, job.output, list_sources(signed), candidates)


def list_sources(signed_shards: Iterable[SignedShard]) -> list[SignatureSource]:
    """Return the signatures of all shards, in order."""
    return [
        SignatureSource(shard.signatures) for shard in sorted(signed_shards, key=lambda item: item.number)
    ]


def read_decisions(storage: Storage, path: str, group: ShardGroup) -> dict[str, pa.Table]:
    """Read the near duplicates in the shards of a group, by file; of those that have some."""
    with arrow_io.open_mapped(storage, path) as file, pa.ipc.open_file(file) as reader:
        batches = [reader.get_batch(group.first_shard + index) for index in range(len(group.shards))]
    return {
        shard.file: pa.Table.from_batches([batch])
        for shard, batch in zip(group.shards, batches, strict=True)
        if batch.num_rows
    }


def name_outputs(group: ShardGroup, decisions: Mapping[str, pa.Table]) -> str:
    """Return the stem of the names of a group's files: its name, or a hash of it and of what is left out."""
    if not decisions:
        return group.name
    digests = [f"{file} {digest_decisions(rows)}" for file, rows in sorted(decisions.items())]
    return hashlib.sha256("\n".join([group.name, *digests]).encode()).hexdigest()[:16]


def remove_documents(batches: Iterable[pa.RecordBatch], decisions: pa.Table) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a shard without the documents of these positions."""
    start = 0
    for batch in batches:
        positions = pa.array(range(start, start + batch.num_rows), pa.int32())
        start += batch.num_rows
        yield batch.filter(pc.invert(pc.is_in(positions, value_set=decisions["position"])))


def publish_duplicates(job: PretrainingJob, signed: Sequence[SignedShard], decisions_path: str) -> Shard:
    """Write the list of near duplicates, and remove the signatures of other shards."""
    sources = list_sources(signed)
    near_duplicates.sweep_signatures(job.storage, job.output, sources)
    path = f"{job.output.path}/{DUPLICATES_FILE}"
    return near_duplicates.write_duplicate_list(job.storage, path, sources, decisions_path)
