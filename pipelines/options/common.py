"""Options that several pipelines share: inputs and outputs, workers, downloads."""

from __future__ import annotations

import functools
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final

from bioshards.corpus.download.sources import SOURCES
from bioshards.corpus.errors import UsageError
from bioshards.corpus.ui.options import Option
from bioshards.corpus.ui.value_parsers import (
    contact_address,
    fraction,
    int_at_least,
    server_url,
    worker_count,
)

IO_GROUP: Final = "input and output"
EXECUTION_GROUP: Final = "execution"
_run_option = functools.partial(Option, group=EXECUTION_GROUP)
_download_option = functools.partial(Option, group="downloads")


DOCUMENTS_OPTION: Final = Option(
    "a finished --output of pubmed_to_shards, pmc_to_shards or text_to_shards, also on gs://, s3:// or az://"
    "; repeatable",
    group=IO_GROUP,
    metavar="DIR",
    many="repeat",
)
OUTPUT_OPTION: Final = Option("folder to write; one for each configuration", group=IO_GROUP, metavar="DIR")
DRY_RUN_OPTION: Final = Option(
    "print what would be read and built, and the estimated time; write nothing", group=IO_GROUP
)
CONNECTIONS_OPTION: Final = _download_option(
    "to PMC's bucket, of all workers together (default: %(default)s)", parse=int_at_least(1)
)


def make_mirror_option(default_mirror: str) -> Option:
    """Return ``--mirror``, with its default for the help text."""
    return _download_option(
        "folder of verified copies, also on gs://, s3:// or az://; files in it are not downloaded again "
        f"(default: {default_mirror})",
        metavar="DIR",
    )


def make_max_rejected_option(item_names: str) -> Option:
    """Return ``--max-rejected`` of the items that may be rejected."""
    return _run_option(
        f"fraction of {item_names} that may be rejected before the run fails (default: %(default)s)",
        metavar="FRACTION",
        parse=fraction,
    )


def make_url_options(source_names: Iterable[str]) -> list[Option]:
    """Return an option for the server of each source, ``--pubmed-url``."""
    return [
        Option(
            f"default: {SOURCES[name].url}",
            group="other servers with the same layouts",
            name=f"{name}_url",
            metavar="URL",
            parse=functools.partial(_parse_source_url, name),
            many="repeat",
        )
        for name in source_names
    ]


def _parse_source_url(source: str, text: str) -> tuple[str, str]:
    return source, server_url(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions(ABC):
    """The options of every pipeline.

    Attributes:
        like: manifest of a run to repeat (reproduction.py).
        dry_run: print the plan and write nothing.
    """

    like: Annotated[
        str | None,
        Option(
            "repeat the run of this manifest.json with its options, unless they are given here, and compare "
            "the files by their SHA-256",
            group=IO_GROUP,
            metavar="FILE",
        ),
    ] = None

    workers: Annotated[
        int,
        _run_option(
            "local processes, no more than there are files (default: one for each core, %(default)s); "
            "a --runner has its own option",
            parse=worker_count,
        ),
    ] = os.cpu_count() or 1
    dry_run: bool = False

    @abstractmethod
    def check(self) -> None:
        """Check what the options alone show, before the driver is imported, which takes a while.

        Raises:
            UsageError: one is missing, or they contradict each other.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadOptions(RunOptions):
    """How named sources are downloaded.

    Attributes:
        mirror: folder of verified copies; None for the default.
        connections: connections to PMC's bucket, of all workers together.
        urls: sources with the base URLs that replace theirs.
    """

    mirror: str | None = None
    contact: Annotated[
        str | None,
        _download_option(
            "mail or web address to send to the servers, for their operators",
            metavar="ADDRESS",
            parse=contact_address,
        ),
    ] = None
    dry_run: Annotated[
        bool,
        _download_option(
            "print what would be downloaded and processed, and the estimated time; write nothing"
        ),
    ] = False
    allow_removals: Annotated[
        bool,
        _download_option(
            "remove articles of PMC from the mirror that are no longer listed or selected even if they are "
            "more than 1 %% of it, and replace PubMed's files by those of another year even if no complete "
            "baseline is announced (default: stop before)",
        ),
    ] = False
    connections: int = 1
    urls: tuple[tuple[str, str], ...] = ()

    def get_url(self, source: str, default: str) -> str:
        """Return the base URL of a source."""
        return dict(self.urls).get(source, default)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsOptions(RunOptions):
    """Options of pipelines that read document shards."""

    input: tuple[str, ...] = ()
    output: Annotated[str, OUTPUT_OPTION] = ""
    dry_run: Annotated[bool, DRY_RUN_OPTION] = False

    def check(self) -> None:
        """Check that inputs and output are given."""
        if not self.input:
            raise UsageError(
                "--input DIR is missing: a finished --output of pubmed_to_shards, pmc_to_shards or "
                "text_to_shards"
            )
        check_output(self.output)


def check_output(output: str) -> None:
    """Check that ``--output`` is given.

    Raises:
        UsageError: it is not.
    """
    if not output:
        raise UsageError("--output DIR is missing: the folder to write")
