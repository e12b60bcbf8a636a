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

from .by_chunks import splits_as_albert, splits_as_bert
from .parts import joined
from .remembered import Remembered
from .wordpiece import SPACE

_APART: Final = re.compile("[\0-\u02ff\u0370-\u0482\u1e00-\u20cf\u2100-\u2bff]")
"""Characters of blocks that have no combining marks: what becomes of one depends on no neighbour.  Latin,
Greek, Cyrillic, punctuation, symbols: nearly all that English articles have."""
_FEW: Final = 200
"""Chunks that are done sooner one by one than by Arrow."""


class Whole:
    """Callable: the ids of texts, each by the library, as bytes of an array of ``type_``."""

    def __init__(self, library: Tokenizer, type_: str) -> None:
        self._library, self._type = library, type_

    def __call__(self, chunks: list[str]) -> list[bytes]:
        return list(map(self._whole, chunks))

    def _whole(self, text: str) -> bytes:
        return array(self._type, self._library.encode(text, add_special_tokens=False).ids).tobytes()


class ByModel(Whole):
    """Callable: the ids of chunks, by the library's model where a chunk's words are plain to see."""

    def __init__(self, tokenizer: Any, library: Tokenizer, type_: str) -> None:
        super().__init__(library, type_)
        added = "|".join(re.escape(token["content"]) for token in tokenizer["added_tokens"])
        self._added = re.compile(added or "(?!)")  # which is nowhere
        self._tokenize = library.model.tokenize

    def _pieces(self, word: str) -> bytes:
        return array(self._type, [piece.id for piece in self._tokenize(word)]).tobytes()


class WordPieceByModel(ByModel):
    """BERT's tokenizer: a chunk has several words, and they are remembered."""

    def __init__(self, tokenizer: Any, library: Tokenizer, type_: str, memory: int) -> None:
        super().__init__(tokenizer, library, type_)
        self._characters = _Characters(library)
        self._words = Remembered(lambda words: list(map(self._pieces, words)), memory)

    def __call__(self, chunks: list[str]) -> list[bytes]:
        spaced = list(map(self._spaced, chunks))
        if len(chunks) < _FEW:
            found = [b"".join(self._words.of((words or "").split())) for words in spaced]
        else:
            found = joined(pa.array(spaced, pa.large_string()), self._words.of).to_pylist()
        return [
            self._whole(chunk) if words is None else ids
            for chunk, words, ids in zip(chunks, spaced, found, strict=True)
        ]

    def _spaced(self, chunk: str) -> str | None:
        """A chunk's words with blanks between them, or None where only the library knows."""
        if self._added.search(chunk):
            return None
        try:
            return chunk.translate(self._characters)
        except _UnknownCharacterError:
            return None


class UnigramByModel(ByModel):
    """ALBERT's tokenizer: a chunk is one word, after SentencePiece's mark of a beginning."""

    def __init__(self, tokenizer: Any, library: Tokenizer, type_: str) -> None:
        super().__init__(tokenizer, library, type_)
        self._normalize = library.normalizer.normalize_str if library.normalizer else str

    def __call__(self, chunks: list[str]) -> list[bytes]:
        return list(map(self._chunk, chunks))

    def _chunk(self, chunk: str) -> bytes:
        if not self._added.search(chunk):
            normal = self._normalize(chunk)
            if normal.split() == [normal] and SPACE not in normal:
                return self._pieces(SPACE + normal)
        return self._whole(chunk)


class _UnknownCharacterError(Exception):
    """A character of which the table cannot say what it becomes."""


class _Characters(dict[int, str]):
    """For ``str.translate``: characters as BERT's normaliser leaves them, with blanks between words.

    The library says of each what it becomes, when it is first met; ``_APART`` has some 5,000.
    """

    def __init__(self, library: Tokenizer) -> None:
        self._normalizer, self._pre_tokenizer = library.normalizer, library.pre_tokenizer

    def __missing__(self, code: int) -> str:
        if not _APART.match(chr(code)):
            raise _UnknownCharacterError
        normal = self._normalizer.normalize_str(chr(code))
        self[code] = "".join(map(self._with_blanks, normal))
        return self[code]

    def _with_blanks(self, character: str) -> str:
        words = [word for word, _ in self._pre_tokenizer.pre_tokenize_str("a" + character)]
        return character if words == ["a" + character] else " ".join(["", *words[1:], ""])


def finder(tokenizer: Any, library: Tokenizer, type_: str, memory: int) -> Callable[[list[str]], list[bytes]]:
    """The quickest of these that gives the library's ids; words may be remembered in ``memory`` bytes."""
    if not any(token["normalized"] for token in tokenizer["added_tokens"]):  # found in normalised text only
        match tokenizer["model"]["type"], tokenizer["normalizer"]:
            case "WordPiece", {"type": "BertNormalizer", "clean_text": True} if splits_as_bert(tokenizer):
                return WordPieceByModel(tokenizer, library, type_, memory)
            case "Unigram", _ if splits_as_albert(tokenizer):
                return UnigramByModel(tokenizer, library, type_)
    return Whole(library, type_)
