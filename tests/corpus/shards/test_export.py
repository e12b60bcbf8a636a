"""``corpus export`` to text and JSON lines."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
from pathlib import Path

import pytest

from bioshards.corpus.__main__ import ExportOptions, export
from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.shards import document_shards
from bioshards.corpus.shards.export import ExportFormat, export_files
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.synthetic_documents import make_document, write_document_dir

FILES = LocalStorage()


@pytest.fixture
def folder(tmp_path: Path) -> str:
    documents = [make_document(f"pubmed:{number}", [f"É {number}.", "Two."]) for number in range(1, 8)]
    return str(write_document_dir(tmp_path / "documents", {"one": documents}))


def export_text(folder: str, export_format: ExportFormat, output: str | None = None) -> str:
    """Return what an export writes to standard output."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        export(ExportOptions(folder=folder, format=export_format, output=output))
    return stream.getvalue()


def test_json_lines_have_all_columns(folder: str) -> None:
    rows = [row for batch in document_shards.read_directory(FILES, folder) for row in batch.to_pylist()]
    assert [json.loads(line) for line in export_text(folder, "jsonl").splitlines()] == rows


def test_files_have_what_standard_output_has(folder: str, tmp_path: Path) -> None:
    export_text(folder, "jsonl", str(tmp_path / "jsonl"))
    assert gzip.decompress((tmp_path / "jsonl/data-00000.jsonl.gz").read_bytes()).decode() == export_text(
        folder, "jsonl"
    )


def test_documents_are_divided_into_files(folder: str, tmp_path: Path) -> None:
    batches = [
        batch.slice(row, 1) for batch in document_shards.read_directory(FILES, folder) for row in range(7)
    ]
    paths = export_files(FILES, batches, str(tmp_path / "out"), "text", max_file_bytes=1)
    assert [Path(path).name for path in paths] == [f"data-{number:05d}.txt.gz" for number in range(7)]
    assert gzip.decompress(Path(paths[1]).read_bytes()).decode() == "É 2.\nTwo.\n\n"


def test_refused_outputs(folder: str) -> None:
    with pytest.raises(InvalidValueError, match="exists: remove it"):
        export_text(folder, "text", folder)
