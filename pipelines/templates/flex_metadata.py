"""What Dataflow is told of a flex template: every option of a pipeline, described and with what it takes.

Made from the pipeline's own option parser, so that a form, ``gcloud`` and ``beam run`` say and take the
same.  The fields are those of TemplateMetadata and ParameterMetadata in Dataflow's API, v1b3
(google.cloud.dataflow_v1beta3.types.templates).  What comes out is in docker/metadata/, written by
``python -m bioshards.pipelines.templates.flex_metadata docker/metadata``.

A template's parameters are strings with names of letters and underscores, so that ``--max-rejected 0.01`` is
``max_rejected=0.01``, ``--titles`` is ``titles=true``, ``--no-titles`` is ``titles=false``, and ``--input A
--input B`` is ``input=A;B``.  launcher.py is the way back.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from bioshards.corpus.download.source_registry import SOURCES
from bioshards.pipelines.options.argument_types import PatternType
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.registry import load_parser

VALUE_SEPARATOR: Final = ";"
"""Separates the values of a repeatable option.  A comma may be part of a value."""
EXCLUDED_PARAMETERS: Final = ("help", "workers", "dry_run")
"""Options that say nothing where a job is started: ``--workers`` is of this machine, and a dry run starts
none."""
REQUIRED_PARAMETERS: Final = {
    "fetch": ("input", "mirror"),
    "pubmed_to_shards": ("input", "output"),
    "pmc_to_shards": ("input", "output"),
    "shards_to_words": ("input", "output"),
    "shards_to_pretraining": ("input", "output", "vocab"),
}
"""Parameters that a job on Dataflow cannot be without."""

_REMOTE_PATH_PATTERN: Final = rf"(gs|s3)://[a-z0-9][a-z0-9._-]+[a-z0-9](/[^{VALUE_SEPARATOR}\r\n]*)?"
_SOURCE_SPEC_PATTERN: Final = rf"({'|'.join(SOURCES)}):[^{VALUE_SEPARATOR}\r\n]*"
_PATTERNS_BY_METAVAR: Final = {
    "DIR": _REMOTE_PATH_PATTERN,
    "FILE": _REMOTE_PATH_PATTERN,
    "NAME": _SOURCE_SPEC_PATTERN,
    "PATH": f"{_REMOTE_PATH_PATTERN}|{_SOURCE_SPEC_PATTERN}",
    "TEXT": r"[^\r\n]*",
}
"""What a parameter without a type of its own takes, by the word that stands for it in ``--help``: workers
elsewhere see no local paths."""


def list_parameters(parser: Parser) -> dict[str, argparse.Action]:
    """Return the options that are template parameters, by parameter name."""
    actions = {option_name(action).replace("-", "_"): action for action in parser._actions}
    return {name: action for name, action in actions.items() if name not in EXCLUDED_PARAMETERS}


def option_name(action: argparse.Action) -> str:
    """Return an option's long name without its dashes; ``titles`` for ``--titles`` and ``--no-titles``."""
    return next(name[2:] for name in action.option_strings if name.startswith("--"))


def is_flag(action: argparse.Action) -> bool:
    """Return True if the option takes no value."""
    return action.nargs == 0


def is_repeatable(action: argparse.Action) -> bool:
    """Return True if the option is repeatable."""
    return isinstance(action, argparse._AppendAction)


def make_metadata(pipeline: str) -> dict[str, Any]:
    """Build the TemplateMetadata of a pipeline, as plain JSON."""
    parser = load_parser(pipeline)
    groups = {id(action): group.title for group in parser._action_groups for action in group._group_actions}
    return {
        "name": f"bioshards {pipeline}",
        "description": f"{_join_lines(parser.description)} Folders and files are on gs:// or s3://.",
        "parameters": [
            _make_parameter(name, action, groups[id(action)] or "", name in REQUIRED_PARAMETERS[pipeline])
            for name, action in list_parameters(parser).items()
        ],
    }


def _make_parameter(name: str, action: argparse.Action, group: str, required: bool) -> dict[str, Any]:
    parameter_type, default = _choose_type(action), _format_default(action)
    help_text = _join_lines((action.help or "") % vars(action))
    if required:  # a default is what a job elsewhere cannot have
        help_text = re.sub(r" \(default: [^()]*\)$", "", help_text)
    parameter = {
        "name": name,
        "label": name.replace("_", " ").capitalize(),
        "helpText": help_text.replace("repeatable", f"several are separated by {VALUE_SEPARATOR}"),
        "groupName": group[:1].upper() + group[1:],
        "isOptional": not required,
        "paramType": parameter_type,
        "regexes": [f"^({make_pattern(action)})$"],
    }
    if default is not None:
        parameter["defaultValue"] = default
    if parameter_type == "ENUM":
        parameter["enumOptions"] = [{"value": choice} for choice in action.choices or ()]
    return parameter


def _join_lines(text: str | None) -> str:
    return " ".join((text or "").split())


def _choose_type(action: argparse.Action) -> str:
    """Return the ParameterType; TEXT where there is no default: forms fill in a type's own (false, 0), and
    that would overrule what a preset says."""
    if _format_default(action) is None:
        return "TEXT"
    if is_flag(action):
        return "BOOLEAN"
    if action.choices:
        return "ENUM"
    return "NUMBER" if isinstance(action.default, int | float) else "TEXT"


def _format_default(action: argparse.Action) -> str | None:
    default = action.default
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ",".join(default)
    return None if default is None else str(default)


def make_pattern(action: argparse.Action) -> str:
    """Return a regular expression of valid values that Java, RE2 and Python read alike."""
    if is_flag(action):
        return "true|false"
    item_pattern = _make_item_pattern(action)
    return f"({item_pattern})({VALUE_SEPARATOR}({item_pattern}))*" if is_repeatable(action) else item_pattern


def _make_item_pattern(action: argparse.Action) -> str:
    if action.choices:
        return "|".join(action.choices)
    if isinstance(action.type, PatternType):
        return action.type.pattern
    if action.type is int:
        return "[1-9][0-9]{0,17}"
    return _PATTERNS_BY_METAVAR[str(action.metavar)]


def main() -> None:
    """Write the metadata of all pipelines into the folder that is given."""
    for pipeline in REQUIRED_PARAMETERS:
        text = json.dumps(make_metadata(pipeline), indent=2, ensure_ascii=False)
        Path(sys.argv[1], f"{pipeline}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
