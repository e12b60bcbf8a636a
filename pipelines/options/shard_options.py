"""Options of the pipelines that write document shards."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

from bioshards.corpus.text_config import TextConfig

from .argument_types import fraction, int_at_least
from .common import (
    DownloadOptions,
    RunOptions,
    add_run_options,
    download_options_from_args,
    options_from_args,
)
from .parser import Parser


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardsOptions(RunOptions):
    """Options of ``beam run pubmed_to_shards`` and ``beam run pmc_to_shards``.

    Attributes:
        input: paths, and names of sources to download.
        output: folder to write; '' if it is missing.
        preset: name of a paper's corpus, which is part of the configuration.
        keep_dropped: also write the dropped documents.
        dedup: ``none`` or ``exact``.
        exclude_ids: file with ids of documents to drop.
        find_overlap_with: directory of abstracts to look for in the articles.
        max_rejected: fraction of records that may be rejected.
        max_bad_files: fraction of files that may be unusable.
        max_shard_mb: largest shard in megabytes.
        verify_inputs: read all inputs again, also those of unchanged size and time.
        document_config: parsing, filters and text processing.
        downloads: how named sources are downloaded.
    """

    input: tuple[str, ...]
    output: str
    preset: str | None
    keep_dropped: bool
    dedup: str
    exclude_ids: str | None
    find_overlap_with: str | None
    max_rejected: float
    max_bad_files: float
    max_shard_mb: int
    verify_inputs: bool
    document_config: TextConfig
    downloads: DownloadOptions


def shards_options_from_args(
    args: argparse.Namespace, document_config: TextConfig, sample_folder: str
) -> ShardsOptions:
    """Build the options of a pipeline that writes document shards.

    Args:
        document_config: the configuration that the arguments ask for.
        sample_folder: the input if the command line names none.
    """
    return options_from_args(
        ShardsOptions,
        args,
        input=tuple(args.input or (sample_folder,)),
        output=args.output or "",
        find_overlap_with=getattr(args, "find_overlap_with", None),
        document_config=document_config,
        downloads=download_options_from_args(args),
    )


def add_reject_options(parser: Parser, record_names: str, file_names: str) -> None:
    """Add ``--workers``, ``--max-rejected`` and ``--max-bad-files``.

    Args:
        record_names: what may be rejected, for the help text.
        file_names: which files may be unusable as a whole, for the help text.
    """
    group = add_run_options(parser, record_names)
    group.add_argument(
        "--max-bad-files",
        type=fraction,
        metavar="FRACTION",
        default=0.001,
        help=f"fraction of {file_names} that may be unusable before the run fails; each is named at the end "
        "(default: %(default)s)",
    )


def add_shard_options(parser: Parser, presets: Sequence[str], input_help: str) -> None:
    """Add the options of input and output.

    Args:
        presets: names for ``--preset``.
        input_help: help text of ``--input``.
    """
    group = parser.add_argument_group("input and output")
    group.add_argument("--input", action="append", metavar="PATH", help=input_help)
    group.add_argument("--output", metavar="DIR", help="folder to write; one for each configuration")
    group.add_argument(
        "--preset", choices=presets, help="configuration of a paper's corpus; other options override it"
    )
    group.add_argument(
        "--keep-dropped",
        action="store_true",
        help="also write the dropped documents, with reasons, to DIR/dropped",
    )
    group.add_argument(
        "--verify-inputs",
        action="store_true",
        help="compute the MD5 of every input file again (of a mirror's PMC articles: of their lists); "
        "without it, a file of the same size and time as in the last run counts as unchanged",
    )
    group.add_argument(
        "--max-shard-mb",
        type=int_at_least(1),
        metavar="MB",
        default=256,
        help="largest shard in megabytes (default: %(default)s)",
    )
