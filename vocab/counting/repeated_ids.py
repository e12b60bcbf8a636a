"""Documents that two inputs have by the same id, although the inputs were made from different files."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from bioshards.corpus.manifest import DOCUMENT_PIPELINES, Shard
from bioshards.corpus.shards import document_shards
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage


def describe_repeated_ids(storage: Storage, inputs: Sequence[DocumentsInput]) -> list[str]:
    """Return a notice on each two inputs that have documents of the same ids.

    Only inputs of the same pipeline may have. Memory holds 8 bytes a document of these. Their shards are not
    compared with their manifests: the run that has read them did that.
    """
    notices = []
    for pipeline in DOCUMENT_PIPELINES:
        same = [documents for documents in inputs if documents.pipeline == pipeline]
        keyed = [(documents.folder, _read_id_keys(storage, documents)) for documents in same if len(same) > 1]
        for (folder, keys), (other_folder, other_keys) in itertools.combinations(keyed, 2):
            if count := len(np.intersect1d(keys, other_keys, assume_unique=True)):
                documents = "1 document" if count == 1 else f"{count:,} documents"
                notices.append(
                    f"{folder} and {other_folder} both have {documents} of the same ids, which were read "
                    "twice. Give one of them only, or make one anew without them (--exclude-ids)"
                )
    return notices


def _read_id_keys(storage: Storage, documents: DocumentsInput) -> NDArray[np.int64]:
    """Return hashes of the ids, each once; the versions of an article are one document."""

    def read_shard(shard: Shard) -> NDArray[np.int64]:
        keys = [np.zeros(0, np.int64)]
        for batch in document_shards.read_checked_file(storage, f"{documents.folder}/{shard.file}", ["id"]):
            ids = pc.replace_substring_regex(batch["id"], r"^(pmc:PMC[0-9]+)\.[0-9]+$", r"\1").to_pylist()
            keys.append(np.fromiter(map(hash, ids), np.int64, len(ids)))
        return np.concatenate(keys)

    parts = prefetch_map(storage, read_shard, documents.shards)
    return np.unique(np.concatenate([np.zeros(0, np.int64), *parts]))
