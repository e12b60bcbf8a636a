"""``beam template``: a job to be started later on Dataflow, by people who have nothing of ours installed.

A classic template is a job as it is: its options, and the inputs that were found when it was made.  A flex
template is an image (docker/) with a form; the job is made when it is started, of the inputs that are there
then.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any, Final

from bioshards.corpus.exit_codes import OK, USAGE_ERROR

from . import dataflow
from .metadata import REQUIRED, metadata
from .options import Parser, UsageError
from .starting import FILE_OPTIONS, absolute, where

DESCRIPTION: Final = """\
Write a template, from which Google Cloud Dataflow starts jobs.

Without --image a classic one: the job that beam run {0} would start with the same options, as JSON. Its
inputs are frozen: files that come later are not in it, so that it is of use to run a job again or from
elsewhere, not to update an output. Making it begins the output: a manifest.json of before is taken away.
Make it anew if another run has written the output since.

With --image a flex one: the image to start, what its form asks for, and our defaults for workers. Each start
finds its inputs anew; options are given then."""
EPILOG: Final = """\
  beam template {0} --out gs://BUCKET/{0}.json {2} \\
      --project=P --region=R --temp_location=gs://BUCKET/tmp
  gcloud dataflow jobs run NAME --region=R --gcs-location=gs://BUCKET/{0}.json

  beam template {0} --out gs://BUCKET/{0}.json --image R-docker.pkg.dev/P/REPOSITORY/bioshards-{1}:TAG
  gcloud dataflow flex-template run NAME --region=R --template-file-gcs-location=gs://BUCKET/{0}.json \\
      --staging-location=gs://BUCKET/tmp --temp-location=gs://BUCKET/tmp \\
      --parameters='^~^{3}'"""

_IMAGE: Final = re.compile(r"[a-z0-9][\w.-]*(:[0-9]+)?(/[a-z0-9][\w.-]*)+(:[\w.-]+)?(@sha256:[0-9a-f]{64})?")


def main(pipeline: str, arguments: Sequence[str]) -> int:
    """Run ``beam template PIPELINE`` with these arguments; returns the exit code."""
    parser = _parser(pipeline)
    try:
        options, rest = parser.parse_known_args(list(arguments))
        if not options.out:
            raise UsageError("--out FILE is missing: the template to write")
        out = absolute(options.out)
        if "://" in out and not out.startswith("gs://"):
            raise UsageError(f"--out {out}: Dataflow reads templates on gs:// alone")
        if options.image:
            return _flex(pipeline, parser, out, options.image, rest)
        return _classic(pipeline, parser, out, rest)
    except SystemExit as left:  # --help
        return int(left.code or 0)
    except UsageError as error:
        return _say(f"{error}. See beam template {pipeline} --help")
    except OSError as error:
        return _say(f"--out {options.out} cannot be written: {error.strerror or error}")


def _say(message: str) -> int:
    print(f"beam: {message}", file=sys.stderr)
    return USAGE_ERROR


def _parser(pipeline: str) -> Parser:
    parser = Parser(f"beam template {pipeline}", DESCRIPTION.format(pipeline))
    given = {name: f"gs://BUCKET/{name}" for name in REQUIRED[pipeline]}
    if pipeline == "fetch":
        given["input"] = "pubmed:"
    parser.epilog = EPILOG.format(
        pipeline,
        pipeline.replace("_", "-"),
        " ".join(f"--{name}={value}" for name, value in given.items()),
        "~".join(f"{name}={value}" for name, value in given.items()),
    )
    parser.add_argument("--out", metavar="FILE", help="the template to write, local or gs://")
    parser.add_argument(
        "--image",
        metavar="NAME",
        help="of the launcher of this pipeline, as it was pushed (docker/README.md); workers run it too",
    )
    return parser


def _classic(pipeline: str, parser: Parser, out: str, rest: Sequence[str]) -> int:
    """The job itself, which Beam writes instead of starting it."""
    from . import running

    runner = [] if any(word.startswith("--runner") for word in rest) else ["--runner=DataflowRunner"]
    if not dataflow.chosen([*rest, *runner]):
        raise UsageError("a template is Dataflow's: leave --runner out")
    files = where(parser, [word for word in rest if word.startswith(FILE_OPTIONS)], 1, [out]).files
    if "://" not in out:
        os.makedirs(os.path.dirname(out), exist_ok=True)  # Beam would wait for the folder to come
    before = files.find(out)
    code = running.main(pipeline, [*rest, *runner, *_staged(out, rest), f"--template_location={out}"])
    if code == OK and "--dry-run" not in rest and files.find(out) == before:
        return _say(f"no template is written to {out}: no job was made (see above)")
    return code


def _staged(out: str, rest: Sequence[str]) -> list[str]:
    """Where what the job is made of lies, if that is not said: beside the template, for as long as it.

    Beam would take the temporary folder, which people let a rule of the bucket empty.
    """
    given = any(word.startswith("--staging_location") for word in rest)
    return [] if given or "://" not in out else [f"--staging_location={out.rpartition('/')[0]}/staged"]


def _flex(pipeline: str, parser: Parser, out: str, image: str, rest: Sequence[str]) -> int:
    """The ContainerSpec of Dataflow's API, v1b3."""
    for word in rest:
        if word.startswith("-") and not word.startswith(FILE_OPTIONS):
            raise UsageError(f"{word} says nothing with --image: it is given when the template is started")
    if not _IMAGE.fullmatch(image):
        raise UsageError(f"--image {image} is no image like R-docker.pkg.dev/P/REPOSITORY/NAME:TAG")
    ours = f"bioshards-{pipeline.replace('_', '-')}"
    if (name := re.split("[:@]", image.rpartition("/")[2])[0]) != ours and name.startswith("bioshards-"):
        raise UsageError(f"--image {image} does not start {pipeline}: {ours} does (docker/README.md)")
    where(parser, rest, 1, [out]).files.write_json(out, container_spec(pipeline, image))
    at = out if "://" in out else f"gs://BUCKET/... (a copy of {out})"
    given = "~".join(f"{name}=..." for name in REQUIRED[pipeline])
    print(
        f"template: {out}\nTo start it: gcloud dataflow flex-template run NAME --region=REGION "
        f"--template-file-gcs-location={at} --staging-location=gs://BUCKET/tmp "
        f"--temp-location=gs://BUCKET/tmp --parameters='^~^{given}'"
    )
    return OK


def container_spec(pipeline: str, image: str) -> dict[str, Any]:
    """A flex template, as plain JSON.

    How many workers there are is not in it: the job says so itself when it has found its inputs.
    """
    return {
        "image": image,
        "sdkInfo": {"language": "PYTHON"},
        "metadata": metadata(pipeline),
        "defaultEnvironment": {
            "sdkContainerImage": image,
            "machineType": dataflow.DEFAULTS.machine_type,
            "diskSizeGb": dataflow.DEFAULTS.disk_size_gb,
        },
    }
