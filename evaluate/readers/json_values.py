"""JSON of which something is wanted at a place: says which place it is where something else is there."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.datasets import BenchmarkFileError

from .lines import contents


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a JSON file.

    Attributes:
        where: its place, ``data[3].paragraphs[0]``; "" is all of the file, or of its line.
        line: in files of a value a line.
    """

    path: str
    value: Any
    where: str = ""
    line: int | None = None

    def wrong(self, why: str) -> BenchmarkFileError:
        """The error that something about this value is wrong."""
        return BenchmarkFileError(self.path, self.line, f"{self.where or 'its JSON'} {why}")

    def text(self) -> str:
        if not isinstance(self.value, str):
            raise self.wrong(f"should be a text, but is {_kind(self.value)}")
        return self.value

    def one_of(self, labels: Collection[str]) -> str:
        """A text that is one of these."""
        if self.text() not in labels:
            raise self.wrong(f"should be one of {', '.join(labels)}, but is {self.value!r}")
        return self.text()

    def number(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong(f"should be a whole number, but is {_kind(self.value)}")
        return self.value

    def items(self) -> Iterator[Value]:
        """The values of a list."""
        if not isinstance(self.value, list):
            raise self.wrong(f"should be a list, but is {_kind(self.value)}")
        for index, value in enumerate(self.value):
            yield Value(self.path, value, f"{self.where}[{index}]", self.line)

    def members(self) -> dict[str, Value]:
        """The values of an object."""
        if not isinstance(self.value, dict):
            raise self.wrong(f"should be an object, but is {_kind(self.value)}")
        dot = "." if self.where else ""
        return {
            key: Value(self.path, value, f"{self.where}{dot}{key}", self.line)
            for key, value in self.value.items()
        }

    def __getitem__(self, key: str) -> Value:
        members = self.members()
        if key not in members:
            raise self.wrong(f"has no {key!r}")
        return members[key]

    def __contains__(self, key: str) -> bool:
        return key in self.members()


def read(path: str) -> Value:
    """A file of JSON.

    Raises:
        BenchmarkFileError: it is none.
    """
    return Value(path, _loads(path, contents(path), 1))


def lines(path: str) -> Iterator[Value]:
    """The values of a file with one a line; empty lines are passed over.

    Raises:
        BenchmarkFileError: at a line that is none.
    """
    for number, line in enumerate(contents(path).split("\n"), 1):
        if line.strip():
            yield Value(path, _loads(path, line, number), line=number)


def _loads(path: str, text: str, first: int) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        line = first + error.lineno - 1
        raise BenchmarkFileError(path, line, f"it is not JSON: {error.msg}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise BenchmarkFileError(path, None, f"its JSON is not used: {error}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise InvalidValueError(f"an object has {next(key for key in keys if keys.count(key) > 1)!r} twice")
    return found


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", type(None): "null"}
    return names.get(type(value), repr(value))
