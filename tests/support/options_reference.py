"""Generate the page of all options, docs/options.md, from the parsers of all commands."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
from collections.abc import Iterator
from unittest import mock

from bioshards import __main__ as command

_INTRODUCTION = """\
# Options

Every option of every command, as `--help` has it. Pipelines also take the
options of the Beam runner that `--runner` names.
"""
_COMMAND = re.compile(r"(?m)^  ([a-z_-]+) ")


def format_page() -> str:
    """Return the page: a table of options for each command."""
    tables = (_format_table(parser) for parser in list_parsers() if parser.prog != "bioshards fetch")
    return "\n".join([_INTRODUCTION, *tables])


def list_parsers(*words: str) -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of every command below these words, found by asking each for its help."""
    parsers: list[argparse.ArgumentParser] = []
    output = io.StringIO()
    with (
        mock.patch.object(argparse.ArgumentParser, "print_help", lambda parser: parsers.append(parser)),
        contextlib.redirect_stdout(output),
    ):
        assert command.main([*words, "--help"]) == 0
    yield from parsers
    for name in _COMMAND.findall(output.getvalue()):
        yield from list_parsers(*words, name)


def _format_table(parser: argparse.ArgumentParser) -> str:
    rows = [
        f"| {_format_names(action)} | {_escape(action.help % vars(action))} |"
        for action in parser._actions
        if action.help and action.dest != "help"
    ]
    name = parser.prog.replace("bioshards run", "beam run")
    description = _escape((parser.description or "").partition("\n\n")[0])
    return "\n".join([f"## {name}\n", f"{description}\n", "| option | |", "|---|---|", *rows, ""])


def _format_names(action: argparse.Action) -> str:
    values = action.metavar or "{" + ",".join(map(str, action.choices or ())) + "}"
    value = "" if action.nargs == 0 or values == "{}" else f" {values}"
    return _escape(" ".join(f"`{name}{value}`" for name in action.option_strings or [action.dest]))


def _escape(text: str) -> str:
    return re.sub(r"([|<*])", r"\\\1", " ".join(text.split()))
