"""Encoders of chunks that are not in the cache, which use as little of the library as gives the same ids.

The library's model finds the pieces of a word in one or two microseconds.  Its normaliser, pre-tokenizer and
search for added tokens cost several times as much.  For the common tokenizers these steps are done here; all
other cases go through the library.  ``tokenizer_json`` is the parsed ``tokenizer.json``.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from typing import Final

import pyarrow as pa
from tokenizers import Tokenizer

from bioshards.vocab.encoder.arrow_chunks import join_chunk_ids
from bioshards.vocab.encoder.bounded_cache import BoundedCache
from bioshards.vocab.encoder.compatibility import TokenizerJson, is_albert_pretokenizer, is_bert_pretokenizer
from bioshards.vocab.tokenizer.wordpiece import SENTENCEPIECE_SPACE

_CONTEXT_FREE: Final = re.compile("[\0-\u02ff\u0370-\u0482\u1e00-\u20cf\u2100-\u2bff]")
"""Characters of blocks without combining marks, so that each is normalised on its own: Latin, Greek,
Cyrillic, punctuation, symbols.  English articles have few others.
"""
_SMALL_BATCH: Final = 200
"""Maximum chunks for which a Python loop is faster than Arrow."""


class LibraryChunkEncoder:
    """Encoder that passes every text to the library; returns bytes of an array of ``typecode``."""

    def __init__(self, hf_tokenizer: Tokenizer, typecode: str) -> None:
        self._hf_tokenizer, self._typecode = hf_tokenizer, typecode

    def __call__(self, chunks: list[str]) -> list[bytes]:
        return list(map(self._encode_with_library, chunks))

    def _encode_with_library(self, text: str) -> bytes:
        return array(self._typecode, self._hf_tokenizer.encode(text, add_special_tokens=False).ids).tobytes()


class ModelChunkEncoder(LibraryChunkEncoder):
    """Base of encoders that pass the words of simple chunks straight to the library's model."""

    def __init__(self, tokenizer_json: TokenizerJson, hf_tokenizer: Tokenizer, typecode: str) -> None:
        super().__init__(hf_tokenizer, typecode)
        added_tokens = "|".join(re.escape(token["content"]) for token in tokenizer_json["added_tokens"])
        self._added_tokens = re.compile(added_tokens or "(?!)")  # which is nowhere
        self._tokenize = hf_tokenizer.model.tokenize

    def _encode_word(self, word: str) -> bytes:
        return array(self._typecode, [piece.id for piece in self._tokenize(word)]).tobytes()


class WordPieceChunkEncoder(ModelChunkEncoder):
    """Encoder for BERT's tokenizer, with a cache of words: a chunk may have several."""

    def __init__(
        self, tokenizer_json: TokenizerJson, hf_tokenizer: Tokenizer, typecode: str, max_cache_bytes: int
    ) -> None:
        super().__init__(tokenizer_json, hf_tokenizer, typecode)
        self._character_map = _CharacterMap(hf_tokenizer)
        self._word_cache = BoundedCache(lambda words: list(map(self._encode_word, words)), max_cache_bytes)

    def __call__(self, chunks: list[str]) -> list[bytes]:
        words_of_chunks = list(map(self._split_words, chunks))
        if len(chunks) < _SMALL_BATCH:
            encoded = [
                b"".join(self._word_cache.get_many((words or "").split())) for words in words_of_chunks
            ]
        else:
            encoded = join_chunk_ids(
                pa.array(words_of_chunks, pa.large_string()), self._word_cache.get_many
            ).to_pylist()
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


class UnigramChunkEncoder(ModelChunkEncoder):
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
        tokenizer_json: parsed ``tokenizer.json``.
        typecode: type of the ids, as of ``array.array``.
        max_cache_bytes: size limit of a cache of words.
    """
    if not any(
        token["normalized"] for token in tokenizer_json["added_tokens"]
    ):  # found in normalised text only
        match tokenizer_json["model"]["type"], tokenizer_json["normalizer"]:
            case "WordPiece", {"type": "BertNormalizer", "clean_text": True} if is_bert_pretokenizer(
                tokenizer_json
            ):
                return WordPieceChunkEncoder(tokenizer_json, hf_tokenizer, typecode, max_cache_bytes)
            case "Unigram", _ if is_albert_pretokenizer(tokenizer_json):
                return UnigramChunkEncoder(tokenizer_json, hf_tokenizer, typecode)
    return LibraryChunkEncoder(hf_tokenizer, typecode)
