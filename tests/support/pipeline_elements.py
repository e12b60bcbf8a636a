"""Run a graph in this process, and record the elements of all its PCollections."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any
from unittest import mock

import apache_beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pipeline import PipelineVisitor

from bioshards.corpus.output.work_files import read_report
from bioshards.pipelines import cli
from bioshards.pipelines.context import JobSpec
from bioshards.pipelines.execution import executor, local_runner
from bioshards.pipelines.run import Build, Session
from bioshards.pipelines.steps import Job


def run_recorded(path: Path, *arguments: object) -> None:
    """Run ``beam run``, and write the elements of its graph to a file."""

    def execute(session: Session, job: Job, spec: JobSpec, build: Build, *_: object) -> Any:
        _run_and_record(build, path)
        return read_report(job.storage, job.output.result_path, [])

    with mock.patch.object(Session, "execute", execute):
        assert cli.main(["run", *map(str, arguments)]) == 0


def _run_and_record(build: Build, path: Path) -> None:
    collections: list[Any] = []

    class CollectionVisitor(PipelineVisitor):  # type: ignore[misc]
        def visit_transform(self, node: Any) -> None:
            collections.extend(node.outputs.values())

    options = PipelineOptions([])
    local_runner.set_workers(options, 1)
    root = executor.make_pipeline(local_runner.make_runner(options), options)
    build(root)
    root.visit(CollectionVisitor())
    for number, collection in enumerate(collections):
        collection | f"Note {number}" >> apache_beam.Map(functools.partial(_append_repr, str(path)))
    root.run().wait_until_finish()


def _append_repr(path: str, element: object) -> None:
    with open(path, "a") as file:
        file.write(f"{element!r}\n")
