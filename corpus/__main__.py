"""``python -m bioshards.corpus``: look at a finished directory.

export DIR                    one sentence a line, a blank line between documents, to standard output
export DIR --without FULL     the same of PubMed's abstracts, without those that the directory FULL, made by
                              pmc_to_shards --drop-in DIR, holds in full
show DIR --id ID              one document, readable
stats DIR                     what it holds in numbers, of documents or any other of our directories; with
                              --json FILE (- for standard output) all figures, with --html FILE a page
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from . import overlap, shards, stats, stats_page, stats_tables
from .command import report_error
from .files import LocalFiles
from .stats_shards import StatsError


def export(folder: str, out: TextIO, full_text: str | None = None) -> int:
    """Write a directory as text (SYSTEMS.md section 1.0); returns the number of documents.

    One sentence a line, a blank line between documents: what the builders of BERT, ELECTRA and
    ALBERT read.

    Args:
        full_text: a directory of PMC's articles; abstracts that it holds in full are left out.

    Raises:
        FileNotFoundError: a directory is not finished.
        overlap.OverlapInputError: ``full_text`` does not say which abstracts of ``folder`` it holds.
    """
    files = LocalFiles()
    batches = shards.read(files, folder)
    if full_text is not None:
        batches = overlap.without(batches, overlap.read(files, full_text, folder)["id"])
    documents = 0
    for batch in batches:
        for sentences in batch["sentences"].to_pylist():
            if documents:
                out.write("\n")
            out.write("\n".join(sentences))
            out.write("\n")
            documents += 1
    return documents


def find(folder: str, id_: str) -> dict[str, Any] | None:
    """The document of this id, as plain data; None where the directory has none."""
    for batch in shards.read(LocalFiles(), folder):
        row = pc.index(batch["id"], pa.scalar(id_)).as_py()
        if row >= 0:
            found: dict[str, Any] = batch.slice(row, 1).to_pylist()[0]
            return found
    return None


def _lines(document: dict[str, Any]) -> Iterator[str]:
    for name, value in document.items():
        if name not in ("sentences", "sections") and value is not None:
            yield f"{name:10} {value}"
    headings = {section["first_sentence"]: section["heading"] for section in document["sections"]}
    for number, sentence in enumerate(document["sentences"]):
        if number in headings:
            yield f"  [{headings[number]}]"
        yield f"  {number:3}  {sentence}"


def count(folder: str, json_file: str | None, html_file: str | None) -> None:
    """Write what a directory holds in numbers: into the files named, or a summary to standard output.

    Raises:
        FileNotFoundError: the directory is not finished.
        StatsError: it is of something else or damaged, or a file cannot be written.
    """
    found = stats.figures(LocalFiles(), folder)
    if json_file is not None:
        _write(json_file, stats.as_json(found))
    if html_file is not None:
        _write(html_file, stats_page.page(found, os.path.basename(os.path.abspath(folder))))
    if json_file is html_file is None:
        _write("-", stats_tables.as_text(found))


def _write(path: str, text: str) -> None:
    data = text.encode("utf-8", "backslashreplace")
    if path == "-":
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        with LocalFiles().write(path) as file:
            file.write(data)
    except OSError as error:
        raise StatsError(f"{path} cannot be written: {error.strerror}") from error


def main() -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m bioshards.corpus", description="Look at a finished directory."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    exporting = commands.add_parser("export", help="print it as text: one sentence a line")
    exporting.add_argument("folder", metavar="DIR")
    exporting.add_argument(
        "--without", metavar="FULL", help="leave out the abstracts that this directory of PMC's holds in full"
    )
    showing = commands.add_parser("show", help="print one document")
    showing.add_argument("folder", metavar="DIR")
    showing.add_argument("--id", required=True, help="as in pubmed:12345678")
    counting = commands.add_parser("stats", help="print what any finished directory holds, in numbers")
    counting.add_argument("folder", metavar="DIR")
    counting.add_argument("--json", metavar="FILE", help="write all figures; - is standard output")
    counting.add_argument("--html", metavar="FILE", help="write a page with plots")
    options = parser.parse_args()
    try:
        if options.command == "stats":
            count(options.folder, options.json, options.html)
            return 0
        if options.command == "export":
            export(options.folder, sys.stdout, options.without)
            sys.stdout.flush()
            return 0
        document = find(options.folder, options.id)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        message, exit_code = report_error(error)
        print(message, file=sys.stderr)
        return exit_code
    if document is None:
        print(f"{options.folder} has no document {options.id}", file=sys.stderr)
        return 1
    print("\n".join(_lines(document)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
