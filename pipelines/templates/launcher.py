"""Start the pipeline of a flex template: what Dataflow's launcher says becomes a ``beam run``.

The launcher calls docker/launch.py with a word for each parameter, ``--max_rejected=0.01``,
``--titles=false``, ``--input=gs://A;gs://B`` (flex_metadata.py), among options of Beam's own: ``--runner``,
``--project``, ``--region``, ``--temp_location``, ``--template_location`` (where it waits for the job) and
others.  Which pipeline it is, the image says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

from bioshards.corpus.errors import UsageError
from bioshards.corpus.exit_codes import USAGE_ERROR
from bioshards.pipelines.command_runner import run_command
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.registry import PIPELINES, load_parser

from . import flex_metadata

PIPELINE_VARIABLE: Final = "BIOSHARDS_PIPELINE"
"""The variable of the environment with the pipeline's name; docker/Dockerfile sets it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the pipeline of this image; returns the exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    pipeline = os.environ.get(PIPELINE_VARIABLE, "")
    try:
        if pipeline not in PIPELINES:
            raise UsageError(
                f"{PIPELINE_VARIABLE} is {pipeline or 'not set'}; it is one of {', '.join(PIPELINES)}"
            )
        own_args, beam_args = split_own_args(load_parser(pipeline), args)
        return run_command(pipeline, [*own_args, *_drop_unknown_options(beam_args)])
    except UsageError as error:
        print(f"launch: {error}", file=sys.stderr)
        return USAGE_ERROR


def split_own_args(parser: Parser, args: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split arguments into options of ``beam run`` and those that are no parameters.

    Raises:
        UsageError: a flag that is neither true nor false.
    """
    parameters = flex_metadata.list_parameters(parser)
    own_args: list[str] = []
    other_args: list[str] = []
    for arg in args:
        name, separator, value = arg.removeprefix("--").partition("=")
        action = parameters.get(name)
        if action is None or not separator:
            other_args.append(arg)
        elif flex_metadata.is_flag(action):
            own_args += _format_flag(action.option_strings, name, value)
        elif flex_metadata.is_repeatable(action):
            own_args += [
                f"--{flex_metadata.option_name(action)}={item.strip()}"
                for item in value.split(flex_metadata.VALUE_SEPARATOR)
                if item.strip()
            ]
        else:
            own_args.append(f"--{flex_metadata.option_name(action)}={value}")
    return own_args, other_args


def _format_flag(option_strings: Sequence[str], name: str, value: str) -> list[str]:
    """``--titles`` or ``--no-titles``; nothing where there is no option that says no."""
    if value.lower() not in ("true", "false"):
        raise UsageError(f"{name}={value} is neither true nor false")
    return list(option_strings[:1] if value.lower() == "true" else option_strings[1:])


def _drop_unknown_options(beam_args: Sequence[str]) -> list[str]:
    """Remove options that Beam does not know, with a message on each.

    Dataflow has refused parameters that the template does not have, so that these come from a launcher that
    is newer or older than our Beam, and a job need not fail for them.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    options = PipelineOptions(list(beam_args))
    unknown_names = set(options.get_all_options(retain_unknown_options=True)) - set(options.get_all_options())
    known_args = [arg for arg in beam_args if arg.removeprefix("--").partition("=")[0] not in unknown_names]
    for arg in beam_args:
        if arg not in known_args:
            print(f"launch: {arg} is passed over: Beam has no such option", file=sys.stderr)
    return known_args
