"""``bioshards show OUTPUT``: documents as a person reads them, beside their source if it is at hand."""

from __future__ import annotations

import random
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, Any

from bioshards.corpus.document import parse_doi
from bioshards.corpus.errors import InputNotFoundError, escape_controls
from bioshards.corpus.ui.command_line import CommandResult, run_command
from bioshards.corpus.ui.options import Argument, Option, OptionParser, int_at_least
from bioshards.corpus.ui.terminal import escape_output

if TYPE_CHECKING:
    from bioshards.api import Document, Documents

_MIN_WIDTH = 40
"""Least characters of a column, on narrow terminals too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """The options of ``bioshards show``."""

    output: Annotated[
        str, Argument("output of pubmed_to_shards, pmc_to_shards or text_to_shards", metavar="OUTPUT")
    ]
    first: Annotated[int, Option("the first documents (default: 1)", metavar="N", parse=int_at_least(1))] = 1
    id: Annotated[
        str | None, Option("one document, by id (pubmed:12345678), PMID, PMCID or DOI", metavar="ID")
    ] = None
    random: Annotated[int, Option("documents drawn at random", metavar="N", parse=int_at_least(1))] = 0
    seed: Annotated[int, "of --random (default: %(default)s)"] = 0
    with_source: Annotated[bool, "the record as its source file has it, left of the text"] = False


@escape_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = OptionParser(prog="bioshards show", description="Show documents of a finished output.")
    options = parser.parse_options(ShowOptions, list(sys.argv[1:] if arguments is None else arguments))
    return run_command("show", lambda: _show(options), "stopped", "")


def _show(options: ShowOptions) -> CommandResult:
    from bioshards.api import open_documents

    documents = open_documents(options.output)
    chosen = list(_choose(documents, options))
    if options.id and not chosen:
        raise InputNotFoundError(f"{options.output} has no document {options.id}")
    width = max(2 * _MIN_WIDTH, shutil.get_terminal_size((120, 0)).columns)
    texts = []
    for document in chosen:
        text = _format_document(document, (width - 3) // 2 if options.with_source else width)
        if options.with_source:
            source = _wrap(_read_source(options.output, document), (width - 3) // 2)
            text = [
                f"{left:{(width - 3) // 2}} | {right}"
                for left, right in zip_longest(source, text, fillvalue="")
            ]
        texts.append("\n".join(line.rstrip() for line in text))
    return CommandResult(f"\n\n{'-' * width}\n\n".join(texts))


def _choose(documents: Documents, options: ShowOptions) -> Iterator[Document]:
    import pyarrow.compute as pc

    if options.id:
        yield from documents.filter(_match_id(pc, options.id))
        return
    indices = range(len(documents))
    if options.random:
        rng = random.Random(options.seed)
        yield from documents.take(rng.sample(indices, min(options.random, len(indices))))
    else:
        yield from documents.take(indices[: options.first])


def _match_id(pc: Any, document_id: str) -> Any:
    """Return the expression for ``pubmed:12345678``, or a PMID, PMCID or DOI alone."""
    if re.fullmatch(r"\d{1,9}", document_id):
        return pc.field("pmid") == int(document_id)
    if re.fullmatch(r"PMC\d+", document_id):
        return pc.field("pmcid") == document_id
    if doi := parse_doi(document_id):
        return pc.utf8_lower(pc.field("doi")) == doi.lower()
    return pc.field("id") == document_id


def _format_document(document: Document, width: int) -> list[str]:
    """Return the lines that show a document."""
    facts = [document.id, document.journal, document.year, document.language, document.licence]
    facts += [document.pmcid, document.doi, *document.flags, "retracted" if document.retracted else None]
    lines = _wrap(" · ".join(str(fact) for fact in facts if fact is not None), width)
    starts = len(document.sentences) - sum(len(section.sentences) for section in document.sections)
    lines += ["", *_wrap(document.title, width)]
    if (title := " ".join(document.sentences[:starts])) not in ("", document.title):
        lines += _wrap(f"(as text: {title})", width)
    for section in document.sections:
        lines += ["", *_wrap(f"[{section.heading}]" if section.heading else "", width)]
        for sentence in section.sentences:
            lines += _wrap(sentence, width, "  ")
    metadata = {name: value for name, value in document.metadata.items() if value not in (None, [], "")}
    if metadata:
        name_width = max(map(len, metadata))
        lines.append("")
        for name, value in metadata.items():
            first, *rest = _wrap(_format_value(value), width - name_width - 2) or [""]
            lines += [f"{name:{name_width}}  {first}", *(f"{'':{name_width}}  {line}" for line in rest)]
    return [*lines, "", *_wrap(f"from {document.file}, record {document.position}", width)]


def _format_value(value: Any) -> str:
    """Return a value of a column in a line: parts of an entry by commas, entries by semicolons."""
    if isinstance(value, list):
        return "; ".join(map(_format_value, value))
    if isinstance(value, dict):
        parts = {name: part for name, part in value.items() if part not in (None, [], "", False)}
        return ", ".join(name if part is True else _format_value(part) for name, part in parts.items())
    return str(value)


def _wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Return a stranger's text in lines, without characters that a terminal obeys."""
    return [
        line
        for paragraph in escape_controls(text.replace("\t", " ")).split("\n")
        for line in textwrap.wrap(paragraph, width, initial_indent=indent, subsequent_indent=indent) or [""]
    ]


def _read_source(output: str, document: Document) -> str:
    """Return the record of a document as its source file has it.

    Raises:
        InputNotFoundError: the source is not where it was, or has changed.
    """
    from importlib.resources import files

    import msgspec

    from bioshards.corpus.jats.filters import PmcConfig
    from bioshards.corpus.lifecycle.source_of_document import read_source_record
    from bioshards.corpus.pubmed.filters import PubMedConfig
    from bioshards.corpus.shards.document_shards import read_documents_manifest
    from bioshards.corpus.storage.local_storage import LocalStorage
    from bioshards.corpus.storage.source_file import SAMPLE_FOLDER, replace_folder
    from bioshards.corpus.text_files import TextFilesConfig

    storage = LocalStorage()
    sample = {SAMPLE_FOLDER: str(files("bioshards.corpus") / "sample")}
    inputs = [
        msgspec.structs.replace(one, path=replace_folder(one.path, sample))
        for one in read_documents_manifest(storage, output).inputs
    ]
    config = {"pubmed": PubMedConfig, "pmc": PmcConfig, "text": TextFilesConfig}[document.source]()
    try:
        record = read_source_record(storage, inputs, config, str(document.file), document.position or 0)
    except InputNotFoundError as error:
        raise InputNotFoundError(
            f"{document.id}: {error}. Show it in the folder where its run started, or without --with-source"
        ) from error
    return record.raw.decode("utf-8", "replace")


if __name__ == "__main__":
    sys.exit(main())
