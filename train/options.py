"""A dataclass of settings as options of a command line and as lines of a TOML file, each named as its field.

The fields are ``Annotated`` with what they mean, which is their help.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import tomllib
import typing
from typing import Any, Literal

from bioshards.corpus.errors import InvalidValueError


def flag(name: str) -> str:
    """The option of a field."""
    return "--" + name.replace("_", "-")


def add(group: Any, settings: type, defaults: bool = True) -> None:
    """An option for every field of a dataclass; None where it is not given.

    Args:
        group: a parser of argparse, or a group of it.
        defaults: tell the fields' defaults in the help.
    """
    hints = typing.get_type_hints(settings, include_extras=True)
    for field in dataclasses.fields(settings):
        kind, help = typing.get_args(hints[field.name])
        told = (f"{help} ({field.default})" if defaults else help).replace("%", "%%")
        if kind is bool:
            group.add_argument(
                flag(field.name), action=argparse.BooleanOptionalAction, default=None, help=told
            )
        elif typing.get_origin(kind) is Literal:
            group.add_argument(flag(field.name), choices=typing.get_args(kind), help=told)
        else:
            shown = {int: "N", float: "X"}.get(kind, field.name.upper())
            group.add_argument(flag(field.name), type=kind, metavar=shown, help=told)


def given(words: Any, settings: type) -> dict[str, Any]:
    """Of what argparse found, the fields of a dataclass that were given."""
    values = {field.name: getattr(words, field.name) for field in dataclasses.fields(settings)}
    return {name: value for name, value in values.items() if value is not None}


def from_toml(path: str, settings: type) -> dict[str, Any]:
    """What a TOML file of ``field = value`` lines says of the fields of a dataclass.

    Raises:
        ValueError: it cannot be read or is no TOML, or has a name or a kind of value that no field has.
    """
    try:
        with open(path, "rb") as file:
            found = tomllib.load(file)
    except OSError as error:
        raise InvalidValueError(f"--config {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValueError(
            f"{path} is no TOML file ({error}): write lines such as learning_rate = 5e-5"
        ) from error
    kinds = typing.get_type_hints(settings)
    for name, value in found.items():
        if name not in kinds:
            near = difflib.get_close_matches(name, kinds, 1)
            hint = f"; {near[0]} is meant?" if near else f". There are: {', '.join(kinds)}"
            raise InvalidValueError(f"{path}: {name} is no part of a recipe{hint}")
        try:
            check_kind(name, value, kinds[name])
        except ValueError as error:
            raise InvalidValueError(f"{path}: {error}") from error
    return found


def check_kind(name: str, value: object, kind: Any) -> None:
    """Is the value of the field's type?  A TOML file may say anything.

    Raises:
        ValueError: it is not.
    """
    if typing.get_origin(kind) is Literal:
        if value not in typing.get_args(kind):
            raise InvalidValueError(f"{flag(name)} {value} is none of {', '.join(typing.get_args(kind))}")
    elif not isinstance(value, (int, float) if kind is float else kind) or (
        kind is not bool and isinstance(value, bool)
    ):
        raise InvalidValueError(f"{flag(name)} {value!r} is no {kind.__name__}")
