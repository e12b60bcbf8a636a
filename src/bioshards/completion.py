"""``bioshards completion bash | zsh``: a script by which the shell completes commands and options.

The script has all words, so that the shell starts no Python to complete one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Final

_USAGE: Final = """\
usage: bioshards completion bash > ~/.local/share/bash-completion/completions/bioshards
       bioshards completion zsh > ~/.bioshards.zsh    # and in ~/.zshrc: source ~/.bioshards.zsh
"""
_SCRIPT: Final = """\
_bioshards() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} at=${{COMP_WORDS[0]##*/}}
  local word words="" options="" values=""
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$at $word" in
      {paths}) at="$at $word" ;;
    esac
  done
  case "$at" in
{nodes}
  esac
  case "$at $prev" in
{values}
  esac
  case "$prev:$cur" in
    *:-*) words=$options ;;
    -*) words=$values ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}}
complete -o default -F _bioshards bioshards beam
"""
_FIRST_LINE: Final = {"bash": "", "zsh": "autoload -Uz compinit bashcompinit && compinit && bashcompinit\n"}
_GROUPS: Final = ("corpus", "evaluate", "vocab")
_BEAM_COMMANDS: Final = ("copy", "list", "run", "template")


def main(arguments: Sequence[str]) -> int:
    """Print the script of a shell."""
    if list(arguments) not in [[shell] for shell in _FIRST_LINE]:
        print(_USAGE, end="")
        return 0 if arguments and arguments[0] in ("-h", "--help") else 2
    print(_FIRST_LINE[arguments[0]] + format_script(), end="")
    return 0


def format_script() -> str:
    """Return the completion function."""
    words: dict[str, Sequence[str]] = {}
    parsers: dict[str, argparse.ArgumentParser] = {}
    for path, node in _iter_nodes():
        if isinstance(node, argparse.ArgumentParser):
            parsers[path] = node
        else:
            words[path] = node
    return _SCRIPT.format(
        paths=" | ".join(f'"{path}"' for path in sorted({*words, *parsers} - {"bioshards", "beam"})),
        nodes="\n".join(
            f'    "{path}") words="{" ".join(words.get(path, ()))}"'
            f' options="{_list_options(parsers.get(path))}" ;;'
            for path in sorted({*words, *parsers})
        ),
        values="\n".join(
            f'    "{path} {option}") values="{" ".join(map(str, action.choices))}" ;;'
            for path, parser in sorted(parsers.items())
            for action in parser._actions
            if action.choices
            for option in action.option_strings
        ),
    )


def _list_options(parser: argparse.ArgumentParser | None) -> str:
    if parser is None:
        return ""
    return " ".join(
        option for action in parser._actions for option in action.option_strings if option.startswith("--")
    )


def _iter_nodes() -> Iterator[tuple[str, Sequence[str] | argparse.ArgumentParser]]:
    """Yield, by path such as ``bioshards vocab``, the words that follow, and the parser of options."""
    from bioshards.__main__ import COMMANDS
    from bioshards.corpus.ui.options import OptionParser
    from bioshards.pipelines.registry import COPY, PIPELINES
    from bioshards.pipelines.templates.template_writer import make_parser as make_template_parser

    def make_parser(options_type: type) -> OptionParser:
        parser = OptionParser()
        parser.add_options(options_type)
        return parser

    for program, commands in (("bioshards", sorted(COMMANDS)), ("beam", _BEAM_COMMANDS)):
        yield program, commands
        for name, pipeline in PIPELINES.items():
            yield f"{program} run {name}", pipeline.load_parser()
            yield f"{program} template {name}", make_template_parser(name)
        for command in ("run", "template"):
            yield f"{program} {command}", sorted(PIPELINES)
        yield f"{program} copy", COPY.load_parser()
    yield "bioshards fetch", PIPELINES["fetch"].load_parser()
    yield "bioshards completion", sorted(_FIRST_LINE)
    for group in _GROUPS:
        group_commands = import_module(f"bioshards.{group}.__main__").COMMANDS
        yield f"bioshards {group}", sorted(group_commands)
        for name, (options_type, _) in group_commands.items():
            yield f"bioshards {group} {name}", make_parser(options_type)
    yield "bioshards train", ["plot"]
    yield "bioshards train", make_parser(import_module("bioshards.train.config.train_job").TrainJob)
    yield "bioshards train plot", make_parser(import_module("bioshards.train.__main__").PlotOptions)
