"""Options that several pipelines share: inputs and outputs, workers, downloads."""

from __future__ import annotations

import argparse
import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from bioshards.corpus.download.source_registry import SOURCES

from .argument_types import contact_address, fraction, int_at_least, server_url
from .parser import Parser

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    OptionsT = TypeVar("OptionsT", bound=DataclassInstance)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of every pipeline.

    Attributes:
        workers: local processes.
        dry_run: print the plan and write nothing.
    """

    workers: int
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadOptions(RunOptions):
    """How named sources are downloaded.

    Attributes:
        mirror: folder of verified copies; None for the default.
        contact: mail or web address that is sent to the servers.
        urls: base URLs that replace those of the sources, by source.
        connections: connections to PMC's bucket, of all workers together.
        allow_removals: go on where much of the mirror would be removed or replaced.
    """

    mirror: str | None
    contact: str | None
    urls: Mapping[str, str]
    connections: int
    allow_removals: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsOptions(RunOptions):
    """Options of pipelines that read document shards.

    Attributes:
        input: finished directories of document shards.
        output: folder to write; '' if it is missing.
    """

    input: tuple[str, ...]
    output: str


def options_from_args(options_type: type[OptionsT], args: argparse.Namespace, **derived: Any) -> OptionsT:
    """Build a dataclass of options from the parsed arguments of the same names.

    Args:
        options_type: the dataclass.
        derived: values of the fields that are not arguments as they were parsed.
    """
    names = {field.name for field in dataclasses.fields(options_type)} - derived.keys()
    return options_type(**{name: getattr(args, name) for name in names}, **derived)


def download_options_from_args(args: argparse.Namespace) -> DownloadOptions:
    """Build the download options of a pipeline that has some or all of them."""
    given_urls = {source: getattr(args, f"{source}_url", None) for source in SOURCES}
    return options_from_args(
        DownloadOptions,
        args,
        urls={source: url for source, url in given_urls.items() if url},
        connections=getattr(args, "connections", 1),
    )


def documents_options_from_args(options_type: type[OptionsT], args: argparse.Namespace) -> OptionsT:
    """Build the options of a pipeline that reads document shards."""
    return options_from_args(options_type, args, input=tuple(args.input or ()), output=args.output or "")


def add_io_options(parser: Parser) -> argparse._ArgumentGroup:
    """Add ``--input``, ``--output`` and ``--dry-run`` and return their group."""
    group = parser.add_argument_group("input and output")
    group.add_argument(
        "--input",
        action="append",
        metavar="DIR",
        help="a finished --output of pubmed_to_shards or pmc_to_shards, also on gs:// or s3://; repeatable",
    )
    group.add_argument("--output", metavar="DIR", help="folder to write; one for each configuration")
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be read and built, and the estimated time; write nothing",
    )
    return group


def add_download_options(parser: Parser, default_mirror: str) -> None:
    """Add the options of pipelines that download.

    Args:
        default_mirror: the default of ``--mirror``, for the help text.
    """
    group = parser.add_argument_group("downloads")
    group.add_argument(
        "--mirror",
        metavar="DIR",
        help="folder of verified copies, also on gs:// or s3://; files in it are not downloaded again "
        f"(default: {default_mirror})",
    )
    group.add_argument(
        "--contact",
        type=contact_address,
        metavar="ADDRESS",
        help="mail or web address to send to the servers, for their operators",
    )
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="print what would be downloaded and processed, and the estimated time; write nothing",
    )
    group.add_argument(
        "--allow-removals",
        action="store_true",
        help="remove articles of PMC from the mirror that are no longer listed or selected even if they are "
        "more than 1 %% of it, and replace PubMed's files by those of another year even if no complete "
        "baseline is announced (default: stop before)",
    )


def add_worker_options(parser: Parser) -> argparse._ArgumentGroup:
    """Add ``--workers`` and return its group."""
    group = parser.add_argument_group("execution")
    group.add_argument(
        "--workers",
        type=int_at_least(1),
        metavar="N",
        default=os.cpu_count() or 1,
        help="local processes (default: one for each core, %(default)s); a --runner has its own option",
    )
    return group


def add_run_options(parser: Parser, item_names: str) -> argparse._ArgumentGroup:
    """Add ``--workers`` and ``--max-rejected`` and return their group.

    Args:
        item_names: what may be rejected, for the help text.
    """
    group = add_worker_options(parser)
    group.add_argument(
        "--max-rejected",
        type=fraction,
        metavar="FRACTION",
        default=0.001,
        help=f"fraction of {item_names} that may be rejected before the run fails (default: %(default)s)",
    )
    return group


def add_server_options(parser: Parser, source_names: Iterable[str]) -> None:
    """Add an option for the server of each source, ``--pubmed-url``."""
    servers = parser.add_argument_group("other servers with the same layouts")
    for name in source_names:
        servers.add_argument(
            f"--{name}-url", type=server_url, metavar="URL", help=f"default: {SOURCES[name].url}"
        )
