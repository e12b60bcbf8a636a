"""Start the pipeline of a flex template: what Dataflow's launcher says becomes a ``beam run``.

The launcher calls docker/launch.py with a word for each parameter, ``--max_rejected=0.01``,
``--titles=false``, ``--input=gs://A;gs://B`` (metadata.py), among options of Beam's own: ``--runner``,
``--project``, ``--region``, ``--temp_location``, ``--template_location`` (where it waits for the job) and
others.  Which pipeline it is, the image says.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Final

from bioshards.corpus.exit_codes import USAGE_ERROR

from . import cli, metadata
from .options import Parser, UsageError

PIPELINE: Final = "BIOSHARDS_PIPELINE"
"""The variable of the environment with the pipeline's name; docker/Dockerfile sets it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the pipeline of this image; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    pipeline = os.environ.get(PIPELINE, "")
    try:
        if pipeline not in cli.PIPELINES:
            raise UsageError(
                f"{PIPELINE} is {pipeline or 'not set'}; it is one of {', '.join(cli.PIPELINES)}"
            )
        own, others = own_options(metadata.parser_of(pipeline), words)
        return cli.main(["run", pipeline, *own, *_known_to_beam(others)])
    except UsageError as error:
        print(f"launch: {error}", file=sys.stderr)
        return USAGE_ERROR


def own_options(parser: Parser, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The pipeline's own options, as ``beam run`` takes them, and the words that are not parameters.

    Raises:
        UsageError: a flag that is neither true nor false.
    """
    parameters = metadata.parameters_of(parser)
    own: list[str] = []
    others: list[str] = []
    for word in words:
        name, given, value = word.removeprefix("--").partition("=")
        action = parameters.get(name)
        if action is None or not given:
            others.append(word)
        elif metadata.is_flag(action):
            own += _flag(action.option_strings, name, value)
        elif metadata.is_several(action):
            own += [
                f"--{metadata.option(action)}={one.strip()}"
                for one in value.split(metadata.SEPARATOR)
                if one.strip()
            ]
        else:
            own.append(f"--{metadata.option(action)}={value}")
    return own, others


def _flag(options: Sequence[str], name: str, value: str) -> list[str]:
    """``--titles`` or ``--no-titles``; nothing where there is no option that says no."""
    if value.lower() not in ("true", "false"):
        raise UsageError(f"{name}={value} is neither true nor false")
    return list(options[:1] if value.lower() == "true" else options[1:])


def _known_to_beam(words: Sequence[str]) -> list[str]:
    """The words without options that Beam does not know, each of which is said.

    Dataflow has refused parameters that the template does not have, so that these come from a launcher that
    is newer or older than our Beam, and a job need not fail for them.
    """
    from apache_beam.options.pipeline_options import PipelineOptions

    options = PipelineOptions(list(words))
    unknown = set(options.get_all_options(retain_unknown_options=True)) - set(options.get_all_options())
    known = [word for word in words if word.removeprefix("--").partition("=")[0] not in unknown]
    for word in words:
        if word not in known:
            print(f"launch: {word} is passed over: Beam has no such option", file=sys.stderr)
    return known
