"""Options that several pipelines share: inputs and outputs, workers, downloads, documents."""

from __future__ import annotations

import functools
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from bioshards.corpus.download.sources import SOURCES
from bioshards.corpus.errors import UsageError
from bioshards.corpus.text_config import TextConfig
from bioshards.corpus.ui.options import (
    Option,
    Overrides,
    contact_address,
    fraction,
    int_at_least,
    server_url,
    worker_count,
)

ConfigT = TypeVar("ConfigT", bound=TextConfig)

IO_GROUP: Final = "input and output"
DOCUMENTS_GROUP: Final = "which documents, and what of them"
_DOWNLOADS_GROUP: Final = "downloads"
_EXECUTION_GROUP: Final = "execution"

DOCUMENTS_OPTION: Final = Option(
    "a finished --output of pubmed_to_shards, pmc_to_shards or text_to_shards, also on gs://, s3:// or az://"
    "; repeatable",
    group=IO_GROUP,
    metavar="DIR",
    many="repeat",
)
OUTPUT_OPTION: Final = Option("folder to write; one for each configuration", group=IO_GROUP, metavar="DIR")
CONNECTIONS_OPTION: Final = Option(
    "to PMC's bucket, of all workers together (default: %(default)s)",
    group=_DOWNLOADS_GROUP,
    parse=int_at_least(1),
)
MAX_REJECTED_OPTION: Final = Option(
    "fraction of records, articles or documents that may be rejected before the run fails "
    "(default: %(default)s)",
    group=_EXECUTION_GROUP,
    metavar="FRACTION",
    parse=fraction,
)


def make_input_option(help_text: str) -> Option:
    """Return ``--input``."""
    return Option(help_text, group=IO_GROUP, metavar="PATH", many="repeat")


def make_preset_option(presets: Mapping[str, object]) -> Option:
    """Return ``--preset``."""
    help_text = "configuration of a paper's corpus; other options override it"
    return Option(help_text, group=IO_GROUP, choices=sorted(presets))


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
        force: take over the lock of another run.
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
    dry_run: Annotated[
        bool,
        Option("print what would be downloaded, read and written; write nothing", group=IO_GROUP),
    ] = False
    workers: Annotated[
        int,
        Option(
            "local processes, no more than there are files (default: one for each core, %(default)s); "
            "a --runner has its own option",
            group=_EXECUTION_GROUP,
            parse=worker_count,
        ),
    ] = os.cpu_count() or 1
    force: Annotated[
        bool,
        Option(
            "take over the lock on an --output in an object store, which a killed run leaves; a run that is "
            "alive then publishes nothing (default: stop before)",
            group=_EXECUTION_GROUP,
        ),
    ] = False

    @abstractmethod
    def check(self) -> None:
        """Check what the options alone show, before the pipeline's modules are imported, which takes a while.

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

    mirror: Annotated[
        str | None,
        Option(
            "folder of verified copies, also on gs://, s3:// or az://; files in it are not downloaded again "
            "(default: mirror, beside the output; of fetch, in this folder)",
            group=_DOWNLOADS_GROUP,
            metavar="DIR",
        ),
    ] = None
    contact: Annotated[
        str | None,
        Option(
            "mail or web address to send to the servers, for their operators",
            group=_DOWNLOADS_GROUP,
            metavar="ADDRESS",
            parse=contact_address,
        ),
    ] = None
    allow_removals: Annotated[
        bool,
        Option(
            "remove articles of PMC from the mirror that are no longer listed or selected even if they are "
            "more than 1 %% of it, and replace PubMed's files by those of another year even if no complete "
            "baseline is announced (default: stop before)",
            group=_DOWNLOADS_GROUP,
        ),
    ] = False
    connections: int = 1
    urls: tuple[tuple[str, str], ...] = ()

    def get_url(self, source: str) -> str:
        """Return the base URL of a source."""
        return dict(self.urls).get(source, SOURCES[source].url)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsOptions(RunOptions):
    """Options of pipelines that read document shards."""

    input: Annotated[tuple[str, ...], DOCUMENTS_OPTION] = ()
    output: Annotated[str, OUTPUT_OPTION] = ""

    def check(self) -> None:
        """Check that inputs and output are given."""
        if not self.input:
            raise UsageError(
                "--input DIR is missing: a finished --output of pubmed_to_shards, pmc_to_shards or "
                "text_to_shards"
            )
        _check_output(self.output)


def _check_output(output: str) -> None:
    if not output:
        raise UsageError("--output DIR is missing: the folder to write")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardsOptions(DownloadOptions):
    """Options of the pipelines that write document shards.

    Attributes:
        input: paths, and names of sources to download.
        preset: name of a paper's corpus, which is part of the configuration.
        mesh_tree: file with the tree of MeSH.
        find_overlap_with: directory of abstracts to look for in the articles.
    """

    input: tuple[str, ...] = ()
    output: Annotated[str, OUTPUT_OPTION] = ""
    preset: str | None = None
    keep_dropped: Annotated[
        bool,
        Option("also write the dropped documents, with reasons, to DIR/dropped", group=IO_GROUP),
    ] = False
    verify_inputs: Annotated[
        bool,
        Option(
            "compute the MD5 of every input file again (of a mirror's PMC articles: of their lists); "
            "without it, a file of the same size and time as in the last run counts as unchanged",
            group=IO_GROUP,
        ),
    ] = False
    max_shard_mb: Annotated[
        int,
        Option(
            "largest shard in megabytes (default: %(default)s)",
            group=IO_GROUP,
            metavar="MB",
            parse=int_at_least(1),
        ),
    ] = 256
    max_rejected: Annotated[float, MAX_REJECTED_OPTION] = 0.001
    max_bad_files: Annotated[
        float,
        Option(
            "fraction of source files that may be unusable before the run fails; each is named at the end "
            "(default: %(default)s)",
            group=_EXECUTION_GROUP,
            metavar="FRACTION",
            parse=fraction,
        ),
    ] = 0.001
    dedup: Annotated[
        Literal["none", "exact", "near"],
        Option(
            "exact: of documents with the same title and text (case, spacing and punctuation apart) keep the "
            "one of the lowest PMID or PMCID, or hash of another id; near: of documents of which about 80 %% "
            "of all runs of five words are the same keep the one of the latest year, then likewise; "
            "DIR/duplicates.tsv lists the others (default: %(default)s)",
            group=DOCUMENTS_GROUP,
        ),
    ] = "none"
    include_ids: Annotated[
        str | None,
        Option(
            "keep the documents of these articles only, of a list as for --exclude-ids",
            group=DOCUMENTS_GROUP,
            metavar="FILE",
        ),
    ] = None
    exclude_ids: Annotated[
        str | None,
        Option(
            "drop the documents of these articles: a PMID, a PMCID, doi: and a DOI, or a document's id a "
            "line, # before a comment; any of an article's ids drops its abstract and its full text, in "
            "every version",
            group=DOCUMENTS_GROUP,
            metavar="FILE",
        ),
    ] = None
    mesh_tree: str | None = None
    find_overlap_with: str | None = None

    def check(self) -> None:
        """Check the configuration, and that the output is given."""
        self.make_config()
        _check_output(self.output)

    @abstractmethod
    def make_config(self) -> TextConfig:
        """Return the preset's configuration, changed by the options.

        Raises:
            UsageError: options contradict each other.
        """


def override_config(overrides: Overrides[ConfigT], preset: ConfigT) -> ConfigT:
    """Return a preset's configuration, changed by the options.

    Raises:
        UsageError: options contradict each other.
    """
    try:
        return overrides.apply(preset)
    except ValueError as error:
        raise UsageError(str(error)) from error


def find_sample(name: str) -> tuple[str, ...]:
    """Return the ``--input`` of a sample that comes with bioshards."""
    corpus = Path(str(resources.files("bioshards.corpus")))
    return (str(corpus.resolve() / "sample" / name),)  # in a checkout, not by the link below src/
