"""Inputs of a pretraining set: the vocabulary, and the abstracts to leave out for their full text.

The vocabulary is checked against a sample of each input.  One of other text or another language yields many
[UNK].  A cased one has thousands of pieces that lower-cased documents never use.

``pmc_to_shards --find-overlap-with ABSTRACTS`` lists abstracts with full text
(corpus/lifecycle/full_text_overlap.py).  The list applies if both directories are inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.lifecycle import full_text_overlap
from bioshards.corpus.manifest import (
    ManifestError,
    Shard,
    VocabularyManifest,
    find_damage,
    read_manifest,
)
from bioshards.corpus.shards import document_shards
from bioshards.corpus.shards.input_dirs import DocumentsInput, InputError
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.encode import Encoder

_SAMPLE_DOCUMENTS: Final = 500
"""Number of documents sampled from each directory."""
MAX_UNKNOWN_SHARE: Final = 0.05
"""Highest fraction of [UNK]; the papers' vocabularies yield 0.0001 to 0.007 on biomedical text."""
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"
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
    for documents in inputs if folder_by_identity else ():
        for entry in document_shards.read_documents_manifest(storage, documents.folder).overlap:
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
    storage: Storage, folder: str, overlap_lists: Sequence[tuple[str, str]], shards: Sequence[Shard]
) -> pa.Array:
    """Return the listed ids of abstracts in some shards of a directory.

    Local lists are mapped and scanned, so that only the ids of these shards are in memory.  A list on an
    object store is read once per process, and its ids are cached.

    Args:
        overlap_lists: directories of full text, with the SHA-256 of their lists.
    """
    if not overlap_lists:
        return pa.array([], pa.string())
    id_batches = [
        batch["id"]
        for shard in shards
        for batch in document_shards.read_checked_file(storage, f"{folder}/{shard.file}", ["id"])
    ]
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
        # a copy, without the other columns
        _cached_ids[full_text_folder, sha256] = pa.chunked_array([list_ids.combine_chunks()])
    return _cached_ids[full_text_folder, sha256]


def load_vocabulary(storage: Storage, folder: str) -> Encoder:
    """Return the encoder of the vocabulary in a folder.

    Raises:
        InputError: there is none, or it is not as its manifest lists it.
    """
    try:
        encoder = Encoder(folder, special_as_text=True, storage=storage)
    except TransientStorageError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"--vocab: {error}".rstrip(".")) from error
    if storage.exists(f"{folder}/manifest.json"):
        try:
            manifest = read_manifest(storage, folder)
        except ManifestError as error:
            raise InputError(f"--vocab: {str(error).rstrip('.')}. Build the vocabulary again") from error
        if not isinstance(manifest, VocabularyManifest):
            raise InputError(
                f"--vocab {folder}: it is no vocabulary, it was made by {manifest.pipeline}. Give the "
                "--output of a bioshards vocab build"
            )
    return encoder


def check_vocabulary(
    storage: Storage, inputs: Sequence[DocumentsInput], encoder: Encoder, vocabulary_folder: str
) -> None:
    """Check that a vocabulary suits the documents.

    Raises:
        InputError: it does not, or an input has no documents.
    """
    for name in ("[CLS]", "[SEP]", "[MASK]"):
        if name not in encoder.special_ids:
            raise InputError(
                f"--vocab {vocabulary_folder} has no special token {name}, which all objectives need. Give "
                "the --output of a bioshards vocab build"
            )
    keeps_case = encoder.encode(_ALPHABET) != encoder.encode(_ALPHABET.upper())
    for documents in inputs:
        sentences = _sample_sentences(storage, documents)
        if sentences is None:
            raise InputError(
                f"{documents.folder} has no documents. The funnel in its manifest.json has the drop reasons"
            )
        misfit = f"--vocab {vocabulary_folder} does not fit {documents.folder}: "
        ids = encoder.encode_all(sentences).ids
        num_unknown = int((ids == encoder.unknown_id).sum())
        if num_unknown > MAX_UNKNOWN_SHARE * len(ids):
            raise InputError(
                f"{misfit}{num_unknown / len(ids):.0%} of the tokens of its first documents are [UNK]. Build "
                "a vocabulary of these documents: bioshards vocab build"
            )
        if keeps_case and len(ids) and not any(text != text.lower() for text in sentences.to_pylist()):
            raise InputError(
                f"{misfit}it is cased, and the documents are in lower case, so that thousands of its pieces "
                "would never be used. Give a lower-case vocabulary, or documents as written (without "
                "--preset electramed or --lower-case)"
            )


def _sample_sentences(storage: Storage, documents: DocumentsInput) -> pa.Array | None:
    """Return the sentences of the first documents; None if there are no documents."""
    shards = [shard for shard in documents.shards if shard.rows]
    try:
        for batch in document_shards.read_shards(storage, documents.folder, shards, ["sentences"]):
            sentences = batch["sentences"].slice(0, _SAMPLE_DOCUMENTS)
            sentences.validate(full=True)  # a damaged file may have lists that point anywhere
            return sentences.flatten()
    except TransientStorageError:
        raise
    except (OSError, pa.ArrowException):
        return pa.array([], pa.string())  # the run reports damaged shards
    return None
