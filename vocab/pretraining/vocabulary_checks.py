"""Load the vocabulary, and check it against a sample of each input: [UNK] fraction and casing.

A vocabulary of other text or another language yields many [UNK].  A cased one has thousands of pieces that
lower-cased documents never use.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.manifest import ManifestError, VocabularyManifest, read_manifest
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.input_dirs import DocumentsInput, InputError
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.encode import Encoder

_SAMPLE_DOCUMENTS: Final = 500
"""Number of documents sampled from each directory."""
MAX_UNKNOWN_SHARE: Final = 0.05
"""Highest fraction of [UNK]; the papers' vocabularies yield 0.0001 to 0.007 on biomedical text."""
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"


class Vocabulary(NamedTuple):
    """A vocabulary: its encoder, the bytes of its tokenizer.json and their SHA-256."""

    encoder: Encoder
    tokenizer_json: bytes
    sha256: str


def load_vocabulary(storage: Storage, folder: str) -> Vocabulary:
    """Load the vocabulary of a folder.

    Raises:
        InputError: there is none, or it is not as its manifest lists it.
    """
    try:
        encoder = Encoder(folder, special_as_text=True, storage=storage)
    except TransientStorageError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"--vocab: {error}".rstrip(".")) from error
    with storage.open(f"{folder}/tokenizer.json") as file:
        tokenizer_json = file.read()
    digest = hashlib.sha256(tokenizer_json).hexdigest()
    if storage.exists(f"{folder}/manifest.json"):
        try:
            manifest = read_manifest(storage, folder)
        except ManifestError as error:
            raise InputError(f"--vocab: {str(error).rstrip('.')}. Build the vocabulary again") from error
        if not isinstance(manifest, VocabularyManifest):
            raise InputError(
                f"--vocab {folder}: it is no vocabulary, it was made by {manifest.pipeline}. Give the "
                "--output of a python -m bioshards.vocab build"
            )
        listed_digests = {output.file: output.sha256 for output in manifest.outputs}
        if listed_digests.get("tokenizer.json", digest) != digest:
            raise InputError(
                f"--vocab {folder}: tokenizer.json is not the one that its manifest.json lists; one of "
                "the two has been changed. Build the vocabulary again"
            )
    return Vocabulary(encoder, tokenizer_json, digest)


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
                "the --output of a python -m bioshards.vocab build"
            )
    for documents in inputs:
        sentences = _sample_sentences(storage, documents)
        if sentences is None:
            raise InputError(
                f"{documents.folder} has no documents. The funnel in its manifest.json has the drop reasons"
            )
        _check_sample(sentences, encoder, vocabulary_folder, documents.folder)


def _sample_sentences(storage: Storage, documents: DocumentsInput) -> pa.Array | None:
    """Return the sentences of the first documents; None if there are no documents."""
    shard_entries = [shard for shard in documents.shards if shard.rows]
    try:
        batches = arrow_io.read_shards(storage, documents.folder, shard_entries, ["sentences"])
        samples = [batch["sentences"].slice(0, _SAMPLE_DOCUMENTS) for batch in itertools.islice(batches, 1)]
        for sentences in samples:
            sentences.validate(full=True)  # a damaged file may have lists that point anywhere
    except TransientStorageError:
        raise
    except (OSError, pa.ArrowException):
        return pa.array([], pa.string())  # the run reports damaged shards
    return samples[0].flatten() if samples else None


def _check_sample(sentences: pa.Array, encoder: Encoder, vocabulary_folder: str, folder: str) -> None:
    ids = encoder.encode_all(sentences).ids
    num_unknown = int((ids == encoder.unknown_id).sum())
    if num_unknown > MAX_UNKNOWN_SHARE * len(ids):
        raise InputError(
            f"--vocab {vocabulary_folder} does not fit {folder}: {num_unknown / len(ids):.0%} of the tokens "
            "of its first documents are [UNK]. Build a vocabulary of these documents: python -m "
            "bioshards.vocab build"
        )
    keeps_case = encoder.encode(_ALPHABET) != encoder.encode(_ALPHABET.upper())
    if keeps_case and len(ids) and not any(text != text.lower() for text in sentences.to_pylist()):
        raise InputError(
            f"--vocab {vocabulary_folder} does not fit {folder}: it is cased, and the documents are in lower "
            "case, so that thousands of its pieces would never be used. Give a lower-case vocabulary, or "
            "documents as written (without --preset electramed or --lower-case)"
        )
