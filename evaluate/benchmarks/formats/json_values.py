"""Typed access to JSON files, with errors that name the location of an unexpected value."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.benchmarks.definition import BenchmarkFileError
from bioshards.evaluate.benchmarks.formats.text_files import read_text


@dataclass(frozen=True, slots=True)
class JsonValue:
    """A value in a JSON file.

    Attributes:
        location: path of the value, such as ``data[3].paragraphs[0]``; "" for the root.
        line: line of the value in a JSON Lines file.
    """

    path: str
    value: Any
    location: str = ""
    line: int | None = None

    def make_error(self, reason: str) -> BenchmarkFileError:
        """Return an error about this value."""
        return BenchmarkFileError(self.path, self.line, f"{self.location or 'its JSON'} {reason}")

    def as_text(self) -> str:
        if not isinstance(self.value, str):
            raise self.make_error(f"should be a text, but is {_describe_type(self.value)}")
        return self.value

    def as_one_of(self, labels: Collection[str]) -> str:
        """Return the text if it is one of ``labels``."""
        if self.as_text() not in labels:
            raise self.make_error(f"should be one of {', '.join(labels)}, but is {self.value!r}")
        return self.as_text()

    def as_int(self) -> int:
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.make_error(f"should be a whole number, but is {_describe_type(self.value)}")
        return self.value

    def items(self) -> Iterator[JsonValue]:
        """Return the values of a list."""
        if not isinstance(self.value, list):
            raise self.make_error(f"should be a list, but is {_describe_type(self.value)}")
        for index, value in enumerate(self.value):
            yield JsonValue(self.path, value, f"{self.location}[{index}]", self.line)

    def members(self) -> dict[str, JsonValue]:
        """Return the values of an object by name."""
        if not isinstance(self.value, dict):
            raise self.make_error(f"should be an object, but is {_describe_type(self.value)}")
        separator = "." if self.location else ""
        return {
            key: JsonValue(self.path, value, f"{self.location}{separator}{key}", self.line)
            for key, value in self.value.items()
        }

    def __getitem__(self, key: str) -> JsonValue:
        members = self.members()
        if key not in members:
            raise self.make_error(f"has no {key!r}")
        return members[key]

    def __contains__(self, key: str) -> bool:
        return key in self.members()


def read_json(path: str) -> JsonValue:
    """Read a JSON file.

    Raises:
        BenchmarkFileError: the file is not valid JSON.
    """
    return JsonValue(path, _parse_json(path, read_text(path), 1))


def read_json_lines(path: str) -> Iterator[JsonValue]:
    """Read a JSON Lines file; empty lines are skipped.

    Raises:
        BenchmarkFileError: a line is not valid JSON.
    """
    for line_number, line in enumerate(read_text(path).split("\n"), 1):
        if line.strip():
            yield JsonValue(path, _parse_json(path, line, line_number), line=line_number)


def _parse_json(path: str, text: str, first_line: int) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_check_unique_keys)
    except json.JSONDecodeError as error:
        line = first_line + error.lineno - 1
        raise BenchmarkFileError(path, line, f"it is not JSON: {error.msg}, column {error.colno}") from error
    except (ValueError, RecursionError) as error:
        raise BenchmarkFileError(path, None, f"its JSON is not used: {error}") from error


def _check_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        raise InvalidValueError(f"an object has {next(key for key in keys if keys.count(key) > 1)!r} twice")
    return members


def _describe_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", type(None): "null"}
    return names.get(type(value), repr(value))
