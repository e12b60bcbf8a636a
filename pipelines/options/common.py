"""add_io_options: to be described."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from bioshards.pipelines.options.parser import Parser

from .argument_types import contact_address, fraction, int_at_least, server_url


def add_io_options(parser: Parser) -> Any:
    """The options of where is read and written; returns their group."""
    group = parser.add_argument_group("input and output")
    group.add_argument(
        "--input",
        action="append",
        metavar="DIR",
        help="a finished --output of pubmed_to_shards or pmc_to_shards, also on gs:// or s3://; may be "
        "given several times",
    )
    group.add_argument("--output", metavar="DIR", help="folder to write; one for each configuration")
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="only say what would be read and made, and for how long; nothing is written",
    )
    return group


def add_download_options(parser: Parser, default_mirror: str) -> None:
    """The options of pipelines that fetch; ``default_mirror`` says where the mirror is if it is not said."""
    group = parser.add_argument_group("files that are fetched")
    group.add_argument(
        "--mirror",
        metavar="DIR",
        help="folder of verified copies, also on gs:// or s3://; what is in it is not fetched again "
        f"(default: {default_mirror})",
    )
    group.add_argument(
        "--contact",
        type=contact_address,
        metavar="ADDRESS",
        help="tell the servers whom to write to if there is trouble",
    )
    group.add_argument(
        "--dry-run",
        action="store_true",
        help="only say what would be fetched and processed, and for how long; nothing is written",
    )


def add_worker_options(parser: Parser) -> argparse._ArgumentGroup:
    """How a run goes on this machine."""
    group = parser.add_argument_group("how it runs")
    group.add_argument(
        "--workers",
        type=int_at_least(1),
        metavar="N",
        default=os.cpu_count() or 1,
        help="local processes (default: one for each core, here %(default)s); a --runner has its own option",
    )
    return group


def add_run_options(parser: Parser, item_names: str) -> None:
    """How a run goes on this machine, and how much of ``item_names`` may be bad."""
    add_worker_options(parser).add_argument(
        "--max-rejected",
        type=fraction,
        metavar="SHARE",
        default=0.001,
        help=f"share of {item_names} that may be rejected before the run fails at its end (default: "
        "%(default)s)",
    )


def add_shard_options(parser: Parser, presets: Sequence[str], input_help: str) -> None:
    """The options that every pipeline has, with the same meaning everywhere; ``input_help``: what it
    reads.
    """
    group = parser.add_argument_group("input and output")
    group.add_argument(
        "--input",
        action="append",
        metavar="PATH",
        help=input_help,
    )
    group.add_argument("--output", metavar="DIR", help="folder to write; one for each configuration")
    group.add_argument(
        "--preset", choices=presets, help="the rules of a paper's corpus; options given beside it win over it"
    )
    group.add_argument(
        "--keep-dropped",
        action="store_true",
        help="also write the dropped documents, with reasons, to DIR/dropped",
    )
    group.add_argument(
        "--max-shard-mb",
        type=int_at_least(1),
        metavar="MB",
        default=256,
        help="largest shard in megabytes (default: %(default)s)",
    )


def add_server_options(parser: Parser, urls: dict[str, str]) -> None:
    """The options of where sources are fetched from, if not from where they are."""
    servers = parser.add_argument_group("other servers with the same layouts")
    for source, url in urls.items():
        servers.add_argument(f"--{source}-url", type=server_url, metavar="URL", help=f"default: {url}")
