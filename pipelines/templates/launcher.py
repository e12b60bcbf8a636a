"""Start the pipeline of a flex template: Dataflow's launcher calls docker/launch.py with
``--arguments=pubmed_to_shards --input=gs://A ...`` (template_writer.py) among options of Beam: ``--runner``,
``--project``, ``--template_location`` (where it waits for the job) and others.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence

from bioshards.corpus.errors import UsageError
from bioshards.corpus.exit_codes import USAGE_ERROR
from bioshards.pipelines.command_runner import run_command
from bioshards.pipelines.registry import PIPELINES
from bioshards.pipelines.templates.template_writer import ARGUMENTS_PARAMETER


def main(argv: Sequence[str] | None = None) -> int:
    """Run the pipeline that ``--arguments`` names; returns the exit code."""
    prefix = f"--{ARGUMENTS_PARAMETER}="
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        own_args = [word for arg in args if arg.startswith(prefix) for word in _split(arg[len(prefix) :])]
        if not own_args or own_args[0] not in PIPELINES:
            raise UsageError(
                f"{ARGUMENTS_PARAMETER} begins with {own_args[0] if own_args else 'nothing'}; it begins with "
                f"one of {', '.join(PIPELINES)}, and the pipeline's options follow"
            )
        beam_args = _drop_unknown_options([arg for arg in args if not arg.startswith(prefix)])
        return run_command(own_args[0], [*own_args[1:], *beam_args])
    except UsageError as error:
        print(f"launch: {error}", file=sys.stderr)
        return USAGE_ERROR


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"{ARGUMENTS_PARAMETER} cannot be split into words ({error}): {text}") from error


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
