"""Do a vocabulary and documents fit each other?  Asked before a run, for a look at a few documents tells.

A vocabulary of other text, or of another language, makes [UNK] of what it does not know; one that keeps
capitals has thousands of pieces that documents in lower case never use.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from bioshards.corpus import shards
from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.files import LocalFiles
from bioshards.vocab.encode import Encoder
from bioshards.vocab.inputs import Documents, InputError

_LOOKED_AT: Final = 500
"""Documents of each directory that are looked at."""
MOST_UNKNOWN: Final = 0.05
"""The highest share of [UNK].  Of biomedical text the papers' vocabularies leave 0.01 to 0.7 % of words."""
_ALPHABET: Final = "abcdefghijklmnopqrstuvwxyz"


def check(files: LocalFiles, inputs: Sequence[Documents], encoder: Encoder, vocabulary: str) -> None:
    """See that the vocabulary of this folder can be used for these documents.

    Raises:
        InputError: it cannot, or an input has no documents at all.
    """
    for name in ("[CLS]", "[SEP]", "[MASK]"):
        if name not in encoder.special:
            raise InputError(
                f"--vocab {vocabulary} has no special token {name}, which every objective needs. Give "
                "the --out of a python -m bioshards.vocab build"
            )
    for documents in inputs:
        sentences = _sentences(files, documents)
        if sentences is None:
            raise InputError(
                f"{documents.folder} has no documents, so there is nothing to make examples of. Its "
                "manifest.json says why (funnel)"
            )
        _check(sentences, encoder, vocabulary, documents.folder)


def _sentences(files: LocalFiles, documents: Documents) -> pa.Array | None:
    """Those of the first documents; None where there are none."""
    listed = [shard for shard in documents.shards if shard.rows]
    try:
        batches = shards.read_some(files, documents.folder, listed, ["sentences"])
        found = [batch["sentences"].slice(0, _LOOKED_AT) for batch in itertools.islice(batches, 1)]
        for sentences in found:
            sentences.validate(full=True)  # a damaged file may have lists that point anywhere
    except TransientStorageError:
        raise
    except (OSError, pa.ArrowException):
        return pa.array([], pa.string())  # the run looks at each shard, and says what is wrong with it
    return found[0].flatten() if found else None


def _check(sentences: pa.Array, encoder: Encoder, vocabulary: str, folder: str) -> None:
    ids = encoder.encode_all(sentences).ids
    unknown = int((ids == encoder.unknown).sum())
    if unknown > MOST_UNKNOWN * len(ids):
        raise InputError(
            f"--vocab {vocabulary} does not fit {folder}: {unknown / len(ids):.0%} of the tokens of its "
            "first documents are [UNK]. Build one of these documents: python -m bioshards.vocab build"
        )
    keeps_case = encoder.encode(_ALPHABET) != encoder.encode(_ALPHABET.upper())
    if keeps_case and len(ids) and not any(text != text.lower() for text in sentences.to_pylist()):
        raise InputError(
            f"--vocab {vocabulary} does not fit {folder}: it keeps capitals, and the documents are in "
            "lower case, so that thousands of its pieces would never be used. Give a vocabulary in lower "
            "case, or documents as they were written (without --preset electramed or --lower-case)"
        )
