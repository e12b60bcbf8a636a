"""Options of the pipelines that write document shards."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from bioshards.corpus.errors import UsageError
from bioshards.corpus.text_config import TextConfig
from bioshards.corpus.ui.options import Option, Overrides
from bioshards.corpus.ui.value_parsers import fraction, int_at_least
from bioshards.pipelines.options.common import (
    EXECUTION_GROUP,
    IO_GROUP,
    OUTPUT_OPTION,
    DownloadOptions,
    check_output,
    make_max_rejected_option,
)

ConfigT = TypeVar("ConfigT", bound=TextConfig)
_io_option = functools.partial(Option, group=IO_GROUP)

DOCUMENTS_GROUP: Final = "which documents, and what of them"


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
    max_rejected: Annotated[float, make_max_rejected_option("records")] = 0.001
    max_bad_files: Annotated[
        float,
        Option(
            "fraction of source files that may be unusable before the run fails; each is named at the end "
            "(default: %(default)s)",
            group=EXECUTION_GROUP,
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
        check_output(self.output)

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


def find_sample(name: str) -> tuple[str, ...]:
    """Return the ``--input`` of a sample that comes with bioshards."""
    corpus = Path(str(resources.files("bioshards.corpus")))
    return (str(corpus.resolve() / "sample" / name),)  # in a checkout, not by the link below src/
