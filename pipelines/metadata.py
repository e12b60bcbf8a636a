"""What Dataflow is told of a flex template: every option of a pipeline, described and with what it takes.

Made from the pipeline's own option parser, so that a form, ``gcloud`` and ``beam run`` say and take the
same.  The fields are those of TemplateMetadata and ParameterMetadata in Dataflow's API, v1b3
(google.cloud.dataflow_v1beta3.types.templates).  What comes out is in docker/metadata/, written by
``python -m bioshards.pipelines.metadata docker/metadata``.

A template's parameters are strings with names of letters and underscores, so that ``--max-rejected 0.01`` is
``max_rejected=0.01``, ``--titles`` is ``titles=true``, ``--no-titles`` is ``titles=false``, and ``--input A
--input B`` is ``input=A;B``.  launch.py is the way back.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any, Final

from bioshards.corpus.download.named import PARTS

from .options import Parser
from .values import Value

SEPARATOR: Final = ";"
"""Between the values of an option that may be given several times.  A comma may be part of one."""
LEFT_OUT: Final = ("help", "workers", "dry_run")
"""Options that say nothing where a job is started: ``--workers`` is of this machine, and a dry run starts
none."""
REQUIRED: Final = {
    "fetch": ("input", "mirror"),
    "pubmed_to_shards": ("input", "output"),
    "pmc_to_shards": ("input", "output"),
    "shards_to_words": ("input", "output"),
    "shards_to_pretraining": ("input", "output", "vocab"),
}
"""Parameters that a job on Dataflow cannot be without."""

_STORED: Final = rf"(gs|s3)://[a-z0-9][a-z0-9._-]+[a-z0-9](/[^{SEPARATOR}\r\n]*)?"
_NAMED: Final = rf"({'|'.join(PARTS)}):[^{SEPARATOR}\r\n]*"
_PATTERNS: Final = {
    "DIR": _STORED,
    "FILE": _STORED,
    "NAME": _NAMED,
    "PATH": f"{_STORED}|{_NAMED}",
    "TEXT": r"[^\r\n]*",
}
"""What a parameter without a type of its own takes, by the word that stands for it in ``--help``: workers
elsewhere see no local paths."""


def parser_of(pipeline: str) -> Parser:
    """The options of a pipeline, from the module of its name."""
    parser: Parser = importlib.import_module(f".{pipeline}", __package__).parser()
    return parser


def parameters_of(parser: Parser) -> dict[str, argparse.Action]:
    """The options that a template has as parameters, by the parameters' names."""
    actions = {option(action).replace("-", "_"): action for action in parser._actions}
    return {name: action for name, action in actions.items() if name not in LEFT_OUT}


def option(action: argparse.Action) -> str:
    """An option's long name without its dashes; that of ``--titles`` and ``--no-titles`` is ``titles``."""
    return next(name[2:] for name in action.option_strings if name.startswith("--"))


def is_flag(action: argparse.Action) -> bool:
    """Is the option one without a value?"""
    return action.nargs == 0


def is_several(action: argparse.Action) -> bool:
    """May the option be given several times?"""
    return isinstance(action, argparse._AppendAction)


def metadata(pipeline: str) -> dict[str, Any]:
    """The TemplateMetadata of a pipeline, as plain JSON."""
    parser = parser_of(pipeline)
    groups = {id(action): group.title for group in parser._action_groups for action in group._group_actions}
    return {
        "name": f"bioshards {pipeline}",
        "description": f"{_one_line(parser.description)} Folders and files are on gs:// or s3://.",
        "parameters": [
            _parameter(name, action, groups[id(action)] or "", name in REQUIRED[pipeline])
            for name, action in parameters_of(parser).items()
        ],
    }


def _parameter(name: str, action: argparse.Action, group: str, required: bool) -> dict[str, Any]:
    kind, default = _kind(action), _default(action)
    said = _one_line((action.help or "") % vars(action))
    if required:  # a default is what a job elsewhere cannot have
        said = re.sub(r" \(default: [^()]*\)$", "", said)
    parameter = {
        "name": name,
        "label": name.replace("_", " ").capitalize(),
        "helpText": said.replace("given several times", f"several, with {SEPARATOR} between them"),
        "groupName": group[:1].upper() + group[1:],
        "isOptional": not required,
        "paramType": kind,
        "regexes": [f"^({pattern(action)})$"],
    }
    if default is not None:
        parameter["defaultValue"] = default
    if kind == "ENUM":
        parameter["enumOptions"] = [{"value": choice} for choice in action.choices or ()]
    return parameter


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _kind(action: argparse.Action) -> str:
    """The ParameterType, a text where there is no default: a form fills in a type's own one (false, 0), and
    that would overrule what a preset says."""
    if _default(action) is None:
        return "TEXT"
    if is_flag(action):
        return "BOOLEAN"
    if action.choices:
        return "ENUM"
    return "NUMBER" if isinstance(action.default, int | float) else "TEXT"


def _default(action: argparse.Action) -> str | None:
    default = action.default
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ",".join(default)
    return None if default is None else str(default)


def pattern(action: argparse.Action) -> str:
    """What the parameter takes, as a regular expression that Java, RE2 and Python read alike."""
    if is_flag(action):
        return "true|false"
    one = _pattern_of_one(action)
    return f"({one})({SEPARATOR}({one}))*" if is_several(action) else one


def _pattern_of_one(action: argparse.Action) -> str:
    if action.choices:
        return "|".join(action.choices)
    if isinstance(action.type, Value):
        return action.type.pattern
    if action.type is int:
        return "[1-9][0-9]{0,17}"
    return _PATTERNS[str(action.metavar)]


def main() -> None:
    """Write the metadata of all pipelines into the folder that is given."""
    for pipeline in REQUIRED:
        text = json.dumps(metadata(pipeline), indent=2, ensure_ascii=False)
        Path(sys.argv[1], f"{pipeline}.json").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
