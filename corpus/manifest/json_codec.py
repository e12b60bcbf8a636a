"""Convert dataclasses to JSON values, and back with a check of every field."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin

from bioshards.corpus.manifest.shared_types import Json

T = TypeVar("T")
_Reader = Callable[[Any, str], Any]
"""Takes a JSON value and the name of its field."""

_NAMES = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}


class FieldError(ValueError):
    """A field is missing, unknown or of another type.

    Attributes:
        field: its path, as ``outputs[3].bytes``.
        problem: what is wrong with it.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}" if field else problem)
        self.field, self.problem = field, problem


def encode(value: Any) -> Any:
    """Convert a dataclass, with all that it contains, to a JSON value."""
    if is_dataclass(value):
        return {field.name: encode(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: encode(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [encode(item) for item in value]
    return value


def decode(kind: type[T], value: object, field: str = "") -> T:
    """Convert a JSON value to a dataclass of this type.

    Raises:
        FieldError: a field is missing, unknown or of another type.
    """
    decoded: T = _reader(cast(Any, kind))(value, field)
    return decoded


@functools.cache
def _reader(kind: Any) -> _Reader:
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Json:
        return _json
    if kind in _NAMES:
        return _scalar(kind)
    if is_dataclass(kind):
        return _dataclass(kind)
    if origin is Literal:
        return _literal(arguments)
    if origin in (Union, types.UnionType):
        return _union(arguments)
    if origin in (tuple, list):
        return _sequence(origin, _reader(arguments[0]))
    if origin in (dict, Mapping):
        return _mapping(_reader(arguments[1]))
    raise TypeError(f"a manifest cannot have a field of type {kind}")


def _json(value: Any, field: str) -> Any:
    if isinstance(value, dict):
        return {name: _json(item, f"{field}.{name}") for name, item in value.items()}
    if isinstance(value, list):
        return [_json(item, f"{field}[{index}]") for index, item in enumerate(value)]
    if value is None or isinstance(value, tuple(_NAMES)):
        return value
    raise FieldError(field, f"{_format_value(value)} is not a JSON value")


def _scalar(kind: type) -> _Reader:
    accepted = (int, float) if kind is float else (kind,)

    def read(value: Any, field: str) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise FieldError(field, f"expected {_NAMES[kind]}, found {_format_value(value)}")
        return value

    return read


def _literal(values: tuple[Any, ...]) -> _Reader:
    def read(value: Any, field: str) -> Any:
        if not any(type(value) is type(known) and value == known for known in values):
            raise FieldError(
                field, f"expected {' or '.join(map(repr, values))}, found {_format_value(value)}"
            )
        return value

    return read


def _union(kinds: tuple[Any, ...]) -> _Reader:
    """Return the reader of a union; its dataclasses are identified by their ``pipeline``."""
    by_pipeline: dict[Any, _Reader] = {}
    others: list[_Reader] = []
    for kind in kinds:
        if is_dataclass(kind) and "pipeline" in typing.get_type_hints(kind):
            names = get_args(typing.get_type_hints(kind)["pipeline"])
            by_pipeline.update(dict.fromkeys(names, _reader(cast(Any, kind))))
        elif kind is not type(None):
            others.append(_reader(kind))

    def read(value: Any, field: str) -> Any:
        if value is None and type(None) in kinds:
            return None
        pipeline = value.get("pipeline") if by_pipeline and isinstance(value, dict) else None
        if isinstance(pipeline, str) and pipeline in by_pipeline:
            return by_pipeline[pipeline](value, field)
        for other in others:
            return other(value, field)
        known = " or ".join(map(repr, by_pipeline))
        raise FieldError(
            f"{field}.pipeline".lstrip("."), f"expected {known}, found {_format_value(pipeline)}"
        )

    return read


def _sequence(kind: type, item: _Reader) -> _Reader:
    def read(value: Any, field: str) -> Any:
        if not isinstance(value, list):
            raise FieldError(field, f"expected a list, found {_format_value(value)}")
        return kind([item(element, f"{field}[{index}]") for index, element in enumerate(value)])

    return read


def _mapping(item: _Reader) -> _Reader:
    def read(value: Any, field: str) -> Any:
        if not isinstance(value, dict):
            raise FieldError(field, f"expected an object, found {_format_value(value)}")
        return {name: item(element, f"{field}.{name}" if field else name) for name, element in value.items()}

    return read


def _dataclass(kind: Any) -> _Reader:
    hints = typing.get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name]) for field in fields(kind)}

    def read(value: Any, field: str) -> Any:
        if not isinstance(value, dict):
            raise FieldError(field, f"expected an object, found {_format_value(value)}")
        prefix = f"{field}." if field else ""
        for name in readers:
            if name not in value:
                raise FieldError(prefix + name, "the field is missing")
        for name in value:
            if name not in readers:
                raise FieldError(prefix + name, "the field is unknown")
        return kind(**{name: reader(value[name], prefix + name) for name, reader in readers.items()})

    return read


def _format_value(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
