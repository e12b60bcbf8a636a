"""Command-line options and TOML lines for the fields of a settings dataclass.

Each field is ``Annotated[type, help text]``; its option has the field's name.
"""

from __future__ import annotations

import argparse
import dataclasses
import tomllib
import typing
from typing import Any, Literal

from bioshards.corpus.errors import InvalidValueError, suggest_nearest


def option_from_field(name: str) -> str:
    """Return the option of a field: ``--batch-size`` for ``batch_size``."""
    return "--" + name.replace("_", "-")


def add_arguments(
    group: argparse._ActionsContainer, dataclass_type: type, show_defaults: bool = True
) -> None:
    """Add an option for every field of a dataclass; the default of each is None.

    Args:
        group: parser or argument group.
        show_defaults: append the defaults of the fields to the help texts.
    """
    hints = typing.get_type_hints(dataclass_type, include_extras=True)
    for field in dataclasses.fields(dataclass_type):
        field_type, meaning = typing.get_args(hints[field.name])
        help_text = (f"{meaning} (default: {field.default})" if show_defaults else meaning).replace("%", "%%")
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


def from_args(args: argparse.Namespace, dataclass_type: type) -> dict[str, Any]:
    """Return the fields of a dataclass that were set on the command line."""
    values = {field.name: getattr(args, field.name) for field in dataclasses.fields(dataclass_type)}
    return {name: value for name, value in values.items() if value is not None}


def from_toml(path: str, dataclass_type: type) -> dict[str, Any]:
    """Read fields of a dataclass from a TOML file of ``field = value`` lines.

    Raises:
        InvalidValueError: the file cannot be read, is not valid TOML, or has an unknown field or a value of
            another type.
    """
    try:
        with open(path, "rb") as file:
            values = tomllib.load(file)
    except OSError as error:
        raise InvalidValueError(f"cannot read --config {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValueError(
            f"{path} is not valid TOML ({error}); write lines such as learning_rate = 5e-5"
        ) from error
    field_types = typing.get_type_hints(dataclass_type)
    for name, value in values.items():
        if name not in field_types:
            hint = suggest_nearest(name, field_types) or f"; fields: {', '.join(field_types)}"
            raise InvalidValueError(f"{path}: unknown field {name}{hint}")
        try:
            check_type(name, value, field_types[name])
        except ValueError as error:
            raise InvalidValueError(f"{path}: {error}") from error
    return values


def check_type(name: str, value: object, field_type: Any) -> None:
    """Check that a value has the type of its field.

    Raises:
        InvalidValueError: it has another type, or is not one of the choices.
    """
    if typing.get_origin(field_type) is Literal:
        if value not in typing.get_args(field_type):
            choices = ", ".join(typing.get_args(field_type))
            raise InvalidValueError(f"{option_from_field(name)} {value} is not one of {choices}")
    elif not isinstance(value, (int, float) if field_type is float else field_type) or (
        field_type is not bool and isinstance(value, bool)
    ):
        raise InvalidValueError(f"{option_from_field(name)} {value!r} is not of type {field_type.__name__}")
