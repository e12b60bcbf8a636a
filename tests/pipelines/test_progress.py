"""Tests of the progress lines of runs."""

from __future__ import annotations

import io
from pathlib import Path

from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.pubmed.discovery import source_from_file
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import FileInfo
from bioshards.pipelines.execution.progress_monitor import ShardsProgress
from bioshards.pipelines.inputs.run_inputs import RunInputs

FILES = LocalStorage()


def test_replaced_file_counts_once(tmp_path: Path) -> None:
    output_dir = OutputDir(str(tmp_path))

    def write_report(output_name: str) -> None:
        FILES.write_json(
            output_dir.staged_path(output_name, "json"), {"seconds": 2.0, "result": {"records": 5}}
        )

    sources = [source_from_file(FileInfo(f"/in/{name}.xml", 1, "")) for name in ("a", "b")]
    for output_name in ("a-00000000", "gone-00000000"):
        write_report(output_name)
    out = io.StringIO()
    progress = ShardsProgress(FILES, output_dir, RunInputs(sources), out)
    for output_name in ("a-11111111", "b-11111111"):
        write_report(output_name)
        progress.update()
    assert out.getvalue().splitlines() == ["1/2 a: 5 records in 2.0 s", "2/2 b: 5 records in 2.0 s"]
