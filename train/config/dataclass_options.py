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


def option_from_field(name: str) -> str:
    """The option of a field."""
    return "--" + name.replace("_", "-")


def add_arguments(group: Any, dataclass_type: type, show_defaults: bool = True) -> None:
    """An option for every field of a dataclass; None where it is not given.

    Args:
        group: a parser of argparse, or a group of it.
        defaults: tell the fields' defaults in the help.
    """
    hints = typing.get_type_hints(dataclass_type, include_extras=True)
    for field in dataclasses.fields(dataclass_type):
        field_type, meaning = typing.get_args(hints[field.name])
        help_text = (f"{meaning} ({field.default})" if show_defaults else meaning).replace("%", "%%")
        if field_type is bool:
            group.add_argument(
                option_from_field(field.name),
                action=argparse.BooleanOptionalAction,
                default=None,
                help=help_text,
            )
        elif typing.get_origin(field_type) is Literal:
            group.add_argument(
                option_from_field(field.name), choices=typing.get_args(field_type), help=help_text
            )
        else:
            metavar = {int: "N", float: "X"}.get(field_type, field.name.upper())
            group.add_argument(
                option_from_field(field.name), type=field_type, metavar=metavar, help=help_text
            )


def from_args(args: Any, dataclass_type: type) -> dict[str, Any]:
    """Of what argparse found, the fields of a dataclass that were given."""
    values = {field.name: getattr(args, field.name) for field in dataclasses.fields(dataclass_type)}
    return {name: value for name, value in values.items() if value is not None}


def from_toml(path: str, dataclass_type: type) -> dict[str, Any]:
    """What a TOML file of ``field = value`` lines says of the fields of a dataclass.

    Raises:
        ValueError: it cannot be read or is no TOML, or has a name or a kind of value that no field has.
    """
    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except OSError as error:
        raise InvalidValueError(f"--config {path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValueError(
            f"{path} is no TOML file ({error}): write lines such as learning_rate = 5e-5"
        ) from error
    field_types = typing.get_type_hints(dataclass_type)
    for name, value in values.items():
        if name not in field_types:
            matches = difflib.get_close_matches(name, field_types, 1)
            hint = f"; {matches[0]} is meant?" if matches else f". There are: {', '.join(field_types)}"
            raise InvalidValueError(f"{path}: {name} is no part of a recipe{hint}")
        try:
            check_type(name, value, field_types[name])
        except ValueError as error:
            raise InvalidValueError(f"{path}: {error}") from error
    return values


def check_type(name: str, value: object, field_type: Any) -> None:
    """Is the value of the field's type?  A TOML file may say anything.

    Raises:
        ValueError: it is not.
    """
    if typing.get_origin(field_type) is Literal:
        if value not in typing.get_args(field_type):
            raise InvalidValueError(
                f"{option_from_field(name)} {value} is none of {', '.join(typing.get_args(field_type))}"
            )
    elif not isinstance(value, (int, float) if field_type is float else field_type) or (
        field_type is not bool and isinstance(value, bool)
    ):
        raise InvalidValueError(f"{option_from_field(name)} {value!r} is no {field_type.__name__}")
