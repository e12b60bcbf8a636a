"""Ids of chunks: a bounded cache, and encoders of new chunks with as little of the library as possible.

The library's model finds the pieces of a word in one or two microseconds.  Its normaliser, pre-tokenizer and
search for added tokens cost several times as much.  For the common tokenizers these steps are done here; all
other cases go through the library.  ``tokenizer_json`` is the parsed ``tokenizer.json``.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tokenizers import Tokenizer

from bioshards.vocab.encoder.compatibility import TokenizerJson, is_albert_pretokenizer, is_bert_pretokenizer
from bioshards.vocab.tokenizer.wordpiece import SENTENCEPIECE_SPACE

_CONTEXT_FREE: Final = re.compile("[\0-\u02ff\u0370-\u0482\u1e00-\u20cf\u2100-\u2bff]")
"""Characters of blocks without combining marks, so that each is normalised on its own: Latin, Greek,
Cyrillic, punctuation, symbols.  English articles have few others.
"""
_SMALL_BATCH: Final = 200
"""Maximum chunks for which a Python loop is faster than Arrow."""
_MAX_ENTRY_SIZE: Final = 256
"""Maximum characters plus bytes of ids of an entry; longer chunks hardly ever recur."""
_SLOT_BYTES: Final = 64
"""Estimated bytes of a dictionary slot: 30 to 60 in CPython, more only while the dictionary grows."""


def join_chunk_ids(texts: pa.Array, encode_chunks: Callable[[list[str]], list[bytes]]) -> pa.Array:
    """Return the concatenated ids of the chunks of each text.

    Args:
        texts: array of strings; chunks are the parts between blanks, empty ones included.
        encode_chunks: called once with all distinct chunks.

    Returns:
        large_binary array of the same length; the value of a null text is empty.
    """
    chunks = pc.split_pattern(texts, " ")
    distinct = chunks.flatten().dictionary_encode()
    encoded = encode_chunks(distinct.dictionary.to_pylist())
    _, offsets_buffer, data = pa.array(encoded, pa.large_binary()).take(distinct.indices).buffers()
    text_offsets = np.frombuffer(offsets_buffer, np.int64)[chunks.offsets.to_numpy()]
    return pa.Array.from_buffers(pa.large_binary(), len(texts), [None, pa.py_buffer(text_offsets), data])


class BoundedCache(dict[str, bytes]):
    """Cache from text to ids as bytes.

    A full cache is cleared, not evicted: frequent chunks come back at once.
    """

    def __init__(self, compute: Callable[[list[str]], list[bytes]], max_bytes: int) -> None:
        self._compute = compute
        self._max_bytes = self._free_bytes = max_bytes

    def get_many(self, keys: list[str]) -> list[bytes]:
        """Return the ids of each key, computing all missing ones in one call."""
        cached = list(map(self.get, keys))
        missing_keys = [key for key, ids in zip(keys, cached, strict=True) if ids is None]
        if not missing_keys:
            return cached  # type: ignore[return-value]  # no None is in it
        computed = self._compute(missing_keys)
        self._store(missing_keys, computed)
        remaining = iter(computed)
        return [next(remaining) if ids is None else ids for ids in cached]

    def _store(self, keys: list[str], values: list[bytes]) -> None:
        pairs = zip(keys, values, strict=True)
        entries = {key: ids for key, ids in pairs if len(key) + len(ids) <= _MAX_ENTRY_SIZE}
        size = sum(map(sys.getsizeof, entries)) + sum(map(sys.getsizeof, entries.values()))
        size += _SLOT_BYTES * len(entries)
        if size > self._free_bytes:
            self.clear()
            self._free_bytes = self._max_bytes
        if size <= self._free_bytes:
            self._free_bytes -= size
            self.update(entries)


class ChunkEncoder:
    """Encoder that passes every chunk to the library; returns bytes of an array of ``typecode``.

    Subclasses pass the words of simple chunks straight to the library's model.
    """

    def __init__(self, tokenizer_json: TokenizerJson, hf_tokenizer: Tokenizer, typecode: str) -> None:
        self._hf_tokenizer, self._typecode = hf_tokenizer, typecode
        added_tokens = "|".join(re.escape(token["content"]) for token in tokenizer_json["added_tokens"])
        self._added_tokens = re.compile(added_tokens or "(?!)")  # which is nowhere
        self._tokenize = hf_tokenizer.model.tokenize

    def __call__(self, chunks: list[str]) -> list[bytes]:
        return list(map(self._encode_with_library, chunks))

    def _encode_with_library(self, text: str) -> bytes:
        return array(self._typecode, self._hf_tokenizer.encode(text, add_special_tokens=False).ids).tobytes()

    def _encode_word(self, word: str) -> bytes:
        return array(self._typecode, [piece.id for piece in self._tokenize(word)]).tobytes()


class WordPieceChunkEncoder(ChunkEncoder):
    """Encoder for BERT's tokenizer, with a cache of words: a chunk may have several."""

    def __init__(
        self, tokenizer_json: TokenizerJson, hf_tokenizer: Tokenizer, typecode: str, max_cache_bytes: int
    ) -> None:
        super().__init__(tokenizer_json, hf_tokenizer, typecode)
        self._character_map = _CharacterMap(hf_tokenizer)
        self._word_cache = BoundedCache(lambda words: list(map(self._encode_word, words)), max_cache_bytes)

    def __call__(self, chunks: list[str]) -> list[bytes]:
        words_of_chunks = list(map(self._split_words, chunks))
        encode_words = self._word_cache.get_many
        if len(chunks) < _SMALL_BATCH:
            encoded = [b"".join(encode_words((words or "").split())) for words in words_of_chunks]
        else:
            encoded = join_chunk_ids(pa.array(words_of_chunks, pa.large_string()), encode_words).to_pylist()
        return [
            self._encode_with_library(chunk) if words is None else ids
            for chunk, words, ids in zip(chunks, words_of_chunks, encoded, strict=True)
        ]

    def _split_words(self, chunk: str) -> str | None:
        """Return the words of a chunk joined by blanks, or None if the library must encode the chunk."""
        if self._added_tokens.search(chunk):
            return None
        try:
            return chunk.translate(self._character_map)
        except _UnknownCharacterError:
            return None


class UnigramChunkEncoder(ChunkEncoder):
    """Encoder for ALBERT's tokenizer: a chunk is one word, after SentencePiece's word-start sign."""

    def __init__(self, tokenizer_json: TokenizerJson, hf_tokenizer: Tokenizer, typecode: str) -> None:
        super().__init__(tokenizer_json, hf_tokenizer, typecode)
        self._normalize = hf_tokenizer.normalizer.normalize_str if hf_tokenizer.normalizer else str

    def __call__(self, chunks: list[str]) -> list[bytes]:
        return list(map(self._encode_chunk, chunks))

    def _encode_chunk(self, chunk: str) -> bytes:
        if not self._added_tokens.search(chunk):
            normalized = self._normalize(chunk)
            if normalized.split() == [normalized] and SENTENCEPIECE_SPACE not in normalized:
                return self._encode_word(SENTENCEPIECE_SPACE + normalized)
        return self._encode_with_library(chunk)


class _UnknownCharacterError(Exception):
    """A character depends on its neighbours, so that the map has no entry for it."""


class _CharacterMap(dict[int, str]):
    """Map for ``str.translate``: characters as BERT's normaliser leaves them, with blanks between words.

    Entries are computed by the library on first use, 5,000 of them at most (``_CONTEXT_FREE``).
    """

    def __init__(self, hf_tokenizer: Tokenizer) -> None:
        self._normalizer, self._pre_tokenizer = hf_tokenizer.normalizer, hf_tokenizer.pre_tokenizer

    def __missing__(self, code_point: int) -> str:
        if not _CONTEXT_FREE.match(chr(code_point)):
            raise _UnknownCharacterError
        normalized = self._normalizer.normalize_str(chr(code_point))
        self[code_point] = "".join(map(self._add_blanks, normalized))
        return self[code_point]

    def _add_blanks(self, character: str) -> str:
        words = [word for word, _ in self._pre_tokenizer.pre_tokenize_str("a" + character)]
        return character if words == ["a" + character] else " ".join(["", *words[1:], ""])


def make_chunk_encoder(
    tokenizer_json: TokenizerJson, hf_tokenizer: Tokenizer, typecode: str, max_cache_bytes: int
) -> Callable[[list[str]], list[bytes]]:
    """Return the fastest encoder that gives the library's ids.

    Args:
        max_cache_bytes: size limit of a cache of words.
    """
    added_tokens = tokenizer_json["added_tokens"]
    if not any(token["normalized"] for token in added_tokens):  # these are found in normalised text only
        match tokenizer_json["model"]["type"], tokenizer_json["normalizer"]:
            case "WordPiece", {"type": "BertNormalizer", "clean_text": True} if is_bert_pretokenizer(
                tokenizer_json
            ):
                return WordPieceChunkEncoder(tokenizer_json, hf_tokenizer, typecode, max_cache_bytes)
            case "Unigram", _ if is_albert_pretokenizer(tokenizer_json):
                return UnigramChunkEncoder(tokenizer_json, hf_tokenizer, typecode)
    return ChunkEncoder(tokenizer_json, hf_tokenizer, typecode)
