"""``beam template``: a job to be started later on Dataflow, by people who have nothing of ours installed.

A classic template is a job as it is: its options, and the inputs that were found when it was made.  A flex
template is an image (docker/); the job is made when it is started, of the inputs that are there then.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from bioshards.corpus.errors import UsageError
from bioshards.corpus.exit_codes import OK
from bioshards.corpus.ui.options import Option
from bioshards.pipelines import command_runner
from bioshards.pipelines.dataflow import settings
from bioshards.pipelines.execution.session import (
    FILESYSTEM_OPTION_PREFIXES,
    make_absolute,
    make_context,
    translate_output_errors,
)
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.registry import load_parser

ARGUMENTS_PARAMETER: Final = "arguments"
"""The parameter of flex templates: what follows ``beam run``."""
_REQUIRED_OPTIONS: Final = {
    "fetch": ("input", "mirror"),
    "pubmed_to_shards": ("input", "output"),
    "pmc_to_shards": ("input", "output"),
    "text_to_shards": ("input", "output"),
    "shards_to_words": ("input", "output"),
    "shards_to_pretraining": ("input", "output", "vocab"),
}
"""Options that a job on Dataflow cannot be without."""

DESCRIPTION: Final = """\
Write a template, from which Google Cloud Dataflow starts jobs.

Without --image a classic one: the job that beam run {0} would start with the same options, as JSON. Its
inputs are frozen: files that come later are not in it, so that it is of use to run a job again or from
elsewhere, not to update an output. Making it begins the output: a manifest.json of before is taken away.
Make it anew if another run has written the output since.

With --image a flex one: the image to start, and our defaults for workers. Each start finds its inputs anew;
options are given then, as its parameter "arguments"."""
EPILOG: Final = """\
  beam template {0} --template-file gs://BUCKET/{0}.json {1} \\
      --project=P --region=R --temp_location=gs://BUCKET/tmp --extra_package=WHEEL
  gcloud dataflow jobs run NAME --region=R --gcs-location=gs://BUCKET/{0}.json

  beam template {0} --template-file gs://BUCKET/{0}.json \\
      --image R-docker.pkg.dev/P/REPOSITORY/bioshards-launcher:TAG
  gcloud dataflow flex-template run NAME --region=R --template-file-gcs-location=gs://BUCKET/{0}.json \\
      --staging-location=gs://BUCKET/tmp --temp-location=gs://BUCKET/tmp \\
      --parameters='^~^{2}={0} {1}'"""

_IMAGE_PATTERN: Final = re.compile(
    r"[a-z0-9][\w.-]*(:[0-9]+)?(/[a-z0-9][\w.-]*)+(:[\w.-]+)?(@sha256:[0-9a-f]{64})?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateOptions:
    """Options of ``beam template``."""

    template_file: Annotated[str | None, Option("the template to write, local or gs://", metavar="FILE")] = (
        None
    )
    image: Annotated[
        str | None,
        Option("of the launcher, as it was pushed (docker/README.md); workers run it too", metavar="NAME"),
    ] = None


def run_template_command(pipeline: str, argv: Sequence[str]) -> int:
    """Run ``beam template PIPELINE`` with these arguments; returns the exit code."""
    parser = make_parser(pipeline)
    return command_runner.run_reported(parser, lambda: _write_template(pipeline, parser, argv))


def _write_template(pipeline: str, parser: Parser[TemplateOptions], argv: Sequence[str]) -> int:
    options, run_args = parser.parse_known_options(argv)
    if not options.template_file:
        raise UsageError("--template-file FILE is missing: the template to write")
    template_path = make_absolute(options.template_file)
    if "://" in template_path and not template_path.startswith("gs://"):
        raise UsageError(f"--template-file {template_path}: Dataflow reads templates on gs:// alone")
    with translate_output_errors(options.template_file, "--template-file"):
        if options.image:
            return _write_flex_template(pipeline, parser, template_path, options.image, run_args)
        return _write_classic_template(pipeline, parser, template_path, run_args)


def make_parser(pipeline: str) -> Parser[TemplateOptions]:
    """Return the options of ``beam template``."""
    epilog = EPILOG.format(pipeline, _make_example_options(pipeline), ARGUMENTS_PARAMETER)
    return Parser(f"beam template {pipeline}", DESCRIPTION.format(pipeline), TemplateOptions, epilog)


def _make_example_options(pipeline: str) -> str:
    """Return the required options as words of a command line."""
    return " ".join(
        f"--{name}={'pubmed:' if (pipeline, name) == ('fetch', 'input') else f'gs://BUCKET/{name}'}"
        for name in _REQUIRED_OPTIONS[pipeline]
    )


def _write_classic_template(
    pipeline: str, parser: Parser[TemplateOptions], template_path: str, run_args: Sequence[str]
) -> int:
    """Run the pipeline with ``--template_location``, so that Beam writes the job instead of starting it."""
    runner_args = [] if any(arg.startswith("--runner") for arg in run_args) else ["--runner=DataflowRunner"]
    if not settings.is_dataflow_runner([*run_args, *runner_args]):
        raise UsageError("a template is Dataflow's: leave --runner out")
    storage = make_context(
        parser, [arg for arg in run_args if arg.startswith(FILESYSTEM_OPTION_PREFIXES)], [template_path]
    ).storage
    if "://" not in template_path:
        os.makedirs(os.path.dirname(template_path), exist_ok=True)  # Beam would wait for the folder to come
    files_before = storage.glob(template_path)
    exit_code = command_runner.run_command(
        pipeline,
        [
            *run_args,
            *runner_args,
            *_make_staging_option(template_path, run_args),
            f"--template_location={template_path}",
        ],
    )
    if exit_code == OK and "--dry-run" not in run_args and storage.glob(template_path) == files_before:
        raise UsageError(f"no template is written to {template_path}: no job was made (see above)")
    return exit_code


def _make_staging_option(template_path: str, run_args: Sequence[str]) -> list[str]:
    """Where what the job is made of lies, if that is not said: beside the template, for as long as it.

    Beam would take the temporary folder, which people let a rule of the bucket empty.
    """
    is_given = any(arg.startswith("--staging_location") for arg in run_args)
    return (
        []
        if is_given or "://" not in template_path
        else [f"--staging_location={template_path.rpartition('/')[0]}/staged"]
    )


def _write_flex_template(
    pipeline: str, parser: Parser[TemplateOptions], template_path: str, image: str, beam_args: Sequence[str]
) -> int:
    """Write the ContainerSpec of Dataflow's API, v1b3."""
    for arg in beam_args:
        if arg.startswith("-") and not arg.startswith(FILESYSTEM_OPTION_PREFIXES):
            raise UsageError(f"{arg} says nothing with --image: it is given when the template is started")
    if not _IMAGE_PATTERN.fullmatch(image):
        raise UsageError(f"--image {image} is no image like R-docker.pkg.dev/P/REPOSITORY/NAME:TAG")
    if re.split("[:@]", image.rpartition("/")[2])[0] in ("bioshards-worker", "bioshards-trainer"):
        raise UsageError(
            f"--image {image} does not start pipelines: bioshards-launcher does (docker/README.md)"
        )
    make_context(parser, beam_args, [template_path]).storage.write_json(
        template_path, make_container_spec(pipeline, image)
    )
    template_location = (
        template_path if "://" in template_path else f"gs://BUCKET/... (a copy of {template_path})"
    )
    print(
        f"template: {template_path}\nTo start it: gcloud dataflow flex-template run NAME --region=REGION "
        f"--template-file-gcs-location={template_location} --staging-location=gs://BUCKET/tmp "
        f"--temp-location=gs://BUCKET/tmp "
        f"--parameters='^~^{ARGUMENTS_PARAMETER}={pipeline} {_make_example_options(pipeline)}'"
    )
    return OK


def make_container_spec(pipeline: str, image: str) -> dict[str, Any]:
    """Build the ContainerSpec of a flex template, as plain JSON.

    How many workers there are is not in it: the job says so itself when it has found its inputs.
    """
    return {
        "image": image,
        "sdkInfo": {"language": "PYTHON"},
        "metadata": _make_metadata(pipeline),
        "defaultEnvironment": {
            "sdkContainerImage": image,
            "machineType": settings.DEFAULTS.machine_type,
            "diskSizeGb": settings.DEFAULTS.disk_size_gb,
        },
    }


def _make_metadata(pipeline: str) -> dict[str, Any]:
    """Build the TemplateMetadata of Dataflow's API, v1b3, as plain JSON."""
    parser = load_parser(pipeline)
    return {
        "name": f"bioshards {pipeline}",
        "description": " ".join((parser.description or "").split()),
        "parameters": [
            {
                "name": ARGUMENTS_PARAMETER,
                "label": f"Arguments of beam run, beginning with {pipeline}",
                "helpText": f"such as: {pipeline} {_make_example_options(pipeline)}. Folders and files are "
                f"on gs://, s3:// or az://. {parser.format_help()}",
            }
        ],
    }
