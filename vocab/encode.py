"""Text to token ids, as the tokenizers library does it, several times faster on one core.

Most chunks of a text (what stands between two blanks, U+0020) have been there before.  In the tokenizers
that are read here nothing looks across a blank (compatibility.py), so a text's ids are those of its chunks
in a row, and each chunk's are remembered (bounded_cache.py).  Arrow splits sentences, many at a time, and
finds their distinct chunks, so that Python sees one chunk in ten.  How new ones are encoded is in
chunk_encoders.py.
"""

from __future__ import annotations

import functools
import json
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from bioshards.corpus.errors import InputNotFoundError, InvalidValueError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.encoder.arrow_chunks import join_chunk_ids
from bioshards.vocab.encoder.bounded_cache import BoundedCache
from bioshards.vocab.encoder.chunk_encoders import make_chunk_encoder
from bioshards.vocab.encoder.compatibility import find_incompatibilities
from bioshards.vocab.tokenizer.wordpiece import SENTENCEPIECE_SPACE

CACHE_BYTES: Final = 160_000_000
"""Bytes that remembered chunks and words may take, a fifth of it the words; whichever part is full is
forgotten and begins anew.  Measured: on articles a process takes less than one that encodes with the library
alone; with nothing but ever new words of nine letters it grows by 230 MB, a batch in hand."""
_BATCH_SENTENCES: Final = 1 << 13
"""Sentences that Arrow splits at a time: some 1.5 MB of text."""
_PAD_TOKENS: Final = ("[PAD]", "<pad>")
"""What BERT's vocabularies call it, and what ALBERT's do."""
_SURROGATE_MESSAGE: Final = "a text to encode has a lone surrogate, which UTF-8 cannot write"


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """The token ids of sentences, laid out as Arrow lays out lists; ``pa.array`` takes both without a copy.

    Attributes:
        ids: of all sentences in a row: uint16 where no id of the vocabulary is above 65,535, else uint32, in
            the machine's byte order; read-only.
        offsets: int64, one more than there are sentences: sentence i is ``ids[offsets[i] : offsets[i + 1]]``.
    """

    ids: np.ndarray[Any, np.dtype[Any]]
    offsets: np.ndarray[Any, np.dtype[np.int64]]


class Encoder:
    """What encodes with the tokenizer of a folder.

    Pickled, it is that tokenizer without what is remembered; a process that unpickles it several times, as
    Beam's workers do, has one of it, with one memory.

    Attributes:
        size: the highest id and one.
        special: the ids of the special tokens by their text: ``special["[CLS]"]``.
        unknown: the id of what no piece stands for; -1 where there is none.
        pad: the id of what rows are padded with; -1 where there is none.
        sentencepiece: are its pieces SentencePiece's, which have the blank before a word in them?
        continues: for each id 1 where its piece continues a word, 0 where it begins one or is an added token.
    """

    def __init__(
        self, folder: str, special_as_text: bool = False, storage: LocalStorage | None = None
    ) -> None:
        """Read ``folder/tokenizer.json``, and no other file.

        Args:
            special_as_text: is a text that says ``[SEP]`` to have the ids of ``[``, ``sep`` and ``]``, as
                BERT's own tokenizer has it, and not the special token's?  The library's
                ``encode_special_tokens``, which is off in it too.
            files: the storage that the folder is on, if not this machine's.

        Raises:
            FileNotFoundError: there is no such folder, or no such file in it.
            ValueError: the file is no tokenizer, or one with which a text is not the sum of its chunks.
        """
        path = f"{folder.rstrip('/')}/tokenizer.json"
        self._initialize(path, _read_tokenizer_file(storage or LocalStorage(), folder, path), special_as_text)

    def _initialize(self, path: str, data: bytes, special_as_text: bool) -> None:
        self._pickle_args = path, data, special_as_text
        try:
            self._hf_tokenizer: Tokenizer = Tokenizer.from_buffer(data)
        except Exception as error:  # the library raises nothing more special
            raise InvalidValueError(
                f"{path} is no tokenizer that the tokenizers library can read: {error}. "
                "Give the --output of a `python -m bioshards.vocab build` that has ended, or build it again."
            ) from None
        self._hf_tokenizer.encode_special_tokens = special_as_text
        tokenizer_json = json.loads(self._hf_tokenizer.to_str())
        for reason in find_incompatibilities(tokenizer_json, self._hf_tokenizer):
            raise InvalidValueError(
                f"{path} has {reason}: what stands between two blanks cannot be encoded alone. Encode with "
                "the tokenizers library, or build a vocabulary with `python -m bioshards.vocab build`."
            )
        ids = self._hf_tokenizer.get_vocab()
        self.size = 1 + max(ids.values(), default=0)
        self.special_ids = {
            token["content"]: token["id"] for token in tokenizer_json["added_tokens"] if token["special"]
        }
        self.unknown_id = _find_unknown_id(tokenizer_json["model"], ids)
        self.pad_id = next((self.special_ids[name] for name in _PAD_TOKENS if name in self.special_ids), -1)
        self.is_sentencepiece: bool = tokenizer_json["model"]["type"] == "Unigram"
        self.is_continuation = _continuation_flags(tokenizer_json, ids, self.size)
        self._typecode = "H" if self.size <= 1 << 16 else "I"
        encode_chunks = make_chunk_encoder(
            tokenizer_json, self._hf_tokenizer, self._typecode, CACHE_BYTES // 5
        )
        self._chunk_cache = BoundedCache(encode_chunks, CACHE_BYTES * 4 // 5)

    def __reduce__(self) -> tuple[Callable[..., Encoder], tuple[str, bytes, bool]]:
        return _get_process_encoder, self._pickle_args

    def get_vocab(self) -> dict[str, int]:
        """The ids of all pieces and added tokens."""
        vocab: dict[str, int] = self._hf_tokenizer.get_vocab()
        return vocab

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without special tokens around it: the library's ``encode(...).ids`` exactly.

        Raises:
            TypeError: as the library does: it is no string, or has a lone surrogate.
        """
        if not isinstance(text, str):
            raise TypeError(f"a text to encode must be a str, this is a {type(text).__name__}")
        try:
            ids = b"".join(self._chunk_cache.get_many(text.split(" ")))
        except UnicodeEncodeError as error:
            raise TypeError(f"{_SURROGATE_MESSAGE}: {error}") from None
        return array(self._typecode, ids).tolist()

    def encode_all(self, sentences: Sequence[str] | pa.Array) -> EncodedBatch:
        """The ids of all sentences, of each those that :meth:`encode` gives, in half the time or less.

        Args:
            sentences: strings, or an Arrow array of them, which need not be made strings first.

        Raises:
            TypeError: one is no string, or has a lone surrogate.
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
    """This process' encoder of a tokenizer.json."""
    encoder = Encoder.__new__(Encoder)
    encoder._initialize(path, data, special_as_text)
    return encoder


def _read_tokenizer_file(storage: LocalStorage, folder: str, path: str) -> bytes:
    try:
        with storage.open(path) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        problem = "has no tokenizer.json" if storage.is_folder(folder) else "is no folder"
        raise InputNotFoundError(
            f"{folder} {problem}, so it is no vocabulary. Give the --output of a `python -m bioshards.vocab "
            "build` "
            "that has ended."
        ) from None


def _find_unknown_id(model: Any, ids: dict[str, int]) -> int:
    token_id: int | None = ids[model["unk_token"]] if model["type"] == "WordPiece" else model["unk_id"]
    return -1 if token_id is None else token_id


def _continuation_flags(tokenizer_json: Any, ids: dict[str, int], size: int) -> bytes:
    added = {token["content"] for token in tokenizer_json["added_tokens"]}
    prefix = tokenizer_json["model"].get("continuing_subword_prefix")
    flags = bytearray(size)
    for piece, token_id in ids.items():
        is_continuation = (
            piece.startswith(prefix) if prefix is not None else not piece.startswith(SENTENCEPIECE_SPACE)
        )
        flags[token_id] = is_continuation and piece not in added
    return bytes(flags)


def _arrow_from_strings(sentences: Any) -> pa.Array:
    try:
        strings = sentences if isinstance(sentences, pa.Array) else pa.array(sentences, pa.large_string())
    except UnicodeEncodeError as error:
        raise TypeError(f"{_SURROGATE_MESSAGE}: {error}") from None
    if strings.null_count:
        raise TypeError("a sentence to encode must be a str, one is None")
    return strings
