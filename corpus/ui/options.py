"""Command lines as dataclasses: a field is an option, and the parsed command line is the dataclass.

A field is ``Annotated[type, Option(...)]`` or ``Annotated[type, help text]``, with a list of Options if
several give it; ``batch_size`` is ``--batch-size``. Without a default it is required, without an Option it is
no option. Its type says what is taken: ``bool`` is a flag, ``bool | None`` is ``--name`` and ``--no-name``, a
Literal names its values, and ``Overrides[C]`` has an option for each field of ``C``.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import inspect
import os
import re
import sys
import tomllib
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, NoReturn, TypeVar
from urllib.parse import urlsplit

from bioshards.corpus.cpus import count_cpus
from bioshards.corpus.errors import OK, USAGE_ERROR, InvalidValueError, escape_line, suggest_nearest
from bioshards.corpus.languages import parse_language

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

OptionsT = TypeVar("OptionsT", bound="DataclassInstance")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a field.

    Attributes:
        help: help text, with ``%(default)s`` and ``%%``; of Overrides, what follows the help of each field.
        group: title in ``--help``; of Overrides, for the fields that have none.
        name: name of the option, if it is not the field's.
        metavar: stands for the value in ``--help``; default: N of int, X of float, else the field's name.
        choices: values, if the type does not name them.
        absent_choices: values of other commands that this one lacks, with the reason.
        parse: parses the value, or an item of ``many``; raises argparse.ArgumentTypeError.
        many: a tuple is given by repeating the option (``repeat``), or by several words (``words``).
    """

    help: str = ""
    group: str = ""
    name: str = ""
    metavar: str | None = None
    choices: Sequence[str] | None = None
    absent_choices: Mapping[str, str] = dataclasses.field(default_factory=dict)
    parse: Callable[[str], object] | None = None
    many: Literal["repeat", "words"] | None = None


@dataclass(frozen=True, slots=True)
class Argument(Option):
    """A field that is given by its position."""


@dataclass(frozen=True, slots=True)
class Overrides(Generic[T]):
    """Fields of a settings dataclass that were given, to override those of a preset."""

    values: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def with_config(self, path: str | None, settings_type: type[T]) -> Overrides[T]:
        """Add the fields that a TOML file gives and the command line does not."""
        return Overrides({**from_toml(path, settings_type), **self.values}) if path else self

    def apply(self, settings: T) -> T:
        """Return the settings with these values."""
        return dataclasses.replace(settings, **self.values)  # type: ignore[type-var]


_HOME = re.compile(r"(--[\w-]+=)?(~(?:/.*)?)")
"""A path in the home directory. A shell expands it only if it is a word of its own."""


class OptionParser(argparse.ArgumentParser):
    """A parser that takes options by their whole names only and reports a mistake in one line.

    ``~`` is expanded in every path.
    """

    _words: Sequence[str] = ()

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words = [
            (home[1] or "") + os.path.expanduser(home[2]) if (home := _HOME.fullmatch(word)) else word
            for word in (sys.argv[1:] if args is None else args)
        ]
        parsed, unknown = super().parse_known_args(self._words, namespace)
        self.refuse_unknown(unknown)
        return parsed, unknown

    def refuse_unknown(self, words: Sequence[str]) -> None:
        """Report the first word that belongs to no option, with the nearest option."""
        for word in words:
            name = word.partition("=")[0]
            if not word.startswith("-"):
                self.report(f"unexpected word {word!r}: no option before it takes it")
            self.report(f"unknown option {name}{suggest_nearest(name, self._option_string_actions)}")

    def error(self, message: str) -> NoReturn:
        """Report a misspelt option, which may be why another one is missing, or else this message."""
        end = self._words.index("--") if "--" in self._words else len(self._words)
        names = [word.partition("=")[0] for word in self._words[:end] if word.startswith("--")]
        self.refuse_unknown([name for name in names if name not in self._option_string_actions])
        self.report(message)

    def report(self, message: str) -> NoReturn:
        """Print a mistake in the command line and end the process."""
        report_usage_error(self.prog, message)

    def add_options(self, options_type: type) -> None:
        """Add an option for every field of a dataclass, group by group."""
        fields_by_group: dict[str, list[_Field]] = {}
        for field in _list_fields(options_type):
            fields_by_group.setdefault(field.options[0].group, []).append(field)
        for title, fields in fields_by_group.items():
            group = self.add_argument_group(title) if title else self
            for field in fields:
                for option in field.options:
                    _add_option(group, field, option)

    def parse_options(self, options_type: type[OptionsT], argv: Sequence[str]) -> OptionsT:
        """Parse a command line into a dataclass."""
        self.add_options(options_type)
        return from_args(options_type, self.parse_args(argv))


def parse_command(
    program: str, commands: Mapping[str, tuple[type[OptionsT], str]], argv: Sequence[str]
) -> OptionsT:
    """Parse a command line whose first word is a command into the dataclass of that command.

    Args:
        program: what is typed before the command.
        commands: dataclass and help text of each command.
        argv: the words after the program.
    """
    usage = f"usage: {program} COMMAND ...\n\n"
    usage += "".join(f"  {name:17} {help_text}\n" for name, (_, help_text) in commands.items())
    usage += f"\n{program} COMMAND --help describes a command.\n"
    name = choose_command(program, list(commands), argv, usage)
    options_type, help_text = commands[name]
    description = help_text[0].upper() + help_text[1:] + "."
    return OptionParser(prog=f"{program} {name}", description=description).parse_options(
        options_type, argv[1:]
    )


def open_standard_files() -> None:
    """Open the standard files that are closed, as the null device.

    A file that is opened later, such as a lock, would get the number of one, and what programs print there.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest free number


def choose_command(
    program: str, known: Sequence[str], argv: Sequence[str], usage: str, kind: str = "command"
) -> str:
    """Return the first word if it is one of the known ones; else print help or what is wrong, and exit."""
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(usage, end="")
        sys.exit(OK if argv else USAGE_ERROR)
    if argv[0] not in known:
        hint = suggest_nearest(argv[0], known, 0.4) or f"; there are: {', '.join(known)}"
        report_usage_error(program, f"unknown {kind} {argv[0]!r}{hint}")
    return argv[0]


def report_usage_error(program: str, message: str) -> NoReturn:
    """Print what is wrong with a command line, in one line, and exit."""
    hint = f"{message.rstrip('.')}. See {program} --help"
    with contextlib.suppress(OSError):
        print(f"{program.split()[0]}: {escape_line(hint)}", file=sys.stderr)
    sys.exit(USAGE_ERROR)


class _Field(NamedTuple):
    """A field that has options; its type is that without Annotated."""

    name: str
    type: Any
    default: object
    is_required: bool
    options: list[Option]


def _list_fields(options_type: type) -> Iterator[_Field]:
    """Yield the fields with options: a class before its bases, those of Overrides optional."""
    hints = typing.get_type_hints(options_type, include_extras=True)
    names = [name for each in options_type.__mro__ for name in inspect.get_annotations(each)]
    for field in sorted(dataclasses.fields(options_type), key=lambda field: names.index(field.name)):
        if typing.get_origin(hints[field.name]) is not typing.Annotated:
            continue
        field_type, annotation = typing.get_args(hints[field.name])
        options = [Option(annotation)] if isinstance(annotation, str) else annotation
        options = options if isinstance(options, list) else [options]
        if settings_type := _get_settings_type(field_type):
            for setting in _list_fields(settings_type):
                yield _make_optional(setting, options[0])
            continue
        is_required = field.default is field.default_factory is dataclasses.MISSING
        default = None if field.default is dataclasses.MISSING else field.default
        yield _Field(field.name, field_type, default, is_required, options)


def _get_settings_type(field_type: Any) -> type | None:
    """Return C for Overrides[C]."""
    return typing.get_args(field_type)[0] if typing.get_origin(field_type) is Overrides else None


def _make_optional(field: _Field, shared: Option) -> _Field:
    """Return a field without a default, because a preset has another."""
    options = [
        dataclasses.replace(
            option,
            help=option.help + shared.help % {"default": field.default},
            group=option.group or shared.group,
        )
        for option in field.options
    ]
    field_type = bool | None if field.type is bool else field.type
    return field._replace(type=field_type, default=None, options=options)


def _add_option(group: argparse._ActionsContainer, field: _Field, option: Option) -> None:
    is_optional = type(None) in typing.get_args(field.type)
    value_type = typing.get_args(field.type)[0] if is_optional else field.type
    is_list = bool(option.many) or (isinstance(option, Argument) and typing.get_origin(value_type) is tuple)
    if is_list:
        value_type = typing.get_args(value_type)[0]
    choices = typing.get_args(value_type) if typing.get_origin(value_type) is Literal else option.choices
    parse = option.parse or (_choice_of(choices, option.absent_choices) if choices else value_type)
    metavar = option.metavar or {int: "N", float: "X"}.get(value_type)
    metavar = metavar or (f"{{{','.join(choices)}}}" if choices else None)
    name = option_from_field(option.name or field.name)
    if isinstance(option, Argument):
        nargs = ("+" if field.is_required else "*") if is_list else None
        group.add_argument(field.name, nargs=nargs, type=parse, metavar=metavar, help=option.help)
    elif value_type is bool:
        action = argparse.BooleanOptionalAction if is_optional else "store_true"
        group.add_argument(name, dest=field.name, action=action, default=field.default, help=option.help)
    else:
        group.add_argument(
            name,
            dest=field.name,
            action={"repeat": "append", "words": "extend", None: "store"}[option.many],
            nargs="+" if option.many == "words" else None,
            type=parse,
            metavar=metavar,
            default=None if is_list else field.default,
            required=field.is_required,
            help=option.help,
        )


def from_args(options_type: type[OptionsT], args: argparse.Namespace) -> OptionsT:
    """Return the dataclass of parsed arguments; a field that was not given has its default."""
    hints = typing.get_type_hints(options_type)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(options_type):
        if settings_type := _get_settings_type(hints[field.name]):
            given = {setting.name: getattr(args, setting.name) for setting in _list_fields(settings_type)}
            values[field.name] = Overrides({key: one for key, one in given.items() if one is not None})
        elif (value := getattr(args, field.name, None)) is not None:
            values[field.name] = tuple(value) if isinstance(value, list) else value
    return options_type(**values)


def option_from_field(name: str) -> str:
    """Return the option of a field: ``--batch-size`` for ``batch_size``."""
    return "--" + name.replace("_", "-")


def from_toml(path: str, dataclass_type: type) -> dict[str, Any]:
    """Read fields of a dataclass from a TOML file of ``field = value`` lines.

    Raises:
        InvalidValueError: the file cannot be read, is not valid TOML, or has an unknown field or a value of
            another type.
    """
    try:
        with open(path, "rb") as file:
            values = tomllib.loads(file.read().decode("utf-8-sig"))
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


# Parsers of values: each raises argparse.ArgumentTypeError with what is wrong.


def _choice_of(choices: Sequence[str], absent_choices: Mapping[str, str]) -> Callable[[str], str]:
    """Return a parser of one of some words, which says why there is none of ``absent_choices``."""

    def parse_choice(text: str) -> str:
        if text in absent_choices:
            raise argparse.ArgumentTypeError(
                f"{text} is not here ({absent_choices[text]}); choose from {', '.join(choices)}"
            )
        if text not in choices:
            hint = suggest_nearest(text, choices)
            raise argparse.ArgumentTypeError(
                f"invalid choice: {text!r}{hint}; choose from {', '.join(choices)}"
            )
        return text

    return parse_choice


def fraction(text: str) -> float:
    """Parse a number from 0 to 1."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def int_at_least(lowest: int) -> Callable[[str], int]:
    """Return a parser of whole numbers of at least ``lowest``."""

    def parse_integer(text: str) -> int:
        value = int(text)
        if value < lowest:
            raise argparse.ArgumentTypeError(f"{text} is below {lowest}")
        return value

    parse_integer.__name__ = "whole number"  # argparse: invalid whole number value
    return parse_integer


def worker_count(text: str) -> int:
    """Parse a number of local processes; more than this process may use CPUs are capped, with a notice."""
    workers, cpus = int_at_least(1)(text), count_cpus()
    if workers > cpus:
        print(f"notice: {text} workers are more than this process may use CPUs: {cpus} run", file=sys.stderr)
    return min(workers, cpus)


worker_count.__name__ = "whole number"


def name_list(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list."""
    return tuple(sorted({name.strip() for name in text.split(",") if name.strip()}))


def lower_case_list(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of names that are compared in lower case."""
    return name_list(text.lower())


def language_list(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of languages into MARC codes."""
    try:
        return tuple(sorted({parse_language(name) for name in name_list(text)}))
    except InvalidValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def subset_of(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of comma-separated names, in any case, ``all`` or ``none``.

    The order is that of ``known``.
    """

    def parse_names(text: str) -> tuple[str, ...]:
        if text in ("all", "none"):
            return tuple(known) if text == "all" else ()
        selected = name_list(text)
        if not selected:
            raise argparse.ArgumentTypeError("no name is given (to mean that, say none)")
        known_folded = {name.casefold() for name in known}
        for name in selected:
            if name.casefold() not in known_folded:
                raise argparse.ArgumentTypeError(
                    f"unknown name {name}{suggest_nearest(name, known)}; the names are {', '.join(known)}"
                )
        folded = {name.casefold() for name in selected}
        return tuple(name for name in known if name.casefold() in folded)

    return parse_names


def nonempty_subset_of(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser like :func:`subset_of` that rejects an empty selection."""

    def parse_names(text: str) -> tuple[str, ...]:
        selected = subset_of(known)(text)
        if not selected:
            raise argparse.ArgumentTypeError(f"{text} selects nothing; all selects everything")
        return selected

    return parse_names


def complement_of(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of names as :func:`subset_of` that selects all others."""

    def parse_names(text: str) -> tuple[str, ...]:
        excluded = subset_of(known)(text)
        return tuple(name for name in known if name not in excluded)

    return parse_names


def server_url(text: str) -> str:
    """Parse a server's URL, https, or http on this machine; add a trailing slash."""
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is no address like https://SERVER/FOLDER/") from error
    if parts.username is not None:
        raise argparse.ArgumentTypeError("an address with a user's name in it would be shown in manifests")
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise argparse.ArgumentTypeError(f"{text} is not encrypted; give its https:// address")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(f"{text} is no address like https://SERVER/FOLDER/")
    return text if text.endswith("/") else f"{text}/"


def contact_address(text: str) -> str:
    """Parse a mail or web address that an HTTP header can hold."""
    if not re.fullmatch("[!-'*-~]{3,200}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no mail or web address")
    return text
