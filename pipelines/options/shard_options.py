"""Options of the pipelines that write document shards."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from bioshards.corpus.errors import UsageError
from bioshards.corpus.text_config import TextConfig
from bioshards.corpus.ui.options import Option, Overrides
from bioshards.corpus.ui.value_parsers import fraction, int_at_least

from .common import EXECUTION_GROUP, IO_GROUP, OUTPUT_OPTION, DownloadOptions

Dedup = Literal["none", "exact", "near"]
ConfigT = TypeVar("ConfigT", bound=TextConfig)
_io_option = functools.partial(Option, group=IO_GROUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardsOptions(DownloadOptions, ABC):
    """Options of the pipelines that write document shards.

    Attributes:
        input: paths, and names of sources to download.
        preset: name of a paper's corpus, which is part of the configuration.
        max_rejected: fraction of records that may be rejected.
        max_bad_files: fraction of files that may be unusable.
        include_ids: file with ids of documents to keep.
        exclude_ids: file with ids of documents to drop.
        mesh_tree: file with the tree of MeSH.
        find_overlap_with: directory of abstracts to look for in the articles.
    """

    input: tuple[str, ...] = ()
    output: Annotated[str, OUTPUT_OPTION] = ""
    preset: str | None = None
    keep_dropped: Annotated[
        bool, _io_option("also write the dropped documents, with reasons, to DIR/dropped")
    ] = False
    verify_inputs: Annotated[
        bool,
        _io_option(
            "compute the MD5 of every input file again (of a mirror's PMC articles: of their lists); "
            "without it, a file of the same size and time as in the last run counts as unchanged"
        ),
    ] = False
    max_shard_mb: Annotated[
        int,
        _io_option("largest shard in megabytes (default: %(default)s)", metavar="MB", parse=int_at_least(1)),
    ] = 256
    max_rejected: float = 0.001
    max_bad_files: float = 0.001
    dedup: Dedup = "none"
    include_ids: str | None = None
    exclude_ids: str | None = None
    mesh_tree: str | None = None
    find_overlap_with: str | None = None

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


def make_input_option(help_text: str) -> Option:
    """Return ``--input``."""
    return _io_option(help_text, metavar="PATH", many="repeat")


def make_preset_option(presets: Mapping[str, object]) -> Option:
    """Return ``--preset``."""
    return _io_option("configuration of a paper's corpus; other options override it", choices=sorted(presets))


def make_max_bad_files_option(file_names: str) -> Option:
    """Return ``--max-bad-files``."""
    return Option(
        f"fraction of {file_names} that may be unusable before the run fails; each is named at the end "
        "(default: %(default)s)",
        group=EXECUTION_GROUP,
        metavar="FRACTION",
        parse=fraction,
    )


def make_dedup_option(group: str, compared_text: str, ordering_id: str) -> Option:
    """Return ``--dedup``."""
    return Option(
        f"exact: of documents with the same {compared_text} (case, spacing and punctuation apart) keep the "
        f"one of the lowest {ordering_id}; near: of documents of which about 80 %% of all runs of five words "
        f"are the same keep the one of the latest year, then of the lowest {ordering_id}; DIR/duplicates.tsv "
        "lists the others (default: %(default)s)",
        group=group,
    )


def make_inclusion_option(group: str) -> Option:
    """Return ``--include-ids``."""
    return Option(
        "keep the documents of these articles only, of a list as for --exclude-ids",
        group=group,
        metavar="FILE",
    )


def make_exclusion_option(group: str) -> Option:
    """Return ``--exclude-ids``."""
    return Option(
        "drop the documents of these articles: a PMID, a PMCID, doi: and a DOI, or a document's id a line, # "
        "before a comment; any of an article's ids drops its abstract and its full text, in every version",
        group=group,
        metavar="FILE",
    )
