"""Do a vocabulary and documents fit each other?  Asked before a run, for a look at a few documents tells.

A vocabulary of other text, or of another language, makes [UNK] of what it does not know; one that keeps
capitals has thousands of pieces that documents in lower case never use.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.input_dirs import DocumentsInput, InputError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.encode import Encoder

_SAMPLE_DOCUMENTS: Final = 500
"""Documents of each directory that are looked at."""
MAX_UNKNOWN_SHARE: Final = 0.05
"""The highest share of [UNK].  Of biomedical text the papers' vocabularies leave 0.01 to 0.7 % of words."""
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"


def check_vocabulary(
    storage: LocalStorage, inputs: Sequence[DocumentsInput], encoder: Encoder, vocabulary_folder: str
) -> None:
    """See that the vocabulary of this folder can be used for these documents.

    Raises:
        InputError: it cannot, or an input has no documents at all.
    """
    for name in ("[CLS]", "[SEP]", "[MASK]"):
        if name not in encoder.special_ids:
            raise InputError(
                f"--vocab {vocabulary_folder} has no special token {name}, which every objective needs. Give "
                "the --output of a python -m bioshards.vocab build"
            )
    for documents in inputs:
        sentences = _sample_sentences(storage, documents)
        if sentences is None:
            raise InputError(
                f"{documents.folder} has no documents, so there is nothing to make examples of. Its "
                "manifest.json says why (funnel)"
            )
        _check_sample(sentences, encoder, vocabulary_folder, documents.folder)


def _sample_sentences(storage: LocalStorage, documents: DocumentsInput) -> pa.Array | None:
    """Those of the first documents; None where there are none."""
    shard_entries = [shard for shard in documents.shards if shard.rows]
    try:
        batches = arrow_io.read_shards(storage, documents.folder, shard_entries, ["sentences"])
        samples = [batch["sentences"].slice(0, _SAMPLE_DOCUMENTS) for batch in itertools.islice(batches, 1)]
        for sentences in samples:
            sentences.validate(full=True)  # a damaged file may have lists that point anywhere
    except TransientStorageError:
        raise
    except (OSError, pa.ArrowException):
        return pa.array([], pa.string())  # the run looks at each shard, and says what is wrong with it
    return samples[0].flatten() if samples else None


def _check_sample(sentences: pa.Array, encoder: Encoder, vocabulary_folder: str, folder: str) -> None:
    ids = encoder.encode_all(sentences).ids
    num_unknown = int((ids == encoder.unknown_id).sum())
    if num_unknown > MAX_UNKNOWN_SHARE * len(ids):
        raise InputError(
            f"--vocab {vocabulary_folder} does not fit {folder}: {num_unknown / len(ids):.0%} of the tokens "
            "of its "
            "first documents are [UNK]. Build one of these documents: python -m bioshards.vocab build"
        )
    keeps_case = encoder.encode(_ALPHABET) != encoder.encode(_ALPHABET.upper())
    if keeps_case and len(ids) and not any(text != text.lower() for text in sentences.to_pylist()):
        raise InputError(
            f"--vocab {vocabulary_folder} does not fit {folder}: it keeps capitals, and the documents are in "
            "lower case, so that thousands of its pieces would never be used. Give a vocabulary in lower "
            "case, or documents as they were written (without --preset electramed or --lower-case)"
        )
