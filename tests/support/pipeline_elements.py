"""Run a graph in this process, and record the elements of all its PCollections."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apache_beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pipeline import PipelineVisitor

from bioshards.pipelines.execution import executor, local_runner


def run_and_record(build: Callable[[apache_beam.Pipeline], None], path: Path) -> dict[str, int]:
    """Run a graph, write its elements to a file, and return its counters."""
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
    result = root.run()
    result.wait_until_finish()
    return {counter.key.metric.name: counter.committed for counter in result.metrics().query()["counters"]}


def _append_repr(path: str, element: object) -> None:
    with open(path, "a") as file:
        file.write(f"{element!r}\n")
