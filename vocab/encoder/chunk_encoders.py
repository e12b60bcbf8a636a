"""How the ids of a chunk are found that was not there before: by as little of the library as gives the same.

The library's model finds a word's pieces in a microsecond or two; normalising, splitting and looking for
added tokens cost it several times as much.  That is done here where it is simple; all else goes through the
library as it is.  A tokenizer is, beside the library's object, what ``tokenizer.json`` says of it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from tokenizers import Tokenizer

from bioshards.vocab.tokenizer.wordpiece import SENTENCEPIECE_SPACE

from .arrow_chunks import join_chunk_ids
from .bounded_cache import BoundedCache
from .compatibility import is_albert_pretokenizer, is_bert_pretokenizer

_CONTEXT_FREE: Final = re.compile("[\0-\u02ff\u0370-\u0482\u1e00-\u20cf\u2100-\u2bff]")
"""Characters of blocks that have no combining marks: what becomes of one depends on no neighbour.  Latin,
Greek, Cyrillic, punctuation, symbols: nearly all that English articles have."""
_SMALL_BATCH: Final = 200
"""Chunks that are done sooner one by one than by Arrow."""


class LibraryChunkEncoder:
    """Callable: the ids of texts, each by the library, as bytes of an array of ``type_``."""

    def __init__(self, hf_tokenizer: Tokenizer, typecode: str) -> None:
        self._hf_tokenizer, self._typecode = hf_tokenizer, typecode

    def __call__(self, chunks: list[str]) -> list[bytes]:
        return list(map(self._encode_with_library, chunks))

    def _encode_with_library(self, text: str) -> bytes:
        return array(self._typecode, self._hf_tokenizer.encode(text, add_special_tokens=False).ids).tobytes()


class ModelChunkEncoder(LibraryChunkEncoder):
    """Callable: the ids of chunks, by the library's model where a chunk's words are plain to see."""

    def __init__(self, tokenizer_json: Any, hf_tokenizer: Tokenizer, typecode: str) -> None:
        super().__init__(hf_tokenizer, typecode)
        added_tokens = "|".join(re.escape(token["content"]) for token in tokenizer_json["added_tokens"])
        self._added_tokens = re.compile(added_tokens or "(?!)")  # which is nowhere
        self._tokenize = hf_tokenizer.model.tokenize

    def _encode_word(self, word: str) -> bytes:
        return array(self._typecode, [piece.id for piece in self._tokenize(word)]).tobytes()


class WordPieceChunkEncoder(ModelChunkEncoder):
    """BERT's tokenizer: a chunk has several words, and they are remembered."""

    def __init__(
        self, tokenizer_json: Any, hf_tokenizer: Tokenizer, typecode: str, max_cache_bytes: int
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
        """A chunk's words with blanks between them, or None where only the library knows."""
        if self._added_tokens.search(chunk):
            return None
        try:
            return chunk.translate(self._character_map)
        except _UnknownCharacterError:
            return None


class UnigramChunkEncoder(ModelChunkEncoder):
    """ALBERT's tokenizer: a chunk is one word, after SentencePiece's mark of a beginning."""

    def __init__(self, tokenizer_json: Any, hf_tokenizer: Tokenizer, typecode: str) -> None:
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
    """A character of which the table cannot say what it becomes."""


class _CharacterMap(dict[int, str]):
    """For ``str.translate``: characters as BERT's normaliser leaves them, with blanks between words.

    The library says of each what it becomes, when it is first met; ``_APART`` has some 5,000.
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
    tokenizer_json: Any, hf_tokenizer: Tokenizer, typecode: str, max_cache_bytes: int
) -> Callable[[list[str]], list[bytes]]:
    """The quickest of these that gives the library's ids; words may be remembered in ``max_cache_bytes``
    bytes.
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
