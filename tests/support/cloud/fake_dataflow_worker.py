"""The worker of the fake Dataflow: it runs a staged pipeline with the package of the wheel.

    python fake_dataflow_worker.py PIPELINE.pb OPTIONS.json

It prints, as JSON, how the job ended and where the package was imported from.
"""

from __future__ import annotations

import json
import sys
import traceback
from pathlib import Path


def main(pipeline: str, options: str) -> None:
    from apache_beam.io.filesystems import FileSystems
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.portability import python_urns
    from apache_beam.portability.api import beam_runner_api_pb2
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    pipeline_proto = beam_runner_api_pb2.Pipeline.FromString(Path(pipeline).read_bytes())
    for environment in pipeline_proto.components.environments.values():  # from a container to this process
        environment.urn, environment.payload = python_urns.EMBEDDED_PYTHON, b""
        del environment.dependencies[:]
    pipeline_options = PipelineOptions.from_dictionary(json.loads(Path(options).read_text()))
    FileSystems.set_options(pipeline_options)
    error = ""
    try:
        FnApiRunner().run_via_runner_api(pipeline_proto, pipeline_options).wait_until_finish()
    except Exception:
        error = traceback.format_exc()
    package_files = [module.__file__ for name, module in sys.modules.items() if name.startswith("bioshards.")]
    print(
        json.dumps(
            {"error": error, "from": sorted({str(file).split("/bioshards/")[0] for file in package_files})}
        )
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
