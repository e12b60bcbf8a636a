"""Encode text into token ids, several times faster per core than the tokenizers library, with the same ids.

Most chunks of a text (the parts between two blanks, U+0020) have occurred before.  The accepted tokenizers
(encoder/compatibility.py) never look across a blank, so the ids of a text are those of its chunks in order,
and the ids of each chunk are cached (``BoundedCache``).  Arrow splits the sentences in batches and
finds the distinct chunks, so that Python handles one chunk in ten.  encoder/chunk_encoders.py encodes the
chunks that are not in the cache.
"""

from __future__ import annotations

import functools
import hashlib
import json
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from bioshards.corpus.errors import InputNotFoundError, InvalidValueError
from bioshards.corpus.manifest import (
    ForeignManifestError,
    Manifest,
    ManifestError,
    ManifestNotFoundError,
    VocabularyManifest,
    read_manifest,
)
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.encoder.chunk_encoders import BoundedCache, join_chunk_ids, make_chunk_encoder
from bioshards.vocab.encoder.compatibility import TokenizerJson, find_incompatibilities
from bioshards.vocab.tokenizer import hugging_face
from bioshards.vocab.tokenizer.wordpiece import SENTENCEPIECE_SPACE

CACHE_BYTES: Final = 160_000_000
"""Size limit of the caches of chunks and words, a fifth of it for words; a full cache is cleared.

On articles, a process takes less memory than one that uses the library alone.  With ever new words of nine
letters it grows by 230 MB, one batch included.
"""
_BATCH_SENTENCES: Final = 1 << 13
"""Sentences that Arrow splits at once, about 1.5 MB of text."""
_PAD_TOKENS: Final = ("[PAD]", "<pad>")
"""Padding token of BERT's vocabularies and of ALBERT's."""
_SURROGATE_MESSAGE: Final = "a text to encode has a lone surrogate, which UTF-8 cannot write"


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """Token ids of sentences in the layout of Arrow lists; ``pa.array`` wraps both arrays without a copy.

    Attributes:
        ids: ids of all sentences in order, shape (tokens,), read-only, in the machine's byte order.  uint16
            if every id of the vocabulary is below 65,536, else uint32.
        offsets: int64, shape (sentences + 1,): sentence i is ``ids[offsets[i] : offsets[i + 1]]``.
    """

    ids: np.ndarray[Any, np.dtype[Any]]
    offsets: np.ndarray[Any, np.dtype[np.int64]]


class Encoder:
    """Encoder of the tokenizer in a folder.

    A pickled encoder holds the tokenizer without the caches.  A process that unpickles it several times, as
    Beam's workers do, gets one shared encoder with one cache.

    Attributes:
        tokenizer_json, sha256: content of the file, and its SHA-256.
        size: highest id plus one.
        special_ids: id of each special token by its text: ``special_ids["[CLS]"]``.
        unknown_id: id of the unknown token; -1 if there is none.
        pad_id: id of the padding token; -1 if there is none.
        is_sentencepiece: True if pieces are SentencePiece's, which include the blank before a word.
    """

    def __init__(self, folder: str, special_as_text: bool = False, storage: Storage | None = None) -> None:
        """Read ``folder/tokenizer.json``; no other file is needed.

        Args:
            special_as_text: encode special tokens within a text, such as ``[SEP]``, as ordinary characters
                (the library's ``encode_special_tokens``; as SentencePiece does, ``<pad>``, too).
            storage: the local one by default.

        Raises:
            FileNotFoundError: the folder or its tokenizer.json is missing.
            ValueError: the file is not a tokenizer, or not the one of the manifest, or the tokenizer cannot
                be applied chunk by chunk.
        """
        folder, storage = folder.rstrip("/"), storage or LocalStorage()
        path = f"{folder}/tokenizer.json"
        data = _read_tokenizer_file(storage, folder, path)
        manifest: Manifest | None = None
        try:
            manifest = read_manifest(storage, folder)
        except (ManifestNotFoundError, ForeignManifestError):  # a vocabulary of another tool
            pass
        except ManifestError as error:
            raise InvalidValueError(f"{str(error).rstrip('.')}. Build the vocabulary again") from error
        outputs = manifest.outputs if isinstance(manifest, VocabularyManifest) else ()
        listed = {output.file: output.sha256 for output in outputs}
        digest = hashlib.sha256(data).hexdigest()
        if listed.get("tokenizer.json", digest) != digest:
            raise InvalidValueError(
                f"{folder}: tokenizer.json is not the one that its manifest.json lists; one of the two has "
                "been changed. Build the vocabulary again"
            )
        self._initialize(path, data, special_as_text)

    def _initialize(self, path: str, data: bytes, special_as_text: bool) -> None:
        self._pickle_args = path, data, special_as_text
        self.tokenizer_json, self.sha256 = data, hashlib.sha256(data).hexdigest()
        try:
            self._hf_tokenizer = hugging_face.parse_tokenizer(data.decode("utf-8-sig"))
        except ValueError as error:
            raise InvalidValueError(
                f"{path} cannot be read by the tokenizers library: {error}. Give the --output of a finished "
                "`bioshards vocab build`, or build it again."
            ) from None
        self._hf_tokenizer.encode_special_tokens = special_as_text
        tokenizer_json = json.loads(self._hf_tokenizer.to_str())
        for reason in find_incompatibilities(tokenizer_json, self._hf_tokenizer):
            raise InvalidValueError(
                f"{path} has {reason}: text cannot be encoded chunk by chunk. Encode with the tokenizers "
                "library, or build a vocabulary with `bioshards vocab build`."
            )
        ids = self._hf_tokenizer.get_vocab()
        self.size = 1 + max(ids.values(), default=0)
        self.special_ids = {
            token["content"]: token["id"] for token in tokenizer_json["added_tokens"] if token["special"]
        }
        model = tokenizer_json["model"]
        unknown_id = ids[model["unk_token"]] if model["type"] == "WordPiece" else model["unk_id"]
        self.unknown_id: int = -1 if unknown_id is None else unknown_id
        self.pad_id = next((self.special_ids[name] for name in _PAD_TOKENS if name in self.special_ids), -1)
        self.is_sentencepiece: bool = model["type"] == "Unigram"
        self._typecode = "H" if self.size <= 1 << 16 else "I"
        text_json, text_tokenizer = tokenizer_json, self._hf_tokenizer
        if special_as_text and self.is_sentencepiece:
            text_json = _hide_special_pieces(tokenizer_json)
            text_tokenizer = Tokenizer.from_str(json.dumps(text_json))
        encode_chunks = make_chunk_encoder(text_json, text_tokenizer, self._typecode, CACHE_BYTES // 5)
        self._chunk_cache = BoundedCache(encode_chunks, CACHE_BYTES * 4 // 5)

    def __reduce__(self) -> tuple[Callable[..., Encoder], tuple[str, bytes, bool]]:
        return _get_process_encoder, self._pickle_args

    def get_vocab(self) -> dict[str, int]:
        """Return the ids of all pieces and added tokens by their text."""
        vocab: dict[str, int] = self._hf_tokenizer.get_vocab()
        return vocab

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, equal to the library's ``encode(text, add_special_tokens=False).ids``.

        Raises:
            TypeError: the text is not a string, or has a lone surrogate; the library raises it, too.
        """
        if not isinstance(text, str):
            raise TypeError(f"a text to encode must be a str, this is a {type(text).__name__}")
        try:
            ids = b"".join(self._chunk_cache.get_many(text.split(" ")))
        except UnicodeEncodeError as error:
            raise TypeError(f"{_SURROGATE_MESSAGE}: {error}") from None
        return array(self._typecode, ids).tolist()

    def encode_all(self, sentences: Sequence[str] | pa.Array) -> EncodedBatch:
        """Return the ids of all sentences, equal to those of :meth:`encode`, in half the time or less.

        Args:
            sentences: strings, or an Arrow array of strings.

        Raises:
            TypeError: a sentence is not a string, or has a lone surrogate.
        """
        data: list[memoryview | bytes] = []
        ends, written = [np.zeros(1, np.int64)], 0
        for start in range(0, len(sentences), _BATCH_SENTENCES):
            encoded = join_chunk_ids(
                _arrow_from_strings(sentences[start : start + _BATCH_SENTENCES]), self._chunk_cache.get_many
            )
            _, offsets_buffer, ids = encoded.buffers()
            end_offsets = np.frombuffer(offsets_buffer, np.int64)
            data.append(memoryview(ids)[: end_offsets[-1]] if ids else b"")
            ends.append(end_offsets[1:] + written)
            written += int(end_offsets[-1])
        width = array(self._typecode).itemsize
        return EncodedBatch(np.frombuffer(b"".join(data), f"u{width}"), np.concatenate(ends) // width)


@functools.lru_cache(maxsize=2)
def _get_process_encoder(path: str, data: bytes, special_as_text: bool) -> Encoder:
    """Return this process's encoder of a tokenizer.json."""
    encoder = Encoder.__new__(Encoder)
    encoder._initialize(path, data, special_as_text)
    return encoder


def _read_tokenizer_file(storage: Storage, folder: str, path: str) -> bytes:
    try:
        with storage.open(path) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        problem = "has no tokenizer.json" if storage.is_folder(folder) else "is not a directory"
        raise InputNotFoundError(
            f"{folder} {problem}: it is not a vocabulary. Give the --output of a finished "
            "`bioshards vocab build`."
        ) from None


def _hide_special_pieces(tokenizer_json: TokenizerJson) -> dict[str, Any]:
    """Return a unigram tokenizer whose special tokens no text yields.

    The library finds the characters of ``<pad>`` in its pieces even if special tokens are text.  A piece with
    the sign for a blank at its end is never found, because words are split before that sign.
    """
    special_tokens = {token["content"] for token in tokenizer_json["added_tokens"] if token["special"]}
    model = tokenizer_json["model"]
    pieces = [
        [piece + SENTENCEPIECE_SPACE if piece in special_tokens else piece, score]
        for piece, score in model["vocab"]
    ]
    return {
        **tokenizer_json,
        "added_tokens": [token for token in tokenizer_json["added_tokens"] if not token["special"]],
        "post_processor": None,
        "model": {**model, "vocab": pieces},
    }


def _arrow_from_strings(sentences: Sequence[str] | pa.Array) -> pa.Array:
    try:
        strings = sentences if isinstance(sentences, pa.Array) else pa.array(sentences, pa.large_string())
    except UnicodeEncodeError as error:
        raise TypeError(f"{_SURROGATE_MESSAGE}: {error}") from None
    if strings.null_count:
        raise TypeError("a sentence to encode must be a str, one is None")
    return strings
