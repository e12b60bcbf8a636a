"""The commands that inspect a finished directory (``python -m bioshards.corpus``)."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.errors import FAILED, OK, InvalidValueError
from bioshards.corpus.lifecycle import full_text_overlap
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.export import ExportFormat, export_files, format_documents
from bioshards.corpus.shards.input_dirs import check_directory
from bioshards.corpus.stats import directory_stats, report
from bioshards.corpus.stats.directory_stats import StatsError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress


def export(
    folder: str,
    stream: TextIO,
    full_text_folder: str | None = None,
    export_format: ExportFormat = "text",
    output: str | None = None,
) -> None:
    """Write the documents of a directory in another format (shards/export.py).

    Args:
        folder: a finished directory of document shards.
        stream: where text and JSON lines are written without an output folder.
        full_text_folder: a finished directory of PMC articles; abstracts that overlap with it are excluded.
        export_format: text, jsonl or parquet.
        output: folder for compressed files.

    Raises:
        FileNotFoundError: a directory is not finished.
        InvalidValueError: Parquet without a folder, or a folder that exists.
        OverlapInputError: ``full_text_folder`` does not list its overlap with ``folder``.
    """
    storage = LocalStorage()
    batches = arrow_io.read_directory(storage, folder, ["sentences"] if export_format == "text" else None)
    if full_text_folder is not None:
        batches = full_text_overlap.exclude_ids(
            arrow_io.read_directory(storage, folder),
            full_text_overlap.read(storage, full_text_folder, folder)["id"],
        )
    if output is not None:
        if os.path.exists(output):
            raise InvalidValueError(f"--output {output} exists: remove it, or name a new folder")
        for path in export_files(storage, batches, output, export_format):
            print(path)
        return
    if export_format == "parquet":
        raise InvalidValueError("--format parquet is written to files: give a folder with --output")
    separator = ""
    for batch in batches:
        stream.write(separator)
        text = format_documents(batch, export_format)
        stream.write(text.removesuffix("\n") if export_format == "text" else text)
        separator = "\n" if export_format == "text" else ""


def find_document(folder: str, document_id: str) -> dict[str, Any] | None:
    """Return a document as plain data, or None if the directory does not contain it.

    Args:
        document_id: ``pubmed:12345678``, or a PMID, PMCID or DOI alone.
    """
    column, value = "id", pa.scalar(document_id)
    if re.fullmatch(r"\d{1,9}", document_id):
        column, value = "pmid", pa.scalar(int(document_id), pa.int32())
    elif re.fullmatch(r"PMC\d+", document_id):
        column = "pmcid"
    elif document_id.startswith("10."):
        column = "doi"
    for batch in arrow_io.read_directory(LocalStorage(), folder):
        row = pc.index(batch[column], value).as_py()
        if row >= 0:
            document: dict[str, Any] = batch.slice(row, 1).to_pylist()[0]
            return document
    return None


def format_document(document: dict[str, Any]) -> Iterator[str]:
    """Yield the lines that show a document."""
    for name, value in document.items():
        if name not in ("sentences", "sections") and value is not None:
            yield f"{name:20} {value}"
    headings = {section["first_sentence"]: section["heading"] for section in document["sections"]}
    for index, sentence in enumerate(document["sentences"]):
        if index in headings:
            yield f"  [{headings[index]}]"
        yield f"  {index:3}  {sentence}"


def write_stats(folder: str, json_path: str | None, html_path: str | None) -> None:
    """Compute the statistics of a directory and write them as JSON, as HTML, or as text to standard output.

    Args:
        folder: a finished directory.
        json_path: file for the JSON; ``-`` for standard output.
        html_path: file for the HTML report.

    Raises:
        FileNotFoundError: the directory is not finished.
        StatsError: the directory cannot be summarised or is damaged, or a file cannot be written.
    """
    result = directory_stats.compute_stats(LocalStorage(), folder)
    if json_path is not None:
        _write_text(json_path, directory_stats.to_json(result))
    if html_path is not None:
        _write_text(html_path, report.render_stats_page(result, os.path.basename(os.path.abspath(folder))))
    if json_path is html_path is None:
        _write_text("-", report.render_text(result))


def _write_text(path: str, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    if path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        with LocalStorage().write(path) as file:
            file.write(data)
    except OSError as error:
        raise StatsError(f"{path} cannot be written: {error.strerror}") from error


def print_check(folder: str) -> int:
    """Compare a directory with its manifest; print the result and return the exit code."""
    with Progress(sys.stderr).bar(f"verifying {folder}", is_transient=True):
        check = check_directory(LocalStorage(), folder)
    counts = f"{check.num_files:,} files, {check.num_rows:,} rows, {check.num_bytes:,} bytes"
    if not check.problems:
        print(f"{folder} is as its manifest lists it: {counts}")
        return OK
    print("\n".join(check.problems), file=sys.stderr)
    print(
        f"{folder} differs from its manifest in {len(check.problems):,} files (of {counts}): "
        "make it again, or copy it again",
        file=sys.stderr,
    )
    return FAILED
